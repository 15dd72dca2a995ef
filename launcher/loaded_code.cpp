#include "launcher/loaded_code.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>
#include <system_error>

#include "checkpoints/sha256.h"

namespace tupelo {
namespace {

constexpr std::array<std::string_view, 16> kWatched = {
    "libtorch.so",    "libtorch_cpu.so", "libtorch_cuda.so", "libc10.so",
    "libc10_cuda.so", "libgomp",         "libiomp5",         "libopenblas",
    "libmkl_",        "libmpi.so",       "libhdf5",          "libnccl.so",
    "libcudart",      "libcublas",       "libcublasLt",      "libcudnn"};

std::string hex(const unsigned char* bytes, std::size_t count) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] / 16];
    text += kDigits[bytes[i] % 16];
  }
  return text;
}

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

// The GNU build id among the notes of one segment; empty when there is none.
std::string build_id(const char* notes, std::size_t bytes) {
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes, sizeof(header));
    const std::size_t name = padded(header.n_namesz), content = padded(header.n_descsz);
    const std::size_t whole = sizeof(header) + name + content;
    if (whole > bytes) return {};
    const char* text = notes + sizeof(header);
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
        std::memcmp(text, "GNU", 4) == 0) {
      return hex(reinterpret_cast<const unsigned char*>(text + name), header.n_descsz);
    }
    notes += whole;
    bytes -= whole;
  }
  return {};
}

std::string build_of(const dl_phdr_info& object) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const auto& segment = object.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* notes = reinterpret_cast<const char*>(object.dlpi_addr + segment.p_vaddr);
    const std::string id = build_id(notes, segment.p_memsz);
    if (!id.empty()) return id;
  }
  std::error_code error;
  const auto bytes = std::filesystem::file_size(object.dlpi_name, error);
  return error ? "unknown" : std::to_string(bytes) + " bytes";
}

int note(dl_phdr_info* object, std::size_t, void* result) {
  const std::string_view path = object->dlpi_name;
  const std::string name(path.substr(path.rfind('/') + 1));
  const auto starts = [&](std::string_view watched) { return name.starts_with(watched); };
  if (std::any_of(kWatched.begin(), kWatched.end(), starts)) {
    static_cast<std::map<std::string, std::string>*>(result)->emplace(name, build_of(*object));
  }
  return 0;
}

}  // namespace

std::string program_digest() {
  const char* const self = "/proc/self/exe";
  std::ifstream file(self, std::ios::binary);
  Sha256 hash;
  std::vector<char> buffer(std::size_t{1} << 20);
  while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) ||
         file.gcount() > 0) {
    hash.update(buffer.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (!file.eof()) throw std::system_error(errno, std::generic_category(), self);
  return hash.finish();
}

std::vector<LoadedLibrary> loaded_libraries() {
  std::map<std::string, std::string> found;
  dl_iterate_phdr(note, &found);
  std::vector<LoadedLibrary> libraries;
  for (const auto& [name, build] : found) libraries.push_back({name, build});
  return libraries;
}

}  // namespace tupelo
