#include "app/conversation/export_path.h"

#include <cstdlib>
#include <cstring>
#include <system_error>

namespace canopy::app {
namespace {

namespace fs = std::filesystem;

fs::path home() {
  const char* folder = std::getenv("HOME");
  return folder && *folder ? fs::path(folder) : fs::path();
}

}  // namespace

const char* ending_of(ExportFormat format) {
  return format == ExportFormat::markdown ? ".md" : ".json";
}

fs::path typed_path(const std::string& text) {
  if (text == "~") return home();
  return text.starts_with("~/") ? home() / text.substr(2) : fs::path(text);
}

fs::path export_path(const std::string& folder, const std::string& name, ExportFormat format) {
  std::string stem = name;
  for (const ExportFormat each : {ExportFormat::markdown, ExportFormat::json})
    if (stem.size() > strlen(ending_of(each)) && stem.ends_with(ending_of(each))) {
      stem.resize(stem.size() - strlen(ending_of(each)));
      break;
    }
  return typed_path(folder) / (stem + ending_of(format));
}

fs::path documents_folder() {
  std::error_code ignored;
  const fs::path folder = home() / "Documents";
  return fs::is_directory(folder, ignored) ? folder : home();
}

}  // namespace canopy::app
