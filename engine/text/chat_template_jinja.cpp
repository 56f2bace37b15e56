#include "engine/text/chat_template_jinja.h"

#include <algorithm>
#include <ctime>

#include "engine/base/error.h"
#include "engine/text/chat_tools.h"
#include "engine/text/jinja/template.h"

namespace canopy {
namespace {

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
    for (const std::string_view role : chat_roles().subspan(kCommonRoles)) {
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
    std::string text;
    for (const PromptPart& part : fill(turns, options, form_)) text += part.text;
    return text;
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
      std::string text;
      for (const PromptPart& part : fill(std::span(&turn, 1), {}, ContentForm::parts)) text += part.text;
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

}  // namespace

std::unique_ptr<ChatTemplate> make_jinja_chat(std::string_view template_text, const Tokenizer& tokenizer) {
  return std::make_unique<JinjaChat>(template_text, tokenizer);
}

}  // namespace canopy
