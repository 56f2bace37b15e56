// "Report this device": the commands to the engine, what the box shows, and the file.

#include "app/state/calibration.h"

#include <gtest/gtest.h>

#include "app/state/view_model.h"
#include "tests/app/support/scripted_engine.h"
#include "tests/app/support/time_zone.h"

namespace canopy::app {
namespace {

ViewModel view_with_device() {
  ViewModel view;
  view.devices = test::some_devices();
  view.device_selector = "1";
  return view;
}

Effects run(ViewModel& view, const ReportCommand& command) {
  return update(view, UiCommand(command));
}

DeviceReported reported() {
  DeviceReported report;
  report.json = std::make_shared<const std::string>("{}\n");
  report.device = "NVIDIA H200 (a)";
  return report;
}

TEST(ReportState, AsksForTheChosenDeviceOnceAndShowsWhatCame) {
  ViewModel view = view_with_device();
  const Effects effects = run(view, StartReport{});
  ASSERT_EQ(effects.engine.size(), 1u);
  EXPECT_EQ(std::get<ReportDevice>(effects.engine[0]).device, "1");
  EXPECT_EQ(view.report.phase, ReportState::Phase::waiting);
  EXPECT_LT(view.report.fraction(), 0);
  EXPECT_TRUE(run(view, StartReport{}).engine.empty()) << "one at a time";
  update(view, Event(ReportProgress{{"Timing passes", 3, 12}}));
  EXPECT_EQ(view.report.phase, ReportState::Phase::running);
  EXPECT_FLOAT_EQ(view.report.fraction(), 0.25f);
  update(view, Event(reported()));
  EXPECT_FALSE(view.report.busy());
  ASSERT_NE(view.report.report, nullptr);
  EXPECT_TRUE(view.report.saved.empty());
}

TEST(ReportState, IsCancelledOnceAndSaysSo) {
  ViewModel view = view_with_device();
  EXPECT_TRUE(run(view, StopReport{}).engine.empty()) << "nothing runs";
  run(view, StartReport{});
  EXPECT_EQ(run(view, StopReport{}).engine.size(), 1u);
  EXPECT_TRUE(run(view, StopReport{}).engine.empty());
  Failure failure;
  failure.kind = ErrorKind::cancelled;
  update(view, Event(failure));
  EXPECT_FALSE(view.report.busy());
  EXPECT_EQ(view.report.note, "Cancelled.");
  EXPECT_TRUE(view.cards.empty());
}

TEST(ReportState, AFailedReplyDoesNotEndItButALostDeviceDoes) {
  ViewModel view = view_with_device();
  run(view, StartReport{});
  Failure failure;
  failure.reply_id = 7;
  failure.title = "The reply could not be written";
  update(view, Event(failure));
  EXPECT_TRUE(view.report.busy());
  failure.kind = ErrorKind::device_lost;
  update(view, Event(failure));
  EXPECT_FALSE(view.report.busy());
  EXPECT_NE(view.report.note.find("The reply"), std::string::npos);
}

TEST(ReportState, WaitsForNothingThatWouldNotEnd) {
  ViewModel view;
  EXPECT_EQ(report_obstacle(view), "There is no device that can be used");
  EXPECT_TRUE(run(view, StartReport{}).engine.empty());
  view = view_with_device();
  view.model_state = ModelState::loading;
  EXPECT_EQ(report_obstacle(view), "A model is being loaded");
  view.model_state = ModelState::ready;
  view.calibration.phase = CalibrationState::Phase::running;
  EXPECT_EQ(report_obstacle(view), "A calibration is running");
  view.calibration.phase = CalibrationState::Phase::idle;
  view.models.idle_minutes = 5;
  EXPECT_TRUE(release_due_ms(view).has_value());
  run(view, StartReport{});
  EXPECT_FALSE(release_due_ms(view).has_value()) << "a model that is measured is not idle";
  view.model = test::small_model();
  EXPECT_TRUE(update(view, UiCommand(CalibrationCommand(StartCalibration{}))).engine.empty());
}

TEST(ReportState, WritesTheEnginesTextToTheTypedFile) {
  ViewModel view = view_with_device();
  EXPECT_FALSE(run(view, SaveReport{"/data/a.json"}).report.has_value()) << "there is nothing to write";
  run(view, StartReport{});
  update(view, Event(reported()));
  EXPECT_FALSE(run(view, SaveReport{""}).report.has_value());
  const auto file = run(view, SaveReport{"/data/a"}).report;
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->path, "/data/a.json");
  EXPECT_EQ(*file->text, "{}\n");
  end_save(view.report, file->path, "The disk is full.");
  EXPECT_TRUE(view.report.saved.empty());
  EXPECT_EQ(view.report.problem, "The disk is full.");
  end_save(view.report, file->path, "");
  EXPECT_EQ(view.report.saved, "/data/a.json");
  EXPECT_TRUE(view.report.problem.empty());
  update(view, Event(reported()));
  EXPECT_TRUE(view.report.saved.empty()) << "the new one is not written yet";
}

TEST(ReportState, NamesTheFileByDeviceAndDay) {
  const test::TimeZone utc("UTC");
  const int64_t noon = 1'795'521'600'000;  // 2026-11-24 12:00 UTC
  EXPECT_EQ(report_name("NVIDIA H200 NVL (a)", noon), "canopy-report-nvidia-h200-nvl-2026-11-24.json");
  EXPECT_EQ(report_name("../../etc/passwd", noon), "canopy-report-etc-passwd-2026-11-24.json");
  EXPECT_EQ(report_name("(\xc3\xa9)", noon), "canopy-report-2026-11-24.json");
  EXPECT_LE(report_name(std::string(500, 'x'), noon).size(), 80u);
}

}  // namespace
}  // namespace canopy::app
