// Translations out of gettext's .mo files (GNU gettext manual, "The Format of GNU MO Files").
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tupelo {

inline constexpr std::size_t kMaxCatalogueBytes = std::size_t{64} << 20;

class MessageCatalogue {
 public:
  // Checks the whole of `bytes`: magic number, revision, tables and strings inside the file, a zero
  // behind every string, no more text than the file has bytes. Throws CorpusError, which begins
  // with `name`.
  MessageCatalogue(std::string bytes, const std::string& name);

  // The next translation in UTF-8 (what is ill-formed stays so); plural forms are joined by "\n",
  // equal ones once. Leaves out the header and what is not translated. False after the last one.
  bool next(std::string& translation);

  // Number, from 1, of the entry that next() gave.
  std::uint64_t entry() const { return entry_; }

 private:
  std::uint32_t number_at(std::size_t at) const;
  std::string_view string_at(std::size_t table, std::uint32_t entry) const;
  void check_table(std::size_t table, const char* what) const;
  void read_charset();
  [[noreturn]] void refuse(const std::string& what) const;

  std::string bytes_, name_, charset_;
  bool big_endian_ = false;
  std::uint32_t entries_ = 0, entry_ = 0;
  std::size_t originals_ = 0, translations_ = 0;  // byte positions of the tables
};

}  // namespace tupelo
