#pragma once
// Resolves the paths that users give: files, folders, and models in the Hugging Face cache, where a model lies in
// models--ORG--NAME/snapshots/REVISION behind links.

#include <filesystem>
#include <string>

namespace canopy {

/// The file or folder to read for `path`:
///   models--ORG--NAME, or its folder "snapshots": the snapshot that refs/main names, else the newest one;
///   a folder with no config.json but a single .gguf file: that file;
///   anything else: `path` itself, whether it exists or not.
/// Throws bad_input where a cached model has no snapshot (its download was never finished), and where a folder holds
/// several .gguf files.
std::filesystem::path resolve_model_path(const std::filesystem::path& path);

/// The last component of `path`, to be shown and to be kept; of a snapshot in the cache, whose own name is a hash, NAME
/// instead.
std::string model_path_name(const std::filesystem::path& path);

}  // namespace canopy
