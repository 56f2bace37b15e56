#pragma once
// Measures the times of a model's passes, by wall clock, so that submission and download count as they do in use.

#include <cstdint>
#include <functional>
#include <map>
#include <stop_token>
#include <vector>

#include "engine/model/model.h"

namespace canopy::cli {

struct BenchSettings {
  std::vector<uint32_t> widths;
  uint32_t context = 128;  // committed positions before each pass
  uint32_t repeats = 5;
  uint32_t decode_tokens = 32;
  uint32_t prefill_tokens = 256;
  uint32_t prefill_chunk = 128;
};

/// Every width from 1 to 18, then fewer, up to 128.
std::vector<uint32_t> standard_widths();

/// Medians of the measurements. The rate of multiply-adds is measured beside every pass, so that a share compares two
/// measurements under the same load; the peak is the highest rate of all.
struct BenchResult {
  DevicePeak peak;
  double decode_tokens_per_second = 0;
  double prefill_tokens_per_second = 0;
  // By width; shares are in [0, 1].
  std::map<uint32_t, double> pass_ms;
  std::map<uint32_t, double> best_pass_ms;  // the shortest time, where pass_ms is the median
  std::map<uint32_t, double> share_of_fma_peak;
  // Of the multiply-adds of a simple loop, the usual measure of a device's peak.
  std::map<uint32_t, double> share_of_plain_fma;
  // Of matrix cores; empty where products are made without them.
  std::map<uint32_t, double> share_of_matrix_peak;
  // Share of the peak that limits the pass: products, or reading weights.
  std::map<uint32_t, double> share_of_roofline;
  // Of models with experts: how many different ones the rows went through, the mean over layers.
  std::map<uint32_t, double> distinct_experts;
};

/// How much longer a pass takes than the next narrower one, beyond what its further rows or the further experts that
/// they go through explain: 0.1 is a tenth longer. By width, without the narrowest.
std::map<uint32_t, double> steps_of(const BenchResult& result);

/// The step from `width` rows to one more that stands out most.
struct WorstStep {
  uint32_t width = 0;  // 0: too few widths follow each other
  double above = 0;    // how far it is above the mean of the eight steps nearest to it, as a share of the narrower pass
};
/// By best times, over widths that follow each other.
WorstStep worst_step(const BenchResult& result);

/// Measures; `step` hears what is under way. Throws cancelled when stop is requested.
BenchResult run_bench(Model& model, const BenchSettings& settings, const std::function<void(const char*)>& step,
                      const std::stop_token& stop);

/// The middle value; for an even number of values the lower one of the two in the middle. values must not be empty.
double median(std::vector<double> values);

}  // namespace canopy::cli
