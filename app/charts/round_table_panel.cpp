#include "app/charts/round_table_panel.h"

#include <imgui.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/state/chat_update.h"
#include "app/ui/widgets.h"

namespace canopy::app {
namespace {

constexpr float kTableRow = 26, kHead = 32, kTableMargin = 14;

struct Column {
  const char* title;
  const char* about;
  std::string (*cell)(const RoundSummary& round);
  float from_width = 0;  // least width of the panel, at 100%, at which the column is shown
  bool of_mixtures = false;
  bool of_text = false;
};

/// What decides which columns there are.
struct TableFit {
  float width = 0;
  bool mixture = false;  // the model has experts
  bool text = false;     // some guesses are from the text

  bool shows(const Column& column) const {
    return width >= px(column.from_width) && (mixture || !column.of_mixtures) && (text || !column.of_text);
  }
};

double tokens_per_second(const RoundSummary& round) {
  return round.ms.total() > 0 ? 1000 * round.emitted / round.ms.total() : 0;
}

std::string time_error(const RoundSummary& round) {
  const double predicted = round.predicted.total();
  return predicted > 0 ? signed_percent(round.ms.total() / predicted - 1) : "\u2013";
}

/// "drafter", "text 14", "both 14": the number of the text's last tokens that stood there before.
std::string from_words(const RoundSummary& round) {
  if (round.sources == 0) return "\u2013";
  if (round.sources == kFromDflash) return "drafter";
  return (round.sources == kFromSuffix ? "text " : "both ") + grouped(round.match);
}

constexpr Column kColumns[] = {
    {"mode", "How the pass was guessed", [](const RoundSummary& r) { return std::string(mode_title(r.shape)); }},
    {"from",
     "Who guessed: the drafter, the text itself or both; and how many of the text's last tokens stood there before",
     from_words, 640, false, true},
    {"guesses", "Guesses that the pass checked, N in papers; it has one row more, the root",
     [](const RoundSummary& r) { return grouped(r.width - std::min(r.width, 1u)); }},
    {"accepted", "Guesses that became text", [](const RoundSummary& r) { return grouped(r.accepted); }},
    {"emitted", "Tokens that the pass brought, the big model's own included",
     [](const RoundSummary& r) { return grouped(r.emitted) + (r.cut ? "*" : ""); }},
    {"guess ms", "Milliseconds of the drafter's pass, measured",
     [](const RoundSummary& r) { return millisecond_figure(r.ms.draft); }, 520},
    {"check ms", "Milliseconds of the big model's run, measured",
     [](const RoundSummary& r) { return millisecond_figure(r.ms.verify); }, 520},
    {"pass ms", "Milliseconds of the whole pass, measured",
     [](const RoundSummary& r) { return millisecond_figure(r.ms.total()); }},
    {"time error", "Measured over predicted time, less 1", time_error, 640},
    {"experts", "Different experts of a layer that the pass went through, on average over the layers",
     [](const RoundSummary& r) {
       return r.distinct_experts > 0 ? fixed(r.distinct_experts, 1) : std::string("\u2013");
     },
     520, true},
    {"tok/s", "Tokens emitted over the pass's time", [](const RoundSummary& r) { return speed(tokens_per_second(r)); }},
};

TableFit fit_of(const RoundLog& log, float width) {
  return {width, log.summary(log.rounds() - 1).distinct_experts > 0, log.statistics().has_text_drafts()};
}

/// The right ends of the columns that fit, the round's number first.
std::vector<float> right_ends(const TableFit& fit) {
  size_t count = 1;
  for (const Column& column : kColumns) count += fit.shows(column) ? 1 : 0;
  const float first = px(64), pitch = (fit.width - first - px(kTableMargin)) / static_cast<float>(count - 1);
  std::vector<float> ends = {first};
  while (ends.size() < count) ends.push_back(ends.back() + pitch);
  return ends;
}

void draw_cell(ImVec2 right_middle, Type type, Colour colour, const std::string& words) {
  draw_text_middle(ImGui::GetWindowDrawList(), right_middle.x - text_size(type, words).x, right_middle.y, type, colour,
                   words);
}

void draw_head(ImVec2 at, const TableFit& fit) {
  const std::vector<float> ends = right_ends(fit);
  const float middle = at.y + px(kHead) * 0.5f;
  draw_cell({at.x + ends[0], middle}, Type::caption, colours().text3, "pass");
  size_t place = 1;
  for (const Column& column : kColumns) {
    if (!fit.shows(column)) continue;
    draw_cell({at.x + ends[place], middle}, Type::caption, colours().text3, column.title);
    ImGui::SetCursorScreenPos({at.x + ends[place - 1], at.y});
    ImGui::InvisibleButton(column.title, {ends[place] - ends[place - 1], px(kHead)});
    tooltip(column.about);
    ++place;
  }
  ImGui::GetWindowDrawList()->AddLine({at.x, at.y + px(kHead) - 1}, {at.x + fit.width, at.y + px(kHead) - 1},
                                      colours().line);
}

/// Draws the lines between rows where replies begin.
void draw_begins(const RoundLog& log, size_t round, ImVec2 at, float width) {
  const std::vector<ReplySummary>& replies = log.replies();
  const size_t reply = log.summary(round).reply;
  if (round == 0 || reply >= replies.size() || replies[reply].first_round != round) return;
  ImGui::GetWindowDrawList()->AddLine(at, {at.x + width, at.y}, colours().text3);
}

void draw_row(const RoundLog& log, size_t index, bool shown, ImVec2 at, const TableFit& fit,
              std::span<const float> ends) {
  const Theme& t = colours();
  const RoundSummary& round = log.summary(index);
  const float middle = at.y + px(kTableRow) * 0.5f;
  const Type type = shown ? Type::mono_semibold : Type::mono;
  draw_begins(log, index, at, fit.width);
  draw_cell({at.x + ends[0], middle}, type, shown ? t.text : t.text2, grouped(index + 1));
  size_t place = 1;
  for (const Column& column : kColumns) {
    if (!fit.shows(column)) continue;
    const bool accepted = std::string_view(column.title) == "accepted" && round.accepted > 0;
    draw_cell({at.x + ends[place++], middle}, type, accepted ? t.accepted_text : t.text, column.cell(round));
  }
}

void tell(const RoundLog& log, size_t index) {
  if (!ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip)) return;
  const std::shared_ptr<const RoundRecord> record = log.round(index);
  std::string words = !record                         ? "Its tree was let go for memory."
                      : record->choice.reason.empty() ? "All passes have as many guesses; nothing was chosen."
                                                      : in_plain_words(record->choice.reason);
  if (log.summary(index).cut) words += "\n* The reply ended inside the tree.";
  tooltip(words.c_str());
}

}  // namespace

void RoundTablePanel::draw(const ViewModel& view, CommandSink& sink) {
  if (view.rounds.log->rounds() == 0) return empty_panel("No pass yet. Send a message or watch the demo.");
  const ImVec2 at = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  const float width = room.x - ImGui::GetStyle().ScrollbarSize;
  draw_head(at, fit_of(*view.rounds.log, width));
  ImGui::SetCursorScreenPos({at.x, at.y + px(kHead)});
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colours().panel);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  const bool open = ImGui::BeginChild("Table", {room.x, std::max(px(kTableRow), room.y - px(kHead))},
                                      ImGuiChildFlags_NavFlattened, ImGuiWindowFlags_AlwaysVerticalScrollbar);
  ImGui::PopStyleVar(3);
  ImGui::PopStyleColor();
  if (open) draw_rows(view.rounds, width, sink);
  ImGui::EndChild();
}

void RoundTablePanel::draw_rows(const RoundsState& rounds, float width, CommandSink& sink) {
  const RoundLog& log = *rounds.log;
  const size_t count = log.rounds(), shown = rounds.playback.shown;
  const TableFit fit = fit_of(log, width);
  const std::vector<float> ends = right_ends(fit);
  if (kept_ != shown || kept_of_ > count) {  // only when it changes, or the user could not scroll away from it
    const float top = static_cast<float>(shown) * px(kTableRow), height = ImGui::GetWindowHeight();
    if (top < ImGui::GetScrollY() || top + px(kTableRow) > ImGui::GetScrollY() + height)
      ImGui::SetScrollY(std::max(0.0f, top - height * 0.5f));
  }
  kept_ = shown;
  kept_of_ = count;
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(count), px(kTableRow));
  const ImVec2 first = ImGui::GetCursorScreenPos();
  clipper.IncludeItemByIndex(static_cast<int>(std::min(shown, count - 1)));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const auto index = static_cast<size_t>(i);
      const ImVec2 at = {first.x, first.y + static_cast<float>(i) * px(kTableRow)};
      ImGui::SetCursorScreenPos(at);
      ImGui::PushID(i);
      if (ImGui::InvisibleButton("Show round", {width, px(kTableRow)}, ImGuiButtonFlags_EnableNav))
        sink.post(RoundsCommand(ShowRound{index}));
      const bool hovered = ImGui::IsItemHovered();
      const Colour fill = index == shown ? colours().accent_bg : hovered ? colours().raised : 0;
      if (fill) ImGui::GetWindowDrawList()->AddRectFilled(at, {at.x + width, at.y + px(kTableRow)}, fill);
      tell(log, index);
      draw_row(log, index, index == shown, at, fit, ends);
      ImGui::PopID();
    }
  }
}

}  // namespace canopy::app
