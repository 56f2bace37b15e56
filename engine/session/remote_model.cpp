#include "engine/session/remote_model.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/format/json_text.h"
#include "engine/session/event_json.h"
#include "engine/session/reply.h"
#include "engine/session/reply_trace.h"

namespace canopy {
namespace {

using nlohmann::json;
using RemoteClock = std::chrono::steady_clock;

constexpr size_t kMostAbout = size_t{1} << 20, kMostTokens = size_t{64} << 20;  // bytes of answers
constexpr double kOtherSilence = 120;  // seconds: another server says nothing while it reads a prompt

std::string one_line(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

double ms_since(RemoteClock::time_point start, RemoteClock::time_point end) {
  return std::chrono::duration<double, std::milli>(end - start).count();
}

[[noreturn]] void refuse_key(const EndpointClient& client, const std::string& said) {
  throw Error(ErrorKind::unavailable,
              "The server at " + client.address().shown() + " wants a key, or another one than it was given: " + said);
}

/// The JSON object of an answer; nothing where it is none.
std::optional<json> object_of(const EndpointAnswer& answer) {
  if (answer.status != 200) return std::nullopt;
  try {
    json object = parse_json(answer.body, "The server's answer");
    return object.is_object() ? std::optional(std::move(object)) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

json messages_of(const Generate& command) {
  json messages = json::array();
  for (const ChatTurn& turn : command.turns) {
    json message = {{"role", turn.role}, {"content", turn.content}};
    if (!turn.thinking.empty()) message["reasoning_content"] = turn.thinking;
    messages.push_back(std::move(message));
  }
  if (messages.empty()) messages.push_back({{"role", "user"}, {"content", command.raw_prompt}});
  return messages;
}

/// Of what is off nothing is said, as not every server knows it.
void add_sampling(const SamplingSettings& sampling, json& request) {
  request["temperature"] = sampling.temperature;
  request["top_p"] = sampling.top_p;
  request["seed"] = static_cast<int64_t>(sampling.seed);
  if (sampling.top_k > 0) request["top_k"] = sampling.top_k;
  if (sampling.min_p > 0) request["min_p"] = sampling.min_p;
  if (sampling.presence_penalty != 0) request["presence_penalty"] = sampling.presence_penalty;
  if (sampling.frequency_penalty != 0) request["frequency_penalty"] = sampling.frequency_penalty;
  if (sampling.repetition_penalty != 1) {
    request["repetition_penalty"] = sampling.repetition_penalty;  // vLLM, SGLang
    request["repeat_penalty"] = sampling.repetition_penalty;      // llama.cpp
  }
  for (const auto& [token, bias] : sampling.logit_bias) request["logit_bias"][std::to_string(token)] = bias;
}

}  // namespace

std::optional<json> ask_canopy(EndpointClient& client, const std::stop_token& stop) {
  const EndpointAnswer answer = client.get("/canopy", kMostAbout, stop);
  if (answer.status == 401 || answer.status == 403) refuse_key(client, said_in(answer.body));
  std::optional<json> about = object_of(answer);
  if (!about || !about->contains("schema")) return std::nullopt;
  const uint32_t schema = JsonFields(*about, "what the server says of itself").u32("schema");
  if (schema != kEventSchema)
    throw bad_input("The Canopy at " + client.address().shown() + " tells its passes in version " +
                    std::to_string(schema) + " of its events; this one reads version " + std::to_string(kEventSchema) +
                    ". Update the older of the two.");
  return about;
}

json drafting_fields(DecodeMode mode, uint32_t budget, DraftSources sources) {
  return {{"speculation",
           {{"mode", to_string(mode)}, {"budget", std::max(1u, budget)}, {"sources", source_names(sources)}}},
          {"canopy", {{"rounds", true}}}};
}

RemoteModel::RemoteModel(const LoadModel& command, const std::function<void(const LoadProgress&)>& progress,
                         const std::stop_token& stop, double silence_s)
    : opened_(command) {
  const EndpointAddress address = parse_endpoint(command.path);
  progress({"Asking " + address.shown(), 0, 0});
  client_ = std::make_unique<EndpointClient>(address, EndpointLimits{5, silence_s, 0}, command.key);
  ready_.server = address.shown();
  if (const std::optional<json> about = ask_canopy(*client_, stop)) {
    connect_to_canopy(*about, progress, stop);
    return;
  }
  connect_to_other(stop);
  client_ =
      std::make_unique<EndpointClient>(address, EndpointLimits{5, std::max(silence_s, kOtherSilence), 0}, command.key);
}

void RemoteModel::connect_to_canopy(const json& about, const std::function<void(const LoadProgress&)>& progress,
                                    const std::stop_token& stop) {
  with_context("What the Canopy at " + address() + " says of itself", [&] {
    const JsonFields fields(about, "what it says");
    id_ = fields.text("id");
    const std::string server = std::exchange(ready_.server, {});
    ready_ = model_from_json(fields.at("model"));
    ready_.server = server;
    header_ = parse_trace_header(one_line(fields.at("header")));
    ready_.device += " at " + server;
    progress({"Reading the words of the vocabulary", 0, 0});
    const EndpointAnswer texts = client_->get("/canopy/tokens", kMostTokens, stop);
    if (texts.status != 200) refuse(texts);
    ready_.texts = texts_from_json(parse_json(texts.body, "The texts of tokens"));
  });
}

void RemoteModel::connect_to_other(const std::stop_token& stop) {
  const EndpointAnswer answer = client_->get("/models", kMostAbout, stop);
  if (answer.status == 401 || answer.status == 403) refuse_key(*client_, said_in(answer.body));
  const std::optional<json> list = object_of(answer);
  const auto models = list ? list->find("data") : json::const_iterator();
  if (!list || models == list->end() || !models->is_array())
    throw Error(ErrorKind::unavailable, "What answers at " + address() +
                                            " is no Canopy and no OpenAI-compatible server: it lists no models at " +
                                            client_->address().path + "/models.");
  if (models->empty()) throw Error(ErrorKind::unavailable, "The server at " + address() + " has no model loaded.");
  const JsonFields model(models->front(), "the first model of the server's list");
  id_ = model.text("id");
  ready_.name = ready_.file_name = printable(id_);
  ready_.device = ready_.server;
  ready_.device_type = "server";
  ready_.model_context = ready_.context = model.u32_or("max_model_len", 0);  // vLLM and SGLang tell it
  ready_.texts = texts_from_json({{"texts", json::array()}});
  ready_.tells_rounds = false;
  ready_.warnings.push_back("The server at " + address() +
                            " is no Canopy: it tells its text, its tokens and their speed, and its passes cannot be "
                            "seen.");
}

ComparisonColumn RemoteModel::column(const WayToDecode& way) const {
  ComparisonColumn column;
  column.way = way;
  column.model = id_;
  column.server = opened_.path;
  column.key = opened_.key;
  return column;
}

void RemoteModel::refuse(const EndpointAnswer& answer) const {
  const std::string said = said_in(answer.body);
  if (answer.status == 401 || answer.status == 403) refuse_key(*client_, said);
  if (answer.status == 404)
    throw Error(ErrorKind::unavailable, "The server at " + address() + " has another model by now: " + said +
                                            " Open it again to write with that.");
  throw Error(ErrorKind::unavailable, "The server at " + address() + " refuses with status " +
                                          std::to_string(answer.status) + (said.empty() ? "." : ": " + said));
}

json RemoteModel::request_of(const Generate& command) const {
  json request = {{"model", id_}, {"stream", true}, {"max_tokens", command.max_tokens}};
  add_sampling(command.sampling, request);
  if (command.thinking) request["chat_template_kwargs"] = {{"enable_thinking", *command.thinking}};
  return request;
}

void RemoteModel::reply(const Generate& command, const Publish& publish, const std::stop_token& stop) {
  ready_.tells_rounds ? write_passes(command, publish, stop) : write_plain(command, publish, stop);
}

// ---- a Canopy -------------------------------------------------------------------------------------------------------

/// The events of one reply, as they come.
class RemoteModel::Passes {
 public:
  Passes(RemoteModel& remote, const Generate& command, const Publish& publish)
      : remote_(remote),
        command_(command),
        publish_(publish),
        settings_(settings_of(command, remote.ready_.vocabulary)) {
    settings_.sources &= static_cast<DraftSources>(~kFromEarlier);
    if (remote_.trace_ != nullptr) settings_.sources &= static_cast<DraftSources>(~kFromRecycling);
    ids_ = settings_.begun;
  }

  std::string path() const { return command_.turns.empty() ? "/completions" : "/chat/completions"; }

  std::string request() const {
    json request = remote_.request_of(command_);
    request.update(drafting_fields(settings_.mode, settings_.budget, settings_.sources));
    json& own = request["canopy"];
    own["stop_loops"] = command_.stop_loops;
    own["prompt_ids"] = remote_.trace_ != nullptr;
    own["vocabulary"] = remote_.ready_.vocabulary;
    if (!settings_.begun.empty()) own["begun"] = settings_.begun;
    if (command_.turns.empty()) {
      request["prompt"] = command_.raw_prompt;
      return one_line(request);
    }
    request["messages"] = messages_of(command_);
    // The tokens that earlier replies were written with, so that the server finds them in its cache.
    json turns = json::array();
    for (const ChatTurn& turn : command_.turns) {
      const bool known = !turn.tokens.ids.empty() && turn.tokens.vocabulary == remote_.ready_.vocabulary;
      turns.push_back(known ? json(turn.tokens.ids) : json());
    }
    own["turn_ids"] = std::move(turns);
    return one_line(request);
  }

  void take(std::string_view name, std::string_view data) {
    const json object = parse_json(data, "The server's event");
    std::optional<Event> event = event_from_json(name, object, command_.reply_id);
    if (!event) return;
    if (finished_) throw bad_input("The server sent the event " + quoted_name(name) + " behind the reply's end.");
    if (const auto* start = std::get_if<ReplyStarted>(&*event)) begin(*start, object);
    if (auto* text = std::get_if<TextDelta>(&*event)) add(*text);
    if (const auto* round = std::get_if<RoundFinished>(&*event)) {
      add(*round);
      if (!command_.rounds) return;
    }
    if (const auto* reply = std::get_if<ReplyFinished>(&*event)) return end(*reply);
    publish_(*std::move(event), true);
  }

  bool begun() const { return started_.has_value(); }
  bool finished() const { return finished_; }

  /// The reply ends as it stands.
  void cut() {
    ReplyFinished reply;
    reply.reply_id = command_.reply_id;
    reply.reason = FinishReason::cancelled;
    reply.mode = settings_.mode;
    if (started_) {
      reply.prompt_tokens = started_->prompt_tokens;
      reply.reused_tokens = started_->reused_tokens;
      reply.prefill_ms = started_->prefill_ms;
      reply.tokens = {ids_, {}, remote_.ready_.vocabulary};
    }
    reply.reply_tokens = static_cast<uint32_t>(ids_.size());
    reply.context_used = context_used_;
    reply.decode_ms = decode_ms_;
    if (rounds_ > 0) reply.tau = static_cast<double>(emitted_) / rounds_;
    if (decode_ms_ > 0) reply.tokens_per_second = 1000.0 * static_cast<double>(emitted_) / decode_ms_;
    end(reply);
  }

 private:
  void require_started(const char* what) const {
    if (!started_) throw bad_input(std::string("The server sent ") + what + " before the reply's beginning.");
  }

  void begin(const ReplyStarted& start, const json& object) {
    if (started_) throw bad_input("The server began the reply twice.");
    uint64_t most = 0;  // that the tokens of a reply that goes on can stand for, blank lines between messages included
    for (const uint32_t id : settings_.begun)
      most += remote_.ready_.texts->find(id).value_or(trace::Piece{}).bytes.size() + 4;
    if (start.begun_bytes > most)
      throw bad_input("The server goes on behind byte " + std::to_string(start.begun_bytes) +
                      " of the reply, whose tokens have " + std::to_string(most) + " at most.");
    started_ = start;
    ids_.push_back(start.first_token);
    TraceWriter* trace = remote_.trace_.get();
    if (trace == nullptr) return;
    const std::vector<uint32_t> prompt = JsonFields(object, "the reply's beginning").ids("prompt_ids");
    if (prompt.size() != start.prompt_tokens)
      throw bad_input("The server sent " + std::to_string(prompt.size()) + " ids of a prompt of " +
                      std::to_string(start.prompt_tokens) + " tokens.");
    trace->begin(trace_begin(prompt, settings_));
    trace->prefilled({start.reused_tokens, start.prefill_ms, start.first_token});
  }

  void add(const TextDelta& text) {
    require_started("text");
    text_ += text.text;
    // The window cuts its text there, and keeps the place in the file of the chat.
    const uint64_t whole = uint64_t{started_->begun_bytes} + text_.size(), thought = text.thought.bytes;
    if (thought > whole || (thought > started_->begun_bytes && thought < whole &&
                            (static_cast<uint8_t>(text_[thought - started_->begun_bytes]) & 0xc0) == 0x80))
      throw bad_input("The server sent a text of " + std::to_string(whole) + " bytes, of which " +
                      std::to_string(thought) + " are thinking; a place between two characters of it is expected.");
    context_used_ = text.context_used;
  }

  void add(const RoundFinished& finished) {
    require_started("a pass");
    const RoundRecord& round = *finished.round;
    if (round.round != rounds_ || finished.first_index != ids_.size())
      throw bad_input("The server sent pass " + std::to_string(round.round) + " with the reply's token " +
                      std::to_string(finished.first_index) + "; pass " + std::to_string(rounds_) + " with token " +
                      std::to_string(ids_.size()) + " is next.");
    ++rounds_;
    emitted_ += round.emitted.size();
    decode_ms_ += round.ms.total();
    ids_.insert(ids_.end(), round.emitted.begin(), round.emitted.end());
    if (remote_.trace_ != nullptr) remote_.trace_->append(round);
  }

  void end(const ReplyFinished& reply) {
    finished_ = true;
    if (remote_.trace_ != nullptr && started_) {
      remote_.trace_->end(
          {reply.reason, static_cast<uint32_t>(ids_.size() - settings_.begun.size()), reply.decode_ms, text_});
      publish_(remote_.recording(), true);
    }
    publish_(reply, true);
  }

  RemoteModel& remote_;
  const Generate& command_;
  const Publish& publish_;
  ReplySettings settings_;
  std::optional<ReplyStarted> started_;
  std::vector<uint32_t> ids_;  // of the reply so far, what was begun included
  std::string text_;           // of the new ones
  uint32_t context_used_ = 0, rounds_ = 0;
  uint64_t emitted_ = 0;
  double decode_ms_ = 0;
  bool finished_ = false;
};

void RemoteModel::write_passes(const Generate& command, const Publish& publish, const std::stop_token& stop) {
  Passes passes(*this, command, publish);
  ChatStream stream([&](std::string_view name, std::string_view data) { passes.take(name, data); }, kRoundsLimits);
  try {
    const EndpointAnswer answer = client_->post(
        passes.path(), passes.request(), [&](std::string_view bytes) { stream.push(bytes); }, stop);
    if (answer.status == 400 && answer.body.find("context_length_exceeded") != std::string::npos) {
      Failure full{ErrorKind::bad_input, "The context is full", said_in(answer.body), command.reply_id};
      if (std::sscanf(full.detail.c_str(), "The prompt has %u tokens", &full.prompt_tokens) != 1)
        full.prompt_tokens = 0;
      return publish(std::move(full), true);
    }
    if (answer.status != 200) refuse(answer);
    if (!passes.finished())
      throw Error(ErrorKind::unavailable, "The server at " + address() + " ended its answer before the reply's end.");
  } catch (...) {
    const Error error = as_error(std::current_exception());
    if (passes.finished()) return;  // all of it is there
    if (stop.stop_requested()) return passes.cut();
    if (!passes.begun()) throw;
    passes.cut();
    publish(Failure{error.kind(), "The connection to the engine elsewhere was lost",
                    printable(error.what(), 4096) + " The text so far is kept, and Continue goes on with it."},
            true);
  }
}

// ---- another server -------------------------------------------------------------------------------------------------

/// Text and counts of one reply, as they come. What was thought stands in front of the answer.
class RemoteModel::Plain {
 public:
  Plain(const Generate& command, const Publish& publish) : publish_(publish) { delta_.reply_id = command.reply_id; }

  void take(std::string_view bytes) {
    const std::string added = stream_.push(bytes);
    std::string text = stream_.thinking().substr(thought_);
    thought_ = stream_.thinking().size();
    ThoughtPart& thought = delta_.thought;
    if (!text.empty() && !answering_) {
      thought.told_apart = thought.open = true;
      thought.bytes += static_cast<uint32_t>(text.size());
    } else {
      text.clear();  // thinking behind the answer's beginning has no place
    }
    if (!added.empty() && !std::exchange(answering_, true) && thought.told_apart) {
      text += "\n\n";
      thought.bytes += 2;
      thought.open = false;
    }
    text += added;
    if (text.empty()) return;
    last_ = RemoteClock::now();
    if (!first_) first_ = last_;
    delta_.text = std::move(text);
    delta_.reply_tokens = stream_.pieces();
    delta_.tokens_per_second = speed(stream_.pieces());
    publish_(delta_, true);
  }

  bool begun() const { return first_.has_value(); }
  bool ended() const { return stream_.done() || !stream_.finish_reason().empty(); }

  void end(FinishReason reason) {
    ReplyFinished reply;
    reply.reply_id = delta_.reply_id;
    reply.reason = reason;
    reply.prompt_tokens = stream_.prompt_tokens().value_or(0);
    reply.reply_tokens = stream_.tokens().value_or(stream_.pieces());
    reply.context_used = reply.prompt_tokens + reply.reply_tokens;
    if (first_) reply.prefill_ms = ms_since(start_, *first_);
    if (first_) reply.decode_ms = ms_since(*first_, *last_);
    reply.tokens_per_second = speed(reply.reply_tokens);
    publish_(reply, true);
  }

  FinishReason reason() const {
    return stream_.finish_reason() == "length" ? FinishReason::max_tokens : FinishReason::stop_token;
  }

 private:
  /// The first token belongs to the prompt.
  double speed(uint32_t tokens) const {
    const double ms = first_ ? ms_since(*first_, *last_) : 0;
    return tokens > 1 && ms > 0 ? 1000.0 * (tokens - 1) / ms : 0;
  }

  const Publish& publish_;
  ChatStream stream_;
  TextDelta delta_;
  size_t thought_ = 0;  // bytes of thinking that were told
  bool answering_ = false;
  RemoteClock::time_point start_ = RemoteClock::now();
  std::optional<RemoteClock::time_point> first_, last_;
};

void RemoteModel::write_plain(const Generate& command, const Publish& publish, const std::stop_token& stop) {
  if (!command.begun.ids.empty())
    throw bad_input("The server at " + address() + " is no Canopy: it cannot go on with a reply where it ended.");
  Plain plain(command, publish);
  try {
    json request = request_of(command);
    request["messages"] = messages_of(command);
    request["stream_options"] = {{"include_usage", true}};
    const EndpointAnswer answer = client_->post(
        "/chat/completions", one_line(request), [&](std::string_view bytes) { plain.take(bytes); }, stop);
    if (answer.status != 200) refuse(answer);
    if (!plain.ended())
      throw Error(ErrorKind::unavailable, "The server at " + address() + " ended its answer before the reply's end.");
    plain.end(plain.reason());
  } catch (...) {
    const Error error = as_error(std::current_exception());
    if (!stop.stop_requested() && !plain.begun()) throw;
    plain.end(FinishReason::cancelled);
    if (stop.stop_requested()) return;
    publish(Failure{error.kind(), "The connection to the engine elsewhere was lost",
                    printable(error.what(), 4096) + " The text so far is kept."},
            true);
  }
}

// ---- recording ------------------------------------------------------------------------------------------------------

void RemoteModel::record(const std::string& path, bool redact) {
  if (!ready_.tells_rounds)
    throw bad_input("The server at " + address() + " is no Canopy: it does not tell its passes.");
  const auto pieces = [texts = ready_.texts](uint32_t token) { return texts->find(token).value_or(trace::Piece{}); };
  trace_ = std::make_unique<TraceWriter>(path, header_, pieces, redact);
  trace_name_ = printable(std::filesystem::path(path).filename().string());
}

Recording RemoteModel::recording() const {
  if (trace_ == nullptr) return {};
  return {trace_->problem().empty(), trace_name_, trace_->bytes(), trace_->rounds(), trace_->problem()};
}

Recording RemoteModel::end_recording() {
  trace_->finish();
  Recording last = recording();
  last.active = false;
  trace_.reset();
  return last;
}

}  // namespace canopy
