#include "data/hdf5_library.h"

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "data/errors.h"

namespace tupelo::hdf5_library {
namespace {

// The file driver leaves the errno of a failed system call only in the text of its error record.
herr_t find_errno(unsigned, const H5E_error2_t* record, void* result) {
  constexpr std::string_view kKey = "errno = ";
  const std::string_view text = record->desc == nullptr ? "" : record->desc;
  const std::size_t at = text.find(kKey);
  if (at != std::string_view::npos) {
    *static_cast<int*>(result) = std::atoi(text.data() + at + kKey.size());
  }
  return 0;
}

int errno_of_last_failure() {
  int code = 0;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, find_errno, &code);
  return code == 0 ? EIO : code;
}

hid_t open_without_locks(const std::filesystem::path& path) {
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  if (!access.valid() || H5Pset_file_locking(access.get(), false, true) < 0) return -1;
  return H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get());
}

}  // namespace

QuietLibrary::QuietLibrary() {
  // The library's own clean-up at exit complains aloud after a damaged file; there is nothing for
  // it to do here, since no file is open for writing.
  H5dont_atexit();
  H5open();
  H5Eget_auto2(H5E_DEFAULT, &print_, &print_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  plugins_known_ = H5PLget_loading_state(&plugins_) >= 0;
  H5PLset_loading_state(0);
}

QuietLibrary::~QuietLibrary() {
  if (plugins_known_) H5PLset_loading_state(plugins_);
  H5Eset_auto2(H5E_DEFAULT, print_, print_data_);
}

std::uint64_t regular_file_bytes(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    throw CorpusError(path.string() + ": the file is missing");
  }
  if (error) throw std::system_error(error, "cannot open " + path.string());
  if (!std::filesystem::is_regular_file(status)) {
    throw CorpusError(path.string() + ": is not a regular file");
  }
  const std::uint64_t bytes = std::filesystem::file_size(path, error);
  if (error) throw std::system_error(error, "cannot open " + path.string());
  return bytes;
}

Handle open_read_only(const std::filesystem::path& path) {
  Handle file(open_without_locks(path), H5Fclose);
  if (file.valid()) return file;
  const int code = errno_of_last_failure();
  if (code == EACCES || code == EPERM) {
    throw std::system_error(code, std::generic_category(), "cannot open " + path.string());
  }
  throw CorpusError(path.string() +
                    ": is not an HDF5 file that HDF5 1.10 can read, or it is truncated");
}

bool is_hard_link_to(hid_t file, const std::string& name, H5O_type_t type) {
  H5L_info_t link;
  if (H5Lget_info(file, name.c_str(), &link, H5P_DEFAULT) < 0 || link.type != H5L_TYPE_HARD) {
    return false;
  }
  H5O_info_t object;
  return H5Oget_info_by_name(file, name.c_str(), &object, H5P_DEFAULT) >= 0 && object.type == type;
}

}  // namespace tupelo::hdf5_library
