# canopy_test_on_devices(PROGRAM LABELS l ... ENVIRONMENT e ... SUFFIX s): registers a test program once more per
# software device. Which devices those are: lavapipe (mesa-vulkan-drivers) and SwiftShader (inside chromium).
function(canopy_test_on_devices program)
  cmake_parse_arguments(ARG "" "SUFFIX" "LABELS;ENVIRONMENT" ${ARGN})
  set(lavapipe /usr/share/vulkan/icd.d/lvp_icd.x86_64.json)
  set(swiftshader /usr/lib/chromium/vk_swiftshader_icd.json)
  foreach(device lavapipe swiftshader)
    if(NOT EXISTS "${${device}}")
      message(STATUS "${program}: no ${device} here (${${device}}), not registered for it")
      continue()
    endif()
    set(name "${program}_${device}${ARG_SUFFIX}")
    add_test(NAME ${name} COMMAND ${program})
    set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 600
      ENVIRONMENT "VK_ICD_FILENAMES=${${device}};CANOPY_TEST_DEVICE=vulkan;${ARG_ENVIRONMENT}")
  endforeach()
endfunction()
