#pragma once
// What the host must agree with in a compute shader's SPIR-V: bindings, push constants, specialisation constants.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace canopy::vk {

enum class BindingType { storage_buffer, uniform_buffer };

/// "storage buffer" …
std::string_view to_string(BindingType type);

struct ShaderBinding {
  uint32_t binding = 0;  // in set 0
  BindingType type = BindingType::storage_buffer;
  uint32_t count = 1;         // elements, if the binding is an array
  bool read_only = false;     // declared `readonly` (NonWritable)
  uint64_t static_bytes = 0;  // size of the block without a trailing run-time array; a binding must hold at least this
  std::string name;           // empty if the module carries no names
};

struct SpecConstant {
  uint32_t id = 0;     // constant_id in the shader
  uint32_t value = 0;  // the 32 bits, whatever its type; bit_cast a float; 0 or 1 for a bool
};

struct SpecConstantInfo {
  uint32_t id = 0;             // constant_id
  uint32_t default_value = 0;  // the bits of a 32-bit constant; 0 or 1 for a bool
  /// Declared more than once with different defaults, as glslang does with `local_size_x_id = 0` (default 1) beside
  /// `layout(constant_id = 0) const uint GROUP = 64`: the host must give it.
  bool ambiguous = false;
};

struct ShaderReflection {
  std::string entry_point;
  std::vector<uint32_t> capabilities;                       // SPIR-V's numbers, in the module's order
  std::vector<ShaderBinding> bindings;                      // by binding number
  uint32_t push_bytes = 0;                                  // size of the push-constant block, 0 without one
  std::vector<SpecConstantInfo> spec_constants;             // by id, each once
  std::array<uint32_t, 3> local_size = {1, 1, 1};           // with the defaults of the constants below
  std::array<std::optional<uint32_t>, 3> local_size_ids{};  // constant_id that sets each, if one does
  uint64_t shared_bytes = 0;  // workgroup memory, arrays sized by the constants given, or their defaults

  const ShaderBinding* find_binding(uint32_t binding) const;
  const SpecConstantInfo* find_spec_constant(uint32_t id) const;
};

/// `constants` are given instead of their defaults where they size arrays; what the host need not agree with is
/// ignored. Throws bad_input if `words` is not a well-formed compute module, uses a set other than 0, or a kind of
/// binding that BindingType lacks.
ShaderReflection reflect(std::span<const uint32_t> words, std::span<const SpecConstant> constants = {});

}  // namespace canopy::vk
