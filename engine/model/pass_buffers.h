#pragma once
// Everything a pass works in besides weights and cache. W is at most limits.max_width, R at most limits.head_rows.

#include <memory>

#include "engine/compute/device.h"
#include "engine/format/model_config.h"
#include "engine/model/memory_plan.h"

namespace canopy {

struct PassBuffers {
  // Inputs, written before each run.
  std::unique_ptr<Buffer> rows;       // Row [W]
  std::unique_ptr<Buffer> ancestors;  // uint32 [W * (kMaxTreeDepth + 1)]
  std::unique_ptr<Buffer> head_rows;  // uint32 [W]: the rows whose head is wanted
  std::unique_ptr<Buffer>
      token_logit_pairs;          // uint32 [P, 2]: index into head_rows, token; P is limits.max_token_logits()
  std::unique_ptr<Buffer> moves;  // uint32 [kMaxKvMoves, 2]

  // Constant.
  std::unique_ptr<Buffer> rotation;  // [context, D/2, 2]

  // Activations.
  std::unique_ptr<Buffer> x;              // [W, H] residual stream
  std::unique_ptr<Buffer> qkv;            // [W, Q + 2K]
  std::unique_ptr<Buffer> q;              // [W, Q]
  std::unique_ptr<Activations> normed;    // [W, H]
  std::unique_ptr<Activations> attended;  // [W, Q]
  std::unique_ptr<Activations> gated;     // [W, F]
  std::unique_ptr<Activations> gathered;  // [R, H] the rows that the logits are at

  // Outputs.
  std::unique_ptr<Buffer> aux_hidden_states;  // [W, aux layers * H], null without aux layers
  std::unique_ptr<Buffer> logits;             // [R, V] of the rows that the head was computed for last
  std::unique_ptr<Buffer> best;               // uint32 [W, 2]: id and bits of its logit
  std::unique_ptr<Buffer> token_logits;       // [P] logits of the tokens of the pairs
  // What top_k gives with one candidate a row; only the sums are of use.
  std::unique_ptr<Buffer> likeliest;         // uint32 [W]
  std::unique_ptr<Buffer> likeliest_logits;  // [W]
  std::unique_ptr<Buffer> log_sum_exp;       // [W]
};

PassBuffers allocate_pass_buffers(Device& device, const ModelConfig& config, const ModelLimits& limits);

}  // namespace canopy
