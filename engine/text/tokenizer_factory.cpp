// Which tokenizer a file asks for. A new kind (SentencePiece, unigram, ...) gets its class and one line here.

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/text/byte_level_bpe.h"
#include "engine/text/pre_tokenizer.h"
#include "engine/text/tokenizer.h"

namespace canopy {

std::unique_ptr<Tokenizer> Tokenizer::from_vocabulary(const VocabularyData& data) {
  if (data.model != "gpt2") {
    throw bad_input("The tokenizer model \"" + printable(data.model) +
                    "\" (tokenizer.ggml.model) is not supported; supported is \"gpt2\" (byte-level BPE).");
  }
  const PreTokenizerTraits traits = traits_of_pre_tokenizer(data.pre_tokenizer);
  ByteLevelBpe::Options options;
  options.normalizer = data.normalizer.value_or(traits.normalizes_nfc ? Normalizer::nfc : Normalizer::none);
  options.ignore_merges = data.ignore_merges.value_or(traits.ignores_merges);
  return std::make_unique<ByteLevelBpe>(data, ByteLevelBpe::added_by_type(data),
                                        PreTokenizer::named(data.pre_tokenizer), options);
}

}  // namespace canopy
