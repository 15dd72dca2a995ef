// Lines of a text, in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "data/input/byte_source.h"

namespace tupelo {

class LineReader {
 public:
  // Lines longer than `max_line_bytes` are cut: at the last space of their final 4 KiB, else
  // between two characters.
  LineReader(std::unique_ptr<ByteSource> text, std::size_t max_line_bytes);
  ~LineReader();

  // The next line or part of a cut line, without its end ("\n" or "\r\n"); valid until the next
  // call. False at the end of the text. Throws what the source's read() throws.
  bool next(std::string_view& line);

  // Of the line that next() gave: its number from 1, and whether more of it follows.
  std::uint64_t number() const;
  bool cut() const;

  // Of the file: what the source says.
  std::uint64_t bytes_read() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tupelo
