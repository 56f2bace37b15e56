#pragma once
// "Same text as autoregressive decoding": a reply that was drafted, written once more without drafts and compared token
// by token, in this process or another that kept its tokens. Only when its user asks; never a part of the chat.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "engine/client/engine_client.h"

namespace canopy::app {

struct Message;
struct ViewModel;

struct ArCheck {
  enum class Phase { none, running, same, different, cancelled, failed };

  Phase phase = Phase::none;
  uint64_t message = 0;                  // the reply that is checked
  uint64_t reply_id = 0;                 // of the AR one
  std::vector<uint32_t> expected;        // tokens of the reply
  std::vector<uint32_t> plain;           // tokens of the AR one so far
  bool open_end = false;                 // the reply was stopped: nobody knows how it would have gone on
  std::optional<size_t> difference;      // the first index at which they differ
  uint32_t prompt_done = 0, prompt = 0;  // tokens, while the prompt is read
  std::string problem;                   // why it failed

  bool running() const { return phase == Phase::running; }
};

struct CheckState {
  ArCheck check;  // the last one
  std::unordered_map<uint64_t, std::vector<uint32_t>>
      tokens;         // of this process's replies by their ids; others keep theirs
  bool stop = false;  // its end is known: the engine can leave off
};

struct CheckAgainstAr {
  uint64_t message = 0;
};
struct CancelCheck {};
struct DismissCheck {};

using CheckCommand = std::variant<CheckAgainstAr, CancelCheck, DismissCheck>;

/// Folds an event of the engine in.
void update(CheckState& state, const Event& event);

/// Folds a command of the user in; what the engine is to be told.
std::vector<Command> update_check(ViewModel& view, const CheckCommand& command);

/// Makes way for what the user asks of the engine next. True when a check was under way and must be stopped.
bool give_way(CheckState& state);

/// Why a reply cannot be checked now, as a sentence; empty when it can.
std::string check_obstacle(const ViewModel& view, const Message& reply);

/// How a check stands, in words: "Same text as autoregressive decoding: 128 of 128 tokens".
std::string check_words(const ArCheck& check);

}  // namespace canopy::app
