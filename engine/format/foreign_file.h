#pragma once
// What people open that is not a model: named by what it is, with what to get instead.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace canopy {

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

/// "1000 of 2720 bytes are there: ...": of a file that must have `whole` bytes; empty where it has them.
std::string explain_incomplete(uint64_t there, uint64_t whole);

}  // namespace canopy
