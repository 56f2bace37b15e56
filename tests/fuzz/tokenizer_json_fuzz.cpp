// tokenizer.json and tokenizer_config.json: loading, and encoding with what was accepted. The input is an archive; the
// text before the first file name is tokenizer.json, the file "text" is encoded.

#include "engine/text/tokenizer.h"
#include "tests/fuzz/archive.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/tokenizer_checks.h"

namespace canopy::fuzz {

void run(std::string_view input) {
  const auto files = split_archive(input);
  accepted([&] {
    const auto tokenizer =
        Tokenizer::from_tokenizer_json(find_file(files, ""), find_file(files, "tokenizer_config.json"));
    check_vocabulary(*tokenizer);
    check_text(*tokenizer, find_file(files, "text"));
  });
}

}  // namespace canopy::fuzz
