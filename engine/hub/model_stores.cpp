#include "engine/hub/model_stores.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <exception>
#include <system_error>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/posix.h"
#include "engine/base/text.h"
#include "engine/format/gguf.h"
#include "engine/format/json_text.h"
#include "engine/format/model_paths.h"
#include "engine/hub/hub_cache.h"
#include "engine/hub/hub_files.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostStored = 500;   // of one store, in case a folder is the wrong one and huge
constexpr size_t kMostSeen = 50'000;  // entries that are looked at in one store
constexpr uint64_t kMostManifest = uint64_t{4} << 20;
constexpr uint64_t kMostSettings = uint64_t{1} << 20;
constexpr const char* kHubSource = "Hugging Face";

fs::path place_from(const char* name, const fs::path& below = {}) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == 0) return {};
  return below.empty() ? fs::path(value) : fs::path(value) / below;
}

/// Calls visit() for each file below a folder, at most `deepest` folders down; links to folders are not followed.
void for_each_file(const fs::path& folder, int deepest, const std::stop_token& stop,
                   const std::function<void(const fs::path&)>& visit) {
  std::error_code error;
  size_t seen = 0;
  for (fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error), end;
       !error && it != end && seen < kMostSeen && !stop.stop_requested(); it.increment(error), ++seen) {
    if (it.depth() >= deepest) it.disable_recursion_pending();
    std::error_code unknown;
    if (it->is_regular_file(unknown)) visit(it->path());
  }
}

/// Whether a file is a model to be listed: GGUF, the first part of a split one, and no projector of pictures.
bool is_listed_gguf(const fs::path& path) {
  const std::string name = ascii_lower(path.filename().string());
  return name.ends_with(".gguf") && name.find("mmproj") == std::string::npos && !is_later_gguf_part(path);
}

/// GGUF files below a folder, named by their paths in it.
std::vector<StoredModel> gguf_files_below(const fs::path& folder, const char* source, int deepest,
                                          const std::stop_token& stop) {
  std::vector<StoredModel> found;
  for_each_file(folder, deepest, stop, [&](const fs::path& path) {
    if (!is_listed_gguf(path) || found.size() >= kMostStored) return;
    found.push_back({printable(path.lexically_relative(folder).generic_string()), source, path, {}, ""});
  });
  return found;
}

/// LM Studio also keeps folders of safetensors: PUBLISHER/MODEL with a config.json.
std::vector<StoredModel> lm_studio_models(const fs::path& folder, const std::stop_token& stop) {
  constexpr int below_publisher_and_model = 3;
  constexpr const char* source = "LM Studio";
  std::vector<StoredModel> found = gguf_files_below(folder, source, below_publisher_and_model, stop);
  for_each_file(folder, 2, stop, [&](const fs::path& path) {
    if (path.filename() != "config.json" || found.size() >= kMostStored) return;
    const fs::path model = path.parent_path();
    if (model != folder)
      found.push_back({printable(model.lexically_relative(folder).generic_string()), source, model, {}, ""});
  });
  return found;
}

/// The value of a plain "key: value" line of YAML, without its quotes; nothing where there is none.
std::optional<std::string> yaml_value(const std::string& text, std::string_view key) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line(text.data() + at, end - at);
    at = end + 1;
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ':') continue;
    line.remove_prefix(key.size() + 1);
    const auto is_cut = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '"' || c == '\''; };
    while (!line.empty() && is_cut(line.front())) line.remove_prefix(1);
    while (!line.empty() && is_cut(line.back())) line.remove_suffix(1);
    return std::string(line);
  }
  return std::nullopt;
}

/// Jan describes each model in a model.yml, whose model_path is absolute or below the folder of its data.
std::vector<StoredModel> jan_models(const fs::path& data, const std::stop_token& stop) {
  constexpr int below_owner_and_model = 4;
  std::vector<StoredModel> found;
  const fs::path models = data / "llamacpp" / "models";
  for_each_file(models, below_owner_and_model, stop, [&](const fs::path& path) {
    if (path.filename() != "model.yml" || found.size() >= kMostStored) return;
    StoredModel model{printable(path.parent_path().lexically_relative(models).generic_string()), "Jan", {}, {}, ""};
    try {
      const auto file = yaml_value(read_small_file(path, kMostSettings), "model_path");
      if (!file || file->empty()) throw bad_input("its model.yml names no model_path.");
      const fs::path named = data / *file;  // an absolute one stays as it is
      std::error_code error;
      if (!fs::is_regular_file(named, error))
        throw bad_input("its model.yml names " + quoted_name(fs::path(*file).filename().string()) +
                        ", which is not there.");
      model.path = named;
    } catch (const Error& e) {
      model.problem = "The model of Jan is left out: " + std::string(e.what());
    }
    found.push_back(std::move(model));
  });
  return found;
}

/// llama.cpp names a file OWNER_REPO_FILE; of the manifest=OWNER=REPO=TAG.json beside it the repository is read.
std::vector<StoredModel> llama_cpp_models(const fs::path& folder, const std::stop_token& stop) {
  std::vector<std::string> repos;
  for_each_file(folder, 0, stop, [&](const fs::path& path) {
    const std::string name = path.filename().string();
    constexpr std::string_view start = "manifest=";
    if (!name.starts_with(start) || repos.size() >= kMostStored) return;
    const size_t owner_end = name.find('=', start.size());
    const size_t repo_end = owner_end == std::string::npos ? owner_end : name.find('=', owner_end + 1);
    if (repo_end == std::string::npos) return;
    repos.push_back(name.substr(start.size(), owner_end - start.size()) + "/" +
                    name.substr(owner_end + 1, repo_end - owner_end - 1));
  });
  std::vector<StoredModel> found = gguf_files_below(folder, "llama.cpp", 0, stop);
  for (StoredModel& model : found) {
    for (std::string repo : repos) {
      std::string start = repo + "_";
      std::ranges::replace(start, '/', '_');
      if (model.name.starts_with(start)) model.name = printable(repo) + "/" + model.name.substr(start.size());
    }
  }
  return found;
}

/// The folder that is set in GPT4All's settings, if one is.
fs::path gpt4all_folder(const fs::path& settings) {
  try {
    const std::string text = read_small_file(settings, kMostSettings);
    constexpr std::string_view key = "modelPath=";
    const size_t at = text.starts_with(key) ? 0 : text.find("\n" + std::string(key));
    if (at == std::string::npos) return {};
    const size_t begin = text.find('=', at) + 1;
    std::string value = text.substr(begin, text.find_first_of("\r\n", begin) - begin);
    return value;
  } catch (const Error&) {  // it has none
    return {};
  }
}

// Ollama: a manifest for each model and tag, which names blobs by their digests.

constexpr const char* kOllama = "Ollama";

/// "registry.ollama.ai/library/llama3.2/3b" -> "llama3.2:3b", as Ollama itself shows it.
std::string ollama_name(const fs::path& below_manifests) {
  std::vector<std::string> parts;
  for (const fs::path& part : below_manifests) parts.push_back(part.string());
  std::string name;
  size_t from = 0;
  if (parts.size() >= 2 && parts[0] == "registry.ollama.ai") from = parts[1] == "library" ? 2 : 1;
  for (size_t i = from; i < parts.size(); ++i) name += (i == from ? "" : i + 1 == parts.size() ? ":" : "/") + parts[i];
  return printable(name);
}

/// The file of "sha256:DIGEST". Throws bad_input for what is no digest.
fs::path ollama_blob(const fs::path& models, const std::string& digest) {
  constexpr std::string_view start = "sha256:";
  const std::string hex = digest.starts_with(start) ? digest.substr(start.size()) : "";
  const bool is_digest =
      hex.size() == 64 && std::ranges::all_of(hex, [](unsigned char c) { return std::isxdigit(c) != 0; });
  if (!is_digest) throw bad_input("its manifest names a blob by " + quoted_name(digest) + ", which is no SHA-256.");
  return models / "blobs" / ("sha256-" + hex);
}

/// "temperature 0.6, stop <|im_end|>" of a JSON object.
std::string parameter_words(const nlohmann::json& parameters) {
  constexpr size_t longest = 120;
  std::string words;
  for (const auto& [key, value] : parameters.items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    words += (words.empty() ? "" : ", ") + key + " " + text;
  }
  return printable(words, longest);
}

StoredModel ollama_model(const fs::path& models, const fs::path& manifest) {
  StoredModel model{ollama_name(manifest.lexically_relative(models / "manifests")), kOllama, {}, {}, ""};
  try {
    const nlohmann::json root = parse_json(read_small_file(manifest, kMostManifest), "its manifest");
    const JsonFields fields(root, "its manifest");
    const nlohmann::json& layers = fields.list("layers");
    for (size_t i = 0; i < layers.size(); ++i) {
      const JsonFields layer(layers[i], "layer " + std::to_string(i) + " of its manifest");
      const std::string type = layer.text("mediaType");
      constexpr std::string_view start = "application/vnd.ollama.image.";
      if (!type.starts_with(start)) continue;
      const std::string kind = type.substr(start.size());
      const fs::path blob = ollama_blob(models, layer.text("digest"));
      if (kind == "model") {
        std::error_code error;
        if (!fs::is_regular_file(blob, error)) throw bad_input("the file with its weights is not there.");
        if (!model.path.empty()) throw bad_input("it has several files with weights, which is not read here.");
        model.path = blob;
      } else if (kind == "adapter") {
        throw bad_input("it has an adapter beside its weights, which cannot be applied here.");
      } else if (kind == "template") {
        model.notes.push_back("Ollama's own chat template is not used, but that of the file");
      } else if (kind == "system") {
        model.notes.push_back("Ollama adds a system prompt");
      } else if (kind == "projector") {
        model.notes.push_back("its part for pictures is not used");
      } else if (kind == "params") {
        const nlohmann::json parameters = parse_json(read_small_file(blob, kMostSettings), "its parameters");
        if (parameters.is_object() && !parameters.empty())
          model.notes.push_back("Ollama's parameters: " + parameter_words(parameters));
      }
    }
    if (model.path.empty()) throw bad_input("its manifest names no weights as a GGUF file.");
  } catch (const Error& e) {
    model.path.clear();
    model.problem = "The model of Ollama is left out: " + std::string(e.what());
  }
  return model;
}

std::vector<StoredModel> ollama_models(const fs::path& folder, const std::stop_token& stop) {
  constexpr int below_host_owner_and_name = 4;
  std::vector<StoredModel> found;
  for_each_file(folder / "manifests", below_host_owner_and_name, stop, [&](const fs::path& path) {
    if (found.size() < kMostStored && !path.filename().string().starts_with('.'))
      found.push_back(ollama_model(folder, path));
  });
  return found;
}

/// Whether opening the folder of a repository opens this.
bool leads_to(const fs::path& folder, const fs::path& model) {
  try {
    return fs::equivalent(resolve_model_path(folder), model);
  } catch (const std::exception&) {  // its main snapshot holds no model, or several
    return false;
  }
}

/// Appends what a store has, sorted by name, without what is there by the same path.
void append_store(std::vector<StoredModel>& all, std::vector<StoredModel> store) {
  std::ranges::sort(store, {}, [](const StoredModel& m) { return std::pair(ascii_lower(m.name), m.name); });
  for (StoredModel& model : store) {
    const auto is_same = [&](const StoredModel& other) {
      std::error_code error;
      return other.path == model.path || fs::equivalent(other.path, model.path, error);
    };
    if (model.path.empty() || std::ranges::none_of(all, is_same)) all.push_back(std::move(model));
  }
}

}  // namespace

StorePlaces store_places() {
  StorePlaces places;
  places.hub = hub_cache_folder();
  const auto add = [](std::vector<fs::path>& list, const fs::path& path) {
    if (!path.empty() && std::ranges::find(list, path) == list.end()) list.push_back(path);
  };
  const fs::path home = place_from(kHome);
  const auto under = [&](const char* variable, const char* usual, const fs::path& below) {
    const fs::path set = place_from(variable);
    return !set.empty() ? set / below : home.empty() ? fs::path() : home / usual / below;
  };
  add(places.ollama, place_from("OLLAMA_MODELS"));
  add(places.ollama, home.empty() ? fs::path() : home / ".ollama" / "models");
  add(places.ollama, "/usr/share/ollama/.ollama/models");  // of its service
  if (!home.empty()) {
    add(places.lm_studio, home / ".lmstudio" / "models");
    add(places.jan, home / "jan");
  }
  add(places.lm_studio, under("XDG_CACHE_HOME", ".cache", "lm-studio/models"));
  add(places.jan, under("XDG_DATA_HOME", ".local/share", "Jan/data"));
  add(places.jan, under("XDG_CONFIG_HOME", ".config", "Jan/data"));
  add(places.llama_cpp, place_from("LLAMA_CACHE"));
  add(places.llama_cpp, under("XDG_CACHE_HOME", ".cache", "llama.cpp"));
  add(places.gpt4all, under("XDG_DATA_HOME", ".local/share", "nomic.ai/GPT4All"));
  add(places.gpt4all, gpt4all_folder(under("XDG_CONFIG_HOME", ".config", "nomic.ai/GPT4All.ini")));
  // On Windows, which alone has these variables.
  add(places.jan, place_from("APPDATA", "Jan/data"));
  add(places.llama_cpp, place_from("LOCALAPPDATA", "llama.cpp"));
  add(places.gpt4all, place_from("LOCALAPPDATA", "nomic.ai/GPT4All"));
  add(places.gpt4all, gpt4all_folder(place_from("APPDATA", "nomic.ai/GPT4All.ini")));
  return places;
}

std::vector<StoredModel> hub_models(const fs::path& cache, const std::stop_token& stop) {
  std::vector<StoredModel> found;
  std::error_code error;
  for (fs::directory_iterator it(cache, error), end;
       !error && it != end && found.size() < kMostStored && !stop.stop_requested(); it.increment(error)) {
    const auto repo = hub_repo_of(it->path().filename().string());
    if (!repo) continue;
    const std::vector<CachedVariant> variants = cached_variants(cache, *repo);
    // One alone goes by the name of the repository; nothing, too: opening its folder says what is wrong.
    if (variants.size() <= 1) {
      const bool elsewhere = !variants.empty() && !leads_to(it->path(), variants[0].path);
      found.push_back({printable(*repo), kHubSource, elsewhere ? variants[0].path : it->path(), {}, ""});
      continue;
    }
    for (const CachedVariant& each : variants) {
      const bool twice = std::ranges::count_if(variants, [&](const CachedVariant& other) {
                           return other.variant.label == each.variant.label;
                         }) > 1;
      found.push_back(
          {printable(*repo + ":" + (twice ? each.variant.first : each.variant.label)), kHubSource, each.path, {}, ""});
    }
  }
  std::ranges::sort(found, {}, [](const StoredModel& m) { return std::pair(ascii_lower(m.name), m.name); });
  return found;
}

std::vector<StoredModel> stored_models(const StorePlaces& places, const std::stop_token& stop) {
  std::vector<StoredModel> all;
  if (!places.hub.empty()) all = hub_models(places.hub, stop);
  for (const fs::path& folder : places.lm_studio) append_store(all, lm_studio_models(folder, stop));
  for (const fs::path& folder : places.ollama) append_store(all, ollama_models(folder, stop));
  for (const fs::path& folder : places.jan) append_store(all, jan_models(folder, stop));
  for (const fs::path& folder : places.llama_cpp) append_store(all, llama_cpp_models(folder, stop));
  for (const fs::path& folder : places.gpt4all) append_store(all, gguf_files_below(folder, "GPT4All", 0, stop));
  return all;
}

std::string path_of_model(const std::string& named) {
  std::error_code error;
  if (named.empty() || fs::exists(fs::symlink_status(named, error))) return named;
  const std::optional<HubName> name = parse_hub_name(named);
  const bool looks_like_a_path = named.ends_with(".gguf") && named.find(':') == std::string::npos;
  const StorePlaces places = store_places();
  if (name && !cached_variants(places.hub, name->repo).empty()) return find_in_hub_cache(places.hub, *name).string();
  for (const StoredModel& model : stored_models(places)) {
    if (ascii_lower(model.name) != ascii_lower(named)) continue;
    if (!model.problem.empty()) throw bad_input(quoted_name(named) + ": " + model.problem);
    return model.path.string();
  }
  if (name && !looks_like_a_path) return find_in_hub_cache(places.hub, *name).string();  // says how to fetch it
  return named;
}

}  // namespace canopy
