#pragma once
// The SPIR-V embedded at build time: one entry per variant of each shaders/<name>.comp (cmake/CanopyShaders.cmake).

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace canopy::vk {

struct ShaderCode {
  std::string_view name;            // "matmul_uniform_q4_1": file name and variant
  std::span<const uint32_t> words;  // SPIR-V for Vulkan 1.3
  bool cooperative_matrix =
      false;  // `// needs: cooperative_matrix`: only for devices with DeviceFeatures' of that name
};

/// All shaders of the engine, sorted by name.
std::span<const ShaderCode> engine_shaders();

/// The modules of several files as one table, sorted by name: for the sources that cmake/CanopyShaders.cmake generates.
/// Throws bad_input if two have the same name.
std::vector<ShaderCode> merge_shaders(std::initializer_list<std::span<const ShaderCode>> files);

/// The one called `name` in a table sorted by name; throws bad_input, with similar names, if there is none.
const ShaderCode& find_shader(std::span<const ShaderCode> table, std::string_view name);
inline const ShaderCode& find_shader(std::string_view name) {
  return find_shader(engine_shaders(), name);
}

/// Identifies the code of all of the engine's shaders whose names begin with one of `prefixes`: files with measurements
/// of them are void when it changes.
std::string shaders_hash(std::initializer_list<std::string_view> prefixes);

/// Whether the engine has a shader of that name: for variants that a build may lack.
bool has_shader(std::string_view name);

}  // namespace canopy::vk
