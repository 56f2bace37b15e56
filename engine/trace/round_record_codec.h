#pragma once
// A RoundRecord as bytes and back, every field exactly (docs/traces.md, "A round").

#include <string>

#include "engine/base/reader.h"
#include "engine/trace/round_record.h"

namespace canopy {

/// Appends the record, which must be valid.
void encode(const RoundRecord& record, std::string& bytes);

/// Throws bad_input for bytes that end too early, values out of range and a record that validate() refuses. What a
/// later minor version put behind the fields known here is left unread.
RoundRecord decode_round_record(Reader& reader);

}  // namespace canopy
