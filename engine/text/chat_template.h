#pragma once
// Turns of a conversation to the prompt a model was trained on.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/chat_turn.h"
#include "engine/text/tokenizer.h"

namespace canopy {

/// A stretch of a rendered prompt. Only structure may hold special tokens; content is what people wrote.
struct PromptPart {
  std::string text;
  bool is_structure = false;
};

class ChatTemplate {
 public:
  /// Chooses the form of prompt for a model: ChatML when its template or, with no usable template, its vocabulary has
  /// it; otherwise plain "User: ... Assistant:" lines. Never fails; warning() says when the choice is a guess.
  static std::unique_ptr<ChatTemplate> create(std::string_view template_text, const Tokenizer& tokenizer);
  static std::unique_ptr<ChatTemplate> create(const Tokenizer& tokenizer) {
    return create(tokenizer.chat_template(), tokenizer);
  }

  virtual ~ChatTemplate() = default;

  /// The prompt in parts. add_generation_prompt opens the assistant's turn at the end. Throws Error(bad_input) when
  /// there is no turn or a role is not "system", "user" or "assistant".
  virtual std::vector<PromptPart> render(std::span<const ChatTurn> turns, bool add_generation_prompt) const = 0;

  /// The prompt as ids, bos in front where the model wants it. No content can become a special token.
  std::vector<uint32_t> render_to_ids(std::span<const ChatTurn> turns, const Tokenizer& tokenizer,
                                      bool add_generation_prompt = true) const;

  /// Texts that end a reply, for forms of prompt without an end token; see StopStrings.
  virtual std::vector<std::string> stop_strings() const { return {}; }

  /// A sentence for the user when the prompt may not be what the model was trained on; otherwise empty.
  const std::string& warning() const { return warning_; }

 protected:
  std::string warning_;
};

}  // namespace canopy
