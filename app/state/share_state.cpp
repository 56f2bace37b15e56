#include "app/state/share_state.h"

#include <algorithm>
#include <filesystem>

#include "app/conversation/export_path.h"

namespace canopy::app {

float ShareState::fraction() const {
  if (!running || total == 0) return -1;
  return std::clamp(static_cast<float>(done) / static_cast<float>(total), 0.0f, 1.0f);
}

ShareWish update(ShareState& state, const ShareCommand& command, bool possible) {
  if (const auto* show = std::get_if<ShowShare>(&command)) {
    state.box_shown = show->shown && (possible || state.running);
  } else if (const auto* choose = std::get_if<ChooseShare>(&command)) {
    if (state.running) return {};
    state.kind = choose->kind;
    state.saved.clear();
    state.problem.clear();
  } else if (const auto* start = std::get_if<StartShare>(&command)) {
    if (!possible || state.running || start->path.empty()) return {};
    state.kind = start->kind;
    state.running = true;
    state.done = state.total = 0;
    state.saved.clear();
    state.problem.clear();
    std::filesystem::path path = typed_path(start->path);
    if (path.extension() != ending_of(start->kind)) path += ending_of(start->kind);
    return {StartShare{start->kind, path.string()}, false};
  } else if (std::holds_alternative<StopShare>(command)) {
    return {{}, state.running};
  }
  return {};
}

void share_progress(ShareState& state, size_t done, size_t total) {
  state.done = done;
  state.total = total;
}

void end_share(ShareState& state, const std::string& path, const std::string& problem) {
  state.running = false;
  state.done = state.total = 0;
  state.saved = path;
  state.problem = problem;
}

const char* ending_of(ShareKind kind) {
  return kind == ShareKind::page ? ".html" : kind == ShareKind::png ? ".png" : ".svg";
}

std::string share_name(ShareKind kind, size_t round, const std::string& recording) {
  // A name has 255 bytes at most, the ending and the number included.
  constexpr size_t most_bytes = 200;
  std::string name = std::filesystem::path(recording).stem().string();
  size_t end = std::min(name.size(), most_bytes);
  while (end > 0 && end < name.size() && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
  name.resize(end);
  if (name.empty()) name = kind == ShareKind::page ? "reply" : "round";
  if (!name.starts_with("canopy")) name = "canopy-" + name;
  if (kind == ShareKind::animation) name += "-moving";
  if (kind != ShareKind::page) name += "-" + std::to_string(round + 1);
  return name + ending_of(kind);
}

}  // namespace canopy::app
