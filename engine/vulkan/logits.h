#pragma once
// Records what is read off logits in several steps: the k largest of each row, and the token that is drawn.

#include <cstdint>

#include "engine/compute/ops.h"
#include "engine/vulkan/command_list.h"

namespace canopy::vk {

// The op top_k: two dispatches for any width, without a download.

/// Bytes of TopKBindings::scratch.
uint64_t top_k_scratch_bytes(uint32_t width, uint32_t vocab, uint32_t k);

struct TopKBindings {
  Binding logits;       // f32 [width, vocab]
  Binding ids;          // uint32 [first_out + width, k]
  Binding values;       // f32 [first_out + width, k]
  Binding log_sum_exp;  // f32 [first_out + width]
  Binding scratch;      // top_k_scratch_bytes; nothing need be in it, nothing useful stays in it
  uint32_t width = 0;
  uint32_t vocab = 0;
  uint32_t k = 0;      // 1 ... min(kMaxTopK, vocab)
  uint32_t lanes = 0;  // invocations of the second step's workgroup, 64, 128 or 256; 0: what suits the device
  uint32_t first_out = 0;
  float multiplier = 1;
  float softcap = 0;
};

/// Per row: the k largest logits, largest first, ties by the lowest id, with their ids; and log sum exp of the row.
/// A row's results depend on no other row and not on the width, bit for bit. NaN loses to every number (where a row has
/// fewer than k numbers, NaNs fill the end, lowest id first) and adds nothing to the sum.
/// Records the barrier between its own dispatches; those before and after are the caller's.
/// Throws bad_input for a k, a vocabulary, a buffer, a multiplier or a softcap that does not fit.
void record_top_k(Context& context, CommandList& list, const TopKBindings& bindings);

}  // namespace canopy::vk
