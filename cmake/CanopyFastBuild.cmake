# Makes a build from nothing short: a few files of a folder are compiled together, so that shared headers are read and
# shared templates instantiated once, and the headers that many programs include are precompiled.
#
# Both have disadvantages, which CANOPY_FAST_BUILD=OFF avoids: names in unnamed namespaces must differ within a folder, and a
# file that forgets an #include may still compile. The presets `debug` and `fuzz` compile each file on its own, which
# tools that read compile_commands.json need too.

option(CANOPY_FAST_BUILD "Compile the files of a folder together and precompile common headers" ON)

# ccache uses precompiled headers only if told to ignore the times in them.
find_program(CANOPY_CCACHE ccache)
if(CANOPY_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER "${CANOPY_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER
    "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    "${CANOPY_CCACHE}")
endif()

# canopy_optimize(TARGET LEVEL): in the release build, LEVEL (-O1, -O2) instead of CMake's -O3. For code that computes
# little; results are the same at every level (-ffp-contract=off, no -ffast-math).
function(canopy_optimize target level)
  if(NOT MSVC)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${level}>)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND level MATCHES "-O[01]")
    # At lower levels GCC sees less of each function and warns of unused parts of std::optional and std::string.
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Wno-maybe-uninitialized>
      $<$<CONFIG:Release>:-Wno-array-bounds> $<$<CONFIG:Release>:-Wno-stringop-overflow>)
  endif()
endfunction()

# canopy_compile_together(TARGET COUNT): compiles COUNT files of the target at a time as one.
function(canopy_compile_together target count)
  if(CANOPY_FAST_BUILD)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${count})
  endif()
endfunction()

# canopy_precompile(TARGET NAME LEVEL LINK ...): precompiled/NAME.h before every file of TARGET. It is compiled once at
# each LEVEL, with what LINK says, for all targets that ask for both; they must be compiled at that LEVEL.
function(canopy_precompile target name level)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  if(NOT CANOPY_FAST_BUILD)
    return()
  endif()
  set(carrier canopy_precompiled_${name}${level})
  if(NOT TARGET ${carrier})
    set(source "${PROJECT_BINARY_DIR}/precompiled/${name}.cpp")
    if(NOT EXISTS "${source}")
      file(WRITE "${source}" "// Carries cmake/precompiled/${name}.h.\n")
    endif()
    add_library(${carrier} OBJECT EXCLUDE_FROM_ALL "${source}")
    target_link_libraries(${carrier} PRIVATE canopy_flags ${ARG_LINK})
    target_precompile_headers(${carrier} PRIVATE "${PROJECT_SOURCE_DIR}/cmake/precompiled/${name}.h")
    canopy_optimize(${carrier} ${level})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${carrier} PRIVATE -fpch-preprocess)
    endif()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${carrier})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  endif()
endfunction()
