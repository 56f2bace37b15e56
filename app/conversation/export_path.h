#pragma once
// The path of the file that a chat is exported to.

#include <filesystem>
#include <string>

#include "app/conversation/chat_state.h"

namespace canopy::app {

/// ".md" or ".json"
const char* ending_of(ExportFormat format);

/// The path that a user's input means: "~/" at its start is the home folder.
std::filesystem::path typed_path(const std::string& text);

/// folder/name with the ending of the format. An ending .md or .json that the name already has is replaced.
std::filesystem::path export_path(const std::string& folder, const std::string& name, ExportFormat format);

/// The user's folder of documents as the system names it (its name depends on the language), else the home folder.
std::filesystem::path documents_folder();

}  // namespace canopy::app
