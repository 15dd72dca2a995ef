// libFuzzer: a sound HDF5 file with any of its bytes changed, or cut short, is read from within its
// own bytes or refused with a CorpusError. The first byte chooses the file; then each four bytes
// are a place and a value.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "data/errors.h"
#include "data/hdf5_arrays.h"
#include "data/import/number_rows.h"
#include "tests/data/changed_bytes.h"
#include "tests/data/foreign_hdf5.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<std::string> sound_files() {
  const fs::path path = fs::temp_directory_path() / ("fuzz-" + std::to_string(::getpid()) + ".h5");
  Table rows(40);
  for (std::int64_t r = 0; r < 40; ++r) rows[static_cast<std::size_t>(r)] = {r, 2 * r, 3 * r};
  const Table varying = {{1, 2, 3}, {4}, {}, {5, 6, 7, 8, 9}};
  std::vector<std::string> files;
  for (int kind = 0; kind < 4; ++kind) {
    {
      const ForeignFile file(path);
      if (kind == 0) file.add("x", rows);
      if (kind == 1) file.add("x", rows, {H5T_STD_I32LE, {16, 2}, true, true, true});
      if (kind == 2) file.add("x", rows, {H5T_STD_I16LE, {7, 3}, false, true, false});
      if (kind == 3) file.add_varying("x", varying, H5T_STD_I16LE);
    }
    files.push_back(bytes_of(path));
  }
  fs::remove(path);
  return files;
}

void read(const fs::path& path) {
  const Hdf5Arrays arrays(path);
  const RegularFile file(path);
  if (!arrays.has("x")) return;
  const StoredArray array = arrays.array("x");
  const auto rows = open_number_rows(arrays, file, "x", array);
  std::vector<std::int64_t> values;
  for (std::uint64_t r = 0; r < std::min<std::uint64_t>(array.rows, 100); ++r) {
    rows->read(r, values);
    if (values.size() > 65536) std::abort();
  }
}

}  // namespace
}  // namespace tupelo

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<std::string> files = tupelo::sound_files();
  static const int descriptor = ::memfd_create("fuzz", 0);
  if (size < 1) return 0;
  const std::string file =
      tupelo::testing::changed(files[data[0] % files.size()], data + 1, size - 1);
  if (::ftruncate(descriptor, 0) != 0 ||
      ::pwrite(descriptor, file.data(), file.size(), 0) != static_cast<ssize_t>(file.size())) {
    std::abort();
  }
  try {
    tupelo::read("/proc/self/fd/" + std::to_string(descriptor));
  } catch (const tupelo::CorpusError&) {
  }
  return 0;
}

// The HDF5 library itself loses memory over damaged files.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
