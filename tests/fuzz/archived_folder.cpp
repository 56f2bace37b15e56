#include "tests/fuzz/archived_folder.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>

#include "tests/fuzz/archive.h"

namespace canopy::fuzz {
namespace {

constexpr size_t most_data_bytes = 1 << 16;

// The names of files that may be written.
constexpr std::string_view allowed[] = {
    "config.json",           "generation_config.json", "quantize_config.json", "tokenizer.json",
    "tokenizer_config.json", "chat_template.jinja",    "model.safetensors",    "a.safetensors",
    "b.safetensors",         "tokenizer.model",        "c.safetensors",        "model.safetensors.index.json",
    "chat_template.json",
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

void write_archived_folder(ScratchFolder& folder, std::string_view input) {
  for (const ArchivedFile& file : split_archive(input)) write(folder, file);
}

}  // namespace canopy::fuzz
