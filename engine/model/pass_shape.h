#pragma once
// The shape of a pass: everything that its recording depends on.

#include <compare>
#include <cstdint>

namespace canopy {

/// The computation after the last layer.
enum class HeadOutput {
  none,     // only K/V (and aux hidden states): all of a prompt but its end
  argmax,   // id and value of each wanted row's largest logit
  logits,   // all logits of each wanted row; they stay on the device
  sampled,  // the token drawn after each wanted row, as ForwardInput::sampling says
};

/// The key of a recording; all else is read from buffers.
struct PassShape {
  uint32_t width = 0;
  uint32_t max_positions = 0;  // no row has more keys
  HeadOutput head = HeadOutput::none;
  uint32_t head_rows = 0;      // rows the head is computed for
  bool all_rows = false;       // these are all rows, in order
  bool probabilities = false;  // log_sum_exp of these rows
  uint32_t token_logits = 0;   // single logits that are wanted, rounded up
  bool random = false;         // of tokens that are drawn: not at temperature 0
  bool filtered = false;       // of these: with top-k or top-p
  uint32_t adjustments = 0;    // tokens whose logits are adjusted, rounded up; 0: none can be
  bool aux_hidden_states = false;
  bool recurrent = false;      // some layers are recurrences
  uint32_t expert_layers = 0;  // layers with experts, of which those are counted that rows touch
  bool head_only = false;      // of rows whose pass was before: width is that pass's
  auto operator<=>(const PassShape&) const = default;
};

}  // namespace canopy
