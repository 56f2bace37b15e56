include_guard()

# The compiler and the tools of SPIR-V (CANOPY_GLSLANG, CANOPY_SPIRV_VAL, _AS, _DIS): the system's where they are as new as
# tools/dependencies.json asks ("unless" of shader-compiler: they must know cooperative matrices), otherwise the pinned ones.
function(canopy_find_shader_tools)
  set(fetch "${PROJECT_SOURCE_DIR}/tools/fetch_dependencies")
  set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
               "${PROJECT_SOURCE_DIR}/tools/dependencies.json" "${PROJECT_SOURCE_DIR}/tools/lib/debian_packages.py")
  file(READ "${PROJECT_SOURCE_DIR}/tools/dependencies.json" json)
  string(JSON least_glslang GET "${json}" shader-compiler unless glslangValidator)
  string(JSON least_spirv_val GET "${json}" shader-compiler unless spirv-val)
  if(NOT CANOPY_OFFLINE)
    execute_process(COMMAND "${fetch}" --only shader-compiler)
  endif()
  execute_process(COMMAND "${fetch}" --print-folder shader-compiler OUTPUT_VARIABLE pinned OUTPUT_STRIP_TRAILING_WHITESPACE)
  canopy_find_shader_tool(CANOPY_GLSLANG "${pinned}" ${least_glslang} "GLSL compiler; Debian: glslang-tools"
                          glslangValidator glslang)
  canopy_find_shader_tool(CANOPY_SPIRV_VAL "${pinned}" ${least_spirv_val} "SPIR-V validator; Debian: spirv-tools" spirv-val)
  canopy_find_shader_tool(CANOPY_SPIRV_AS "${pinned}" ${least_spirv_val} "SPIR-V assembler; Debian: spirv-tools" spirv-as)
  canopy_find_shader_tool(CANOPY_SPIRV_DIS "${pinned}" ${least_spirv_val} "SPIR-V disassembler; Debian: spirv-tools" spirv-dis)
endfunction()

# canopy_find_shader_tool(VARIABLE PINNED LEAST DOC NAME...): a tool of at least the major version LEAST.
function(canopy_find_shader_tool variable pinned least doc)
  if(${variable})
    canopy_major_version("${${variable}}" version)
    cmake_path(IS_PREFIX pinned "${${variable}}" is_pinned)
    if(version LESS least OR ("${${variable}}" MATCHES "/extracted/shader-compiler-" AND NOT is_pinned))
      unset(${variable} CACHE) # of an earlier configuration
    endif()
  endif()
  find_program(${variable} NAMES ${ARGN} PATHS "${pinned}/bin" NO_DEFAULT_PATH DOC "${doc}")
  find_program(${variable} NAMES ${ARGN} DOC "${doc}")
  canopy_major_version("${${variable}}" version)
  if(version LESS least)
    message(FATAL_ERROR "${variable} is ${${variable}} (version ${version}), too old for shaders with cooperative matrices: "
                        "version ${least} or later is needed. Run tools/fetch_dependencies with a network, or give the "
                        "path of a newer one with -D${variable}=PATH. (${doc})")
  endif()
endfunction()

# The first number of what `PROGRAM --version` says: 15 of "11:15.2.0", 2025 of "v2025.1"; 0 if it does not start.
function(canopy_major_version program out)
  set(${out} 0 PARENT_SCOPE)
  execute_process(COMMAND "${program}" --version OUTPUT_VARIABLE text ERROR_QUIET RESULT_VARIABLE status)
  if(status EQUAL 0 AND text MATCHES "[: v]([0-9]+)\\.[0-9]+")
    set(${out} ${CMAKE_MATCH_1} PARENT_SCOPE)
  endif()
endfunction()

find_package(Python3 REQUIRED COMPONENTS Interpreter)
canopy_find_shader_tools()

# canopy_shaders(TARGET TABLE name DIRECTORY dir)
# Compiles every dir/*.comp at build time (tools/compile_shader.py: variants, checks) and embeds the SPIR-V in TARGET.
# The table is the function `std::span<const ShaderCode> canopy::vk::name()`. Adding a file is enough; dir may be empty.
# dir/*.glsl and engine shaders/*.glsl are headers, found by #include.
function(canopy_shaders target)
  cmake_parse_arguments(ARG "" "TABLE;DIRECTORY" "" ${ARGN})
  set(tools "${PROJECT_SOURCE_DIR}/tools")
  set(output_dir "${CMAKE_CURRENT_BINARY_DIR}/${ARG_TABLE}")
  file(MAKE_DIRECTORY "${output_dir}")
  file(GLOB shaders CONFIGURE_DEPENDS "${ARG_DIRECTORY}/*.comp")

  set(as_array "")
  if(MSVC)
    set(as_array --as-array) # it has no .incbin
  endif()
  set(declarations "")
  set(entries "")
  foreach(shader IN LISTS shaders)
    get_filename_component(stem "${shader}" NAME_WE)
    set(output "${output_dir}/${stem}.cpp")
    add_custom_command(
      OUTPUT "${output}"
      COMMAND Python3::Interpreter "${tools}/compile_shader.py" --source "${shader}" --include "${ARG_DIRECTORY}"
              --include "${PROJECT_SOURCE_DIR}/shaders" --symbol "${ARG_TABLE}_${stem}" --output "${output}"
              --depfile "${output}.d" --glslang "${CANOPY_GLSLANG}" --spirv-val "${CANOPY_SPIRV_VAL}"
              ${as_array}
      DEPENDS "${shader}" "${tools}/compile_shader.py" "${tools}/check_spirv.py" "${tools}/shared_memory.py"
      DEPFILE "${output}.d"
      COMMENT "Compiling shader ${stem}"
      VERBATIM)
    target_sources(${target} PRIVATE "${output}")
    set_source_files_properties("${output}" PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    string(APPEND declarations "extern const std::span<const ShaderCode> ${ARG_TABLE}_${stem};\n")
    string(APPEND entries "      embedded::${ARG_TABLE}_${stem},\n")
  endforeach()
  file(CONFIGURE OUTPUT "${output_dir}/${ARG_TABLE}.cpp" CONTENT [[// Generated by cmake/CanopyShaders.cmake.
#include "engine/vulkan/kernel.h"

namespace canopy::vk {
namespace embedded {
@declarations@}  // namespace embedded

std::span<const ShaderCode> @ARG_TABLE@() {
  static const std::vector<ShaderCode> table = merge_shaders({
@entries@  });
  return table;
}

}  // namespace canopy::vk
]] @ONLY)
  target_sources(${target} PRIVATE "${output_dir}/${ARG_TABLE}.cpp")
endfunction()
