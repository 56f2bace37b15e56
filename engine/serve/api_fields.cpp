#include "engine/serve/api_fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/format/json_text.h"
#include "engine/text/chat_template.h"

namespace canopy {
namespace {

constexpr size_t kMostTools = 512, kMostStops = 16, kMostStopBytes = 1024, kMostBiases = 4096;

std::string picture_of_value(const ApiJson& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return value.empty() ? "an empty list" : "a list";
  return printable(value.dump(-1, ' ', false, ApiJson::error_handler_t::replace), 64);
}

/// A bound of a range, for messages.
std::string figure(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

void read_bias(const ApiFields& fields, const ApiLimits& limits, SamplingSettings& sampling) {
  const ApiJson* value = fields.find("logit_bias");
  if (value == nullptr) return;
  constexpr const char* allowed = "an object of token ids with numbers from -100 to 100 is allowed";
  if (!value->is_object() || value->size() > kMostBiases) refuse_value("logit_bias", *value, allowed);
  for (const auto& [key, bias] : value->items()) {
    uint32_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    const bool is_id =
        error == std::errc() && end == key.data() + key.size() && (limits.vocabulary == 0 || id < limits.vocabulary);
    if (!is_id)
      refuse("logit_bias", "The field \"logit_bias\" has the key " + quoted_name(key) + "; ids below " +
                               std::to_string(limits.vocabulary) + " are allowed.");
    if (!bias.is_number() || !(std::abs(bias.get<double>()) <= 100))
      refuse_value("logit_bias." + key, bias, "a number from -100 to 100 is allowed");
    sampling.logit_bias.emplace_back(id, static_cast<float>(bias.get<double>()));
  }
  // Keys like "1" and "01" name one token.
  std::ranges::sort(sampling.logit_bias);
  for (size_t i = 1; i < sampling.logit_bias.size(); ++i)
    if (sampling.logit_bias[i].first == sampling.logit_bias[i - 1].first)
      refuse("logit_bias",
             "The field \"logit_bias\" names the token " + std::to_string(sampling.logit_bias[i].first) + " twice.");
}

/// Ids of the model's vocabulary.
std::vector<uint32_t> read_ids(const std::string& field, const ApiJson& value, const ApiLimits& limits) {
  const std::string allowed = "a list of ids below " + std::to_string(limits.vocabulary) + " is allowed";
  if (!value.is_array()) refuse_value(field, value, allowed);
  std::vector<uint32_t> ids;
  ids.reserve(value.size());
  for (const ApiJson& id : value) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= limits.vocabulary) refuse_value(field, id, allowed);
    ids.push_back(id.get<uint32_t>());
  }
  return ids;
}

}  // namespace

void refuse(const std::string& field, const std::string& sentence) {
  throw ApiError(400, "invalid_request_error", sentence, field);
}

void refuse_value(const std::string& field, const ApiJson& value, const std::string& allowed) {
  refuse(field, "The field \"" + printable(field) + "\" is " + picture_of_value(value) + "; " + allowed + ".");
}

void refuse_undone(const std::string& field, const ApiJson& value, const std::string& allowed) {
  refuse(field, "The field \"" + printable(field) + "\" is " + picture_of_value(value) +
                    ", which this server does not do; " + allowed + ".");
}

void refuse_type(const std::string& field, const std::string& type, const std::string& allowed) {
  refuse(field, "The field \"" + printable(field) + "\" is " + quoted_name(type) + ", which this server does not do; " +
                    allowed + ".");
}

std::string place_in(const std::string& list, size_t index) {
  return list + "[" + std::to_string(index) + "]";
}

ApiFields::ApiFields(const ApiJson& object, std::string path) : object_(object), path_(std::move(path)) {
  if (!object.is_object()) refuse_value(path_.empty() ? "body" : path_, object, "an object is allowed");
}

const ApiJson* ApiFields::find(const char* field) const {
  const auto found = object_.find(field);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool ApiFields::boolean(const char* field, bool fallback) const {
  const ApiJson* value = find(field);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) refuse_value(name(field), *value, "true or false is allowed");
  return value->get<bool>();
}

std::string ApiFields::text(const char* field) const {
  const ApiJson* value = find(field);
  if (value == nullptr) return {};
  if (!value->is_string()) refuse_value(name(field), *value, "a string is allowed");
  return value->get<std::string>();
}

std::string ApiFields::required_text(const char* field) const {
  if (find(field) == nullptr)
    refuse(name(field), "The field \"" + name(field) + "\" is missing; a string is expected.");
  return text(field);
}

std::optional<std::string> ApiFields::word(const char* field, const std::vector<std::string>& allowed) const {
  const ApiJson* value = find(field);
  if (value == nullptr) return std::nullopt;
  std::string words;
  for (const std::string& each : allowed) {
    if (value->is_string() && value->get_ref<const std::string&>() == each) return each;
    words += (words.empty() ? "" : &each == &allowed.back() ? " or " : ", ") + each;
  }
  refuse_value(name(field), *value, words + " is allowed");
}

std::optional<int64_t> ApiFields::whole(const char* field, int64_t least, int64_t most) const {
  const ApiJson* value = find(field);
  if (value == nullptr) return std::nullopt;
  const std::string allowed =
      "a whole number from " + std::to_string(least) + " to " + std::to_string(most) + " is allowed";
  int64_t number = 0;
  if (value->is_number_unsigned()) {
    const uint64_t given = value->get<uint64_t>();
    if (given > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) refuse_value(name(field), *value, allowed);
    number = static_cast<int64_t>(given);
  } else if (value->is_number_integer()) {
    number = value->get<int64_t>();
  } else if (value->is_number_float() && std::abs(value->get<double>()) < 9e15 &&
             std::floor(value->get<double>()) == value->get<double>()) {
    number = static_cast<int64_t>(value->get<double>());
  } else {
    refuse_value(name(field), *value, allowed);
  }
  if (number < least || number > most) refuse_value(name(field), *value, allowed);
  return number;
}

float ApiFields::number(const char* field, float fallback, double least, double most, bool from, bool to) const {
  const ApiJson* value = find(field);
  if (value == nullptr) return fallback;
  const std::string ends = std::string("a number ") + (from ? "from " : "above ") + figure(least) +
                           (to ? " to " : " to below ") + figure(most) + " is allowed";
  if (!value->is_number()) refuse_value(name(field), *value, ends);
  const double given = value->get<double>();
  const bool fits =
      std::isfinite(given) && (from ? given >= least : given > least) && (to ? given <= most : given < most);
  if (!fits) refuse_value(name(field), *value, ends);
  const float result = static_cast<float>(given);
  // Rounded to what the sampler computes with, it must still be inside.
  if (!from && static_cast<double>(result) <= least) return std::nextafter(static_cast<float>(least), 2.0f);
  if (!to && static_cast<double>(result) >= most) return std::nextafter(static_cast<float>(most), 0.0f);
  return result;
}

ApiJson parse_api_body(std::string_view body) {
  try {
    parse_json(body, "The body", DuplicateKeys::refuse);  // says what is wrong, and bounds the depth
  } catch (const Error& error) {
    throw ApiError(400, "invalid_request_error", error.what());
  }
  return ApiJson::parse(body);
}

void refuse_what_no_form_does(const ApiFields& fields) {
  struct Undone {
    const char* field;
    const char* instead;
  };
  for (const Undone& each : {
           Undone{"grammar", "leave it out"},
           Undone{"json_schema", "leave it out"},
           Undone{"guided_json", "leave it out"},
           Undone{"guided_regex", "leave it out"},
           Undone{"guided_choice", "leave it out"},
           Undone{"guided_grammar", "leave it out"},
           Undone{"structured_outputs", "leave it out"},
           Undone{"audio", "only text is read and written here"},
           Undone{"functions", "name functions in \"tools\""},
           Undone{"function_call", "use \"tool_choice\""},
           Undone{"web_search_options", "leave it out"},
           Undone{"suffix", "leave it out"},
           Undone{"prompt_embeds", "leave it out"},
           Undone{"typical_p", "leave it out"},
           Undone{"mirostat", "leave it out"},
           Undone{"ignore_eos", "leave it out"},
           Undone{"min_tokens", "leave it out"},
       }) {
    const ApiJson* value = fields.find(each.field);
    if (value == nullptr) continue;
    const bool says_nothing = (value->is_string() && value->get_ref<const std::string&>().empty()) ||
                              (value->is_boolean() && !value->get<bool>()) ||
                              (value->is_number() && value->get<double>() == 0) ||
                              (value->is_array() && value->empty());
    if (!says_nothing) refuse_undone(each.field, *value, each.instead);
  }
}

void read_sampling(const ApiFields& fields, const ApiLimits& limits, ApiRequest& request) {
  SamplingSettings& sampling = request.sampling;
  sampling.temperature = fields.number("temperature", limits.temperature, 0, 100);
  sampling.top_p = fields.number("top_p", 1, 0, 1, false);
  sampling.min_p = fields.number("min_p", 0, 0, 1, true, false);
  // -1 is how vLLM says that it is off.
  sampling.top_k = static_cast<uint32_t>(std::max<int64_t>(0, fields.whole("top_k", -1, UINT32_MAX).value_or(0)));
  sampling.presence_penalty = fields.number("presence_penalty", 0, -2, 2);
  sampling.frequency_penalty = fields.number("frequency_penalty", 0, -2, 2);
  // vLLM has the one name, llama.cpp the other.
  for (const char* name : {"repeat_penalty", "repetition_penalty"})
    sampling.repetition_penalty = fields.number(name, sampling.repetition_penalty, 0, 100, false);
  // A negative one is a number like others, but -1, with which programs ask for one to be drawn.
  const std::optional<int64_t> seed =
      fields.whole("seed", std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
  request.seed_given = seed && *seed != -1;
  if (request.seed_given) sampling.seed = static_cast<uint64_t>(*seed);
  read_bias(fields, limits, sampling);
}

void read_stops(const ApiFields& fields, const char* name, ApiRequest& request) {
  const ApiJson* value = fields.find(name);
  if (value == nullptr) return;
  const std::string allowed = "a string or a list of up to " + std::to_string(kMostStops) + " strings, each of 1 to " +
                              std::to_string(kMostStopBytes) + " bytes, is allowed";
  const auto add = [&](const ApiJson& each) {
    if (!each.is_string()) refuse_value(name, *value, allowed);
    const std::string& text = each.get_ref<const std::string&>();
    if (text.empty() || text.size() > kMostStopBytes) refuse_value(name, each, allowed);
    request.stops.push_back(text);
  };
  if (!value->is_array()) return add(*value);
  if (value->size() > kMostStops) refuse_value(name, *value, allowed);
  for (const ApiJson& each : *value) add(each);
}

void read_speculation(const ApiFields& fields, const ApiLimits& limits, ApiRequest& request) {
  request.mode = limits.mode;
  request.sources = limits.sources;
  request.budget = std::min(request.budget, limits.most_budget);
  if (const ApiJson* value = fields.find("speculation")) {
    const ApiFields wishes(*value, "speculation");
    if (const ApiJson* mode = wishes.find("mode")) {
      const std::optional<DecodeMode> known = decode_mode_of(wishes.text("mode"));
      if (!known) refuse_value("speculation.mode", *mode, "ar, chain, tree or adaptive is allowed");
      request.mode = *known;
    }
    if (const auto budget = wishes.whole("budget", 1, limits.most_budget))
      request.budget = static_cast<uint32_t>(*budget);
    if (const ApiJson* sources = wishes.find("sources")) {
      std::string list;
      if (sources->is_array()) {
        for (const ApiJson& each : *sources) {
          if (!each.is_string()) refuse_value("speculation.sources", *sources, "a list of names is allowed");
          list += (list.empty() ? "" : ",") + each.get<std::string>();
        }
        if (list.empty()) list = "none";
      } else {
        list = wishes.text("sources");
      }
      try {
        request.sources = parse_sources(list);
      } catch (const Error& error) {
        refuse("speculation.sources", error.what());
      }
    }
  }
}

void read_canopy(const ApiFields& fields, const ApiLimits& limits, ApiRequest& request) {
  const ApiJson* value = fields.find("canopy");
  if (value == nullptr) return;
  const ApiFields wishes(*value, "canopy");
  request.rounds = wishes.boolean("rounds", false);
  request.prompt_ids = wishes.boolean("prompt_ids", false);
  request.stop_loops = wishes.boolean("stop_loops", false);
  const ApiJson *begun = wishes.find("begun"), *turns = wishes.find("turn_ids");
  if (begun == nullptr && turns == nullptr) return;
  const ApiJson* vocabulary = wishes.find("vocabulary");
  if (vocabulary == nullptr || !vocabulary->is_number_unsigned() || vocabulary->get<uint64_t>() != limits.identity)
    refuse("canopy.vocabulary",
           "The ids in the field \"canopy\" are of another vocabulary than that of the model which is loaded.");
  if (begun != nullptr) request.begun = read_ids("canopy.begun", *begun, limits);
  if (!request.begun.empty() && request.echo) refuse_undone("canopy.begun", *begun, "without \"echo\" it is allowed");
  if (turns == nullptr) return;
  if (!turns->is_array() || turns->size() != request.turns.size())
    refuse_value("canopy.turn_ids", *turns, "a list with an entry for each of the messages is allowed");
  for (size_t i = 0; i < request.turns.size(); ++i) {
    const ApiJson& ids = turns->at(i);
    if (ids.is_null()) continue;
    request.turns[i].tokens = {read_ids(place_in("canopy.turn_ids", i), ids, limits), {}, limits.identity};
  }
}

const ApiJson* find_tools(const ApiFields& fields, const std::string& what) {
  const ApiJson* tools = fields.find("tools");
  if (tools != nullptr && (!tools->is_array() || tools->size() > kMostTools))
    refuse_value("tools", *tools, "a list of up to " + std::to_string(kMostTools) + " " + what + " is allowed");
  return tools;
}

ApiJson read_function(const ApiFields& tool, std::vector<std::string>& names) {
  ApiJson function = {{"name", tool.required_text("name")}};
  if (function["name"].get_ref<const std::string&>().empty())
    refuse_value(tool.name("name"), function["name"], "a name is needed");
  names.push_back(function["name"].get<std::string>());
  if (tool.find("description") != nullptr) function["description"] = tool.text("description");
  return function;
}

void offer_tools(const ApiJson& functions, std::vector<std::string> names, ApiRequest& request) {
  if (request.tool_choice == ToolChoice::required && names.empty())
    refuse("tool_choice", "The field \"tool_choice\" asks for a call, but \"tools\" names none.");
  if (request.tool_choice == ToolChoice::named) request.one_call = true;  // what is named is to be called once
  if (names.empty() || request.tool_choice == ToolChoice::none) return;
  request.tools = functions.dump();
  request.tool_names = std::move(names);
  try {
    tools_from_json(request.tools);
  } catch (const Error& error) {
    refuse("tools", error.what());
  }
}

}  // namespace canopy
