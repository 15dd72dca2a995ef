#include "data/hdf5.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>

#include "data/hdf5_library.h"

namespace tupelo {
namespace {

using namespace hdf5_library;

static_assert(std::endian::native == std::endian::little,
              "elements are taken as they lie in memory");

constexpr hsize_t kAlignedFromBytes = 64 * 1024;
constexpr hsize_t kAlignmentBytes = 4096;
constexpr std::size_t kGrowthBytes = std::size_t{1} << 20;
constexpr std::uint64_t kChunkBytes = std::uint64_t{1} << 20;
constexpr unsigned kDeflateLevel = 4;  // h5py's

hid_t library_type(ElementType type) {
  switch (type) {
    case ElementType::kUint8:
      return H5T_STD_U8LE;
    case ElementType::kUint16:
      return H5T_STD_U16LE;
    case ElementType::kUint32:
      return H5T_STD_U32LE;
    case ElementType::kUint64:
      return H5T_STD_U64LE;
    case ElementType::kInt8:
      return H5T_STD_I8LE;
    case ElementType::kInt32:
      return H5T_STD_I32LE;
  }
  return -1;
}

}  // namespace

struct Hdf5Image::State {
  Handle access;
  Handle file;
};

namespace {

void check(bool succeeded) {
  if (!succeeded) throw std::runtime_error("HDF5 could not build a shard in memory");
}

// A file of the library's memory driver that never touches the disk.
Handle memory_access() {
  Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  check(access.valid() &&
        H5Pset_libver_bounds(access.get(), H5F_LIBVER_EARLIEST, H5F_LIBVER_V110) >= 0 &&
        H5Pset_alignment(access.get(), kAlignedFromBytes, kAlignmentBytes) >= 0 &&
        H5Pset_fapl_core(access.get(), kGrowthBytes, false) >= 0);
  return access;
}

Handle contiguous_layout() {
  Handle layout(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  check(layout.valid() && H5Pset_layout(layout.get(), H5D_CONTIGUOUS) >= 0 &&
        H5Pset_alloc_time(layout.get(), H5D_ALLOC_TIME_EARLY) >= 0 &&
        H5Pset_fill_time(layout.get(), H5D_FILL_TIME_NEVER) >= 0 &&
        H5Pset_obj_track_times(layout.get(), false) >= 0);
  return layout;
}

void add_scalar(hid_t owner, const std::string& name, hid_t type, const void* value) {
  const Handle scalar(H5Screate(H5S_SCALAR), H5Sclose);
  check(scalar.valid());
  const Handle attribute(
      H5Acreate2(owner, name.c_str(), type, scalar.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  check(attribute.valid() && H5Awrite(attribute.get(), type, value) >= 0);
}

// Fixed length, so that a reader needs no heap; the length of an empty text must still be positive.
void add_text(hid_t owner, const std::string& name, const std::string& value) {
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  check(type.valid() && H5Tset_size(type.get(), std::max<std::size_t>(value.size(), 1)) >= 0 &&
        H5Tset_strpad(type.get(), H5T_STR_NULLPAD) >= 0 &&
        H5Tset_cset(type.get(), H5T_CSET_UTF8) >= 0);
  add_scalar(owner, name, type.get(), value.c_str());
}

}  // namespace

Hdf5Image::Hdf5Image() {
  const QuietLibrary quiet;
  Handle access = memory_access();
  Handle file(H5Fcreate("shard", H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), H5Fclose);
  check(file.valid());
  state_ = std::make_unique<State>(State{std::move(access), std::move(file)});
}

Hdf5Image::~Hdf5Image() {
  const QuietLibrary quiet;
  state_.reset();
}

void Hdf5Image::add_dataset(const std::string& name, ElementType type, const void* elements,
                            std::uint64_t count, const std::string& sha256) {
  const QuietLibrary quiet;
  const hsize_t size = count;
  const Handle space(H5Screate_simple(1, &size, nullptr), H5Sclose);
  const Handle layout = contiguous_layout();
  check(space.valid());
  const Handle dataset(H5Dcreate2(state_->file.get(), name.c_str(), library_type(type), space.get(),
                                  H5P_DEFAULT, layout.get(), H5P_DEFAULT),
                       H5Dclose);
  check(dataset.valid() &&
        H5Dwrite(dataset.get(), library_type(type), H5S_ALL, H5S_ALL, H5P_DEFAULT, elements) >= 0);
  add_text(dataset.get(), "sha256", sha256);
}

void Hdf5Image::add_compressed(const std::string& name, ElementType type, const void* elements,
                               std::uint64_t rows, std::uint64_t columns) {
  const QuietLibrary quiet;
  const int rank = columns == 0 ? 1 : 2;
  const std::uint64_t width = std::max<std::uint64_t>(columns, 1);
  const hsize_t sizes[2] = {rows, width};
  const hsize_t chunk[2] = {
      std::clamp<std::uint64_t>(kChunkBytes / (width * element_bytes(type)), 1, rows), width};
  const Handle space(H5Screate_simple(rank, sizes, nullptr), H5Sclose);
  const Handle layout(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  check(space.valid() && layout.valid() && H5Pset_chunk(layout.get(), rank, chunk) >= 0 &&
        H5Pset_deflate(layout.get(), kDeflateLevel) >= 0 &&
        H5Pset_obj_track_times(layout.get(), false) >= 0);
  const Handle dataset(H5Dcreate2(state_->file.get(), name.c_str(), library_type(type), space.get(),
                                  H5P_DEFAULT, layout.get(), H5P_DEFAULT),
                       H5Dclose);
  check(dataset.valid() &&
        H5Dwrite(dataset.get(), library_type(type), H5S_ALL, H5S_ALL, H5P_DEFAULT, elements) >= 0);
}

void Hdf5Image::add_attribute(const std::string& name, std::uint64_t value) {
  const QuietLibrary quiet;
  add_scalar(state_->file.get(), name, H5T_STD_U64LE, &value);
}

void Hdf5Image::add_attribute(const std::string& name, const std::string& value) {
  const QuietLibrary quiet;
  add_text(state_->file.get(), name, value);
}

std::span<const std::byte> Hdf5Image::bytes() {
  const QuietLibrary quiet;
  check(H5Fflush(state_->file.get(), H5F_SCOPE_LOCAL) >= 0);
  // Without a buffer this only tells the size: where the file ends, not how much memory it has.
  const ssize_t size = H5Fget_file_image(state_->file.get(), nullptr, 0);
  void* memory = nullptr;
  check(size > 0 && H5Fget_vfd_handle(state_->file.get(), state_->access.get(), &memory) >= 0);
  return {*static_cast<const std::byte**>(memory), static_cast<std::size_t>(size)};
}

}  // namespace tupelo
