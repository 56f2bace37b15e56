#pragma once
// Made-up devices, and what was measured on real ones, in virtual time.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/speculation/cost_table.h"

namespace canopy::test {

struct DeviceSpec {
  std::string name;
  std::function<double(uint32_t width)> verify;  // ms behind an empty context
  double draft = 0;                              // ms
  double per_feature = 0;                        // ms of each injected feature
  double per_position = 0;                       // share of the pass that each committed position adds
  double other = 0.1;                            // ms of an AR round
  double other_per_row = 0.002;                  // ms of each row of a tree
  uint32_t block_size = 16;
  double noise = 0;       // standard deviation of the logarithm
  double stalls = 0;      // share of passes that take five times as long
  double drift = 0;       // the whole device is slower by this share at the end of the text than at its start ...
  double wide_drift = 0;  // ... and passes of many rows by this share besides
};

/// What the device takes on average at the start of the text.
class CalibratedCost : public PassCost {
 public:
  static constexpr uint32_t widest = 512;

  explicit CalibratedCost(const DeviceSpec& spec);
  double verify_ms(uint32_t width, uint32_t context) const override;
  double draft_ms(uint32_t backlog, uint32_t context) const override;
  double other_ms(uint32_t width) const override;

 private:
  DeviceSpec spec_;
  std::vector<double> verify_;  // [widest]
};

/// What the device really takes. Noise and drift go by the position in the text, so that every way of decoding it meets
/// the same device at the same place.
class VirtualDevice {
 public:
  VirtualDevice(const DeviceSpec& spec, uint32_t tokens, unsigned seed)
      : spec_(spec), mean_(spec), tokens_(tokens), seed_(seed) {}

  double verify_ms(uint32_t width, uint32_t position) const;
  double draft_ms(uint32_t backlog, uint32_t position) const;
  double other_ms(uint32_t width, uint32_t position) const;
  double plain_ms(uint32_t position) const { return verify_ms(1, position) + other_ms(1, position); }

  const DeviceSpec& spec() const { return spec_; }

  /// What `canopy-cli calibrate` would have measured at the start of the text: narrow widths all, wide ones by tiles,
  /// at three contexts.
  CostTable calibrate() const;

 private:
  double factor(uint32_t position, uint32_t stage) const;

  DeviceSpec spec_;
  CalibratedCost mean_;
  uint32_t tokens_;
  unsigned seed_;
};

std::vector<DeviceSpec> simulated_devices();

}  // namespace canopy::test
