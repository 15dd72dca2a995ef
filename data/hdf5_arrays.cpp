#include "data/hdf5_arrays.h"

#include <algorithm>
#include <map>
#include <utility>

#include "data/hdf5_library.h"

namespace tupelo {
namespace {

using namespace hdf5_library;

constexpr std::uint64_t kMostColumns = 65536;
constexpr std::uint64_t kMostChunkBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 48;
// Deflate makes at most 1032 bytes of one.
constexpr std::uint64_t kMostExpansion = 1040;
constexpr std::uint64_t kHeapReferenceBytes = 16;

// Names of filters that others compress with, for the sentence that refuses them.
std::string filter_name(H5Z_filter_t filter) {
  static const std::map<int, std::string> names = {
      {4, "szip"},      {5, "nbit"},    {6, "scaleoffset"},    {307, "bzip2"},  {32000, "lzf"},
      {32001, "blosc"}, {32004, "lz4"}, {32008, "bitshuffle"}, {32015, "zstd"}, {32026, "blosc2"}};
  const auto name = names.find(filter);
  return std::to_string(filter) + (name == names.end() ? "" : " (" + name->second + ")");
}

// Whether there is an object in the file itself that the library cannot make out.
bool is_unreadable(hid_t file, const std::string& name) {
  H5L_info_t link;
  H5O_info_t object;
  return H5Lget_info(file, name.c_str(), &link, H5P_DEFAULT) >= 0 && link.type == H5L_TYPE_HARD &&
         H5Oget_info_by_name(file, name.c_str(), &object, H5P_DEFAULT) < 0;
}

}  // namespace

struct Hdf5Arrays::State {
  std::filesystem::path path;
  std::uint64_t file_bytes;
  Handle file;
  std::map<std::string, Handle> datasets;

  [[noreturn]] void refuse(const std::string& what) const {
    throw CorpusError(path.string() + ": " + what);
  }
  [[noreturn]] void refuse(const std::string& dataset, const std::string& what) const {
    refuse("dataset '" + dataset + "' " + what);
  }
  void check_file() const;
  hid_t open(const std::string& name);
  void read_type(const std::string& name, hid_t dataset, StoredArray& array) const;
  void read_shape(const std::string& name, hid_t dataset, StoredArray& array) const;
  void read_layout(const std::string& name, hid_t dataset, StoredArray& array) const;
  void read_chunks(const std::string& name, hid_t layout, StoredArray& array) const;
  void read_filters(const std::string& name, hid_t layout, StoredArray& array) const;
  void check_size(const std::string& name, const StoredArray& array) const;
};

// Places in a file with a user block, or of other widths, would have to be reckoned otherwise.
void Hdf5Arrays::State::check_file() const {
  const Handle creation(H5Fget_create_plist(file.get()), H5Pclose);
  hsize_t user_block = 0;
  std::size_t address = 0, length = 0;
  if (!creation.valid() || H5Pget_userblock(creation.get(), &user_block) < 0 ||
      H5Pget_sizes(creation.get(), &address, &length) < 0) {
    refuse("its HDF5 superblock cannot be read");
  }
  if (user_block != 0) refuse("has an HDF5 user block; only files without one are read");
  if (address != 8 || length != 8) refuse("does not use HDF5 addresses and lengths of 8 bytes");
}

hid_t Hdf5Arrays::State::open(const std::string& name) {
  const auto known = datasets.find(name);
  if (known != datasets.end()) return known->second.get();
  if (H5Lexists(file.get(), name.c_str(), H5P_DEFAULT) <= 0) refuse(name, "is missing");
  if (is_unreadable(file.get(), name)) {
    refuse(name,
           "cannot be read by HDF5 1.10: a newer release of HDF5 wrote it, in a form of its "
           "own (h5py: libver='latest'), or it is damaged");
  }
  if (!is_hard_link_to(file.get(), name, H5O_TYPE_DATASET)) {
    refuse(name, "is not a dataset of this file itself");
  }
  Handle dataset(H5Dopen2(file.get(), name.c_str(), H5P_DEFAULT), H5Dclose);
  if (!dataset.valid()) refuse(name, "cannot be opened by HDF5 1.10");
  return datasets.emplace(name, std::move(dataset)).first->second.get();
}

void Hdf5Arrays::State::read_type(const std::string& name, hid_t dataset,
                                  StoredArray& array) const {
  const Handle stored(H5Dget_type(dataset), H5Tclose);
  const bool varying = stored.valid() && H5Tget_class(stored.get()) == H5T_VLEN;
  const Handle number(varying ? H5Tget_super(stored.get()) : H5Tcopy(stored.get()), H5Tclose);
  const bool whole = number.valid() && H5Tget_class(number.get()) == H5T_INTEGER;
  array.type.bytes = whole ? H5Tget_size(number.get()) : 0;
  const bool plain = whole && H5Tget_precision(number.get()) == 8 * array.type.bytes &&
                     H5Tget_offset(number.get()) == 0;
  if (!plain || (array.type.bytes != 1 && array.type.bytes != 2 && array.type.bytes != 4 &&
                 array.type.bytes != 8)) {
    refuse(name, "does not hold whole numbers of 8, 16, 32 or 64 bits");
  }
  array.type.is_signed = H5Tget_sign(number.get()) == H5T_SGN_2;
  array.type.big_endian = H5Tget_order(number.get()) == H5T_ORDER_BE;
  array.columns = varying ? 0 : 1;
}

void Hdf5Arrays::State::read_shape(const std::string& name, hid_t dataset,
                                   StoredArray& array) const {
  const Handle space(H5Dget_space(dataset), H5Sclose);
  const int rank = space.valid() && H5Sget_simple_extent_type(space.get()) == H5S_SIMPLE
                       ? H5Sget_simple_extent_ndims(space.get())
                       : 0;
  if (rank != 1 && (rank != 2 || array.varying())) {
    refuse(name, array.varying() ? "holds arrays, but not in one dimension"
                                 : "does not have one or two dimensions");
  }
  hsize_t sizes[2] = {0, 1};
  H5Sget_simple_extent_dims(space.get(), sizes, nullptr);
  array.rows = sizes[0];
  if (rank == 2) array.columns = sizes[1];
  if (array.rows == 0 || (rank == 2 && sizes[1] == 0)) refuse(name, "is empty");
  if (array.columns > kMostColumns) {
    refuse(name, "has rows of " + std::to_string(array.columns) + " numbers; the most are " +
                     std::to_string(kMostColumns));
  }
  if (array.rows > kMostElements / std::max<std::uint64_t>(array.columns, 1)) {
    refuse(name, "declares " + std::to_string(array.rows) + " rows, more than any file holds");
  }
}

void Hdf5Arrays::State::read_layout(const std::string& name, hid_t dataset,
                                    StoredArray& array) const {
  const Handle layout(H5Dget_create_plist(dataset), H5Pclose);
  const H5D_layout_t kind = layout.valid() ? H5Pget_layout(layout.get()) : H5D_LAYOUT_ERROR;
  if ((kind != H5D_CONTIGUOUS && kind != H5D_CHUNKED) || H5Pget_external_count(layout.get()) != 0) {
    refuse(name, "is stored neither contiguously nor in chunks inside this file");
  }
  if (kind == H5D_CHUNKED && array.varying()) {
    refuse(name,
           "holds rows of varying length in chunks; they are read only without: write the "
           "file again with compression and chunks off");
  }
  if (kind == H5D_CHUNKED) {
    read_filters(name, layout.get(), array);
    read_chunks(name, layout.get(), array);
    return;
  }
  const haddr_t offset = H5Dget_offset(dataset);
  if (offset == HADDR_UNDEF || offset > file_bytes) {
    refuse(name, "reaches past the end of the file");
  }
  array.offset = offset;
}

void Hdf5Arrays::State::read_filters(const std::string& name, hid_t layout,
                                     StoredArray& array) const {
  const int count = H5Pget_nfilters(layout);
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0, info = 0;
    std::size_t values = 0;
    const H5Z_filter_t filter = H5Pget_filter2(layout, static_cast<unsigned>(i), &flags, &values,
                                               nullptr, 0, nullptr, &info);
    if (filter == H5Z_FILTER_DEFLATE) {
      array.filters.push_back(ArrayFilter::kDeflate);
    } else if (filter == H5Z_FILTER_SHUFFLE) {
      array.filters.push_back(ArrayFilter::kShuffle);
    } else if (filter == H5Z_FILTER_FLETCHER32) {
      array.filters.push_back(ArrayFilter::kFletcher32);
    } else {
      refuse(name, "is stored through filter " + filter_name(filter) +
                       "; known are deflate (gzip), shuffle and fletcher32: write the file again "
                       "with one of them or none");
    }
  }
  if (array.filters.size() > 8) refuse(name, "is stored through more than 8 filters");
}

void Hdf5Arrays::State::read_chunks(const std::string& name, hid_t layout,
                                    StoredArray& array) const {
  hsize_t sizes[2] = {0, 1};
  const int rank = H5Pget_chunk(layout, 2, sizes);
  if (rank < 1 || rank > 2 || sizes[0] == 0 || sizes[1] == 0 || sizes[0] > kMostChunkBytes ||
      sizes[1] > kMostChunkBytes || sizes[0] * sizes[1] * array.type.bytes > kMostChunkBytes) {
    refuse(name, "is stored in chunks of more than 16 MiB");
  }
  array.chunk_rows = sizes[0];
  array.chunk_columns = sizes[1];
}

void Hdf5Arrays::State::check_size(const std::string& name, const StoredArray& array) const {
  const std::uint64_t bytes =
      array.rows * (array.varying() ? kHeapReferenceBytes : array.columns * array.type.bytes);
  if (array.chunk_rows == 0) {
    if (bytes > file_bytes - array.offset) refuse(name, "reaches past the end of the file");
  } else if (bytes / kMostExpansion > file_bytes) {
    refuse(name, "declares " + std::to_string(bytes) + " bytes, more than a file of " +
                     std::to_string(file_bytes) + " bytes can hold");
  }
}

Hdf5Arrays::Hdf5Arrays(const std::filesystem::path& file) {
  const QuietLibrary quiet;
  const std::uint64_t bytes = regular_file_bytes(file);
  state_ = std::make_unique<State>(State{file, bytes, open_read_only(file), {}});
  state_->check_file();
}

Hdf5Arrays::~Hdf5Arrays() {
  const QuietLibrary quiet;
  state_.reset();
}

const std::filesystem::path& Hdf5Arrays::file() const { return state_->path; }

bool Hdf5Arrays::has(const std::string& name) const {
  const QuietLibrary quiet;
  return H5Lexists(state_->file.get(), name.c_str(), H5P_DEFAULT) > 0;
}

StoredArray Hdf5Arrays::array(const std::string& name) const {
  const QuietLibrary quiet;
  const hid_t dataset = state_->open(name);
  StoredArray array;
  state_->read_type(name, dataset, array);
  state_->read_shape(name, dataset, array);
  state_->read_layout(name, dataset, array);
  state_->check_size(name, array);
  return array;
}

StoredChunk Hdf5Arrays::chunk(const std::string& name, std::uint64_t row,
                              std::uint64_t column) const {
  const QuietLibrary quiet;
  const hsize_t place[2] = {row, column};
  unsigned skipped = 0;
  haddr_t offset = HADDR_UNDEF;
  hsize_t bytes = 0;
  const bool found =
      H5Dget_chunk_info_by_coord(state_->open(name), place, &skipped, &offset, &bytes) >= 0;
  if (!found || offset == HADDR_UNDEF || bytes == 0) {
    state_->refuse(name, "has no data for row " + std::to_string(row));
  }
  if (offset > state_->file_bytes || bytes > state_->file_bytes - offset ||
      bytes > 2 * kMostChunkBytes) {
    state_->refuse(name, "reaches past the end of the file at row " + std::to_string(row));
  }
  return {offset, bytes, skipped};
}

}  // namespace tupelo
