#include <torch/cuda.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "distributed/pair_speed.h"
#include "launcher/agreement.h"
#include "launcher/cluster_probe.h"
#include "launcher/commands.h"
#include "launcher/console.h"
#include "launcher/doctor_checks.h"
#include "launcher/nearest_name.h"
#include "launcher/network_choice.h"
#include "launcher/process_report.h"
#include "launcher/rank_facts.h"
#include "launcher/session.h"
#include "launcher/text_table.h"
#include "launcher/value_text.h"

namespace tupelo {
namespace {

using Json = nlohmann::ordered_json;
using Result = Finding::Result;
using Takes = VerbOption::Takes;

// So that a rank that does not answer is named before the half minute of all checks is over.
constexpr int kTimeoutSeconds = 20;

struct Diagnosis {
  Facts facts;
  std::vector<ProcessReport> reports;
  Findings findings;
  std::vector<AllReduceSpeed> all_reduce;
  std::size_t link_bytes = 0;
  std::vector<LinkTime> links;
  double seconds = 0;

  bool healthy() const {
    for (const Finding& finding : findings) {
      if (finding.result == Result::kFailed) return false;
    }
    return true;
  }
};

// The devices of the run where they can be used; else processors, and why.
std::optional<Finding> configure(Session& session, const CommandLine& line) {
  std::string device;
  together(session.control(), [&] {
    device = reading_option("device", [&] {
      return one_of(line.value("device", "auto"), {"auto", "cpu", "cuda"});
    });
  });
  try {
    session.configure(device, 0, kTimeoutSeconds);
    return std::nullopt;
  } catch (const AgreedError& error) {
    if (error.code() != ExitCode::kUsage || device == "cpu") throw;
    session.configure("cpu", 0, kTimeoutSeconds);
    return Finding{"devices", Result::kFailed, error.what(), "the checks below ran on processors"};
  }
}

ProcessReport own_report(Session& session, const std::filesystem::path& folder) {
  const Runtime& runtime = session.runtime();
  ProcessReport report = report_process(folder);
  report.rank = runtime.rank();
  report.local_rank = runtime.local_rank();
  report.local_size = runtime.local_size();
  report.host = runtime.hosts()[static_cast<std::size_t>(runtime.rank())];
  report.threads = session.threads();
  report.devices = static_cast<int>(torch::cuda::device_count());
  return report;
}

Finding check_programs(Communicator& communicator, const std::vector<std::string>& hosts,
                       const Facts& facts) {
  const auto difference = first_difference(gather_facts(communicator, facts), hosts);
  if (!difference) {
    const bool alone = communicator.world_size() == 1;
    return {"program", Result::kOk,
            std::string("tupelo " TUPELO_VERSION) +
                (alone ? "" : ", and the same libraries on every rank"),
            ""};
  }
  const std::size_t advice = difference->find("; ");
  return {"program", Result::kFailed, difference->substr(0, advice),
          difference->substr(advice + 2)};
}

// One rank of each host; all ranks where there is one host only.
std::vector<int> speakers(const std::vector<ProcessReport>& reports) {
  std::vector<int> first_of_hosts, all;
  for (const ProcessReport& report : reports) {
    all.push_back(report.rank);
    if (report.local_rank == 0) first_of_hosts.push_back(report.rank);
  }
  return first_of_hosts.size() > 1 ? first_of_hosts : all;
}

std::string end_name(const ProcessReport& report, bool many_hosts) {
  return many_hosts ? report.host : "rank " + std::to_string(report.rank);
}

// Times of the pairs of `ranks`, the same on every rank.
std::vector<LinkTime> link_times(Session& session, const Diagnosis& diagnosis,
                                 const std::vector<int>& ranks) {
  constexpr std::size_t kMostPartners = 15;
  constexpr int kRepetitions = 5;
  const auto host_of = [&](std::size_t speaker) {
    return diagnosis.reports[static_cast<std::size_t>(ranks[speaker])].host;
  };
  const bool many_hosts = ranks.size() > 1 && host_of(0) != host_of(1);
  Json mine = Json::array();
  for (const PairSpeed& each :
       measure_pairs(session.runtime(), ranks, diagnosis.link_bytes, kRepetitions, kMostPartners,
                     std::chrono::seconds(kTimeoutSeconds))) {
    if (each.peer > session.runtime().rank()) mine.push_back({each.peer, each.seconds});
  }
  std::vector<LinkTime> links;
  const auto texts = gather(session.control(), mine.dump());
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    for (const auto& each : Json::parse(texts[rank])) {
      const auto peer = each[0].get<std::size_t>();
      links.push_back({end_name(diagnosis.reports[rank], many_hosts),
                       end_name(diagnosis.reports[peer], many_hosts), each[1]});
    }
  }
  return links;
}

// A processor that does something else at the wrong moment looks like a slow link: what looks slow
// is measured again, as long as there is time, and the best counts.
void measure_links(Session& session, Diagnosis& diagnosis) {
  if (session.runtime().rendezvous() != nullptr) return;  // pairs talk through MPI
  constexpr double kEnoughSeconds = 6;
  const auto start = std::chrono::steady_clock::now();
  const std::vector<int> ranks = speakers(diagnosis.reports);
  diagnosis.link_bytes = 1 << 20;
  diagnosis.links = link_times(session, diagnosis, ranks);
  Finding finding = check_links(diagnosis.links);
  const auto spent = [&] {
    const std::chrono::duration<double> own = std::chrono::steady_clock::now() - start;
    return session.control().max(own.count());
  };
  while (finding.result != Result::kOk && spent() < kEnoughSeconds) {
    std::vector<LinkTime> again = link_times(session, diagnosis, ranks);
    for (LinkTime& link : diagnosis.links) {
      const auto same = std::find_if(again.begin(), again.end(), [&](const LinkTime& other) {
        return other.first == link.first && other.second == link.second;
      });
      if (same != again.end()) link.seconds = std::min(link.seconds, same->seconds);
    }
    finding = check_links(diagnosis.links);
  }
  diagnosis.findings.push_back(std::move(finding));
}

Diagnosis diagnose(Session& session, const CommandLine& line) {
  const auto start = std::chrono::steady_clock::now();
  const std::filesystem::path folder = line.value("folder", ".");
  const auto& hosts = session.runtime().hosts();
  Communicator& control = session.control();
  Diagnosis diagnosis;
  const auto no_device = configure(session, line);
  diagnosis.facts = program_facts();
  diagnosis.findings.push_back(check_programs(control, hosts, diagnosis.facts));
  std::string own;
  together(control, [&] { own = to_json(own_report(session, folder)); });
  for (const std::string& text : gather(control, own)) {
    diagnosis.reports.push_back(process_report_of(text));
  }
  for (const Finding& finding : check_reports(diagnosis.reports)) {
    diagnosis.findings.push_back(no_device && finding.check == "devices" ? *no_device : finding);
  }
  diagnosis.findings.push_back(check_shared_folder(control, hosts, folder));
  const Clocks clocks = compare_clocks(control);
  diagnosis.findings.push_back(check_clocks(hosts, clocks.offsets, clocks.uncertainty));
  AllReduceReport all_reduce = check_all_reduce(session.data(), session.device(), hosts);
  diagnosis.findings.push_back(std::move(all_reduce.finding));
  diagnosis.all_reduce = std::move(all_reduce.speeds);
  measure_links(session, diagnosis);
  diagnosis.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return diagnosis;
}

const char* result_text(Result result) {
  switch (result) {
    case Result::kOk:
      return "ok";
    case Result::kWarning:
      return "warning";
    case Result::kFailed:
      return "FAILED";
  }
  return "";
}

double gigabytes_per_second(double bytes, double seconds) { return bytes / seconds / 1e9; }

std::string json_text(const Diagnosis& diagnosis) {
  Json object = {
      {"tupelo", TUPELO_VERSION}, {"healthy", diagnosis.healthy()}, {"seconds", diagnosis.seconds}};
  for (const Fact& fact : diagnosis.facts) object["versions"][fact.name] = fact.value;
  for (const Finding& finding : diagnosis.findings) {
    std::string result = result_text(finding.result);
    if (finding.result == Result::kFailed) result = "failed";
    object["checks"].push_back({{"check", finding.check},
                                {"result", result},
                                {"found", finding.found},
                                {"advice", finding.advice}});
  }
  for (const ProcessReport& report : diagnosis.reports) {
    object["ranks"].push_back(Json::parse(to_json(report)));
  }
  object["all_reduce"] = Json::array();
  for (const AllReduceSpeed& speed : diagnosis.all_reduce) {
    object["all_reduce"].push_back({{"bytes", speed.bytes},
                                    {"seconds", speed.seconds},
                                    {"bus_gigabytes_per_second", speed.bus_gigabytes_per_second}});
  }
  object["links"] = Json::array();
  for (const LinkTime& link : diagnosis.links) {
    object["links"].push_back(
        {{"first", link.first},
         {"second", link.second},
         {"gigabytes_per_second_each_way",
          gigabytes_per_second(static_cast<double>(diagnosis.link_bytes), link.seconds)}});
  }
  return object.dump(1, ' ', false, Json::error_handler_t::replace);
}

void print_for_people(const Diagnosis& diagnosis, Console& console) {
  for (const Finding& finding : diagnosis.findings) {
    std::string text = result_text(finding.result);
    text.resize(9, ' ');
    text += finding.check;
    text.resize(24, ' ');
    text += finding.found;
    if (!finding.advice.empty()) text += "; " + finding.advice;
    console.line(text);
  }
  if (!diagnosis.all_reduce.empty()) {
    TextTable table({"all-reduce bytes", "ms", "bus GB/s"});
    for (const AllReduceSpeed& speed : diagnosis.all_reduce) {
      table.add({grouped(speed.bytes), significant(speed.seconds * 1e3, 3),
                 significant(speed.bus_gigabytes_per_second, 3)});
    }
    std::string text = table.text();
    text.pop_back();
    console.line("\n" + text);
  }
  const auto failed =
      std::count_if(diagnosis.findings.begin(), diagnosis.findings.end(),
                    [](const Finding& finding) { return finding.result == Result::kFailed; });
  console.line("\n" +
               (failed == 0 ? std::string("nothing is in the way of a run")
                            : std::to_string(failed) + " of " +
                                  std::to_string(diagnosis.findings.size()) + " checks failed") +
               " (" + significant(diagnosis.seconds, 2) + " s)");
}

ExitCode doctor_in(Session& session, const CommandLine& line) {
  const Diagnosis diagnosis = diagnose(session, line);
  Console console(/*silent=*/!session.is_first());
  if (line.has("json")) {
    console.line(json_text(diagnosis));
  } else {
    print_for_people(diagnosis, console);
  }
  return diagnosis.healthy() ? ExitCode::kDone : ExitCode::kUnfit;
}

// Ends the process when it is still there after a while: MPI waits for an unreachable host, and a
// system call for a file server, as long as it takes.
class Patience {
 public:
  explicit Patience(std::chrono::seconds limit) : thread_([this, limit] { wait(limit); }) {}
  ~Patience() {
    {
      std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

 private:
  void wait(std::chrono::seconds limit) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, limit, [this] { return done_; })) return;
    std::string interfaces;
    for (const NetworkAddress& each : network_addresses()) {
      interfaces += (interfaces.empty() ? "" : ", ") + each.interface + " (" + each.address + ")";
    }
    std::cerr << "error: tupelo doctor waited " << limit.count()
              << " s: ranks do not reach each other over the network that MPI chose, or the folder "
                 "does not answer, or devices are slow to start (nvidia-persistenced keeps them "
                 "ready); name the network that joins the hosts with --interface: this "
                 "host has "
              << interfaces << std::endl;
    std::_Exit(static_cast<int>(ExitCode::kTimeout));
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;  // last: it uses all of the above
};

ExitCode run_doctor(const Verb& verb, const std::vector<std::string>& words) {
  const Patience patience{std::chrono::seconds(28)};
  return in_session(verb, words, doctor_in);
}

}  // namespace

Command doctor_command() {
  Verb verb;
  verb.name = "doctor";
  verb.usage = "[mpirun -np N] tupelo doctor [--folder DIR] [--json]";
  verb.summary =
      "Says whether this machine, or the cluster it is started on, is fit for a run. Starts like "
      "tupelo train,\nunder mpirun or srun with the same options, and takes less than half a "
      "minute.";
  verb.options = {{"folder", Takes::kOneValue, "DIR",
                   "where corpora and runs will lie, to be seen by all hosts (the current folder)"},
                  interface_option(),
                  {"device", Takes::kOneValue, "NAME", "auto, cpu or cuda"},
                  {"json", Takes::kNothing, "", "print JSON"},
                  {"help", Takes::kNothing, "", "this text"}};
  verb.epilogue =
      "Checks that every rank has the same program and libraries, ranks and devices, cores and\n"
      "binding, memory nodes, limits, networks, shared memory, free disk, that the folder is the "
      "same\neverywhere, clocks, sums over ranks and their speed by size, links between hosts.\n"
      "Exit codes: 0 nothing failed (there may be warnings), 20 a check failed, 11 no answer "
      "within 28 s.";
  return {verb, run_doctor};
}

}  // namespace tupelo
