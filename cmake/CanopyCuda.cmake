# The kernels of the CUDA backend: compiled by nvcc into one file, build/<preset>/lib/canopy/canopy_kernels.fatbin, which
# programs find beside themselves (find_asset in engine/base/files.h), as it is built and as it is installed.
# The rest of the backend needs no toolkit, so that a build without nvcc differs in the kernels alone.
#
# Each file of kernels becomes a fat binary of its own: machine code for each architecture and PTX of the last, for GPUs to
# come, compressed. The one file is these one after the other, which cuobjdump reads as it is and the backend loads as
# modules (cuda_backend/driver.h). Files are not linked with each other: code that can be linked takes
# half as many registers again.

# The cache of a configuration from before there was a choice says OFF without anybody having chosen it.
get_property(canopy_cuda_type CACHE CANOPY_CUDA PROPERTY TYPE)
if(canopy_cuda_type STREQUAL "BOOL")
  unset(CANOPY_CUDA CACHE)
endif()
set(CANOPY_CUDA AUTO CACHE STRING "Kernels of the CUDA backend: AUTO (where NVIDIA's driver and nvcc are), ON (or stop) or OFF")
set_property(CACHE CANOPY_CUDA PROPERTY STRINGS AUTO ON OFF)
set(CANOPY_CUDA_ARCHITECTURES 75 80 86 89 90 100 120 CACHE STRING "Compute capabilities that kernels are compiled for")
set(CANOPY_CUDA_FATBIN "${PROJECT_BINARY_DIR}/lib/canopy/canopy_kernels.fatbin")

# Sets CANOPY_NVCC, the version and CUDA_ARCHITECTURES (those that it knows) in the caller; or CUDA_MISSING, why not.
function(canopy_find_nvcc)
  set(fetch "${PROJECT_SOURCE_DIR}/tools/fetch_dependencies")
  execute_process(COMMAND "${fetch}" --print-folder cuda-compiler OUTPUT_VARIABLE fetched OUTPUT_STRIP_TRAILING_WHITESPACE)
  if("$ENV{CANOPY_FETCH_NVCC}" STREQUAL "1" AND fetched)
    set(CANOPY_NVCC "${fetched}/bin/nvcc" CACHE FILEPATH "" FORCE)
  elseif(NOT EXISTS "${CANOPY_NVCC}")
    unset(CANOPY_NVCC CACHE)
  endif()
  find_program(CANOPY_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda "${fetched}" PATH_SUFFIXES bin
    DOC "NVIDIA's CUDA compiler, 12.4 or later (tools/fetch_dependencies --only cuda-compiler)")
  if(NOT CANOPY_NVCC)
    set(CUDA_MISSING "no nvcc here" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND "${CANOPY_NVCC}" --version OUTPUT_VARIABLE text ERROR_QUIET)
  if(NOT text MATCHES "release ([0-9]+)\\.([0-9]+)")
    set(CUDA_MISSING "${CANOPY_NVCC} does not start" PARENT_SCOPE)
    return()
  endif()
  set(version "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}")
  if(version VERSION_LESS 12.4)
    set(CUDA_MISSING "${CANOPY_NVCC} is ${version}, 12.4 or later is needed" PARENT_SCOPE)
    return()
  endif()
  canopy_try_nvcc("${version}" problem)
  if(problem)
    set(CUDA_MISSING "${problem}" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND "${CANOPY_NVCC}" --list-gpu-arch OUTPUT_VARIABLE known ERROR_QUIET)
  foreach(architecture IN LISTS CANOPY_CUDA_ARCHITECTURES)
    if(known MATCHES "compute_${architecture}\n")
      list(APPEND architectures ${architecture})
    endif()
  endforeach()
  set(CUDA_VERSION "${version}" PARENT_SCOPE)
  set(CUDA_ARCHITECTURES "${architectures}" PARENT_SCOPE)
endfunction()

# A toolkit may lack its headers, or refuse the host's compiler: once for each nvcc, a file that includes what kernels do.
function(canopy_try_nvcc version problem)
  set(${problem} "" PARENT_SCOPE)
  set(tried "${CANOPY_NVCC} ${version}")
  if("${CANOPY_NVCC_WORKS}" STREQUAL "${tried}")
    return()
  endif()
  set(folder "${PROJECT_BINARY_DIR}/CMakeFiles/try_nvcc")
  file(WRITE "${folder}/try.cu" "#include <cuda_fp16.h>\n#include <cstdint>\nextern \"C\" __global__ void f(__half* p) { *p = 1; }\n")
  execute_process(COMMAND "${CANOPY_NVCC}" -fatbin -std=c++20 -allow-unsupported-compiler -o try.fatbin try.cu
    WORKING_DIRECTORY "${folder}" OUTPUT_QUIET ERROR_VARIABLE message RESULT_VARIABLE status)
  if(status EQUAL 0)
    set(CANOPY_NVCC_WORKS "${tried}" CACHE INTERNAL "the nvcc that has compiled something")
  else()
    string(REGEX REPLACE "[\r\n].*" "" message "${message}")
    set(${problem} "${CANOPY_NVCC} cannot compile a small file (${message})" PARENT_SCOPE)
  endif()
endfunction()

if(NOT CANOPY_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "CANOPY_CUDA is ${CANOPY_CUDA}; allowed: AUTO, ON, OFF.")
endif()
set(CUDA_MISSING "CANOPY_CUDA is OFF")
if(CANOPY_CUDA STREQUAL "AUTO" AND CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT EXISTS "/proc/driver/nvidia/version"
   AND NOT EXISTS "/usr/lib/wsl/lib/libcuda.so.1")
  set(CUDA_MISSING "no NVIDIA driver here; CANOPY_CUDA=ON builds them all the same")
elseif(NOT CANOPY_CUDA STREQUAL "OFF")
  set(CUDA_MISSING "")
  canopy_find_nvcc()
endif()
if(CUDA_MISSING)
  if(CANOPY_CUDA STREQUAL "ON")
    message(FATAL_ERROR "CANOPY_CUDA is ON, but the kernels of the CUDA backend cannot be compiled: ${CUDA_MISSING}. "
                        "tools/fetch_dependencies --only cuda-compiler fetches a compiler.")
  endif()
  message(STATUS "CUDA: no kernels in this build (${CUDA_MISSING}); NVIDIA GPUs are used through Vulkan")
else()
  list(JOIN CUDA_ARCHITECTURES ", " architecture_words)
  message(STATUS "CUDA: kernels for compute capabilities ${architecture_words} with nvcc ${CUDA_VERSION} (${CANOPY_NVCC})")
endif()

# canopy_cuda_kernels(TARGET DIRECTORY dir): compiles dir/*.cu, and tells TARGET what came of it: nothing where there is no nvcc.
function(canopy_cuda_kernels target)
  cmake_parse_arguments(ARG "" "DIRECTORY" "" ${ARGN})
  set(source "${CMAKE_CURRENT_BINARY_DIR}/cuda_kernels.cpp")
  if(CUDA_MISSING)
    file(CONFIGURE OUTPUT "${source}" CONTENT [[// Generated by cmake/CanopyCuda.cmake: a build without kernels.
#include "cuda_backend/driver.h"

namespace canopy::cuda {

const BuiltKernels& built_kernels() {
  static const BuiltKernels none;
  return none;
}

}  // namespace canopy::cuda
]] @ONLY)
  else()
    file(GLOB kernels CONFIGURE_DEPENDS "${ARG_DIRECTORY}/*.cu")
    foreach(kernel IN LISTS kernels)
      canopy_cuda_kernel("${kernel}" "${ARG_DIRECTORY}" fatbin)
      list(APPEND fatbins "${fatbin}")
    endforeach()
    set(join "${PROJECT_SOURCE_DIR}/tools/join_kernels.py")
    string(REGEX REPLACE "\\..*" "" major "${CUDA_VERSION}")
    add_custom_command(
      OUTPUT "${CANOPY_CUDA_FATBIN}" "${source}"
      COMMAND Python3::Interpreter "${join}" --output "${CANOPY_CUDA_FATBIN}" --source "${source}"
              --least-driver ${major}000 --architectures ${CUDA_ARCHITECTURES} --fatbins ${fatbins}
      DEPENDS ${fatbins} "${join}"
      COMMENT "Joining the CUDA kernels"
      VERBATIM)
  endif()
  target_sources(${target} PRIVATE "${source}")
  set_source_files_properties("${source}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# canopy_cuda_kernel(FILE INCLUDE OUT): the fat binary of one file. ccache keeps objects of the host alone, so that with it
# the fat binary is taken out of one; it is told to go by the files that were read, as the code of one architecture may
# depend on text that the preprocessor leaves out for another.
function(canopy_cuda_kernel kernel include out)
  get_filename_component(stem "${kernel}" NAME_WE)
  set(base "${CMAKE_CURRENT_BINARY_DIR}/kernels/${stem}")
  file(MAKE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/kernels")
  set(flags -std=c++20 -O3 -fmad=false -allow-unsupported-compiler --threads 0 "-I${PROJECT_SOURCE_DIR}" "-I${include}/nvcc")
  foreach(architecture IN LISTS CUDA_ARCHITECTURES)
    if(architecture EQUAL 90) # its warpgroups belong to no other architecture, not even a later one
      set(architecture 90a)
    endif()
    list(APPEND flags -gencode "arch=compute_${architecture},code=sm_${architecture}")
  endforeach()
  list(GET CUDA_ARCHITECTURES -1 last)
  list(APPEND flags -gencode "arch=compute_${last},code=compute_${last}")
  if(CUDA_VERSION VERSION_GREATER_EQUAL 12.8)
    list(APPEND flags --compress-mode=size)
  else()
    list(APPEND flags -Xfatbin=-compress-all)
  endif()
  if(CANOPY_WERROR)
    list(APPEND flags -Werror all-warnings)
  endif()
  set(dependencies -MD -MF "${base}.d" -MT "${base}.fatbin")
  if(CANOPY_CCACHE AND CMAKE_OBJCOPY)
    set(commands
      COMMAND "${CMAKE_COMMAND}" -E env CCACHE_DEPEND=1 "${CANOPY_CCACHE}" "${CANOPY_NVCC}" -c ${flags} ${dependencies}
              -o "${base}.o" "${kernel}"
      COMMAND "${CMAKE_OBJCOPY}" -O binary --only-section=.nv_fatbin "${base}.o" "${base}.fatbin")
  else()
    set(commands COMMAND "${CANOPY_NVCC}" -fatbin ${flags} ${dependencies} -o "${base}.fatbin" "${kernel}")
  endif()
  add_custom_command(
    OUTPUT "${base}.fatbin"
    ${commands}
    DEPENDS "${kernel}"
    DEPFILE "${base}.d"
    COMMENT "Compiling CUDA kernels ${stem}"
    VERBATIM)
  set(${out} "${base}.fatbin" PARENT_SCOPE)
endfunction()
