#include "engine/text/chat_template.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/printable.h"

namespace canopy {
namespace {

constexpr std::string_view turn_start = "<|im_start|>";
constexpr std::string_view turn_end = "<|im_end|>";

void check_turns(std::span<const ChatTurn> turns) {
  if (turns.empty()) throw bad_input("A prompt needs at least one turn.");
  constexpr std::array<std::string_view, 3> allowed = {"system", "user", "assistant"};
  for (size_t i = 0; i < turns.size(); ++i) {
    if (std::find(allowed.begin(), allowed.end(), turns[i].role) == allowed.end()) {
      throw bad_input("Turn " + std::to_string(i) + " has the role \"" + printable(turns[i].role) +
                      "\"; allowed are \"system\", \"user\" and \"assistant\".");
    }
  }
}

// The text of a Jinja string literal; templates write line ends both as such and as \n.
std::string unescape(std::string_view literal) {
  std::string out;
  for (size_t i = 0; i < literal.size(); ++i) {
    if (literal[i] == '\\' && i + 1 < literal.size()) {
      ++i;
      out += literal[i] == 'n' ? '\n' : literal[i] == 't' ? '\t' : literal[i];
    } else {
      out += literal[i];
    }
  }
  return out;
}

// The system message that a ChatML template spells out for conversations that bring none. It is the one literal that
// holds a whole system turn; where the message is the conversation's own, the literal ends after the line break.
std::string default_system_message(std::string_view jinja) {
  for (const std::string_view head :
       {std::string_view("<|im_start|>system\n"), std::string_view("<|im_start|>system\\n")}) {
    for (size_t at = jinja.find(head); at != std::string_view::npos; at = jinja.find(head, at + 1)) {
      if (at == 0 || (jinja[at - 1] != '\'' && jinja[at - 1] != '"')) continue;
      const char quote = jinja[at - 1];
      const size_t begin = at + head.size();
      size_t end = begin;
      while (end < jinja.size() && jinja[end] != quote) end += jinja[end] == '\\' ? 2 : 1;
      const std::string_view literal = jinja.substr(begin, std::min(end, jinja.size()) - begin);
      const size_t message_end = literal.find(turn_end);
      if (message_end != std::string_view::npos && message_end > 0) return unescape(literal.substr(0, message_end));
    }
  }
  return {};
}

class ChatMl final : public ChatTemplate {
 public:
  ChatMl(std::string default_system, std::string warning) : default_system_(std::move(default_system)) {
    warning_ = std::move(warning);
  }

  std::vector<PromptPart> render(std::span<const ChatTurn> turns, bool add_generation_prompt) const override {
    check_turns(turns);
    std::vector<PromptPart> parts;
    const auto append = [&](const std::string& role, const std::string& content) {
      parts.push_back({std::string(turn_start) + role + "\n", true});
      parts.push_back({content, false});
      parts.push_back({std::string(turn_end) + "\n", true});
    };
    if (turns.front().role != "system" && !default_system_.empty()) append("system", default_system_);
    for (const ChatTurn& turn : turns) append(turn.role, turn.content);
    if (add_generation_prompt) parts.push_back({std::string(turn_start) + "assistant\n", true});
    return parts;
  }

 private:
  std::string default_system_;
};

// For models that were never taught turns: a transcript to be continued.
class PlainTranscript final : public ChatTemplate {
 public:
  explicit PlainTranscript(std::string warning) { warning_ = std::move(warning); }

  std::vector<PromptPart> render(std::span<const ChatTurn> turns, bool add_generation_prompt) const override {
    check_turns(turns);
    std::vector<PromptPart> parts;
    for (const ChatTurn& turn : turns) {
      if (turn.role != "system") parts.push_back({turn.role == "user" ? "User: " : "Assistant: ", true});
      parts.push_back({turn.content, false});
      parts.push_back({"\n\n", true});
    }
    if (add_generation_prompt) parts.push_back({"Assistant:", true});
    return parts;
  }

  std::vector<std::string> stop_strings() const override { return {"\nUser:"}; }
};

}  // namespace

std::unique_ptr<ChatTemplate> ChatTemplate::create(std::string_view template_text, const Tokenizer& tokenizer) {
  const bool has_tokens =
      tokenizer.find_special(turn_start).has_value() && tokenizer.find_special(turn_end).has_value();
  const bool is_chatml = template_text.find(turn_start) != std::string_view::npos;
  if (has_tokens) {
    std::string warning;
    if (template_text.empty()) {
      warning = "The model brings no chat template; ChatML is used, as its vocabulary has those tokens.";
    } else if (!is_chatml) {
      warning =
          "The model's chat template is of a form that is not supported yet; ChatML is used, as its vocabulary has "
          "those tokens.";
    }
    return std::make_unique<ChatMl>(default_system_message(template_text), std::move(warning));
  }
  return std::make_unique<PlainTranscript>(
      template_text.empty()
          ? "The model brings no chat template and its vocabulary has no chat tokens; the conversation is put to it "
            "as a plain transcript."
          : "The model's chat template is of a form that is not supported yet; the conversation is put to it as a "
            "plain transcript.");
}

std::vector<uint32_t> ChatTemplate::render_to_ids(std::span<const ChatTurn> turns, const Tokenizer& tokenizer,
                                                  bool add_generation_prompt) const {
  const std::vector<PromptPart> parts = render(turns, add_generation_prompt);
  std::vector<TextSpan> spans;
  spans.reserve(parts.size());
  for (const PromptPart& part : parts) {
    spans.push_back({part.text, part.is_structure ? SpecialTokens::parse : SpecialTokens::as_text});
  }
  std::vector<uint32_t> ids = tokenizer.encode(spans);
  if (tokenizer.adds_bos() && tokenizer.bos()) ids.insert(ids.begin(), *tokenizer.bos());
  return ids;
}

}  // namespace canopy
