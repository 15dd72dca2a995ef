#include "launcher/doctor_checks.h"

#include <gtest/gtest.h>

#include "launcher/network_choice.h"
#include "launcher/rank_facts.h"
#include "launcher/rank_map.h"

namespace tupelo::doctor_checks_test {
namespace {

using Result = Finding::Result;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// Four ranks on two hosts that leave nothing to be desired.
std::vector<ProcessReport> healthy() {
  std::vector<ProcessReport> reports;
  for (int rank = 0; rank < 4; ++rank) {
    ProcessReport report;
    report.rank = rank;
    report.host = rank < 2 ? "a" : "b";
    report.local_rank = rank % 2;
    report.local_size = 2;
    report.threads = 4;
    report.cores = report.allowed_cores = 8;
    report.open_files = 65536;
    report.shared_memory_free = report.folder_free = 100 * kGiB;
    report.addresses = {{"eth0", rank < 2 ? "10.0.0.1" : "10.0.0.2"}};
    reports.push_back(report);
  }
  return reports;
}

Finding finding(const std::vector<ProcessReport>& reports, const std::string& check) {
  for (const Finding& each : check_reports(reports)) {
    if (each.check == check) return each;
  }
  ADD_FAILURE() << "no check called " << check;
  return {};
}

// What the one finding that is not ok says; everything else must be ok.
void expect_only(const std::vector<ProcessReport>& reports, const std::string& check, Result result,
                 const std::vector<std::string>& words) {
  for (const Finding& each : check_reports(reports)) {
    if (each.check != check) {
      EXPECT_EQ(each.result, Result::kOk) << each.check << ": " << each.found;
      continue;
    }
    EXPECT_EQ(each.result, result) << each.found;
    EXPECT_FALSE(each.advice.empty());
    for (const std::string& word : words)
      EXPECT_NE(each.found.find(word), std::string::npos) << each.found;
  }
}

TEST(DoctorChecks, AHealthyClusterHasNoFindings) {
  for (const Finding& each : check_reports(healthy())) {
    EXPECT_EQ(each.result, Result::kOk) << each.check << ": " << each.found;
    EXPECT_FALSE(each.found.empty());
    EXPECT_EQ(each.advice, "");
  }
  EXPECT_EQ(finding(healthy(), "ranks").found, "4 on 2 hosts");
}

TEST(DoctorChecks, HostsWithUnequalNumbersOfRanks) {
  auto reports = healthy();
  reports.pop_back();
  reports.back().local_size = 1;
  expect_only(reports, "ranks", Result::kWarning, {"2 on a", "1 on b"});
}

TEST(DoctorChecks, DevicesThatDoNotMatchRanks) {
  auto reports = healthy();
  for (auto& report : reports) report.devices = 2;
  EXPECT_EQ(finding(reports, "devices").result, Result::kOk);
  reports[2].devices = reports[3].devices = 1;
  expect_only(reports, "devices", Result::kFailed, {"2 CUDA devices on a", "1 on b"});
  for (auto& report : reports) report.devices = 4;
  expect_only(reports, "devices", Result::kFailed, {"2 ranks for 4 CUDA devices on a"});
  reports.resize(1);
  reports.front().local_size = 1;
  EXPECT_EQ(finding(reports, "devices").result, Result::kOk) << "a run by hand on one of several";
}

TEST(DoctorChecks, CoresThatDoNotSuffice) {
  auto reports = healthy();
  for (auto& report : reports) report.threads = 5;
  expect_only(reports, "cores", Result::kWarning, {"2 ranks of 5 threads on a", "8 cores"});
  reports[3].allowed_cores = 1;
  expect_only(reports, "cores", Result::kWarning, {"rank 3 on b", "5 threads", "1 core"});
}

TEST(DoctorChecks, RanksThatStretchOverMemoryNodes) {
  auto reports = healthy();
  for (auto& report : reports) report.numa_nodes = 2;
  reports[1].allowed_nodes = 2;
  expect_only(reports, "numa", Result::kWarning, {"rank 1 on a", "2 of 2"});
}

TEST(DoctorChecks, Limits) {
  auto reports = healthy();
  reports[2].open_files = 256;
  expect_only(reports, "limits", Result::kFailed, {"256 files on b"});
  reports = healthy();
  reports[2].file_bytes = kGiB / 2;
  expect_only(reports, "limits", Result::kFailed, {"512 MiB on b"});
  reports = healthy();
  reports[1].address_bytes = 32 * kGiB;
  expect_only(reports, "limits", Result::kWarning, {"32 GiB on a"});
  reports = healthy();
  reports[1].locked_bytes = 64 << 10;
  EXPECT_EQ(finding(reports, "limits").result, Result::kOk);
  reports[1].infiniband = true;
  expect_only(reports, "limits", Result::kWarning, {"InfiniBand"});
}

TEST(DoctorChecks, AnAddressOfTwoHosts) {
  auto reports = healthy();
  for (auto& report : reports) report.addresses.push_back({"docker0", "172.17.0.1"});
  expect_only(reports, "networks", Result::kFailed, {"172.17.0.1", "docker0 on a", "docker0 on b"});
  for (auto& report : reports) report.chosen_networks = "eth0";
  EXPECT_EQ(finding(reports, "networks").result, Result::kOk);
}

TEST(DoctorChecks, SpaceThatDoesNotSuffice) {
  auto reports = healthy();
  reports[3].shared_memory_free = 64 << 20;
  expect_only(reports, "shared memory", Result::kFailed, {"64 MiB", "on b", "2 ranks"});
  reports = healthy();
  reports[0].folder_free = 5 * kGiB;
  expect_only(reports, "free disk", Result::kWarning, {"5 GiB", "on a"});
  reports[0].folder_free = kGiB / 2;
  expect_only(reports, "free disk", Result::kFailed, {"512 MiB"});
}

TEST(DoctorChecks, ReportsSurviveTheirJourney) {
  ProcessReport report = healthy().back();
  report.infiniband = true;
  report.chosen_networks = "10.0.0.0/8";
  report.locked_bytes = 1;
  report.numa_nodes = 3;
  EXPECT_EQ(to_json(process_report_of(to_json(report))), to_json(report));
  EXPECT_EQ(process_report_of(to_json(report)).addresses, report.addresses);
  EXPECT_EQ(process_report_of(to_json(report)).file_bytes, kUnlimited);
}

TEST(DoctorChecks, ListsOfCores) {
  EXPECT_EQ(numbers_of_list("0-3,8"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(numbers_of_list(""), std::vector<int>());
  EXPECT_EQ(numbers_of_list("x,2"), std::vector<int>{2});
}

TEST(DoctorChecks, LinksThatAreSlowAndWhereTheyEnd) {
  EXPECT_EQ(check_links({}).result, Result::kOk);
  EXPECT_EQ(check_links({{"a", "b", 1}}).result, Result::kOk);
  EXPECT_EQ(check_links({{"a", "b", 1}, {"a", "c", 3.9}, {"b", "c", 3}}).result, Result::kOk);
  const Finding slow = check_links({{"a", "b", 1}, {"a", "c", 9}, {"b", "c", 5}});
  EXPECT_EQ(slow.result, Result::kFailed);
  EXPECT_NE(slow.found.find("a - c (9 times), b - c (5 times)"), std::string::npos) << slow.found;
  EXPECT_NE(slow.advice.find("end at c"), std::string::npos) << slow.advice;
  const Finding one = check_links({{"a", "b", 1}, {"a", "c", 9}, {"b", "c", 1}});
  EXPECT_EQ(one.advice.find("all of them"), std::string::npos) << one.advice;
}

TEST(DoctorChecks, ClocksThatAreApart) {
  EXPECT_EQ(check_clocks({"a", "b"}, {0, 0.05}, 0.001).result, Result::kOk);
  EXPECT_EQ(check_clocks({"a", "b"}, {0, 2.5}, 3).result, Result::kOk) << "it may be the measure";
  EXPECT_EQ(check_clocks({"a", "b"}, {0, 0.5}, 0.001).result, Result::kWarning);
  const Finding behind = check_clocks({"a", "b", "c"}, {0, 0.5, -90}, 0.001);
  EXPECT_EQ(behind.result, Result::kFailed);
  EXPECT_NE(behind.found.find("the clock of c is 90 s behind that of a"), std::string::npos)
      << behind.found;
}

TEST(RankFacts, TheFirstDifferenceNamesBothSides) {
  const Facts facts = {{"x", "1", "do this"}, {"y", "2", "do that"}};
  EXPECT_EQ(first_difference({facts, facts, facts}, {"a", "a", "b"}), std::nullopt);
  Facts other = facts;
  other[1].value = "3";
  EXPECT_EQ(first_difference({facts, facts, other}, {"a", "a", "b"}),
            "ranks do not match: y is 2 on rank 0 (a), but 3 on rank 2 (b); do that");
  other.pop_back();
  EXPECT_EQ(first_difference({facts, other}, {"a", "b"}),
            "ranks do not match: y is 2 on rank 0 (a), but missing on rank 1 (b); do that");
}

TEST(RankFacts, TheProgramKnowsItself) {
  const Facts facts = program_facts();
  EXPECT_EQ(facts.front().value.size(), 64u);
  const auto has = [&](const std::string& name) {
    return std::any_of(facts.begin(), facts.end(), [&](const Fact& fact) {
      return fact.name.find(name) != std::string::npos && !fact.value.empty();
    });
  };
  for (const char* name :
       {"libtorch_cpu.so", "libc10.so", "libmpi.so", "LibTorch", "the MPI library"}) {
    EXPECT_TRUE(has(name)) << name;
  }
}

TEST(RankMap, OneLinePerHost) {
  EXPECT_EQ(rank_map({"a", "a", "b", "b"}, true),
            (std::vector<std::string>{"a: ranks 0-1 on cuda:0-1", "b: ranks 2-3 on cuda:0-1"}));
  EXPECT_EQ(rank_map({"a", "b", "a", "a"}, false),
            (std::vector<std::string>{"a: ranks 0, 2-3", "b: rank 1"}));
  EXPECT_EQ(rank_map({"a", "b", "c"}, true, 1),
            (std::vector<std::string>{"a: rank 0 on cuda:0", "and 2 more hosts"}));
}

TEST(NetworkChoice, AddressesLieInNetworks) {
  EXPECT_TRUE(lies_in("10.1.2.3", "10.1.0.0/16"));
  EXPECT_FALSE(lies_in("10.2.2.3", "10.1.0.0/16"));
  EXPECT_TRUE(lies_in("10.1.2.3", "10.1.2.3/32"));
  EXPECT_FALSE(lies_in("10.1.2.4", "10.1.2.3/32"));
  EXPECT_TRUE(lies_in("192.0.2.1", "0.0.0.0/0"));
  for (const char* wrong : {"10.1.0.0/33", "10.1/16", "10.1.0.0/", "x/8", "10.1.0.0"}) {
    EXPECT_THROW(lies_in("10.1.2.3", wrong), std::invalid_argument) << wrong;
  }
}

}  // namespace
}  // namespace tupelo::doctor_checks_test
