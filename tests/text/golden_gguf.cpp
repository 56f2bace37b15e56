#include "engine/format/model_file.h"
#include "engine/text/tokenizer.h"
#include "tests/text/golden_text.h"

namespace canopy::golden {

std::unique_ptr<Tokenizer> gguf_tokenizer(const std::filesystem::path& path) {
  return make_tokenizer(ModelFile::open(path).tokenizer());
}

}  // namespace canopy::golden
