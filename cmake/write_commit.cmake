# cmake -DSOURCE=... -DHEADER=... -P write_commit.cmake
# Writes a header that names the commit that is built. Run at every build; the header changes only when the commit does.

find_package(Git QUIET)
set(commit "unknown")
if(GIT_FOUND)
  # Without optional locks: another git may be at work in the tree meanwhile.
  execute_process(
    COMMAND "${GIT_EXECUTABLE}" --no-optional-locks describe --always --dirty --abbrev=12 --exclude=*
    WORKING_DIRECTORY "${SOURCE}"
    OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed EQUAL 0)
    set(commit "${described}")
  endif()
endif()
set(content "#pragma once\n#define CANOPY_COMMIT \"${commit}\"\n")
set(before "")
if(EXISTS "${HEADER}")
  file(READ "${HEADER}" before)
endif()
if(NOT before STREQUAL content)
  file(WRITE "${HEADER}" "${content}")
endif()
