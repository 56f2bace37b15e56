# canopy_test_program(NAME SOURCES a.cpp ... DEPENDS lib ... LINK target): one GoogleTest program, not
# registered yet.
function(canopy_test_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE canopy_flags GTest::gtest GTest::gtest_main ${ARG_LINK})
  foreach(dep IN LISTS ARG_DEPENDS)
    target_link_libraries(${name} PRIVATE canopy_${dep})
  endforeach()
  target_compile_definitions(${name} PRIVATE CANOPY_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  # What computes is in libraries, but for comparisons of whole passes, whose loops would take longer than to compile them.
  set(level -O0)
  if(ARG_DEPENDS MATCHES "model_testing|op_cases")
    set(level -O1)
  endif()
  canopy_optimize(${name} ${level})
  canopy_precompile(${name} tests ${level} LINK GTest::gtest)
  canopy_compile_together(${name} 16)
endfunction()

# canopy_test(NAME LABELS l ... SOURCES a.cpp ... DEPENDS lib ...): one GoogleTest program, registered case by case.
# RUN_UNDER is a command to start it with, e.g. a virtual display. LABELS are parts of the suite: unit, gpu, gui, golden, slow.
set(CANOPY_GOLDEN_DIR "" CACHE PATH "Golden data; empty means tests/golden")

function(canopy_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "LABELS;SOURCES;DEPENDS;LINK;RUN_UNDER" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  canopy_test_program(${name} SOURCES ${ARG_SOURCES} DEPENDS ${ARG_DEPENDS} LINK ${ARG_LINK})
  # One ctest entry for each program, so that it starts and compiles shaders only once.
  set(command ${name}) # by its target, so that an emulator is put before it where there is one
  if(ARG_RUN_UNDER)
    set(command ${ARG_RUN_UNDER} $<TARGET_FILE:${name}>)
  endif()
  add_test(NAME ${name} COMMAND ${command})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
endfunction()
