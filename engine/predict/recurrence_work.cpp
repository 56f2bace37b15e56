#include "engine/predict/recurrence_work.h"

namespace canopy::predict {
namespace {

// shaders/delta_net.comp, kernels/recurrence.cu: columns of a state that a workgroup has, one of each invocation.
constexpr double kColumns = 32;
// Instructions for each element of the state and step: its decay, the products with key and query, the sum.
constexpr double kElementOps = 4;
// Accesses to the cache of a step that wait for each other: which row it is, then its key and query.
constexpr double kStepLatencies = 2;

}  // namespace

Work work_of_recurrence(const DeltaNetArgs& args) {
  const auto state = static_cast<double>(args.shape.state_elements());
  Work work;
  work.memory_bytes = 2 * state * sizeof(float);
  work.cache_bytes = static_cast<double>(args.price().bytes) - work.memory_bytes;
  work.lane_ops = kElementOps * args.width * state;
  work.invocations = kColumns;
  work.workgroups = args.shape.values() / kColumns;
  work.registers = args.shape.key_dim + 32.0;
  work.bytes_in_flight = kColumns * args.shape.key_dim * sizeof(float);  // a column is asked for at once
  work.tail_latencies = kStepLatencies * (args.width - 1.0);
  return work;
}

}  // namespace canopy::predict
