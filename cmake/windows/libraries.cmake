# What a cross build for Windows takes from elsewhere than its compiler: the headers of the host's packages that are nothing
# but headers, and libraries from Debian's source archives (tools/fetch_dependencies --only windows-libraries).

enable_language(RC)
set(CANOPY_WINDOWS_HEADERS "${PROJECT_BINARY_DIR}/host_headers") # links, as the host's other headers must not be seen
file(MAKE_DIRECTORY "${CANOPY_WINDOWS_HEADERS}")
foreach(name CLI volk.h volk.c vulkan vk_video stb)
  if(NOT EXISTS "/usr/include/${name}")
    message(FATAL_ERROR "/usr/include/${name} is missing (Debian: libcli11-dev, libvulkan-dev, libvulkan-volk-dev, libstb-dev).")
  endif()
  file(CREATE_LINK "/usr/include/${name}" "${CANOPY_WINDOWS_HEADERS}/${name}" SYMBOLIC)
endforeach()
add_library(CLI11::CLI11 INTERFACE IMPORTED GLOBAL)
target_include_directories(CLI11::CLI11 SYSTEM INTERFACE "${CANOPY_WINDOWS_HEADERS}")
set(CANOPY_VOLK_INCLUDE_DIR "${CANOPY_WINDOWS_HEADERS}" CACHE PATH "Folder of volk.h")

function(canopy_fetched name variable)
  execute_process(COMMAND "${PROJECT_SOURCE_DIR}/tools/fetch_dependencies" --print-folder ${name}
    OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  if(NOT folder)
    message(FATAL_ERROR "${name} is not there; tools/fetch_dependencies --only ${name} fetches it.")
  endif()
  set(${variable} "${folder}" PARENT_SCOPE)
endfunction()
canopy_fetched(windows-libraries libraries)
set(CANOPY_WINDOWS_LIBRARIES "${libraries}")
canopy_fetched(llama-cpp-python llama)

# canopy_add(NAME VARIABLE VALUE ...): a library's own build, with these of its options.
function(canopy_add name)
  set(BUILD_SHARED_LIBS OFF)
  set(CMAKE_POLICY_DEFAULT_CMP0077 NEW) # so that options are what is set here
  set(CMAKE_POLICY_DEFAULT_CMP0048 NEW)
  set(CMAKE_WARN_DEPRECATED OFF)
  while(ARGN)
    list(POP_FRONT ARGN variable value)
    set(${variable} ${value})
  endwhile()
  add_subdirectory("${libraries}/${name}" "${PROJECT_BINARY_DIR}/libraries/${name}" EXCLUDE_FROM_ALL SYSTEM)
endfunction()

canopy_add(pcre2 PCRE2_BUILD_PCRE2GREP OFF PCRE2_BUILD_TESTS OFF PCRE2_SUPPORT_JIT ON PCRE2_SUPPORT_UNICODE ON)
add_library(PkgConfig::PCRE2 INTERFACE IMPORTED GLOBAL)
target_link_libraries(PkgConfig::PCRE2 INTERFACE pcre2-8-static)
target_include_directories(PkgConfig::PCRE2 SYSTEM INTERFACE "${PROJECT_BINARY_DIR}/libraries/pcre2")
target_compile_definitions(PkgConfig::PCRE2 INTERFACE PCRE2_STATIC)

canopy_add(utf8proc UTF8PROC_INSTALL OFF UTF8PROC_ENABLE_TESTING OFF)
add_library(PkgConfig::UTF8PROC INTERFACE IMPORTED GLOBAL)
target_link_libraries(PkgConfig::UTF8PROC INTERFACE utf8proc)

# Certificates are those of Windows.
canopy_add(curl BUILD_CURL_EXE OFF BUILD_TESTING OFF CURL_USE_SCHANNEL ON HTTP_ONLY ON CURL_USE_LIBSSH2 OFF
  CURL_USE_LIBPSL OFF USE_LIBIDN2 OFF CURL_ZLIB OFF ENABLE_MANUAL OFF ENABLE_UNICODE ON)
if(NOT TARGET CURL::libcurl)
  add_library(CURL::libcurl ALIAS libcurl)
endif()

add_library(canopy_httplib STATIC EXCLUDE_FROM_ALL "${llama}/vendor/llama.cpp/vendor/cpp-httplib/httplib.cpp")
target_include_directories(canopy_httplib SYSTEM PUBLIC "${llama}/vendor/llama.cpp/vendor/cpp-httplib")
target_link_libraries(canopy_httplib PUBLIC ws2_32)
add_library(PkgConfig::HTTPLIB INTERFACE IMPORTED GLOBAL)
target_link_libraries(PkgConfig::HTTPLIB INTERFACE canopy_httplib)

# Letters: their fonts are found by DirectWrite.
canopy_add(freetype FT_DISABLE_PNG ON FT_DISABLE_BROTLI ON FT_DISABLE_BZIP2 ON FT_DISABLE_HARFBUZZ ON FT_REQUIRE_ZLIB ON)
add_library(canopy_harfbuzz STATIC EXCLUDE_FROM_ALL "${libraries}/harfbuzz/src/harfbuzz.cc")
target_include_directories(canopy_harfbuzz SYSTEM PUBLIC "${libraries}/harfbuzz/src")
file(GLOB fribidi "${libraries}/fribidi/lib/fribidi*.c")
list(FILTER fribidi EXCLUDE REGEX "char-sets")
add_library(canopy_fribidi STATIC EXCLUDE_FROM_ALL ${fribidi})
set(fribidi_made "${PROJECT_BINARY_DIR}/libraries/fribidi")
block()
  set(PACKAGE fribidi)
  set(PACKAGE_NAME "GNU FriBidi")
  set(PACKAGE_BUGREPORT "")
  set(FRIBIDI_VERSION 1.0.8)
  set(FRIBIDI_MAJOR_VERSION 1)
  set(FRIBIDI_MINOR_VERSION 0)
  set(FRIBIDI_MICRO_VERSION 8)
  set(FRIBIDI_INTERFACE_VERSION 4)
  set(SIZEOF_INT 4)
  configure_file("${libraries}/fribidi/lib/fribidi-config.h.in" "${fribidi_made}/fribidi-config.h" @ONLY)
endblock()
target_include_directories(canopy_fribidi SYSTEM PUBLIC "${fribidi_made}" "${libraries}/fribidi/lib")
target_compile_definitions(canopy_fribidi PUBLIC FRIBIDI_LIB_STATIC PRIVATE HAVE_STRINGIZE=1 HAVE_STDLIB_H=1 HAVE_STRING_H=1)
add_library(PkgConfig::SCRIPTS INTERFACE IMPORTED GLOBAL)
target_link_libraries(PkgConfig::SCRIPTS INTERFACE canopy_harfbuzz freetype canopy_fribidi dwrite)
target_include_directories(PkgConfig::SCRIPTS SYSTEM INTERFACE "${CANOPY_WINDOWS_HEADERS}")

if(CANOPY_APP)
  # The window's: GLFW, which opens vulkan-1.dll when the program runs.
  set(glfw context init input monitor vulkan window win32_init win32_joystick win32_monitor win32_time win32_thread win32_window
    wgl_context egl_context osmesa_context)
  list(TRANSFORM glfw PREPEND "${libraries}/glfw/src/")
  list(TRANSFORM glfw APPEND .c)
  add_library(glfw STATIC EXCLUDE_FROM_ALL ${glfw})
  target_include_directories(glfw SYSTEM PUBLIC "${libraries}/glfw/include")
  target_compile_definitions(glfw PRIVATE _GLFW_WIN32 UNICODE _UNICODE)
  target_compile_options(glfw PRIVATE -w)
  target_link_libraries(glfw PUBLIC gdi32)
endif()
