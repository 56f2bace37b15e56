#pragma once
// The golden data of the text layer, and its tokenizers.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "engine/text/tokenizer.h"
#include "tests/base/default_model.h"

namespace canopy::golden {

inline std::filesystem::path folder() {
  const char* dir = std::getenv("CANOPY_GOLDEN_DIR");
  return dir != nullptr && *dir != '\0' ? std::filesystem::path(dir)
                                        : std::filesystem::path(CANOPY_SOURCE_DIR) / "tests" / "golden";
}

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline nlohmann::json read_json(const std::string& name) {
  return nlohmann::json::parse(read_text(folder() / name));
}

inline std::unique_ptr<Tokenizer> tiny_tokenizer() {
  const auto model = folder() / "tiny-qwen3";
  return Tokenizer::from_tokenizer_json(read_text(model / "tokenizer.json"),
                                        read_text(model / "tokenizer_config.json"));
}

using test::default_model;

/// The folder of a published tokenizer, e.g. "qwen3": the repository's own where the licence allows that; those of the
/// Llama models are not part of the repository and lie in CANOPY_TOKENIZERS_DIR, or beside the repository.
inline std::filesystem::path published_folder(const std::string& name) {
  const auto own = folder() / "tokenizers";
  if (std::filesystem::exists(own / (name + ".tokenizer.json.xz"))) return own;
  const char* dir = std::getenv("CANOPY_TOKENIZERS_DIR");
  return dir != nullptr && *dir != '\0'
             ? std::filesystem::path(dir)
             : std::filesystem::path(CANOPY_SOURCE_DIR).parent_path() / "shared/reference/tokenizers";
}

/// The tokenizer.json of a published tokenizer, unpacked; empty where it is not on this machine.
std::string published_tokenizer_json(const std::string& name);

/// A published tokenizer; null where it is not on this machine.
std::unique_ptr<Tokenizer> published_tokenizer(const std::string& name);

/// The tokenizer inside a GGUF file (golden_gguf.cpp).
std::unique_ptr<Tokenizer> gguf_tokenizer(const std::filesystem::path& path);

}  // namespace canopy::golden
