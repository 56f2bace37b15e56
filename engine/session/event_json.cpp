#include "engine/session/event_json.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/text.h"
#include "engine/format/json_text.h"
#include "engine/trace/trace_export.h"
#include "engine/trace/trace_records.h"

namespace canopy {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr size_t kMostTexts = size_t{1} << 22;  // more than any vocabulary has
constexpr uint32_t kMostBlock = 128;            // a tree has 127 drafted nodes at most, and so many levels
constexpr uint32_t kMostContext = uint32_t{1} << 30;
constexpr double kMostAmount = 1e12;  // of milliseconds, and of tokens a second

uint64_t u64_in(const JsonFields& fields, const char* field) {
  const json& value = fields.at(field);
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  throw bad_input("The field '" + std::string(field) + "' of " + fields.what() + " is no whole number from 0 to " +
                  std::to_string(std::numeric_limits<uint64_t>::max()) + ".");
}

/// A time or a speed; required.
double amount_in(const JsonFields& fields, const char* field) {
  const double value = fields.number(field);
  if (value >= 0 && value <= kMostAmount) return value;
  throw bad_input("The field '" + std::string(field) + "' of " + fields.what() + " is " + std::to_string(value) +
                  "; allowed: 0 to 1e12.");
}

void require_most(const char* field, uint32_t value, uint32_t most) {
  if (value <= most) return;
  throw bad_input("The field '" + std::string(field) + "' of the model is " + std::to_string(value) + "; at most " +
                  std::to_string(most) + " is allowed.");
}

PrefillProgress prefill_in(const JsonFields& fields, uint64_t reply_id) {
  const PrefillProgress progress{reply_id, fields.u32("done"), fields.u32("total")};
  if (progress.done <= progress.total) return progress;
  throw bad_input("The field 'done' of " + fields.what() + " is " + std::to_string(progress.done) +
                  "; at most 'total', " + std::to_string(progress.total) + ", is allowed.");
}

ordered_json json_of(const ThoughtPart& thought) {
  return {{"told_apart", thought.told_apart}, {"open", thought.open}, {"bytes", thought.bytes}};
}

ordered_json json_of(const RoundFinished& round, const TokenTexts& texts) {
  ordered_json object = round_to_json(*round.round, texts);
  object["first_index"] = round.first_index;
  object["text_begin"] = round.text_begin;
  object["text_ends"] = round.text_ends;
  return object;
}

ordered_json json_of(const ReplyFinished& reply) {
  return {
      {"finish_reason", json_name(reply.reason)},
      {"prompt_tokens", reply.prompt_tokens},
      {"reused_tokens", reply.reused_tokens},
      {"reply_tokens", reply.reply_tokens},
      {"context_used", reply.context_used},
      {"prefill_ms", reply.prefill_ms},
      {"decode_ms", reply.decode_ms},
      {"tokens_per_second", reply.tokens_per_second},
      {"mode", to_string(reply.mode)},
      {"tau", reply.tau},
      {"ar_tokens_per_second", reply.ar_tokens_per_second},
      {"tokens", {{"ids", reply.tokens.ids}, {"ending", reply.tokens.ending}, {"vocabulary", reply.tokens.vocabulary}}},
      {"plain", {{"ms", reply.plain.ms}, {"passes", reply.plain.passes}, {"own", reply.plain.own}}}};
}

DecodeMode mode_in(const JsonFields& fields) {
  const std::string name = fields.text("mode");
  if (const auto mode = decode_mode_of(name)) return *mode;
  throw bad_input("The field 'mode' of " + fields.what() + " is " + quoted_name(name) +
                  "; allowed: ar, chain, tree, adaptive.");
}

FinishReason reason_in(const JsonFields& fields) {
  const std::string name = fields.text("finish_reason");
  if (const auto reason = finish_reason_named(name)) return *reason;
  throw bad_input("The field 'finish_reason' of " + fields.what() + " is " + quoted_name(name) +
                  "; allowed: stop_token, max_tokens, context_full, cancelled, failed, repeats.");
}

/// What drafts beside the big model; one of these.
DraftSources drafted_by_in(const JsonFields& fields) {
  const std::string name = fields.text("drafted_by");
  std::string allowed;
  for (const DraftSources source : {DraftSources{0}, kFromDflash, kFromDraft, kFromMtp, kFromEagle, kFromAssistant}) {
    if (name == list_of(source)) return source;
    allowed += (allowed.empty() ? "" : ", ") + list_of(source);
  }
  throw bad_input("The field 'drafted_by' of " + fields.what() + " is " + quoted_name(name) + "; allowed: " + allowed +
                  ".");
}

ThoughtPart thought_in(const JsonFields& fields) {
  const JsonFields parts(fields.at("thought"), "the thought of " + fields.what());
  return {parts.boolean_or("told_apart", false), parts.boolean_or("open", false), parts.u32("bytes")};
}

RoundFinished round_in(const JsonFields& fields, const json& object, uint64_t reply_id) {
  RoundFinished round;
  round.reply_id = reply_id;
  round.round = std::make_shared<const RoundRecord>(round_from_json(object));
  round.first_index = fields.u32("first_index");
  round.text_begin = fields.u32("text_begin");
  round.text_ends = fields.ids("text_ends");
  // What reads them takes an end for each token, ascending.
  const size_t emitted = round.round->emitted.size();
  if (round.text_ends.size() != emitted)
    throw bad_input("The field 'text_ends' of " + fields.what() + " has " + std::to_string(round.text_ends.size()) +
                    " entries; one for each of its " + std::to_string(emitted) + " tokens is expected.");
  if (!std::ranges::is_sorted(round.text_ends) || (emitted > 0 && round.text_ends.front() < round.text_begin))
    throw bad_input("The field 'text_ends' of " + fields.what() + " falls; ascending places are expected.");
  return round;
}

ReplyFinished finished_in(const JsonFields& fields, uint64_t reply_id) {
  ReplyFinished reply;
  reply.reply_id = reply_id;
  reply.reason = reason_in(fields);
  reply.prompt_tokens = fields.u32("prompt_tokens");
  reply.reused_tokens = fields.u32("reused_tokens");
  reply.reply_tokens = fields.u32("reply_tokens");
  reply.context_used = fields.u32("context_used");
  reply.prefill_ms = amount_in(fields, "prefill_ms");
  reply.decode_ms = amount_in(fields, "decode_ms");
  reply.tokens_per_second = amount_in(fields, "tokens_per_second");
  reply.mode = mode_in(fields);
  reply.tau = amount_in(fields, "tau");
  reply.ar_tokens_per_second = amount_in(fields, "ar_tokens_per_second");
  const JsonFields tokens(fields.at("tokens"), "the tokens of " + fields.what());
  reply.tokens = {tokens.ids("ids"), tokens.ids("ending"), u64_in(tokens, "vocabulary")};
  const JsonFields plain(fields.at("plain"), "the plain passes of " + fields.what());
  reply.plain = {amount_in(plain, "ms"), plain.u32("passes"), plain.boolean_or("own", false)};
  return reply;
}

/// Writes the fields that a model is told by; `visit(name, value)` gets each.
template <class Model, class F>
void each_field(Model& model, F&& visit) {
  visit("name", model.name);
  visit("file_name", model.file_name);
  visit("architecture", model.architecture);
  visit("quantization", model.quantization);
  visit("quantized_to", model.quantized_to);
  visit("weights_note", model.weights_note);
  visit("kernels_note", model.kernels_note);
  visit("parameters", model.parameters);
  visit("weight_bytes", model.weight_bytes);
  visit("context", model.context);
  visit("model_context", model.model_context);
  visit("device", model.device);
  visit("device_type", model.device_type);
  visit("driver", model.driver);
  visit("backend", model.backend);
  visit("kv_type", model.kv_type);
  visit("drafter", model.drafter);
  visit("drafter_kind", model.drafter_kind);
  visit("drafter_note", model.drafter_note);
  visit("block", model.block);
  visit("self_test_note", model.self_test_note);
  visit("vocabulary", model.vocabulary);
}

template <class Thinking, class F>
void each_form(Thinking& thinking, F&& visit) {
  visit("switchable", thinking.switchable);
  visit("by_default", thinking.by_default);
  visit("opened_on", thinking.opened_on);
  visit("opened_off", thinking.opened_off);
  visit("opened_unset", thinking.opened_unset);
}

constexpr std::pair<SelfTest, std::string_view> kSelfTests[] = {
    {SelfTest::not_run, "not_run"}, {SelfTest::passed, "passed"}, {SelfTest::failed, "failed"}};

/// Reads a field into a member of its type. Text comes from elsewhere and is shown.
struct FieldReader {
  const JsonFields& fields;

  void operator()(const char* field, std::string& value) const { value = printable(fields.text(field), 1024); }
  void operator()(const char* field, uint32_t& value) const { value = fields.u32(field); }
  void operator()(const char* field, uint64_t& value) const { value = u64_in(fields, field); }
  void operator()(const char* field, bool& value) const { value = fields.boolean_or(field, false); }
};

class GivenTexts final : public TokenTexts {
 public:
  struct Text {
    std::string bytes;
    bool known = false, control = false;
  };

  explicit GivenTexts(std::vector<Text> texts) : texts_(std::move(texts)) {}

  std::optional<trace::Piece> find(uint32_t token) const override {
    if (token >= texts_.size() || !texts_[token].known) return std::nullopt;
    return trace::Piece{texts_[token].bytes, texts_[token].control};
  }

 private:
  std::vector<Text> texts_;
};

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const DecodedCharacter next = decode_first(text);
    if (!next.valid) return false;
    text.remove_prefix(next.length);
  }
  return true;
}

}  // namespace

std::string_view event_name(const Event& event) {
  if (std::holds_alternative<PrefillProgress>(event)) return "canopy.prefill";
  if (std::holds_alternative<ReplyStarted>(event)) return "canopy.started";
  if (std::holds_alternative<TextDelta>(event)) return "canopy.text";
  if (std::holds_alternative<RoundFinished>(event)) return "canopy.round";
  if (std::holds_alternative<ReplyFinished>(event)) return "canopy.finished";
  return {};
}

ordered_json event_to_json(const Event& event, const TokenTexts& texts) {
  if (const auto* prompt = std::get_if<PrefillProgress>(&event))
    return {{"done", prompt->done}, {"total", prompt->total}};
  if (const auto* start = std::get_if<ReplyStarted>(&event))
    return {{"prompt_tokens", start->prompt_tokens},
            {"reused_tokens", start->reused_tokens},
            {"prefill_ms", start->prefill_ms},
            {"first_token", start->first_token},
            {"begun_bytes", start->begun_bytes}};
  if (const auto* text = std::get_if<TextDelta>(&event))
    return {{"text", text->text},
            {"reply_tokens", text->reply_tokens},
            {"context_used", text->context_used},
            {"tokens_per_second", text->tokens_per_second},
            {"thought", json_of(text->thought)}};
  if (const auto* round = std::get_if<RoundFinished>(&event)) return json_of(*round, texts);
  if (const auto* reply = std::get_if<ReplyFinished>(&event)) return json_of(*reply);
  return ordered_json::object();
}

std::optional<Event> event_from_json(std::string_view name, const json& object, uint64_t reply_id) {
  const JsonFields fields(object, "the event " + quoted_name(name));
  if (name == "canopy.prefill") return prefill_in(fields, reply_id);
  if (name == "canopy.started")
    return ReplyStarted{reply_id,
                        fields.u32("prompt_tokens"),
                        fields.u32("reused_tokens"),
                        amount_in(fields, "prefill_ms"),
                        fields.u32("first_token"),
                        fields.u32("begun_bytes")};
  if (name == "canopy.text") {
    TextDelta text;
    text.reply_id = reply_id;
    text.text = fields.text("text");
    text.reply_tokens = fields.u32("reply_tokens");
    text.context_used = fields.u32("context_used");
    text.tokens_per_second = amount_in(fields, "tokens_per_second");
    text.thought = thought_in(fields);
    return text;
  }
  if (name == "canopy.round") return round_in(fields, object, reply_id);
  if (name == "canopy.finished") return finished_in(fields, reply_id);
  return std::nullopt;
}

ordered_json model_to_json(const ModelReady& model) {
  ordered_json object;
  const auto write = [](ordered_json& into) {
    return [&into](const char* field, const auto& value) { into[field] = value; };
  };
  each_field(model, write(object));
  object["drafted_by"] = list_of(model.drafted_by);
  for (const auto& [self_test, name] : kSelfTests)
    if (self_test == model.self_test) object["self_test"] = name;
  ordered_json thinking;
  each_form(model.thinking, write(thinking));
  object["thinking"] = std::move(thinking);
  return object;
}

ModelReady model_from_json(const json& object) {
  const JsonFields fields(object, "the model");
  ModelReady model;
  each_field(model, FieldReader{fields});
  model.drafted_by = drafted_by_in(fields);
  const std::string tested = fields.text("self_test");
  for (const auto& [self_test, name] : kSelfTests)
    if (name == tested) model.self_test = self_test;
  const JsonFields thinking(fields.at("thinking"), "the thinking of the model");
  each_form(model.thinking, FieldReader{thinking});
  require_most("block", model.block, kMostBlock);
  require_most("context", model.context, kMostContext);
  require_most("model_context", model.model_context, kMostContext);
  if (model.context == 0) throw bad_input("The field 'context' of the model is 0; at least 1 is expected.");
  return model;
}

ordered_json texts_to_json(const TokenTexts& texts, uint32_t count) {
  ordered_json list = ordered_json::array(), control = ordered_json::array();
  for (uint32_t token = 0; token < count; ++token) {
    const std::optional<trace::Piece> piece = texts.find(token);
    if (!piece) {
      list.push_back(nullptr);
      continue;
    }
    if (is_utf8(piece->bytes)) {
      list.push_back(std::string(piece->bytes));
    } else {
      const auto* bytes = reinterpret_cast<const uint8_t*>(piece->bytes.data());
      list.push_back({{"base64", encode_base64(std::span(bytes, piece->bytes.size()))}});
    }
    if (piece->control) control.push_back(token);
  }
  return {{"texts", std::move(list)}, {"control", std::move(control)}};
}

std::shared_ptr<const TokenTexts> texts_from_json(const json& object) {
  const JsonFields fields(object, "the texts of tokens");
  const json& list = fields.list("texts");
  if (list.size() > kMostTexts)
    throw bad_input("The texts of tokens are " + std::to_string(list.size()) + "; at most " +
                    std::to_string(kMostTexts) + " are allowed.");
  std::vector<GivenTexts::Text> texts;
  texts.reserve(list.size());
  for (const json& each : list) {
    GivenTexts::Text& text = texts.emplace_back();
    if (each.is_null()) continue;
    text.known = true;
    if (each.is_string()) {
      text.bytes = each.get<std::string>();
      continue;
    }
    std::optional<std::string> bytes = decode_base64(JsonFields(each, "the text of a token").text("base64"));
    if (!bytes) throw bad_input("The text of token " + std::to_string(texts.size() - 1) + " is no Base64.");
    text.bytes = *std::move(bytes);
  }
  for (const uint32_t token : fields.ids("control")) {
    if (token >= texts.size())
      throw bad_input("The field 'control' of " + fields.what() + " has token " + std::to_string(token) +
                      "; allowed: below " + std::to_string(texts.size()) + ".");
    texts[token].control = true;
  }
  return std::make_shared<const GivenTexts>(std::move(texts));
}

}  // namespace canopy
