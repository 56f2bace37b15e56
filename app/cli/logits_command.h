#pragma once
// canopy-cli logits: the likeliest tokens after every position of a text, to compare with other programs. Hidden; for
// tools/bench_llamacpp.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <span>
#include <vector>

#include <nlohmann/json.hpp>

namespace canopy::cli {

// The likeliest tokens of a row of logits as JSON. Header-only and without the engine, as the measuring program of
// tools/llamacpp, which is linked with llama.cpp, uses it too.

/// The k largest logits (all if there are fewer), largest first, equal ones by the lower id: [[id, logit], ...].
inline nlohmann::ordered_json likeliest(std::span<const float> logits, uint32_t k) {
  std::vector<uint32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0u);
  const auto end = ids.begin() + std::min<std::ptrdiff_t>(k, std::ssize(ids));
  std::partial_sort(ids.begin(), end, ids.end(),
                    [&](uint32_t a, uint32_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  nlohmann::ordered_json top = nlohmann::ordered_json::array();
  for (auto id = ids.begin(); id != end; ++id) top.push_back({*id, logits[*id]});
  return top;
}

}  // namespace canopy::cli
