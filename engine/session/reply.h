#pragma once
// Settings of a reply, what is reported while it is written, and the finished reply.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "engine/client/engine_client.h"
#include "engine/speculation/cost_policy.h"
#include "engine/speculation/sampler.h"
#include "engine/text/reply_channels.h"
#include "engine/trace/round_record.h"
#include "engine/trace/trace_drafting.h"

namespace canopy {

struct ReplySettings {
  DecodeMode mode = DecodeMode::ar;
  uint32_t budget = 16;  // of mode tree: drafted nodes, at least 1; a larger one than fits the pass is cut to what fits
  CostPolicy policy = CostPolicy::measured;  // of mode adaptive
  /// For measurements: the reply takes these tokens whatever the target says, one after the other, and ends with them
  /// at the latest. Empty: the target's own.
  std::vector<uint32_t> forced;
  /// The beginning of the reply, read after the prompt; the reply goes on from there as if one larger limit had been
  /// set. Without a token or a stop string that ends a reply.
  std::vector<uint32_t> begun;
  bool drafts = false;         // fill RoundRecord::draft
  bool probabilities = false;  // fill RoundNode::log_p (tree_input() says of which nodes); costs a little time
  SamplingSettings sampling;
  uint32_t max_tokens = 512;              // of new ones; at least 1
  uint64_t turn = 0;                      // number of this reply in its conversation: part of the random stream
  std::vector<std::string> stop_strings;  // beside those of the form of prompt
};

/// Reported after each token, and at the end once more for text that was held back.
struct ReplyProgress {
  std::string_view text;  // new text, whole characters; may be empty
  uint32_t reply_tokens = 0;
  uint32_t text_end = 0;      // bytes that the tokens so far completed, in the reply's text (RoundFinished)
  uint32_t context_used = 0;  // positions in the cache
  double tokens_per_second = 0;
  uint32_t shown_bytes = 0;  // of the reply's text so far, this text included
  ThoughtPart thought = {};

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
  uint32_t first_token = 0;  // the first new one of the reply: the root of the first round
  uint32_t begun_bytes = 0;  // of the text of ReplySettings::begun: what stands of it
};

/// All may be empty. They run on the caller's thread.
struct ReplyCallbacks {
  std::function<void(uint32_t done, uint32_t total)> prefill;  // tokens of the prompt
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
  uint32_t prompt_tokens = 0;
  uint32_t reused_tokens = 0;  // of the prompt, in the cache already
  double prefill_ms = 0;       // up to and including the first token
  double decode_ms = 0;        // all rounds
  std::vector<RoundRecord> rounds;

  /// The text without the thinking that is told apart from it, and that thinking without the blanks behind it.
  std::string answer() const { return text.substr(thought.told_apart ? thought.bytes : 0); }
  std::string thinking() const;

  /// Tokens that came out of rounds, per second of rounds; 0 without any. The first token belongs to the prefill.
  double tokens_per_second() const;
  /// Mean tokens emitted in a round; 0 without any.
  double tau() const;
};

}  // namespace canopy
