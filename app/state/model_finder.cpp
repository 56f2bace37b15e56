#include "app/state/model_finder.h"

#include <algorithm>
#include <exception>
#include <fstream>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/files.h"
#include "engine/format/draft_file.h"
#include "engine/format/gguf.h"
#include "engine/format/model_file.h"
#include "engine/format/model_paths.h"
#include "engine/hub/model_stores.h"
#include "engine/text/unicode.h"

namespace canopy::app {
namespace {

namespace fs = std::filesystem;

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

/// The file or folder itself, whatever links lead to it, and the first part of a split model; the path as it is where
/// that cannot be told.
fs::path place_of(const fs::path& path) {
  try {
    return fs::weakly_canonical(gguf_part_files(resolve_model_path(path)).front());
  } catch (const std::exception&) {  // a broken link, no permission, a download that was never finished
    return path;
  }
}

bool starts_as_gguf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string start(kGguf.size(), '\0');
  return file.read(start.data(), static_cast<std::streamsize>(start.size())) && start == kGguf;
}

}  // namespace

FoundModel describe_model(const fs::path& path) {
  FoundModel found;
  found.path = path.string();
  found.name = model_path_name(path);
  try {
    const fs::path file = resolve_model_path(path);
    found.name = model_path_name(path);
    found.bytes = weight_bytes(file);
    const DraftKind kind = draft_kind(file, nullptr);
    found.drafter = kind != DraftKind::model;
    const DraftFile opened = open_draft_file(file, kind);
    const auto* const model = std::get_if<ModelFile>(&opened);
    if (kind == DraftKind::head) found.notes.emplace_back("a head for guesses (MTP) alone");
    if (model != nullptr && MtpFile::is_in(*model)) found.notes.emplace_back("has a head for guesses (MTP)");
  } catch (const Error& e) {
    found.problem = e.what();
  }
  return found;
}

namespace {

/// What stores list, read and described under the names that they have there.
std::vector<FoundModel> describe_stored(const std::vector<StoredModel>& stored, const std::stop_token& stop) {
  std::vector<FoundModel> found;
  for (const StoredModel& model : stored) {
    if (stop.stop_requested()) break;
    FoundModel each = model.problem.empty() ? describe_model(model.path) : FoundModel();
    each.name = model.name;
    each.source = model.source;
    each.notes.insert(each.notes.begin(), model.notes.begin(), model.notes.end());
    if (!model.problem.empty()) each.problem = model.problem;
    found.push_back(std::move(each));
  }
  return found;
}

}  // namespace

std::vector<FoundModel> models_in_cache(const fs::path& cache, const std::stop_token& stop) {
  return describe_stored(hub_models(cache, stop), stop);
}

namespace {

/// What a drafter that fits is.
std::string drafter_note(const PairReport& report) {
  if (report.kind == DraftKind::block) return "Fits this model";
  if (!report.warnings.empty()) return report.warnings.front();
  if (report.kind == DraftKind::eagle) return "An EAGLE-3 head for this model, guesses word by word";
  if (report.kind == DraftKind::assistant) return "An assistant for this model, guesses word by word";
  return report.kind == DraftKind::head ? "The model\u2019s own head, guesses word by word"
                                        : "A model with the same vocabulary, guesses word by word";
}

}  // namespace

std::vector<DrafterCandidate> pair_drafters(const std::string& target, const std::vector<FoundModel>& found) {
  std::vector<DrafterCandidate> candidates;
  const auto check = [&](const FoundModel& model) {
    DrafterCandidate candidate{model.path, model.name, false, model.problem, ""};
    if (model.problem.empty()) {
      const PairReport report = describe_pair(target, model.path);
      candidate.fits = report.fits;
      candidate.reason = report.reason;
      candidate.note = drafter_note(report);
    }
    candidates.push_back(std::move(candidate));
  };
  if (const PairReport own = describe_pair(target, target); own.kind == DraftKind::head) {
    candidates.push_back({"mtp", "MTP head in the model\u2019s file", own.fits, own.reason, drafter_note(own)});
  }
  const fs::path own = place_of(target);
  for (const FoundModel& model : found) {
    if (model.drafter) check(model);
  }
  for (const FoundModel& model : found) {
    if (model.path.empty()) continue;  // a broken one of another program's
    if (!model.drafter && place_of(model.path) != own) check(model);
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

namespace {

bool passes(const fs::path& file, PathFilter filter) {
  const std::string ending = file.extension().string();
  switch (filter) {
    case PathFilter::models: return ending == ".gguf" || ending == ".GGUF" || ending == ".canopytrace";
    case PathFilter::chats: return ending == ".json";
    case PathFilter::folders: return false;
    case PathFilter::all: return true;
  }
  return true;
}

FolderEntry entry_of(const fs::directory_entry& each, PathFilter filter) {
  std::error_code ignored;
  FolderEntry entry;
  entry.name = each.path().filename().string();
  entry.path = each.path().string();
  entry.folder = each.is_directory(ignored);
  entry.model = entry.folder ? holds_a_model(each.path()) : passes(each.path(), PathFilter::models);
  if (!entry.folder && each.is_regular_file(ignored)) {
    const std::vector<fs::path> parts =
        filter == PathFilter::models ? gguf_part_files(each.path()) : std::vector{each.path()};
    for (const fs::path& part : parts) {
      std::error_code unknown;
      if (const uintmax_t bytes = fs::file_size(part, unknown); !unknown) entry.bytes += bytes;
    }
  }
  return entry;
}

std::string quoted(const fs::path& path) {
  return "\u201c" + path.string() + "\u201d";
}

}  // namespace

bool holds_a_model(const fs::path& folder) {
  std::error_code ignored;
  return folder.filename().string().starts_with("models--") || fs::is_regular_file(folder / "config.json", ignored);
}

FolderList list_folder(const fs::path& folder, PathFilter filter) {
  FolderList list;
  std::error_code error;
  fs::path place = fs::absolute(folder, error).lexically_normal();
  if (!place.has_filename() && place.has_relative_path()) place = place.parent_path();  // "models/" is "models"
  list.folder = place.string();
  if (place.has_relative_path()) list.parent = place.parent_path().string();
  error.clear();
  fs::directory_iterator it(place, error);
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    if (list.entries.size() == kMostEntries) {
      list.cut = true;
      break;
    }
    std::error_code ignored;
    if (!it->is_directory(ignored) && !passes(it->path(), filter)) {
      ++list.left_out;
      continue;
    }
    if (filter == PathFilter::models && is_later_gguf_part(it->path())) continue;  // shown as its first part
    list.entries.push_back(entry_of(*it, filter));
  }
  if (error) list.problem = "The folder " + quoted(place) + " cannot be read: " + error.message() + ".";
  std::ranges::sort(list.entries, {}, [](const FolderEntry& e) {
    return std::tuple(!e.folder, e.name.starts_with('.'), fold_case(e.name), e.name);
  });
  return list;
}

std::string path_obstacle(const fs::path& path, PathFilter filter) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return "There is no file or folder " + quoted(path) + ".";
  if (error) return quoted(path) + " cannot be read: " + error.message() + ".";
  const bool folder = status.type() == fs::file_type::directory;
  if (filter == PathFilter::folders) return folder ? "" : quoted(path) + " is a file. Choose a folder.";
  if (filter != PathFilter::models) return folder ? quoted(path) + " is a folder. Choose a file in it." : "";
  return folder ? "" : open_obstacle(path);
}

namespace {

constexpr const char* kOwnDrafter = "smollm2-135m-dflash.gguf";  // the one that comes with Canopy
constexpr size_t kMostNeighbours = 100;

/// Whether both are the drafter that comes with Canopy, of which the set-up may have put a copy beside the model.
bool both_own(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return a.filename() == kOwnDrafter && b.filename() == kOwnDrafter &&
         fs::file_size(a, error) == fs::file_size(b, error);
}

void add(std::vector<FoundModel>& found, const fs::path& path) {
  const fs::path place = place_of(path);
  const auto same = [&](const FoundModel& f) {
    return f.path == path.string() || place_of(f.path) == place || both_own(f.path, path);
  };
  if (std::ranges::any_of(found, same)) return;
  found.push_back(describe_model(path));
}

/// Adds the drafters in the folder of the target, as they are often downloaded into the same folder.
void add_neighbours(std::vector<FoundModel>& found, const fs::path& target, const std::stop_token& stop) {
  std::error_code error;
  size_t seen = 0;
  for (fs::directory_iterator it(target.parent_path(), error), end;
       !error && it != end && seen < kMostNeighbours && !stop.stop_requested(); it.increment(error), ++seen) {
    if (it->path() == target) continue;
    if (draft_kind(it->path(), nullptr) != DraftKind::model) add(found, it->path());
  }
}

ModelSearchResult look(const ModelLister& lister, const ModelSearchRequest& request, const std::stop_token& stop) {
  try {
    return lister(request, stop);
  } catch (...) {
    ModelSearchResult failed;
    failed.target = request.target;
    failed.problem = as_error(std::current_exception()).what();
    return failed;
  }
}

}  // namespace

ModelSearchResult search_models(const ModelSearchRequest& request, const std::stop_token& stop) {
  ModelSearchResult result;
  result.target = request.target;
  result.found = describe_stored(stored_models(store_places(), stop), stop);
  for (const std::string& path : request.recent) {
    if (stop.stop_requested()) return result;
    add(result.found, path);
  }
  if (const auto own = find_asset(kOwnDrafter)) add(result.found, *own);
  for (FoundModel& each : result.found)
    each.standard = !request.standard.empty() && place_of(each.path) == place_of(request.standard);
  if (request.target.empty()) return result;
  add_neighbours(result.found, request.target, stop);
  if (!stop.stop_requested()) result.candidates = pair_drafters(request.target, result.found);
  return result;
}

ModelSearch::ModelSearch(ModelLister lister)
    : answers_([lister = std::move(lister)](const ModelSearchRequest& request,
                                            const std::stop_token& stop) { return look(lister, request, stop); },
               Waiting::is_dropped) {}

std::optional<ModelSearchResult> ModelSearch::take() {
  std::vector<ModelSearchResult> results = answers_.take();
  if (results.empty()) return std::nullopt;
  return std::move(results.back());
}

}  // namespace canopy::app
