// "Report this device" through the engine's thread: with a model, without one, cancelled, and on a device that is lost.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/session/engine_thread_rig.h"

namespace canopy::test {
namespace {

ReportDevice short_report() {
  ReportDevice report;
  report.seconds = 0.2;
  return report;
}

/// What a file to send must not hold.
void expect_private(const std::string& json) {
  EXPECT_EQ(json.find("tiny-qwen3"), std::string::npos) << "the name of a file";
  EXPECT_EQ(json.find(golden_folder().string()), std::string::npos);
  EXPECT_EQ(json.find("def main"), std::string::npos) << "a text";
}

TEST_F(EngineThreadTest, ReportsTheLoadedModelAndAnswersAsBefore) {
  start();
  LoadModel load = tiny();
  load.drafter = golden_folder() / "tiny-qwen3-dflash-b8";
  engine_->post(load);
  await<ModelReady>();
  const std::string before = answer(1);
  engine_->post(short_report());
  const std::vector<Event> events = until<DeviceReported>();
  ASSERT_FALSE(events.empty());
  const auto report = std::get<DeviceReported>(events.back());
  EXPECT_EQ(report.device, "Reference");
  EXPECT_FALSE(report.shape.empty());
  EXPECT_FALSE(report.self_test.empty());
  EXPECT_TRUE(report.problem.empty());
  ASSERT_GE(report.passes.size(), 2u);
  EXPECT_EQ(report.passes[0].first, 1u);
  for (const auto& [rows, ms] : report.passes) EXPECT_GT(ms, 0.0) << rows;
  bool told = false;
  for (const Event& event : events) {
    const auto* progress = std::get_if<ReportProgress>(&event);
    told = told || (progress != nullptr && progress->step.total > 0);
  }
  EXPECT_TRUE(told);
  const auto json = nlohmann::json::parse(*report.json);
  EXPECT_EQ(json["canopy"]["commit"], "1a2b3c");
  EXPECT_EQ(json["models"][0]["weights"], "file");
  EXPECT_EQ(json["models"][0]["peak"]["matrix_gflop_s"], 800);
  EXPECT_EQ(json["models"][0]["drafter"]["block"], 8);
  EXPECT_EQ(json["devices"][0]["widths"].size(), report.passes.size());
  expect_private(*report.json);
  EXPECT_EQ(answer(2), before);
}

TEST_F(EngineThreadTest, ReportsADeviceWithoutAModelAndGivesItBack) {
  start();
  engine_->post(short_report());
  const auto report = await<DeviceReported>();
  EXPECT_EQ(report.shape, "tiny-q4_0");
  EXPECT_FALSE(report.passes.empty());
  EXPECT_EQ(nlohmann::json::parse(*report.json)["models"][0]["weights"], "random");
  EXPECT_EQ(book_.open.load(), 0) << "the device is closed again";
  ReportDevice other = short_report();
  other.device = "none";
  engine_->post(other);
  const auto failure = await<Failure>();
  EXPECT_EQ(failure.kind, ErrorKind::unavailable);
  EXPECT_NE(failure.detail.find("none"), std::string::npos);
}

TEST_F(EngineThreadTest, AReportIsCancelledAndRefusesWrongTimes) {
  start();
  engine_->post(tiny());
  await<ModelReady>();
  ReportDevice report;
  report.seconds = 1000;
  engine_->post(report);
  await<ReportProgress>();
  engine_->post(CancelReport{});
  EXPECT_EQ(await<Failure>().kind, ErrorKind::cancelled);
  report.seconds = -1;
  engine_->post(report);
  const auto failure = await<Failure>();
  EXPECT_EQ(failure.kind, ErrorKind::bad_input);
  EXPECT_NE(failure.detail.find("-1"), std::string::npos);
  EXPECT_FALSE(answer(1).empty()) << "the model is still there";
}

TEST_F(EngineThreadTest, ADeviceThatIsLostDuringAReportIsSaidToBe) {
  start();
  engine_->post(tiny());
  await<ModelReady>();
  lose_ = true;
  engine_->post(short_report());
  EXPECT_EQ(await<Failure>().kind, ErrorKind::device_lost);
  engine_->post(tiny());
  await<ModelReady>();
  EXPECT_FALSE(answer(1).empty());
}

}  // namespace
}  // namespace canopy::test
