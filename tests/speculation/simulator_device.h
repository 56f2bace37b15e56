#pragma once
// Devices in virtual time: invented ones, and ones with times measured on real devices.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/speculation/pass_cost.h"

namespace canopy::test {

struct DeviceSpec {
  std::string name;
  std::function<double(uint32_t width)> verify;  // ms of a pass with an empty context
  double draft = 0;                              // ms
  double per_feature = 0;                        // ms for each injected feature
  double per_position = 0;                       // share of the pass's time that each committed position adds
  double other = 0.1;                            // ms of an AR round besides its pass
  double other_per_row = 0.002;                  // ms for each row of a tree
  uint32_t block_size = 16;
  double noise = 0;       // standard deviation of the logarithm of a time
  double stalls = 0;      // share of passes that take five times as long
  double drift = 0;       // share by which the device is slower at the end of the text than at its start
  double wide_drift = 0;  // additional share for passes of many rows
};

/// The costs as a perfect calibration at the start of the text would give them.
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

/// The real times of the device. Noise and drift depend on the position in the text, so that every way of decoding has
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

  /// The table that `canopy-cli calibrate` would have measured at the start of the text: all narrow widths, wide ones
  /// by tiles, at three contexts.
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
