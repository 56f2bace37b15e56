#include "engine/vulkan/device_report_json.h"

namespace canopy::vk {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const MatrixShape& shape) {
  return {{"m", shape.m},
          {"n", shape.n},
          {"k", shape.k},
          {"a", to_string(shape.a)},
          {"b", to_string(shape.b)},
          {"c", to_string(shape.c)},
          {"result", to_string(shape.result)},
          {"scope", to_string(shape.scope)},
          {"saturating", shape.saturating}};
}

ordered_json to_json(const DeviceFeatures& features) {
  return {{"subgroup_size_control", features.subgroup_size_control},
          {"compute_full_subgroups", features.compute_full_subgroups},
          {"shader_float16", features.shader_float16},
          {"shader_int8", features.shader_int8},
          {"storage_16bit", features.storage_16bit},
          {"storage_8bit", features.storage_8bit},
          {"integer_dot_product", features.integer_dot_product},
          {"packed_dot_s8_accelerated", features.packed_dot_s8},
          {"packed_dot_u8_accelerated", features.packed_dot_u8},
          {"packed_dot_mixed_accelerated", features.packed_dot_mixed},
          {"bfloat16", features.bfloat16},
          {"bfloat16_matrix", features.bfloat16_matrix},
          {"cooperative_matrix", features.cooperative_matrix},
          {"pipeline_statistics", features.pipeline_statistics}};
}

ordered_json limits_json(const DeviceLimits& limits) {
  return {{"subgroup",
           {{"size", limits.subgroup_size},
            {"min", limits.min_subgroup_size},
            {"max", limits.max_subgroup_size},
            {"pinned", limits.pinned_subgroup}}},
          {"max_subgroups", limits.max_subgroups},
          {"max_invocations", limits.max_invocations},
          {"max_shared_bytes", limits.max_shared_bytes},
          {"max_storage_range", limits.max_storage_range},
          {"max_allocation", limits.max_allocation}};
}

}  // namespace

ordered_json to_json(const DeviceReport& report) {
  ordered_json shapes = ordered_json::array();
  for (const MatrixShape& shape : report.matrix_shapes) shapes.push_back(to_json(shape));
  return {{"name", report.name},
          {"type", to_string(report.type)},
          {"vendor", report.vendor},
          {"driver", report.driver_name},
          {"driver_version", report.driver_version},
          {"api_version", report.api_version},
          {"memory_bytes", report.memory_bytes},
          {"usable", report.usable},
          {"reason", report.reason},
          {"features", to_json(report.features)},
          {"limits", limits_json(report.limits)},
          {"matrix_shapes", shapes}};
}

}  // namespace canopy::vk
