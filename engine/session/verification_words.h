#pragma once
// What a check of a recording found, in words.

#include <string>

#include "engine/session/engine.h"
#include "engine/session/verification.h"
#include "engine/trace/trace_reader.h"

namespace canopy {

/// "same text, 24 of 24 tokens"; or where it differs, in which tokens, and by how much one of them led.
std::string verdict_words(const Engine& engine, const TraceReader& trace, const ReplyVerdict& verdict);

}  // namespace canopy
