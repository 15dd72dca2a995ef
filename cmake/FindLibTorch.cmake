# Finds the LibTorch that a Python torch wheel carries and offers it as imported targets:
#   LibTorch::cpu    libtorch_cpu and libc10 (all that a CPU build needs)
#   LibTorch::cuda   libtorch_cuda and libc10_cuda on top (only with TUPELO_CUDA)
#   LibTorch::nccl   the NCCL of the same wheels, else of the CUDA Toolkit (only with TUPELO_CUDA)
# torch's own TorchConfig.cmake is not used: with a CUDA wheel it insists on an installed CUDA
# Toolkit even when nothing CUDA is built.
#
# Searched in order: -DTUPELO_TORCH=<folder of the torch package>, $TUPELO_TORCH, the per-user cache
# that scripts/install fills, then the torch that python3 imports.
# Sets LibTorch_FOUND, LibTorch_VERSION, LibTorch_PYTHON_SITE.

set(_tupelo_torch_candidates)
if(TUPELO_TORCH)
  list(APPEND _tupelo_torch_candidates "${TUPELO_TORCH}")
elseif(DEFINED ENV{TUPELO_TORCH})
  list(APPEND _tupelo_torch_candidates "$ENV{TUPELO_TORCH}")
else()
  set(_cache_root "$ENV{XDG_CACHE_HOME}")
  if(NOT _cache_root)
    set(_cache_root "$ENV{HOME}/.cache")
  endif()
  file(GLOB _cached LIST_DIRECTORIES true
       "${_cache_root}/tupelo/torch-*/lib/python3*/site-packages/torch")
  list(SORT _cached COMPARE NATURAL ORDER DESCENDING)
  list(APPEND _tupelo_torch_candidates ${_cached})
  execute_process(
    COMMAND python3 -c
            "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE _python_torch OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(_python_torch)
    list(APPEND _tupelo_torch_candidates "${_python_torch}")
  endif()
endif()

set(_tupelo_torch_reason "no torch package was found: run scripts/install or set TUPELO_TORCH")
foreach(_candidate IN LISTS _tupelo_torch_candidates)
  if(NOT EXISTS "${_candidate}/lib/libtorch_cpu.so")
    set(_tupelo_torch_reason "${_candidate} holds no lib/libtorch_cpu.so")
    continue()
  endif()
  file(STRINGS "${_candidate}/version.py" _version_line REGEX "^__version__")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" _version "${_version_line}")
  if(_version VERSION_LESS 2.11 OR _version VERSION_GREATER_EQUAL 2.16)
    set(_tupelo_torch_reason "${_candidate} is torch ${_version}, but 2.11 to 2.15 are supported")
    continue()
  endif()
  set(LibTorch_ROOT_DIR "${_candidate}")
  set(LibTorch_VERSION "${_version}")
  break()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_ROOT_DIR
  VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "${_tupelo_torch_reason}")

if(LibTorch_FOUND AND NOT TARGET LibTorch::cpu)
  get_filename_component(LibTorch_PYTHON_SITE "${LibTorch_ROOT_DIR}" DIRECTORY)
  file(GLOB _wheel_lib_dirs LIST_DIRECTORIES true "${LibTorch_PYTHON_SITE}/nvidia/*/lib")
  set(LibTorch_RPATH "${LibTorch_ROOT_DIR}/lib" ${_wheel_lib_dirs})

  foreach(_name IN ITEMS c10 torch_cpu)
    add_library(LibTorch::${_name} SHARED IMPORTED)
    set_target_properties(LibTorch::${_name} PROPERTIES
      IMPORTED_LOCATION "${LibTorch_ROOT_DIR}/lib/lib${_name}.so")
  endforeach()
  add_library(LibTorch::cpu INTERFACE IMPORTED)
  target_include_directories(LibTorch::cpu SYSTEM INTERFACE
    "${LibTorch_ROOT_DIR}/include" "${LibTorch_ROOT_DIR}/include/torch/csrc/api/include")
  target_compile_options(LibTorch::cpu INTERFACE -fopenmp)
  # libtorch_cpu of a CUDA wheel names libcudart and libcupti, which sit in other wheels: the run
  # path finds them, and the linker is told not to look for what those libraries themselves need.
  target_link_options(LibTorch::cpu INTERFACE -fopenmp "LINKER:--allow-shlib-undefined")
  target_link_libraries(LibTorch::cpu INTERFACE LibTorch::torch_cpu LibTorch::c10)

  if(TUPELO_CUDA)
    find_package(CUDAToolkit REQUIRED)
    foreach(_name IN ITEMS c10_cuda torch_cuda)
      add_library(LibTorch::${_name} SHARED IMPORTED)
      set_target_properties(LibTorch::${_name} PROPERTIES
        IMPORTED_LOCATION "${LibTorch_ROOT_DIR}/lib/lib${_name}.so")
    endforeach()
    add_library(LibTorch::cuda INTERFACE IMPORTED)
    # libtorch_cuda registers its kernels when it is loaded; nothing names a symbol of it.
    target_link_libraries(LibTorch::cuda INTERFACE
      LibTorch::cpu "-Wl,--no-as-needed" LibTorch::torch_cuda LibTorch::c10_cuda "-Wl,--as-needed"
      CUDA::cudart)

    # The NCCL that libtorch_cuda itself loads, so that a process holds one NCCL and not two.
    find_path(LibTorch_NCCL_INCLUDE_DIR nccl.h
      HINTS "${LibTorch_PYTHON_SITE}/nvidia/nccl/include" ${CUDAToolkit_INCLUDE_DIRS})
    find_library(LibTorch_NCCL_LIBRARY NAMES libnccl.so.2 nccl
      HINTS "${LibTorch_PYTHON_SITE}/nvidia/nccl/lib" ${CUDAToolkit_LIBRARY_DIR})
    if(NOT LibTorch_NCCL_INCLUDE_DIR OR NOT LibTorch_NCCL_LIBRARY)
      message(FATAL_ERROR "TUPELO_CUDA needs NCCL: install the nvidia-nccl wheel of this torch beside it, "
                          "or nccl.h and libnccl.so.2 into the CUDA Toolkit")
    endif()
    add_library(LibTorch::nccl SHARED IMPORTED)
    set_target_properties(LibTorch::nccl PROPERTIES IMPORTED_LOCATION "${LibTorch_NCCL_LIBRARY}")
    target_include_directories(LibTorch::nccl SYSTEM INTERFACE "${LibTorch_NCCL_INCLUDE_DIR}")
  endif()
endif()
