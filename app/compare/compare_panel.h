#pragma once
// Compare: up to four ways to decode beside each other on one clock.

#include <array>
#include <optional>
#include <string>

#include "app/compare/column_menu.h"
#include "app/compare/compare_column.h"
#include "app/panels/panel.h"

namespace canopy::app {

class ComparePanel : public Panel {
 public:
  const char* name() const override { return "Compare"; }
  void draw(const ViewModel& view, CommandSink& sink) override;

  const CompareFigures& figures() const { return figures_; }

 private:
  /// What `figures_` was made of.
  struct Made {
    uint64_t plan = 0, changes = 0;
    uint32_t prompt = 0;
    std::vector<ComparisonColumn> columns;
    bool operator==(const Made&) const = default;
  };
  void refresh(const ComparisonState& state);
  void draw_header(const ViewModel& view, CommandSink& sink, ImVec2 pos, ImVec2 size);
  void draw_prompt(const ViewModel& view, CommandSink& sink, ImVec2 pos, float width);
  void draw_counts(const ViewModel& view, CommandSink& sink, float right, float y);
  void draw_verdict(const ComparisonState& state, float left, float end, float middle) const;
  void draw_columns(const ViewModel& view, ImVec2 pos, ImVec2 size);

  std::array<CompareColumn, kMostColumns> columns_;
  ColumnMenu menu_;
  CompareFigures figures_;
  std::optional<Made> made_;
  std::string prompt_;  // as it is typed
  bool typing_ = false;
  std::optional<uint32_t> marked_;  // token at which columns differ
  int scroll_frames_ = 0;           // the columns go to the marked token
};

}  // namespace canopy::app
