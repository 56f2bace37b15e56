#include "app/chat/export_path.h"

#include <cstdlib>
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
  const std::string ending = ending_of(format);
  return typed_path(folder) / (name.ends_with(ending) ? name : name + ending);
}

fs::path documents_folder() {
  std::error_code ignored;
  const fs::path folder = home() / "Documents";
  return fs::is_directory(folder, ignored) ? folder : home();
}

}  // namespace canopy::app
