#include "engine/serve/model_server.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <optional>
#include <random>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/serve/api_reply.h"
#include "engine/serve/reply_parts.h"
#include "engine/serve/reply_queue.h"
#include "engine/trace/trace_export.h"

namespace canopy {
namespace {

using ServerJson = nlohmann::ordered_json;
using std::chrono::milliseconds;

constexpr milliseconds kLook{100};      // how often a connection looks whether its client is still there
constexpr milliseconds kComment{1000};  // after which silence a stream is kept alive

std::string text_of_json(const ServerJson& json) {
  return json.dump(-1, ' ', false, ServerJson::error_handler_t::replace) + "\n";
}

ApiError not_allowed(int status, const std::string& sentence, std::string code) {
  return ApiError(status, status == 401 ? "authentication_error" : "permission_error", sentence, {}, std::move(code));
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

// Prometheus' text.

void add_metric(std::string& text, const char* name, const char* type, const char* help) {
  text += std::string("# HELP canopy_") + name + " " + help + "\n# TYPE canopy_" + name + " " + type + "\n";
}

void add_value(std::string& text, const char* name, const std::string& labels, double value) {
  char number[40];
  std::snprintf(number, sizeof number, "%.17g", value);
  text += std::string("canopy_") + name + labels + " " + number + "\n";
}

void add_counter(std::string& text, const char* name, const char* help, double value, const char* type = "counter") {
  add_metric(text, name, type, help);
  add_value(text, name, "", value);
}

std::string metrics_of(const ServedCounts& counts, uint32_t waiting, bool writing) {
  std::string text;
  add_metric(text, "replies_total", "counter", "Replies by how they ended.");
  add_value(text, "replies_total", "{ended=\"done\"}", static_cast<double>(counts.done));
  add_value(text, "replies_total", "{ended=\"cancelled\"}", static_cast<double>(counts.cancelled));
  add_value(text, "replies_total", "{ended=\"failed\"}", static_cast<double>(counts.failed));
  add_counter(text, "replies_waiting", "Replies that wait for their turn.", waiting, "gauge");
  add_counter(text, "replies_running", "Replies that are being written.", writing ? 1 : 0, "gauge");
  add_counter(text, "prompt_tokens_total", "Tokens of prompts.", static_cast<double>(counts.prompt_tokens));
  add_counter(text, "prompt_tokens_reused_total", "Of these, those that were in the cache.",
              static_cast<double>(counts.reused_tokens));
  add_counter(text, "reply_tokens_total", "Tokens of replies.", static_cast<double>(counts.reply_tokens));
  add_counter(text, "prefill_seconds_total", "Time of reading prompts.", counts.prefill_ms / 1000);
  add_counter(text, "decode_seconds_total", "Time of the passes that wrote replies.", counts.decode_ms / 1000);
  const RoundStatistics& rounds = counts.rounds;
  add_counter(text, "passes_total", "Passes that wrote replies.", static_cast<double>(rounds.rounds()));
  add_counter(text, "pass_tokens_total", "Tokens that these passes brought.", static_cast<double>(rounds.emitted()));
  add_counter(text, "tokens_per_pass", "Mean tokens of a pass.", rounds.tau(), "gauge");
  add_counter(text, "drafted_tokens_total", "Guessed tokens that passes checked.",
              static_cast<double>(rounds.drafted()));
  add_counter(text, "accepted_tokens_total", "Of these, those that became text.",
              static_cast<double>(rounds.accepted()));
  add_metric(text, "offered_by_depth_total", "counter", "Passes with a guess at this depth, those before it right.");
  for (size_t i = 0; i < rounds.by_depth().size(); ++i)
    add_value(text, "offered_by_depth_total", "{depth=\"" + std::to_string(i + 1) + "\"}",
              static_cast<double>(rounds.by_depth()[i].offered));
  add_metric(text, "accepted_by_depth_total", "counter", "Of these, those with a right guess there.");
  for (size_t i = 0; i < rounds.by_depth().size(); ++i)
    add_value(text, "accepted_by_depth_total", "{depth=\"" + std::to_string(i + 1) + "\"}",
              static_cast<double>(rounds.by_depth()[i].accepted));
  constexpr std::array<std::pair<DraftSources, const char*>, 3> sources = {
      {{kFromDflash, "drafter"}, {kFromSuffix, "text"}, {kUsualSources, "both"}}};
  add_metric(text, "offered_by_source_total", "counter", "Guesses that the model decided on, by who made them.");
  for (const auto& [source, name] : sources)
    add_value(text, "offered_by_source_total", std::string("{source=\"") + name + "\"}",
              static_cast<double>(rounds.by_source(source).offered));
  add_metric(text, "accepted_by_source_total", "counter", "Of these, those that became text.");
  for (const auto& [source, name] : sources)
    add_value(text, "accepted_by_source_total", std::string("{source=\"") + name + "\"}",
              static_cast<double>(rounds.by_source(source).accepted));
  return text;
}

}  // namespace

bool same_key(std::string_view key, std::string_view given) {
  size_t difference = key.size() ^ given.size();
  for (size_t i = 0; i < given.size(); ++i)
    difference |= static_cast<size_t>(static_cast<unsigned char>(given[i]) ^
                                      static_cast<unsigned char>(key.empty() ? 0 : key[i % key.size()]));
  return difference == 0 && !key.empty();
}

std::string served_name(std::string_view file_name) {
  if (file_name.ends_with(".gguf")) file_name.remove_suffix(5);
  return printable(file_name);
}

void validate(const ServeOptions& options) {
  const std::string& key = options.key;
  if (key.empty() && !is_loopback_host(options.address.host))
    throw bad_input("The address " + quoted_name(options.address.host) +
                    " can be reached from other machines: give a key with --api-key, --api-key-file or CANOPY_API_KEY, "
                    "or serve at 127.0.0.1.");
  const auto visible = [](unsigned char c) { return c > 0x20 && c < 0x7f; };
  if (!key.empty() && (key.size() < kShortestKey || !std::ranges::all_of(key, visible)))
    throw bad_input("The key must have at least " + std::to_string(kShortestKey) +
                    " signs, all of them letters, digits and marks of ASCII without blanks.");
  for (const std::string& origin : options.origins) {
    const size_t scheme = origin.find("://");
    const bool is_origin = scheme != std::string::npos && std::ranges::all_of(origin, visible) &&
                           origin.find('/', scheme + 3) == std::string::npos && origin.size() > scheme + 3 &&
                           origin.find('*') == std::string::npos;
    if (!is_origin)
      throw bad_input("The origin " + quoted_name(origin) +
                      " is none: give scheme and host, as in https://chat.example.");
  }
}

class ModelServer::Work {
 public:
  Work(const Engine& engine, ServeOptions options)
      : engine_(engine), options_(checked(std::move(options))), queue_(options_.most_waiting) {
    if (options_.model.empty()) options_.model = served_name(engine_.file_name);
    options_.api.vocabulary = engine_.text.tokenizer->vocab_size();
    http_ = std::make_unique<HttpServer>(
        options_.address, options_.limits,
        [this](const HttpRequest& head, HttpAnswer& answer) { return admit(head, answer); },
        [this](const HttpRequest& request, HttpAnswer& answer) { handle(request, answer); });
  }

  std::string url() const {
    const std::string& host = options_.address.host;
    const bool is_v6 = host.find(':') != std::string::npos;
    return "http://" + (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(http_->port()) + "/v1";
  }
  const std::string& model() const { return options_.model; }

  void run(const std::stop_token& stop) {
    queue_.run(engine_, stop);
    http_->close();
  }

 private:
  static ServeOptions checked(ServeOptions options) {
    validate(options);
    return options;
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

  bool has_key(const HttpRequest& request) const {
    if (options_.key.empty()) return true;
    std::string_view given;
    constexpr std::string_view bearer = "Bearer ";
    if (const std::string* header = request.header("authorization"); header != nullptr && header->starts_with(bearer)) {
      given = std::string_view(*header).substr(bearer.size());
    } else if (const std::string* other = request.header("x-api-key")) {
      given = *other;
    }
    return same_key(options_.key, given);
  }

  void refuse(const ApiError& error, HttpAnswer& answer, HttpHeaders headers) const {
    if (error.status == 401) headers.emplace_back("WWW-Authenticate", "Bearer");
    if (error.status == 429 || error.status == 503) headers.emplace_back("Retry-After", "1");
    answer.send(error.status, "application/json", text_of_json(to_json(error)), headers);
  }

  bool admit(const HttpRequest& head, HttpAnswer& answer) const {
    const auto denied = [&](const ApiError& error) {
      refuse(error, answer, cors(head));
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
      headers.emplace_back("Access-Control-Allow-Methods", "GET, POST");
      headers.emplace_back("Access-Control-Allow-Headers", "authorization, content-type, x-api-key");
      headers.emplace_back("Access-Control-Max-Age", "600");
      answer.send(204, "", "", headers);
      return false;
    }
    if (head.path != "/health" && head.path != "/v1/health" && !has_key(head))
      return denied(
          not_allowed(401, "The key is missing or wrong: send it as Authorization: Bearer KEY.", "invalid_api_key"));
    return true;
  }

  // What there is.

  void handle(const HttpRequest& request, HttpAnswer& answer) {
    try {
      route(request, answer);
    } catch (const ApiError& error) {
      if (!answer.begun()) refuse(error, answer, cors(request));
    } catch (const Error& error) {
      if (!answer.begun()) refuse(api_error(error), answer, cors(request));
    }
  }

  void route(const HttpRequest& request, HttpAnswer& answer) {
    std::string_view path = request.path;
    if (path.starts_with("/v1/")) path.remove_prefix(3);
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
      whole({{"object", "list"}, {"data", ServerJson::array({model_json()})}});
    } else if (path.starts_with("/models/") && is(path, reads, "GET")) {
      require_model(std::string(path.substr(std::string_view("/models/").size())));
      whole(model_json());
    } else if (is("/metrics", reads, "GET")) {
      answer.send(200, "text/plain; version=0.0.4; charset=utf-8",
                  metrics_of(queue_.counts(), queue_.waiting(), queue_.writing()), cors(request));
    } else if (is("/chat/completions", posts, "POST")) {
      require_json(request);
      reply(parse_chat_request(request.body, options_.api), request, answer);
    } else if (is("/completions", posts, "POST")) {
      require_json(request);
      reply(parse_completion_request(request.body, options_.api), request, answer);
    } else if (is("/embeddings", posts, "POST")) {
      throw ApiError(501, "invalid_request_error",
                     "This server has a model that writes text; it gives no embeddings. Use a server with an embedding "
                     "model for them.",
                     {}, "not_implemented");
    } else {
      throw ApiError(404, "invalid_request_error",
                     "There is no " + quoted_name(request.path) +
                         " here; there are /v1/models, /v1/chat/completions, /v1/completions, /health and /metrics.",
                     {}, "not_found");
    }
  }

  ServerJson model_json() const {
    return {{"id", options_.model},
            {"object", "model"},
            {"created", started_},
            {"owned_by", "canopy"},
            {"max_model_len", engine_.model->limits().context}};
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
    ReplySettings settings;
  };

  void require_place_for_calls(const ApiRequest& request, const ChatTemplate& chat) const {
    const auto has_calls = [](const ChatTurn& turn) {
      return !turn.fields.empty() && ServerJson::parse(turn.fields).contains("tool_calls");
    };
    constexpr std::array<std::string_view, 1> calls = {"tool_calls"};
    if (std::ranges::any_of(request.turns, has_calls) &&
        !chat.uses_fields(request.turns, calls, {true, request.thinking, request.tools}))
      throw ApiError(400, "invalid_request_error",
                     "The model's chat template has no place for \"tool_calls\" of earlier turns.", "messages");
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
    settings.probabilities = request.rounds;
    const uint32_t context = engine_.model->limits().context;
    if (prompt_tokens >= context)
      throw ApiError(400, "invalid_request_error",
                     "The prompt has " + std::to_string(prompt_tokens) + " tokens; the context holds " +
                         std::to_string(context) + ", the reply included.",
                     field, "context_length_exceeded");
    settings.max_tokens = std::min(request.max_tokens.value_or(context), context);
    return settings;
  }

  std::vector<Prompt> prompts_of(const ApiRequest& request) const {
    std::vector<Prompt> prompts;
    if (request.kind == ApiKind::chat) {
      Prompt prompt;
      try {
        require_place_for_calls(request, template_of(request));
        prompt.ids = engine_.prompt_ids(request.turns, "", request.thinking, request.tools);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::bad_input) throw;
        throw ApiError(400, "invalid_request_error", error.what(), "messages");
      }
      prompt.settings = settings_of(request, prompt.ids.size(), "messages");
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

  void reply(const ApiRequest& request, const HttpRequest& http, HttpAnswer& answer) {
    require_model(request.model);
    std::vector<Prompt> prompts = prompts_of(request);
    const ApiAnswer about{(request.kind == ApiKind::chat ? "chatcmpl-" : "cmpl-") + random_id(),
                          static_cast<int64_t>(std::time(nullptr)), options_.model};
    const HttpHeaders headers = cors(http);
    ApiUsage usage;
    ServerJson choices = ServerJson::array();
    std::string closing;
    for (uint32_t index = 0; index < prompts.size(); ++index) {
      ApiReplyWriter writer(request.kind, about, index, request.one_call, request.include_usage);
      Prompt& prompt = prompts[index];
      const std::shared_ptr<QueuedReply> reply =
          queue_.put(std::move(prompt.ids), std::move(prompt.settings), request.rounds && request.stream);
      if (reply == nullptr) {
        const ApiError busy(
            503, "server_error",
            "As many requests wait as may, " + std::to_string(options_.most_waiting) + ": ask again later.", {},
            "queue_full");
        if (!answer.begun()) throw busy;
        answer.write(sse_event(to_json(busy)));
        return;
      }
      if (request.stream && !answer.begun()) answer.begin(200, "text/event-stream; charset=utf-8", headers);
      const std::optional<FinishReason> reason = follow(request, prompt.echo, *reply, writer, answer, usage);
      if (!reason) return;  // the client is gone, or was told why there is no more
      if (!request.stream) choices.push_back(writer.choice(*reason));
      closing = writer.closing(usage);
    }
    if (request.stream) {
      if (answer.write(closing)) answer.end();
    } else {
      answer.send(200, "application/json", text_of_json(whole_answer(request.kind, about, choices, usage)), headers);
    }
  }

  /// Hands on what is written until the reply is over. Nothing: the client is gone, or the reply failed in a stream.
  std::optional<FinishReason> follow(const ApiRequest& request, const std::string& echo, QueuedReply& reply,
                                     ApiReplyWriter& writer, HttpAnswer& answer, ApiUsage& usage) {
    ReplyParts parts(request.tool_names, template_of(request).thinking().opened(request.thinking));
    const auto write = [&](const std::string& events) {
      return !request.stream || events.empty() || answer.write(events);
    };
    bool there = write(writer.opening());
    if (!echo.empty()) there = there && write(writer.part({{}, echo, {}}));
    auto silent_since = std::chrono::steady_clock::now();
    while (there) {
      const ReplyNews news = reply.take(kLook);
      const auto now = std::chrono::steady_clock::now();
      if (!news.text.empty() || !news.thinking.empty() || news.over) silent_since = now;
      if (request.stream && now - silent_since >= kComment) {
        there = answer.write(kSseComment);
        silent_since = now;
      }
      // The words of a pass come before its round, as in the engine's own events.
      if (!news.text.empty() || !news.thinking.empty())
        there = there && write(writer.part(part_of(request, parts, news)));
      for (const auto& round : news.rounds)
        there = there && write(sse_event("canopy.round", round_to_json(*round, *engine_.texts)));
      if (!there || answer.is_closed()) break;
      if (!news.over) continue;
      if (news.problem) {
        const ApiError error = api_error(*news.problem);
        if (!request.stream) throw error;
        answer.write(sse_event(to_json(error)));
        return std::nullopt;
      }
      if (news.reason == FinishReason::cancelled || news.reason == FinishReason::failed) return std::nullopt;
      ReplyPart last = request.kind == ApiKind::chat ? parts.finish() : ReplyPart();
      for (const ToolCall& call : news.calls) last.calls.push_back(call);
      usage.prompt += news.prompt_tokens;
      usage.cached += news.reused_tokens;
      usage.reply += news.reply_tokens;
      if (!write(writer.part(last)) || !write(writer.ending(news.reason))) return std::nullopt;
      return news.reason;
    }
    reply.cancel();
    return std::nullopt;
  }

  static ReplyPart part_of(const ApiRequest& request, ReplyParts& parts, const ReplyNews& news) {
    if (request.kind == ApiKind::completion) return {{}, news.thinking + news.text, {}};
    return news.told_apart ? parts.push_apart(news.thinking, news.text) : parts.push(news.text);
  }

  const Engine& engine_;
  ServeOptions options_;
  const int64_t started_ = static_cast<int64_t>(std::time(nullptr));
  ReplyQueue queue_;
  std::unique_ptr<HttpServer> http_;  // last: its threads use all the others
};

ModelServer::ModelServer(const Engine& engine, ServeOptions options)
    : work_(std::make_unique<Work>(engine, std::move(options))) {}

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

}  // namespace canopy
