// HDF5 files as other programs write them, for tests of what reads them.
#pragma once

#include <gtest/gtest.h>
#include <hdf5.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace tupelo {

// How a dataset is stored.
struct Storage {
  hid_t type = H5T_STD_I32LE;
  std::vector<hsize_t> chunk = {};  // empty: contiguous
  bool shuffle = false, deflate = false, fletcher32 = false;
};

using Table = std::vector<std::vector<std::int64_t>>;

// A new file, or with `existing` one to change; closed at the end of its life.
class ForeignFile {
 public:
  explicit ForeignFile(const std::filesystem::path& path, bool existing = false) {
    H5dont_atexit();  // the library's own clean-up complains about files that a test has damaged
    file_ = existing ? H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT)
                     : H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    EXPECT_GE(file_, 0);
  }
  ~ForeignFile() { EXPECT_GE(H5Fclose(file_), 0); }
  ForeignFile(const ForeignFile&) = delete;
  hid_t id() const { return file_; }

  // Rows of one length.
  void add(const std::string& name, const Table& rows, const Storage& storage = {}) const {
    std::vector<std::int64_t> values;
    for (const auto& row : rows) values.insert(values.end(), row.begin(), row.end());
    add(name, {rows.size(), rows.front().size()}, values, storage);
  }
  void add(const std::string& name, const std::vector<hsize_t>& sizes,
           const std::vector<std::int64_t>& values, const Storage& storage = {}) const {
    const hid_t layout = layout_of(storage);
    const hid_t dataset = create(name, storage.type, sizes, layout);
    EXPECT_GE(H5Dwrite(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    H5Dclose(dataset);
    H5Pclose(layout);
  }
  // Rows of lengths of their own.
  void add_varying(const std::string& name, const Table& rows, hid_t type,
                   const std::vector<hsize_t>& chunk = {}) const {
    const hid_t stored = H5Tvlen_create(type), memory = H5Tvlen_create(H5T_NATIVE_INT64);
    const hid_t layout = layout_of({type, chunk});
    const hid_t dataset = create(name, stored, {rows.size()}, layout);
    std::vector<hvl_t> lists;
    for (const auto& row : rows) {
      lists.push_back({row.size(), const_cast<std::int64_t*>(row.data())});
    }
    EXPECT_GE(H5Dwrite(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, lists.data()), 0);
    H5Dclose(dataset);
    H5Pclose(layout);
    H5Tclose(memory);
    H5Tclose(stored);
  }
  // Nothing is written into it.
  void add_empty(const std::string& name, hid_t type, const std::vector<hsize_t>& sizes,
                 hid_t layout = H5P_DATASET_CREATE_DEFAULT) const {
    H5Dclose(create(name, type, sizes, layout));
  }
  void remove(const std::string& name) const { H5Ldelete(file_, name.c_str(), H5P_DEFAULT); }

  static hid_t layout_of(const Storage& storage) {
    const hid_t layout = H5Pcreate(H5P_DATASET_CREATE);
    if (!storage.chunk.empty()) {
      H5Pset_chunk(layout, static_cast<int>(storage.chunk.size()), storage.chunk.data());
    }
    if (storage.shuffle) H5Pset_shuffle(layout);
    if (storage.deflate) H5Pset_deflate(layout, 4);
    if (storage.fletcher32) H5Pset_fletcher32(layout);
    return layout;
  }

 private:
  hid_t create(const std::string& name, hid_t type, const std::vector<hsize_t>& sizes,
               hid_t layout) const {
    // Chunks may be larger than what there is, as h5py's are, where that may grow.
    const std::vector<hsize_t> limits(sizes.size(), H5S_UNLIMITED);
    const bool chunked =
        layout != H5P_DATASET_CREATE_DEFAULT && H5Pget_layout(layout) == H5D_CHUNKED;
    const hid_t space = H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(),
                                         chunked ? limits.data() : nullptr);
    const hid_t dataset =
        H5Dcreate2(file_, name.c_str(), type, space, H5P_DEFAULT, layout, H5P_DEFAULT);
    EXPECT_GE(dataset, 0);
    H5Sclose(space);
    return dataset;
  }

  hid_t file_ = -1;
};

}  // namespace tupelo
