#include "engine/serve/api_request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/format/json_text.h"
#include "engine/text/chat_json.h"
#include "engine/text/chat_template.h"

namespace canopy {
namespace {

using ApiJson = nlohmann::ordered_json;

constexpr size_t kMostStops = 16, kMostStopBytes = 1024, kMostBiases = 4096, kMostPrompts = 64, kMostTools = 512;

[[noreturn]] void refuse(const std::string& field, const std::string& sentence) {
  throw ApiError(400, "invalid_request_error", sentence, field);
}

std::string picture_of_value(const ApiJson& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  return printable(value.dump(-1, ' ', false, ApiJson::error_handler_t::replace), 64);
}

[[noreturn]] void refuse_value(const std::string& field, const ApiJson& value, const std::string& allowed) {
  refuse(field, "The field \"" + printable(field) + "\" is " + picture_of_value(value) + "; " + allowed + ".");
}

/// Refuses a value of a known field that would need what is not there. `allowed`: what to do instead.
[[noreturn]] void refuse_undone(const std::string& field, const ApiJson& value, const std::string& allowed) {
  refuse(field, "The field \"" + printable(field) + "\" is " + picture_of_value(value) +
                    ", which this server does not do; " + allowed + ".");
}

/// The fields of one object of a request. Null counts as absent.
class ApiFields {
 public:
  ApiFields(const ApiJson& object, std::string path) : object_(object), path_(std::move(path)) {
    if (!object.is_object()) refuse_value(path_.empty() ? "body" : path_, object, "an object is allowed");
  }

  const ApiJson* find(const char* field) const {
    const auto found = object_.find(field);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  std::string name(const char* field) const { return path_.empty() ? field : path_ + "." + field; }

  bool boolean(const char* field, bool fallback) const {
    const ApiJson* value = find(field);
    if (value == nullptr) return fallback;
    if (!value->is_boolean()) refuse_value(name(field), *value, "true or false is allowed");
    return value->get<bool>();
  }

  std::string text(const char* field) const {
    const ApiJson* value = find(field);
    if (value == nullptr) return {};
    if (!value->is_string()) refuse_value(name(field), *value, "a string is allowed");
    return value->get<std::string>();
  }

  /// A whole number of that range, also written as 5.0, as some programs do.
  std::optional<int64_t> whole(const char* field, int64_t least, int64_t most) const {
    const ApiJson* value = find(field);
    if (value == nullptr) return std::nullopt;
    const std::string allowed =
        "a whole number from " + std::to_string(least) + " to " + std::to_string(most) + " is allowed";
    int64_t number = 0;
    if (value->is_number_unsigned()) {
      const uint64_t given = value->get<uint64_t>();
      if (given > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
        refuse_value(name(field), *value, allowed);
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

  /// A number of that range; `from` and `to` say whether its ends are in it.
  float number(const char* field, float fallback, double least, double most, bool from = true, bool to = true) const {
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

 private:
  static std::string figure(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", value);
    return text;
  }

  const ApiJson& object_;
  std::string path_;
};

ApiJson parse_body(std::string_view body) {
  try {
    parse_json(body, "The body", DuplicateKeys::refuse);  // says what is wrong, and bounds the depth
  } catch (const Error& error) {
    throw ApiError(400, "invalid_request_error", error.what());
  }
  return ApiJson::parse(body);
}

/// What would change the answer and is not done: whatever is given beside what changes nothing.
void refuse_what_is_not_done(const ApiFields& fields) {
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
  for (const char* count : {"n", "best_of"}) {
    const ApiJson* value = fields.find(count);
    if (value != nullptr && fields.whole(count, 1, 1 << 20) != 1)
      refuse_undone(count, *value, "1 is allowed: ask again for another reply");
  }
  if (const ApiJson* value = fields.find("response_format")) {
    const std::string type = ApiFields(*value, "response_format").text("type");
    if (type != "text")
      refuse("response_format", "The field \"response_format\" asks for the type " + quoted_name(type) +
                                    ", which this server does not do; {\"type\": \"text\"} is allowed.");
  }
  if (const ApiJson* value = fields.find("modalities"))
    if (*value != ApiJson::array({"text"})) refuse_undone("modalities", *value, "[\"text\"] is allowed");
  for (const char* field : {"logprobs", "top_logprobs", "prompt_logprobs"}) {
    const ApiJson* value = fields.find(field);
    const bool off = value == nullptr || (value->is_boolean() && !value->get<bool>()) ||
                     (std::string_view(field) == "top_logprobs" && value->is_number() && value->get<double>() == 0);
    if (!off) refuse_undone(field, *value, "leave it out: probabilities of the tokens are not given");
  }
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

void read_stops(const ApiFields& fields, ApiRequest& request) {
  const ApiJson* value = fields.find("stop");
  if (value == nullptr) return;
  const std::string allowed = "a string or a list of up to " + std::to_string(kMostStops) + " strings, each of 1 to " +
                              std::to_string(kMostStopBytes) + " bytes, is allowed";
  const auto add = [&](const ApiJson& each) {
    if (!each.is_string()) refuse_value("stop", *value, allowed);
    const std::string& text = each.get_ref<const std::string&>();
    if (text.empty() || text.size() > kMostStopBytes) refuse_value("stop", each, allowed);
    request.stops.push_back(text);
  };
  if (!value->is_array()) return add(*value);
  if (value->size() > kMostStops) refuse_value("stop", *value, allowed);
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
      // What stands in earlier replies may be another client's.
      request.sources = static_cast<DraftSources>(request.sources & ~kFromEarlier);
    }
  }
  if (const ApiJson* value = fields.find("canopy"))
    request.rounds = ApiFields(*value, "canopy").boolean("rounds", false);
}

void read_common(const ApiFields& fields, const ApiLimits& limits, ApiRequest& request) {
  refuse_what_is_not_done(fields);
  request.model = fields.text("model");
  request.stream = fields.boolean("stream", false);
  if (const ApiJson* value = fields.find("stream_options"))
    request.include_usage = ApiFields(*value, "stream_options").boolean("include_usage", false);
  read_sampling(fields, limits, request);
  read_stops(fields, request);
  read_speculation(fields, limits, request);
  for (const char* name : {"max_tokens", "max_completion_tokens"})
    if (const auto most = fields.whole(name, 1, std::numeric_limits<int32_t>::max()))
      request.max_tokens = static_cast<uint32_t>(*most);
}

void read_tools(const ApiFields& fields, ApiRequest& request) {
  const ApiJson* tools = fields.find("tools");
  std::vector<std::string> names;
  if (tools != nullptr) {
    if (!tools->is_array() || tools->size() > kMostTools)
      refuse_value("tools", *tools, "a list of up to " + std::to_string(kMostTools) + " functions is allowed");
    for (const ApiJson& tool : *tools) {
      const std::string place = "tools[" + std::to_string(names.size()) + "]";
      const ApiFields parts(tool, place);
      const std::string type = parts.find("type") == nullptr ? "function" : parts.text("type");
      if (type != "function")
        refuse(place + ".type", "The field \"" + place + ".type\" is " + quoted_name(type) +
                                    ", which this server does not do; \"function\" is allowed.");
      const ApiJson* function = parts.find("function");
      if (function == nullptr) refuse(place, "The field \"" + place + "\" lacks \"function\".");
      std::string name = ApiFields(*function, place + ".function").text("name");
      if (name.empty()) refuse(place, "The field \"" + place + ".function\" lacks \"name\".");
      names.push_back(std::move(name));
    }
  }
  bool offered = !names.empty();
  if (const ApiJson* choice = fields.find("tool_choice")) {
    const bool is_word = choice->is_string();
    const std::string word = is_word ? choice->get<std::string>() : "";
    if (is_word && word == "none") {
      offered = false;
    } else if (!is_word || word != "auto") {
      refuse_undone("tool_choice", *choice, "\"auto\" and \"none\" are allowed");
    }
  }
  request.one_call = !fields.boolean("parallel_tool_calls", true);
  if (!offered) return;
  request.tools = tools->dump();
  request.tool_names = std::move(names);
  try {
    tools_from_json(request.tools);
  } catch (const Error& error) {
    refuse("tools", error.what());
  }
}

void read_thinking(const ApiFields& fields, ApiRequest& request) {
  if (const ApiJson* value = fields.find("reasoning_effort")) {
    constexpr std::array words = {"none", "minimal", "low", "medium", "high", "xhigh"};
    const std::string word = fields.text("reasoning_effort");
    if (std::ranges::find(words, word) == words.end())
      refuse_value("reasoning_effort", *value, "none, minimal, low, medium, high or xhigh is allowed");
    request.thinking = word != "none";
  }
  if (const ApiJson* value = fields.find("chat_template_kwargs")) {
    const ApiFields wishes(*value, "chat_template_kwargs");
    for (const auto& [key, each] : value->items())
      if (key != "enable_thinking")
        refuse_undone("chat_template_kwargs." + key, each, "\"enable_thinking\" is allowed");
    if (wishes.find("enable_thinking") != nullptr) request.thinking = wishes.boolean("enable_thinking", true);
  }
}

/// The ids of a list that has nothing else.
std::vector<uint32_t> ids_of(const ApiJson& list, const ApiLimits& limits) {
  std::vector<uint32_t> ids;
  for (const ApiJson& each : list) {
    const bool is_id = each.is_number_unsigned() && each.get<uint64_t>() <= UINT32_MAX &&
                       (limits.vocabulary == 0 || each.get<uint64_t>() < limits.vocabulary);
    if (!is_id)
      refuse_value("prompt", each,
                   "in a list of ids, whole numbers below " + std::to_string(limits.vocabulary) + " are allowed");
    ids.push_back(each.get<uint32_t>());
  }
  return ids;
}

void read_prompts(const ApiFields& fields, const ApiLimits& limits, ApiRequest& request) {
  const ApiJson* value = fields.find("prompt");
  constexpr const char* allowed = "a string, a list of ids, or a list of either is allowed";
  if (value == nullptr) refuse("prompt", std::string("The field \"prompt\" is missing; ") + allowed + ".");
  const auto require_some = [&](const RawPrompt& prompt) {
    const bool empty = std::visit([](const auto& each) { return each.empty(); }, prompt);
    if (empty) refuse_value("prompt", *value, "at least one token is needed");
  };
  if (value->is_string()) {
    request.prompts.emplace_back(value->get<std::string>());
  } else if (!value->is_array() || value->empty()) {
    refuse_value("prompt", *value, allowed);
  } else if (value->front().is_number()) {
    request.prompts.emplace_back(ids_of(*value, limits));
  } else {
    if (value->size() > kMostPrompts)
      refuse_value("prompt", *value, "at most " + std::to_string(kMostPrompts) + " prompts are allowed");
    for (const ApiJson& each : *value) {
      if (each.is_string()) {
        request.prompts.emplace_back(each.get<std::string>());
      } else if (each.is_array()) {
        request.prompts.emplace_back(ids_of(each, limits));
      } else {
        refuse_value("prompt", each, allowed);
      }
    }
  }
  for (const RawPrompt& prompt : request.prompts) require_some(prompt);
}

}  // namespace

ApiJson to_json(const ApiError& error) {
  const auto or_null = [](const std::string& text) { return text.empty() ? ApiJson() : ApiJson(text); };
  return {{"error",
           {{"message", error.what()},
            {"type", error.type},
            {"param", or_null(error.param)},
            {"code", or_null(error.code)}}}};
}

ApiRequest parse_chat_request(std::string_view body, const ApiLimits& limits) {
  const ApiJson json = parse_body(body);
  const ApiFields fields(json, "");
  ApiRequest request;
  read_common(fields, limits, request);
  const ApiJson* messages = fields.find("messages");
  if (messages == nullptr) refuse("messages", "The field \"messages\" is missing; a list of turns is expected.");
  try {
    request.turns = turns_from_json(*messages);
  } catch (const Error& error) {
    refuse("messages", error.what());
  }
  for (ChatTurn& turn : request.turns)
    if (turn.role == "developer") turn.role = "system";
  read_tools(fields, request);
  read_thinking(fields, request);
  return request;
}

ApiRequest parse_completion_request(std::string_view body, const ApiLimits& limits) {
  const ApiJson json = parse_body(body);
  const ApiFields fields(json, "");
  ApiRequest request;
  request.kind = ApiKind::completion;
  request.max_tokens = limits.completion_tokens;
  read_common(fields, limits, request);
  for (const char* chats : {"messages", "tools", "tool_choice"})
    if (const ApiJson* value = fields.find(chats)) refuse_undone(chats, *value, "it belongs to /v1/chat/completions");
  request.echo = fields.boolean("echo", false);
  read_prompts(fields, limits, request);
  return request;
}

}  // namespace canopy
