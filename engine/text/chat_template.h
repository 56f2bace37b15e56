#pragma once
// Turns of a conversation to the prompt a model was trained on: by its own template in Jinja, ChatML or plain lines;
// with the tools that the model may call.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/chat_turn.h"
#include "engine/text/jinja/value.h"
#include "engine/text/tokenizer.h"

namespace canopy {

// What templates read as it stands in JSON: the tools that a prompt offers to a model, and fields of turns such as the
// calls of these.

/// Reads a JSON array of objects, mostly {"type": "function", "function": {"name", "description", "parameters"}}, as a
/// template sees it: keys in the order of the text, whole numbers whole. All its strings are content: none of them can
/// become a control token. Throws Error(bad_input) for anything else, and for an empty array.
jinja::Value tools_from_json(std::string_view json);

/// A stretch of a rendered prompt. Only structure may hold special tokens; content is what people wrote.
struct PromptPart {
  std::string text;
  bool is_structure = false;
  TurnTokens tokens = {};  // of a turn that knows them, where the text is its content and nothing else
};

struct PromptOptions {
  bool add_generation_prompt = true;         // open the assistant's turn at the end
  std::optional<bool> enable_thinking = {};  // for templates that ask; not passed where it is not set
  std::string tools = {};                    // that the model may call: see tools_from_json(); empty: none
};

/// What a template knows of thinking: text in <think> ... </think> in front of an answer.
struct ThinkingForm {
  bool switchable = false;  // PromptOptions::enable_thinking changes the prompt
  bool by_default = false;  // whether it is on where the option is not set; only where it can be switched
  // Whether the prompt itself ends in "<think>", so that the reply begins inside: by the option on, off and not set.
  bool opened_on = false, opened_off = false, opened_unset = false;

  /// Whether a reply to a prompt with this option begins inside its thinking.
  bool opened(std::optional<bool> enable) const { return !enable ? opened_unset : *enable ? opened_on : opened_off; }
  bool operator==(const ThinkingForm&) const = default;
};

/// A prompt that goes on into a call of a tool, so that the reply can only go on with that call.
struct CallPrompt {
  std::vector<uint32_t> ids;
  std::string opening;  // the end of the prompt, which the call begins with: "<tool_call>\n{\"name\": \""
  std::string sample;   // what the template writes of a call of kSampleCall, from where the opening begins
};
inline constexpr std::string_view kSampleCall = "canopy_sample_call";

/// The roles that a turn may have: system, user and assistant, which every form of prompt has, then those of
/// conversations with tools.
std::span<const std::string_view> chat_roles();

class ChatTemplate {
 public:
  /// The form of prompt for a model: its own template where that can be used, else ChatML where the vocabulary has its
  /// tokens, else plain "User: ... Assistant:" lines. Whether a template can be used is tried on short conversations.
  /// Never fails; warning() says when the choice is a guess, and why, naming the line of the template.
  static std::unique_ptr<ChatTemplate> create(std::string_view template_text, const Tokenizer& tokenizer);
  static std::unique_ptr<ChatTemplate> create(const Tokenizer& tokenizer) {
    return create(tokenizer.chat_template(), tokenizer);
  }

  virtual ~ChatTemplate() = default;

  /// The prompt in parts. Throws Error(bad_input) when there is no turn, a role is none of chat_roles() or one that the
  /// template leaves out or does not know, the model's template refuses this conversation or passes a limit on it, or
  /// there are tools and the form of prompt has no place for them. Where a template knows no system turn, a system
  /// message is put in front of the first user's.
  std::vector<PromptPart> render(std::span<const ChatTurn> turns, const PromptOptions& options = {}) const;

  /// Whether the prompt would be another one without these of the turns' fields (ChatTurn::fields).
  bool uses_fields(std::span<const ChatTurn> turns, std::span<const std::string_view> names,
                   const PromptOptions& options = {}) const;

  /// The prompt as ids, with bos in front where the model wants it and its template does not write it. No content can
  /// become a special token.
  ///
  /// A turn that knows the tokens it was written with brings these instead of being tokenized, so that the prompt goes
  /// on from the cache that its reply left. They stand where its content stands in the prompt whole and unaltered, and
  /// only if they spell it (spells()); what is around is tokenized by itself. A turn whose content the template
  /// trims or changes, or whose tokens are of another vocabulary, is tokenized like any text, as all are where the
  /// tokenizer cannot go on inside a text.
  std::vector<uint32_t> render_to_ids(std::span<const ChatTurn> turns, const Tokenizer& tokenizer,
                                      const PromptOptions& options = {}) const;

  /// The prompt as ids, and behind it the beginning of a call as the template itself writes an assistant's calls: up to
  /// the name of the tool or, with a `name`, up to its arguments. Throws bad_input where the template writes no calls,
  /// or none that a reply could begin with, and for a name with signs that calls are written with.
  CallPrompt render_call_to_ids(std::span<const ChatTurn> turns, const Tokenizer& tokenizer,
                                const PromptOptions& options, std::string_view name = {}) const;

  /// Texts that end a reply, for forms of prompt without an end token; see StopStrings.
  virtual std::vector<std::string> stop_strings() const { return {}; }

  /// Tried on a short conversation when the template was made; all false where it knows nothing of thinking.
  const ThinkingForm& thinking() const { return thinking_; }

  /// A sentence for the user when the prompt may not be what the model was trained on; otherwise empty.
  const std::string& warning() const { return warning_; }

 protected:
  virtual std::vector<PromptPart> render_checked(std::span<const ChatTurn> turns,
                                                 const PromptOptions& options) const = 0;

  /// Whether this form of prompt may have a place for tools, and for roles beside system, user and assistant.
  virtual bool takes_tools() const { return false; }

 private:
  void find_thinking();

  std::string warning_;
  ThinkingForm thinking_;
};

}  // namespace canopy
