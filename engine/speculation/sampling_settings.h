#pragma once
// The sampling settings of a user. They apply in the order of design.md, section 2, step 4.

#include <cstdint>
#include <utility>
#include <vector>

namespace canopy {

struct SamplingSettings {
  float temperature = 0.0f;  // 0 = greedy; otherwise > 0 and finite
  uint32_t top_k = 0;        // 0 = off
  float top_p = 1.0f;        // (0, 1]
  float min_p = 0.0f;        // [0, 1)
  uint64_t seed = 0;
  float repetition_penalty = 1.0f;                     // > 0; 1 = off
  float presence_penalty = 0.0f;                       // [-2, 2]
  float frequency_penalty = 0.0f;                      // [-2, 2]
  std::vector<std::pair<uint32_t, float>> logit_bias;  // token id, added to its logit

  /// Greedy decoding with no bias or penalty: the argmax on the device is the answer.
  bool is_plain_greedy() const {
    return temperature == 0.0f && repetition_penalty == 1.0f && presence_penalty == 0.0f && frequency_penalty == 0.0f &&
           logit_bias.empty();
  }
};

/// Throws Error (bad_input) naming the field, its value and what is allowed.
void validate(const SamplingSettings& settings);

}  // namespace canopy
