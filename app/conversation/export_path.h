#pragma once
// Where an exported chat goes.

#include <filesystem>
#include <string>

#include "app/conversation/chat_state.h"

namespace canopy::app {

/// ".md" or ".json"
const char* ending_of(ExportFormat format);

/// A path as people type it: "~/" is their home folder.
std::filesystem::path typed_path(const std::string& text);

/// The file of that name in a folder, with the format's ending in place of either format's that the name has.
std::filesystem::path export_path(const std::string& folder, const std::string& name, ExportFormat format);

/// Where people look for a file that they saved: the folder of documents, else their home folder. It has no fixed name
/// in other languages than English.
std::filesystem::path documents_folder();

}  // namespace canopy::app
