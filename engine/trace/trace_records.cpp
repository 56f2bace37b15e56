#include "engine/trace/trace_records.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <vector>

#include "engine/base/error.h"
#include "engine/format/json_text.h"
#include "engine/trace/round_statistics.h"
#include "engine/trace/trace_format.h"

namespace canopy {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::array<std::pair<FinishReason, std::string_view>, 6> finish_names = {{
    {FinishReason::stop_token, "stop_token"},
    {FinishReason::max_tokens, "max_tokens"},
    {FinishReason::context_full, "context_full"},
    {FinishReason::cancelled, "cancelled"},
    {FinishReason::failed, "failed"},
    {FinishReason::repeats, "repeats"},
}};

struct SizeField {
  const char* name;
  uint32_t TraceSizes::*value;
};
constexpr SizeField size_fields[] = {
    {"layers", &TraceSizes::layers},     {"hidden", &TraceSizes::hidden},     {"heads", &TraceSizes::heads},
    {"kv_heads", &TraceSizes::kv_heads}, {"head_dim", &TraceSizes::head_dim}, {"ffn", &TraceSizes::ffn},
    {"vocab", &TraceSizes::vocab},
};
constexpr SizeField expert_size_fields[] = {
    {"expert_layers", &TraceSizes::expert_layers},
    {"experts", &TraceSizes::experts},
    {"experts_used", &TraceSizes::experts_used},
    {"expert_ffn", &TraceSizes::expert_ffn},
};
/// Written where a model has recurrences; `shared_ffn` with experts.
constexpr SizeField hybrid_size_fields[] = {
    {"recurrent_layers", &TraceSizes::recurrent_layers},
    {"key_heads", &TraceSizes::key_heads},
    {"value_heads", &TraceSizes::value_heads},
    {"key_dim", &TraceSizes::key_dim},
    {"value_dim", &TraceSizes::value_dim},
    {"conv_taps", &TraceSizes::conv_taps},
    {"rotary_dim", &TraceSizes::rotary_dim},
};
/// Written where a model has latents.
constexpr SizeField latent_size_fields[] = {
    {"latent_rank", &TraceSizes::latent_rank},
    {"latent_query_rank", &TraceSizes::latent_query_rank},
    {"latent_key_dim", &TraceSizes::latent_key_dim},
    {"latent_value_dim", &TraceSizes::latent_value_dim},
};
constexpr SizeField drafter_size_fields[] = {
    {"block", &TraceSizes::block},
    {"taps", &TraceSizes::taps},
    {"drafted_tokens", &TraceSizes::drafted_tokens},
};
/// Written where they are not 0.
constexpr SizeField relative_size_fields[] = {
    {"markov_rank", &TraceSizes::markov_rank},
    {"row_conv_taps", &TraceSizes::row_conv_taps},
    {"row_conv_group", &TraceSizes::row_conv_group},
};
constexpr size_t most_kinds = 256;

ordered_json to_json(const TraceSizes& sizes) {
  ordered_json object;
  for (const SizeField& field : size_fields) object[field.name] = sizes.*field.value;
  if (sizes.expert_layers > 0) {
    for (const SizeField& field : expert_size_fields) object[field.name] = sizes.*field.value;
    if (sizes.shared_ffn > 0) object["shared_ffn"] = sizes.shared_ffn;
  }
  if (sizes.recurrent_layers > 0) {
    for (const SizeField& field : hybrid_size_fields) object[field.name] = sizes.*field.value;
    object["output_gate"] = sizes.output_gate;
  }
  if (sizes.latent_rank > 0) {
    for (const SizeField& field : latent_size_fields) object[field.name] = sizes.*field.value;
  }
  if (sizes.block > 0) {
    for (const SizeField& field : drafter_size_fields) object[field.name] = sizes.*field.value;
    for (const SizeField& field : relative_size_fields) {
      if (sizes.*field.value > 0) object[field.name] = sizes.*field.value;
    }
  }
  object["tied_head"] = sizes.tied_head;
  object["qk_norm"] = sizes.qk_norm;
  object["parameters"] = sizes.parameters;
  ordered_json types = ordered_json::object();
  for (const auto& [kind, type] : sizes.types) types[kind] = type;
  object["types"] = std::move(types);
  return object;
}

ordered_json to_json(const TraceModel& model) {
  ordered_json object = {{"name", model.name},
                         {"file_name", model.file_name},
                         {"architecture", model.architecture},
                         {"quantization", model.quantization},
                         {"quantized_to", model.quantized_to}};
  if (model.sizes) object["sizes"] = to_json(*model.sizes);
  return object;
}

ordered_json to_json(const SamplingSettings& sampling) {
  ordered_json bias = ordered_json::array();
  for (const auto& [token, value] : sampling.logit_bias) bias.push_back({token, value});
  return {{"temperature", sampling.temperature},
          {"top_k", sampling.top_k},
          {"top_p", sampling.top_p},
          {"min_p", sampling.min_p},
          {"seed", sampling.seed},
          {"repetition_penalty", sampling.repetition_penalty},
          {"presence_penalty", sampling.presence_penalty},
          {"frequency_penalty", sampling.frequency_penalty},
          {"logit_bias", std::move(bias)}};
}

/// A whole number of 64 bits; JsonFields has those of 32.
uint64_t parse_u64(const JsonFields& fields, const char* field) {
  const json& value = fields.at(field);
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  throw bad_input("The field '" + std::string(field) + "' of " + fields.what() + " is no whole number from 0 to " +
                  std::to_string(std::numeric_limits<uint64_t>::max()) + ".");
}

TraceSizes parse_sizes(const json& object, const std::string& what) {
  const JsonFields fields(object, what);
  TraceSizes sizes;
  for (const SizeField& field : size_fields) sizes.*field.value = fields.u32(field.name);
  for (const SizeField& field : expert_size_fields) sizes.*field.value = fields.u32_or(field.name, 0);
  for (const SizeField& field : hybrid_size_fields) sizes.*field.value = fields.u32_or(field.name, 0);
  for (const SizeField& field : latent_size_fields) sizes.*field.value = fields.u32_or(field.name, 0);
  for (const SizeField& field : drafter_size_fields) sizes.*field.value = fields.u32_or(field.name, 0);
  for (const SizeField& field : relative_size_fields) sizes.*field.value = fields.u32_or(field.name, 0);
  sizes.shared_ffn = fields.u32_or("shared_ffn", 0);
  sizes.output_gate = fields.boolean_or("output_gate", false);
  sizes.tied_head = fields.boolean_or("tied_head", false);
  sizes.qk_norm = fields.boolean_or("qk_norm", false);
  sizes.parameters = parse_u64(fields, "parameters");
  const json* const types = fields.object("types");
  if (types == nullptr) return sizes;
  if (types->size() > most_kinds) {
    throw bad_input("The field 'types' of " + what + " names " + std::to_string(types->size()) + " kinds; at most " +
                    std::to_string(most_kinds) + " are allowed.");
  }
  for (const auto& [kind, type] : types->items()) {
    if (!type.is_string()) throw bad_input("The field 'types' of " + what + " has a type that is no text.");
    sizes.types.emplace_back(kind, type.get<std::string>());
  }
  return sizes;
}

TraceModel parse_model(const json& object, const std::string& what) {
  const JsonFields fields(object, what);
  TraceModel model = {fields.text_or("name", ""), fields.text_or("file_name", ""), fields.text_or("architecture", ""),
                      fields.text_or("quantization", ""), fields.text_or("quantized_to", "")};
  if (const json* sizes = fields.object("sizes")) model.sizes = parse_sizes(*sizes, "the sizes of " + what);
  return model;
}

/// A number that a float holds.
float parse_float(const JsonFields& fields, const char* field) {
  const double value = fields.number(field);
  if (std::abs(value) <= std::numeric_limits<float>::max()) return static_cast<float>(value);
  throw bad_input("The field '" + std::string(field) + "' of " + fields.what() + " is " + std::to_string(value) +
                  "; a number of 32 bits is allowed.");
}

double parse_ms(const JsonFields& fields, const char* field) {
  const double value = fields.number(field);
  if (std::isfinite(value) && value >= 0) return value;
  throw bad_input("The field '" + std::string(field) + "' of " + fields.what() + " is " + std::to_string(value) +
                  "; a time from 0 on is allowed.");
}

std::vector<std::pair<uint32_t, float>> parse_bias(const JsonFields& fields) {
  std::vector<std::pair<uint32_t, float>> bias;
  for (const json& entry : fields.list("logit_bias")) {
    const bool pair = entry.is_array() && entry.size() == 2 && entry[0].is_number_unsigned() && entry[1].is_number();
    if (!pair || entry[0].get<uint64_t>() > std::numeric_limits<uint32_t>::max()) {
      throw bad_input("An entry of the field 'logit_bias' of " + fields.what() + " is no pair of token and number.");
    }
    bias.emplace_back(entry[0].get<uint32_t>(), entry[1].get<float>());
  }
  return bias;
}

SamplingSettings parse_sampling(const json& object) {
  const JsonFields fields(object, "the sampling settings of a reply");
  SamplingSettings sampling;
  sampling.temperature = parse_float(fields, "temperature");
  sampling.top_k = fields.u32("top_k");
  sampling.top_p = parse_float(fields, "top_p");
  sampling.min_p = parse_float(fields, "min_p");
  sampling.seed = parse_u64(fields, "seed");
  sampling.repetition_penalty = parse_float(fields, "repetition_penalty");
  sampling.presence_penalty = parse_float(fields, "presence_penalty");
  sampling.frequency_penalty = parse_float(fields, "frequency_penalty");
  sampling.logit_bias = parse_bias(fields);
  validate(sampling);
  return sampling;
}

DecodeMode parse_mode(const JsonFields& fields, const char* field) {
  const std::string name = fields.text(field);
  if (const auto mode = decode_mode_of(name)) return *mode;
  throw bad_input("The field '" + std::string(field) + "' of " + fields.what() + " is '" + name +
                  "'; allowed: ar, chain, tree, adaptive.");
}

FinishReason parse_reason(const JsonFields& fields, const char* field) {
  const std::string name = fields.text(field);
  if (const auto reason = finish_reason_named(name)) return *reason;
  throw bad_input("The field '" + std::string(field) + "' of " + fields.what() + " is '" + name +
                  "'; allowed: stop_token, max_tokens, context_full, cancelled, failed, repeats.");
}

std::vector<std::string> parse_texts(const JsonFields& fields, const char* field) {
  std::vector<std::string> texts;
  for (const json& text : fields.list(field)) {
    if (!text.is_string()) {
      throw bad_input("The field '" + std::string(field) + "' of " + fields.what() + " has an entry that is no text.");
    }
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

}  // namespace

std::string_view json_name(FinishReason reason) {
  for (const auto& [known, name] : finish_names) {
    if (known == reason) return name;
  }
  return "failed";
}

std::optional<FinishReason> finish_reason_named(std::string_view name) {
  for (const auto& [reason, known] : finish_names) {
    if (known == name) return reason;
  }
  return std::nullopt;
}

ordered_json to_json(const TraceHeader& header) {
  ordered_json object = {{"canopy_version", header.canopy_version},
                         {"created", header.created},
                         {"redacted", header.redacted},
                         {"target", to_json(header.target)},
                         {"drafter", header.drafter ? to_json(*header.drafter) : ordered_json()},
                         {"device", header.device},
                         {"driver", header.driver},
                         {"backend", header.backend},
                         {"kv_type", header.kv_type},
                         {"context", header.context},
                         {"variants", header.variants},
                         {"calibration", header.calibration}};
  if (!header.times.empty()) object["times"] = header.times;
  return object;
}

ordered_json to_json(const TraceReplyBegin& begin) {
  return {{"turn", begin.turn},
          {"mode", to_string(begin.mode)},
          {"policy", begin.policy},
          {"budget", begin.budget},
          {"max_tokens", begin.max_tokens},
          {"sampling", to_json(begin.sampling)},
          {"stop_strings", begin.stop_strings},
          {"prompt_tokens", begin.prompt_tokens},
          {"prompt_ids", begin.prompt},
          {"begun_tokens", begin.begun_tokens}};
}

ordered_json to_json(const TracePrefill& prefill) {
  return {{"reused_tokens", prefill.reused_tokens},
          {"ms", prefill.ms},
          {"first_token", prefill.first_token ? ordered_json(*prefill.first_token) : ordered_json()}};
}

ordered_json to_json(const TraceReplyEnd& end) {
  return {{"finish_reason", json_name(end.reason)},
          {"reply_tokens", end.reply_tokens},
          {"decode_ms", end.decode_ms},
          {"text", end.text}};
}

TraceHeader parse_trace_header(std::string_view text) {
  const json object = parse_json(text, "the header");
  const JsonFields fields(object, "the header");
  TraceHeader header;
  header.canopy_version = fields.text_or("canopy_version", "");
  header.created = fields.text_or("created", "");
  header.redacted = fields.boolean_or("redacted", false);
  header.times = fields.text_or("times", "");
  header.target = parse_model(fields.at("target"), "the target in the header");
  if (const json* drafter = fields.object("drafter"))
    header.drafter = parse_model(*drafter, "the drafter in the header");
  header.device = fields.text_or("device", "");
  header.driver = fields.text_or("driver", "");
  header.backend = fields.text_or("backend", "");
  header.kv_type = fields.text_or("kv_type", "");
  header.context = fields.u32_or("context", 0);
  header.variants = fields.text_or("variants", "");
  header.calibration = fields.text_or("calibration", "");
  return header;
}

TraceReplyBegin parse_trace_reply_begin(std::string_view text) {
  const json object = parse_json(text, "the beginning of a reply");
  const JsonFields fields(object, "the beginning of a reply");
  TraceReplyBegin begin;
  begin.turn = parse_u64(fields, "turn");
  begin.mode = parse_mode(fields, "mode");
  begin.policy = fields.text("policy");
  begin.budget = fields.u32("budget");
  begin.max_tokens = fields.u32("max_tokens");
  begin.sampling = parse_sampling(fields.at("sampling"));
  begin.stop_strings = parse_texts(fields, "stop_strings");
  begin.prompt_tokens = fields.u32("prompt_tokens");
  begin.prompt = fields.ids("prompt_ids");
  begin.begun_tokens = fields.u32_or("begun_tokens", 0);
  return begin;
}

TracePrefill parse_trace_prefill(std::string_view text) {
  const json object = parse_json(text, "the prompt's record");
  const JsonFields fields(object, "the prompt's record");
  TracePrefill prefill;
  prefill.reused_tokens = fields.u32("reused_tokens");
  prefill.ms = parse_ms(fields, "ms");
  if (fields.has("first_token")) prefill.first_token = fields.u32("first_token");
  return prefill;
}

TraceReplyEnd parse_trace_reply_end(std::string_view text) {
  const json object = parse_json(text, "the end of a reply");
  const JsonFields fields(object, "the end of a reply");
  TraceReplyEnd end;
  end.reason = parse_reason(fields, "finish_reason");
  end.reply_tokens = fields.u32("reply_tokens");
  end.decode_ms = parse_ms(fields, "decode_ms");
  end.text = fields.text("text");
  return end;
}

namespace {

/// Calls f with each node that only earlier replies proposed and that is not in the text.
template <class Record, class F>
void each_of_other_chats(Record& record, F&& f) {
  // What was recycled may be of another chat as well, and speaks for nothing.
  const auto foreign = [](const RoundNode& row) {
    return (row.node.sources & kFromEarlier) != 0 && (row.node.sources & ~(kFromEarlier | kFromRecycling)) == 0;
  };
  if (std::ranges::none_of(record.nodes, foreign)) return;
  std::vector<bool> written(record.nodes.size());
  for (uint32_t node = drafted_part(record).last_node; node != TreeNode::none; node = record.nodes[node].node.parent)
    written[node] = true;
  for (size_t i = 0; i < record.nodes.size(); ++i)
    if (!written[i] && foreign(record.nodes[i])) f(record.nodes[i]);
}

}  // namespace

bool has_other_chats(const RoundRecord& record) {
  bool any = false;
  each_of_other_chats(record, [&](const RoundNode& row) { any |= row.node.token != trace::other_chats_token; });
  return any;
}

RoundRecord without_other_chats(RoundRecord record) {
  each_of_other_chats(record, [](RoundNode& row) {
    row.node.token = trace::other_chats_token;
    row.target_token = RoundNode::unknown;
  });
  return record;
}

RoundRecord redacted(RoundRecord record) {
  std::unordered_map<uint32_t, uint32_t> numbers;
  const auto number = [&](uint32_t& token) {
    token = numbers.try_emplace(token, static_cast<uint32_t>(numbers.size())).first->second;
  };
  for (RoundNode& row : record.nodes) number(row.node.token);
  for (RoundNode& row : record.nodes) {
    if (row.target_token != RoundNode::unknown) number(row.target_token);
  }
  for (uint32_t& token : record.emitted) number(token);
  return record;
}

TraceReplyBegin redacted(TraceReplyBegin begin) {
  begin.prompt.clear();
  begin.stop_strings.clear();
  begin.sampling.logit_bias.clear();
  return begin;
}

TracePrefill redacted(TracePrefill prefill) {
  prefill.first_token.reset();
  return prefill;
}

TraceReplyEnd redacted(TraceReplyEnd end) {
  end.text.clear();
  return end;
}

}  // namespace canopy
