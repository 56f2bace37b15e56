# Says whether the CUDA Toolkit is here. The CUDA backend is not written yet: nothing is built with it.

find_package(CUDAToolkit 12.4 QUIET)
if(CUDAToolkit_FOUND)
  message(STATUS "CUDA Toolkit: found ${CUDAToolkit_VERSION}; unused, Canopy has no CUDA backend yet")
else()
  message(STATUS "CUDA Toolkit: not found (12.4 or later); not needed, Canopy has no CUDA backend yet")
endif()
if(CANOPY_CUDA)
  message(FATAL_ERROR "CANOPY_CUDA is ON, but there is no CUDA backend in this version: configure with -DCANOPY_CUDA=OFF. "
                      "NVIDIA GPUs run on the Vulkan backend.")
endif()
