#pragma once
// The description of a model for `canopy-cli inspect`, also of files that can be read but not run.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace canopy {

/// An object with: path, format ("gguf", "safetensors"), config (or null and config_error, why it cannot run),
/// metadata (long arrays and texts shortened), tensors (name, type, shape, bytes), types (type -> tensors, elements,
/// bytes), totals. Every string is safe to show. Throws bad_input when the file itself is not readable.
nlohmann::json describe_json(const std::filesystem::path& path);

/// The same as lines of text for people.
std::string describe_text(const nlohmann::json& description);

}  // namespace canopy
