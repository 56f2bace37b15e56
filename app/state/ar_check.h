#pragma once
// The check "Same text as plain decoding": a reply that was written with drafts is written once more in mode `ar`, and
// their token ids are compared. It needs the tokens of the reply, of this process or saved with it. It runs only when
// the user asks for it and is no part of the chat.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "app/base/choices.h"
#include "engine/client/engine_client.h"

namespace canopy::app {

struct Message;
struct ViewModel;

struct ArCheck {
  enum class Phase { none, running, same, different, cancelled, failed };

  Phase phase = Phase::none;
  uint64_t message = 0;                  // the reply that is checked
  uint64_t reply_id = 0;                 // of the AR reply
  std::vector<uint32_t> expected;        // tokens of the checked reply
  std::vector<uint32_t> plain;           // tokens of the AR reply so far
  bool open_end = false;                 // the checked reply was stopped, so the AR reply may go on after it
  std::optional<size_t> difference;      // index of the first token that differs
  uint32_t prompt_done = 0, prompt = 0;  // tokens, while the prompt is read
  std::string problem;                   // why the check failed

  bool running() const { return phase == Phase::running; }
};

struct CheckState {
  ArCheck check;  // the newest check
  std::unordered_map<uint64_t, std::vector<uint32_t>>
      tokens;         // of replies written in this process, by message id; other replies have theirs saved with them
  bool stop = false;  // the result is known, so the engine can stop writing
};

struct CheckAgainstAr {
  uint64_t message = 0;
};
struct CancelCheck {};
struct DismissCheck {};

using CheckCommand = std::variant<CheckAgainstAr, CancelCheck, DismissCheck>;

/// Applies an event of the engine.
void update(CheckState& state, const Event& event);

/// Applies a command of the user. Returns the commands for the engine.
std::vector<Command> update_check(ViewModel& view, const CheckCommand& command);

/// Cancels a running check, because the user asks something else of the engine. True when the engine must be told to
/// stop.
bool give_way(CheckState& state);

/// Why a reply cannot be checked now, as a sentence; empty when it can.
std::string check_obstacle(const ViewModel& view, const Message& reply);

/// The state of a check for the user: "Same text as plain decoding: 128 of 128 tokens", in Watch "The text is the same,
/// word for word, as without guessing."
std::string check_words(const ArCheck& check, WindowLayout layout = WindowLayout::lab);

}  // namespace canopy::app
