#include "bench/scale_check.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "bench/doctor_file.h"

namespace tupelo::bench {
namespace {

using Json = nlohmann::json;

// A report of `ranks` on one host whose sums take alpha + beta * bytes.
Json doctor(int ranks, double alpha, double beta) {
  Json report{{"ranks", Json::array()}, {"all_reduce", Json::array()}};
  for (int rank = 0; rank < ranks; ++rank) report["ranks"].push_back({{"host", "here"}});
  for (const double bytes : {1e3, 1e5, 1e7}) {
    report["all_reduce"].push_back({{"bytes", bytes}, {"seconds", alpha + beta * bytes}});
  }
  return report;
}

Json run(int ranks, double rows, int micro_batches, double seconds, bool calibrates) {
  return {{"ranks", ranks},     {"shard", "none"},
          {"rows", rows},       {"micro_batches", micro_batches},
          {"seconds", seconds}, {"calibrates", calibrates}};
}

// One rank takes 1.5 s, and 0.5 s and 1 s a row for each micro-batch. 1,000,000 bytes of gradients
// at least, in one bucket.
Json measured() {
  return {{"cores", 2},
          {"threads", 1},
          {"bucket_bytes", 1e9},
          {"sequence_length", 4},
          {"model",
           {{"layers", 1},
            {"hidden", 1},
            {"intermediate", 1},
            {"vocab", 10},
            {"position_rows", 249957}}},
          {"doctor", {{"2", doctor(2, 0.5, 1e-6)}, {"3", doctor(3, 0.25, 2e-6)}}},
          {"runs",
           {run(1, 1, 1, 3, true), run(1, 3, 1, 5, true), run(1, 8, 1, 12.5, false),
            run(2, 4, 1, 10, false), run(3, 4, 1, 10, false), run(1, 2, 3, 9, true)}}};
}

TEST(ScaleCheck, PredictsRunsFromOneRankAndDoctor) {
  const Check check = check_model(measured(), "measured.json");
  EXPECT_NEAR(check.work.update_seconds, 1.5, 1e-9);
  EXPECT_NEAR(check.work.pass_seconds, 0.5, 1e-9);
  EXPECT_NEAR(check.work.seconds_by_row, 1, 1e-9);
  EXPECT_NEAR(check.sums.at(2).alpha_seconds, 0.5, 1e-9);
  EXPECT_NEAR(check.sums.at(3).beta_seconds_per_byte, 2e-6, 1e-12);
  ASSERT_EQ(check.runs.size(), 6u);
  EXPECT_NEAR(check.runs[2].predicted.seconds(), 10, 1e-9);
  EXPECT_NEAR(check.runs[2].error(), -0.2, 1e-9);
  // Two ranks on two cores: nothing hides a sum, and three agreements of 64 bytes come after it.
  const double elements = 249957 + 2 * 10 + 1 + 2 + 4 * 2 + 2 * 2 + 2 + 2 + 2 + 2;
  EXPECT_NEAR(check.runs[3].predicted.exposed_seconds(), 4 * 0.5 + elements * 4e-6 + 3 * 64e-6,
              1e-9);
  EXPECT_NEAR(check.runs[3].predicted.compute_seconds, 4.5, 1e-9);
  // Three share two cores, half as fast again each.
  EXPECT_NEAR(check.runs[4].predicted.compute_seconds, 6.75, 1e-9);
  EXPECT_NEAR(check.runs[4].predicted.update_seconds, 2.25, 1e-9);
  EXPECT_NEAR(check.runs[4].predicted.exposed_seconds(), 4 * 0.25 + elements * 8e-6 + 3 * 128e-6,
              1e-9);
}

std::string refusal(const Json& changed) {
  try {
    check_model(changed, "measured.json");
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(ScaleCheck, RanksThatShareTheUpdateScatterAndGather) {
  Json sharded = measured();
  sharded["runs"][3]["shard"] = "world";
  const Check check = check_model(sharded, "measured.json");
  const StepTime& time = check.runs[3].predicted;
  // One rank that updates all moves 36 bytes an element: 4 are zeroed, each has half of the others.
  EXPECT_NEAR(time.update_seconds, 1.5 * 20.0 / 36, 1e-9);
  // Half of what a sum takes, there and back.
  const double elements = 250000;
  EXPECT_NEAR(time.exposed_reduce_seconds, 0.25 + elements * 2e-6, 1e-9);
  EXPECT_NEAR(time.exposed_gather_seconds, 0.25 + elements * 2e-6, 1e-9);
  EXPECT_NEAR(time.agreement_seconds, 4 * (0.5 + 64e-6), 1e-9);
  sharded["runs"][3]["shard"] = "node";
  EXPECT_EQ(check_model(sharded, "measured.json").runs[3].predicted.seconds(), time.seconds());
  sharded["runs"][3]["shard"] = "both";
  EXPECT_NE(refusal(sharded).find("'both'; valid are none, node, world"), std::string::npos)
      << refusal(sharded);
}

TEST(ScaleCheck, IdleCoresHideSums) {
  Json idle = measured();
  idle["cores"] = 4;
  // The tables' gradient, nearly all there is, comes at the very end of backward.
  const Check check = check_model(idle, "measured.json");
  EXPECT_NEAR(check.runs[4].predicted.compute_seconds, 4.5, 1e-9);
  idle["bucket_bytes"] = 1;
  idle["runs"][3]["shard"] = "world";
  const StepTime hidden = check_model(idle, "measured.json").runs[3].predicted;
  idle["cores"] = 2;
  const StepTime exposed = check_model(idle, "measured.json").runs[3].predicted;
  EXPECT_LT(hidden.exposed_reduce_seconds, exposed.exposed_reduce_seconds);
  EXPECT_LT(hidden.exposed_gather_seconds, exposed.exposed_gather_seconds);
}

TEST(ScaleCheck, RefusesWhatItCannotPredictFrom) {
  Json one = measured();
  one["runs"][1]["calibrates"] = false;
  EXPECT_NE(refusal(one).find("there are 1 and one"), std::string::npos) << refusal(one);
  one = measured();
  one["runs"][5]["calibrates"] = false;
  EXPECT_NE(refusal(one).find("there are 2 and none"), std::string::npos) << refusal(one);
  Json several = measured();
  several["runs"][3]["calibrates"] = true;
  EXPECT_NE(refusal(several).find("not one of 2"), std::string::npos) << refusal(several);
  Json elsewhere = measured();
  elsewhere["doctor"]["2"] = doctor(3, 1, 1);
  EXPECT_NE(refusal(elsewhere).find("another number of ranks"), std::string::npos)
      << refusal(elsewhere);
  Json fewer = measured();
  fewer["doctor"].erase("3");
  EXPECT_NE(refusal(fewer).find("has no doctor of 3 ranks"), std::string::npos) << refusal(fewer);
  Json without = measured();
  without.erase("doctor");
  EXPECT_NE(refusal(without).find("is not what bench/check_scale.py writes"), std::string::npos)
      << refusal(without);
}

TEST(ScaleCheck, ReadsDoctorOnSeveralHosts) {
  Json report = doctor(4, 1, 1e-6);
  report["ranks"][0]["host"] = report["ranks"][1]["host"] = "there";
  const DoctorFile found = doctor_report(report, "doctor.json");
  EXPECT_EQ(found.group.hosts, 2);
  EXPECT_EQ(found.group.per_host, 2);
  EXPECT_NEAR(found.all_reduce.alpha_seconds, 1, 1e-9);
  report["ranks"][1]["host"] = "here";
  EXPECT_THROW(doctor_report(report, "doctor.json"), std::invalid_argument);
  EXPECT_THROW(doctor_report(Json{{"checks", 3}}, "doctor.json"), std::invalid_argument);
}

}  // namespace
}  // namespace tupelo::bench
