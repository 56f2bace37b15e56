#pragma once
// Compute pipelines: the embedded shaders they are made of, what the driver reports of them, and its pipeline cache
// on disk.

#include <volk.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/vulkan/spirv.h"

namespace canopy::vk {

// The SPIR-V embedded at build time: one entry per variant of each shaders/<name>.comp (cmake/CanopyShaders.cmake).

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

// The driver's pipeline cache kept on disk behind a header of our own: drivers have crashed on caches that were cut
// short or came from another version, so what they are given is exactly what they wrote.

/// The device and driver that wrote a cache; all of it must match.
struct CacheIdentity {
  std::array<uint8_t, 16> device_uuid{};
  std::array<uint8_t, 16> driver_uuid{};
  std::array<uint8_t, 16> cache_uuid{};  // VkPhysicalDeviceProperties::pipelineCacheUUID
  uint32_t vendor_id = 0;
  uint32_t device_id = 0;
  uint32_t driver_version = 0;
};

/// The content of a cache file: the driver's bytes, or none and the reason.
struct CacheFile {
  std::vector<std::byte> data;
  std::string note;  // why the file was not used; empty if it was, or if there is none
};

/// Caches larger than this are neither read nor written.
inline constexpr uint64_t max_cache_bytes = 256ull << 20;

/// Header and data as they are on disk.
std::vector<std::byte> pack_cache(const CacheIdentity& identity, std::span<const std::byte> data);
/// The data of a packed cache if everything about it checks out.
CacheFile unpack_cache(const CacheIdentity& identity, std::span<const std::byte> file);

/// Never throws: a cache that cannot be read is only a note.
CacheFile load_cache(const std::filesystem::path& path, const CacheIdentity& identity);
/// Writes beside, flushes, renames. Returns what went wrong, or an empty string.
std::string save_cache(const std::filesystem::path& path, const CacheIdentity& identity,
                       std::span<const std::byte> data);

// A compute pipeline ready to dispatch: one shader, its specialisation constants, its layout by reflection.

class Context;

/// The Vulkan word for a kind of binding.
VkDescriptorType descriptor_type(BindingType type);

struct KernelOptions {
  std::vector<SpecConstant> spec;
  /// Invocations a subgroup must have, or 0 for the driver's choice. Throws unavailable where the device cannot.
  uint32_t subgroup_size = 0;
};

/// Numbers of a driver that reports them (ContextOptions::pipeline_statistics), e.g. "VGPRs", "Spilled SGPRs".
struct KernelStatistic {
  std::string name;
  double value = 0;
};

/// The text of one stage of the driver's compiler, e.g. "ACO IR" or "Assembly".
struct KernelText {
  std::string name;
  std::string text;
};

/// Made and kept by Context::kernel; lives as long as the Context.
class Kernel {
 public:
  Kernel(Context& context, const ShaderCode& shader, const KernelOptions& options);
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  /// The name that a kernel of that shader and options has.
  static std::string describe(const ShaderCode& shader, const KernelOptions& options);

  /// Shader and constants, e.g. "copy[0=64,1=2]"; also the debug name of its Vulkan objects.
  const std::string& name() const { return name_; }
  VkPipeline pipeline() const { return pipeline_; }
  VkPipelineLayout layout() const { return layout_; }
  VkDescriptorSetLayout set_layout() const { return set_layout_; }
  const ShaderReflection& reflection() const { return reflection_; }
  /// Invocations of a workgroup along x, y, z, the constants applied.
  std::array<uint32_t, 3> local_size() const { return local_size_; }
  /// Empty unless asked for and reported.
  std::vector<KernelStatistic> statistics() const;
  std::vector<KernelText> internal_texts() const;

 private:
  void apply_options(const KernelOptions& options);
  void check_subgroup_size(const KernelOptions& options) const;
  void check_capabilities() const;
  void check_limits() const;
  void create_layouts();
  void create_pipeline(const ShaderCode& shader, const KernelOptions& options);
  void destroy();

  Context& context_;
  std::string name_;
  ShaderReflection reflection_;
  std::array<uint32_t, 3> local_size_ = {1, 1, 1};
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
};

}  // namespace canopy::vk
