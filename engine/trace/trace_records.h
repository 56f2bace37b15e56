#pragma once
// The records of a trace other than its rounds (docs/traces.md): machine and models, and the beginning and end of
// each reply; and the redaction of all records, which removes texts and token ids.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/speculation/round_record.h"
#include "engine/speculation/sampler.h"

namespace canopy {

/// What the time of a model's passes depends on, so that it can be predicted for another device.
struct TraceSizes {
  uint32_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0;
  uint32_t expert_layers = 0;                              // layers with experts in the place of the feed-forward
  uint32_t experts = 0, experts_used = 0, expert_ffn = 0;  // of such a layer
  uint32_t shared_ffn = 0;                                 // likewise, of the expert of all rows; 0: there is none
  uint32_t recurrent_layers = 0;  // gated delta nets, or of LFM2 short convolutions, in the place of attention
  uint32_t key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0, conv_taps = 0;  // of such a layer
  // Of attention to latents (ModelConfig::latent), whose one key has head_dim elements; 0: it is not.
  uint32_t latent_rank = 0, latent_query_rank = 0, latent_key_dim = 0, latent_value_dim = 0;
  uint32_t rotary_dim = 0;   // elements of a head that are turned; 0: all
  bool output_gate = false;  // of attention
  bool tied_head = false, qk_norm = false;
  uint64_t parameters = 0;
  /// The type of the weights of each kind, as loaded: {"attn_q", "Q4_1"}, {"output", "Q6_K"}.
  std::vector<std::pair<std::string, std::string>> types;
  // Of a drafter alone: rows of its pass, target layers that it reads, tokens that its head is over.
  uint32_t block = 0, taps = 0, drafted_tokens = 0;
  // Of relatives of DFlash, 0 where a drafter lacks them: of a Markov head, and of convolutions along its block.
  uint32_t markov_rank = 0, row_conv_taps = 0, row_conv_group = 0;
};

struct TraceModel {
  std::string name;
  std::string file_name;  // last component only; the writer cuts off the rest
  std::string architecture;
  std::string quantization;
  std::string quantized_to = {};         // while it was loaded, e.g. "Q8_0"; empty where the file's types were kept
  std::optional<TraceSizes> sizes = {};  // none in a trace of version 1.0
};

/// Fields that hold for all replies of a trace.
struct TraceHeader {
  std::string canopy_version;  // the writer fills it in where it is empty
  std::string created;         // UTC, "2026-11-21T20:15:00Z"; likewise
  TraceModel target;
  std::optional<TraceModel> drafter;
  std::string device;
  std::string driver;
  std::string backend;      // "vulkan" or "cuda"; empty in traces of before there was a choice
  std::string kv_type;      // "f16", "f32"
  uint32_t context = 0;     // positions of the K/V cache
  std::string variants;     // identity of the kernels chosen by timing; empty: none were
  std::string calibration;  // identity of the measured cost table; empty: none
  bool redacted = false;    // set by the writer: no texts, and token ids that are renumbered in each round
  /// Where the times come from if nothing was recorded on that device: "predicted", "measured elsewhere" (trace
  /// what-if). Empty in a recording.
  std::string times = {};
};

/// The request of one reply.
struct TraceReplyBegin {
  uint64_t turn = 0;
  DecodeMode mode = DecodeMode::ar;
  std::string policy;   // of the adaptive mode; empty elsewhere
  uint32_t budget = 0;  // drafted nodes
  uint32_t max_tokens = 0;
  SamplingSettings sampling;
  std::vector<std::string> stop_strings;  // none in a redacted trace
  uint32_t prompt_tokens = 0;             // the writer takes it from prompt, where that is not empty
  std::vector<uint32_t> prompt;           // ids; none in a redacted trace
  uint32_t begun_tokens = 0;              // the last of the prompt, where the reply goes on with what it already has
};

/// The prompt is read, and the first token of the reply is known: the root of the first round.
struct TracePrefill {
  uint32_t reused_tokens = 0;  // of the prompt, in the cache already
  double ms = 0;
  std::optional<uint32_t> first_token;  // none in a redacted trace
};

struct TraceReplyEnd {
  FinishReason reason = FinishReason::stop_token;
  uint32_t reply_tokens = 0;
  double decode_ms = 0;
  std::string text;  // as the user saw it; none in a redacted trace
};

/// "stop_token", "max_tokens", ...: the names in files and JSON.
std::string_view json_name(FinishReason reason);
/// The reason of that name; nothing for another name.
std::optional<FinishReason> finish_reason_named(std::string_view name);

nlohmann::ordered_json to_json(const TraceHeader& header);
nlohmann::ordered_json to_json(const TraceReplyBegin& begin);
nlohmann::ordered_json to_json(const TracePrefill& prefill);
nlohmann::ordered_json to_json(const TraceReplyEnd& end);

/// The other direction, from the text of a JSON object. Each throws bad_input naming field, value and what is allowed;
/// unknown fields, which a later version may add, are ignored.
TraceHeader parse_trace_header(std::string_view json);
TraceReplyBegin parse_trace_reply_begin(std::string_view json);
TracePrefill parse_trace_prefill(std::string_view json);
TraceReplyEnd parse_trace_reply_end(std::string_view json);

// Words of other chats. A guess that earlier replies alone made, and that did not become text, would carry theirs into
// what is kept with a chat or given to others.

/// Whether the record has such guesses.
bool has_other_chats(const RoundRecord& record);

/// The record with trace::other_chats_token in place of each such guess, and without what the target would have written
/// behind it. Place, probabilities, source and state stay.
RoundRecord without_other_chats(RoundRecord record);

// Redaction of trace records: keeps tree shapes, probabilities, times and counts, and removes texts and token ids. It
// is not a guarantee of secrecy: someone who has both models may still guess text from the probabilities.

/// Tokens are numbered anew in each round, in the order of their appearance, so that equal tokens of a round stay equal
/// and those of different rounds cannot be compared: the frequency of tokens would give a text away.
RoundRecord redacted(RoundRecord record);

/// The record without the prompt, the stop strings and the tokens of the logit bias.
TraceReplyBegin redacted(TraceReplyBegin begin);

/// The record without its first token.
TracePrefill redacted(TracePrefill prefill);

/// The record without its text.
TraceReplyEnd redacted(TraceReplyEnd end);

}  // namespace canopy
