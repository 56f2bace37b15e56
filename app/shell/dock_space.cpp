#include "app/shell/dock_space.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>
#include <system_error>

#include "app/state/settings.h"
#include "app/ui/look.h"
#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/base/mapped_file.h"
#include "engine/format/json_text.h"
#include "engine/trace/trace_format.h"

namespace canopy::app {
namespace {

constexpr float kWideWidth = 1100, kWideHeight = 600;  // below these, the tree would be narrower than the chat
constexpr float kMediumWidth = 760, kMediumHeight = 300;
constexpr float kStripHeight = 480;
constexpr float kLargestShare = 0.45f;

}  // namespace

DockShape dock_shape(float width, float height) {
  if (width >= kWideWidth && height >= kWideHeight) return DockShape::wide;
  return width >= kMediumWidth && height >= kMediumHeight ? DockShape::medium : DockShape::narrow;
}

bool has_timeline_strip(float height) {
  return height >= kStripHeight;
}

float fitted_length(float wish, float room) {
  return std::max(1.0f, std::min(wish, std::floor(room * kLargestShare)));
}

std::string_view to_string(DockShape shape) {
  switch (shape) {
    case DockShape::wide: return "wide";
    case DockShape::medium: return "medium";
    case DockShape::narrow: return "narrow";
  }
  return "";
}

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

/// A panel that earlier versions gave another name: arrangements and closed panels are kept under the new one.
constexpr std::string_view kFormerPasses = "Round table", kPasses = "Passes";

void rename_passes(std::string& ini) {
  const std::string former = "[Window][" + std::string(kFormerPasses) + "]";
  if (const size_t at = ini.find(former); at != std::string::npos)
    ini.replace(at, former.size(), "[Window][" + std::string(kPasses) + "]");
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
  rename_passes(dock.ini);
  return dock;
}

SavedLayout parse_layout(std::string_view text) {
  const nlohmann::json json = parse_json(text, "layout.json");
  const JsonFields fields(json, "layout.json");
  check_version(fields);
  SavedLayout layout;
  for (const nlohmann::json& name : fields.list("closed")) {
    if (!name.is_string()) throw bad_input("layout.json: \"closed\" must hold names of panels.");
    layout.closed.insert(name == kFormerPasses ? std::string(kPasses) : name.get<std::string>());
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

namespace {

constexpr const char* kHost = "Panels";
constexpr ImGuiID kRoot = 0xCA409001u;  // any number that no other dock node has
constexpr ImGuiDockNodeFlags kFlags = static_cast<ImGuiDockNodeFlags>(ImGuiDockNodeFlags_NoWindowMenuButton) |
                                      static_cast<ImGuiDockNodeFlags>(ImGuiDockNodeFlags_NoCloseButton);

constexpr ImGuiWindowFlags kHostFlags = ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                                        ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings |
                                        ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoNavFocus |
                                        ImGuiWindowFlags_NoFocusOnAppearing;

bool has_central(const ImGuiDockNode* node) {
  if (!node) return false;
  return node->IsCentralNode() || has_central(node->ChildNodes[0]) || has_central(node->ChildNodes[1]);
}

/// The child of a split that keeps its length while the other one takes the rest; null where both grow alike.
ImGuiDockNode* side_of(ImGuiDockNode* node) {
  ImGuiDockNode *a = node->ChildNodes[0], *b = node->ChildNodes[1];
  if (has_central(a)) return b;
  return has_central(b) ? a : nullptr;
}

/// Whether the timeline was a strip in an arrangement: no other place is without a row of tabs.
bool has_strip(const std::string& ini) {
  return ini.find("NoTabBar=1") != std::string::npos;
}

float room_of(const ImGuiDockNode* node, ImVec2 size) {
  return std::max(1.0f, size[node->SplitAxis] - ImGui::GetStyle().DockingSeparatorSize);
}

}  // namespace

TabStyle::TabStyle() {
  constexpr float kTabHeight = 32, kTabPadding = 14;
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {px(kTabPadding), (px(kTabHeight) - ImGui::GetFontSize()) * 0.5f});
}

TabStyle::~TabStyle() {
  ImGui::PopStyleVar();
}

void DockSpace::prepare(ImVec2 room, float scale) {
  if (room.x <= 0 || room.y <= 0) return;
  const DockShape shape = dock_shape(room.x / scale, room.y / scale);
  const bool strip = has_timeline_strip(room.y / scale);
  if (shape_ == shape && strip_ == strip) return;
  if (shape_ && !build_) {
    docks_ = now();
    left_[*shape_] = {strip_, sides_};
  }
  const auto left = left_.find(shape);
  const auto saved = docks_.find(shape);
  // The timeline may have changed between strip and tab since.
  build_ = saved == docks_.end() || strip != (left == left_.end() ? has_strip(saved->second.ini) : left->second.strip);
  shape_ = shape;
  strip_ = strip;
  sides_ = build_ || left == left_.end() ? std::map<ImGuiID, Side>() : left->second.sides;
  size_ = {0, 0};
  scale_ = build_ ? scale : saved->second.scale;
  if (!build_) ImGui::LoadIniSettingsFromMemory(saved->second.ini.c_str(), saved->second.ini.size());
}

void DockSpace::reset() {
  docks_.clear();
  left_.clear();
  lengths_.clear();
  size_ = {0, 0};
  build_ = shape_.has_value();
}

void DockSpace::restore(const char* name) {
  const ImGuiWindow* window = ImGui::FindWindowByName(name);
  const ImGuiWindowSettings* saved = ImGui::FindWindowSettingsByID(ImHashStr(name));
  const ImGuiID node = window ? window->DockId : saved ? saved->DockId : 0;
  if (shape_ && (node == 0 || !ImGui::DockBuilderGetNode(node))) build_ = true;
}

void DockSpace::build(ImVec2 size) {
  ImGui::DockBuilderRemoveNode(kRoot);
  ImGui::DockBuilderAddNode(kRoot, kFlags | static_cast<ImGuiDockNodeFlags>(ImGuiDockNodeFlags_DockSpace));
  ImGui::DockBuilderSetNodeSize(kRoot, size);
  auto used = [&](DockPlace place) {
    return std::ranges::any_of(windows_, [&](const DockedWindow& w) { return w.place == place; });
  };
  std::map<DockPlace, ImGuiID> nodes;
  ImGuiID centre = kRoot;
  auto split = [&](DockPlace place, ImGuiDir direction, float length) {
    if (!used(place)) return;
    nodes[place] = ImGui::DockBuilderSplitNode(centre, direction, 0.3f, nullptr, &centre);
    const auto known = lengths_.find(place);
    sides_[nodes[place]] = {known == lengths_.end() ? length : known->second, 0, place};
  };
  sides_.clear();
  const bool wide = shape_ == DockShape::wide, narrow = shape_ == DockShape::narrow;
  if (strip_) split(DockPlace::bottom, ImGuiDir_Down, kTimelineHeight);
  const bool others = used(DockPlace::centre) || used(DockPlace::below) || used(DockPlace::right);
  if (!narrow && others) split(DockPlace::left, ImGuiDir_Left, kChatWidth);
  if (wide) split(DockPlace::right, ImGuiDir_Right, kStatisticsWidth);
  if (wide && used(DockPlace::centre)) split(DockPlace::below, ImGuiDir_Down, kBudgetHeight);
  if (const auto strip = nodes.find(DockPlace::bottom); strip != nodes.end()) {
    ImGuiDockNode* node = ImGui::DockBuilderGetNode(strip->second);
    node->SetLocalFlags(node->LocalFlags | static_cast<ImGuiDockNodeFlags>(ImGuiDockNodeFlags_NoTabBar) |
                        static_cast<ImGuiDockNodeFlags>(ImGuiDockNodeFlags_NoDockingOverMe));
  }
  std::map<ImGuiID, ImGuiID> front;
  for (const DockedWindow& window : windows_) {
    const auto own = nodes.find(window.place);
    const ImGuiID node = own == nodes.end() ? centre : own->second;
    ImGui::DockBuilderDockWindow(window.name, node);
    front.try_emplace(node, ImHashStr("#TAB", 0, ImHashStr(window.name)));
  }
  for (const auto& [node, tab] : front) ImGui::DockBuilderGetNode(node)->SelectedTabId = tab;
  ImGui::DockBuilderFinish(kRoot);
}

void DockSpace::fit(ImGuiDockNode* node, ImVec2 size, float scale) {
  if (!node || node->IsLeafNode()) return;
  ImGuiDockNode *a = node->ChildNodes[0], *b = node->ChildNodes[1];
  const int axis = node->SplitAxis;
  const float room = room_of(node, size);
  float first = 0;
  if (ImGuiDockNode* side = side_of(node)) {
    // In an arrangement that was just loaded, lengths are those that the user chose, at the scale of that time.
    Side& known = sides_.try_emplace(side->ID, Side{side->SizeRef[axis] / scale_, 0, {}}).first->second;
    known.applied = side->SizeRef[axis] = fitted_length(std::round(known.wish * scale), room);
    first = side == a ? known.applied : room - known.applied;
  } else {
    first = std::floor(room * a->SizeRef[axis] / std::max(1.0f, a->SizeRef[axis] + b->SizeRef[axis]));
  }
  ImVec2 a_size = size, b_size = size;
  a_size[axis] = first;
  b_size[axis] = room - first;
  fit(a, a_size, scale);
  fit(b, b_size, scale);
}

/// Finds lengths that differ from those set here: the user has dragged them.
void DockSpace::learn(ImGuiDockNode* node, float scale) {
  if (!node || node->IsLeafNode()) return;
  if (ImGuiDockNode* side = side_of(node)) {
    const float length = side->SizeRef[node->SplitAxis];
    Side& known = sides_.try_emplace(side->ID, Side{length / scale, length, {}}).first->second;
    if (std::abs(length - known.applied) > 1) {
      known.wish = length / scale;
      known.applied = length;
      if (known.place) lengths_[*known.place] = known.wish;
    }
  }
  learn(node->ChildNodes[0], scale);
  learn(node->ChildNodes[1], scale);
}

void DockSpace::draw(ImVec2 pos, ImVec2 size, float scale, bool shown) {
  if (build_) {
    build(size);
    size_ = {0, 0};
  }
  build_ = false;
  ImGuiDockNode* root = ImGui::DockBuilderGetNode(kRoot);
  if (root && (size_.x != size.x || size_.y != size.y || scale_ != scale)) {
    fit(root, size, scale);
  } else if (root && shown) {
    learn(root, scale);
  }
  size_ = size;
  scale_ = scale;
  if (!shown) {  // no dock window here: it would cover the start page
    ImGui::DockSpace(kRoot, size, kFlags | ImGuiDockNodeFlags_KeepAliveOnly);
    return;
  }
  ImGui::SetNextWindowPos(pos);
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleColor(ImGuiCol_WindowBg, colours().back);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::Begin(kHost, nullptr, kHostFlags);
  {
    const TabStyle tabs;
    // Dear ImGui leaves the padding of a tab free at both ends of a row of tabs, minus the border. This sets it to 0,
    // so that tabs begin at the edge.
    ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, -ImGui::GetStyle().FramePadding.x);
    ImGui::PushStyleColor(ImGuiCol_Border, colours().back);  // the colour of the lines between panels
    ImGui::DockSpace(kRoot, size, kFlags);
    ImGui::PopStyleColor();
    ImGui::PopStyleVar();
  }
  ImGui::End();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
}

ImGuiID DockSpace::place_of(const char* name) const {
  const auto self =
      std::ranges::find_if(windows_, [&](const DockedWindow& w) { return std::string_view(w.name) == name; });
  for (const DockedWindow& other : windows_) {
    if (self == windows_.end() || other.place != self->place) continue;
    const ImGuiWindow* window = ImGui::FindWindowByName(other.name);
    if (window && window->DockId && ImGui::DockBuilderGetNode(window->DockId)) return window->DockId;
  }
  const ImGuiDockNode* centre = ImGui::DockBuilderGetCentralNode(kRoot);
  return centre ? centre->ID : kRoot;
}

std::map<DockShape, DockArrangement> DockSpace::now() {
  size_t bytes = 0;
  const char* ini = ImGui::SaveIniSettingsToMemory(&bytes);
  std::map<DockShape, DockArrangement> docks = docks_;
  if (shape_) docks[*shape_] = {std::string(ini, bytes), scale_};
  return docks;
}

std::optional<std::map<DockShape, DockArrangement>> DockSpace::changed() {
  ImGuiContext& context = *ImGui::GetCurrentContext();
  if (context.SettingsDirtyTimer <= 0 || ImGui::IsMouseDown(ImGuiMouseButton_Left) || !shape_ || build_)
    return std::nullopt;
  context.SettingsDirtyTimer = 0;
  return now();
}

}  // namespace canopy::app
