# Finds the libtorch inside PyPI's torch wheel, or an ordinary libtorch folder, and defines its targets.
#
# Torch's own CMake package wants the whole CUDA toolkit; a program that links libtorch_cpu and libc10 alone does not.
#
# Input    TORCH_ROOT          a folder that `pip install --target` filled, or an unpacked libtorch; by default
#                              ${ASDBENCH_CACHE:-$HOME/.cache/asdbench}/torch-2.11.0, where scripts/setup unpacks it
# Output   TorchWheel_FOUND, TorchWheel_VERSION
#          Torch::c10, Torch::cpu   imported targets; GPU kernels (libtorch_cuda) are loaded at run time, never linked
set(torch_default_version 2.11.0)
if(DEFINED ENV{ASDBENCH_CACHE})
  set(torch_default_root "$ENV{ASDBENCH_CACHE}/torch-${torch_default_version}")
else()
  set(torch_default_root "$ENV{HOME}/.cache/asdbench/torch-${torch_default_version}")
endif()
set(TORCH_ROOT "${torch_default_root}" CACHE PATH "Folder of a pip --target installation of torch, or of a libtorch")

# NO_CACHE, so that another TORCH_ROOT takes effect without clearing the cache.
find_path(torch_include ATen/ATen.h PATHS ${TORCH_ROOT}/torch/include ${TORCH_ROOT}/include NO_DEFAULT_PATH NO_CACHE)
find_library(torch_cpu_library torch_cpu PATHS ${TORCH_ROOT}/torch/lib ${TORCH_ROOT}/lib NO_DEFAULT_PATH NO_CACHE)
find_library(torch_c10_library c10 PATHS ${TORCH_ROOT}/torch/lib ${TORCH_ROOT}/lib NO_DEFAULT_PATH NO_CACHE)

if(torch_include)
  string(REGEX REPLACE "/+$" "" torch_include "${torch_include}")
  # Newer releases first.
  foreach(file headeronly/version.h csrc/api/include/torch/version.h)
    if(NOT TorchWheel_VERSION AND EXISTS ${torch_include}/torch/${file})
      file(STRINGS ${torch_include}/torch/${file} torch_version_lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
      string(REGEX MATCHALL "[0-9]+" torch_version_numbers "${torch_version_lines}")
      list(JOIN torch_version_numbers . TorchWheel_VERSION)
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(TorchWheel
  REQUIRED_VARS torch_include torch_cpu_library torch_c10_library
  VERSION_VAR TorchWheel_VERSION
  REASON_FAILURE_MESSAGE "\
no libtorch in TORCH_ROOT=${TORCH_ROOT}
  expected below it: torch/include/ATen/ATen.h and torch/lib/libtorch_cpu.so (or include/ and lib/ of a libtorch)
  do one of these:
    run scripts/setup, which unpacks it there
    configure with -DTORCH_ROOT=FOLDER, an unpacked libtorch or a folder filled by
      pip install --target FOLDER --no-deps torch==${torch_default_version} nvidia-cuda-runtime nvidia-cuda-cupti
    configure with -DASDBENCH_WITH_TORCH=OFF")

if(TorchWheel_FOUND AND NOT TARGET Torch::cpu)
  # Wheels since 2.7 use the new ABI of libstdc++, which is the compiler's default here. A library of the old one would
  # link to nothing that takes a std::string.
  file(GLOB torch_config ${TORCH_ROOT}/torch/share/cmake/Torch/TorchConfig.cmake
    ${TORCH_ROOT}/share/cmake/Torch/TorchConfig.cmake)
  if(torch_config)
    file(STRINGS ${torch_config} torch_old_abi REGEX "_GLIBCXX_USE_CXX11_ABI=0")
    if(torch_old_abi)
      message(FATAL_ERROR "TORCH_ROOT=${TORCH_ROOT} holds a libtorch of the old libstdc++ ABI "
        "(_GLIBCXX_USE_CXX11_ABI=0)\n  take one of the cxx11 ABI, or the wheel: scripts/setup")
    endif()
  endif()

  # Torch ships headers of other projects (fmt 12) beside its own; they must not hide the system's. The folder of links
  # is a SYSTEM include, like that of every imported target.
  set(torch_headers ${CMAKE_BINARY_DIR}/torch_headers)
  file(REMOVE_RECURSE ${torch_headers})
  file(MAKE_DIRECTORY ${torch_headers})
  foreach(folder ATen c10 caffe2 torch)
    file(CREATE_LINK ${torch_include}/${folder} ${torch_headers}/${folder} SYMBOLIC)
  endforeach()

  # The small CUDA wheels that libtorch_cpu names as needed (runtime, profiler) lie beside it; a libtorch holds its own.
  file(GLOB torch_cuda_folders LIST_DIRECTORIES true ${TORCH_ROOT}/nvidia/*/lib)

  add_library(Torch::c10 SHARED IMPORTED)
  set_target_properties(Torch::c10 PROPERTIES
    IMPORTED_LOCATION ${torch_c10_library}
    INTERFACE_INCLUDE_DIRECTORIES "${torch_headers};${torch_headers}/torch/csrc/api/include"
    INTERFACE_COMPILE_DEFINITIONS _GLIBCXX_USE_CXX11_ABI=1)
  add_library(Torch::cpu SHARED IMPORTED)
  set_target_properties(Torch::cpu PROPERTIES
    IMPORTED_LOCATION ${torch_cpu_library}
    # Operators register themselves when the library is loaded: it must be loaded even where no symbol of it is named.
    INTERFACE_LINK_OPTIONS "LINKER:--no-as-needed"
    INTERFACE_LINK_LIBRARIES Torch::c10)
  # CMake puts the folders of linked libraries on a build tree's rpath; those of the CUDA wheels it cannot know.
  foreach(folder IN LISTS torch_cuda_folders)
    set_property(TARGET Torch::cpu APPEND PROPERTY INTERFACE_LINK_OPTIONS "LINKER:-rpath,${folder}")
  endforeach()
endif()
