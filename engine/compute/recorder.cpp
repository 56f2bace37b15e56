#include <string>

#include "engine/base/error.h"
#include "engine/compute/device.h"

namespace canopy {

namespace {

uint32_t element_count(const RopeStoreArgs& heads) {
  return (heads.heads + 2 * heads.shape.kv_heads) * heads.shape.head_dim;
}

}  // namespace

void check_heads(const ProjectHeadsArgs& args) {
  uint64_t rows = 0;
  for (const Weight* weight : args.weights) rows += weight->rows();
  if (rows != element_count(args.heads)) {
    throw bad_input("The weights of the heads have " + std::to_string(rows) + " rows; " +
                    std::to_string(args.heads.heads) + " heads and twice " + std::to_string(args.heads.shape.kv_heads) +
                    " K/V heads of " + std::to_string(args.heads.shape.head_dim) + " elements need " +
                    std::to_string(element_count(args.heads)) + ".");
  }
}

void Recorder::project_heads(const ProjectHeadsArgs& args) {
  check_heads(args);
  uint32_t offset = 0;
  for (const Weight* weight : args.weights) {
    linear({.width = args.heads.width,
            .weight = weight,
            .in = args.in,
            .norm_eps = args.in_norm_eps,
            .out = args.qkv,
            .stride = element_count(args.heads),
            .offset = offset});
    offset += weight->rows();
  }
  rope_store(args.heads);
}

}  // namespace canopy
