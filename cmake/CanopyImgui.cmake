# Builds the third-party GUI sources that tools/fetch_dependencies unpacks. All targets are EXCLUDE_FROM_ALL: only what a
# program links is compiled. Their headers are SYSTEM includes and their sources carry none of our warning flags.
#
#   canopy_imgui          Dear ImGui (docking), GLFW and Vulkan backends, misc/cpp/imgui_stdlib.h
#   canopy_implot         ImPlot, for series of float and double
#   canopy_md4c           md4c, the Markdown parser (C)
#   canopy_microtex       MicroTeX, which places the letters of formulas; draws nothing by itself
#   canopy_rich_md        imgui_rich_md: Markdown rendered in ImGui (no network, no Mermaid, no LaTeX)
#   canopy_file_dialogs   portable_file_dialogs.h
#   canopy_imgui_test     Dear ImGui hooked for Dear ImGui Test Engine, and the engine itself. For test programs only
#                         (its licence is not MIT). Never link both flavours into one program.
#   canopy_imgui_headers  what is compiled against Dear ImGui links this: the hooks change no declaration that a user of
#                         it sees, so the same object serves either flavour, which the program links.
#
# The Vulkan backend links no loader: call ImGui_ImplVulkan_LoadFunctions() before ImGui_ImplVulkan_Init().

set(CANOPY_IMGUI_DIR "" CACHE PATH "Your own Dear ImGui source folder (docking branch, 1.93 or later); empty: the pinned one")
set(CANOPY_DEPS_DIR "" CACHE PATH "Folder of the unpacked third-party sources; empty: where tools/fetch_dependencies puts them")
option(CANOPY_OFFLINE "Never use the network while configuring" OFF)

# The cache folder, by the same rule as in tools/fetch_dependencies.
function(canopy_cache_dir out)
  if(DEFINED ENV{CANOPY_CACHE_DIR} AND NOT "$ENV{CANOPY_CACHE_DIR}" STREQUAL "")
    set(dir "$ENV{CANOPY_CACHE_DIR}")
  elseif(DEFINED ENV{XDG_CACHE_HOME} AND NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
    set(dir "$ENV{XDG_CACHE_HOME}/canopy")
  else()
    set(dir "$ENV{HOME}/.cache/canopy")
  endif()
  set(${out} "${dir}" PARENT_SCOPE)
endfunction()

# Sets `out` to the folder with the unpacked imgui-bundle. Downloads it if it is missing and downloads are allowed.
function(canopy_find_gui_sources out)
  set(pins "${PROJECT_SOURCE_DIR}/tools/dependencies.json")
  set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${pins}")
  file(READ "${pins}" json)
  string(JSON folder GET "${json}" imgui-bundle folder)
  set(deps "${CANOPY_DEPS_DIR}")
  if(NOT deps)
    canopy_cache_dir(cache)
    set(deps "${cache}/extracted")
  endif()
  set(dir "${deps}/${folder}")
  if(NOT EXISTS "${dir}/.complete" AND NOT CANOPY_DEPS_DIR AND NOT CANOPY_OFFLINE)
    message(STATUS "Fetching the pinned GUI sources")
    execute_process(COMMAND "${PROJECT_SOURCE_DIR}/tools/fetch_dependencies" --only imgui-bundle RESULT_VARIABLE status)
    if(NOT status EQUAL 0)
      message(FATAL_ERROR "tools/fetch_dependencies could not provide the GUI sources (its message is above).")
    endif()
  endif()
  if(NOT EXISTS "${dir}/.complete")
    message(FATAL_ERROR "The GUI sources are not in ${dir}: run tools/fetch_dependencies once, or configure with "
                        "-DCANOPY_APP=OFF to build without the application.")
  endif()
  set(${out} "${dir}" PARENT_SCOPE)
endfunction()

# A static library of third-party code, compiled without Canopy's warnings and with its headers as SYSTEM.
function(canopy_third_party name)
  cmake_parse_arguments(ARG "" "" "SOURCES;INCLUDES;LINK;DEFINES" ${ARGN})
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${ARG_SOURCES})
  target_include_directories(${name} SYSTEM PUBLIC ${ARG_INCLUDES})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  target_compile_definitions(${name} PUBLIC ${ARG_DEFINES})
  target_compile_options(${name} PRIVATE -w)
endfunction()

# canopy_imgui_flavour(SUFFIX DEFINES d ... SOURCES extra ... INCLUDES extra ...): ImGui itself, as a program links it.
# An object library: code that draws is compiled against the headers alone and linked with either flavour.
function(canopy_imgui_flavour suffix)
  cmake_parse_arguments(ARG "" "" "DEFINES;SOURCES;INCLUDES" ${ARGN})
  set(objects canopy_imgui${suffix}_objects)
  add_library(${objects} OBJECT EXCLUDE_FROM_ALL ${canopy_imgui_sources} ${ARG_SOURCES})
  target_link_libraries(${objects} PRIVATE canopy_imgui_headers)
  target_include_directories(${objects} SYSTEM PRIVATE ${ARG_INCLUDES})
  # The loader is opened at run time, so that the program starts (and explains) on a machine without Vulkan.
  target_compile_definitions(${objects} PRIVATE ${ARG_DEFINES} IMGUI_IMPL_VULKAN_NO_PROTOTYPES GLFW_INCLUDE_NONE)
  # -O2 draws as fast as -O3 here; test programs run for seconds, so compiling them costs more than running them.
  target_compile_options(${objects} PRIVATE -w $<$<CONFIG:Release>:$<IF:$<STREQUAL:${suffix},_test>,-O1,-O2>>)

  if(WIN32) # MinGW's time.h has the function that imgui.cpp makes itself, unless told not to
    target_compile_options(${objects} PRIVATE -U_POSIX_THREAD_SAFE_FUNCTIONS)
  endif()

  add_library(canopy_imgui${suffix} INTERFACE)
  target_link_libraries(canopy_imgui${suffix} INTERFACE $<TARGET_OBJECTS:${objects}> canopy_imgui_headers glfw Threads::Threads)
  if(WIN32)
    target_link_libraries(canopy_imgui${suffix} INTERFACE imm32) # input methods
  endif()
  target_include_directories(canopy_imgui${suffix} SYSTEM INTERFACE ${ARG_INCLUDES})
  target_compile_definitions(canopy_imgui${suffix} INTERFACE ${ARG_DEFINES})
endfunction()

find_package(Threads REQUIRED)
find_package(glfw3 3.3 REQUIRED)
canopy_find_gui_sources(canopy_gui_dir)
set(canopy_imgui_source_dir "${canopy_gui_dir}/external/imgui/imgui")
if(CANOPY_IMGUI_DIR)
  set(canopy_imgui_source_dir "${CANOPY_IMGUI_DIR}")
  if(NOT EXISTS "${CANOPY_IMGUI_DIR}/imgui.cpp")
    message(FATAL_ERROR "CANOPY_IMGUI_DIR is ${CANOPY_IMGUI_DIR}, which holds no imgui.cpp: give the root of Dear ImGui's sources.")
  endif()
  file(STRINGS "${CANOPY_IMGUI_DIR}/imgui.h" defines REGEX "^#define IMGUI_(VERSION_NUM|HAS_DOCK)")
  string(REGEX REPLACE ".*IMGUI_VERSION_NUM +([0-9]+).*" "\\1" version "${defines}")
  if(NOT "${version}" GREATER_EQUAL 19293 OR NOT "${defines}" MATCHES "IMGUI_HAS_DOCK")
    message(FATAL_ERROR "CANOPY_IMGUI_DIR is ${CANOPY_IMGUI_DIR}, whose Dear ImGui (IMGUI_VERSION_NUM ${version}) is "
                        "too old or not of the docking branch: give 1.93 (19293) or later, docking.")
  endif()
endif()
message(STATUS "Dear ImGui: ${canopy_imgui_source_dir}")

set(md4c "${canopy_gui_dir}/external/imgui_rich_md/imgui_rich_md/external/md4c/src")
canopy_third_party(canopy_md4c SOURCES "${md4c}/md4c.c" INCLUDES "${md4c}")

set(microtex "${canopy_gui_dir}/external/imgui_microtex/MicroTeX/lib")
file(GLOB microtex_sources "${microtex}/microtex.cpp" "${microtex}/atom/*.cpp" "${microtex}/box/*.cpp" "${microtex}/core/*.cpp"
  "${microtex}/env/*.cpp" "${microtex}/graphic/*.cpp" "${microtex}/macro/*.cpp" "${microtex}/otf/*.cpp" "${microtex}/render/*.cpp"
  "${microtex}/unimath/*.cpp" "${microtex}/utils/*.cpp")
canopy_third_party(canopy_microtex SOURCES ${microtex_sources} INCLUDES "${microtex}" "${PROJECT_SOURCE_DIR}/cmake/imgui_config"
  DEFINES MICROTEX_STATIC GLYPH_RENDER_TYPE=2) # 2: glyphs are named by their numbers, their outlines are the font's
target_compile_options(canopy_microtex PRIVATE $<$<CONFIG:Release>:-O1>)
canopy_compile_together(canopy_microtex 11)
# These define macros that others stumble over.
set_source_files_properties("${microtex}/atom/colors_def.cpp" "${microtex}/macro/macro_def.cpp" "${microtex}/otf/fontsense.cpp"
  "${microtex}/unimath/math_type.cpp" "${microtex}/utils/utils.cpp" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
# It asks for the locale en_US.UTF-8, which few machines have, except on Windows; all it wants to know are digits.
set_source_files_properties("${microtex}/utils/utils.cpp" PROPERTIES COMPILE_DEFINITIONS __WIN32__)
set(canopy_maths_font_dir "${canopy_gui_dir}/external/imgui_rich_md/imgui_rich_md/assets/fonts/latex")

add_library(canopy_file_dialogs INTERFACE)
target_include_directories(canopy_file_dialogs SYSTEM INTERFACE
  "${canopy_gui_dir}/external/portable_file_dialogs/portable_file_dialogs")

set(canopy_imgui_sources imgui.cpp imgui_draw.cpp imgui_tables.cpp imgui_widgets.cpp imgui_demo.cpp backends/imgui_impl_glfw.cpp
                         backends/imgui_impl_vulkan.cpp misc/cpp/imgui_stdlib.cpp)
list(TRANSFORM canopy_imgui_sources PREPEND "${canopy_imgui_source_dir}/")
if(EXISTS "${canopy_imgui_source_dir}/imgui_stacklayout.cpp") # an addition of imgui-bundle that its imgui.h relies on
  list(APPEND canopy_imgui_sources "${canopy_imgui_source_dir}/imgui_stacklayout.cpp")
endif()
add_library(canopy_imgui_headers INTERFACE)
target_include_directories(canopy_imgui_headers SYSTEM INTERFACE
  "${canopy_imgui_source_dir}" "${canopy_imgui_source_dir}/backends" "${canopy_imgui_source_dir}/misc/cpp"
  "${PROJECT_SOURCE_DIR}/cmake/imgui_config")
target_compile_definitions(canopy_imgui_headers INTERFACE "IMGUI_USER_CONFIG=\"canopy_imconfig.h\"")
get_target_property(glfw_includes glfw INTERFACE_INCLUDE_DIRECTORIES)
if(glfw_includes)
  target_include_directories(canopy_imgui_headers SYSTEM INTERFACE ${glfw_includes})
endif()

if(WIN32)
  target_include_directories(canopy_imgui_headers SYSTEM INTERFACE "${CANOPY_WINDOWS_HEADERS}") # Vulkan's
endif()

set(implot "${canopy_gui_dir}/external/implot/implot")
canopy_third_party(canopy_implot
  SOURCES "${implot}/implot.cpp" "${implot}/implot_items.cpp"
  INCLUDES "${implot}" LINK canopy_imgui_headers)
# ImPlot instantiates its plotters for ten number types: more than a minute of compilation. Canopy plots this one,
# and at -O1, half the time of -O3; drawing is not bound by ImPlot's own loops.
target_compile_options(canopy_implot PRIVATE $<$<CONFIG:Release>:-O1>)
target_compile_definitions(canopy_implot PRIVATE "IMPLOT_CUSTOM_NUMERIC_TYPES=(double)")

set(md "${canopy_gui_dir}/external/imgui_rich_md/imgui_rich_md/imgui_rich_md")
canopy_third_party(canopy_rich_md
  SOURCES "${md}/rich_md.cpp" "${md}/narrative_programming.cpp" "${md}/internal/rich_md_renderer.cpp"
          "${md}/internal/rich_md_search.cpp" "${md}/third_party/stb_image_impl.cpp"
  INCLUDES "${md}" LINK canopy_imgui_headers canopy_md4c)

canopy_imgui_flavour("")
set(te "${canopy_gui_dir}/external/imgui_test_engine/imgui_test_engine/imgui_test_engine")
canopy_imgui_flavour(_test
  DEFINES CANOPY_IMGUI_TEST_ENGINE
  SOURCES "${te}/imgui_capture_tool.cpp" "${te}/imgui_te_context.cpp" "${te}/imgui_te_coroutine.cpp"
          "${te}/imgui_te_engine.cpp" "${te}/imgui_te_exporters.cpp" "${te}/imgui_te_perftool.cpp" "${te}/imgui_te_ui.cpp"
          "${te}/imgui_te_utils.cpp"
  INCLUDES "${te}")
