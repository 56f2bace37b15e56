#include "engine/format/model_file.h"
#include "tests/text/golden_text.h"

namespace canopy::golden {

std::unique_ptr<Tokenizer> gguf_tokenizer(const std::filesystem::path& path) {
  const ModelFile file = ModelFile::open(path);
  const TokenizerSource& source = file.tokenizer();
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
  return Tokenizer::from_vocabulary(data);
}

}  // namespace canopy::golden
