// What a person sees while a command runs.
#pragma once

#include <cstdint>
#include <string>

namespace tupelo {

// Lines on standard output (results) and standard error (notices, progress). A progress line
// rewrites itself on a terminal; elsewhere only its final state, or nothing, is printed. Silent
// objects print nothing: ranks other than 0 have one.
class Console {
 public:
  explicit Console(bool silent);
  ~Console() { clear_progress(); }  // an error may be told next
  Console(const Console&) = delete;

  void line(const std::string& text);    // standard output
  void notice(const std::string& text);  // standard error
  // Rewrites the current line on a terminal; ignored elsewhere.
  void progress(const std::string& text);
  // A progress report that is worth a line of its own where lines cannot be rewritten.
  void milestone(const std::string& text);
  bool is_terminal() const { return terminal_; }

 private:
  void clear_progress();

  bool silent_;
  bool terminal_;
  bool progress_shown_ = false;
};

std::string grouped(std::int64_t number);   // 1234567 -> "1,234,567"
std::string duration_text(double seconds);  // "1:02:03", "2:03"
std::string significant(double value, int digits);
std::string progress_bar(double share, int width);

}  // namespace tupelo
