#include "engine/format/model_paths.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <exception>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <system_error>
#include <tuple>

#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/mapped_file.h"
#include "engine/base/text.h"
#include "engine/format/architecture.h"
#include "engine/format/gguf.h"
#include "engine/format/json_text.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view cached_prefix = "models--";
constexpr uint64_t max_ref_bytes = 256;
constexpr size_t max_entries = 10'000;  // of a folder that are looked at

fs::path without_trailing_slash(const fs::path& path) {
  return path.has_filename() || !path.has_parent_path() ? path : path.parent_path();
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// The entries of a folder; fewer where it cannot be read to its end.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end && entries.size() < max_entries;
       it.increment(failed)) {
    entries.push_back(it->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

bool is_cached_model(const fs::path& folder) {
  return folder.filename().string().starts_with(cached_prefix) && is_folder(folder);
}

/// The snapshot that the main branch was downloaded as.
std::optional<fs::path> main_snapshot(const fs::path& model) {
  try {
    std::string revision = read_small_file(model / "refs" / "main", max_ref_bytes);
    while (!revision.empty() && (revision.back() == '\n' || revision.back() == '\r')) revision.pop_back();
    const fs::path name = revision;
    if (revision.empty() || name != name.filename() || name == ".." || name == ".") return std::nullopt;
    const fs::path snapshot = model / "snapshots" / name;
    if (is_folder(snapshot)) return snapshot;
  } catch (const Error&) {  // there is no such ref
  }
  return std::nullopt;
}

fs::path snapshot_of(const fs::path& model) {
  if (const auto main = main_snapshot(model)) return *main;
  fs::path newest;
  fs::file_time_type newest_time = fs::file_time_type::min();
  for (const fs::path& snapshot : entries_of(model / "snapshots")) {
    std::error_code failed;
    const fs::file_time_type time = fs::last_write_time(snapshot, failed);
    if (failed || !is_folder(snapshot) || (!newest.empty() && time < newest_time)) continue;
    newest = snapshot;
    newest_time = time;
  }
  if (newest.empty()) {
    throw bad_input(
        "This folder of the Hugging Face cache has no snapshot, so that its download was never finished; "
        "download the model again.");
  }
  return newest;
}

bool is_projector(const fs::path& path) {
  return path.filename().string().starts_with("mmproj");
}

/// The GGUF models of a folder: of a split one only its first file that is there.
std::vector<fs::path> gguf_models(const fs::path& folder) {
  std::vector<fs::path> files = entries_of(folder);
  std::erase_if(files, [](const fs::path& path) {
    return path.extension() != ".gguf" || is_folder(path) || is_later_gguf_part(path);
  });
  if (!std::ranges::all_of(files, is_projector)) std::erase_if(files, is_projector);
  return files;
}

/// The GGUF models of a folder, or of the only folder in it.
std::vector<fs::path> gguf_models_below(const fs::path& folder) {
  std::vector<fs::path> files = gguf_models(folder);
  if (!files.empty()) return files;
  std::vector<fs::path> folders = entries_of(folder);
  std::erase_if(folders, [](const fs::path& path) { return !is_folder(path); });
  return folders.size() == 1 ? gguf_models(folders.front()) : files;
}

[[noreturn]] void refuse_several(const std::vector<fs::path>& files) {
  constexpr size_t listed = 5;
  std::string names;
  for (size_t i = 0; i < std::min(files.size(), listed); ++i) {
    names += (i == 0 ? "" : ", ") + quoted_name(files[i].filename().string());
  }
  throw bad_input("The folder holds " + std::to_string(files.size()) + " GGUF models (" + names +
                  (files.size() > listed ? ", ..." : "") + "); open one of them.");
}

/// ORG--NAME of the cached model that `path` lies in; nothing where it lies in none, or names a file of it.
std::optional<std::string> cached_name(const fs::path& path) {
  const fs::path snapshots = path.parent_path();
  if (path.filename().string().starts_with(cached_prefix)) return path.filename().string();
  if (path.filename() == "snapshots") return cached_name(snapshots);
  if (snapshots.filename() == "snapshots") return cached_name(snapshots.parent_path());
  return std::nullopt;
}

}  // namespace

fs::path resolve_model_path(const fs::path& given) {
  fs::path path = without_trailing_slash(given);
  if (path.filename() == "snapshots" && is_cached_model(path.parent_path())) path = path.parent_path();
  if (is_cached_model(path)) path = snapshot_of(path);
  std::error_code ignored;
  if (!is_folder(path) || fs::exists(path / "config.json", ignored)) return path;
  const std::vector<fs::path> files = gguf_models_below(path);
  if (files.size() > 1) refuse_several(files);
  return files.empty() ? path : files.front();
}

std::vector<fs::path> model_files(const fs::path& given) noexcept {
  try {
    fs::path path = resolve_model_path(given);
    if (path.extension() == ".safetensors" && !is_folder(path))
      path = path.has_parent_path() ? path.parent_path() : ".";
    if (!is_folder(path)) return gguf_part_files(path);
    std::vector<fs::path> files = entries_of(path);
    std::erase_if(files, [](const fs::path& file) {
      static constexpr std::string_view read[] = {".safetensors", ".json", ".jinja", ".model"};
      return std::ranges::find(read, file.extension().string()) == std::end(read) || is_folder(file);
    });
    return files;
  } catch (const std::exception&) {
    return {given};  // opening it says what is wrong
  }
}

std::string model_path_name(const fs::path& given) {
  const fs::path path = without_trailing_slash(given);
  const std::optional<std::string> cached = cached_name(path);
  if (!cached) {
    const auto part = gguf_part_name(path.filename().string());
    return printable(part ? part->stem + ".gguf" : path.filename().string());
  }
  const size_t name = cached->rfind("--");
  return printable(cached->substr(name + 2));
}

namespace {

constexpr size_t looked_at = 1024;                 // bytes at the beginning of a file
constexpr uint64_t most_adapter_config = 1 << 20;  // bytes

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// What to get instead, for everything that is no model in a form that can be read.
std::string instead() {
  return "Get the model as a GGUF file, or as a Hugging Face folder with safetensors; " + what_runs();
}

/// The number behind "size " in a pointer, as figures; "its own size" where it has none.
std::string pointed_size(std::string_view pointer) {
  const size_t at = pointer.find("\nsize ");
  uint64_t size = 0;
  if (at == std::string_view::npos) return "unknown size";
  const auto read = std::from_chars(pointer.data() + at + 6, pointer.data() + pointer.size(), size);
  return read.ec == std::errc() ? byte_figures(size) : "unknown size";
}

std::string explain_lfs_pointer(std::string_view text) {
  if (!text.starts_with("version https://git-lfs.github.com/spec/")) return "";
  return "This is a Git LFS pointer, a short text in the place of a file of " + pointed_size(text) +
         ": the repository was cloned without its large files. Run 'git lfs pull' in it, or download the file itself.";
}

bool is_web_page(std::string_view text) {
  const size_t at = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (at == std::string_view::npos) return false;
  std::string start(text.substr(at, 14));
  std::ranges::transform(start, start.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return start.starts_with("<!doctype html") || start.starts_with("<html");
}

struct Magic {
  std::string_view bytes;
  const char* what;
};

constexpr const char* pickle =
    "It is a checkpoint of PyTorch (.bin, .pt, .pth): a pickle, which may run programs when it is opened, so that it "
    "is never read here.";
constexpr const char* zip =
    "It is a ZIP archive, which is mostly a checkpoint of PyTorch (.bin, .pt, .pth): a pickle, which may run programs "
    "when it is opened, so that it is never read here.";

const std::array magics = std::to_array<Magic>({
    {"PK\x03\x04", zip},
    {"\x80\x02", pickle},
    {"\x80\x03", pickle},
    {"\x80\x04", pickle},
    {"lmgg", "It is a GGML file from before GGUF (2023)."},
    {"fmgg", "It is a GGML file from before GGUF (2023)."},
    {"tjgg", "It is a GGML file from before GGUF (2023)."},
    {"algg", "It is a LoRA adapter of the time before GGUF (2023)."},
    {"\x89HDF", "It holds the weights of Keras or TensorFlow (HDF5)."},
    {"\x1F\x8B", "It is a gzip archive."},
    {"\xFD"
     "7zXZ",
     "It is an xz archive."},
    {"7z\xBC\xAF", "It is a 7z archive."},
    {"(\xB5/\xFD", "It is a zstd archive."},
});

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::path& entry : entries_of(folder)) names.push_back(entry.filename().string());
  std::ranges::sort(names);
  return names;
}

bool has_name(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::binary_search(names, name);
}

/// The first name that ends in one of these; null where there is none.
const std::string* name_with_ending(const std::vector<std::string>& names,
                                    std::initializer_list<std::string_view> ends) {
  const auto found = std::ranges::find_if(names, [&](const std::string& name) {
    return std::ranges::any_of(ends, [&](std::string_view end) { return name.ends_with(end); });
  });
  return found == names.end() ? nullptr : &*found;
}

/// " of 'meta-llama/Llama-3.1-8B'", as an adapter's own configuration names its model; empty where it does not.
std::string adapted_model(const fs::path& config) {
  try {
    const nlohmann::json root = parse_json(read_small_file(config, most_adapter_config), "adapter_config.json");
    const std::string model = JsonFields(root, "adapter_config.json").text_or("base_model_name_or_path", "");
    return model.empty() ? "" : " of " + quoted_name(model);
  } catch (const Error&) {
    return "";  // what it is, is known all the same
  }
}

std::string explain_adapter(const std::string& of) {
  return "This is a LoRA adapter" + of +
         ", a change to the weights of a model and no model itself; adapters cannot be applied here. Get a model that "
         "it was merged into; " +
         what_runs();
}

}  // namespace

std::string explain_foreign_file(std::span<const std::byte> start) {
  const std::string_view text = as_text(start);
  if (const std::string pointer = explain_lfs_pointer(text); !pointer.empty()) return pointer;
  for (const Magic& magic : magics) {
    if (text.starts_with(magic.bytes)) return magic.what + (" " + instead());
  }
  if (is_web_page(text)) {
    return "It is a web page: the address of the page about the file was downloaded, not that of the file. " +
           instead();
  }
  return "";
}

std::string explain_foreign_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string start(looked_at, '\0');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return explain_foreign_file(std::as_bytes(std::span(start)));
}

void refuse_lfs_pointer(std::span<const std::byte> bytes) {
  const std::string pointer = explain_lfs_pointer(as_text(bytes.first(std::min(bytes.size(), looked_at))));
  if (!pointer.empty()) throw bad_input(pointer);
}

void refuse_gguf_that_is_no_model(const GgufFile& file) {
  const std::string_view type = file.text_if("general.type").value_or("model");
  const std::string_view architecture = file.text_if("general.architecture").value_or("");
  if (type == "adapter" || file.find("adapter.type") != nullptr) {
    throw bad_input(
        explain_adapter(architecture.empty() ? "" : " of a model of the architecture " + printable(architecture)));
  }
  if (type == "mmproj" || architecture == "clip") {
    throw bad_input(
        "This is the projector of images or sounds of a model (mmproj), not the model itself, and neither are "
        "supported. Open the model's own GGUF file, which is usually beside it; " +
        what_runs());
  }
  if (type == "imatrix" || architecture == "imatrix") {
    throw bad_input("This is an importance matrix, with which models are quantized, and no model. " + instead());
  }
  if (type == "controlvector" || architecture == "controlvector") {
    throw bad_input("This is a control vector, which changes what a model writes, and no model. " + instead());
  }
}

std::string explain_folder_without_config(const fs::path& folder) {
  const std::vector<std::string> names = names_in(folder);
  if (has_name(names, "adapter_config.json")) return explain_adapter(adapted_model(folder / "adapter_config.json"));
  const std::string missing = "The folder has no config.json; a GGUF file or a Hugging Face folder is expected.";
  if (has_name(names, "model_index.json")) return missing + " It holds a model that makes images. " + instead();
  if (const std::string* weights = name_with_ending(names, {".safetensors"})) {
    return missing + " It has weights, such as " + quoted_name(*weights) +
           ", but these say nothing of the model they are of: get config.json and the tokenizer's files from where the "
           "weights come from, into the same folder.";
  }
  if (name_with_ending(names, {".bin", ".pt", ".pth", ".ckpt"}) != nullptr)
    return missing + " " + pickle + " " + instead();
  return missing;
}

std::string explain_folder_without_weights(const fs::path& folder) {
  const std::vector<std::string> names = names_in(folder);
  if (has_name(names, "adapter_model.safetensors"))
    return explain_adapter(adapted_model(folder / "adapter_config.json"));
  const std::string missing =
      "The folder " + shown(folder) + " has neither model.safetensors nor model.safetensors.index.json.";
  if (const std::string* weights = name_with_ending(names, {".bin", ".pt", ".pth", ".ckpt"})) {
    return missing + " Its weights are in " + quoted_name(*weights) + ". " + pickle + " " + instead();
  }
  if (name_with_ending(names, {".safetensors"}) != nullptr) {
    return missing + " Its weights are in files of other names; with several, the index says which are the model's.";
  }
  return missing + " Its weights were not downloaded.";
}

std::string explain_incomplete(uint64_t there, uint64_t whole) {
  if (there >= whole) return "";
  return std::string(kIncomplete) + " " + std::to_string(there) + " of " + std::to_string(whole) + " bytes are there.";
}

}  // namespace canopy
