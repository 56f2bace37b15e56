# canopy_gpu_test(NAME SOURCES a.cpp ... DEPENDS lib ...): one GoogleTest program, run once per software Vulkan driver as
# NAME.lavapipe and NAME.swiftshader, each with the validation layer's core checks. LABELS are added to "gpu".
#
# A driver is chosen by its ICD file: the loader sees that one alone, so the program simply takes the first device. Tests
# of a driver that is not installed are registered as disabled, so that ctest names them.
include(CanopyTesting)

# canopy_find_icd(VARIABLE NAME DOC): the ICD file NAME.json (Mesa 25 and later, Chromium) or NAME.<processor>.json
# (Mesa before 25). A path that has gone since the last configuration is looked for again.
function(canopy_find_icd variable name doc)
  if(NOT EXISTS "${${variable}}")
    unset(${variable} CACHE)
  endif()
  find_file(${variable} NAMES ${name}.${CMAKE_SYSTEM_PROCESSOR}.json ${name}.json
    PATHS /usr/share/vulkan/icd.d /etc/vulkan/icd.d /usr/lib/chromium NO_DEFAULT_PATH DOC "${doc}")
endfunction()
canopy_find_icd(CANOPY_LAVAPIPE_ICD lvp_icd "ICD file of lavapipe (Debian: mesa-vulkan-drivers)")
canopy_find_icd(CANOPY_RADV_ICD radeon_icd "ICD file of RADV (Debian: mesa-vulkan-drivers)")
canopy_find_icd(CANOPY_SWIFTSHADER_ICD vk_swiftshader_icd "ICD file of SwiftShader (Debian: chromium)")
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
    add_test(NAME ${name}.${driver} COMMAND ${name})
    set_tests_properties(${name}.${driver} PROPERTIES
      LABELS "gpu;${ARG_LABELS}"
      TIMEOUT ${ARG_TIMEOUT}
      # The older name too: loaders before 1.3.207 know only that one.
      ENVIRONMENT "VK_DRIVER_FILES=${icd};VK_ICD_FILENAMES=${icd};CANOPY_VALIDATION=${validation}")
    if(NOT icd)
      set_tests_properties(${name}.${driver} PROPERTIES DISABLED TRUE)
    endif()
  endforeach()
endfunction()
