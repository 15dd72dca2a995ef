// The loss curve of a run as an SVG picture.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tupelo {

struct Curve {
  std::string name;
  std::string color;
  std::vector<std::pair<double, double>> points;  // (step, loss), ascending steps
  bool marked = false;                            // draw the points themselves
};

struct Curves {
  std::string title;
  std::vector<Curve> curves;
  double reference = 0;  // a horizontal line, when positive
  std::string reference_name;
};

// Reads the records of metrics.jsonl. Lines that are not records are skipped.
Curves curves_from_metrics(const std::string& jsonl);

// A complete SVG document of about 840 x 480 units. Throws std::invalid_argument when no curve has
// a point.
std::string to_svg(const Curves& curves);

}  // namespace tupelo
