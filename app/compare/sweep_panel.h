#pragma once
// Sweep: many prompts, widths and repeats; the chart of what was measured, and what others measured elsewhere beside
// it.

#include <optional>
#include <string>
#include <vector>

#include "app/compare/compare_figures.h"
#include "app/ui/panel.h"

namespace canopy::app {

class SweepPanel : public Panel {
 public:
  const char* name() const override { return "Sweep"; }
  void draw(const ViewModel& view, CommandSink& sink) override;

 private:
  /// What `shown_` was made of.
  struct Made {
    const MeasuredPlan* plan = nullptr;
    uint64_t id = 0, changes = 0;
    std::string file;
    uint32_t baseline = 0;
    std::vector<const Sweep*> layers;
    bool operator==(const Made&) const = default;
  };
  void refresh(const ComparisonState& state);
  void draw_header(const ViewModel& view, CommandSink& sink, ImVec2 pos, ImVec2 size);
  void draw_setup(const ViewModel& view, CommandSink& sink, float width);
  void draw_files(const ViewModel& view, CommandSink& sink, float width);
  void draw_head(const ViewModel& view, CommandSink& sink, float width);
  void draw_result(const ViewModel& view, CommandSink& sink, float width);

  SweepView shown_;
  std::optional<Made> made_;
  bool ratios_ = false;  // the chart shows ratios to the baseline
  std::string path_;     // as it is typed
};

}  // namespace canopy::app
