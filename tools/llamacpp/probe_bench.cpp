#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "probe.h"

namespace canopy::peer {
namespace {

using nlohmann::ordered_json;

ordered_json medians(std::map<uint32_t, std::vector<double>>& times) {
  ordered_json object = ordered_json::object();
  for (auto& [key, values] : times) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::ranges::nth_element(values, middle);
    object[std::to_string(key)] = *middle;
  }
  return object;
}

class Bench {
 public:
  explicit Bench(const BenchOptions& options) : options_(options), peer_(options.peer) {}

  ordered_json header() const {
    return {{"backend", options_.peer.backend == Backend::cpu ? "cpu" : "vulkan"},
            {"device", peer_.device()},
            {"threads", peer_.threads()}};
  }

  ordered_json round(uint32_t decode_tokens, uint32_t repeats) {
    std::map<uint32_t, std::vector<double>> prompts, passes;
    for (const uint32_t length : options_.prefill_tokens) {
      for (uint32_t i = 0; i < repeats; ++i) prompts[length].push_back(fill(length));
    }
    fill(options_.at);
    for (uint32_t i = 0; i < repeats; ++i) {
      for (const uint32_t width : options_.widths) passes[width].push_back(pass(width));
    }
    ordered_json result;
    result["prefill_ms"] = medians(prompts);
    result["pass_ms"] = medians(passes);
    result["decode_ms"] = decode(decode_tokens);
    return result;
  }

 private:
  /// Any token that is not special: the time of a pass does not depend on it.
  int32_t token(uint32_t position) const {
    return static_cast<int32_t>((uint64_t{position} * 7919 + 13) % peer_.vocab());
  }

  /// Computes rows at positions first ... first + count - 1 in one call. Returns milliseconds.
  double append(uint32_t first, uint32_t count, Outputs outputs) {
    std::vector<int32_t> ids;
    for (uint32_t i = 0; i < count; ++i) ids.push_back(token(first + i));
    return timed(ids, first, outputs);
  }

  double timed(const std::vector<int32_t>& ids, uint32_t first, Outputs outputs) {
    const auto start = std::chrono::steady_clock::now();
    peer_.append(ids, first, outputs);
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }

  /// Reads a prompt of `count` tokens into an empty cache, with logits of the last row. Returns milliseconds.
  double fill(uint32_t count) {
    peer_.truncate(0);
    return append(0, count, Outputs::last);
  }

  /// Computes `width` rows after `at` positions, with logits of all of them. Returns milliseconds.
  double pass(uint32_t width) {
    const double ms = append(options_.at, width, Outputs::all);
    peer_.truncate(options_.at);
    return ms;
  }

  /// Decodes greedily after `at` positions. Returns the milliseconds of each token, without the argmax.
  std::vector<double> decode(uint32_t count) {
    std::vector<double> times;
    int32_t next = token(options_.at);
    for (uint32_t i = 0; i < count; ++i) {
      times.push_back(timed({next}, options_.at + i, Outputs::last));
      next = peer_.best(0);
    }
    peer_.truncate(options_.at);
    return times;
  }

  const BenchOptions& options_;
  PeerContext peer_;
};

}  // namespace

void run_bench(const BenchOptions& options) {
  Bench bench(options);
  bench.round(1, 1);  // runs every shape of pass once, since llama.cpp compiles shaders when they are first needed
  std::cout << bench.header().dump() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << bench.round(options.decode_tokens, options.repeats).dump() << std::endl;
  }
}

}  // namespace canopy::peer
