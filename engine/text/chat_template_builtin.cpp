#include "engine/text/chat_template_builtin.h"

namespace canopy {
namespace {

constexpr std::string_view turn_start = "<|im_start|>";
constexpr std::string_view turn_end = "<|im_end|>";

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

}  // namespace

std::unique_ptr<ChatTemplate> make_chatml() {
  return std::make_unique<ChatMl>();
}

bool has_chatml_tokens(const Tokenizer& tokenizer) {
  return tokenizer.find_special(turn_start).has_value() && tokenizer.find_special(turn_end).has_value();
}

std::unique_ptr<ChatTemplate> make_plain_transcript() {
  return std::make_unique<PlainTranscript>();
}

}  // namespace canopy
