#pragma once
// The SPIR-V embedded at build time: one entry per variant of each shaders/<name>.comp (cmake/CanopyShaders.cmake).

#include <cstdint>
#include <span>
#include <string_view>

namespace canopy::vk {

struct ShaderCode {
  std::string_view name;            // "matmul_uniform_q4_1": file name and variant
  std::span<const uint32_t> words;  // SPIR-V for Vulkan 1.3
};

/// All shaders of the engine, sorted by name.
std::span<const ShaderCode> engine_shaders();

/// The one called `name` in a table sorted by name; throws bad_input, with similar names, if there is none.
const ShaderCode& find_shader(std::span<const ShaderCode> table, std::string_view name);
inline const ShaderCode& find_shader(std::string_view name) {
  return find_shader(engine_shaders(), name);
}

/// Whether the engine has a shader of that name: for variants that a build may lack.
bool has_shader(std::string_view name);

}  // namespace canopy::vk
