#pragma once
// The paths that users give: what file or folder to read for each, and what is there where it is no model.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace canopy {

// Files, folders, and models in the Hugging Face cache, where a model lies in models--ORG--NAME/snapshots/REVISION
// behind links.

/// The file or folder to read for `path`:
///   models--ORG--NAME, or its folder "snapshots": the snapshot that refs/main names, else the newest one;
///   a folder with no config.json but a single GGUF model: its file, or its first part where it is split;
///   projectors of images ("mmproj-...") are not counted, and where the folder has no GGUF file and a single
///   folder, as downloads of split models do, the model in that;
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

// What people open that is not a model: named by what it is, with what to get instead.

class GgufFile;

/// Sentences that say what a file is that begins with these bytes, and what to get instead; empty where that is not
/// known, as for GGUF and safetensors.
std::string explain_foreign_file(std::span<const std::byte> start);
/// The same for the beginning of a file; empty where it cannot be read.
std::string explain_foreign_file(const std::filesystem::path& path);

/// Throws bad_input where these are the bytes of a Git LFS pointer, which stands for a file of any kind.
void refuse_lfs_pointer(std::span<const std::byte> bytes);

/// Throws bad_input for a GGUF file that is no model: an adapter, a projector of images, a table for quantizing.
void refuse_gguf_that_is_no_model(const GgufFile& file);

/// Sentences that say what a folder without config.json is, by the files in it, and what to get instead.
std::string explain_folder_without_config(const std::filesystem::path& folder);
/// The same for a folder with config.json but without safetensors.
std::string explain_folder_without_weights(const std::filesystem::path& folder);

/// What to say first of a file that ends too early.
inline constexpr const char* kIncomplete =
    "The file is incomplete, as after a download that was cut short: get it again.";

/// The same with "1000 of 2720 bytes are there.", of a file that must have `whole` bytes; empty where it has them.
std::string explain_incomplete(uint64_t there, uint64_t whole);

}  // namespace canopy
