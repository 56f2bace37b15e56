#pragma once
// Properties that every drafter accepted by a reader must have.

#include "engine/format/assistant_file.h"
#include "engine/format/drafter_file.h"
#include "engine/format/eagle_file.h"
#include "engine/format/mtp_file.h"

namespace canopy::fuzz {

/// Checks a valid config: its sizes fit each other, and the pair check accepts a target with what the drafter needs and
/// refuses targets without it.
void check_drafter_config(const DrafterConfig& config);

/// Reads everything of a drafter that is read before its weights go to a device, and checks that the drafter, written
/// as GGUF and read back, is the same.
void check_drafter(const DrafterFile& drafter);

/// The same of an EAGLE-3 head, which is not written.
void check_eagle_head(const EagleFile& head);
/// Of a head that predicts further tokens.
void check_mtp_head(const MtpFile& head);
/// And of an assistant.
void check_assistant_file(const AssistantFile& assistant);

}  // namespace canopy::fuzz
