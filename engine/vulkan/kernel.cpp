#include "engine/vulkan/kernel.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <system_error>
#include <tuple>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/vulkan/context.h"
#include "engine/vulkan/instance.h"

namespace canopy::vk {
namespace {

const ShaderCode* lookup(std::span<const ShaderCode> table, std::string_view name) {
  const auto found = std::lower_bound(table.begin(), table.end(), name,
                                      [](const ShaderCode& code, std::string_view key) { return code.name < key; });
  return found != table.end() && found->name == name ? &*found : nullptr;
}

// Names that begin like the one asked for, up to its first underscore: usually the other variants.
std::string similar_names(std::span<const ShaderCode> table, std::string_view name) {
  const std::string_view stem = name.substr(0, name.find('_'));
  std::string names;
  for (const ShaderCode& code : table) {
    if (code.name.starts_with(stem)) {
      names += (names.empty() ? "" : ", ") + std::string(code.name);
    }
  }
  return names;
}

}  // namespace

std::vector<ShaderCode> merge_shaders(std::initializer_list<std::span<const ShaderCode>> files) {
  std::vector<ShaderCode> table;
  for (const std::span<const ShaderCode> file : files) {
    table.insert(table.end(), file.begin(), file.end());
  }
  std::sort(table.begin(), table.end(), [](const ShaderCode& a, const ShaderCode& b) { return a.name < b.name; });
  const auto twin = std::adjacent_find(table.begin(), table.end(),
                                       [](const ShaderCode& a, const ShaderCode& b) { return a.name == b.name; });
  if (twin != table.end()) {
    throw bad_input("Two shaders are called \"" + std::string(twin->name) + "\".");
  }
  return table;
}

const ShaderCode& find_shader(std::span<const ShaderCode> table, std::string_view name) {
  if (const ShaderCode* code = lookup(table, name)) {
    return *code;
  }
  const std::string similar = similar_names(table, name);
  throw bad_input("There is no shader \"" + std::string(name) + "\" among the " + std::to_string(table.size()) +
                  " in this build" + (similar.empty() ? "." : "; similar ones are " + similar + "."));
}

bool has_shader(std::string_view name) {
  return lookup(engine_shaders(), name) != nullptr;
}

std::string shaders_hash(std::initializer_list<std::string_view> prefixes) {
  std::string hashes;
  for (const ShaderCode& code : engine_shaders()) {
    const bool wanted = std::any_of(prefixes.begin(), prefixes.end(),
                                    [&](std::string_view prefix) { return code.name.starts_with(prefix); });
    if (wanted) hashes += damage_hash_text({reinterpret_cast<const char*>(code.words.data()), code.words.size_bytes()});
  }
  return damage_hash_text(hashes);
}

namespace {

constexpr std::array<char, 8> cache_magic = {'C', 'N', 'P', 'Y', 'V', 'K', 'P', 'C'};
constexpr uint32_t cache_version = 1;

// On disk, in the byte order of the machine: a cache never leaves it, and one that did is of another device.
struct Header {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t vendor_id;
  uint32_t device_id;
  uint32_t driver_version;
  std::array<uint8_t, 16> device_uuid;
  std::array<uint8_t, 16> driver_uuid;
  std::array<uint8_t, 16> cache_uuid;
  uint64_t data_bytes;
  uint64_t data_hash;
};
static_assert(sizeof(Header) == 88 && std::is_trivially_copyable_v<Header>);

CacheFile refused(const std::string& why) {
  return {.data = {}, .note = "The pipeline cache was ignored: " + why + "."};
}

}  // namespace

std::vector<std::byte> pack_cache(const CacheIdentity& identity, std::span<const std::byte> data) {
  const Header header{.magic = cache_magic,
                      .version = cache_version,
                      .vendor_id = identity.vendor_id,
                      .device_id = identity.device_id,
                      .driver_version = identity.driver_version,
                      .device_uuid = identity.device_uuid,
                      .driver_uuid = identity.driver_uuid,
                      .cache_uuid = identity.cache_uuid,
                      .data_bytes = data.size(),
                      .data_hash = damage_hash(data)};
  std::vector<std::byte> file(sizeof header + data.size());
  std::memcpy(file.data(), &header, sizeof header);
  if (!data.empty()) {
    std::memcpy(file.data() + sizeof header, data.data(), data.size());
  }
  return file;
}

CacheFile unpack_cache(const CacheIdentity& identity, std::span<const std::byte> file) {
  Header header{};
  if (file.size() < sizeof header) {
    return refused("the file has " + std::to_string(file.size()) + " bytes, its header alone has " +
                   std::to_string(sizeof header));
  }
  std::memcpy(&header, file.data(), sizeof header);
  const std::span<const std::byte> data = file.subspan(sizeof header);
  if (header.magic != cache_magic) {
    return refused("the file is not a pipeline cache");
  }
  if (header.version != cache_version) {
    return refused("its format is version " + std::to_string(header.version) + ", this program reads version " +
                   std::to_string(cache_version));
  }
  if (header.vendor_id != identity.vendor_id || header.device_id != identity.device_id ||
      header.device_uuid != identity.device_uuid) {
    return refused("it was written for another device");
  }
  if (header.driver_version != identity.driver_version || header.driver_uuid != identity.driver_uuid ||
      header.cache_uuid != identity.cache_uuid) {
    return refused("it was written by another version of the driver");
  }
  if (header.data_bytes != data.size()) {
    return refused("it should hold " + std::to_string(header.data_bytes) + " bytes of data and holds " +
                   std::to_string(data.size()));
  }
  if (header.data_hash != damage_hash(data)) {
    return refused("its data is damaged (the hash differs)");
  }
  return {.data = std::vector<std::byte>(data.begin(), data.end()), .note = ""};
}

CacheFile load_cache(const std::filesystem::path& path, const CacheIdentity& identity) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    return {};
  }
  if (error || status.type() != std::filesystem::file_type::regular) {
    return refused("\"" + path.string() + "\" is not a readable file");
  }
  const uint64_t bytes = std::filesystem::file_size(path, error);
  if (error || bytes > max_cache_bytes) {
    return refused("the file has " + std::to_string(bytes) + " bytes, at most " + std::to_string(max_cache_bytes) +
                   " are read");
  }
  std::vector<std::byte> file(bytes);
  std::ifstream stream(path, std::ios::binary);
  stream.read(reinterpret_cast<char*>(file.data()), static_cast<std::streamsize>(bytes));
  if (!stream) {
    return refused("\"" + path.string() + "\" cannot be read");
  }
  return unpack_cache(identity, file);
}

std::string save_cache(const std::filesystem::path& path, const CacheIdentity& identity,
                       std::span<const std::byte> data) {
  if (data.size() > max_cache_bytes) {
    return "The pipeline cache was not saved: it has " + std::to_string(data.size()) + " bytes, at most " +
           std::to_string(max_cache_bytes) + " are kept.";
  }
  try {
    if (path.has_parent_path()) {
      std::filesystem::create_directories(path.parent_path());
    }
    const std::vector<std::byte> file = pack_cache(identity, data);
    write_file_atomically(path, {reinterpret_cast<const char*>(file.data()), file.size()});
  } catch (const std::exception& e) {
    return std::string("The pipeline cache was not saved: ") + e.what();
  }
  return "";
}

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

// Statistics of a compiled kernel as the driver reports them (VK_KHR_pipeline_executable_properties).

namespace {

double statistic_value(const VkPipelineExecutableStatisticKHR& statistic) {
  switch (statistic.format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR: return statistic.value.b32 == VK_TRUE ? 1 : 0;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR: return static_cast<double>(statistic.value.i64);
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR: return static_cast<double>(statistic.value.u64);
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR: return statistic.value.f64;
    default: return 0;
  }
}

// A compute pipeline has one executable on every driver seen; were there more, the first is the main one.
VkPipelineExecutableInfoKHR first_executable(VkPipeline pipeline) {
  VkPipelineExecutableInfoKHR info{VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR};
  info.pipeline = pipeline;
  return info;
}

}  // namespace

std::vector<KernelStatistic> Kernel::statistics() const {
  std::vector<KernelStatistic> result;
  if (!context_.features().pipeline_statistics) {
    return result;
  }
  const VkPipelineExecutableInfoKHR info = first_executable(pipeline_);
  const std::string doing = "Reading the statistics of " + name_;
  uint32_t count = 0;
  context_.check(vkGetPipelineExecutableStatisticsKHR(context_.device(), &info, &count, nullptr), doing);
  std::vector<VkPipelineExecutableStatisticKHR> statistics(
      count, VkPipelineExecutableStatisticKHR{VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR});
  context_.check(vkGetPipelineExecutableStatisticsKHR(context_.device(), &info, &count, statistics.data()), doing);
  statistics.resize(count);
  for (const VkPipelineExecutableStatisticKHR& statistic : statistics) {
    result.push_back({statistic.name, statistic_value(statistic)});
  }
  return result;
}

std::vector<KernelText> Kernel::internal_texts() const {
  std::vector<KernelText> result;
  if (!context_.features().pipeline_statistics) {
    return result;
  }
  using Representation = VkPipelineExecutableInternalRepresentationKHR;
  const VkPipelineExecutableInfoKHR info = first_executable(pipeline_);
  const std::string doing = "Reading the assembly of " + name_;
  const VkDevice device = context_.device();
  uint32_t count = 0;
  context_.check(vkGetPipelineExecutableInternalRepresentationsKHR(device, &info, &count, nullptr), doing);
  std::vector<Representation> texts(count,
                                    Representation{VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR});
  // Once for the sizes, once for the texts.
  context_.check(vkGetPipelineExecutableInternalRepresentationsKHR(device, &info, &count, texts.data()), doing);
  std::vector<std::string> contents;
  for (const Representation& text : texts) {
    contents.emplace_back(text.dataSize, '\0');
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    texts[i].pData = contents[i].data();
  }
  context_.check(vkGetPipelineExecutableInternalRepresentationsKHR(device, &info, &count, texts.data()), doing);
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].isText == VK_TRUE) {
      result.push_back({texts[i].name, contents[i].c_str()});
    }
  }
  return result;
}

}  // namespace canopy::vk
