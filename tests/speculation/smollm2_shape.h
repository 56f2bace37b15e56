#pragma once
// The shape of a real model, SmolLM2-135M, for tests that count work.

#include "engine/speculation/roofline.h"

namespace canopy::test {

inline ModelShape smollm2_shape() {
  ModelShape shape;
  shape.layers = 30;
  shape.hidden = 576;
  shape.query_heads = 9;
  shape.kv_heads = 3;
  shape.head_dim = 64;
  shape.ffn = 1536;
  shape.vocab = 49152;
  return shape;
}

}  // namespace canopy::test
