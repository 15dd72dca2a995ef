// Pictures and tables that commands print or write.
#include <gtest/gtest.h>

#include <limits>

#include "launcher/probe_report.h"
#include "launcher/saved_model.h"
#include "launcher/svg_figures.h"
#include "launcher/text_table.h"

namespace tupelo::figures_test {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

TEST(TextTable, ColumnsAreAsWideAsTheirWidestCell) {
  TextTable table({"layer", "name<", "number"});
  table.add({"0", "a", "1,234,567"});
  table.add({"11", "longer"});
  EXPECT_EQ(table.text(),
            "layer  name       number\n"
            "0      a       1,234,567\n"
            "11     longer\n");
}

TEST(HeatMap, ColoursByValueAndJoinsNeighbours) {
  const std::string svg = heat_map({2, 4, {2, 2, 0, -2, 1, 0, kNothing, 9}}, 2.0);
  EXPECT_TRUE(contains(svg, "viewBox=\"0 0 4 2\""));
  // Full red: two cells of row 0 as one, and what lies beyond the largest in row 1.
  EXPECT_TRUE(contains(svg, "fill=\"#be1e2d\" d=\"M0 0h2v1h-2zM3 1h1v1h-1z\""));
  EXPECT_TRUE(contains(svg, "fill=\"#2154a8\" d=\"M3 0h1v1h-1z\""));  // full blue
  EXPECT_TRUE(contains(svg, "fill=\"#bbbbbb\" d=\"M2 1h1v1h-1z\""));  // no number
  EXPECT_EQ(count(svg, "<path"), 4u);                                 // white cells have none
}

TEST(LinePlot, LinesWithGaps) {
  const std::string svg = line_plot({2, 5, {0, 1, kNothing, 3, 4, 1, 1, 1, 1, 1}}, -2);
  EXPECT_EQ(count(svg, "stroke-width"), 2u);
  EXPECT_EQ(count(svg, "L"), 2u + 4u);
  EXPECT_TRUE(contains(svg, ">-2</text>"));
  EXPECT_TRUE(contains(svg, ">2</text>"));
  EXPECT_TRUE(contains(svg, ">4</text>"));
  EXPECT_TRUE(contains(line_plot({1, 1, {kNothing}}, 0), "<svg"));
}

TEST(ProbePage, MapsHaveAtMost64Cells) {
  ProbeReport report;
  report.checkpoint = "runs/<a>";
  GroupProbe group;
  group.encoding = "tupe-a";
  group.layers = {0};
  group.picture.correlation = torch::arange(100).view({1, 100, 1}).expand({2, 100, 100}) * 1.0;
  group.to_left = group.to_right = {kNothing, kNothing};
  report.probe.groups.push_back(group);
  const std::string page = probe_page(report);
  EXPECT_EQ(count(page, "viewBox=\"0 0 64 64\""), 2u);
  EXPECT_TRUE(contains(page, "runs/&lt;a&gt;"));
  report.probe.groups[0].picture.correlation =
      group.picture.correlation.narrow(1, 0, 9).narrow(2, 0, 9);
  EXPECT_EQ(count(probe_page(report), "viewBox=\"0 0 9 9\""), 2u);
}

TEST(CheckpointPlace, RunsAndTheirCheckpoints) {
  const auto expect = [](const std::string& path, const std::string& run, std::int64_t step) {
    const CheckpointPlace place = checkpoint_place(path);
    EXPECT_EQ(place.run, run) << path;
    EXPECT_EQ(place.step, step) << path;
  };
  expect("runs/a", "runs/a", 0);
  expect("runs/a/checkpoints/step-000000100", "runs/a", 100);
  expect("runs/a/checkpoints/step-000000100/", "runs/a", 100);
  expect("/x/step-000000100", "/x/step-000000100", 0);
  expect("a/checkpoints/step-one", "a/checkpoints/step-one", 0);
}

}  // namespace
}  // namespace tupelo::figures_test
