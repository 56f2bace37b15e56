#pragma once
// A reply and its text: the settings, what is reported while it is written, the tokenizer and form of prompt of its
// model, its tokens as text that can be shown, and all this as events for a front end.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "engine/format/model_file.h"
#include "engine/session/engine_client.h"
#include "engine/speculation/logprobs.h"
#include "engine/speculation/pass_cost.h"
#include "engine/speculation/round_record.h"
#include "engine/speculation/sampler.h"
#include "engine/speculation/speculation_state.h"
#include "engine/text/chat_template.h"
#include "engine/text/chat_turn.h"
#include "engine/text/tokenizer.h"
#include "engine/text/unicode.h"

namespace canopy {

// The text side of a model file: tokenizer, form of prompt, and the tokens that end a reply.

struct TextModel {
  std::shared_ptr<const Tokenizer> tokenizer;  // shared with those who show tokens
  std::unique_ptr<ChatTemplate> chat;
  std::unique_ptr<ChatTemplate> tool_chat;  // for chats with tools, where the model brings one of its own; may be null
  std::vector<uint32_t> stop_ids;           // sorted: those of the config and those of the tokenizer
  std::vector<std::string> warnings;

  /// Ids of a text as it stands: the spelling of a special token stands for it; bos in front where the model wants it.
  std::vector<uint32_t> encode_raw(std::string_view text) const;
};

/// Throws bad_input when the model brings no tokenizer, one that is not supported, or one with more tokens than the
/// model has embeddings.
TextModel make_text_model(const ModelFile& file);

// Settings of a reply, what is reported while it is written, and the finished reply.

struct ReplySettings {
  DecodeMode mode = DecodeMode::ar;
  uint32_t budget = 16;  // of mode tree: drafted nodes, at least 1; a larger one than fits the pass is cut to what fits
  CostPolicy policy = CostPolicy::measured;  // of mode adaptive
  DraftSources sources = kUsualSources;      // of modes that draft: those that are asked, where they are there
  /// For measurements: the reply takes these tokens whatever the target says, one after the other, and ends with them
  /// at the latest. Empty: the target's own.
  std::vector<uint32_t> forced;
  /// For measurements: which drafted tokens are accepted is decided by these rates (token_by_rates()), so that the text
  /// is not the target's. Empty: the target decides.
  std::vector<double> accept_rates;
  /// The beginning of the reply, read after the prompt; the reply goes on from there as if one larger limit had been
  /// set. Without a token or a stop string that ends a reply.
  std::vector<uint32_t> begun;
  bool drafts = false;         // fill RoundRecord::draft
  bool probabilities = false;  // fill RoundNode::log_p (tree_input() says of which nodes); costs a little time
  bool times_plain = false;    // fill Reply::plain, for which up to four passes may follow the reply
  /// ReplyProgress::logprobs of each new token, with so many of the likeliest; none: they are not computed. The
  /// logits of a row are read for it, and tokens are drawn on the host: the same ones.
  std::optional<uint32_t> logprobs;
  /// With `logprobs`, ReplyCallbacks::prompt_token: those of the tokens before the new ones, for which all of them are
  /// read anew. max_tokens may be 0 then.
  bool prompt_logprobs = false;
  SamplingSettings sampling;
  uint32_t max_tokens = 512;              // of new ones; at least 1
  uint64_t turn = 0;                      // number of this reply in its conversation: part of the random stream
  std::vector<std::string> stop_strings;  // beside those of the form of prompt
  bool stop_loops = false;                // a reply that repeats itself ends (LoopGuard), as at a stop string
};

/// What a front end asked for. All tokens of the reply that it goes on with are `begun`; throws bad_input where they
/// are of another vocabulary than `vocabulary`, that of the model.
ReplySettings settings_of(const Generate& command, uint64_t vocabulary);

/// Reported after each token, and at the end once more for text that was held back.
struct ReplyProgress {
  std::string_view text;  // new text, whole characters; may be empty
  uint32_t reply_tokens = 0;
  uint32_t text_end = 0;      // bytes that the tokens so far completed, in the reply's text (RoundFinished)
  uint32_t context_used = 0;  // positions in the cache
  double tokens_per_second = 0;
  uint32_t shown_bytes = 0;  // of the reply's text so far, this text included
  ThoughtPart thought = {};
  const TokenLogprobs* logprobs = nullptr;  // of the token, where they were asked for; null at the end

  /// The parts of `text` that are thinking and answer. All is answer where thinking is not told apart.
  std::string_view thought_text() const { return text.substr(0, text.size() - answer_text().size()); }
  std::string_view answer_text() const {
    const size_t answer = thought.told_apart ? shown_bytes - std::min(thought.bytes, shown_bytes) : text.size();
    return text.substr(text.size() - std::min(text.size(), answer));
  }
};

/// Reported when the prompt has been read.
struct ReplyStart {
  uint32_t reused_tokens = 0;  // of the prompt, in the cache already
  double prefill_ms = 0;
  uint32_t first_token = 0;               // the first new one of the reply: the root of the first round
  uint32_t begun_bytes = 0;               // of the text of ReplySettings::begun: what stands of it
  std::span<const uint32_t> before = {};  // the ids of the prompt and of what the reply had: what first_token follows
};

/// All may be empty. They run on the caller's thread.
struct ReplyCallbacks {
  std::function<void(uint32_t done, uint32_t total)> prefill;  // tokens of the prompt
  std::function<void(const TokenLogprobs&)> prompt_token;      // each in its order, where they were asked for
  std::function<void(const ReplyStart&)> started;
  std::function<void(const TraceDrafting&)> drafting;  // before the first round, where there is a drafter
  std::function<void(const ReplyProgress&)> token;
  std::function<void(const RoundRecord&)> round;  // when it was committed
  std::stop_token stop;                           // looked at between passes and within long ones; ends the reply
};

/// What to do about a text that the context has no room for, to end a sentence about its size with: a longer context is
/// advised only where the model has one.
std::string advice_on_room(uint32_t context, uint32_t model_context);

struct Reply {
  std::vector<uint32_t> ids;    // ReplySettings::begun and the new ones, the stop token included
  std::string text;             // of all of them, without control tokens and stop strings
  ThoughtPart thought = {};     // what of the text is thinking
  std::vector<ToolCall> calls;  // that the reply makes in channels of their own
  FinishReason reason = FinishReason::failed;
  std::string stop_string;  // that ended it; empty: none did
  uint32_t prompt_tokens = 0;
  uint32_t reused_tokens = 0;  // of the prompt, in the cache already
  uint32_t context_used = 0;   // positions, at the end
  double prefill_ms = 0;       // up to and including the first token
  double decode_ms = 0;        // all rounds
  std::vector<RoundRecord> rounds;
  PlainBeside plain;  // where ReplySettings::times_plain asked for it

  /// The text without the thinking that is told apart from it, and that thinking without the blanks behind it.
  std::string answer() const { return text.substr(thought.told_apart ? thought.bytes : 0); }
  std::string thinking() const;

  /// Tokens that came out of rounds, per second of rounds; 0 without any. The first token belongs to the prefill.
  double tokens_per_second() const;
  /// Mean tokens emitted in a round; 0 without any.
  double tau() const;
};

// Tokens of a reply to the text that can be shown: whole characters, no control tokens, nothing from a stop string on,
// and of a reply in channels (ReplyChannels) no markup.
class ReplyText {
 public:
  /// The tokenizer must outlive this. prompt: what the reply follows, which may end inside a channel.
  ReplyText(const Tokenizer& tokenizer, std::vector<std::string> stop_strings, std::span<const uint32_t> prompt = {});

  /// Takes a token and returns the text that it completes.
  std::string push(uint32_t id);

  /// Takes the token that ends the reply, whose own text is never shown.
  std::string push_end(uint32_t id);

  /// Ends the reply: what was held back and proved to be ordinary text.
  std::string finish();

  /// True once a stop string was met.
  bool stopped() const { return stops_.stopped(); }
  /// That stop string; empty before.
  const std::string& stop_string() const { return stops_.met(); }

  /// Bytes of text that the tokens so far completed: of text(), of what is held back, because it may begin a stop
  /// string, and of a stop string.
  size_t completed() const { return completed_; }

  /// All that push and finish returned.
  const std::string& text() const { return text_; }

  /// What of text() is thinking; not told apart where the reply has no channels.
  ThoughtPart thought() const;
  /// Calls of tools in channels of their own, in their order.
  std::vector<ToolCall> calls() const { return channels_ ? channels_->calls() : std::vector<ToolCall>(); }

 private:
  std::string show(const std::string& characters);
  std::string show(const ReplyChannels::Shown& part);
  std::string end_message();

  const Tokenizer& tokenizer_;
  Utf8Stream characters_;
  StopStrings stops_;
  std::optional<ReplyChannels> channels_;
  std::string text_;
  size_t completed_ = 0;
  bool at_start_ = true;  // where some vocabularies have a space that belongs to no text
};

/// Finds where a reply begins to turn in circles. It is told the tokens alone, so that a reply ends at the same one in
/// every mode: where its last tokens are one sequence of 3 to 128 tokens eight times in a row, be that a line, a
/// sentence or "a guide, ". The sequence has a letter (1/7 may have all its digits) and is not one or two tokens over
/// and over (a row of dashes, "ha ha ha"). Tokens in fenced code blocks and in rows of tables do not count: what comes
/// before and behind them is told apart. Having found one it begins anew, so that a reply can go on from there.
class LoopGuard {
 public:
  static constexpr uint32_t kShortest = 3, kLongest = 128, kTimes = 8;

  /// Takes the reply's next token and the bytes that it adds to the text. True when the reply repeats itself.
  bool push(uint32_t id, std::string_view bytes);

 private:
  bool is_exempt(std::string_view bytes);
  void clear();

  std::vector<uint32_t> ids_;                     // since it began anew
  std::array<uint32_t, kLongest + 1> repeats_{};  // [p]: of the last tokens, those that are as the one p before
  uint32_t since_letter_ = 0;                     // tokens without a letter at the end
  std::string line_;                              // first characters of the line, without blanks in front
  char fence_ = 0;                                // of the code block that is open
};

// One reply as events: what ReplyCallbacks tell, for a front end.

class ReplyPublisher {
 public:
  /// `wake` false: the event may wait until the front end looks by itself.
  using Publish = std::function<void(Event event, bool wake)>;

  /// begun: tokens that the reply has already (Generate::begun).
  ReplyPublisher(uint64_t reply_id, uint32_t prompt_tokens, uint32_t begun, Publish publish);

  /// Valid as long as this stays where it is. `rounds`: publish them, too.
  ReplyCallbacks callbacks(bool rounds, std::stop_token stop);

  /// Publishes text that waits. To be called when the reply ended, however it did.
  void flush();

 private:
  void token(const ReplyProgress& progress);
  void round(const RoundRecord& record);
  bool is_due();
  void publish_text(bool wake);

  Publish publish_;
  uint32_t prompt_tokens_, begun_;
  TextDelta pending_;
  bool has_pending_ = false;
  std::vector<uint32_t> text_ends_;  // of the tokens that belong to no published round yet
  uint32_t text_begin_ = 0;          // where the first of them begins
  uint32_t tokens_ = 0;              // of the reply
  std::chrono::steady_clock::time_point woken_;
};

}  // namespace canopy
