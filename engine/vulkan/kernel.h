#pragma once
// A compute pipeline ready to dispatch: one shader, its specialisation constants, its layout by reflection.

#include <volk.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/vulkan/shader_library.h"
#include "engine/vulkan/spirv_reflect.h"

namespace canopy::vk {

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
