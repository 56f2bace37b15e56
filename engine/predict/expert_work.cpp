#include "engine/predict/expert_work.h"

#include <algorithm>
#include <cmath>

namespace canopy::predict {
namespace {

// engine/vulkan/record_experts.cpp: rows of an expert and invocations of a workgroup, rows of a pass from which on
// those with the same expert are computed together.
constexpr double kTileRows = 64, kInvocations = 256;
constexpr uint32_t kGroupedWidth = 8;
constexpr double kBlockColumns = 32;  // of the weight, that an invocation has under way beside those it decodes
constexpr double kRegisters = 96;

}  // namespace

Work work_of_route(const RouteArgs& args) {
  Work work;
  const double router_rows = args.experts.router_rows(), router = 4.0 * router_rows * args.in->cols();
  work.memory_bytes = router;
  work.cache_bytes = router * (args.width - 1) + static_cast<double>(args.price().bytes) - router;
  work.lane_ops = static_cast<double>(args.price().flops);
  work.invocations = kTileRows;
  work.workgroups = std::ceil(router_rows / 4.0) * args.width;
  work.workgroups_reading_memory = std::ceil(router_rows / 4.0);
  work.steps = 2;  // logits, choice
  return work;
}

Work work_of_experts(const Weight& weight, const ExpertCounts& experts, uint32_t width) {
  const double touched = experts.touched(width), pairs = 1.0 * width * experts.used;
  const double rows = 1.0 * weight.rows() / experts.all, elements = rows * weight.cols();
  const double bytes = static_cast<double>(stored_bytes(weight)) / experts.all;
  const bool grouped = width >= kGroupedWidth;
  const double columns = !grouped ? 1 : pairs >= 8.0 * experts.all ? 8 : 4;
  const double tiles = grouped ? touched * std::ceil(pairs / touched / columns) : pairs;
  const double row_tiles = std::ceil(rows / kTileRows);
  const KernelRules rules = rules_of(Kernels::fma);

  Work work;
  work.memory_bytes = touched * bytes;
  work.cache_bytes = (tiles - touched) * bytes + 4 * pairs * row_tiles * weight.cols() + 4 * pairs * rows;
  work.workgroups = tiles * row_tiles;
  work.workgroups_reading_memory = touched * row_tiles;
  work.invocations = kInvocations / std::max(1.0, columns / 2);
  work.registers = kRegisters;
  work.bytes_in_flight = work.invocations * kBlockColumns * bytes / elements;
  work.lane_ops = elements * (tiles * decode_ops(Kernels::fma, weight.type()) + tiles * columns * rules.column_ops) +
                  tiles * columns * row_tiles * weight.cols() * rules.stage_ops;
  work.steps = grouped ? 2 : 1;
  return work;
}

}  // namespace canopy::predict
