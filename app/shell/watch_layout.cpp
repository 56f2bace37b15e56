#include "app/shell/watch_layout.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "app/layout/tree_places.h"
#include "app/layout/tree_transition.h"
#include "app/shell/fixed_window.h"
#include "app/tree/flying_words.h"

namespace canopy::app {
namespace {

constexpr double kSlideSeconds = 0.16;
constexpr float kUnfoldedHeight = 300;

}  // namespace

void WatchLayout::draw_numbers(const ViewModel& view, CommandSink& sink, const WatchTree::Parts& parts) {
  source_.update(view);
  if (!source_.done()) keep_drawing(kSlideSeconds);
  const ImVec2 origin = ImGui::GetWindowPos();
  const auto pos = [&](const ImVec4& part) { return ImVec2(origin.x + part.x, origin.y + part.y); };
  if (parts.numbers.w > 0)
    draw_watch_numbers(view, source_.numbers(), pos(parts.numbers), {parts.numbers.z, parts.numbers.w}, parts.subtitles,
                       sink);
  const BudgetLine* line = source_.line();
  if (parts.budget.w <= 0 || !line) {
    unfolded_ = false;
    return;
  }
  if (const auto round = source_.round()) game_.show(*round, source_.budget());
  if (game_.asking()) unfolded_ = false;  // the chart would tell
  if (draw_budget_line(*line, pos(parts.budget), {parts.budget.z, parts.budget.w}, unfolded_, game_)) {
    unfolded_ = !unfolded_;
    unfolded_at_ = view.rounds.reduced_motion ? -1 : ImGui::GetTime();
    keep_drawing(kSlideSeconds);
  }
  const float share = ease_out(static_cast<float>((ImGui::GetTime() - unfolded_at_) / kSlideSeconds));
  const float whole = std::min(px(kUnfoldedHeight), parts.tree.w * 0.8f);
  const float height = std::floor(whole * (unfolded_ ? share : 1 - share));
  if (height < 1) return;
  draw_unfolded(view, sink, {pos(parts.budget).x, pos(parts.budget).y - height}, {parts.tree.z, height});
}

/// Draws the chart of the budget over the lower part of the tree.
void WatchLayout::draw_unfolded(const ViewModel& view, CommandSink& sink, ImVec2 pos, ImVec2 size) {
  ImGui::SetCursorScreenPos(pos);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colours().panel);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  if (ImGui::BeginChild("Unfolded", size, ImGuiChildFlags_None, ImGuiWindowFlags_NoScrollbar)) budget_.draw(view, sink);
  ImGui::EndChild();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
}

void WatchLayout::draw(const ViewModel& view, CommandSink& sink, float bar, std::vector<ScreenRegion>& regions) {
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float scale = look().scale;
  const WatchPlaces at =
      watch_places(viewport->Size.x / scale, viewport->Size.y / scale, bar / scale, view.shell.tour.shown);
  const auto place = [&](const WatchRect& part) {
    const ImVec2 pos = {viewport->Pos.x + px(part.x), viewport->Pos.y + px(part.y)};
    return std::pair(pos, ImVec2{px(part.x + part.width) - px(part.x), px(part.y + part.height) - px(part.y)});
  };
  const std::pair<std::string_view, const WatchRect*> named[] = {
      {"Watch chat", &at.chat}, {"Numbers", &at.numbers},    {"Caption", &at.caption},  {"Tree", &at.tree},
      {"Legend", &at.legend},   {"Budget line", &at.budget}, {strip_.name(), &at.strip}};
  for (const auto& [name, part] : named)
    if (part->shown()) regions.push_back({name, place(*part).first, place(*part).second});
  if (at.chat.shown()) {
    const auto [pos, size] = place(at.chat);
    draw_fixed("Watch chat", pos, size, colours().panel, [&] { chat_.draw(view, sink); });
  }
  // Numbers, caption, tree, legend and budget are one window, so that the keys of the tree work on all of them.
  const float top = at.numbers.shown() ? at.numbers.y : at.caption.y;
  const WatchRect& last = at.budget.shown() ? at.budget : at.legend.shown() ? at.legend : at.tree;
  const auto [pos, size] = place({at.tree.x, top, at.tree.width, last.y + last.height - top});
  const auto part_of = [&](const WatchRect& part) {
    return part.shown() ? ImVec4(0, px(part.y) - px(top), px(part.width), px(part.height)) : ImVec4(0, 0, 0, 0);
  };
  const WatchTree::Parts parts = {part_of(at.numbers), part_of(at.caption), part_of(at.tree),
                                  part_of(at.legend),  part_of(at.budget),  at.subtitles};
  if (at.tree.shown())
    draw_fixed(tree_.name(), pos, size, colours().back, [&] {
      tree_.draw(view, sink, parts);
      draw_numbers(view, sink, parts);
    });
  if (const auto end =
          at.chat.shown() && at.tree.shown() && !view.rounds.reduced_motion ? chat_.text_end(view) : std::nullopt)
    draw_flying_words(ImGui::GetForegroundDrawList(), tree_.canvas(), view.rounds.playback, *end);
  if (at.strip.shown()) {
    const auto [strip_pos, strip_size] = place(at.strip);
    draw_fixed(strip_.name(), strip_pos, strip_size, colours().panel, [&] { strip_.draw(view, sink); });
  }
  if (!view.shell.tour.shown) return;
  const auto corners = [&](const WatchRect& part) {
    const auto [from, room] = place(part);
    return part.shown() ? ImVec4(from.x, from.y, from.x + room.x, from.y + room.y) : ImVec4(0, 0, 0, 0);
  };
  draw_tour(view, sink, {corners(at.chat), corners(at.tree), corners(at.numbers), {}, {}, {}});
}

/// Finishes the places with those of the tree: of the accepted path and of all its words.
void WatchLayout::draw_tour(const ViewModel& view, CommandSink& sink, TourPlaces places) {
  const TreeCanvas& tree = tree_.canvas();
  if (tree.shown().record && !tree.geometry().nodes.empty()) {
    const TreeModel& model = tree.shown().model;
    const TreeGeometry& geometry = tree.geometry();
    places.path = tree.on_screen(path_places(model, geometry, look().scale));
    places.pills = tree.on_screen(path_pills(model, geometry, look().scale));
    places.words = tree.on_screen(other_words(model, geometry, look().scale));
  }
  tour_.draw(view, sink, places, tour_facts());
}

TourFacts WatchLayout::tour_facts() const {
  const ShownTree& shown = tree_.canvas().shown();
  TourFacts facts;
  if (!shown.record) return facts;
  const TreeModel& tree = shown.model;
  facts.guesses = tree.size() - 1 - (tree.bonus ? 1 : 0);
  facts.right = tree.counted(NodeFate::accepted);
  facts.emitted = static_cast<uint32_t>(shown.record->emitted.size());
  if (tree.bonus) facts.own = shown.labels[*tree.bonus];
  for (const uint32_t node : tree.path) {
    const auto children = tree.children(node);
    if (children.empty() || tree.next_on_path(node) == tree.bonus || tree.on_path(children.front())) continue;
    facts.favourite = shown.labels[children.front()];
    facts.taken = shown.labels[tree.next_on_path(node)];
    break;
  }
  if (const auto chain = chain_estimate(*shown.record, tree)) {
    facts.chain = chain->emitted;
    facts.chain_at_least = chain->at_least;
  }
  const WatchNumbers& numbers = source_.numbers();
  if (numbers.tokens.shown) facts.tokens_per_pass = numbers.tokens.value;
  if (numbers.cost.shown && numbers.plain_tokens > 0) {
    char words[32];
    std::snprintf(words, sizeof words, numbers.plain_tokens < 9.95 ? "%.1f" : "%.0f", numbers.plain_tokens);
    facts.plain_tokens = words;
    facts.slower = numbers.plain_tokens > numbers.tokens_per_pass;
  }
  return facts;
}

}  // namespace canopy::app
