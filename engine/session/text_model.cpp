#include "engine/session/text_model.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/format/model_file.h"
#include "engine/text/model_tokenizer.h"

namespace canopy {

std::vector<uint32_t> TextModel::encode_raw(std::string_view text) const {
  std::vector<uint32_t> ids = tokenizer->encode(text, SpecialTokens::parse);
  const auto bos = tokenizer->bos();
  if (tokenizer->adds_bos() && bos && (ids.empty() || ids.front() != *bos)) ids.insert(ids.begin(), *bos);
  return ids;
}

TextModel make_text_model(const ModelFile& file) {
  const TokenizerSource& source = file.tokenizer();
  TextModel text;
  text.tokenizer = make_tokenizer(source);
  if (text.tokenizer->vocab_size() > file.config().vocab) {
    throw bad_input("The tokenizer has " + std::to_string(text.tokenizer->vocab_size()) +
                    " tokens, but the model has embeddings for only " + std::to_string(file.config().vocab) + ".");
  }
  text.chat = source.chat_template.empty() ? ChatTemplate::create(*text.tokenizer)
                                           : ChatTemplate::create(source.chat_template, *text.tokenizer);
  if (!source.tool_template.empty()) {
    text.tool_chat = ChatTemplate::create(source.tool_template, *text.tokenizer);
    if (!text.tool_chat->warning().empty()) text.tool_chat.reset();  // the other one is tried with tools
  }
  if (!text.chat->warning().empty()) text.warnings.push_back(text.chat->warning());

  const auto ends = text.tokenizer->end_ids();
  text.stop_ids.assign(ends.begin(), ends.end());
  text.stop_ids.insert(text.stop_ids.end(), file.config().eos.begin(), file.config().eos.end());
  const auto message_ends = text.tokenizer->message_end_ids();
  std::erase_if(text.stop_ids, [&](uint32_t id) { return std::ranges::binary_search(message_ends, id); });
  std::sort(text.stop_ids.begin(), text.stop_ids.end());
  text.stop_ids.erase(std::unique(text.stop_ids.begin(), text.stop_ids.end()), text.stop_ids.end());
  if (text.stop_ids.empty()) {
    text.warnings.emplace_back("The model names no token that ends a reply: replies end at the token limit.");
  }
  return text;
}

}  // namespace canopy
