// Lines of a text file, in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

namespace tupelo {

class LineReader {
 public:
  // Lines longer than `max_line_bytes` are cut: at the last space of their final 4 KiB, else
  // between two characters. Throws CorpusError when the file is not text in UTF-8, as far as its
  // first 64 KiB tell; std::system_error when it cannot be read.
  LineReader(const std::filesystem::path& file, std::size_t max_line_bytes);
  ~LineReader();

  // The next line or part of a cut line, without its end ("\n" or "\r\n") and, at the start of the
  // file, without a byte order mark; valid until the next call. False at the end of the file.
  bool next(std::string_view& line);

  // Of the line that next() gave: its number from 1, and whether more of it follows.
  std::uint64_t number() const;
  bool cut() const;

  std::uint64_t bytes_read() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tupelo
