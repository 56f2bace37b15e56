#pragma once
// Ops as steps of a team. steps.cpp has rows of activations, products and logits; steps_attention.cpp heads, attention
// and moves in caches; steps_experts.cpp mixtures; steps_recurrence.cpp gated delta nets and short convolutions.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/compute/ops.h"
#include "engine/cpu/objects.h"
#include "engine/cpu/team.h"

namespace canopy::cpu {

/// What a list of ops is compiled to.
struct Plan {
  std::vector<Step> steps;
  uint64_t scratch_floats = 0;  // of each thread
  uint64_t common_floats = 0;   // of all together
};

/// Appends the steps of an op. Throws bad_input where its arguments do not fit each other.
void add_steps(const Op& op, const Kernels& kernels, uint32_t threads, Plan& plan);

/// Bytes that attention hands from one step to the next at most (Device::attention_bytes).
uint64_t attention_bytes(const KvShape& shape, uint32_t heads, uint32_t max_width, uint32_t max_positions);

// ---- for the files of steps ---------------------------------------------------------------------------------------

// Rows whose results stand in scratch memory before they are stored.
inline constexpr uint32_t kRowsAtOnce = 64;
// So many times each thread takes its share of a step, so that a slow core can be left behind.
inline constexpr uint32_t kTakesOfThread = 6;

inline uint32_t blocks_of(uint32_t cols) {
  return (cols + kBlock - 1) / kBlock;
}

class Compiler {
 public:
  Compiler(const Kernels& kernels, uint32_t threads, Plan& plan) : k_(kernels), threads_(threads), plan_(plan) {}

  void add(const EmbedArgs& args);
  void add(const LinearArgs& args);
  void add(const LinearAddArgs& args);
  void add(const LinearSwigluArgs& args);
  void add(const RouteArgs& args);
  void add(const ExpertSwigluArgs& args);
  void add(const ExpertAddArgs& args);
  void add(const AddBiasArgs& args);
  void add(const RopeStoreArgs& args);
  void add(const ProjectHeadsArgs& args);
  void add(const AttentionArgs& args);
  void add(const SelectArgs& args);
  void add(const ArgmaxArgs& args);
  void add(const TopKArgs& args);
  void add(const SampleArgs& args);
  void add(const PickArgs& args);
  void add(const CopyRowsArgs& args);
  void add(const NormRowsArgs& args);
  void add(const KvMoveArgs& args);
  void add(const DeltaInputsArgs& args);
  void add(const DeltaNetArgs& args);
  void add(const GatedNormArgs& args);
  void add(const GateArgs& args);
  void add(const NormAddArgs& args);
  void add(const CapLogitsArgs& args);
  void add(const CountExpertsArgs& args);
  void add(const ConvRowsArgs& args);
  void add(const GateInputsArgs& args);
  void add(const SquareReluArgs& args);
  void add(const ShortConvArgs& args);

 private:
  /// A step whose units [first, end) are done by work(worker, first, end), each thread taking several at a time.
  template <class Work>
  void step(uint32_t units, Work work, uint64_t scratch_floats = 0) {
    const uint32_t most = std::max(1u, units / (threads_ * kTakesOfThread));
    plan_.scratch_floats = std::max(plan_.scratch_floats, scratch_floats);
    plan_.steps.push_back({[units, most, work = std::move(work)](Worker& worker) {
                             uint32_t first = 0, end = 0;
                             while (worker.next(units, most, first, end)) work(worker, first, end);
                           },
                           false});
  }
  /// The same, each unit by itself.
  template <class Work>
  void step_of_each(uint32_t units, Work work, uint64_t scratch_floats = 0) {
    step(
        units,
        [work = std::move(work)](Worker& worker, uint32_t first, uint32_t end) {
          for (uint32_t unit = first; unit < end; ++unit) work(worker, unit);
        },
        scratch_floats);
  }
  /// Memory that all threads have in common, from one step of an op to its next (Worker::common).
  void reserve_common(uint64_t floats) { plan_.common_floats = std::max(plan_.common_floats, floats); }

  const Kernels& k_;
  uint32_t threads_;
  Plan& plan_;
};

/// Factors of the norm that stands before a product, for rows first ... first + count - 1; 1 where eps is 0.
void norm_factors(const RowsView& in, float eps, uint32_t first, uint32_t count, float* to);
/// In doubles, eight sums side by side.
double sum_of_squares(const float* x, uint32_t count);
/// Results of a paired weight, gate and up by turns, apart.
void split_pairs(const float* pairs, uint32_t count, float* gate, float* up);

/// Where a residual stream and what is derived of it go.
struct ResidualOut {
  RowsView out;
  const float* norm = nullptr;
  float* x = nullptr;  // [W, cols]
  float* aux = nullptr;
  uint32_t aux_stride = 0, aux_offset = 0;
  float aux_scale = 1;

  /// Stores a block of x, whose `count` values it has, and what follows of them.
  void store(const Kernels& k, uint32_t row, uint32_t block, const float* values, uint32_t count) const;
};

/// What an op with these names among its arguments stores of its rows.
template <class Args>
ResidualOut residual_out(const Args& args, uint32_t cols, const std::string& op) {
  ResidualOut to;
  to.out = rows_of(args.out, args.width, cols, op + ": out");
  to.norm = elements(args.norm.weight, cols, op + ": norm weight");
  to.x = elements(args.x, uint64_t{args.width} * cols, op + ": x");
  if constexpr (requires { args.aux; }) {
    if (args.aux == nullptr) return to;
    require(uint64_t{args.aux_offset} + cols <= args.aux_stride, op + ": aux offset + columns exceed its stride.");
    to.aux = elements(args.aux, uint64_t{args.width} * args.aux_stride, op + ": aux");
    to.aux_stride = args.aux_stride;
    to.aux_offset = args.aux_offset;
  }
  return to;
}

}  // namespace canopy::cpu
