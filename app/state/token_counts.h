#pragma once
// The tokens of attached files, counted by the open model's tokenizer on the engine's thread.

#include <vector>

#include "engine/client/engine_client.h"

namespace canopy::app {

struct ViewModel;

/// The counts to ask for now: of files that go with the next question and were not counted in the vocabulary of the
/// open model. Each is asked for once.
std::vector<Command> take_count_requests(ViewModel& view);

/// Takes an answer; one to a file that is gone changes nothing.
void take_count(ViewModel& view, const TokensCounted& event);

}  // namespace canopy::app
