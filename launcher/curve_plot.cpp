#include "launcher/curve_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace tupelo {
namespace {

constexpr double kWidth = 840, kHeight = 480, kLeft = 64, kRight = 24, kTop = 48, kBottom = 48;
constexpr int kTicks = 6;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  double share(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
};

// The largest of 1, 2, 5 x 10^k that gives at most kTicks steps over `range`.
double tick_step(const Range& range) {
  const double rough = std::max(range.high - range.low, 1e-9) / kTicks;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

std::string escaped(const std::string& text) {
  std::string result;
  for (char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '&') {
      result += "&amp;";
    } else {
      result += c;
    }
  }
  return result;
}

class Canvas {
 public:
  Canvas(Range x, Range y) : x_(x), y_(y) {
    svg_ << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << kWidth << " " << kHeight
         << "\" width=\"" << kWidth << "\" height=\"" << kHeight
         << "\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
            "fill=\"#ffffff\"/>\n";
  }

  double px(double x) const { return kLeft + x_.share(x) * (kWidth - kLeft - kRight); }
  double py(double y) const { return kHeight - kBottom - y_.share(y) * (kHeight - kTop - kBottom); }

  void line(double x1, double y1, double x2, double y2, const std::string& style) {
    svg_ << "<line x1=\"" << x1 << "\" y1=\"" << y1 << "\" x2=\"" << x2 << "\" y2=\"" << y2 << "\" "
         << style << "/>\n";
  }
  void text(double x, double y, const std::string& anchor, const std::string& words,
            const std::string& fill = "#333333") {
    svg_ << "<text x=\"" << x << "\" y=\"" << y << "\" text-anchor=\"" << anchor << "\" fill=\""
         << fill << "\">" << escaped(words) << "</text>\n";
  }
  void curve(const Curve& curve) {
    svg_ << "<polyline fill=\"none\" stroke=\"" << curve.color
         << "\" stroke-width=\"1.5\" points=\"";
    for (const auto& [x, y] : curve.points) svg_ << px(x) << "," << py(y) << " ";
    svg_ << "\"/>\n";
    if (!curve.marked) return;
    for (const auto& [x, y] : curve.points) {
      svg_ << "<circle cx=\"" << px(x) << "\" cy=\"" << py(y) << "\" r=\"3\" fill=\"" << curve.color
           << "\"/>\n";
    }
  }
  void axes() {
    const std::string grid = "stroke=\"#dddddd\"";
    const double x_step = tick_step(x_), y_step = tick_step(y_);
    for (double x = std::ceil(x_.low / x_step) * x_step; x <= x_.high + 1e-9; x += x_step) {
      line(px(x), kTop, px(x), kHeight - kBottom, grid);
      text(px(x), kHeight - kBottom + 18, "middle", number(x));
    }
    for (double y = std::ceil(y_.low / y_step) * y_step; y <= y_.high + 1e-9; y += y_step) {
      line(kLeft, py(y), kWidth - kRight, py(y), grid);
      text(kLeft - 8, py(y) + 4, "end", number(y));
    }
    text((kLeft + kWidth - kRight) / 2, kHeight - 10, "middle", "step");
  }
  std::string finish() {
    svg_ << "</svg>\n";
    return svg_.str();
  }

 private:
  static std::string number(double value) {
    std::ostringstream text;
    text << (std::abs(value) < 1e-12 ? 0.0 : value);
    return text.str();
  }

  Range x_, y_;
  std::ostringstream svg_;
};

}  // namespace

Curves curves_from_metrics(const std::string& jsonl) {
  Curves result;
  result.title = "masked-LM loss (nats per masked token)";
  Curve training{"training", "#4477aa", {}, false};
  Curve validation{"held out", "#cc3311", {}, true};
  std::istringstream lines(jsonl);
  std::string line;
  while (std::getline(lines, line)) {
    const auto record = nlohmann::json::parse(line, nullptr, false);
    if (!record.is_object() || !record.contains("step")) continue;
    const double step = record.value("step", 0.0);
    if (record.contains("loss") && record["loss"].is_number()) {
      training.points.emplace_back(step, record["loss"].get<double>());
    }
    if (record.contains("validation_loss") && record["validation_loss"].is_number()) {
      validation.points.emplace_back(step, record["validation_loss"].get<double>());
    }
  }
  for (Curve* curve : {&training, &validation}) {
    if (!curve->points.empty()) result.curves.push_back(std::move(*curve));
  }
  return result;
}

std::string to_svg(const Curves& curves) {
  Range x, y;
  for (const Curve& curve : curves.curves) {
    for (const auto& [step, loss] : curve.points) {
      x.include(step);
      y.include(loss);
    }
  }
  if (!(x.high >= x.low)) throw std::invalid_argument("there is no point to plot yet");
  if (curves.reference > 0) y.include(curves.reference);
  const double margin = 0.05 * std::max(y.high - y.low, 0.1);
  y.include(y.low - margin);
  y.include(y.high + margin);

  Canvas canvas(x, y);
  canvas.axes();
  canvas.text(kLeft, 24, "start", curves.title, "#000000");
  double legend = kWidth - kRight;
  for (const Curve& curve : curves.curves) {
    canvas.curve(curve);
    canvas.text(legend, 24, "end", curve.name, curve.color);
    legend -= 80;
  }
  if (curves.reference > 0) {
    const double height = canvas.py(curves.reference);
    canvas.line(kLeft, height, kWidth - kRight, height,
                "stroke=\"#228833\" stroke-dasharray=\"6 4\"");
    canvas.text(kWidth - kRight, height - 6, "end", curves.reference_name, "#228833");
  }
  return canvas.finish();
}

}  // namespace tupelo
