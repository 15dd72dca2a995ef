# How every target of Tupelo is built: warnings, sanitizers, run paths, and one precompiled LibTorch
# header shared by all that include LibTorch.

add_library(tupelo_flags INTERFACE)
target_include_directories(tupelo_flags INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_options(tupelo_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wno-unknown-pragmas)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees overlapping copies in every "text" + std::string (https://gcc.gnu.org/PR105651).
  target_compile_options(tupelo_flags INTERFACE -Wno-restrict)
endif()
if(TUPELO_WERROR)
  target_compile_options(tupelo_flags INTERFACE -Werror)
endif()
if(TUPELO_SANITIZE)
  target_compile_options(tupelo_flags INTERFACE -fsanitize=${TUPELO_SANITIZE}
                                                -fno-omit-frame-pointer)
  target_link_options(tupelo_flags INTERFACE -fsanitize=${TUPELO_SANITIZE})
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_definitions(tupelo_flags INTERFACE _FORTIFY_SOURCE=2)
  target_compile_options(tupelo_flags INTERFACE -fstack-protector-strong)
endif()

set(CMAKE_BUILD_RPATH ${LibTorch_RPATH})
set(CMAKE_INSTALL_RPATH ${LibTorch_RPATH})

# LibTorch's headers cost 10 to 20 s per source file. These few, compiled once and reused, serve all of
# ours. GCC instantiates a precompiled header's pending templates again in every file that uses it: 4 s
# with these two, twice that with torch/torch.h. With TUPELO_UNITY several files share that, so that names
# in their unnamed namespaces must differ; without it (preset `dev`) a change compiles one file.
add_library(tupelo_precompiled STATIC "${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp")
target_link_libraries(tupelo_precompiled PUBLIC tupelo_flags LibTorch::cpu)
target_precompile_headers(tupelo_precompiled PRIVATE <torch/types.h> <torch/nn/module.h>)

# tupelo_batches(<variable> <target> <files>): with TUPELO_UNITY files that include eight of these each, else
# the files. CMake's own UNITY_BUILD names files by their whole paths, so that no checkout could use what
# another one compiled.
function(tupelo_batches variable target)
  if(NOT TUPELO_UNITY OR NOT ARGN)
    set(${variable} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(includes "")
  set(batches "")
  foreach(source IN LISTS ARGN)
    file(RELATIVE_PATH source "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}/${source}")
    list(APPEND includes "#include \"${source}\"")
  endforeach()
  list(LENGTH includes count)
  foreach(first RANGE 0 ${count} 8)
    if(first LESS count)
      list(SUBLIST includes ${first} 8 batch)
      list(JOIN batch "\n" text)
      set(file "${CMAKE_CURRENT_BINARY_DIR}/${target}_from_${first}.cpp")
      file(CONFIGURE OUTPUT "${file}" CONTENT "${text}\n" @ONLY)
      list(APPEND batches "${file}")
    endif()
  endforeach()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 takes a string's length for unknown where it inlined enough (https://gcc.gnu.org/PR105329).
    set_source_files_properties(${batches} PROPERTIES COMPILE_OPTIONS -Wno-stringop-overflow)
  endif()
  set(${variable} ${batches} PARENT_SCOPE)
endfunction()

# tupelo_room(<room> [SOURCES <files>] [PLAIN <files>] [LIBS <targets>] [PRIVATE_LIBS <targets>])
# A folder of the tree as a static library `tupelo_<room>`. SOURCES include LibTorch and get the
# precompiled header; PLAIN sources do not and compile without it, each by itself. LIBS are part of the room's public
# face, PRIVATE_LIBS are its own affair.
function(tupelo_room room)
  cmake_parse_arguments(arg "" "" "SOURCES;PLAIN;LIBS;PRIVATE_LIBS" ${ARGN})
  tupelo_batches(batches tupelo_${room} ${arg_SOURCES})
  add_library(tupelo_${room} STATIC ${batches} ${arg_PLAIN})
  target_link_libraries(tupelo_${room} PUBLIC tupelo_flags ${arg_LIBS} PRIVATE ${arg_PRIVATE_LIBS})
  if(arg_SOURCES)
    target_link_libraries(tupelo_${room} PUBLIC LibTorch::cpu)
    target_precompile_headers(tupelo_${room} REUSE_FROM tupelo_precompiled)
  endif()
  if(arg_SOURCES AND arg_PLAIN)
    set_source_files_properties(${arg_PLAIN} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

# tupelo_executable(<name> SOURCES <files> [PLAIN] LIBS <targets>): a program of ours.
function(tupelo_executable name)
  cmake_parse_arguments(arg "PLAIN" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE tupelo_flags ${arg_LIBS})
  if(NOT arg_PLAIN)
    target_link_libraries(${name} PRIVATE LibTorch::cpu)
    target_precompile_headers(${name} REUSE_FROM tupelo_precompiled)
  endif()
  if(TUPELO_CUDA)
    target_link_libraries(${name} PRIVATE LibTorch::cuda)
  endif()
endfunction()
