#pragma once
// Ops as calls of kernels.

#include <memory>
#include <vector>

#include "cuda_backend/context.h"
#include "cuda_backend/kernels/params.h"
#include "cuda_backend/objects.h"
#include "cuda_backend/plan.h"
#include "engine/compute/ops.h"

namespace canopy::cuda {

/// Bytes of a matrix of floats. Throws bad_input where there is no such number.
uint64_t floats(uint64_t rows, uint64_t cols);

/// Memory that the calls of several recordings share: it only grows, and is not moved while a recording uses it.
class Scratch {
 public:
  explicit Scratch(Context& context) : context_(context) {}
  /// At least `bytes`, zeroed when it is made. Earlier addresses stay valid.
  Address at_least(uint64_t bytes, const char* name);

 private:
  Context& context_;
  std::vector<std::unique_ptr<Memory>> blocks_;  // ascending
};

/// Appends the calls of ops to a list.
class CallRecorder {
 public:
  CallRecorder(Context& context, const GpuLimits& limits, Scratch& partials, Scratch& counters, Scratch& head_counters,
               Scratch& attention, Scratch& moves, Scratch& groups, std::vector<std::unique_ptr<Memory>>& tables)
      : context_(context),
        limits_(limits),
        partials_(partials),
        counters_(counters),
        head_counters_(head_counters),
        attention_(attention),
        moves_(moves),
        groups_memory_(groups),
        tables_(tables) {}

  /// Throws bad_input where the arguments do not fit each other, and for an op without kernels.
  void record(const Op& op);
  std::vector<KernelCall> calls;
  /// What the calls read of memory that the host fills for every pass (Memory::source).
  std::vector<const CudaBuffer*> inputs;

 private:
  /// Pairs of a row and an expert, grouped by the expert.
  struct Groups {
    Address chosen = 0;
    uint32_t pairs = 0, columns = 0, experts = 0;
    Address tiles = 0, order = 0;
    bool operator==(const Groups&) const = default;
  };
  /// Groups of `columns` pairs at most: those of the call before, or of a new one. None of one column.
  Groups groups_of(Address chosen, const ExpertCounts& experts, uint32_t pairs, uint32_t columns);

  /// The activations as kernels take them. Throws bad_input, naming them, where they have other columns or no room for
  /// so many rows.
  static ActivationsParams rows_of(const Activations* activations, uint32_t width, uint32_t cols, const char* what);
  /// The address of a buffer that holds at least `bytes`; 0 for null where that is allowed.
  Address at(const Buffer* buffer, uint64_t bytes, const char* what, bool optional = false);
  void add(const EmbedArgs& args);
  void add(const LinearArgs& args);
  void add(const LinearAddArgs& args);
  void add(const LinearSwigluArgs& args);
  void add(const RouteArgs& args);
  void add(const CountExpertsArgs& args);
  void add(const ExpertSwigluArgs& args);
  void add(const ExpertAddArgs& args);
  void add(const AddBiasArgs& args);
  void add(const NormAddArgs& args);
  void add(const CapLogitsArgs& args);
  void add(const ConvRowsArgs& args);
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
  void add(const GateInputsArgs& args);
  void add(const SquareReluArgs& args);
  void add(const ShortConvArgs& args);
  /// What `kind` needs is in params; the second weight may be null.
  void product(ProductParams params, const CudaWeight& first, const CudaWeight* second, const Activations* in,
               uint32_t width, float eps);
  /// Of each pair of a row and an expert that it has chosen; `product` says what is done with the sums.
  void product_of_experts(ProductParams product, const Weight* weight, const Activations* in, uint32_t in_rows,
                          const Buffer* chosen, const ExpertCounts& experts, uint32_t pairs, const Buffer* bias,
                          float limit);
  RopeStoreParams heads_of(const RopeStoreArgs& args);

  Context& context_;
  const GpuLimits limits_;
  Scratch &partials_, &counters_, &head_counters_, &attention_, &moves_, &groups_memory_;
  Groups groups_;                                 // the last that were made of what is still chosen
  std::vector<std::unique_ptr<Memory>>& tables_;  // that a recording owns
};

}  // namespace canopy::cuda
