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

# tupelo_unity(<target>): its files that are not PLAIN may be compiled several at a time.
function(tupelo_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TUPELO_UNITY} UNITY_BUILD_BATCH_SIZE 8)
  if(TUPELO_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 takes a string's length for unknown where it inlined enough (https://gcc.gnu.org/PR105329).
    target_compile_options(${target} PRIVATE -Wno-stringop-overflow)
  endif()
endfunction()

# tupelo_room(<room> [SOURCES <files>] [PLAIN <files>] [LIBS <targets>] [PRIVATE_LIBS <targets>])
# A folder of the tree as a static library `tupelo_<room>`. SOURCES include LibTorch and get the
# precompiled header; PLAIN sources do not and compile without it, each by itself. LIBS are part of the room's public
# face, PRIVATE_LIBS are its own affair.
function(tupelo_room room)
  cmake_parse_arguments(arg "" "" "SOURCES;PLAIN;LIBS;PRIVATE_LIBS" ${ARGN})
  add_library(tupelo_${room} STATIC ${arg_SOURCES} ${arg_PLAIN})
  target_link_libraries(tupelo_${room} PUBLIC tupelo_flags ${arg_LIBS} PRIVATE ${arg_PRIVATE_LIBS})
  if(arg_SOURCES)
    target_link_libraries(tupelo_${room} PUBLIC LibTorch::cpu)
    target_precompile_headers(tupelo_${room} REUSE_FROM tupelo_precompiled)
    tupelo_unity(tupelo_${room})
  endif()
  if(arg_PLAIN)
    set_source_files_properties(${arg_PLAIN} PROPERTIES SKIP_PRECOMPILE_HEADERS ON
                                                        SKIP_UNITY_BUILD_INCLUSION ON)
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
