#include "app/models/model_finder.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/format/drafter_file.h"
#include "engine/format/drafter_pair.h"
#include "engine/format/foreign_file.h"
#include "engine/format/gguf_parts.h"
#include "engine/format/model_file.h"
#include "engine/format/model_paths.h"
#include "engine/text/case_folding.h"

namespace canopy::app {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostModels = 500;  // limit on the search, in case the folder is the wrong one and huge
constexpr std::string_view kModelPrefix = "models--";

fs::path from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? fs::path(value) : fs::path();
}

/// "models--Qwen--Qwen3-4B" -> "Qwen/Qwen3-4B"
std::string cached_name(const std::string& folder) {
  std::string name = folder.substr(kModelPrefix.size());
  for (size_t at = name.find("--"); at != std::string::npos; at = name.find("--", at)) name.replace(at, 2, "/");
  return name;
}

bool holds_weights(const fs::path& file) {
  const std::string extension = file.extension().string();
  return extension == ".gguf" || extension == ".safetensors";
}

/// Bytes of a file, of all parts of a split model, or of the weight files in a folder; symbolic links of a cache are
/// followed.
uint64_t weight_bytes(const fs::path& path) {
  std::error_code error;
  uint64_t bytes = 0;
  if (fs::is_regular_file(path, error)) {
    for (const fs::path& part : gguf_part_files(path)) {
      std::error_code ignored;
      if (fs::is_regular_file(part, ignored)) bytes += fs::file_size(part, ignored);
    }
    return bytes;
  }
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (holds_weights(it->path()) && fs::is_regular_file(it->path(), ignored))
      bytes += fs::file_size(it->path(), ignored);
  }
  return bytes;
}

constexpr std::string_view kGguf = "GGUF";

bool starts_as_gguf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string start(kGguf.size(), '\0');
  return file.read(start.data(), static_cast<std::streamsize>(start.size())) && start == kGguf;
}

}  // namespace

fs::path hugging_face_cache() {
  if (fs::path cache = from_environment("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (fs::path home = from_environment("HF_HOME"); !home.empty()) return home / "hub";
  if (fs::path home = from_environment("HOME"); !home.empty()) return home / ".cache" / "huggingface" / "hub";
  return {};
}

FoundModel describe_model(const fs::path& path) {
  FoundModel found;
  found.path = path.string();
  found.name = model_path_name(path);
  try {
    const fs::path file = resolve_model_path(path);
    found.name = model_path_name(path);
    found.bytes = weight_bytes(file);
    found.drafter = DrafterFile::is_drafter(file);
    if (found.drafter)
      DrafterFile::open(file);
    else
      ModelFile::open(file);
  } catch (const Error& e) {
    found.problem = e.what();
  }
  return found;
}

std::vector<FoundModel> models_in_cache(const fs::path& cache, const std::stop_token& stop) {
  std::vector<FoundModel> found;
  std::error_code error;
  for (fs::directory_iterator it(cache, error), end;
       !error && it != end && found.size() < kMostModels && !stop.stop_requested(); it.increment(error)) {
    const std::string folder = it->path().filename().string();
    if (!folder.starts_with(kModelPrefix)) continue;
    found.push_back(describe_model(it->path()));
    found.back().name = cached_name(folder);
  }
  std::ranges::sort(found, {}, [](const FoundModel& each) { return std::pair(fold_case(each.name), each.name); });
  return found;
}

std::vector<DrafterCandidate> pair_drafters(const std::string& target, const std::vector<FoundModel>& found) {
  std::vector<DrafterCandidate> candidates;
  for (const FoundModel& model : found) {
    if (!model.drafter) continue;
    DrafterCandidate candidate{model.path, model.name, false, model.problem};
    if (model.problem.empty()) {
      const PairReport report = describe_pair(target, model.path);
      candidate.fits = report.fits;
      candidate.reason = report.reason;
    }
    candidates.push_back(std::move(candidate));
  }
  std::stable_partition(candidates.begin(), candidates.end(), [](const DrafterCandidate& c) { return c.fits; });
  return candidates;
}

std::string open_obstacle(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return "";
  // A file with the name of a model goes to the engine, which says what is wrong inside it.
  for (const std::string_view ending : {".gguf", ".safetensors", ".json"})
    if (path.extension() == ending) return "";
  if (starts_as_gguf(path)) return "";
  const std::string foreign = explain_foreign_file(path);
  return path.filename().string() + " (" + byte_figures(std::filesystem::file_size(path, ignored)) +
         ") is neither a model nor a recording. " +
         (foreign.empty() ? "A model is a GGUF file or a Hugging Face folder with its config.json; a recording ends in "
                            ".canopytrace."
                          : foreign);
}

}  // namespace canopy::app
