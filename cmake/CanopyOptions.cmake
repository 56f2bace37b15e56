# Language level, warnings, sanitizers and the one way to declare a library of the engine.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

add_library(canopy_flags INTERFACE)
target_include_directories(canopy_flags INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_definitions(canopy_flags INTERFACE "CANOPY_VERSION=\"${PROJECT_VERSION}\"")
if(MSVC) # untested
  target_compile_options(canopy_flags INTERFACE /W4 /permissive- /utf-8)
else()
  target_compile_options(canopy_flags INTERFACE -Wall -Wextra)
  if(CANOPY_WERROR)
    target_compile_options(canopy_flags INTERFACE -Werror)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(canopy_flags INTERFACE -Wno-restrict) # false alarms on std::string + (GCC bug 105651)
  endif()
  if(CANOPY_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # With -fsanitize GCC warns wrongly about members of std::variant, as its manual says. The release build keeps the warning.
    target_compile_options(canopy_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
  # Reproducible arithmetic in the reference ops: the compiler must not fuse multiplies and adds by itself.
  target_compile_options(canopy_flags INTERFACE -ffp-contract=off)
endif()

if(CANOPY_SANITIZE)
  # A finding of UBSan ends the program like one of ASan, or a test would pass in spite of it.
  add_compile_options(-fsanitize=${CANOPY_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${CANOPY_SANITIZE})
endif()
if(CANOPY_SANITIZE MATCHES "address|leak")
  add_library(canopy_keep_modules OBJECT "${PROJECT_SOURCE_DIR}/cmake/keep_modules.c") # says why
  link_libraries(canopy_keep_modules)
  add_link_options(LINKER:--export-dynamic-symbol=dlclose)
endif()

if(CANOPY_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "CANOPY_FUZZ needs clang, whose libFuzzer it uses; the compiler is ${CMAKE_CXX_COMPILER_ID}.")
  endif()
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
  add_compile_options(-fsanitize=fuzzer-no-link) # coverage of everything; the programs add the fuzzer itself
endif()

# canopy_library(NAME [LIGHT] [SOURCES a.cpp ...] [EXCLUDE b.cpp ...] DEPENDS lower ... [LINK target ...])
# A static library of one folder: SOURCES, or else every .cpp file in it but those of EXCLUDE. DEPENDS names the folders
# below it, and nothing else may be used. LIGHT: it computes little, so that -O1 does, which compiles a third sooner.
function(canopy_library name)
  cmake_parse_arguments(ARG "LIGHT" "" "SOURCES;EXCLUDE;DEPENDS;LINK" ${ARGN})
  if(NOT ARG_SOURCES)
    file(GLOB ARG_SOURCES CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" "*.cpp")
    list(REMOVE_ITEM ARG_SOURCES ${ARG_EXCLUDE} "")
  endif()
  add_library(canopy_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(canopy_${name} PUBLIC canopy_flags)
  foreach(dep IN LISTS ARG_DEPENDS)
    target_link_libraries(canopy_${name} PUBLIC canopy_${dep})
  endforeach()
  target_link_libraries(canopy_${name} PRIVATE ${ARG_LINK})

  file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}/")
  if(folder MATCHES "^(engine/|cuda_backend)")
    canopy_compile_together(canopy_${name} 16)
    if(ARG_LIGHT)
      canopy_optimize(canopy_${name} -O1)
      canopy_precompile(canopy_${name} plain -O1 LINK nlohmann_json::nlohmann_json)
    endif()
  elseif(folder MATCHES "^app")
    canopy_optimize(canopy_${name} -O1) # drawing is Dear ImGui's and the driver's work
  elseif(folder MATCHES "^tests/")
    canopy_optimize(canopy_${name} -O1)
    canopy_compile_together(canopy_${name} 16)
  endif()
endfunction()
