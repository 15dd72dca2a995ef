// The files of a run.
#include "launcher/run_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>

#include "launcher/curve_plot.h"
#include "launcher/metrics_log.h"

namespace tupelo::run_folder_test {
namespace {

class Folder : public ::testing::Test {
 protected:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "tupelo-launcher-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() override { std::filesystem::remove_all(path_); }
  std::filesystem::path path_;
};

TEST_F(Folder, MetricsLogCutsBackToTheRestoredStep) {
  const auto file = path_ / "metrics.jsonl";
  {
    MetricsLog log(file, 0);
    for (int step = 1; step <= 3; ++step) {
      log.append("{\"step\":" + std::to_string(step) + ",\"loss\":0.1}");
    }
  }
  std::ofstream(file, std::ios::app) << "{\"step\":4,\"lo";  // torn by a kill
  { MetricsLog log(file, 2); }
  EXPECT_EQ(read_file(file), "{\"step\":1,\"loss\":0.1}\n{\"step\":2,\"loss\":0.1}\n");
}

TEST_F(Folder, RunLockHasOneHolder) {
  auto first = std::make_unique<RunLock>(path_ / "lock");
  const std::string error =
      message_of<std::invalid_argument>([&] { RunLock second(path_ / "lock"); });
  EXPECT_NE(error.find("in use"), std::string::npos);
  EXPECT_NE(error.find(std::to_string(getpid())), std::string::npos);
  first.reset();
  RunLock third(path_ / "lock");
}

TEST_F(Folder, AtomicWriteReplacesOrKeeps) {
  write_atomically(path_ / "file", "old");
  write_atomically(path_ / "file", "new");
  EXPECT_EQ(read_file(path_ / "file"), "new");
  EXPECT_THROW(write_atomically(path_ / "absent" / "file", "x"), std::system_error);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path_), {}), 1);
  EXPECT_THROW(read_file(path_), std::system_error);
}

TEST(CurvePlot, DrawsEveryPointAndRefusesNothing) {
  const Curves curves = curves_from_metrics(
      "{\"step\":1,\"loss\":5.5}\n{\"step\":2,\"loss\":4.5}\nnot json\n"
      "{\"step\":2,\"event\":\"validation\",\"validation_loss\":4.75}\n");
  ASSERT_EQ(curves.curves.size(), 2u);
  EXPECT_EQ(curves.curves[0].points.size(), 2u);
  EXPECT_NE(to_svg(curves).find("<polyline"), std::string::npos);
  EXPECT_THROW(to_svg(Curves{}), std::invalid_argument);
}

}  // namespace
}  // namespace tupelo::run_folder_test
