# canopy_test_on_devices(PROGRAM DEVICES d ... LABELS l ... ENVIRONMENT e ... SUFFIX s): registers a test program once
# more per software device: lavapipe (mesa-vulkan-drivers) and SwiftShader (inside chromium); both without DEVICES,
# disabled where the driver is not installed. Runs under the validation layer's core checks where it is installed.
function(canopy_test_on_devices program)
  cmake_parse_arguments(ARG "" "SUFFIX" "DEVICES;LABELS;ENVIRONMENT" ${ARGN})
  if(NOT ARG_DEVICES)
    set(ARG_DEVICES lavapipe swiftshader)
  endif()
  # A kernel is compiled for each width of a tile, for up to seconds; what differs between widths shows with few.
  set(tile 2)
  set(validation off)
  if(CANOPY_VALIDATION_LAYER)
    set(validation core)
  endif()
  foreach(device IN LISTS ARG_DEVICES)
    string(TOUPPER ${device} upper)
    set(icd "${CANOPY_${upper}_ICD}")
    set(name "${program}_${device}${ARG_SUFFIX}")
    set(timeout 600)
    if(slow IN_LIST ARG_LABELS OR soak IN_LIST ARG_LABELS)
      set(timeout 1800) # minutes on a machine of their own; two run at a time
    endif()
    add_test(NAME ${name} COMMAND ${program})
    # The older name of the ICD variable too: loaders before 1.3.207 know no other. ARG_ENVIRONMENT overrides the tile.
    set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${timeout}
      ENVIRONMENT "VK_DRIVER_FILES=${icd};VK_ICD_FILENAMES=${icd};CANOPY_VALIDATION=${validation};CANOPY_TEST_DEVICE=vulkan;CANOPY_TEST_MAX_TILE=${tile};${ARG_ENVIRONMENT}")
    if(NOT icd)
      set_tests_properties(${name} PROPERTIES DISABLED TRUE)
    endif()
  endforeach()
endfunction()

# canopy_test_on_cpu(PROGRAM [SUFFIX s] [LABELS l ...] [ENVIRONMENT e ...]): the test PROGRAM_cpuSUFFIX, on the processor.
function(canopy_test_on_cpu program)
  cmake_parse_arguments(ARG "" "SUFFIX" "LABELS;ENVIRONMENT" ${ARGN})
  add_test(NAME ${program}_cpu${ARG_SUFFIX} COMMAND ${program})
  set_tests_properties(${program}_cpu${ARG_SUFFIX} PROPERTIES LABELS "cpu;${ARG_LABELS}" TIMEOUT 600
    ENVIRONMENT "CANOPY_TEST_DEVICE=cpu;${ARG_ENVIRONMENT}")
endfunction()
