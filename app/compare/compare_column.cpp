#include "app/compare/compare_column.h"

#include <imgui_stdlib.h>

#include <algorithm>
#include <cmath>

#include "app/chat/reply.h"
#include "app/state/models.h"
#include "app/ui/bar_menus.h"
#include "app/ui/widgets.h"

namespace canopy::app {
namespace {

constexpr const char* kColumnMenu = "Column menu";
constexpr float kMenuWidth = 320;

void menu_heading(const char* words) {
  ImGui::Dummy({0, px(4)});
  label(Type::caption_semibold, colours().text3, words);
}

/// A text box over the whole width. True when what was typed is to be taken.
bool typed(const char* id, const char* hint, std::string& text, float width) {
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_Border, colours().ctl);
  ImGui::SetNextItemWidth(width);
  ImGui::InputTextWithHint(id, hint, &text, ImGuiInputTextFlags_ElideLeft);
  const bool done = ImGui::IsItemDeactivatedAfterEdit();
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  return done;
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n"), end = text.find_last_not_of(" \t\r\n");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

}  // namespace

void ColumnMenu::open(const ViewModel& view, size_t column, ImVec2 at) {
  column_ = column;
  at_ = at;
  opening_ = true;
  const ComparisonColumn& asked = view.comparison.compare_setup.columns[column];
  budget_ = static_cast<int>(asked.way.budget > 0 ? asked.way.budget : 16);
  model_ = asked.model;
  drafter_ = asked.drafter;
  server_ = asked.server;
}

void ColumnMenu::draw_ways(ComparisonColumn& column, float width) {
  const WayToDecode ways[] = {{DecodeMode::ar, 0},
                              {DecodeMode::chain, 0},
                              {DecodeMode::tree, static_cast<uint32_t>(budget_)},
                              {DecodeMode::adaptive, 0}};
  const char* ids[] = {"Plain", "Chain", "Tree", "Adaptive"};
  menu_heading("Way to decode");
  for (size_t i = 0; i < std::size(ways); ++i) {
    const bool on = column.way.mode == ways[i].mode;
    if (menu_row(ids[i], way_title(ways[i]), "", on, true, width)) {
      const DraftSources asked = column.way.sources;
      column.way = ways[i];
      if (column.way.mode != DecodeMode::ar) column.way.sources = asked;
    }
    tooltip(way_subtitle(ways[i]).c_str());
  }
  if (column.way.mode != DecodeMode::tree) return;
  ImGui::SetNextItemWidth(width);
  if (ImGui::SliderInt("##budget", &budget_, 1, static_cast<int>(kMostBudget), "%d guesses",
                       ImGuiSliderFlags_Logarithmic | ImGuiSliderFlags_AlwaysClamp))
    column.way.budget = static_cast<uint32_t>(budget_);
}

/// Where the column's guesses come from. Earlier replies are none of a measurement: what is kept here is nowhere else.
void ColumnMenu::draw_sources(const ViewModel& view, ComparisonColumn& column, float width) {
  if (column.way.mode == DecodeMode::ar) return;
  menu_heading(kSourcesHeading);
  for (const SourceRow& row : {kFromDrafterRow, kFromTextRow, kRecycledRow}) {
    const bool possible = row.source != kFromDflash || !column.is_loaded() || view.has_drafter();
    const bool on = possible && (column.way.sources & row.source) != 0;
    if (menu_row(row.id, row.title, "", on, possible, width)) column.way.sources ^= row.source;
    term_tooltip(row.term, possible ? "" : "None is loaded.");
  }
}

void ColumnMenu::draw_subject(const ViewModel& view, ComparisonColumn& column, float width) {
  menu_heading("Device");
  if (menu_row("Loaded", "That of the loaded model", "", column.device.empty(), true, width)) column.device.clear();
  for (const DeviceChoice& device : view.devices) {
    ImGui::PushID(device.selector.c_str());
    const std::string name = without_brackets(device.name);
    if (menu_row(name.c_str(), elided(Type::base, name, width - px(48)), "", column.device == device.selector,
                 device.usable, width))
      column.device = device.selector;
    ImGui::PopID();
  }
  menu_heading("Model and drafter, where they are other ones");
  if (typed("##model", "Path of another model", model_, width)) column.model = trimmed(model_);
  if (typed("##drafter", "Path of another drafter", drafter_, width)) column.drafter = trimmed(drafter_);
  menu_heading("Or a server: a Canopy, or speed and text alone");
  if (typed("##server", "http://127.0.0.1:8000/v1", server_, width)) {
    column.server = trimmed(server_);
    if (!column.server.empty()) {
      column.way = {};
      column.device.clear();
      column.drafter.clear();
    }
  }
}

void ColumnMenu::draw_ends(const ViewModel& view, CommandSink& sink, float width) {
  const CompareSetup& setup = view.comparison.compare_setup;
  menu_heading("Columns");
  CompareSetup next = setup;
  if (menu_row("Add a column", "Add a column like this", "", false, setup.columns.size() < kMostColumns, width)) {
    next.columns.insert(next.columns.begin() + static_cast<std::ptrdiff_t>(column_), setup.columns[column_]);
    sink.post(ComparisonCommand(SetCompareSetup{next}));
    ImGui::CloseCurrentPopup();
  }
  if (menu_row("Remove this column", "Remove this column", "", false, setup.columns.size() > kLeastColumns, width)) {
    next.columns.erase(next.columns.begin() + static_cast<std::ptrdiff_t>(column_));
    sink.post(ComparisonCommand(SetCompareSetup{next}));
    ImGui::CloseCurrentPopup();
  }
}

void ColumnMenu::draw(const ViewModel& view, CommandSink& sink) {
  const CompareSetup& setup = view.comparison.compare_setup;
  if (column_ >= setup.columns.size()) return;
  if (opening_) ImGui::OpenPopup(kColumnMenu);
  opening_ = false;
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float width = px(kMenuWidth);
  const float x = std::min(at_.x, viewport->Pos.x + viewport->Size.x - width - px(24));
  ImGui::SetNextWindowPos({std::max(viewport->Pos.x, x), at_.y});
  ImGui::SetNextWindowSizeConstraints(
      {0, 0}, {width + px(16), std::max(px(80), viewport->Pos.y + viewport->Size.y - at_.y - px(8))});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(8), px(8)});
  if (ImGui::BeginPopup(kColumnMenu)) {
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, px(3)});
    ComparisonColumn column = setup.columns[column_];
    draw_ways(column, width);
    draw_sources(view, column, width);
    draw_subject(view, column, width);
    if (!(column == setup.columns[column_])) {
      CompareSetup next = setup;
      next.columns[column_] = column;
      sink.post(ComparisonCommand(SetCompareSetup{next}));
    } else {
      draw_ends(view, sink, width);
    }
    ImGui::PopStyleVar();
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

namespace {

constexpr float kInset = 16;
constexpr float kBarHeight = 14;
constexpr float kLeastForRoundTime = 330;  // height of a column below which its text needs the room

std::string badge_words(const ColumnFigures& figures) {
  const std::string at = figures.differs_at ? " at " + grouped(*figures.differs_at + 1) : "";
  switch (figures.text) {
    case ColumnText::reference: return "reference";
    case ColumnText::same: return "same text";
    case ColumnText::differs:
    case ColumnText::wrong: return "differs" + at;
    case ColumnText::unknown: break;
  }
  return {};
}

const char* badge_about(ColumnText text) {
  switch (text) {
    case ColumnText::reference: return "The text that the others are compared with";
    case ColumnText::same: return "Token for token what the reference wrote";
    case ColumnText::differs: return "It writes with another model, device or server, so it may. Shows the first token";
    case ColumnText::wrong:
      return "The same model on the same device must write the same text: report this device. Shows the first token";
    case ColumnText::unknown: break;
  }
  return nullptr;
}

/// The meaning of a large figure on hover; it needs no line to be asked.
void tooltip_area(const char* term, ImVec2 a, ImVec2 b, const char* more) {
  ImGui::SetCursorScreenPos(a);
  ImGui::InvisibleButton(term, {b.x - a.x, b.y - a.y});
  term_tooltip(term, more);
}

/// A figure under the head of a column.
struct Fact {
  const char* term;  // of app/state/words.h
  const char* caption;
  const char* shorter;  // where the caption has no room
  const std::string* figure;
  float share;       // of the column's width
  const char* more;  // how the figure came about
};

void draw_fact(ImDrawList* list, ImVec2 at, float width, const Fact& fact) {
  const std::string caption = first_fitting(Type::caption, {fact.caption, fact.shorter}, width);
  draw_text(list, at, Type::caption, colours().text3, caption);
  draw_text(list, {at.x, at.y + px(15)}, Type::mono, colours().text,
            elided(Type::mono, fact.figure->empty() ? "\u2013" : *fact.figure, width));
  term_area(fact.term, at, {at.x + text_size(Type::caption, caption).x, at.y + px(14)}, fact.more);
}

void draw_facts(ImDrawList* list, const ColumnFigures& figures, ImVec2 pos, float width) {
  const Fact facts[] = {
      {"Tokens per pass", "Tokens per pass", "Per pass", &figures.tau, 0.33f, "Tokens of all passes / passes."},
      {"Pass", "Passes", "Passes", &figures.rounds, 0.21f, "Of all prompts and repeats of this column."},
      {"Width", "Width", "Width", &figures.width, 0.19f, "The mean of all passes, the root included."},
      {"Time of a pass", "Pass, ms", "ms", &figures.round_ms, 0.27f, "In milliseconds, the mean of all passes."},
  };
  // Where their captions have no room beside each other, the count of passes goes first, then the width.
  bool shown[] = {true, true, true, true};
  float shares = 1;
  const auto room_of = [&](const Fact& fact) { return width * fact.share / shares - px(6); };
  for (const size_t next : {size_t{1}, size_t{2}}) {
    bool fits = true;
    for (size_t i = 0; i < std::size(facts); ++i)
      fits = fits && (!shown[i] || text_size(Type::caption, facts[i].shorter).x <= room_of(facts[i]));
    if (fits) break;
    shown[next] = false;
    shares -= facts[next].share;
  }
  float x = pos.x;
  for (size_t i = 0; i < std::size(facts); ++i) {
    if (!shown[i]) continue;
    draw_fact(list, {std::floor(x), pos.y}, room_of(facts[i]), facts[i]);
    x += width * facts[i].share / shares;
  }
}

void draw_caret(ImDrawList* list, ImVec2 end) {
  list->AddRectFilled({end.x + px(1), end.y + px(3)}, {end.x + px(8), end.y + px(18)}, colours().accent);
}

/// Draws the mean round by stage; all columns have one scale.
void draw_round_time(const ColumnFigures& figures, double longest, ImVec2 pos, float width) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const RoundTimes& ms = figures.round;
  const double rest = ms.build + ms.walk + ms.commit + ms.other;
  const struct {
    const char* word;
    double ms;
    Colour colour;
  } stages[] = {{"guess", ms.draft, t.draft}, {"check", ms.verify, t.verify}, {"rest", rest, t.rest}};
  const float middle = pos.y + px(9);
  const char* title = "Time of a pass";
  draw_text_middle(list, pos.x, middle, Type::caption_semibold, t.text, title);
  const float words_end = pos.x + text_size(Type::caption_semibold, title).x, left = words_end + px(12);
  ImGui::PushID("stages");
  term_area(title, {pos.x, pos.y}, {words_end, pos.y + px(17)},
            "Guess: the next tokens are guessed. Check: the big model checks all guesses at once. Rest: all else.");
  ImGui::PopID();
  float x = pos.x + width;
  for (int i = 2; i >= 0 && figures.measured; --i) {
    const auto& stage = stages[i];
    if (stage.ms <= 0) continue;
    const std::string figure = fixed(stage.ms, 2);
    const float wide =
        px(14) + text_size(Type::caption, stage.word).x + px(5) + text_size(Type::mono_caption, figure).x;
    if (x - wide < left) break;
    x -= wide;
    list->AddRectFilled({x, middle - px(4)}, {x + px(8), middle + px(4)}, stage.colour);
    draw_text_middle(list, x + px(14), middle, Type::caption, t.text3, stage.word);
    draw_text_middle(list, x + px(19) + text_size(Type::caption, stage.word).x, middle, Type::mono_caption, t.text2,
                     figure);
    x -= px(12);
  }
  const float top = pos.y + px(24);
  list->AddRectFilled({pos.x, top}, {pos.x + width, top + px(kBarHeight)}, t.raised);
  if (!figures.measured || longest <= 0) return;
  float from = pos.x;
  for (const auto& stage : stages) {
    const float to = from + width * static_cast<float>(stage.ms / longest);
    if (to - from >= 1)
      list->AddRectFilled({from, top}, {std::max(from + 1, to - px(1)), top + px(kBarHeight)}, stage.colour);
    from = to;
  }
}

}  // namespace

bool CompareColumn::draw_badge(const ColumnFigures& figures, ImVec2 right) {
  const std::string words = badge_words(figures);
  if (words.empty()) return false;
  const Theme& t = colours();
  const bool bad = figures.text == ColumnText::wrong || figures.text == ColumnText::differs;
  const bool same = figures.text == ColumnText::same;
  const float sign = same || bad ? px(14) : 0, height = px(20);
  const float width = text_size(Type::caption, words).x + px(14) + sign;
  const ImVec2 a = {right.x - width, right.y}, b = {right.x, right.y + height};
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(a, b, same ? t.accent_bg : bad ? t.rejected_bg : t.raised, px(4));
  const float middle = a.y + height * 0.5f;
  if (same) draw_icon(list, Icon::check, {a.x + px(12), middle}, px(10), t.accent_text);
  if (bad) draw_cross(list, {a.x + px(12), middle}, px(3.5f), t.rejected_text, px(1.5f));
  draw_text_middle(list, a.x + px(7) + sign, middle, Type::caption,
                   same  ? t.accent_text
                   : bad ? t.rejected_text
                         : t.text2,
                   words);
  ImGui::SetCursorScreenPos(a);
  const bool pressed = ImGui::InvisibleButton("Badge", {width, height}, ImGuiButtonFlags_EnableNav);
  if (const char* about = badge_about(figures.text)) tooltip(about);
  return pressed && bad;
}

bool CompareColumn::draw_head(const ColumnFigures& figures, ImVec2 pos, float width) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float x = pos.x + px(kInset), right = pos.x + width - px(kInset);
  const std::string badge = badge_words(figures);
  const float badge_room = badge.empty() ? 0 : text_size(Type::caption, badge).x + px(36);
  // The name opens the menu of what the column is.
  title_min_ = {x - px(6), pos.y + px(10)};
  const std::string way = figures.name.substr(0, figures.name.find(" ("));
  std::string name = figures.name;
  if (way != name) name = first_fitting(Type::title, {name, way + " (\u2026)", way}, right - badge_room - x - px(28));
  const float name_width = text_size(Type::title, name).x + px(14);
  ImGui::SetCursorScreenPos(title_min_);
  asks_for_menu_ = ImGui::InvisibleButton("Column", {name_width + px(14), px(26)}, ImGuiButtonFlags_EnableNav);
  if (ImGui::IsItemHovered())
    list->AddRectFilled(ImGui::GetItemRectMin(), ImGui::GetItemRectMax(), mix(t.panel, t.text, kHoverMix), px(4));
  tooltip(name == figures.name ? "Choose what this column is"
                               : (figures.name + "\nChoose what this column is").c_str());
  const float middle = pos.y + px(23);
  draw_text_middle(list, x, middle, Type::title, t.text, name);
  draw_icon(list, Icon::chevron, {x + name_width, middle}, px(14), t.text3);
  const float about_x = x + name_width + px(12);
  std::string about = figures.measured ? figures.about : "";
  if (!figures.place.empty()) about += (about.empty() ? "" : ", ") + figures.place;
  if (about.empty()) about = figures.about;
  if (right - badge_room - about_x > px(40))
    draw_text_middle(list, about_x, middle, Type::caption, t.text3,
                     elided(Type::caption, about, right - badge_room - about_x));
  const bool pressed = draw_badge(figures, {right, pos.y + px(13)});
  // Figures.
  const float base = pos.y + px(40);
  const Type key = width < px(250) ? Type::ratio : Type::key_figure;
  const std::string speed_figure = figures.measured ? figures.speed : "\u2013";
  draw_text_middle(list, x, base + px(20), key, figures.measured ? t.text : t.text3, speed_figure);
  const float ratio_width = text_size(Type::ratio, figures.ratio).x;
  const float after = x + text_size(key, speed_figure).x + px(8);
  const std::string unit = first_fitting(
      Type::caption, {figures.speed_error.empty() ? "tok/s" : figures.speed_error + " tok/s", "tok/s", ""},
      right - ratio_width - px(8) - after);
  draw_text_middle(list, after, base + px(27), Type::caption, t.text2, unit);
  if (figures.measured && !unit.empty())
    tooltip_area("Speed", {x, base}, {after + text_size(Type::caption, unit).x, base + px(36)},
                 "The mean of all prompts and repeats. \u00b1 is the standard deviation of the repeats.");
  const bool doubtful = !figures.ratio_doubt.empty();
  draw_text_middle(list, right - ratio_width, base + px(18), Type::ratio,
                   figures.fastest ? t.accent_text
                   : doubtful      ? t.text3
                                   : t.text,
                   figures.ratio);
  if (!figures.ratio.empty()) {
    const std::string about =
        "Compared with the reference column." + (doubtful ? "\n" + figures.ratio_doubt : std::string());
    tooltip_area("Ratio", {right - ratio_width, base}, {right, base + px(32)}, about.c_str());
  }
  // The error stays clear of the speed's unit beside it.
  const float error_room = right - px(8) - after - text_size(Type::caption, unit).x;
  const std::string& error = figures.ratio_error;
  const std::string shown_error = doubtful
                                      ? first_fitting(Type::mono_caption,
                                                      {error + (error.empty() ? "no error known" : ", cannot tell"),
                                                       error.empty() ? "no error" : "cannot tell", error, ""},
                                                      error_room)
                                      : error;
  draw_text(list, {right - text_size(Type::mono_caption, shown_error).x, base + px(32)}, Type::mono_caption, t.text3,
            shown_error);
  draw_facts(list, figures, {x, pos.y + px(92)}, right - x);
  return pressed;
}

void CompareColumn::take(const ComparedReply& reply, double now_ms) {
  const uint32_t bytes =
      reply.message.writing ? static_cast<uint32_t>(reply.message.text.size()) : reply.text_at(now_ms);
  const Taken now{reply.message.id, bytes, reply.message.spans.size()};
  if (now == taken_) return;
  taken_ = now;
  shown_ = reply.message;
  cut_text(shown_, bytes);
}

void CompareColumn::draw_marks(ImDrawList* list, ImVec2 pos, std::optional<uint32_t> marked, bool wrong) const {
  if (!marked || *marked >= shown_.spans.size()) return;
  const TokenSpan& span = shown_.spans[*marked];
  const Colour colour = wrong ? colours().rejected : colours().text2;
  body_.rects(pos, span.begin, std::max(span.begin + 1, span.end), [&](ImVec2 a, ImVec2 b) {
    list->AddRect({a.x - px(2), a.y}, {b.x + px(2), b.y + px(1)}, colour, px(3), px(1.5f));
  });
}

void CompareColumn::draw_reply(const ColumnFigures& figures, const ColumnScene& scene, ImVec2 pos, ImVec2 size) {
  ImGui::SetCursorScreenPos(pos);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(kInset), px(10)});
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, 0);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colours().panel);
  if (ImGui::BeginChild("Text", size, ImGuiChildFlags_AlwaysUseWindowPadding, ImGuiWindowFlags_None)) {
    const float width = ImGui::GetContentRegionAvail().x;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImDrawList* list = ImGui::GetWindowDrawList();
    if (scene.reply == nullptr) {
      label(Type::secondary, colours().text3, elided(Type::secondary, scene.empty_words, width));
    } else {
      take(*scene.reply, scene.now_ms);
      body_.layout(shown_, width);
      body_.draw_surfaces(list, at);
      draw_source_marks(list, shown_, body_, at);
      const ImVec2 end = body_.draw_text(list, at);
      const bool unfinished = scene.writing || shown_.text.size() < scene.reply->message.text.size();
      if (unfinished) draw_caret(list, end);
      draw_marks(list, at, scene.marked, figures.text == ColumnText::wrong);
      ImGui::Dummy({width, body_.height()});
      if (scene.scroll && scene.marked && *scene.marked < shown_.spans.size()) {
        const TokenSpan& span = shown_.spans[*scene.marked];
        body_.rects(at, span.begin, std::max(span.begin + 1, span.end),
                    [&](ImVec2 a, ImVec2) { ImGui::SetScrollFromPosY(a.y - ImGui::GetWindowPos().y, 0.5f); });
      } else if (scene.writing) {
        ImGui::SetScrollHereY(1);
      }
    }
  }
  ImGui::EndChild();
  ImGui::PopStyleColor();
  ImGui::PopStyleVar(2);
}

bool CompareColumn::draw(int index, const ColumnFigures& figures, const ColumnScene& scene, ImVec2 pos, ImVec2 size) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  ImGui::PushID(index);
  list->AddRectFilled(pos, {pos.x + size.x, pos.y + size.y}, t.panel);
  if (figures.fastest) list->AddRectFilled(pos, {pos.x + size.x, pos.y + px(2)}, t.accent);
  const bool pressed = draw_head(figures, pos, size.x);
  const float rule = std::floor(pos.y + px(kColumnHead)) + 0.5f;
  list->AddLine({pos.x, rule}, {pos.x + size.x, rule}, t.line);
  const bool timed = size.y >= px(kLeastForRoundTime);
  const float text_height_left = size.y - px(kColumnHead) - px(2) - (timed ? px(kRoundTime) : 0);
  if (text_height_left > px(20))
    draw_reply(figures, scene, {pos.x, pos.y + px(kColumnHead) + px(2)}, {size.x, text_height_left});
  if (timed)
    draw_round_time(figures, scene.longest_round, {pos.x + px(kInset), pos.y + size.y - px(kRoundTime) + px(6)},
                    size.x - px(kInset) * 2);
  ImGui::PopID();
  return pressed;
}

}  // namespace canopy::app
