#include "engine/serve/model_server.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <deque>
#include <iterator>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/text.h"
#include "engine/serve/anthropic_api.h"
#include "engine/serve/api_reply.h"
#include "engine/serve/reply_parts.h"
#include "engine/serve/response_store.h"
#include "engine/serve/responses_api.h"
#include "engine/serve/scheduler.h"
#include "engine/session/event_json.h"
#include "engine/session/reply_trace.h"
#include "engine/trace/trace_records.h"

namespace canopy {
namespace {

using ServerJson = nlohmann::ordered_json;
using std::chrono::milliseconds;

constexpr milliseconds kLook{100};      // how often a connection looks whether its client is still there
constexpr milliseconds kTogether{10};   // for so long what is written goes to a client together
constexpr milliseconds kComment{1000};  // after which silence a stream is kept alive
constexpr size_t kMostKept = 1024, kMostKeptBytes = size_t{64} << 20;  // responses that can be gone on from

std::string text_of_json(const ServerJson& json) {
  return json.dump(-1, ' ', false, ServerJson::error_handler_t::replace) + "\n";
}

ApiError not_allowed(int status, const std::string& sentence, std::string code) {
  return ApiError(status, status == 401 ? "authentication_error" : "permission_error", sentence, {}, std::move(code));
}

/// The path without /v1 in front.
std::string_view path_of(const HttpRequest& request) {
  std::string_view path = request.path;
  if (path.starts_with("/v1/")) path.remove_prefix(3);
  return path;
}

/// Whether a client of Anthropic's interface asks: these send the header, also for the paths of both.
bool asks_as_anthropic(const HttpRequest& request) {
  const std::string_view path = path_of(request);
  return path == "/messages" || path.starts_with("/messages/") || request.header("anthropic-version") != nullptr;
}

/// An error in the form of the interface that was asked.
ServerJson error_json(const HttpRequest& request, const ApiError& error) {
  return asks_as_anthropic(request) ? anthropic_error(error) : to_json(error);
}

/// The list of turns of a request.
const char* turns_field(const ApiRequest& request) {
  return request.dialect == ApiDialect::responses ? "input" : "messages";
}

const char* id_prefix(const ApiRequest& request) {
  if (request.dialect == ApiDialect::anthropic) return "msg_";
  if (request.dialect == ApiDialect::responses) return "resp_";
  return request.kind == ApiKind::chat ? "chatcmpl-" : "cmpl-";
}

std::string random_id() {
  std::random_device device;
  std::string id;
  for (int i = 0; i < 3; ++i) {
    char digits[16];
    std::snprintf(digits, sizeof digits, "%08x", device());
    id += digits;
  }
  return id;
}

uint64_t random_seed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

bool is_json_type(const std::string* type) {
  if (type == nullptr) return false;
  std::string name = type->substr(0, type->find(';'));
  while (name.ends_with(' ') || name.ends_with('\t')) name.pop_back();
  std::ranges::transform(name, name.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return name == "application/json";
}

uint64_t replies_of(const std::vector<ChatTurn>& turns) {
  return static_cast<uint64_t>(std::ranges::count(turns, "assistant", &ChatTurn::role));
}

// Tokens with their log probabilities.

ApiToken api_token(const Tokenizer& tokenizer, const TokenLogprobs& logprobs, size_t begin) {
  const auto named = [&](const TokenLogprob& each) {
    return ApiTokenLogprob{std::string(tokenizer.token_bytes(each.token)), each.logprob};
  };
  ApiToken token{named(logprobs.chosen), {}, begin};
  for (const TokenLogprob& each : logprobs.likeliest) token.likeliest.push_back(named(each));
  return token;
}

/// Those of a prompt, with their places in the text that stands for it, as far as they are in it: bos is not.
std::vector<ApiToken> echoed_tokens(const Tokenizer& tokenizer, std::span<const TokenLogprobs> prompt,
                                    std::string_view text) {
  std::vector<ApiToken> tokens;
  size_t at = 0;
  for (const TokenLogprobs& each : prompt) {
    tokens.push_back(api_token(tokenizer, each, at));
    std::string_view bytes = tokens.back().chosen.bytes;
    const std::string_view rest = text.substr(at);
    if (at == 0 && bytes.starts_with(' ') && !rest.starts_with(' ')) bytes.remove_prefix(1);
    if (rest.starts_with(bytes) || !tokenizer.is_special(each.chosen.token)) at += std::min(bytes.size(), rest.size());
  }
  return tokens;
}

/// Tokens of a reply, until the text that they complete is told.
class UntoldTokens {
 public:
  UntoldTokens(const Tokenizer& tokenizer, size_t echo) : tokenizer_(tokenizer), begin_(echo), echo_(echo) {}

  void add(std::vector<TokenNews> tokens) { std::ranges::move(tokens, std::back_inserter(tokens_)); }
  /// Takes those that are complete with so many bytes of the reply's text.
  std::vector<ApiToken> take(size_t bytes) {
    std::vector<ApiToken> told;
    for (; !tokens_.empty() && tokens_.front().text_end <= bytes; tokens_.pop_front()) {
      told.push_back(api_token(tokenizer_, tokens_.front().logprobs, begin_));
      begin_ = echo_ + tokens_.front().text_end;
    }
    return told;
  }

 private:
  const Tokenizer& tokenizer_;
  std::deque<TokenNews> tokens_;
  size_t begin_;  // of the next one, in the text of the choice
  const size_t echo_;
};

}  // namespace

class ModelServer::Work {
 public:
  Work(const Engine& engine, ServeOptions options, ServedObserver* observer, std::function<void()> wake)
      : engine_(engine),
        options_(checked(std::move(options))),
        is_watched_(observer != nullptr),
        scheduler_(engine, options_.scheduling, observer, std::move(wake)) {
    for (size_t i = 0; i < options_.keys.size(); ++i) {
      if (options_.keys[i].name.empty()) options_.keys[i].name = "key " + std::to_string(i + 1);
    }
    for (std::string& host : options_.hosts) host = host_of(host);
    if (options_.model.empty()) options_.model = served_name(engine_.file_name);
    options_.api.vocabulary = engine_.text.tokenizer->vocab_size();
    options_.api.identity = engine_.text.tokenizer->identity();
    about_ = about();
    http_ = std::make_unique<HttpServer>(
        options_.address, options_.limits,
        [this](const HttpRequest& head, HttpAnswer& answer) { return admit(head, answer); },
        [this](const HttpRequest& request, HttpAnswer& answer) { handle(request, answer); });
  }

  ~Work() { end_replies(); }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  std::string url() const {
    const std::string& host = options_.address.host;
    const bool is_v6 = host.find(':') != std::string::npos;
    return "http://" + (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(http_->port()) + "/v1";
  }
  const std::string& model() const { return options_.model; }

  void run(const std::stop_token& stop) {
    scheduler_.run(stop);
    end_replies();
    http_->close();
  }
  Scheduler& scheduler() { return scheduler_; }

 private:
  static ServeOptions checked(ServeOptions options) {
    validate(options);
    return options;
  }

  /// Counts a request whose client waits.
  class Answering {
   public:
    explicit Answering(std::atomic<uint32_t>& count) : count_(count) { ++count_; }
    ~Answering() { --count_; }
    Answering(const Answering&) = delete;
    Answering& operator=(const Answering&) = delete;

   private:
    std::atomic<uint32_t>& count_;
  };

  /// Clients that wait are told that there is no more, as far as they read it within a second.
  void end_replies() {
    scheduler_.end_all();
    const auto end = std::chrono::steady_clock::now() + kComment;
    while (answering_ > 0 && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  // Who may ask.

  bool is_known_host(const HttpRequest& request) const {
    const std::string* header = request.header("host");
    if (header == nullptr) return true;  // HTTP/1.0, which no browser speaks
    const std::string host = host_of(*header);
    if (host.empty()) return false;
    // An address that a browser was made to look up under a name of its own comes with that name, so that the address
    // itself is as good as a name of this machine.
    return is_loopback_host(host) || host == request.local_address || host == host_of(options_.address.host) ||
           std::ranges::find(options_.hosts, host) != options_.hosts.end();
  }

  HttpHeaders cors(const HttpRequest& request) const {
    const std::string* origin = request.header("origin");
    if (origin == nullptr || std::ranges::find(options_.origins, *origin) == options_.origins.end()) return {};
    return {{"Access-Control-Allow-Origin", *origin}, {"Vary", "Origin"}};
  }

  /// The place of the key that a request names; nothing where it names none of them. All are compared, so that the time
  /// tells nothing of them.
  std::optional<size_t> key_of(const HttpRequest& request) const {
    if (options_.keys.empty()) return 0;
    std::string_view given;
    constexpr std::string_view bearer = "Bearer ";
    if (const std::string* header = request.header("authorization"); header != nullptr && header->starts_with(bearer)) {
      given = std::string_view(*header).substr(bearer.size());
    } else if (const std::string* other = request.header("x-api-key")) {
      given = *other;
    }
    std::optional<size_t> found;
    for (size_t i = 0; i < options_.keys.size(); ++i) {
      if (same_key(options_.keys[i].key, given)) found = i;
    }
    return found;
  }

  ServedClient client_of(const HttpRequest& request) const {
    const size_t key = key_of(request).value_or(0);
    return {key, options_.keys.empty() ? std::string() : options_.keys[key].name, request.remote_address};
  }

  void refuse(const HttpRequest& request, const ApiError& error, HttpAnswer& answer) const {
    HttpHeaders headers = cors(request);
    if (error.status == 401) headers.emplace_back("WWW-Authenticate", "Bearer");
    if (error.status == 429 || error.status == 503) headers.emplace_back("Retry-After", "1");
    answer.send(error.status, "application/json", text_of_json(error_json(request, error)), headers);
  }

  bool admit(const HttpRequest& head, HttpAnswer& answer) const {
    const auto denied = [&](const ApiError& error) {
      refuse(head, error, answer);
      return false;
    };
    if (!is_known_host(head))
      return denied(not_allowed(403,
                                "The header Host names " + quoted_name(*head.header("host")) +
                                    ", which is no name of this server: --allow-host names more.",
                                "host_not_allowed"));
    if (const std::string* origin = head.header("origin"); origin != nullptr && cors(head).empty())
      return denied(not_allowed(403, "Pages of " + quoted_name(*origin) + " may not ask: --cors names those that may.",
                                "origin_not_allowed"));
    if (head.method == "OPTIONS") {
      HttpHeaders headers = cors(head);
      headers.emplace_back("Access-Control-Allow-Methods", "GET, POST, DELETE");
      headers.emplace_back("Access-Control-Allow-Headers",
                           "authorization, content-type, x-api-key, anthropic-version, anthropic-beta, "
                           "anthropic-dangerous-direct-browser-access");
      headers.emplace_back("Access-Control-Max-Age", "600");
      answer.send(204, "", "", headers);
      return false;
    }
    if (head.path != "/health" && head.path != "/v1/health" && !key_of(head))
      return denied(
          not_allowed(401, "The key is missing or wrong: send it as Authorization: Bearer KEY.", "invalid_api_key"));
    return true;
  }

  // What there is.

  void handle(const HttpRequest& request, HttpAnswer& answer) {
    try {
      route(request, answer);
    } catch (const ApiError& error) {
      if (!answer.begun()) refuse(request, error, answer);
    } catch (const Error& error) {
      if (!answer.begun()) refuse(request, api_error(error), answer);
    }
  }

  void route(const HttpRequest& request, HttpAnswer& answer) {
    const std::string_view path = path_of(request);
    const bool reads = request.method == "GET" || request.method == "HEAD";
    const auto is = [&](std::string_view name, bool wanted, const char* allowed) {
      if (path != name) return false;
      if (!wanted)
        throw ApiError(405, "invalid_request_error", quoted_name(request.path) + " is asked for with " + allowed + ".",
                       {}, "method_not_allowed");
      return true;
    };
    const auto whole = [&](const ServerJson& json) {
      answer.send(200, "application/json", text_of_json(json), cors(request));
    };
    const bool posts = request.method == "POST";
    if (is("/health", reads, "GET")) {
      whole({{"status", "ok"}});
    } else if (is("/models", reads, "GET")) {
      ServerJson list = {{"object", "list"}, {"data", ServerJson::array({model_json(request)})}};
      if (asks_as_anthropic(request))
        list = {{"data", list["data"]}, {"has_more", false}, {"first_id", options_.model}, {"last_id", options_.model}};
      whole(list);
    } else if (path.starts_with("/models/") && is(path, reads, "GET")) {
      require_model(std::string(path.substr(std::string_view("/models/").size())));
      whole(model_json(request));
    } else if (is("/canopy", reads, "GET")) {
      whole(about_);
    } else if (is("/canopy/tokens", reads, "GET")) {
      whole(texts_to_json(*engine_.texts, options_.api.vocabulary));
    } else if (is("/metrics", reads, "GET")) {
      answer.send(200, "text/plain; version=0.0.4; charset=utf-8",
                  metrics_text(scheduler_.counts(), scheduler_.waiting(), scheduler_.running()), cors(request));
    } else if (is("/chat/completions", posts, "POST")) {
      require_json(request);
      reply(parse_chat_request(request.body, options_.api), request, answer);
    } else if (is("/completions", posts, "POST")) {
      require_json(request);
      reply(parse_completion_request(request.body, options_.api), request, answer);
    } else if (is("/messages", posts, "POST")) {
      require_json(request);
      reply(parse_messages_request(request.body, options_.api), request, answer);
    } else if (is("/messages/count_tokens", posts, "POST")) {
      require_json(request);
      const ApiRequest counted = parse_messages_request(request.body, options_.api, true);
      require_model(counted.model);
      whole({{"input_tokens", chat_prompt(counted).ids.size()}});
    } else if (is("/responses", posts, "POST")) {
      require_json(request);
      reply(parse_responses_request(request.body, options_.api,
                                    [&](const std::string& id) { return earlier(client_of(request).key, id); }),
            request, answer);
    } else if (path.starts_with("/responses/") && is(path, reads || request.method == "DELETE", "GET or DELETE")) {
      kept_response(std::string(path.substr(std::string_view("/responses/").size())), request, answer);
    } else if (is("/embeddings", posts, "POST")) {
      throw ApiError(501, "invalid_request_error",
                     "This server has a model that writes text; it gives no embeddings. Use a server with an embedding "
                     "model for them.",
                     {}, "not_implemented");
    } else {
      throw ApiError(404, "invalid_request_error",
                     "There is no " + quoted_name(request.path) +
                         " here; there are /v1/models, /v1/chat/completions, /v1/completions, /v1/messages, "
                         "/v1/messages/count_tokens, /v1/responses, /v1/canopy, /health and /metrics.",
                     {}, "not_found");
    }
  }

  std::vector<ChatTurn> earlier(size_t key, const std::string& id) {
    const auto kept = responses_.find(key, id);
    if (kept == nullptr)
      throw ApiError(400, "invalid_request_error",
                     "The field \"previous_response_id\" is " + quoted_name(id) +
                         ", which is not kept: responses are, with \"store\", until newer ones need the room or the "
                         "server ends. Send the whole conversation as \"input\".",
                     "previous_response_id", "previous_response_not_found");
    return kept->turns;
  }

  void kept_response(const std::string& id, const HttpRequest& request, HttpAnswer& answer) {
    const bool deletes = request.method == "DELETE";
    const size_t key = client_of(request).key;
    const auto kept = responses_.find(key, id);
    if (kept == nullptr || (deletes && !responses_.erase(key, id)))
      throw ApiError(404, "invalid_request_error", "The response " + quoted_name(id) + " is not kept.", {},
                     "response_not_found");
    answer.send(200, "application/json",
                deletes ? text_of_json({{"id", id}, {"object", "response"}, {"deleted", true}}) : kept->json,
                cors(request));
  }

  ServerJson model_json(const HttpRequest& request) const {
    if (asks_as_anthropic(request))
      return {{"type", "model"},
              {"id", options_.model},
              {"display_name", options_.model},
              {"created_at", started_text_},
              {"lifecycle", "active"},
              {"max_input_tokens", engine_.model->limits().context},
              {"max_tokens", engine_.model->limits().context}};
    return {{"id", options_.model},
            {"object", "model"},
            {"created", started_},
            {"owned_by", "canopy"},
            {"max_model_len", engine_.model->limits().context}};
  }

  /// What a window of another machine shows. Made once, as the engine belongs to the thread that writes.
  ServerJson about() const {
    const ModelReady model = engine_.describe();
    const auto sources = static_cast<DraftSources>(model.drafted_by | kFromSuffix | kFromRecycling);
    return {{"schema", kEventSchema},
            {"id", options_.model},
            {"sources", source_names(sources)},
            {"model", model_to_json(model)},
            {"header", to_json(trace_header(engine_))}};
  }

  void require_json(const HttpRequest& request) const {
    if (!is_json_type(request.header("content-type")))
      throw ApiError(415, "invalid_request_error", "The body must be JSON, with Content-Type: application/json.", {},
                     "unsupported_media_type");
  }

  void require_model(const std::string& name) const {
    if (name.empty() || name == options_.model || name == engine_.file_name) return;
    throw ApiError(404, "invalid_request_error",
                   "The model " + quoted_name(name) + " is not loaded; " + quoted_name(options_.model) + " is.",
                   "model", "model_not_found");
  }

  static ApiError api_error(const Error& error) {
    if (error.kind() == ErrorKind::bad_input) return ApiError(400, "invalid_request_error", error.what());
    // What else fails here may name files and devices of this machine, which are no client's business.
    log_warning(std::string("A request failed: ") + error.what());
    if (error.kind() == ErrorKind::out_of_memory)
      return ApiError(503, "server_error", "There is too little memory for this request.", {}, "out_of_memory");
    if (error.kind() == ErrorKind::cancelled) return ApiError(503, "server_error", "The reply was cancelled.");
    return ApiError(500, "server_error", "The reply could not be written; the server's log says why.");
  }

  // Replies.

  /// The prompts of a request as ids, with what was said of each of them.
  struct Prompt {
    std::vector<uint32_t> ids;
    std::string echo;
    std::string opening;  // the end of the prompt, where that is the beginning of a call
    ReplySettings settings;
  };

  /// The end of a prompt as it is shown where it is part of a reply.
  std::string shown(const std::string& text) const {
    const Tokenizer& tokenizer = *engine_.text.tokenizer;
    ReplyText reply(tokenizer, {});
    for (const uint32_t id : tokenizer.encode(text, SpecialTokens::parse)) reply.push(id);
    reply.finish();
    return reply.text().substr(reply.thought().bytes);
  }

  /// Ends the prompt of a reply that must be a call in the beginning of one.
  void begin_call(const ApiRequest& request, const ChatTemplate& chat, Prompt& prompt) const {
    const CallPrompt call = [&] {
      try {
        return chat.render_call_to_ids(request.turns, *engine_.text.tokenizer, {true, request.thinking, request.tools},
                                       request.tool_named);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::bad_input) throw;
        throw ApiError(400, "invalid_request_error", error.what(), "tool_choice");
      }
    }();
    prompt.ids = call.ids;
    if (ReplyChannels::has_calls(*engine_.text.tokenizer)) return;  // it is in a message of its own
    ReplyParts sample({std::string(kSampleCall)}, chat.thinking().opened(request.thinking));
    std::vector<ToolCall> calls = sample.push(shown(call.sample)).calls;
    std::ranges::move(sample.finish().calls, std::back_inserter(calls));
    if (calls.size() != 1 || calls.front().name != kSampleCall)
      throw ApiError(
          400, "invalid_request_error",
          "The model's chat template writes calls in a form that this server does not read, so that none can "
          "be begun; \"auto\" and \"none\" are allowed.",
          "tool_choice");
    prompt.opening = shown(call.opening);
  }

  void require_place_for_calls(const ApiRequest& request, const ChatTemplate& chat) const {
    const auto has_calls = [](const ChatTurn& turn) {
      return !turn.fields.empty() && ServerJson::parse(turn.fields).contains("tool_calls");
    };
    constexpr std::array<std::string_view, 1> calls = {"tool_calls"};
    if (std::ranges::any_of(request.turns, has_calls) &&
        !chat.uses_fields(request.turns, calls, {true, request.thinking, request.tools}))
      throw ApiError(400, "invalid_request_error",
                     "The model's chat template has no place for \"tool_calls\" of earlier turns.",
                     turns_field(request));
  }

  const ChatTemplate& template_of(const ApiRequest& request) const {
    return !request.tools.empty() && engine_.text.tool_chat != nullptr ? *engine_.text.tool_chat : *engine_.text.chat;
  }

  ReplySettings settings_of(const ApiRequest& request, size_t prompt_tokens, const char* field) const {
    ReplySettings settings;
    settings.mode = request.mode;
    settings.sources = request.sources;
    settings.budget = request.budget;
    settings.sampling = request.sampling;
    if (!request.seed_given) settings.sampling.seed = random_seed();
    settings.stop_strings = request.stops;
    settings.turn = replies_of(request.turns);
    settings.probabilities = request.rounds || is_watched_;
    settings.times_plain = request.rounds;
    settings.stop_loops = request.stop_loops;
    settings.begun = request.begun;
    settings.logprobs = request.logprobs;
    // A prompt without a reply is read for its log probabilities, whether they are told or not.
    settings.prompt_logprobs = request.echo && (request.logprobs || request.max_tokens == 0u);
    if (settings.prompt_logprobs && !settings.logprobs) settings.logprobs = 0;
    prompt_tokens += request.begun.size();
    const uint32_t context = engine_.model->limits().context;
    if (prompt_tokens >= context)
      throw ApiError(400, "invalid_request_error",
                     "The prompt has " + std::to_string(prompt_tokens) + " tokens; the context holds " +
                         std::to_string(context) + ", the reply included.",
                     field, "context_length_exceeded");
    settings.max_tokens = std::min(request.max_tokens.value_or(context), context);
    return settings;
  }

  /// Of a chat, without settings.
  Prompt chat_prompt(const ApiRequest& request) const {
    Prompt prompt;
    try {
      require_place_for_calls(request, template_of(request));
      prompt.ids = engine_.prompt_ids(request.turns, "", request.thinking, request.tools);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::bad_input) throw;
      throw ApiError(400, "invalid_request_error", error.what(), turns_field(request));
    }
    if (request.tool_choice == ToolChoice::required || request.tool_choice == ToolChoice::named)
      begin_call(request, template_of(request), prompt);
    return prompt;
  }

  std::vector<Prompt> prompts_of(const ApiRequest& request) const {
    std::vector<Prompt> prompts;
    if (request.kind == ApiKind::chat) {
      Prompt prompt = chat_prompt(request);
      prompt.settings = settings_of(request, prompt.ids.size(), turns_field(request));
      prompts.push_back(std::move(prompt));
    }
    for (const RawPrompt& raw : request.prompts) {
      Prompt prompt;
      const auto* text = std::get_if<std::string>(&raw);
      prompt.ids = text != nullptr ? engine_.text.encode_raw(*text) : std::get<std::vector<uint32_t>>(raw);
      if (request.echo) prompt.echo = text != nullptr ? *text : engine_.text.tokenizer->decode(prompt.ids);
      if (prompt.ids.empty())
        throw ApiError(400, "invalid_request_error", "The field \"prompt\" has no token.", "prompt");
      prompt.settings = settings_of(request, prompt.ids.size(), "prompt");
      prompts.push_back(std::move(prompt));
    }
    return prompts;
  }

  static std::unique_ptr<AnswerWriter> writer_for(const ApiRequest& request, const ApiAnswer& about, uint32_t index,
                                                  size_t prompt_tokens) {
    switch (request.dialect) {
      case ApiDialect::anthropic:
        return std::make_unique<MessagesWriter>(about, prompt_tokens, request.one_call, request.omits_thinking);
      case ApiDialect::responses: return std::make_unique<ResponsesWriter>(about, request.repeated, request.one_call);
      case ApiDialect::openai: break;
    }
    return std::make_unique<ApiReplyWriter>(request.kind, about, index, request.one_call, request.include_usage);
  }

  void reply(const ApiRequest& request, const HttpRequest& http, HttpAnswer& answer) {
    const Answering answers(answering_);
    require_model(request.model);
    const std::vector<Prompt> prompts = prompts_of(request);
    const ApiAnswer about{id_prefix(request) + random_id(), static_cast<int64_t>(std::time(nullptr)), options_.model};
    const HttpHeaders headers = cors(http);
    const ServedClient client = client_of(http);
    ApiUsage usage;
    ServerJson choices = ServerJson::array();
    std::unique_ptr<AnswerWriter> writer;
    for (uint32_t index = 0; index < prompts.size() * request.replies; ++index) {
      const Prompt& prompt = prompts[index / request.replies];
      writer = writer_for(request, about, index, prompt.ids.size());
      const uint32_t number = index % request.replies;  // among those to this prompt
      ReplySettings settings = prompt.settings;
      if (number > 0) settings.sampling.seed = request.seed_given ? settings.sampling.seed + number : random_seed();
      const std::shared_ptr<QueuedReply> reply = scheduler_.put({.client = client,
                                                                 .kind = http.path,
                                                                 .turns = request.turns,
                                                                 .prompt = prompt.ids,
                                                                 .settings = std::move(settings),
                                                                 .thinking = request.thinking,
                                                                 .wants_rounds = request.rounds && request.stream});
      if (reply == nullptr) {
        const ApiError busy(
            503, "server_error",
            "As many requests wait as may, " + std::to_string(options_.scheduling.most_waiting) + ": ask again later.",
            {}, "queue_full");
        if (!answer.begun()) throw busy;
        answer.write(writer->failure(busy));
        return;
      }
      if (request.stream && !answer.begun()) answer.begin(200, "text/event-stream; charset=utf-8", headers);
      ApiUsage tokens;
      const std::optional<FinishReason> reason = follow(request, prompt, *reply, *writer, answer, tokens);
      usage.reply += tokens.reply;
      usage.thinking += tokens.thinking;
      if (number == 0) {  // a prompt counts once
        usage.prompt += tokens.prompt;
        usage.cached += tokens.cached;
      }
      if (!reason) return;  // the client is gone, or was told why there is no more
      if (!request.stream || request.store) choices.push_back(writer->choice(*reason));
    }
    ServerJson whole;
    if (!request.stream || request.store) whole = writer->whole(std::move(choices), usage);
    if (request.store) keep(client.key, request, about.id, whole);  // first: who reads the end may go on at once
    if (request.stream) {
      if (answer.write(writer->closing(usage))) answer.end();
    } else {
      answer.send(200, "application/json", text_of_json(whole), headers);
    }
  }

  void keep(size_t key, const ApiRequest& request, const std::string& id, const ServerJson& response) {
    KeptResponse kept{request.kept, text_of_json(response)};
    for (ChatTurn& turn : turns_of_output(response.at("output"))) kept.turns.push_back(std::move(turn));
    responses_.put(key, id, std::move(kept));
  }

  /// Hands on what is written until the reply is over. Nothing: the client is gone, or the reply failed in a stream.
  std::optional<FinishReason> follow(const ApiRequest& request, const Prompt& prompt, QueuedReply& reply,
                                     AnswerWriter& writer, HttpAnswer& answer, ApiUsage& usage) {
    // Calls in messages of their own are told apart already.
    ReplyParts parts(
        ReplyChannels::has_calls(*engine_.text.tokenizer) ? std::vector<std::string>() : request.tool_names,
        template_of(request).thinking().opened(request.thinking));
    std::string thinking;
    const auto part_events = [&](const ReplyPart& part) {
      thinking += part.thinking;
      return writer.part(part);
    };
    const auto write = [&](const std::string& events) {
      return !request.stream || events.empty() || answer.write(events);
    };
    bool there = write(writer.opening());
    if (!prompt.opening.empty()) there = there && write(writer.part(parts.push(prompt.opening)));
    const bool weighs = request.logprobs.has_value();
    UntoldTokens untold(*engine_.text.tokenizer, prompt.echo.size());
    std::vector<TokenLogprobs> prompt_logprobs;
    size_t written = 0;  // bytes of the reply's text
    bool echoed = !request.echo;
    auto silent_since = std::chrono::steady_clock::now();
    std::chrono::steady_clock::time_point together;  // the first words go at once
    while (there) {
      const ReplyNews news = reply.take(kLook, together);
      const auto now = std::chrono::steady_clock::now();
      together = now + kTogether;
      if (!news.text.empty() || !news.thinking.empty() || !news.events.empty() || news.over) silent_since = now;
      if (request.stream && now - silent_since >= kComment) {
        there = answer.write(writer.waiting());
        silent_since = now;
      }
      std::ranges::copy(news.prompt_logprobs, std::back_inserter(prompt_logprobs));
      if (!echoed && (!weighs || prompt_logprobs.size() == prompt.ids.size())) {
        if (weighs) writer.tokens(echoed_tokens(*engine_.text.tokenizer, prompt_logprobs, prompt.echo));
        there = there && write(writer.part({{}, prompt.echo, {}}));
        echoed = true;
      }
      // The words of a pass come before its round, as in the engine's own events.
      if (weighs) untold.add(news.tokens);
      if (!news.text.empty() || !news.thinking.empty()) {
        written += news.text.size() + news.thinking.size();
        const ReplyPart part = part_of(request, parts, news);
        if (weighs) writer.tokens(untold.take(written - std::min(written, parts.held())));
        there = there && write(part_events(part));
      }
      for (const Event& event : news.events)
        there = there && write(writer.engine_event(event_name(event), engine_event(event, request, prompt)));
      if (!there || answer.is_closed()) break;
      if (!news.over) continue;
      if (news.problem) {
        const ApiError error = api_error(*news.problem);
        if (!request.stream) throw error;
        answer.write(writer.failure(error));
        return std::nullopt;
      }
      if (news.reason == FinishReason::cancelled || news.reason == FinishReason::failed) {
        // Not by its client, who has not gone.
        const ApiError stopped(503, "server_error", "The reply was stopped at the server.");
        if (!request.stream) throw stopped;
        answer.write(writer.failure(stopped));
        return std::nullopt;
      }
      ReplyPart last = request.kind == ApiKind::chat ? parts.finish() : ReplyPart();
      for (const ToolCall& call : news.calls) last.calls.push_back(call);
      if (weighs) writer.tokens(untold.take(std::numeric_limits<size_t>::max()));
      usage.prompt += news.prompt_tokens;
      usage.cached += news.reused_tokens;
      usage.reply += news.reply_tokens;
      const std::string rest = part_events(last);
      if (!thinking.empty()) usage.thinking += std::min<uint64_t>(news.reply_tokens, tokens_of(thinking));
      if (std::ranges::find(request.stops, news.stop_string) != request.stops.end())
        writer.stopped_at(news.stop_string);
      if (!write(rest) || !write(writer.ending(news.reason))) return std::nullopt;
      return news.reason;
    }
    reply.cancel();
    return std::nullopt;
  }

  uint64_t tokens_of(const std::string& text) const {
    return engine_.text.tokenizer->encode(text, SpecialTokens::as_text).size();
  }

  /// An event of the engine as it goes to a window of another machine.
  ServerJson engine_event(const Event& event, const ApiRequest& request, const Prompt& prompt) const {
    ServerJson json = event_to_json(event, *engine_.texts);
    if (std::holds_alternative<ReplyStarted>(event) && request.prompt_ids) json["prompt_ids"] = prompt.ids;
    return json;
  }

  static ReplyPart part_of(const ApiRequest& request, ReplyParts& parts, const ReplyNews& news) {
    if (request.kind == ApiKind::completion) return {{}, news.thinking + news.text, {}};
    return news.told_apart ? parts.push_apart(news.thinking, news.text) : parts.push(news.text);
  }

  const Engine& engine_;
  ServeOptions options_;
  const bool is_watched_;
  const int64_t started_ = static_cast<int64_t>(std::time(nullptr));
  const std::string started_text_ = utc_time();
  Scheduler scheduler_;
  ResponseStore responses_{kMostKept, kMostKeptBytes};
  std::atomic<uint32_t> answering_{0};
  ServerJson about_;
  std::unique_ptr<HttpServer> http_;  // last: its threads use all the others
};

ModelServer::ModelServer(const Engine& engine, ServeOptions options, ServedObserver* observer,
                         std::function<void()> wake)
    : work_(std::make_unique<Work>(engine, std::move(options), observer, std::move(wake))) {}

ModelServer::~ModelServer() = default;

std::string ModelServer::url() const {
  return work_->url();
}

const std::string& ModelServer::model() const {
  return work_->model();
}

void ModelServer::run(const std::stop_token& stop) {
  work_->run(stop);
}

bool ModelServer::step() {
  return work_->scheduler().step();
}

Scheduler& ModelServer::scheduler() {
  return work_->scheduler();
}

}  // namespace canopy
