#pragma once
// Resolves the paths that users give: files, folders, and models in the Hugging Face cache, where a model lies in
// models--ORG--NAME/snapshots/REVISION behind links.

#include <filesystem>
#include <string>
#include <vector>

namespace canopy {

/// The file or folder to read for `path`:
///   models--ORG--NAME, or its folder "snapshots": the snapshot that refs/main names, else the newest one;
///   a folder with no config.json but a single GGUF model: its file, or its first part where it is split
///   (gguf_parts.h); projectors of images ("mmproj-...") are not counted, and where the folder has no GGUF file and a
///   single folder, as downloads of split models do, the model in that;
///   anything else: `path` itself, whether it exists or not.
/// Throws bad_input where a cached model has no snapshot (its download was never finished), and where a folder holds
/// several GGUF models.
std::filesystem::path resolve_model_path(const std::filesystem::path& path);

/// The files that are read for the model or drafter at `path`, as far as their names tell: all parts of a split GGUF;
/// of a folder weights, configuration and tokenizer. `path` itself where nothing is there. Never throws.
std::vector<std::filesystem::path> model_files(const std::filesystem::path& path) noexcept;

/// The last component of `path`, to be shown and to be kept; of a snapshot in the cache, whose own name is a hash, NAME
/// instead. The same for all parts of a split GGUF: "m.gguf" for "m-00002-of-00003.gguf".
std::string model_path_name(const std::filesystem::path& path);

}  // namespace canopy
