#pragma once
// A column of Compare: what it is, what it reached and what it writes, and the menu of how it decodes and with what.

#include <imgui.h>

#include <cstddef>
#include <optional>
#include <string>

#include "app/chat/message_body.h"
#include "app/compare/compare_figures.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// The menu of a column: how it decodes, and with what.
class ColumnMenu {
 public:
  /// Opens it for that column, below a point.
  void open(const ViewModel& view, size_t column, ImVec2 at);
  /// Draws it while it is open.
  void draw(const ViewModel& view, CommandSink& sink);

 private:
  void draw_ways(ComparisonColumn& column, float width);
  static void draw_sources(const ViewModel& view, ComparisonColumn& column, float width);
  void draw_subject(const ViewModel& view, ComparisonColumn& column, float width);
  void draw_ends(const ViewModel& view, CommandSink& sink, float width);

  size_t column_ = 0;
  bool opening_ = false;
  ImVec2 at_{};
  int budget_ = 16;
  std::string model_, drafter_, server_;  // as they are typed
};

/// What a column is drawn with beside its figures.
struct ColumnScene {
  const ComparedReply* reply = nullptr;  // to the shown prompt; null: none yet
  double now_ms = 0;                     // the shared clock
  bool writing = false;                  // it is the one that writes
  double longest_round = 0;              // ms
  std::optional<uint32_t> marked;        // token at which some column differs
  bool scroll = false;                   // show that token
  const char* empty_words = "";          // in place of a reply
};

class CompareColumn {
 public:
  /// Draws into the rectangle. True when its badge was pressed, to go to the token at which it differs.
  bool draw(int index, const ColumnFigures& figures, const ColumnScene& scene, ImVec2 pos, ImVec2 size);

  /// The rectangle of its name, behind which its menu lies; valid after draw().
  ImVec2 title_min() const { return title_min_; }
  bool asks_for_menu() const { return asks_for_menu_; }

 private:
  bool draw_head(const ColumnFigures& figures, ImVec2 pos, float width);
  bool draw_badge(const ColumnFigures& figures, ImVec2 right);
  void draw_reply(const ColumnFigures& figures, const ColumnScene& scene, ImVec2 pos, ImVec2 size);
  void draw_marks(ImDrawList* list, ImVec2 pos, std::optional<uint32_t> marked, bool wrong) const;
  void take(const ComparedReply& reply, double now_ms);

  /// What `shown_` was made of.
  struct Taken {
    uint64_t id = 0;
    uint32_t bytes = 0;
    size_t spans = 0;
    bool operator==(const Taken&) const = default;
  };

  MessageBody body_;
  Message shown_;  // the reply as far as the clock has come
  Taken taken_;
  ImVec2 title_min_{};
  bool asks_for_menu_ = false;
};

/// Heights of a column's parts, at 100%.
inline constexpr float kColumnHead = 136;
inline constexpr float kRoundTime = 62;

}  // namespace canopy::app
