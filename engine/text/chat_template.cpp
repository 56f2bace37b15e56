#include "engine/text/chat_template.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/text/chat_template_builtin.h"
#include "engine/text/chat_template_jinja.h"

namespace canopy {
namespace {

constexpr std::array<std::string_view, 6> roles = {"system", "user", "assistant", "tool", "function", "developer"};

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
      auto own = make_jinja_chat(template_text, tokenizer);
      own->find_thinking();
      return own;
    } catch (const Error& error) {
      reason = "The model's chat template cannot be used (" + std::string(error.what()) + ")";
    }
  }
  const bool is_chatml = has_chatml_tokens(tokenizer);
  auto form = is_chatml ? make_chatml() : make_plain_transcript();
  form->warning_ = reason + (is_chatml ? "; ChatML is used, as its vocabulary has those tokens."
                                       : "; the conversation is put to it as a plain transcript.");
  return form;
}

void ChatTemplate::find_thinking() {
  const ChatTurn question{"user", "canopy trial user"};
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

std::vector<uint32_t> ChatTemplate::render_to_ids(std::span<const ChatTurn> turns, const Tokenizer& tokenizer,
                                                  const PromptOptions& options) const {
  const std::vector<PromptPart> parts = render(turns, options);
  PromptIds prompt(tokenizer);
  for (const PromptPart& part : parts) prompt.add(part);
  std::vector<uint32_t> ids = prompt.finish();
  const auto bos = tokenizer.bos();
  if (tokenizer.adds_bos() && bos && (ids.empty() || ids.front() != *bos)) ids.insert(ids.begin(), *bos);
  return ids;
}

}  // namespace canopy
