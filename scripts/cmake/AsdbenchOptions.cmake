# Options, compiler settings and the compiler cache.
option(ASDBENCH_WITH_TORCH "Build the libtorch targets" ON)
option(ASDBENCH_WITH_CUDA "Compile our CUDA kernels with nvcc" OFF)
option(ASDBENCH_KERNELS_ONLY "Build runners/kernels and its tests only, without the packages of the other folders" OFF)
option(ASDBENCH_DEVELOPER "Tests, benchmarks, fuzzers; warnings are errors" ${PROJECT_IS_TOP_LEVEL})
set(ASDBENCH_SANITIZE "" CACHE STRING "Sanitizers, for instance address,undefined or thread")
option(ASDBENCH_FUZZ "Build fuzz/ with libFuzzer (clang only), and no tests" OFF)
set(ASDBENCH_FUZZ_SECONDS 5 CACHE STRING "How long a fuzz test looks for new inputs")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# The cache must hit from a clone in another folder: paths are made relative to the source tree, and neither the
# working directory nor time stamps count.
find_program(ASDBENCH_CCACHE ccache)
if(ASDBENCH_CCACHE)
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${ASDBENCH_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${launcher})
endif()

# Usage requirements that every target of ours takes; nothing is set globally.
add_library(asdbench_settings INTERFACE)
target_compile_features(asdbench_settings INTERFACE cxx_std_20)
target_include_directories(asdbench_settings INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<INSTALL_INTERFACE:include/asdbench>)
add_library(asdbench_warnings INTERFACE)
# -ffp-contract=off: the same bits on machines with and without FMA (kernels say fma() where they want it).
target_compile_options(asdbench_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wno-missing-field-initializers -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Woverloaded-virtual
    -ffp-contract=off>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${ASDBENCH_DEVELOPER}>>:-Werror>)
# Relative file names in debug information and assertions, for reproducible builds.
target_compile_options(asdbench_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=>)
if(ASDBENCH_SANITIZE)
  target_compile_options(asdbench_settings INTERFACE
    -fsanitize=${ASDBENCH_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(asdbench_settings INTERFACE -fsanitize=${ASDBENCH_SANITIZE})
endif()
if(ASDBENCH_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "ASDBENCH_FUZZ needs clang (found ${CMAKE_CXX_COMPILER_ID}): cmake --preset fuzz")
  endif()
  # Coverage of all our code; libFuzzer's main is linked into the fuzzers alone.
  target_compile_options(asdbench_settings INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(asdbench_settings INTERFACE -fsanitize=fuzzer-no-link)
endif()
