// Calls of the kernels of recurrent layers.

#include <cmath>
#include <string>

#include "cuda_backend/record.h"
#include "engine/base/error.h"

namespace canopy::cuda {
namespace {

DeltaShapeParams params_of(const DeltaShape& shape, uint32_t width, const char* op) {
  check_delta_shape(shape, op);
  if (width == 0) throw bad_input(std::string(op) + " is asked for no steps; allowed: 1 or more.");
  return {shape.row_elements(), shape.channels(), shape.key_heads, shape.value_heads,
          shape.key_dim,        shape.value_dim,  shape.taps,      shape.tiled ? 1u : 0u};
}

}  // namespace

void CallRecorder::add(const DeltaInputsArgs& args) {
  const DeltaShape& shape = args.shape;
  DeltaInputsParams p;
  p.shape = params_of(shape, args.width, "delta_inputs");
  p.in = at(args.in, floats(args.rows, shape.row_elements()), "The inputs of a recurrence");
  p.out = at(args.out, floats(args.rows, shape.row_elements()), "The prepared inputs of a recurrence");
  p.steps = at(args.steps, uint64_t{args.width} * sizeof(DeltaStep), "The steps of a recurrence");
  p.taps = at(args.taps, floats(shape.channels(), shape.taps), "The taps of a convolution");
  p.bias = at(args.bias, floats(1, shape.value_heads), "The bias of decays");
  p.rate = at(args.rate, floats(1, shape.value_heads), "The rates of decays");
  p.tails = at(args.tails, floats(1, shape.tail_elements()), "The tails of texts");
  p.query_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(shape.key_dim)));
  p.eps = DeltaInputsArgs::kEps;
  calls.push_back(call_of("delta_inputs", p, 32, 2 * shape.key_heads + shape.value_heads + 1, args.width));
}

void CallRecorder::add(const DeltaNetArgs& args) {
  const DeltaShape& shape = args.shape;
  DeltaNetParams p;
  p.shape = params_of(shape, args.width, "delta_net");
  p.in = at(args.in, floats(args.rows, shape.row_elements()), "The prepared inputs of a recurrence");
  p.out = at(args.out, floats(args.rows, shape.values()), "What a recurrence gives", true);
  p.steps = at(args.steps, uint64_t{args.width} * sizeof(DeltaStep), "The steps of a recurrence");
  p.states = at(args.states, floats(1, shape.state_elements()), "The states of texts");
  p.spare = at(args.spare, floats(1, shape.state_elements()), "The states that are put aside");
  p.step_count = args.width;
  static_assert(kMostKeyDim == DeltaShape::kMostKeyDim);
  calls.push_back(call_of("delta_net", p, kStateColumns * kColumnLanes,
                          (shape.value_dim + kStateColumns - 1) / kStateColumns, shape.value_heads));
}

void CallRecorder::add(const GatedNormArgs& args) {
  const uint32_t cols = args.heads * args.head_dim;
  GatedNormParams p;
  p.in = at(args.in, floats(args.width, cols), "The rows of a gated norm");
  p.gate = at(args.gate, floats(args.width, cols), "The gates of a norm");
  p.weight = at(args.weight, floats(1, args.head_dim), "The weight of a gated norm");
  p.out = rows_of(args.out, args.width, cols, "The activations of a gated norm");
  p.head_dim = args.head_dim;
  p.eps = args.eps;
  calls.push_back(call_of("gated_norm", p, 32, args.heads, args.width));
}

void CallRecorder::add(const GateArgs& args) {
  const uint32_t cols = own<CudaActivations>(args.x, "The gated activations").cols();
  GateParams p;
  p.x = rows_of(args.x, args.width, cols, "The gated activations");
  p.gate = at(args.gate, floats(args.width, cols), "The gates of activations");
  calls.push_back(call_of("gate", p, 128, args.width));
}

}  // namespace canopy::cuda
