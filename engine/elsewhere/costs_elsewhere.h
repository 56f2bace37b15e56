#pragma once
// What the rounds of a recording would cost on another device: a calibration that was measured there, or a prediction
// from a profile of it.

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "engine/predict/device_profile.h"
#include "engine/whatif/what_if.h"

namespace canopy {

enum class CostSource {
  recorded,   // where the recording was made, by its own times
  measured,   // elsewhere
  predicted,  // for a device that need not exist
};

/// "recorded", "measured elsewhere", "predicted"
const char* to_string(CostSource source);

struct CostsElsewhere {
  CostSource source = CostSource::recorded;
  std::string name;                  // of the device or the file, for people
  std::string from;                  // a sentence on where the costs come from
  std::optional<WhatIfCosts> costs;  // none: as recorded
};

/// How another device would write what was recorded: by its own choice of widths, wherever there are drafts to choose
/// of.
DecodeMode mode_elsewhere(std::span<const RecordedReply> replies);

CostsElsewhere costs_as_recorded(const TraceHeader& header);

/// A file that `canopy-cli calibrate` writes, here or elsewhere. Throws bad_input that names the file where it cannot
/// be used, or was measured with another model or drafter than the recording's.
CostsElsewhere costs_of_file(const std::filesystem::path& path, const TraceHeader& header,
                             std::span<const RecordedReply> replies);

/// model: a shape, for recordings that do not say how large theirs is. Throws what target_shape() throws.
CostsElsewhere costs_of_device(const predict::DeviceProfile& device, const TraceHeader& header,
                               std::span<const RecordedReply> replies, const std::string& model = {});

}  // namespace canopy
