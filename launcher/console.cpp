#include "launcher/console.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iomanip>
#include <iostream>
#include <sstream>

namespace tupelo {

Console::Console(bool silent) : silent_(silent), terminal_(isatty(STDERR_FILENO) != 0) {}

void Console::clear_progress() {
  if (progress_shown_) std::cerr << "\r\033[K";
  progress_shown_ = false;
}

void Console::line(const std::string& text) {
  if (silent_) return;
  clear_progress();
  std::cerr << std::flush;
  std::cout << text << std::endl;
}

void Console::notice(const std::string& text) {
  if (silent_) return;
  clear_progress();
  std::cerr << text << std::endl;
}

void Console::progress(const std::string& text) {
  if (silent_ || !terminal_) return;
  std::cerr << "\r\033[K" << text << std::flush;
  progress_shown_ = true;
}

void Console::milestone(const std::string& text) {
  if (terminal_) {
    progress(text);
  } else {
    line(text);
  }
}

std::string grouped(std::int64_t number) {
  const std::string digits = std::to_string(number);
  const std::size_t first = number < 0 ? 1 : 0;
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > first && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string duration_text(double seconds) {
  const auto total = static_cast<std::int64_t>(std::max(0.0, std::min(seconds, 1e9)));
  std::ostringstream text;
  text << std::setfill('0');
  if (total >= 3600) text << total / 3600 << ":" << std::setw(2);
  text << total / 60 % 60 << ":" << std::setw(2) << total % 60;
  return text.str();
}

std::string significant(double value, int digits) {
  std::ostringstream text;
  text << std::setprecision(digits) << value;
  return text.str();
}

std::string progress_bar(double share, int width) {
  const int filled = static_cast<int>(std::clamp(share, 0.0, 1.0) * width);
  std::string bar;
  for (int i = 0; i < width; ++i) bar += i < filled ? "█" : "░";
  return bar;
}

}  // namespace tupelo
