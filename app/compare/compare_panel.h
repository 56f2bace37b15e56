#pragma once
// Compare: up to four ways to decode beside each other and as lanes on one clock; and the header that it shares with
// Sweep: their names, and the measurement under way.

#include <imgui.h>

#include <array>
#include <optional>
#include <span>
#include <string>

#include "app/compare/compare_column.h"
#include "app/state/view_model.h"
#include "app/ui/panel.h"

namespace canopy::app {

// What Compare and Sweep have in common: their names to switch between, and the measurement under way.

/// Draws "Compare | Sweep" at a point. Returns the x behind it.
float draw_page_names(const ViewModel& view, CommandSink& sink, ImVec2 pos);

/// Draws the buttons at the right end of the header, whose middle is at y: Start, or progress with Pause and Cancel;
/// and what closes the page. `start` is what the first button does, `start_words` what it says; it can be pressed where
/// `obstacle` is empty. Returns the x before them.
float draw_measuring(const ViewModel& view, CommandSink& sink, SweepKind kind, const ComparisonCommand& start,
                     const char* start_words, const std::string& obstacle, float left, float right, float y);

inline constexpr uint32_t kRepeatSteps[] = {1, 2, 3, 5, 7, 10, 20, 50};
inline constexpr uint32_t kTokenSteps[] = {16, 32, 64, 128, 256, 512, 1024, 2048, 4096};

/// A stepper for a whole number: minus, figure, plus. Returns the new value.
uint32_t stepper(const char* id, const char* caption, uint32_t value, std::span<const uint32_t> steps, bool enabled);
/// The width that it takes.
float stepper_width(const char* caption, const std::string& widest);

/// Why nothing can be measured now, as a sentence; empty where it can.
std::string measuring_obstacle(const ViewModel& view, bool needs_model);

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
  void draw_counts(const ViewModel& view, CommandSink& sink, float left, float right, float y);
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
