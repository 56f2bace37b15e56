#pragma once
// The loaded model as a server: what the user chose for it, and what clients ask for, each as a chat with its rounds.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "app/state/conversation.h"
#include "app/state/live_log.h"
#include "app/state/settings.h"
#include "engine/session/engine_client.h"

namespace canopy::app {

struct Effects;
struct ViewModel;

inline constexpr size_t kMostServed = 32;                 // replies in the list; the oldest that are over go first
inline constexpr size_t kServedMemory = size_t{8} << 20;  // bytes of each one's trees; older ones go to a file
inline constexpr int64_t kServedSpeedMs = 4000;           // that the speed of all served replies is a mean over

/// What a client asked for.
struct ServedReply {
  Generate asked;
  std::string client, path;  // the address that it asks from, and the path that it asked for
  Conversation chat;         // its prompt as turns, then its reply
  std::shared_ptr<LiveLog> log;
  uint32_t prompt_done = 0, prompt_total = 0;  // tokens
  bool reading = true;                         // the prompt
  bool over = false;
  bool paused = false, stopping = false;  // as the user asked
  bool earlier_model = false;             // another model or device was loaded since
  std::string recording;                  // file that it is recorded to, or was
  bool recorded = false;                  // it is there
  std::string problem;                    // why it failed, as a sentence; else empty

  uint64_t id() const { return asked.reply_id; }
  const Message& reply() const { return chat.back(); }
};

struct ServedState {
  ServeSettings settings;
  std::string key;                   // that clients must name; empty: none
  Serving told;                      // what the engine last told
  bool box_shown = false;            // the box with the settings is open
  std::vector<ServedReply> replies;  // the newest first
  uint64_t watched = 0;              // id of the one on show, in place of the own chat; 0: none

  std::deque<std::pair<int64_t, uint64_t>> written;  // when tokens came lately, and how many there were of all by then
  uint64_t tokens = 0;                               // of all served replies

  /// Whether the switch is on: the model is served, or will be as soon as it is loaded.
  bool on() const { return settings.on && told.problem.empty(); }
  /// Replies that are not over, those included that wait for their turn.
  size_t under_way() const;
  bool busy() const { return under_way() > 0; }
  const ServedReply* find(uint64_t id) const;
  ServedReply* find(uint64_t id);
};

struct ShowServing {  // opens the box with the settings, or closes it
  bool shown = true;
};
struct SwitchServing {
  bool on = true;
};
struct ChangeServing {  // while it is off
  ServeSettings settings;
  std::string key;
};
struct WatchServed {  // shows what a client asked for; 0: the own chat again
  uint64_t id = 0;
};
struct EndServed {
  uint64_t id = 0;
};
struct HoldServed {  // gives it no passes, or lets it go on
  uint64_t id = 0;
  bool held = true;
};
struct TapeServed {  // records it into the folder of recordings
  uint64_t id = 0;
};
struct KeepServed {  // makes it a chat of the user's own, with its rounds; once it is over
  uint64_t id = 0;
};
struct DropServed {  // takes it off the list; once it is over
  uint64_t id = 0;
};

using ServedCommand = std::variant<ShowServing, SwitchServing, ChangeServing, WatchServed, EndServed, HoldServed,
                                   TapeServed, KeepServed, DropServed>;

/// Applies an event of the engine. True where it was of the server or of a served reply, and so concerns nothing else.
bool update_served(ViewModel& view, const Event& event);

Effects update_served(ViewModel& view, const ServedCommand& command);

/// Call at the start: has the engine serve the model where the user left that on.
std::vector<Command> begin_serving(const ServedState& state);

/// Shows the own chat and its rounds again, where a served reply is on show.
void leave_served(ViewModel& view);

/// Call when a model was loaded that is not the one of before, or on another device.
void age_served(ServedState& state);

/// Tokens a second of all served replies together; 0 where none is being written.
double served_speed(const ServedState& state, int64_t now_ms);

/// What clients call: "127.0.0.1:8737"; empty while nothing is served.
std::string served_address(const ServedState& state);
/// "127.0.0.1:8737, 2 requests, 31 tok/s"; why it is not served, or what it waits for.
std::string serving_words(const ViewModel& view);
/// "reading, 40 %", "paused", "120 tokens, 31 tok/s", "ended after 40 tokens".
std::string served_words(const ServedReply& reply);
/// The first line of what was asked.
std::string served_title(const ServedReply& reply);

/// Names, or origins, of a text that has them behind each other, with blanks or commas in between.
std::vector<std::string> listed_names(const std::string& text);
std::string joined_names(const std::vector<std::string>& names);

}  // namespace canopy::app
