// Small SVG pictures to be put into a page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tupelo {

// Text that HTML and SVG show as it is.
std::string escaped_text(const std::string& text);

// rows * columns values, one row after the other.
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<double> values;
};

// A cell per value, blue below zero, red above, white at zero, full colour at `largest` (> 0);
// values that are not finite are grey.
std::string heat_map(const Matrix& matrix, double largest);

// One line per row of `lines` over x = first_x, first_x + 1, ..., in colours that line_color()
// tells; values that are not finite leave gaps. Axes have numbers at both ends and at zero.
std::string line_plot(const Matrix& lines, std::int64_t first_x);
std::string line_color(std::size_t line);

}  // namespace tupelo
