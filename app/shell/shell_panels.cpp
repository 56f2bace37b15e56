#include "app/shell/shell_panels.h"

#include "app/charts/budget_panel.h"
#include "app/charts/calibration_panel.h"
#include "app/charts/cost_panels.h"
#include "app/charts/kv_panel.h"
#include "app/charts/statistics_panel.h"
#include "app/chat/chat_panel.h"
#include "app/chat/history_panel.h"
#include "app/shell/log_panel.h"
#include "app/timeline/round_table_panel.h"
#include "app/timeline/timeline_panel.h"
#include "app/tree/tree_panel.h"

namespace canopy::app {

std::vector<DockedPanel> make_docked_panels() {
  std::vector<DockedPanel> panels;
  // One line a panel. Of a place's tabs the first is in front.
  panels.push_back({std::make_unique<ChatPanel>(), DockPlace::left});
  panels.push_back({std::make_unique<HistoryPanel>(), DockPlace::left});
  panels.push_back({std::make_unique<TreePanel>(), DockPlace::centre});
  panels.push_back({std::make_unique<RoundTablePanel>(), DockPlace::centre});
  panels.push_back({std::make_unique<BudgetPanel>(), DockPlace::below});
  panels.push_back({std::make_unique<ResidualsPanel>(), DockPlace::below});
  panels.push_back({std::make_unique<RooflinePanel>(), DockPlace::below});
  panels.push_back({std::make_unique<StatisticsPanel>(), DockPlace::right});
  panels.push_back({std::make_unique<KvPanel>(), DockPlace::right});
  panels.push_back({std::make_unique<CalibrationPanel>(), DockPlace::right});
  panels.push_back({std::make_unique<LogPanel>(), DockPlace::right});
  panels.push_back({std::make_unique<TimelinePanel>(), DockPlace::bottom});
  return panels;
}

}  // namespace canopy::app
