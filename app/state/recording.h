#pragma once
// Recordings: made of replies, opened, shown as a conversation, checked against the loaded model, and shared as files.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "app/state/conversation.h"
#include "app/state/round_log.h"
#include "engine/session/engine_client.h"
#include "engine/text/chat_turn.h"
#include "engine/trace/trace_format.h"

namespace canopy::app {

struct ViewModel;

// Recording replies into a trace: what the user asked for, and the state of the recording. The engine starts and stops
// a recording between two replies only, so the phases `asked` and `ending` may last as long as a reply.

enum class RecordingPhase {
  off,
  asked,   // the engine has not begun yet
  on,      // every reply is written to the file
  ending,  // ends after the reply being written
};

struct RecordingState {
  RecordingPhase phase = RecordingPhase::off;
  std::string path;        // of the running recording or, when it is off, of the last one
  Recording told;          // what the engine last reported
  bool box_shown = false;  // the box in which the file is chosen is open
  std::string suggested;   // path suggested for the next one; empty where there is no folder for it

  bool running() const { return phase != RecordingPhase::off; }
  /// Whether the last one ended well and can be opened.
  bool finished() const { return phase == RecordingPhase::off && told.rounds > 0 && !path.empty(); }
};

struct ShowRecordBox {
  bool shown = true;
};
struct StartRecording {
  std::string path;     // gets the ending of a trace if it has none
  bool redact = false;  // record without texts
  bool dense = false;   // add the draft behind every token at the end, so that what-if is exact
};
struct EndRecording {};

using RecordingCommand = std::variant<ShowRecordBox, StartRecording, EndRecording>;

/// Applies an event of the engine. Returns the reason, as a sentence, when a recording has ended by itself; else empty.
std::string update(RecordingState& state, const Event& event);

/// Applies a command of the user. `possible`: a model is loaded. Returns the command for the engine, if there is one.
std::optional<Command> update(RecordingState& state, const RecordingCommand& command, bool possible);

/// The file that the user's input means: "~/" is the home folder, and a name without an ending gets that of a trace.
std::filesystem::path recording_path(const std::string& typed);

/// The folder of this user's recordings. Empty where it cannot be determined; the warning about the chat folder tells
/// the user why.
std::string user_trace_folder();

/// "canopy-2026-11-22-140512.canopytrace", by local time (milliseconds since 1970, UTC).
std::string recording_name(int64_t now_ms);

// Cuts a tokenized prompt back into the turns of a conversation. This works for most chat templates: nearly all put a
// control token around each turn and begin it with the name of the role.

using PieceOf = std::function<std::optional<trace::Piece>(uint32_t token)>;

/// The turns of a prompt, with roles "system", "user" and "assistant". A prompt in which no role is named becomes one
/// question. The empty turn at the end, which the reply fills, is left out.
std::vector<ChatTurn> prompt_turns(std::span<const uint32_t> tokens, const PieceOf& piece);

// A recorded run shown as a conversation: its prompts, and its replies up to the shown round. It is separate from the
// user's own chat and never changes it.

/// Where a recording comes from, as text for the user. Fields that the file does not have are empty.
struct ReplayOrigin {
  std::string target, drafter, device, driver;
  std::string recorded;   // "2026-11-22 03:16", by the user's clock
  bool redacted = false;  // the trace was recorded without texts
  std::string times;      // where its times come from if nothing was recorded there: "predicted", "measured elsewhere"
};

class ReplayChat {
 public:
  ReplayChat() = default;
  /// last_id: the last message id of this process; the messages of the recording get ids above it.
  ReplayChat(const TraceLog& log, uint64_t& last_id);

  const Conversation& conversation() const { return conversation_; }
  const ReplayOrigin& origin() const { return origin_; }
  /// Sets the text to what had been written by the end of this round of the log; with `told` false to what there was
  /// before it. Does nothing if that is shown already.
  void show(size_t round, bool told = true);

  /// The index in the log of the first round of a reply; nullopt for any other message.
  std::optional<size_t> first_round(uint64_t message) const;

 private:
  struct Reply {
    size_t first_round = 0, rounds = 0;
    std::vector<Message> questions;  // the messages before the reply that no earlier prompt had
    Message whole;
    uint32_t begin = 0;          // bytes of the text before the first round
    std::vector<uint32_t> ends;  // [rounds] bytes of the text after each round
  };
  void add(const TraceLog& log, size_t index, uint64_t& last_id);
  void write(const TraceLog& log, const TraceReply& recorded, const ReplySummary& summary, Reply& reply);
  Message up_to(const Reply& reply, size_t round, bool told) const;

  ReplayOrigin origin_;
  std::vector<Reply> replies_;
  std::vector<ChatTurn> said_;  // the conversation up to and with the last reply added
  Conversation conversation_;
  size_t shown_reply_ = SIZE_MAX;
  size_t shown_round_ = SIZE_MAX;
  bool told_ = true;
};

// Opens traces in the window: a file of the user, or one of the recorded runs that come with Canopy.

struct Demo {
  const char* title;   // "Code"
  const char* detail;  // what the reply is about, in a few words
  const char* asset;   // file name in the assets folder
};

/// The recorded runs that come with Canopy.
std::span<const Demo> demos();

/// Shows a trace, paused at its first round. Damage becomes a warning. If the file cannot be opened, that becomes a
/// card, and what was shown stays.
void open_trace(ViewModel& view, const std::string& path);

/// Shows and plays a demo from its first round. A missing demo becomes a card.
void watch_demo(ViewModel& view, size_t demo);

// The check of a recording against the loaded model: does plain decoding write its text here? Pure: no engine, no
// clock.

struct VerifyState {
  std::string path;  // of the recording that is or was checked
  bool running = false;
  VerifyProgress progress;
  std::optional<RecordingVerified> result;  // of the last check that came to its end
};

struct VerifyShown {};  // the recording that is shown
struct StopVerifying {};
using VerifyCommand = std::variant<VerifyShown, StopVerifying>;

/// Applies an event of the engine. True when a check has come to its end.
bool update(VerifyState& state, const Event& event);

/// Applies a command of the user. Returns the command for the engine, if there is one.
std::optional<Command> update_verify(ViewModel& view, const VerifyCommand& command);

/// Why the shown recording cannot be checked now, as a sentence; empty when it can.
std::string verify_obstacle(const ViewModel& view);

/// "Checked here: the text is the one that plain decoding writes, 3 replies, 412 tokens. It was recorded on NVIDIA
/// H200."
std::string verified_words(const RecordingVerified& result);

// "Share": the box in which a round or a recording becomes a file for others. Pure: no disk and no thread.

enum class ShareKind : uint8_t {
  png,        // the shown round, in pixels
  svg,        // the shown round, as shapes
  page,       // all rounds of the recording or the reply, as a web page
  animation,  // ten rounds from the shown one on, as an SVG picture that moves
};
inline constexpr size_t kShareKinds = 4;

struct ShareState {
  bool box_shown = false;
  ShareKind kind = ShareKind::png;
  bool running = false;
  size_t done = 0, total = 0;  // steps; total 0: not known yet
  std::string saved;           // path of the last file; empty: there is none
  std::string problem;         // why it could not be made, as a sentence; else empty

  /// In [0, 1]; negative where it is not known.
  float fraction() const;
};

struct ShowShare {
  bool shown = true;
};
struct ChooseShare {
  ShareKind kind = ShareKind::png;
};
struct StartShare {
  ShareKind kind = ShareKind::png;
  std::string path;  // "~/" is the home folder; gets the ending of its kind
};
struct StopShare {};
using ShareCommand = std::variant<ShowShare, ChooseShare, StartShare, StopShare>;

/// What a command asks of the thread that makes files.
struct ShareWish {
  std::optional<StartShare> start = {};  // with the whole path
  bool stop = false;
};
/// Applies a command of the user. `possible`: there is a round to share.
ShareWish update(ShareState& state, const ShareCommand& command, bool possible);

/// Takes how far the file is, and how it ended.
void share_progress(ShareState& state, size_t done, size_t total);
void end_share(ShareState& state, const std::string& path, const std::string& problem);

/// ".png", ".svg" or ".html"
const char* ending_of(ShareKind kind);

/// A name to suggest: "canopy-pass-12.png", "canopy-code.html". round: from 0; recording: path of the one that is
/// shown, empty for the engine's own rounds.
std::string share_name(ShareKind kind, size_t round, const std::string& recording);

}  // namespace canopy::app
