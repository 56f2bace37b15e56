#pragma once
// A RoundRecord as bytes and back, every field exactly (docs/traces.md, "A round").

#include <string>

#include "engine/base/reader.h"
#include "engine/trace/round_record.h"

namespace canopy {

/// Appends the record, which must be valid.
void encode(const RoundRecord& record, std::string& bytes);

/// Reads a record. Throws bad_input when the bytes end too early, a value is out of range, or validate() refuses the
/// record. Bytes after the known fields, which a later minor version may add, are left unread.
RoundRecord decode_round_record(Reader& reader);

}  // namespace canopy
