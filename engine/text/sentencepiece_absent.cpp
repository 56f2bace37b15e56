// Compiled where the sentencepiece library was not found.

#include "engine/base/error.h"
#include "engine/text/tokenizer.h"

namespace canopy {

std::unique_ptr<Tokenizer> Tokenizer::from_sentencepiece_model(std::string_view, std::string_view) {
  throw Error(
      ErrorKind::unavailable,
      "The model's tokenizer is a SentencePiece model (tokenizer.model), and this build is without the "
      "sentencepiece library: install libsentencepiece-dev and build again, or add the model's tokenizer.json.");
}

}  // namespace canopy
