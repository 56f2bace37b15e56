#pragma once
// What the rounds of a recording cost on other devices, measured there or predicted, and the re-run with these costs
// written as a recording of its own.

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "engine/trace/trace_reader.h"
#include "engine/trace/trace_records.h"
#include "engine/whatif/device_profile.h"
#include "engine/whatif/model_shapes.h"
#include "engine/whatif/what_if.h"

namespace canopy {

// The models of a recording as shapes whose passes can be recorded, without their files.

/// From the sizes that the recording has; one of an earlier version has none, and its model's name is looked up among
/// the known ones, unless `model` names a shape (predict::allowed_shapes()). Throws bad_input where neither helps, and
/// for sizes that no model has.
predict::NamedShape target_shape(const TraceHeader& header, const std::string& model = {});

/// Its embedding and head are the target's; without sizes it is what drafters of such a target are. None where the
/// recording has none.
std::optional<predict::NamedShape> drafter_shape(const TraceHeader& header, const predict::NamedShape& target);

// What the rounds of a recording would cost on another device: a calibration that was measured there, or a prediction
// from a profile of it.

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

// A re-run as a recording of its own, with the trees and the times that the other device would have: so that everything
// that shows recordings shows it, too.

/// The header names the other device and says that nothing was recorded there. `replies` are those that were re-run, of
/// this trace, and `wish` is what was asked for. Throws bad_input where the re-run is not exact, since its rounds then
/// do not make up the text, and what TraceWriter throws.
void write_recording_elsewhere(const std::filesystem::path& path, const TraceReader& trace,
                               std::span<const RecordedReply> replies, const WhatIf& run, const WhatIfWish& wish,
                               const CostsElsewhere& there);

}  // namespace canopy
