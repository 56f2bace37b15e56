// Statistics of a compiled kernel as the driver reports them (VK_KHR_pipeline_executable_properties).

#include "engine/vulkan/check.h"
#include "engine/vulkan/context.h"
#include "engine/vulkan/kernel.h"

namespace canopy::vk {
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
