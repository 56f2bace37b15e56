# canopy_gpu_test(NAME SOURCES a.cpp ... DEPENDS lib ...): one GoogleTest program, run once per software Vulkan driver as
# NAME.lavapipe and NAME.swiftshader, each with the validation layer's core checks. LABELS are added to "gpu".
#
# A driver is chosen by its ICD file: the loader sees that one alone, so the program simply takes the first device.
include(CanopyTesting)
set(CANOPY_LAVAPIPE_ICD "/usr/share/vulkan/icd.d/lvp_icd.${CMAKE_SYSTEM_PROCESSOR}.json"
  CACHE FILEPATH "ICD file of lavapipe (Debian: mesa-vulkan-drivers)")
set(CANOPY_SWIFTSHADER_ICD "/usr/lib/chromium/vk_swiftshader_icd.json"
  CACHE FILEPATH "ICD file of SwiftShader (Debian: chromium)")
find_file(CANOPY_VALIDATION_LAYER VkLayer_khronos_validation.json
  PATHS /usr/share/vulkan/explicit_layer.d /etc/vulkan/explicit_layer.d
  DOC "Khronos validation layer (Debian: vulkan-validationlayers)")

function(canopy_gpu_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "LABELS;SOURCES;DEPENDS;LINK" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  canopy_test_program(${name} SOURCES ${ARG_SOURCES} DEPENDS ${ARG_DEPENDS} LINK ${ARG_LINK})

  set(validation off)
  if(CANOPY_VALIDATION_LAYER)
    set(validation core)
  endif()
  foreach(driver lavapipe swiftshader)
    string(TOUPPER ${driver} upper)
    set(icd "${CANOPY_${upper}_ICD}")
    if(EXISTS "${icd}")
      add_test(NAME ${name}.${driver} COMMAND ${name})
      set_tests_properties(${name}.${driver} PROPERTIES
        LABELS "gpu;${ARG_LABELS}"
        TIMEOUT ${ARG_TIMEOUT}
        # The older name too: loaders before 1.3.207 know only that one.
        ENVIRONMENT "VK_DRIVER_FILES=${icd};VK_ICD_FILENAMES=${icd};CANOPY_VALIDATION=${validation}")
    endif()
  endforeach()
endfunction()
