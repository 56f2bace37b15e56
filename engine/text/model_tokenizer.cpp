#include "engine/text/model_tokenizer.h"

#include "engine/base/error.h"
#include "engine/format/model_file.h"

namespace canopy {
namespace {

VocabularyData vocabulary_of(const TokenizerSource& source) {
  VocabularyData data;
  data.model = source.model;
  data.pre_tokenizer = source.pre;
  data.tokens = source.tokens;
  data.merges = source.merges;
  data.scores = source.scores;
  data.types = source.types;
  data.bos = source.bos;
  data.eos = source.eos;
  data.unknown = source.unknown;
  data.padding = source.padding;
  data.add_bos = source.add_bos;
  data.add_space_prefix = source.add_space_prefix;
  data.control_strips_right = source.control_strips_right;
  data.chat_template = source.chat_template;
  return data;
}

}  // namespace

std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerSource& source) {
  switch (source.kind) {
    case TokenizerSource::Kind::gguf: return Tokenizer::from_vocabulary(vocabulary_of(source));
    case TokenizerSource::Kind::hugging_face:
      if (source.tokenizer_json.empty()) {
        return Tokenizer::from_sentencepiece_model(source.tokenizer_model, source.tokenizer_config_json);
      }
      return Tokenizer::from_tokenizer_json(source.tokenizer_json, source.tokenizer_config_json);
    case TokenizerSource::Kind::none: break;
  }
  throw bad_input(
      "The model brings no tokenizer: a Hugging Face folder needs tokenizer.json or tokenizer.model, a GGUF file "
      "tokenizer.ggml.model.");
}

}  // namespace canopy
