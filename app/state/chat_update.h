#pragma once
// How events of the engine and commands of the user change the conversation: a reply from its request to its end, how
// it is drafted, how much of the context it takes, and how it is continued.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/state/chat.h"
#include "app/state/settings.h"
#include "engine/session/engine_client.h"

namespace canopy::app {

struct Effects;
struct ViewModel;

// How replies are drafted, and texts about it.

/// The mode in which a reply is written where the user chose none: on every device it goes by what passes take there.
inline constexpr DecodeMode kUsualMode = DecodeMode::adaptive;

/// Who or what settled how many guesses a pass has.
enum class TreeSetBy {
  controller,  // Canopy, anew for each pass
  user,        // by the mode, or by the size of its trees
  client,      // likewise, in a request to the served model
  recording,   // it was settled when the rounds were recorded; by whom, they do not say
  fallback,    // nobody, in earlier chats: small trees on a device that computes on the CPU, and plain decoding where
               // there was no drafter
};

/// Whether the user chose this mode of the next reply, or the size of its trees; else it is kUsualMode.
bool is_chosen(const ViewModel& view, DecodeMode mode);

/// Who settled it for a round of the shown log. reply: the index of its reply in the log.
TreeSetBy tree_set_by(const ViewModel& view, const RoundRecord& round, size_t reply);

/// "Adaptive", "Tree", ...
const char* mode_title(DecodeMode mode);
/// One line that explains the mode.
const char* mode_detail(DecodeMode mode);

/// Has later replies drafted as the user chose; none: as the device has it. What guessed before plain decoding was
/// chosen is kept, so that set_guessing() goes back to it.
void set_drafting(ViewModel& view, const std::optional<DecodeMode>& mode);
/// Whether later replies are drafted at all.
bool is_guessing(const ViewModel& view);
/// Switches between plain decoding and the mode before it; without one, the default of the device.
void set_guessing(ViewModel& view, bool on);

// How much of the model's context the shown chat takes, and what is done when it is full.

struct ContextUse {
  uint32_t used = 0;     // tokens, of the chat as far as it was last sent and answered
  uint32_t planned = 0;  // tokens that the open model can hold; 0: no model
  uint32_t waiting = 0;  // of the attached files that go with the next question, as far as they are counted
  uint32_t draft = 0;    // about as many, of what is being typed

  float share() const {
    return planned == 0 ? 0 : static_cast<float>(used + waiting + draft) / static_cast<float>(planned);
  }
  /// Whether little is left: the meter turns amber.
  bool nearly_full() const { return share() >= 0.85f; }
};

/// draft: the text of the next question.
ContextUse context_use(const ViewModel& view, std::string_view draft = {});

/// About how many tokens a text has: an estimate of its letters, as the text is typed in every frame.
uint32_t about_tokens(std::string_view text);

/// Why the next question is too long for the model whatever else is dropped, as a sentence; empty when it is not.
std::string too_long_alone(const ContextUse& use);

/// What the meter says when it is pointed at.
std::string context_words(const ContextUse& use);

/// Whether older turns can be left out of the next prompt, so that more than its question remains.
bool can_drop_turns(const ViewModel& view);

/// Leaves so many of the oldest turns out of later prompts that about half of the context is free, at least one. True
/// when the last question has no answer yet, so that it is to be answered now.
bool drop_oldest_turns(ViewModel& view);

/// Shows the card that gives the choice. prompt_tokens: of a prompt that was refused; 0: a reply came to the end.
void say_context_is_full(ViewModel& view, uint32_t prompt_tokens);

// The tokens of attached files, counted by the open model's tokenizer on the engine's thread.

/// The counts to ask for now: of files that go with the next question and were not counted in the vocabulary of the
/// open model. Each is asked for once.
std::vector<Command> take_count_requests(ViewModel& view);

/// Takes an answer; one to a file that is gone changes nothing.
void take_count(ViewModel& view, const TokensCounted& event);

// "Continue": a reply that the token limit or the user ended is gone on with, in place. It becomes the reply that a
// larger limit would have given, token for token.

/// Whether message i of the chat is one to go on with: the last one, a reply that a limit or the user ended.
bool is_unfinished(const ViewModel& view, size_t i);

/// Why an unfinished reply cannot be gone on with now, as a sentence; empty when it can.
std::string continue_obstacle(const ViewModel& view, const Message& reply);

// The part of update() in view_model.h that is about the conversation: how events and commands change it. Pure, like
// the rest of update().

// Events of the reply being written; the caller has checked their reply id.
void on_started(ViewModel& view, const ReplyStarted& event);
void on_text(ViewModel& view, const TextDelta& event);
/// What events add to the message of a reply, whose ever it is.
void add_text(Message& message, const TextDelta& event);
void add_round(Message& message, const RoundFinished& event);
void on_round(ViewModel& view, const RoundFinished& event);
void on_finished(ViewModel& view, const ReplyFinished& event);
/// Ends the reply being written. After a failure it keeps its text; ReplyFinished may or may not follow.
void end_reply(ViewModel& view, FinishReason reason);

/// The turns of the prompt for a reply to the first `length` messages, with a system prompt unless it is blank. Leaves
/// out a question whose answer failed before its first word, so that roles alternate as chat templates expect.
/// The first `left_out` messages are left out too.
std::vector<ChatTurn> turns_before(const Conversation& conversation, size_t length, const std::string& system_prompt,
                                   size_t left_out = 0);

/// Whether replies think, as far as it can be chosen.
bool thinking_on(const ViewModel& view);

inline constexpr int64_t kNoteMs = 6000;  // that a note stays

/// Takes the note away when it has been there for kNoteMs. True when it did. Call when time has passed.
bool age_note(ViewModel& view);

// Commands. A command that is not allowed now changes nothing.
Effects send_message(ViewModel& view, const std::string& text);
Effects stop_reply(ViewModel& view);
Effects answer_last_again(ViewModel& view);
/// Shows the rounds of the branch on show: the last of its last reply that has any. A recording that is shown stays.
void show_rounds_of_branch(ViewModel& view);
/// Shows another conversation. The one that was shown goes into Effects::closed, to be saved.
Effects show_conversation(ViewModel& view, Conversation next);
Effects new_chat(ViewModel& view);
/// Commands that need the disk (OpenChat ... ImportChat) change nothing here: ChatDesk carries them out.
Effects update_chat(ViewModel& view, const ChatCommand& command);

}  // namespace canopy::app
