#pragma once
// Chooses the variants of matrix products by timing the candidates on the device, and keeps what was chosen in a file.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "engine/compute/device.h"
#include "engine/compute/types.h"
#include "engine/vulkan/device_objects.h"
#include "engine/vulkan/product_config.h"

namespace canopy::vk {

// The choice among variants of a kernel that compute the same bits, by timing them: arithmetic on times, without a
// device.

/// What one run took: by the device's clock, and by the host's around it.
struct TimedRun {
  double device_us = 0;
  double host_us = 0;
};

/// Runs variants, numbered from 0, and returns what they take.
class VariantTimer {
 public:
  virtual ~VariantTimer() = default;

  /// Compiles a variant and runs it once. False if it cannot be used, which rules it out.
  virtual bool prepare(size_t variant) = 0;
  virtual TimedRun run(size_t variant) = 0;
  /// Asked before each run and each preparation: whether the time for the choice is over, or the user wants no more.
  virtual bool over() = 0;
};

struct VariantPlan {
  int rounds = 8;         // in each of them every variant runs once, forth and back, so that a drift affects all alike
  double clearly = 0.97;  // a variant other than the first is chosen if it takes at most this share of the first's time
  double hopeless = 1.5;  // one that takes so many times the best's time in two rounds is not run again
};

struct VariantChoice {
  size_t chosen = 0;
  bool complete = false;           // all variants were measured; otherwise the best of those that were is chosen
  std::vector<double> typical_us;  // median of each; 0 where it was not measured
  std::string problem;             // why nothing could be measured, as a clause; empty if all is well
};

/// Chooses among `count` > 0 variants, of which the first is the one that is taken without a measurement. The chosen
/// one never has a larger median than the first. A time of 0, or one beyond what the host waited, is a clock that
/// cannot be trusted: nothing is chosen by it.
VariantChoice choose_variant(VariantTimer& timer, size_t count, const VariantPlan& plan = {});

// The variants of matrix products that timing chose, kept in a file in the cache folder, so that a device is measured
// once.

/// What a product does with its sums. Kernels of one op are chosen apart from those of another.
enum class ProductOp { linear, add, swiglu, experts };
const char* to_string(ProductOp op);

/// The product that a variant is chosen for.
struct VariantKey {
  KernelFamily family = KernelFamily::fma;
  ProductOp op = ProductOp::linear;
  WeightType type = WeightType::f32;
  uint32_t rows = 0;  // of the weight
  uint32_t cols = 0;
  uint32_t width = 0;  // rows of the pass; one for each bucket of widths
  // Of a mixture, whose weight has `experts` times `rows`, and of which each row goes through `used`.
  uint32_t experts = 0, used = 0;
  auto operator<=>(const VariantKey&) const = default;
};

/// "add Q4_K 4096x12288 x16", "experts Q4_K 8 of 128 1536x2048 x16"
std::string describe(const VariantKey& key);

/// What makes a variant of its family: the numbers of FmaConfig or MatrixConfig.
using VariantNumbers = std::vector<uint32_t>;

class VariantChoices {
 public:
  /// file: empty for none. identity: device, driver and shaders; a file of another identity is ignored, as is a damaged
  /// one, and log_info() says so.
  VariantChoices(std::filesystem::path file, std::string identity);

  /// What was chosen; nothing for a product that was not measured. Whoever asks compares with the variants there are
  /// now.
  const VariantNumbers* find(const VariantKey& key) const;
  void set(const VariantKey& key, VariantNumbers numbers);
  size_t size() const { return choices_.size(); }

  /// Writes the file if something changed. What goes wrong is returned, not thrown: the choices are only a cache.
  std::string save();

 private:
  void load();

  std::filesystem::path file_;
  std::string identity_;
  std::map<VariantKey, VariantNumbers> choices_;
  bool changed_ = false;
};

// Chooses the variant of a matrix product by timing the candidates on the device, once per shape of weight and bucket
// of widths: by the device's clock, on weights that no cache holds, as a pass finds them. Of a mixture's experts, by
// choices of experts that differ from run to run.

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
