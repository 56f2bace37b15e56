// GGUF vocabularies: loading, and encoding with what was accepted, compared with the reference. The input is a
// vocabulary in text form and the text to encode (vocabulary_text.h).

#include "engine/text/tokenizer.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/reference_tokenizer.h"
#include "tests/fuzz/tokenizer_checks.h"
#include "tests/fuzz/vocabulary_text.h"

namespace canopy::fuzz {

// Longest text to compare, in bytes: the reference's time grows with the cube of a piece's length.
constexpr size_t most_compared = 256;

void run(std::string_view input) {
  const VocabularyText vocabulary = read_vocabulary_text(input);
  accepted([&] {
    const auto tokenizer = Tokenizer::from_vocabulary(vocabulary.data);
    check_vocabulary(*tokenizer);
    check_text(*tokenizer, vocabulary.text);
    if (!ReferenceTokenizer::covers(vocabulary.data)) return;
    const std::string_view text = vocabulary.text.substr(0, most_compared);
    const ReferenceTokenizer reference(vocabulary.data);
    require(tokenizer->encode(text, SpecialTokens::as_text) == reference.encode(text), "ids are the reference's");
  });
}

}  // namespace canopy::fuzz
