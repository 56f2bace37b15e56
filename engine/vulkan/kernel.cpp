#include "engine/vulkan/kernel.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <tuple>

#include "engine/vulkan/check.h"
#include "engine/vulkan/context.h"

namespace canopy::vk {

VkDescriptorType descriptor_type(BindingType type) {
  return type == BindingType::storage_buffer ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER : VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
}

namespace {

uint64_t descriptors_of(const ShaderReflection& reflection, BindingType type) {
  uint64_t count = 0;
  for (const ShaderBinding& binding : reflection.bindings) {
    count += binding.type == type ? binding.count : 0;
  }
  return count;
}

// Keeps a shader module only as long as the pipeline is being made.
class ShaderModule {
 public:
  ShaderModule(Context& context, const ShaderCode& shader) : context_(context) {
    VkShaderModuleCreateInfo info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    info.codeSize = shader.words.size_bytes();
    info.pCode = shader.words.data();
    context.check(vkCreateShaderModule(context.device(), &info, nullptr, &handle_), "Creating a shader module");
  }
  ~ShaderModule() { vkDestroyShaderModule(context_.device(), handle_, nullptr); }
  ShaderModule(const ShaderModule&) = delete;
  ShaderModule& operator=(const ShaderModule&) = delete;
  VkShaderModule handle() const { return handle_; }

 private:
  Context& context_;
  VkShaderModule handle_ = VK_NULL_HANDLE;
};

}  // namespace

std::string Kernel::describe(const ShaderCode& shader, const KernelOptions& options) {
  std::vector<SpecConstant> spec = options.spec;
  std::sort(spec.begin(), spec.end(), [](const SpecConstant& a, const SpecConstant& b) { return a.id < b.id; });
  std::string text(shader.name);
  for (size_t i = 0; i < spec.size(); ++i) {
    text += (i == 0 ? "[" : ",") + std::to_string(spec[i].id) + "=" + std::to_string(spec[i].value);
  }
  text += spec.empty() ? "" : "]";
  text += options.subgroup_size == 0 ? "" : "@" + std::to_string(options.subgroup_size);
  return text;
}

Kernel::Kernel(Context& context, const ShaderCode& shader, const KernelOptions& options)
    : context_(context), name_(describe(shader, options)) {
  try {
    reflection_ = reflect(shader.words, options.spec);
    apply_options(options);
    check_capabilities();
    check_limits();
    create_layouts();
    create_pipeline(shader, options);
  } catch (const Error& e) {
    destroy();
    throw e.within("Making the kernel " + name_);
  }
}

Kernel::~Kernel() {
  destroy();
}

void Kernel::destroy() {
  vkDestroyPipeline(context_.device(), pipeline_, nullptr);
  vkDestroyPipelineLayout(context_.device(), layout_, nullptr);
  vkDestroyDescriptorSetLayout(context_.device(), set_layout_, nullptr);
}

void Kernel::apply_options(const KernelOptions& options) {
  local_size_ = reflection_.local_size;
  for (size_t i = 0; i < options.spec.size(); ++i) {
    const SpecConstant& constant = options.spec[i];
    if (reflection_.find_spec_constant(constant.id) == nullptr) {
      throw bad_input("The shader has no specialisation constant " + std::to_string(constant.id) + ".");
    }
    const auto same_id = [&](const SpecConstant& other) { return other.id == constant.id; };
    if (std::any_of(options.spec.begin(), options.spec.begin() + static_cast<std::ptrdiff_t>(i), same_id)) {
      throw bad_input("Specialisation constant " + std::to_string(constant.id) + " is given twice.");
    }
    for (size_t axis = 0; axis < 3; ++axis) {
      if (reflection_.local_size_ids[axis] == constant.id) {
        local_size_[axis] = constant.value;
      }
    }
  }
  for (const SpecConstantInfo& constant : reflection_.spec_constants) {
    const auto given = [&](const SpecConstant& other) { return other.id == constant.id; };
    if (constant.ambiguous && std::none_of(options.spec.begin(), options.spec.end(), given)) {
      throw bad_input("Specialisation constant " + std::to_string(constant.id) +
                      " has two different defaults in the shader, so it must be given.");
    }
  }
  check_subgroup_size(options);
}

void Kernel::check_subgroup_size(const KernelOptions& options) const {
  if (options.subgroup_size == 0) {
    return;
  }
  const DeviceLimits& limits = context_.limits();
  if (!context_.features().subgroup_size_control || !std::has_single_bit(options.subgroup_size) ||
      options.subgroup_size < limits.min_subgroup_size || options.subgroup_size > limits.max_subgroup_size) {
    throw Error(ErrorKind::unavailable, "A subgroup size of " + std::to_string(options.subgroup_size) +
                                            " cannot be had: the device " + context_.report().name + " offers " +
                                            std::to_string(limits.min_subgroup_size) + " to " +
                                            std::to_string(limits.max_subgroup_size) +
                                            (context_.features().subgroup_size_control ? "." : " and no choice."));
  }
}

// A shader that declares what the device was not opened with must not reach the driver.
void Kernel::check_capabilities() const {
  const DeviceFeatures& has = context_.features();
  const std::array optional = std::to_array<std::tuple<uint32_t, bool, const char*>>({
      {9, has.shader_float16, "16-bit floats"},
      {11, has.shader_int64, "64-bit integers"},
      {22, has.shader_int16, "16-bit integers"},
      {28, has.buffer_array_indexing, "arrays of uniform buffers"},
      {30, has.buffer_array_indexing, "arrays of storage buffers"},
      {39, has.shader_int8, "8-bit integers"},
      {4433, has.storage_16bit, "16-bit storage"},
      {4448, has.storage_8bit, "8-bit storage"},
      {5116, has.bfloat16, "bfloat16"},
      {5118, has.bfloat16_matrix, "cooperative matrices of bfloat16"},
      {5345, has.memory_model, "the Vulkan memory model"},
      {5346, has.memory_model_device_scope, "the Vulkan memory model across the device"},
      {6019, has.integer_dot_product, "integer dot products"},
      {6022, has.cooperative_matrix, "cooperative matrices"},
  });
  for (const uint32_t capability : reflection_.capabilities) {
    for (const auto& [number, present, what] : optional) {
      if (capability == number && !present) {
        throw Error(ErrorKind::unavailable, "The shader uses " + std::string(what) + ", which the device " +
                                                context_.report().name + " lacks.");
      }
    }
  }
}

void Kernel::check_limits() const {
  const DeviceLimits& limits = context_.limits();
  const auto require = [&](uint64_t actual, uint64_t allowed, const std::string& what) {
    if (actual > allowed) {
      throw Error(ErrorKind::unavailable, "The shader needs " + std::to_string(actual) + " " + what + ", the device " +
                                              context_.report().name + " allows " + std::to_string(allowed) + ".");
    }
  };
  uint64_t invocations = 1;
  for (size_t axis = 0; axis < 3; ++axis) {
    const std::string axis_name(1, "xyz"[axis]);
    if (local_size_[axis] == 0) {
      throw bad_input("The workgroup has size 0 along " + axis_name + ".");
    }
    require(local_size_[axis], limits.max_group_size[axis], "invocations of a workgroup along " + axis_name);
    invocations *= local_size_[axis];
  }
  require(invocations, limits.max_invocations, "invocations in a workgroup");
  require(reflection_.shared_bytes, limits.max_shared_bytes, "bytes of shared memory");
  require(reflection_.push_bytes, limits.max_push_bytes, "bytes of push constants");
  require(descriptors_of(reflection_, BindingType::storage_buffer), limits.max_storage_buffers, "storage buffers");
  require(descriptors_of(reflection_, BindingType::uniform_buffer), limits.max_uniform_buffers, "uniform buffers");
}

void Kernel::create_layouts() {
  std::vector<VkDescriptorSetLayoutBinding> bindings;
  for (const ShaderBinding& binding : reflection_.bindings) {
    bindings.push_back({.binding = binding.binding,
                        .descriptorType = descriptor_type(binding.type),
                        .descriptorCount = binding.count,
                        .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                        .pImmutableSamplers = nullptr});
  }
  VkDescriptorSetLayoutCreateInfo set_info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  set_info.bindingCount = static_cast<uint32_t>(bindings.size());
  set_info.pBindings = bindings.data();
  context_.check(vkCreateDescriptorSetLayout(context_.device(), &set_info, nullptr, &set_layout_),
                 "Creating the descriptor set layout");

  const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, reflection_.push_bytes};
  VkPipelineLayoutCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  info.setLayoutCount = 1;
  info.pSetLayouts = &set_layout_;
  info.pushConstantRangeCount = reflection_.push_bytes == 0 ? 0 : 1;
  info.pPushConstantRanges = &push;
  context_.check(vkCreatePipelineLayout(context_.device(), &info, nullptr, &layout_), "Creating the pipeline layout");
}

void Kernel::create_pipeline(const ShaderCode& shader, const KernelOptions& options) {
  const ShaderModule module(context_, shader);
  std::vector<VkSpecializationMapEntry> entries;
  for (size_t i = 0; i < options.spec.size(); ++i) {
    entries.push_back({.constantID = options.spec[i].id,
                       .offset = static_cast<uint32_t>(i * sizeof(SpecConstant) + offsetof(SpecConstant, value)),
                       .size = sizeof(uint32_t)});
  }
  VkSpecializationInfo specialization{};
  specialization.mapEntryCount = static_cast<uint32_t>(entries.size());
  specialization.pMapEntries = entries.data();
  specialization.dataSize = options.spec.size() * sizeof(SpecConstant);
  specialization.pData = options.spec.data();
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup{
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
  subgroup.requiredSubgroupSize = options.subgroup_size;

  VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module.handle();
  info.stage.pName = reflection_.entry_point.c_str();
  info.stage.pSpecializationInfo = entries.empty() ? nullptr : &specialization;
  if (options.subgroup_size != 0) {
    info.stage.pNext = &subgroup;
    if (context_.features().compute_full_subgroups && local_size_[0] % options.subgroup_size == 0) {
      info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    }
  }
  if (context_.features().pipeline_statistics) {
    info.flags =
        VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR | VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR;
  }
  info.layout = layout_;
  const VkResult result =
      vkCreateComputePipelines(context_.device(), context_.pipeline_cache(), 1, &info, nullptr, &pipeline_);
  // What drivers return for a shader that they cannot compile says nothing of the caller's arguments.
  if (result == VK_ERROR_UNKNOWN || result == VK_ERROR_INVALID_SHADER_NV) {
    throw Error(ErrorKind::unavailable,
                "Compiling the pipeline failed: the driver cannot compile this kernel (" + result_name(result) + ").");
  }
  context_.check(result, "Compiling the pipeline");
  context_.name_object(VK_OBJECT_TYPE_PIPELINE, reinterpret_cast<uint64_t>(pipeline_), name_);
  context_.name_object(VK_OBJECT_TYPE_PIPELINE_LAYOUT, reinterpret_cast<uint64_t>(layout_), name_);
}

}  // namespace canopy::vk
