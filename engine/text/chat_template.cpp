#include "engine/text/chat_template.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/format/json_text.h"
#include "engine/text/jinja/template.h"

namespace canopy {
namespace {

using OrderedJson = nlohmann::ordered_json;  // a template may print an object as it is, in its own order

constexpr const char* tools_text = "The text of the tools";

jinja::Value value_of(const OrderedJson& json, const std::string& what) {
  switch (json.type()) {
    case OrderedJson::value_t::boolean: return json.get<bool>();
    case OrderedJson::value_t::number_unsigned:
      if (json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        throw bad_input(what + " has the number " + json.dump() + ", which is too large.");
      }
      return json.get<int64_t>();
    case OrderedJson::value_t::number_integer: return json.get<int64_t>();
    case OrderedJson::value_t::number_float: return json.get<double>();
    case OrderedJson::value_t::string: return jinja::Value::content(json.get_ref<const std::string&>());
    case OrderedJson::value_t::array: {
      jinja::List list;
      for (const OrderedJson& item : json) list.items.push_back(value_of(item, what));
      return list;
    }
    case OrderedJson::value_t::object: {
      jinja::Dict dict;
      for (const auto& [key, value] : json.items()) {
        dict.items.emplace_back(jinja::Value::content(key), value_of(value, what));
      }
      return dict;
    }
    default: return jinja::None{};
  }
}

}  // namespace

jinja::Value tools_from_json(std::string_view text) {
  parse_json(text, tools_text, DuplicateKeys::refuse);  // bounds the depth, which the recursion above relies on
  const OrderedJson json = OrderedJson::parse(text);
  if (!json.is_array() || json.empty())
    throw bad_input(std::string(tools_text) + " is no JSON array with tools in it.");
  for (size_t i = 0; i < json.size(); ++i) {
    if (json[i].is_object()) continue;
    throw bad_input("Tool " + std::to_string(i) + " is " + printable(json[i].dump(), 80) + "; an object is expected.");
  }
  return value_of(json, tools_text);
}

namespace {

/// Reads ChatTurn::fields as tools_from_json() reads tools. Throws Error(bad_input) for what is no JSON.
jinja::Value turn_fields_from_json(std::string_view text) {
  const std::string what = "The further fields of a turn";
  parse_json(text, what);  // bounds the depth
  return value_of(OrderedJson::parse(text), what);
}

constexpr std::array<std::string_view, 6> roles = {"system", "user", "assistant", "tool", "function", "developer"};
constexpr size_t kCommonRoles = 3;  // every form of prompt has these

/// A role is written into the prompt as markup is, so it must be one that is known.
void check_turns(std::span<const ChatTurn> turns, bool takes_tools) {
  if (turns.empty()) throw bad_input("A prompt needs at least one turn.");
  const std::span allowed = std::span(roles).first(takes_tools ? roles.size() : kCommonRoles);
  for (size_t i = 0; i < turns.size(); ++i) {
    if (std::ranges::find(allowed, turns[i].role) != allowed.end()) continue;
    std::string words;
    for (const std::string_view role : allowed) {
      words += (words.empty() ? "" : role == allowed.back() ? " and " : ", ") + ("\"" + std::string(role) + "\"");
    }
    throw bad_input("Turn " + std::to_string(i) + " has the role \"" + printable(turns[i].role) + "\"; allowed are " +
                    words + ".");
  }
}

std::string joined_text(std::span<const PromptPart> parts) {
  std::string text;
  for (const PromptPart& part : parts) text += part.text;
  return text;
}

constexpr std::string_view turn_start = "<|im_start|>";
constexpr std::string_view turn_end = "<|im_end|>";

/// <|im_start|>role ... <|im_end|>, as most models whose vocabulary has these tokens were trained.
class ChatMl final : public ChatTemplate {
 protected:
  std::vector<PromptPart> render_checked(std::span<const ChatTurn> turns, const PromptOptions& options) const override {
    std::vector<PromptPart> parts;
    for (const ChatTurn& turn : turns) {
      parts.push_back({std::string(turn_start) + turn.role + "\n", true});
      parts.push_back({turn.content, false, turn.tokens});
      parts.push_back({std::string(turn_end) + "\n", true});
    }
    if (options.add_generation_prompt) parts.push_back({std::string(turn_start) + "assistant\n", true});
    return parts;
  }
};

/// For models that were never taught turns: a transcript to be continued.
class PlainTranscript final : public ChatTemplate {
 public:
  std::vector<std::string> stop_strings() const override { return {"\nUser:"}; }

 protected:
  std::vector<PromptPart> render_checked(std::span<const ChatTurn> turns, const PromptOptions& options) const override {
    std::vector<PromptPart> parts;
    for (const ChatTurn& turn : turns) {
      if (turn.role != "system") parts.push_back({turn.role == "user" ? "User: " : "Assistant: ", true});
      parts.push_back({turn.content, false, turn.tokens});
      parts.push_back({"\n\n", true});
    }
    if (options.add_generation_prompt) parts.push_back({"Assistant:", true});
    return parts;
  }
};

using jinja::Dict;
using jinja::List;
using jinja::Value;

// The form in which a template expects the content of a message: one string, or a list of parts.
enum class ContentForm { string, parts };

// Messages of a trial rendering; they are found again in the prompt by these texts.
constexpr std::string_view trial_system = "canopy trial system", trial_user = "canopy trial user",
                           trial_reply = "canopy trial reply", trial_question = "canopy trial question";

// Turns whose tokens are known have an origin each, by their number in the conversation: a hundred of them, which then
// come anew, for an origin is one byte.
constexpr size_t turn_origins = 100;

jinja::Origin origin_of(const ChatTurn& turn, size_t number) {
  if (turn.tokens.ids.empty()) return jinja::Origin::content;
  return static_cast<jinja::Origin>(static_cast<size_t>(jinja::Origin::content) + 1 + number % turn_origins);
}

// Finds the turns whose content the template brought whole and as it was, in the order of the prompt.
class KnownTurns {
 public:
  explicit KnownTurns(std::span<const ChatTurn> turns) : turns_(turns) {}

  TurnTokens tokens_of(const jinja::Segment& segment) {
    if (segment.origin <= jinja::Origin::content) return {};
    for (size_t i = next_; i < turns_.size(); ++i) {
      if (origin_of(turns_[i], i) != segment.origin || turns_[i].content != segment.text) continue;
      next_ = i;  // a template may bring one turn twice
      return turns_[i].tokens;
    }
    return {};
  }

 private:
  std::span<const ChatTurn> turns_;
  size_t next_ = 0;
};

Value text_part(Value text) {
  Dict part;
  part.set("type", Value::markup("text"));
  part.set("text", std::move(text));
  return part;
}

Value message_of(const ChatTurn& turn, size_t number, ContentForm form) {
  Value content = Value::content(turn.content, origin_of(turn, number));
  if (form == ContentForm::parts) {
    List parts;
    for (const std::string& part : turn.parts) parts.items.push_back(text_part(Value::content(part)));
    if (parts.items.empty()) parts.items.push_back(text_part(std::move(content)));
    content = std::move(parts);
  }
  Dict message;
  message.set("role", Value::markup(turn.role));
  message.set("content", std::move(content));
  if (!turn.thinking.empty()) {
    for (const char* name : {"thinking", "reasoning_content"}) message.set(name, Value::content(turn.thinking));
  }
  if (turn.fields.empty()) return message;
  const Value fields = turn_fields_from_json(turn.fields);
  if (const Dict* dict = fields.dict()) {
    for (const auto& [key, value] : dict->items) message.items.emplace_back(key, value);
  }
  return message;
}

// The conversation without system turns: their messages go in front of the first user's.
std::vector<ChatTurn> with_folded_system(std::span<const ChatTurn> turns) {
  std::string system;
  std::vector<ChatTurn> folded;
  for (const ChatTurn& turn : turns) {
    if (turn.role == "system") {
      system += turn.content + "\n\n";
    } else {
      folded.push_back(turn);
    }
  }
  const auto first = std::find_if(folded.begin(), folded.end(), [](const auto& turn) { return turn.role == "user"; });
  if (first != folded.end()) {
    first->content.insert(0, system);
    if (!first->parts.empty()) first->parts.front().insert(0, system);
  } else if (!system.empty()) {
    folded.insert(folded.begin(), {"user", system.substr(0, system.size() - 2)});
  }
  return folded;
}

std::tm local_time() {
  const std::time_t seconds = std::time(nullptr);
  std::tm now{};
  localtime_r(&seconds, &now);
  return now;
}

/// A model's own template. Its constructor throws Error(bad_input), naming the line, where it cannot be read, or where
/// it does not bring what a user says into the prompt of a short conversation.
class JinjaChat final : public ChatTemplate {
 public:
  JinjaChat(std::string_view text, const Tokenizer& tokenizer)
      : template_(jinja::Template::parse(text, "the chat template")),
        bos_(spelling(tokenizer, tokenizer.bos())),
        eos_(spelling(tokenizer, tokenizer.eos())) {
    choose_form();
  }

 protected:
  std::vector<PromptPart> render_checked(std::span<const ChatTurn> turns, const PromptOptions& options) const override {
    if (!options.tools.empty()) require_place_for_tools(turns, options);
    const bool has_system = std::any_of(turns.begin(), turns.end(), [](const auto& t) { return t.role == "system"; });
    const bool folds = has_system && !knows_system_;
    const std::vector<ChatTurn> folded = folds ? with_folded_system(turns) : std::vector<ChatTurn>();
    const std::span<const ChatTurn> taken = folds ? std::span<const ChatTurn>(folded) : turns;
    require_place_for_roles(taken, turns, options);
    return fill(taken, options, form_);
  }

  bool takes_tools() const override { return true; }

 private:
  static std::string spelling(const Tokenizer& tokenizer, std::optional<uint32_t> id) {
    return id ? std::string(tokenizer.token_bytes(*id)) : std::string();
  }

  std::vector<PromptPart> fill(std::span<const ChatTurn> turns, const PromptOptions& options, ContentForm form) const {
    List messages;
    for (size_t i = 0; i < turns.size(); ++i) {
      const bool in_parts = turns[i].parts.size() > 1 && knows_parts_;
      messages.items.push_back(message_of(turns[i], i, in_parts ? ContentForm::parts : form));
    }
    Dict values;
    values.set("messages", std::move(messages));
    values.set("add_generation_prompt", options.add_generation_prompt);
    values.set("bos_token", Value::markup(bos_));
    values.set("eos_token", Value::markup(eos_));
    values.set("tools", options.tools.empty() ? jinja::Value(jinja::None{}) : tools_from_json(options.tools));
    values.set("documents", jinja::None{});  // defined but none, as Hugging Face passes them
    if (options.enable_thinking) values.set("enable_thinking", *options.enable_thinking);
    std::vector<PromptPart> parts;
    KnownTurns known(turns);
    for (jinja::Segment& segment : template_.render(values, local_time())) {
      TurnTokens tokens = known.tokens_of(segment);
      parts.push_back({std::move(segment.text), segment.origin == jinja::Origin::markup, std::move(tokens)});
    }
    return parts;
  }

  // A template may leave out turns of roles that it does not know, without a word.
  // `named`: the turns by their numbers.
  void require_place_for_roles(std::span<const ChatTurn> turns, std::span<const ChatTurn> named,
                               const PromptOptions& options) const {
    for (const std::string_view role : std::span(roles).subspan(kCommonRoles)) {
      const auto first = std::ranges::find(named, role, &ChatTurn::role);
      if (first == named.end()) continue;
      const std::string place =
          "turn " + std::to_string(first - named.begin()) + ", whose role is \"" + std::string(role) + "\"";
      const std::string with =
          with_context("The model's chat template does not take " + place, [&] { return text_of(turns, options); });
      std::vector<ChatTurn> emptied(turns.begin(), turns.end());
      bool says_something = false;
      for (ChatTurn& turn : emptied) {
        if (turn.role != role) continue;
        says_something = says_something || !turn.content.empty();
        turn.content.clear();
        turn.parts.clear();
      }
      if (!says_something) continue;
      bool same = false;
      try {
        same = with == text_of(emptied, options);
      } catch (const Error&) {  // it reads them
      }
      if (same) throw bad_input("The model's chat template leaves out " + place + ".");
    }
  }

  std::string text_of(std::span<const ChatTurn> turns, const PromptOptions& options) const {
    return joined_text(fill(turns, options, form_));
  }

  // A template that knows nothing of tools would leave them out without a word.
  void require_place_for_tools(std::span<const ChatTurn> turns, PromptOptions options) const {
    const std::string with = text_of(turns, options);
    options.tools.clear();
    if (with == text_of(turns, options)) {
      throw bad_input("The model's chat template has no place for tools; it was not taught to call any.");
    }
  }

  // Whether the prompt for these turns holds a text of theirs.
  bool brings(std::span<const ChatTurn> turns, std::string_view sought, ContentForm form) const {
    const auto parts = fill(turns, {}, form);
    return std::any_of(parts.begin(), parts.end(), [&](const PromptPart& part) {
      return !part.is_structure && part.text.find(sought) != std::string::npos;
    });
  }

  void choose_form() {
    const ChatTurn system{"system", std::string(trial_system)}, user{"user", std::string(trial_user)};
    const ChatTurn alone[] = {user};
    const ChatTurn both[] = {system, user};
    const ChatTurn talk[] = {user, {"assistant", std::string(trial_reply)}, {"user", std::string(trial_question)}};
    if (!brings_either_way(alone)) {
      throw bad_input("the chat template does not bring the user's message into the prompt.");
    }
    if (!brings(talk, trial_question, form_)) {
      throw bad_input("the chat template does not bring the second message of a user into the prompt.");
    }
    try {
      knows_system_ = brings(both, trial_system, form_) && brings(both, trial_user, form_);
    } catch (const Error&) {
      knows_system_ = false;  // many templates refuse system turns by raise_exception()
    }
    knows_parts_ = form_ == ContentForm::parts || takes_parts();
  }

  // Whether a template that takes a string takes a list of parts as well: one that prints it like a value does not.
  bool takes_parts() const {
    ChatTurn turn{"user", std::string(trial_user)};
    turn.parts = {std::string(trial_user), std::string(trial_question)};
    try {
      const std::string text = joined_text(fill(std::span(&turn, 1), {}, ContentForm::parts));
      return text.find(trial_user) != std::string::npos && text.find(trial_question) != std::string::npos &&
             text.find("'text'") == std::string::npos && text.find("\"text\"") == std::string::npos;
    } catch (const Error&) {
      return false;
    }
  }

  // Sets form_. Throws what the template said of plain strings where neither form works.
  bool brings_either_way(std::span<const ChatTurn> turns) {
    std::optional<Error> refusal;
    for (const ContentForm form : {ContentForm::string, ContentForm::parts}) {
      try {
        form_ = form;
        if (brings(turns, trial_user, form)) return true;
      } catch (const Error& error) {
        if (!refusal) refusal = error;
      }
    }
    if (refusal) throw Error(*refusal);
    return false;
  }

  jinja::Template template_;
  std::string bos_, eos_;
  ContentForm form_ = ContentForm::string;
  bool knows_system_ = true;
  bool knows_parts_ = false;  // of a content, one by one
};

// Tokenizes a prompt around the stretches whose tokens are known.
class PromptIds {
 public:
  explicit PromptIds(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  void add(const PromptPart& part) {
    const TurnTokens tokens = tokens_of_answer(tokenizer_, part.tokens);
    if (!tokenizer_.can_go_on() || !spells(tokenizer_, tokens, part.text)) {
      spans_.push_back({part.text, part.is_structure ? SpecialTokens::parse : SpecialTokens::as_text});
      return;
    }
    if (starts_with_dropped_space(tokens)) drop_space_before();
    encode_spans();
    ids_.insert(ids_.end(), tokens.ids.begin(), tokens.ids.end());
    place_ = TextPlace::inside;
  }

  std::vector<uint32_t> finish() {
    encode_spans();
    return std::move(ids_);
  }

 private:
  // A space of the reply's own that its text is shown without (Tokenizer::decode).
  bool starts_with_dropped_space(const TurnTokens& tokens) const {
    return tokenizer_.drops_leading_space() && tokenizer_.token_bytes(tokens.ids.front()).starts_with(' ');
  }

  // "[/INST] " + content: the template's space is the one that the first token of the reply brings.
  void drop_space_before() {
    if (!spans_.empty() && spans_.back().text.ends_with(' ')) spans_.back().text.remove_suffix(1);
  }

  void encode_spans() {
    const std::vector<uint32_t> encoded = tokenizer_.encode(spans_, place_);
    ids_.insert(ids_.end(), encoded.begin(), encoded.end());
    spans_.clear();
  }

  const Tokenizer& tokenizer_;
  std::vector<TextSpan> spans_;
  std::vector<uint32_t> ids_;
  TextPlace place_ = TextPlace::text_start;
};

}  // namespace

std::unique_ptr<ChatTemplate> ChatTemplate::create(std::string_view template_text, const Tokenizer& tokenizer) {
  std::string reason = "The model brings no chat template";
  if (!template_text.empty()) {
    try {
      std::unique_ptr<ChatTemplate> own = std::make_unique<JinjaChat>(template_text, tokenizer);
      own->find_thinking();
      return own;
    } catch (const Error& error) {
      reason = "The model's chat template cannot be used (" + std::string(error.what()) + ")";
    }
  }
  const bool is_chatml = tokenizer.find_special(turn_start).has_value() && tokenizer.find_special(turn_end).has_value();
  std::unique_ptr<ChatTemplate> form;
  if (is_chatml) {
    form = std::make_unique<ChatMl>();
  } else {
    form = std::make_unique<PlainTranscript>();
  }
  form->warning_ = reason + (is_chatml ? "; ChatML is used, as its vocabulary has those tokens."
                                       : "; the conversation is put to it as a plain transcript.");
  return form;
}

void ChatTemplate::find_thinking() {
  const ChatTurn question{"user", std::string(trial_user)};
  const auto prompt = [&](std::optional<bool> enable) {
    PromptOptions options;
    options.enable_thinking = enable;
    return joined_text(render(std::span(&question, 1), options));
  };
  const auto opens = [](std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text.ends_with("<think>");
  };
  try {
    const std::string unset = prompt({}), on = prompt(true), off = prompt(false);
    thinking_ = {on != off, on != off && unset == on, opens(on), opens(off), opens(unset)};
  } catch (const Error&) {
    thinking_ = {};  // a template that refuses the option does without it
  }
}

std::vector<PromptPart> ChatTemplate::render(std::span<const ChatTurn> turns, const PromptOptions& options) const {
  check_turns(turns, takes_tools());
  if (!options.tools.empty() && !takes_tools()) {
    throw bad_input(
        "The model brings no chat template that can be used, and without one tools have no place in the prompt.");
  }
  return render_checked(turns, options);
}

std::span<const std::string_view> chat_roles() {
  return roles;
}

bool ChatTemplate::uses_fields(std::span<const ChatTurn> turns, std::span<const std::string_view> names,
                               const PromptOptions& options) const {
  std::vector<ChatTurn> without(turns.begin(), turns.end());
  for (ChatTurn& turn : without) {
    if (turn.fields.empty()) continue;
    nlohmann::ordered_json fields = nlohmann::ordered_json::parse(turn.fields);
    for (const std::string_view name : names) fields.erase(std::string(name));
    turn.fields = fields.dump();
  }
  const std::string with = joined_text(render(turns, options));
  try {
    return with != joined_text(render(without, options));
  } catch (const Error&) {
    return true;  // a template that cannot do without them
  }
}

namespace {

std::vector<uint32_t> ids_of(std::span<const PromptPart> parts, const Tokenizer& tokenizer) {
  PromptIds prompt(tokenizer);
  for (const PromptPart& part : parts) prompt.add(part);
  std::vector<uint32_t> ids = prompt.finish();
  const auto bos = tokenizer.bos();
  if (tokenizer.adds_bos() && bos && (ids.empty() || ids.front() != *bos)) ids.insert(ids.begin(), *bos);
  return ids;
}

/// Appends the bytes [begin, end) of a prompt. A part that is cut loses its known tokens.
void append_range(std::span<const PromptPart> parts, size_t begin, size_t end, std::vector<PromptPart>& to) {
  size_t at = 0;
  for (const PromptPart& part : parts) {
    const size_t first = std::max(at, begin), last = std::min(at + part.text.size(), end);
    if (first < last) {
      const bool whole = last - first == part.text.size();
      to.push_back({part.text.substr(first - at, last - first), part.is_structure, whole ? part.tokens : TurnTokens{}});
    }
    at += part.text.size();
  }
}

constexpr std::string_view kSampleArgument = "canopy_sample_argument";

/// Where the arguments of a sample call begin that were written as an object, whose keys may have no quotes, or as
/// <parameter=...>; npos: they were not.
size_t begin_of_arguments(std::string_view text, size_t from) {
  const size_t argument = text.find(kSampleArgument, from);
  if (argument == std::string_view::npos) return argument;
  const std::string_view before = text.substr(0, argument);
  for (const std::string_view form : {"{\"", "{ \"", "<parameter=", "{"})
    if (before.ends_with(form) && argument - form.size() >= from) return argument - form.size();
  return std::string_view::npos;
}

/// Where thinking begins that a prompt ends with, opened and closed without a word; the prompt's end: it has none.
size_t begin_of_no_thinking(std::string_view prompt) {
  constexpr std::array<std::array<std::string_view, 3>, 2> forms = {{
      {"<think>", "", "</think>"}, {"<|channel>", "thought", "<channel|>"},  // Gemma 4
  }};
  const auto trimmed_end = [](std::string_view text) {
    return text.substr(0, text.find_last_not_of(" \n") + 1);  // npos + 1 is 0
  };
  for (const auto& [opening, head, closing] : forms) {
    std::string_view rest = trimmed_end(prompt);
    if (!rest.ends_with(closing)) continue;
    rest = trimmed_end(rest.substr(0, rest.size() - closing.size()));
    if (!rest.ends_with(head)) continue;
    rest = trimmed_end(rest.substr(0, rest.size() - head.size()));
    if (rest.ends_with(opening)) return rest.size() - opening.size();
  }
  return prompt.size();
}

}  // namespace

std::vector<uint32_t> ChatTemplate::render_to_ids(std::span<const ChatTurn> turns, const Tokenizer& tokenizer,
                                                  const PromptOptions& options) const {
  return ids_of(render(turns, options), tokenizer);
}

CallPrompt ChatTemplate::render_call_to_ids(std::span<const ChatTurn> turns, const Tokenizer& tokenizer,
                                            const PromptOptions& options, std::string_view name) const {
  const auto is_plain = [](unsigned char c) {
    return c > 0x20 && c != 0x7f && c != '"' && c != '\\' && c != '<' && c != '>';
  };
  if (!std::ranges::all_of(name, is_plain)) {
    throw bad_input("A call of the tool " + quoted_name(name) +
                    " cannot be begun: allowed are names without blanks, quotes, backslashes and angle brackets.");
  }
  std::vector<PromptPart> begun = render(turns, options);
  const std::string prompt = joined_text(begun);
  // As the template writes a call of an earlier turn. Nine letters for an id is what Mistral's demands.
  ChatTurn call{"assistant", ""};
  call.fields = R"({"tool_calls":[{"id":"canopy123","type":"function","function":{"name":")" +
                std::string(kSampleCall) + R"(","arguments":{")" + std::string(kSampleArgument) + R"(":"a"}}}]})";
  std::vector<ChatTurn> with_call(turns.begin(), turns.end());
  with_call.push_back(std::move(call));
  PromptOptions closed = options;
  closed.add_generation_prompt = false;
  const std::string lead = "The model's chat template writes no call that a reply could begin with";
  const std::vector<PromptPart> parts = with_context(lead, [&] { return render(with_call, closed); });
  const std::string text = joined_text(parts);
  // A prompt may end with thinking that is switched off, which turns that are over do not have.
  const size_t same = text.starts_with(prompt) ? prompt.size() : begin_of_no_thinking(prompt);
  const bool goes_on = text.starts_with(std::string_view(prompt).substr(0, same));
  const size_t at = goes_on ? text.find(kSampleCall, same) : std::string::npos;
  const size_t behind = at == std::string::npos ? at : at + kSampleCall.size();
  const size_t arguments = at == std::string::npos ? at : begin_of_arguments(text, behind);
  if (arguments == std::string::npos) throw bad_input(lead + ".");
  append_range(parts, same, at, begun);
  if (!name.empty()) {
    begun.push_back({std::string(name), false});
    // The space in front of an object is part of the token that opens it.
    const size_t last = text.find_last_not_of(' ', arguments - 1);
    append_range(parts, behind, std::max(behind, last + 1), begun);
  }
  return {ids_of(begun, tokenizer), joined_text(begun).substr(prompt.size()), text.substr(same)};
}

}  // namespace canopy
