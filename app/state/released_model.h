#pragma once
// A model that is released after idle minutes, so that its memory is free for others, and that comes back by itself
// when it is asked something. The engine holds no model meanwhile; ViewModel::model still says what it was.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/client/engine_client.h"

namespace canopy::app {

struct ViewModel;

struct IdleState {
  int64_t since_ms = 0;  // in the time of ChatState::now_ms: the last time that anybody or anything was at work
  uint32_t after = 0;    // minutes after which the model was released
  std::optional<LoadModel> opened;  // what brings the released model back; none until the engine has told
  std::optional<Generate> held;     // the reply that waits for the model
};

/// The present moment counts as work: the idle minutes begin anew. Events of the engine and commands of the user do
/// this by themselves; call it for what is neither, such as typing.
void note_work(ViewModel& view);

/// When the model is to be released if nothing happens, in the time of ChatState::now_ms. None where it is not: the
/// user did not ask for it, no model is loaded, or something is under way that needs it. A recording that waits for the
/// next reply needs it too.
std::optional<int64_t> release_due_ms(const ViewModel& view);

/// The commands that are due for the engine: the release when its time has come, and for a reply that waits the load
/// and, once that is done, the reply. Call after events, after commands and when time has passed.
std::vector<Command> take_due_commands(ViewModel& view);

/// Takes the replies that a released model was asked for out of the commands, to be written when it is back.
void hold_replies(ViewModel& view, std::vector<Command>& commands);

/// Ends the reply that waits for the model, if there is one, with a card to ask for it again. The question stays.
void give_up_held(ViewModel& view);

void on_released(ViewModel& view, const ModelReleased& event);

/// "Released after 15 idle minutes; your next message loads it again"
std::string released_words(const ViewModel& view);

}  // namespace canopy::app
