# canopy_gpu_test(NAME SOURCES a.cpp ... DEPENDS lib ...): one GoogleTest program, run once per software Vulkan driver as
# NAME.lavapipe and, among the slow tests, NAME.swiftshader, each with the validation layer's core checks. LABELS are added
# to "gpu".
# canopy_test_on_lavapipe26 and canopy_test_on_amd register a program once more on the drivers that
# `tools/fetch_dependencies --only test-devices` sets up in the cache, of Debian 13, which run on Debian 12 as well.
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
canopy_find_icd(CANOPY_SWIFTSHADER_ICD vk_swiftshader_icd "ICD file of SwiftShader (Debian: chromium)")
find_file(CANOPY_VALIDATION_LAYER VkLayer_khronos_validation.json
  PATHS /usr/share/vulkan/explicit_layer.d /etc/vulkan/explicit_layer.d
  DOC "Khronos validation layer (Debian: vulkan-validationlayers)")

# The folder of the test devices; what it is called follows from their pins. Sanitizers do not start under another libc.
function(canopy_find_test_devices)
  execute_process(COMMAND "${PROJECT_SOURCE_DIR}/tools/fetch_dependencies" --print-folder test-devices
    OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT "${CANOPY_TEST_DEVICES}" STREQUAL "${folder}")
    unset(CANOPY_TEST_DEVICES CACHE)
  endif()
  find_path(CANOPY_TEST_DEVICES start PATHS "${folder}" NO_DEFAULT_PATH
    DOC "Drivers for tests (tools/fetch_dependencies --only test-devices)")
endfunction()
canopy_find_test_devices()

# canopy_add_device_test(NAME PROGRAM p DRIVER d LABELS l ... ENVIRONMENT e ... TIMEOUT t ARGUMENTS a ...)
function(canopy_add_device_test name)
  cmake_parse_arguments(ARG "" "PROGRAM;DRIVER;TIMEOUT" "LABELS;ENVIRONMENT;ARGUMENTS" ${ARGN})
  set(icd "${CANOPY_TEST_DEVICES}/${ARG_DRIVER}.json")
  add_test(NAME ${name} COMMAND "${CANOPY_TEST_DEVICES}/start" $<TARGET_FILE:${ARG_PROGRAM}> ${ARG_ARGUMENTS})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "VK_DRIVER_FILES=${icd};VK_ICD_FILENAMES=${icd};VK_LAYER_PATH=${CANOPY_TEST_DEVICES}/layers;${ARG_ENVIRONMENT}")
  if(NOT CANOPY_TEST_DEVICES OR CANOPY_SANITIZE)
    set_tests_properties(${name} PROPERTIES DISABLED TRUE)
  endif()
endfunction()

# canopy_test_on_lavapipe26(PROGRAM [SUFFIX s] [FAMILY f] [LABELS l ...] [ENVIRONMENT e ...]): the test
# PROGRAM_lavapipe26SUFFIX, on the software device that has cooperative matrices, with the kernels for these: of the family
# matrix unless given. LABELS beside "gpu;lavapipe26".
function(canopy_test_on_lavapipe26 program)
  cmake_parse_arguments(ARG "" "SUFFIX;FAMILY" "LABELS;ENVIRONMENT" ${ARGN})
  if(NOT ARG_FAMILY)
    set(ARG_FAMILY matrix)
  endif()
  list(APPEND ARG_LABELS gpu lavapipe26)
  canopy_add_device_test(${program}_lavapipe26${ARG_SUFFIX} PROGRAM ${program} DRIVER lavapipe LABELS ${ARG_LABELS} TIMEOUT 900
    ENVIRONMENT CANOPY_VALIDATION=core CANOPY_TEST_DEVICE=vulkan CANOPY_TEST_FAMILY=${ARG_FAMILY} ${ARG_ENVIRONMENT})
endfunction()

# canopy_test_on_amd(PROGRAM FAMILY...): a test PROGRAM_FAMILY for each GPU, on RADV's null device, which compiles for it and
# runs nothing. The program takes the device from RADV_FORCE_FAMILY. With SOAK: the test PROGRAM_FAMILY_all, labelled so,
# with CANOPY_ISA_ALL.
function(canopy_test_on_amd program)
  cmake_parse_arguments(ARG "SOAK" "" "" ${ARGN})
  foreach(family IN LISTS ARG_UNPARSED_ARGUMENTS)
    if(ARG_SOAK)
      canopy_add_device_test(${program}_${family}_all PROGRAM ${program} DRIVER radv LABELS soak TIMEOUT 1800
        ENVIRONMENT RADV_FORCE_FAMILY=${family} CANOPY_ISA_ALL=1)
    else()
      canopy_add_device_test(${program}_${family} PROGRAM ${program} DRIVER radv LABELS gpu isa slow TIMEOUT 600
        ENVIRONMENT RADV_FORCE_FAMILY=${family})
    endif()
  endforeach()
endfunction()

function(canopy_gpu_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "LABELS;SOURCES;DEPENDS;LINK" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 900)
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
  set_tests_properties(${name}.swiftshader PROPERTIES LABELS "gpu;slow;${ARG_LABELS}")
endfunction()
