# Finds libzstd, which brings no CMake package everywhere, and offers it as Zstd::Zstd.
# Sets Zstd_FOUND, Zstd_VERSION.
find_path(Zstd_INCLUDE_DIR zstd.h)
find_library(Zstd_LIBRARY zstd)
mark_as_advanced(Zstd_INCLUDE_DIR Zstd_LIBRARY)
if(Zstd_INCLUDE_DIR)
  file(STRINGS "${Zstd_INCLUDE_DIR}/zstd.h" _zstd_lines REGEX "#define ZSTD_VERSION_(MAJOR|MINOR|RELEASE) ")
  string(REGEX REPLACE "[^0-9;]*([0-9]+)[^;]*" "\\1" _zstd_numbers "${_zstd_lines}")
  string(REPLACE ";" "." Zstd_VERSION "${_zstd_numbers}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Zstd
  REQUIRED_VARS Zstd_LIBRARY Zstd_INCLUDE_DIR
  VERSION_VAR Zstd_VERSION)
if(Zstd_FOUND AND NOT TARGET Zstd::Zstd)
  add_library(Zstd::Zstd UNKNOWN IMPORTED)
  set_target_properties(Zstd::Zstd PROPERTIES
    IMPORTED_LOCATION "${Zstd_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${Zstd_INCLUDE_DIR}")
endif()
