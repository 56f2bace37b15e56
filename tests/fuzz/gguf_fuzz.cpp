// GGUF files: the container, the config in the metadata, the tensors, the output of `inspect`, and the tokenizer's
// source. The input is the file.

#include <limits>

#include "engine/format/config_gguf.h"
#include "engine/format/describe.h"
#include "engine/format/gguf.h"
#include "engine/format/model_file.h"
#include "engine/text/tokenizer.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/tensor_checks.h"
#include "tests/fuzz/tokenizer_checks.h"

#include <nlohmann/json.hpp>

namespace canopy::fuzz {
namespace {

// Calls every accessor on every entry; each must convert or refuse.
void read_entry(const GgufFile& file, const GgufValue& value) {
  touch(value.text);
  touch(value.elements);
  accepted([&] { file.u32(value.key); });
  accepted([&] { file.number(value.key); });
  accepted([&] { file.boolean_if(value.key); });
  accepted([&] { touch(file.text(value.key)); });
  accepted([&] { file.i32s(value.key); });
  accepted([&] { file.f32s(value.key); });
  accepted([&] {
    for (const std::string_view text : file.texts(value.key)) touch(text);
  });
}

void read_parts(std::string_view input) {
  const GgufFile file = GgufFile::parse(bytes_of(input));
  check_tensors(file.tensors(), bytes_of(input));
  for (const GgufValue& value : file.metadata()) {
    require(file.find(value.key) == &value, "an entry is found by its key");
    read_entry(file, value);
  }
  accepted([&] { read_gguf_config(file); });
  // Here without the tensors of a model, which few inputs have.
  const TokenizerSource source = read_gguf_tokenizer(file, std::numeric_limits<uint32_t>::max());
  if (source.kind == TokenizerSource::Kind::none) return;
  const auto tokenizer = make_tokenizer(source);
  check_vocabulary(*tokenizer);
  check_text(*tokenizer, "Hello, <|im_end|> w\xC3\xB6rld 123\n");
}

}  // namespace

void run(std::string_view input) {
  static ScratchFile file;
  file.write(input);
  accepted([&] { check_model(ModelFile::open(file.path())); });
  accepted([&] { touch(describe_text(describe_json(file.path()))); });
  accepted([&] { read_parts(input); });
}

}  // namespace canopy::fuzz
