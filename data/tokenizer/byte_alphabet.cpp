#include "data/tokenizer/byte_alphabet.h"

#include <array>

#include "data/tokenizer/utf8.h"

namespace tupelo {
namespace {

constexpr bool stands_for_itself(std::uint32_t byte) {
  return (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
}

constexpr std::array<char32_t, 256> make_symbols() {
  std::array<char32_t, 256> symbols{};
  char32_t next = 0x100;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    symbols[byte] = stands_for_itself(byte) ? static_cast<char32_t>(byte) : next++;
  }
  return symbols;
}

constexpr std::array<char32_t, 256> kSymbols = make_symbols();
constexpr std::size_t kSymbolsEnd = 0x100 + 68;
constexpr std::uint16_t kNoByte = 0x100;

constexpr std::array<std::uint16_t, kSymbolsEnd> make_bytes() {
  std::array<std::uint16_t, kSymbolsEnd> bytes{};
  for (auto& byte : bytes) byte = kNoByte;
  for (std::uint16_t byte = 0; byte < 256; ++byte) bytes[kSymbols[byte]] = byte;
  return bytes;
}

constexpr std::array<std::uint16_t, kSymbolsEnd> kBytes = make_bytes();

}  // namespace

char32_t byte_symbol(std::uint8_t byte) { return kSymbols[byte]; }

std::string written_form(std::string_view bytes) {
  std::string written;
  for (const char byte : bytes) written += to_utf8(byte_symbol(static_cast<std::uint8_t>(byte)));
  return written;
}

std::optional<std::string> bytes_of(std::string_view written) {
  std::string bytes;
  const char* at = written.data();
  for (const char* const end = at + written.size(); at != end;) {
    const Utf8Character character = read_utf8(at, end);
    if (character.code_point >= kSymbolsEnd) return std::nullopt;
    const std::uint16_t byte = kBytes[character.code_point];
    if (byte == kNoByte) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
    at += character.bytes;
  }
  return bytes;
}

}  // namespace tupelo
