#include "launcher/svg_figures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <sstream>

#include "launcher/console.h"

namespace tupelo {
namespace {

constexpr int kShades = 20;  // on either side of zero
constexpr int kGrey = kShades + 1;
constexpr double kPlotWidth = 620, kPlotHeight = 240, kMargin = 56, kFoot = 24, kHead = 10;

std::string hex_color(int red, int green, int blue) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "#%02x%02x%02x", red, green, blue);
  return text.data();
}

// -kShades .. kShades, or kGrey.
int shade_of(double value, double largest) {
  if (!std::isfinite(value)) return kGrey;
  return static_cast<int>(std::lround(std::clamp(value / largest, -1.0, 1.0) * kShades));
}

std::string color_of(int shade) {
  if (shade == kGrey) return "#bbbbbb";
  const double share = std::abs(static_cast<double>(shade)) / kShades;
  const auto faded = [share](int full) {
    return static_cast<int>(std::lround(255.0 + share * (full - 255.0)));
  };
  return shade < 0 ? hex_color(faded(33), faded(84), faded(168))
                   : hex_color(faded(190), faded(30), faded(45));
}

struct Bounds {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
};

Bounds bounds_of(const std::vector<double>& values) {
  Bounds bounds;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    bounds.low = std::min(bounds.low, value);
    bounds.high = std::max(bounds.high, value);
  }
  if (bounds.low > bounds.high) bounds = {0, 0};  // nothing is finite
  if (bounds.low == bounds.high) {
    bounds.low -= 1;
    bounds.high += 1;
  }
  return bounds;
}

// From values to places in a plot.
class Plane {
 public:
  Plane(Bounds x, Bounds y) : x_(x), y_(y) {}
  double x(double value) const {
    return kMargin + (value - x_.low) / (x_.high - x_.low) * (kPlotWidth - kMargin - 10);
  }
  double y(double value) const {
    return kPlotHeight - kFoot -
           (value - y_.low) / (y_.high - y_.low) * (kPlotHeight - kFoot - kHead);
  }

 private:
  Bounds x_, y_;
};

void add_label(std::ostringstream& svg, double x, double y, const char* anchor, double value) {
  svg << "<text x=\"" << x << "\" y=\"" << y << "\" text-anchor=\"" << anchor << "\">"
      << significant(value, 3) << "</text>\n";
}

void add_axes(std::ostringstream& svg, const Plane& plane, const Bounds& x, const Bounds& y) {
  const double left = plane.x(x.low), right = plane.x(x.high);
  const double bottom = plane.y(y.low), top = plane.y(y.high);
  svg << "<path stroke=\"#cccccc\" fill=\"none\" d=\"M" << left << " " << top << "V" << bottom
      << "H" << right;
  if (x.low < 0 && x.high > 0) svg << "M" << plane.x(0) << " " << top << "V" << bottom;
  if (y.low < 0 && y.high > 0) svg << "M" << left << " " << plane.y(0) << "H" << right;
  svg << "\"/>\n";
  for (const double value : {x.low, 0.0, x.high}) {
    if (value >= x.low && value <= x.high) {
      add_label(svg, plane.x(value), kPlotHeight - 6, "middle", value);
    }
  }
  add_label(svg, left - 6, bottom, "end", y.low);
  add_label(svg, left - 6, top + 8, "end", y.high);
}

}  // namespace

std::string escaped_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '&':
        result += "&amp;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string heat_map(const Matrix& matrix, double largest) {
  // One path per colour, and neighbours of one colour in a row together: a few kilobytes.
  std::map<int, std::ostringstream> paths;
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    const auto shade = [&](std::int64_t column) {
      return shade_of(matrix.values[static_cast<std::size_t>(row * matrix.columns + column)],
                      largest);
    };
    for (std::int64_t column = 0; column < matrix.columns;) {
      const int color = shade(column);
      const std::int64_t first = column;
      while (column < matrix.columns && shade(column) == color) ++column;
      if (color != 0) {
        paths[color] << "M" << first << " " << row << "h" << column - first << "v1h-"
                     << column - first << "z";
      }
    }
  }
  std::ostringstream svg;
  svg << "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"map\" viewBox=\"0 0 " << matrix.columns
      << " " << matrix.rows << "\" shape-rendering=\"crispEdges\">\n"
      << "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  for (const auto& [color, path] : paths) {
    svg << "<path fill=\"" << color_of(color) << "\" d=\"" << path.str() << "\"/>\n";
  }
  svg << "</svg>\n";
  return svg.str();
}

std::string line_plot(const Matrix& lines, std::int64_t first_x) {
  const auto first = static_cast<double>(first_x);
  const Bounds x{first, first + static_cast<double>(std::max<std::int64_t>(lines.columns - 1, 1))};
  const Bounds y = bounds_of(lines.values);
  const Plane plane(x, y);
  std::ostringstream svg;
  svg << "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"0 0 " << kPlotWidth
      << " " << kPlotHeight << "\" font-size=\"11\">\n";
  add_axes(svg, plane, x, y);
  svg.precision(5);
  for (std::int64_t line = 0; line < lines.rows; ++line) {
    svg << "<path fill=\"none\" stroke-width=\"1.3\" stroke=\""
        << line_color(static_cast<std::size_t>(line)) << "\" d=\"";
    bool drawing = false;
    for (std::int64_t i = 0; i < lines.columns; ++i) {
      const double value = lines.values[static_cast<std::size_t>(line * lines.columns + i)];
      if (std::isfinite(value)) {
        svg << (drawing ? "L" : "M") << plane.x(first + static_cast<double>(i)) << " "
            << plane.y(value);
      }
      drawing = std::isfinite(value);
    }
    svg << "\"/>\n";
  }
  svg << "</svg>\n";
  return svg.str();
}

std::string line_color(std::size_t line) {
  static constexpr std::array<const char*, 12> kColors = {
      "#4477aa", "#cc3311", "#228833", "#aa3377", "#ee7733", "#009988",
      "#332288", "#997700", "#882255", "#66ccee", "#44bb99", "#777777"};
  return kColors[line % kColors.size()];
}

}  // namespace tupelo
