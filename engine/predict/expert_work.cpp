#include "engine/predict/expert_work.h"

#include <algorithm>
#include <cmath>

#include "engine/predict/product_cut.h"

namespace canopy::predict {
namespace {

// engine/vulkan/record_experts.cpp: of multiply-adds, rows of an expert and invocations of a workgroup.
constexpr double kTileRows = 64, kInvocations = 256;
constexpr double kBlockColumns = 32;  // of the weight, that an invocation has under way beside those it decodes
constexpr double kRegisters = 96;

/// What both kinds of kernels do: `tiles` of up to `columns` pairs, each with `rows` rows of a workgroup.
struct TiledExperts {
  double rows, cols, bytes;  // of an expert
  double pairs, touched, tiles;
  double columns;

  TiledExperts(const Weight& weight, const vk::PairTiles& of)
      : rows(1.0 * weight.rows() / of.experts.all),
        cols(weight.cols()),
        bytes(static_cast<double>(stored_bytes(weight)) / of.experts.all),
        pairs(of.pairs()),
        touched(of.experts.touched(of.width)),
        tiles(of.grouped ? touched * std::ceil(pairs / touched / of.columns) : pairs),
        columns(of.columns) {}

  double elements() const { return rows * cols; }
  Work work(double tile_rows) const {
    const double row_tiles = std::ceil(rows / tile_rows);
    Work work;
    work.memory_bytes = touched * bytes;
    work.cache_bytes = (tiles - touched) * bytes + 4 * pairs * row_tiles * cols + 4 * pairs * rows;
    work.workgroups = tiles * row_tiles;
    work.workgroups_reading_memory = touched * row_tiles;
    work.steps = 1;
    return work;
  }
};

Work work_of_multiply_adds(const Weight& weight, const vk::PairTiles& tiles) {
  const TiledExperts all(weight, tiles);
  const KernelRules rules = rules_of(Kernels::fma);
  Work work = all.work(kTileRows);
  work.invocations = kInvocations / std::max(1.0, all.columns / 2);
  work.registers = kRegisters;
  work.bytes_in_flight = work.invocations * kBlockColumns * all.bytes / all.elements();
  work.lane_ops =
      all.elements() * all.tiles * (decode_ops(Kernels::fma, weight.type()) + all.columns * rules.column_ops) +
      all.tiles * all.columns * std::ceil(all.rows / kTileRows) * all.cols * rules.stage_ops;
  return work;
}

/// A tile's matrices have all their columns, whatever pairs are there.
Work work_on_matrix_cores(const Weight& weight, const ExpertCut& of) {
  const TiledExperts all(weight, of.tiles);
  const ProductCut& cut = of.cut;
  const KernelRules rules = rules_of(Kernels::matrix);
  Work work = all.work(cut.rows);
  work.invocations = cut.invocations;
  work.shared_bytes = cut.shared_bytes;
  work.registers = rules.registers;
  const double columns_in_flight = cut.columns_in_flight - (1 - rules.loading) * cut.step;
  work.bytes_in_flight = cut.rows * columns_in_flight * all.bytes / all.elements();
  work.lane_ops = all.elements() * all.tiles * decode_ops(Kernels::matrix, weight.type()) +
                  std::ceil(all.rows / cut.rows) * all.pairs * all.cols * rules.stage_ops;
  work.matrix_flops = 2 * all.elements() * all.tiles * cut.columns;
  return work;
}

}  // namespace

Work work_of_route(const RouteArgs& args, const RouteKernel& kernel) {
  const double router_rows = args.experts.router_rows(), cols = args.in->cols(), router = 4 * router_rows * cols;
  const double groups = std::ceil(router_rows / kernel.experts);
  Work work;
  work.memory_bytes = router;
  work.cache_bytes = router * (args.width - 1) + static_cast<double>(args.price().bytes) - router;
  work.lane_ops = static_cast<double>(args.price().flops);
  work.invocations = kernel.invocations;
  work.workgroups = groups * args.width;
  work.workgroups_reading_memory = groups;
  work.bytes_in_flight = 4 * kernel.experts * std::min(kernel.columns_in_flight, cols);
  work.steps = kernel.steps;
  return work;
}

Work work_of_experts(const Weight& weight, const ExpertCounts& experts, uint32_t width, const KernelRules& rules,
                     const DeviceProfile& device) {
  const ExpertCut cut = cut_of_experts(weight, experts, width, rules.matrix_cores, device);
  return rules.matrix_cores ? work_on_matrix_cores(weight, cut) : work_of_multiply_adds(weight, cut.tiles);
}

}  // namespace canopy::predict
