#pragma once
// Chooses the variant of a matrix product by timing the candidates on the device, once per shape of weight and bucket
// of widths: by the device's clock, on weights that no cache holds, as a pass finds them. Of a mixture's experts, by
// choices of experts that differ from run to run.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/compute/device.h"
#include "engine/vulkan/device_objects.h"
#include "engine/vulkan/variant_choice.h"
#include "engine/vulkan/variant_choices.h"

namespace canopy::vk {

struct DeviceState;

struct TuningOptions {
  double budget_s = 10;  // of a model in all; what is not measured then runs by the rule, until the next time
  /// A product is timed on copies of its weight, one after the other, that take so many bytes together: more than the
  /// last cache has. Unless given: by the kind of device.
  std::optional<uint64_t> cold_bytes;
  size_t most_candidates = SIZE_MAX;  // of a product; the first ones are timed
};

/// Variants of one product, the one without a measurement first.
struct VariantCandidate {
  VariantNumbers numbers;
  std::string text;  // "8 rows, 8 lanes"
};

/// The width that stands for those of a bucket, which share a choice.
uint32_t tuned_width(KernelFamily family, uint32_t width);

class ProductTuner {
 public:
  /// Makes the recorder take a candidate for every product, until it is called with none.
  using Force = std::function<void(std::optional<size_t>)>;

  /// device: for the operands of what is timed. choices: the file, see VariantChoices.
  ProductTuner(Device& device, DeviceState& state, const TuningOptions& options, std::filesystem::path choices,
               std::string identity);

  /// The candidate to take, measured on the first call for a key; DeviceInfo::kernels names it. A candidate whose bits
  /// differ from the first one's is not taken. Throws device_lost; then the key is not measured again.
  size_t choose(const VariantKey& key, const VulkanWeight& weight, std::span<const VariantCandidate> candidates,
                const Force& force);

  /// Another model is loaded: there is time to measure again.
  void renew_budget() { seconds_left_ = budget_s_; }
  /// Looked at between two runs; a choice that is ended is made again the next time.
  void set_stop(const std::stop_token& stop) { stop_ = stop; }
  /// Writes the file and says in the log what was measured since the last call.
  void report();

 private:
  size_t measure(const VariantKey& key, const VulkanWeight& weight, std::span<const VariantCandidate> candidates,
                 const Force& force);
  uint32_t runs_for(const VariantKey& key, const VulkanWeight& weight) const;
  void describe_choice(const VariantKey& key, const VariantCandidate& chosen);
  void give_up(const std::string& why);

  Device& device_;
  DeviceState& state_;
  VariantChoices choices_;
  std::stop_token stop_;
  uint64_t cold_bytes_;
  size_t most_candidates_;
  double budget_s_, seconds_left_;
  bool usable_ = true;                 // the clock
  uint32_t measured_ = 0, other_ = 0;  // since the last report(): products, and those that do not take their first
  double spent_s_ = 0;
};

}  // namespace canopy::vk
