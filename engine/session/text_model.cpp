#include "engine/session/text_model.h"

#include <algorithm>

#include "engine/base/error.h"

namespace canopy {
namespace {

VocabularyData vocabulary_of(const TokenizerSource& source) {
  VocabularyData data;
  data.model = source.model;
  data.pre_tokenizer = source.pre;
  data.tokens = source.tokens;
  data.merges = source.merges;
  data.types = source.types;
  data.bos = source.bos;
  data.eos = source.eos;
  data.unknown = source.unknown;
  data.padding = source.padding;
  data.add_bos = source.add_bos.value_or(false);
  data.chat_template = source.chat_template;
  return data;
}

std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerSource& source) {
  switch (source.kind) {
    case TokenizerSource::Kind::gguf: return Tokenizer::from_vocabulary(vocabulary_of(source));
    case TokenizerSource::Kind::hugging_face:
      return Tokenizer::from_tokenizer_json(source.tokenizer_json, source.tokenizer_config_json);
    case TokenizerSource::Kind::none: break;
  }
  throw bad_input(
      "The model brings no tokenizer: a Hugging Face folder needs tokenizer.json, a GGUF file "
      "tokenizer.ggml.model.");
}

}  // namespace

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
  if (!text.chat->warning().empty()) text.warnings.push_back(text.chat->warning());

  const auto ends = text.tokenizer->end_ids();
  text.stop_ids.assign(ends.begin(), ends.end());
  text.stop_ids.insert(text.stop_ids.end(), file.config().eos.begin(), file.config().eos.end());
  std::sort(text.stop_ids.begin(), text.stop_ids.end());
  text.stop_ids.erase(std::unique(text.stop_ids.begin(), text.stop_ids.end()), text.stop_ids.end());
  if (text.stop_ids.empty()) {
    text.warnings.emplace_back("The model names no token that ends a reply: replies end at the token limit.");
  }
  return text;
}

}  // namespace canopy
