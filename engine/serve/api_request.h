#pragma once
// Requests: every field is done, refused by name where it would change the answer and is not done, or ignored where it
// is not known. Read here: those of OpenAI's interface, /v1/chat/completions and /v1/completions.

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/speculation/ddtree.h"
#include "engine/speculation/round_record.h"
#include "engine/speculation/sampler.h"
#include "engine/text/chat_turn.h"

namespace canopy {

/// A request that is refused, as the interface tells it.
struct ApiError : std::runtime_error {
  ApiError(int status, std::string type, const std::string& sentence, std::string param = {}, std::string code = {})
      : std::runtime_error(sentence),
        status(status),
        type(std::move(type)),
        param(std::move(param)),
        code(std::move(code)) {}

  int status;         // of HTTP
  std::string type;   // "invalid_request_error"
  std::string param;  // the field; empty: none
  std::string code;   // "model_not_found"; empty: none
};

/// {"error": {"message", "type", "param", "code"}}
nlohmann::ordered_json to_json(const ApiError& error);

enum class ApiKind { chat, completion };

/// The interface that a request is of: OpenAI's older ones, /v1/messages (anthropic_api.h), /v1/responses
/// (responses_api.h).
enum class ApiDialect { openai, anthropic, responses };

/// A prompt of /v1/completions: a text as it stands, or ids.
using RawPrompt = std::variant<std::string, std::vector<uint32_t>>;

/// Whether a reply is to be a call: of one of the tools that are offered, or of a named one.
enum class ToolChoice { automatic, none, required, named };

inline constexpr uint32_t kMostReplies = 8;        // to one prompt
inline constexpr uint32_t kMostAlternatives = 20;  // whose log probabilities are told beside a token's

struct ApiRequest {
  ApiKind kind = ApiKind::chat;
  ApiDialect dialect = ApiDialect::openai;
  std::string model;               // as the client named it; empty: it named none
  std::vector<ChatTurn> turns;     // of a chat
  std::vector<RawPrompt> prompts;  // of completions: a reply for each
  bool echo = false;               // likewise: the prompt stands in front of its reply

  std::string tools;                               // that the model may call, as JSON; empty: none
  std::vector<std::string> tool_names;             // of these
  bool one_call = false;                           // more than one is not wanted: parallel_tool_calls
  ToolChoice tool_choice = ToolChoice::automatic;  // without tools: automatic or none
  std::string tool_named;                          // of ToolChoice::named: one of tool_names

  SamplingSettings sampling;
  bool seed_given = false;             // else one is to be drawn
  std::optional<uint32_t> max_tokens;  // none: what the context has room for; 0 only with echo
  uint32_t replies = 1;                // to each prompt: the seed of each is one more than that before it
  std::optional<uint32_t> logprobs;    // of each token, with so many of the likeliest; none: they are not told
  std::vector<std::string> stops;
  std::optional<bool> thinking;  // none: as the chat template has it

  DecodeMode mode = DecodeMode::adaptive;
  uint32_t budget = 16;
  DraftSources sources = kUsualSources;

  bool stream = false, include_usage = false;
  // What a window of another machine asks for, in the field "canopy":
  bool rounds = false;          // with stream: the engine's own events (event_json.h)
  bool prompt_ids = false;      // with these: the ids of the prompt
  bool stop_loops = false;      // ReplySettings::stop_loops
  std::vector<uint32_t> begun;  // ReplySettings::begun

  bool omits_thinking = false;  // of anthropic: what was thought is not told

  // Of responses:
  bool store = false;               // the answer can be asked for, and gone on from
  std::vector<ChatTurn> kept;       // with store: the turns that a later request goes on from, without instructions
  nlohmann::ordered_json repeated;  // fields that the answer repeats
};

struct ApiLimits {
  uint32_t vocabulary = 0;          // tokens that a model has; 0: not known
  uint64_t identity = 0;            // Tokenizer::identity(), which ids in the field "canopy" must be of
  uint32_t most_budget = 127;       // drafted nodes of a tree
  float temperature = 1;            // where a request says nothing, as the interface has it
  uint32_t completion_tokens = 16;  // likewise of /v1/completions
  DecodeMode mode = DecodeMode::adaptive;
  DraftSources sources = kUsualSources;
};

/// Reads the body of a request. Throws ApiError naming the field, its value and what is allowed.
ApiRequest parse_chat_request(std::string_view body, const ApiLimits& limits);
ApiRequest parse_completion_request(std::string_view body, const ApiLimits& limits);

}  // namespace canopy
