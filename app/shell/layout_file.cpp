#include "app/shell/layout_file.h"

#include <filesystem>
#include <span>
#include <system_error>

#include "app/base/choices.h"
#include "engine/base/atomic_file.h"
#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/format/json_text.h"
#include "engine/trace/trace_checksum.h"

namespace canopy::app {
namespace {

constexpr uint32_t kVersion = 1;
constexpr size_t kMaxFileBytes = 256 * 1024;  // ours has a few thousand
constexpr DockShape kShapes[] = {DockShape::wide, DockShape::medium, DockShape::narrow};

uint32_t checksum(const std::string& ini) {
  return crc32c(std::as_bytes(std::span(ini)));
}

void check_version(const JsonFields& fields) {
  const uint32_t version = fields.u32("version");
  if (version == kVersion) return;
  throw bad_input(fields.what() + ": \"version\" is " + std::to_string(version) + "; this Canopy reads version " +
                  std::to_string(kVersion) + ".");
}

DockArrangement arrangement_in(const nlohmann::json& object, const std::string& what) {
  const JsonFields fields(object, what);
  DockArrangement dock;
  dock.ini = fields.text("ini");
  dock.scale = static_cast<float>(fields.number("scale"));
  // The scale of the interface times that of the display.
  if (!(dock.scale >= kMinScale * 0.5f && dock.scale <= kMaxScale * 4))
    throw bad_input(what + ": \"scale\" is no scale of an interface.");
  if (fields.u32("checksum") != checksum(dock.ini))
    throw bad_input(what + ": \"ini\" is not as Canopy wrote it; its checksum differs.");
  return dock;
}

SavedLayout parse_layout(std::string_view text) {
  const nlohmann::json json = parse_json(text, "layout.json");
  const JsonFields fields(json, "layout.json");
  check_version(fields);
  SavedLayout layout;
  for (const nlohmann::json& name : fields.list("closed")) {
    if (!name.is_string()) throw bad_input("layout.json: \"closed\" must hold names of panels.");
    layout.closed.insert(name.get<std::string>());
  }
  for (const DockShape shape : kShapes) {
    const std::string field(to_string(shape));
    if (const nlohmann::json* object = fields.object(field.c_str()))
      layout.docks[shape] = arrangement_in(*object, "layout.json, \"" + field + "\"");
  }
  return layout;
}

}  // namespace

LayoutRead read_layout(const std::string& path) {
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored)) return {};
  try {
    return {parse_layout(read_small_file(path, kMaxFileBytes)), ""};
  } catch (const Error& e) {
    return {
        {},
        std::string(e.what()) + " The panels are where they usually are, and the next change replaces " + path + "."};
  }
}

void write_layout(const std::string& path, const SavedLayout& layout) {
  nlohmann::ordered_json json;
  json["version"] = kVersion;
  json["closed"] = layout.closed;
  for (const auto& [shape, dock] : layout.docks)
    json[std::string(to_string(shape))] = {{"scale", dock.scale}, {"checksum", checksum(dock.ini)}, {"ini", dock.ini}};
  write_file_atomically(path, json.dump(2) + "\n");
}

std::string layout_path_beside(const std::string& settings_path) {
  if (settings_path.empty()) return "";
  return (std::filesystem::path(settings_path).parent_path() / "layout.json").string();
}

}  // namespace canopy::app
