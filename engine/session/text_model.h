#pragma once
// The text side of a model file: tokenizer, form of prompt, and the tokens that end a reply.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/format/model_file.h"
#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"

namespace canopy {

struct TextModel {
  std::shared_ptr<const Tokenizer> tokenizer;  // shared with those who show tokens
  std::unique_ptr<ChatTemplate> chat;
  std::unique_ptr<ChatTemplate> tool_chat;  // for chats with tools, where the model brings one of its own; may be null
  std::vector<uint32_t> stop_ids;           // sorted: those of the config and those of the tokenizer
  std::vector<std::string> warnings;

  /// Ids of a text as it stands: the spelling of a special token stands for it; bos in front where the model wants it.
  std::vector<uint32_t> encode_raw(std::string_view text) const;
};

/// Throws bad_input when the model brings no tokenizer, one that is not supported, or one with more tokens than the
/// model has embeddings.
TextModel make_text_model(const ModelFile& file);

}  // namespace canopy
