#pragma once
// The models of a recording as shapes whose passes can be recorded, without their files.

#include <optional>
#include <string>

#include "engine/predict/model_shapes.h"
#include "engine/trace/trace_records.h"

namespace canopy {

/// From the sizes that the recording has; one of an earlier version has none, and its model's name is looked up among
/// the known ones, unless `model` names a shape (predict::allowed_shapes()). Throws bad_input where neither helps, and
/// for sizes that no model has.
predict::NamedShape target_shape(const TraceHeader& header, const std::string& model = {});

/// Its embedding and head are the target's; without sizes it is what drafters of such a target are. None where the
/// recording has none.
std::optional<predict::NamedShape> drafter_shape(const TraceHeader& header, const predict::NamedShape& target);

}  // namespace canopy
