// Hugging Face folders: config.json, the index, its shards, the small files beside them. The input is an archive; the
// name of a safetensors file is followed by the bytes of its data, which are zeros: "-- a.safetensors 64 --".

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "engine/format/describe.h"
#include "engine/format/safetensors.h"
#include "tests/fuzz/archive.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/tensor_checks.h"

namespace canopy::fuzz {
namespace {

constexpr size_t most_data_bytes = 1 << 16;

// What a harness may write; everything else is left out.
constexpr std::string_view allowed[] = {
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "model.safetensors",
    "a.safetensors",
    "b.safetensors",
    "tokenizer.model",
    "c.safetensors",
    "model.safetensors.index.json",
};

std::string safetensors(std::string_view header, std::string_view size_text) {
  size_t data = 0;
  std::from_chars(size_text.data(), size_text.data() + size_text.size(), data);
  const uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof length);
  return file.append(header).append(std::min(data, most_data_bytes), '\0');
}

void write(ScratchFolder& folder, const ArchivedFile& file) {
  const size_t space = std::min(file.name.find(' '), file.name.size());
  const std::string_view name = file.name.substr(0, space);
  if (std::find(std::begin(allowed), std::end(allowed), name) == std::end(allowed)) return;
  const bool is_weights = name.ends_with(".safetensors");
  folder.write(name, is_weights ? safetensors(file.bytes, file.name.substr(std::min(space + 1, file.name.size())))
                                : std::string(file.bytes));
}

}  // namespace

void run(std::string_view input) {
  static ScratchFolder folder;
  for (const ArchivedFile& file : split_archive(input)) write(folder, file);
  accepted([&] { check_model(ModelFile::open(folder.path())); });
  accepted([&] { touch(describe_text(describe_json(folder.path()))); });
  accepted([&] {
    const auto weights = SafetensorsFolder::open(folder.path());
    check_tensors(weights.tensors());
    for (const SafetensorsFile& file : weights.files()) {
      require(file.file().path().parent_path() == folder.path(), "a shard lies in the folder itself");
    }
  });
  folder.clear();
}

}  // namespace canopy::fuzz
