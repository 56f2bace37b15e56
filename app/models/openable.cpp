#include "app/models/openable.h"

#include <fstream>
#include <string_view>

#include "engine/base/figures.h"

namespace canopy::app {
namespace {

constexpr std::string_view kGguf = "GGUF";

bool starts_as_gguf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string start(kGguf.size(), '\0');
  return file.read(start.data(), static_cast<std::streamsize>(start.size())) && start == kGguf;
}

}  // namespace

std::string open_obstacle(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return "";
  // What is called a model deserves to be refused as one, with what is wrong inside.
  for (const std::string_view ending : {".gguf", ".safetensors", ".json"})
    if (path.extension() == ending) return "";
  if (starts_as_gguf(path)) return "";
  return path.filename().string() + " (" + byte_figures(std::filesystem::file_size(path, ignored)) +
         ") is neither a model nor a recording. A model is a GGUF file or a Hugging Face folder with its config.json; "
         "a "
         "recording ends in .canopytrace.";
}

}  // namespace canopy::app
