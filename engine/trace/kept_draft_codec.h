#pragma once
// A draft as bytes and back, every logit exactly (docs/traces.md, "A draft").

#include <string>

#include "engine/base/reader.h"
#include "engine/speculation/block_draft.h"

namespace canopy {

/// Appends the draft. Throws bad_input naming what is wrong with one that no tree could be built of: a list that is not
/// as long as its count, logits that are not finite or not in order.
void encode(const KeptDraft& draft, std::string& bytes);

/// Reads a draft. Throws bad_input as encode(), and when the bytes end too early.
KeptDraft decode_kept_draft(Reader& reader);

}  // namespace canopy
