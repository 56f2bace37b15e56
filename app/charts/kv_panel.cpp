#include "app/charts/kv_panel.h"

#include <algorithm>
#include <cmath>

#include "app/charts/chart_frame.h"
#include "app/charts/memory_view.h"
#include "app/look/widgets.h"
#include "app/models/memory_table.h"
#include "app/panels/panel.h"

namespace canopy::app {
namespace {

constexpr uint64_t kMostCells = 256;

/// Draws how much of the context is in use.
void draw_context_bar(const CacheView& cache) {
  const Theme& t = colours();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x;
  ImGui::InvisibleButton("Context bar", {std::max(1.0f, room), px(16)});
  const std::string words = grouped(cache.used()) + " of " + grouped(cache.capacity) + " positions after this round.";
  tooltip(words.c_str());
  draw_bar(ImGui::GetWindowDrawList(), at, {room, px(16)},
           static_cast<float>(cache.used()) / static_cast<float>(std::max<uint64_t>(1, cache.capacity)), t.verify,
           t.card);
}

/// Draws one cell for each row of the tree, filled where its K/V was kept.
void draw_slots(const CacheView& cache) {
  const Theme& t = colours();
  const uint64_t rows = cache.kept + cache.dropped, cells = std::min(rows, kMostCells);
  const float pitch = px(12), size = px(10), room = ImGui::GetContentRegionAvail().x;
  const auto columns = std::max<uint64_t>(1, static_cast<uint64_t>(room / pitch));
  const uint64_t lines = (cells + columns - 1) / columns;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::InvisibleButton("Tree slots", {std::max(1.0f, room), std::max(1.0f, pitch * static_cast<float>(lines))});
  tooltip(
      "One cell a row of the shown round's pass. Filled: moved behind the text. Outlined: dropped, free for the next "
      "round.");
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (uint64_t i = 0; i < cells; ++i) {
    const ImVec2 a = {at.x + pitch * static_cast<float>(i % columns), at.y + pitch * static_cast<float>(i / columns)};
    const ImVec2 b = {a.x + size, a.y + size};
    if (i < cache.kept)
      list->AddRectFilled(a, b, t.accepted, px(2));
    else
      list->AddRect({a.x + 0.5f, a.y + 0.5f}, {b.x - 0.5f, b.y - 0.5f}, t.unreached, px(2), px(1));
  }
  if (rows > cells) label(Type::caption, t.text3, "and " + grouped(rows - cells) + " more");
}

}  // namespace

void KvPanel::draw(const ViewModel& view, CommandSink&) {
  const PanelBody body("KV body");
  const RoundsState& rounds = view.rounds;
  const auto shown = rounds.shown();
  const bool live = rounds.log->is_live();
  const ModelReady* model = live && view.model ? &*view.model : nullptr;
  if (!shown && !model) return empty_panel("No cache yet. Open a model, or watch the demo.");
  const CacheView cache = cache_view(shown.get(), model, view.context_used);
  chart_title("Context, positions", live ? "measured, after this round" : "replayed, after this round");
  if (cache.capacity > 0) {
    draw_context_bar(cache);
    pair_line("Used", grouped(cache.used()) + " of " + grouped(cache.capacity), "Positions of the K/V cache.");
  } else {
    pair_line("Used", grouped(cache.used()), "Positions of the K/V cache; the trace does not say how many there are.");
  }
  pair_line("Committed before", grouped(cache.committed), "Positions of prompt and reply before the round.");
  ImGui::Dummy({0, px(8)});
  chart_title("Rows of the pass", shown ? "round " + grouped(rounds.playback.shown + 1) : "after the first round");
  if (shown) {
    draw_slots(cache);
    pair_line("Kept", grouped(cache.kept) + " of " + grouped(cache.kept + cache.dropped),
              "The root and the accepted nodes: their K/V moved behind the text.");
    pair_line("Dropped", grouped(cache.dropped), "Nodes off the path; their slots are free for the next round.");
  }
  if (cache.slots > 0)
    pair_line("Tree slots", grouped(cache.slots), "Rows that the largest pass and its tree may have on this device.");
  if (cache.cache_bytes == 0 || view.model_state == ModelState::released) return;
  ImGui::Dummy({0, px(8)});
  chart_title("Memory", "on the device");
  pair_line("Text", bytes_text(cache.cache_bytes), "Keys and values of all positions, " + view.model->kv_type + ".");
  pair_line("Tree", bytes_text(cache.tree_bytes), "Keys and values of the tree's rows.");
  if (cache.state_bytes > 0)
    pair_line(
        "States", bytes_text(cache.state_bytes),
        "Of recurrent layers, for the points that the text can be gone back to. They do not grow with the context.");
}

}  // namespace canopy::app
