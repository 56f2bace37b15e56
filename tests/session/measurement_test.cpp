#include "engine/session/measurement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "engine/session/measured_report.h"
#include "tests/base/temp_folder.h"
#include "tests/compute/forwarding_device.h"
#include "tests/model/random_model.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {
namespace {

/// A device with a clock, by which every pass takes half a microsecond.
class ClockedDevice : public ForwardingDevice {
 public:
  ClockedDevice() : ForwardingDevice(make_reference_device()) {}
  double last_run_ms() const override { return 5e-4; }
  /// Of each run half a microsecond is waited for.
  bool run(Commands& commands, const std::stop_token& stop) override {
    waited_ms_ += 5e-4;
    return ForwardingDevice::run(commands, stop);
  }
  double waited_ms() const override { return waited_ms_; }
  DevicePeak measure_peak() override { return {100, 200, 50}; }

 private:
  double waited_ms_ = 0;
};

class MeasurementTest : public ::testing::Test {
 protected:
  ModelMeasurement measure(const MeasurementPlan& plan, const std::stop_token& stop = {}) {
    return measure_model(
        *model_, *sequence_, plan, [this](uint32_t done, uint32_t) { done_ = done; }, stop);
  }

  static std::unique_ptr<Model> load(Device& device) {
    TempFolder folder;
    const ModelFile file = ModelFile::open(folder.write("model.gguf", RandomModel{}.build()));
    ModelOptions options;
    options.max_width = 9;
    options.context = 100;
    return Model::load(device, file, options);
  }

  ClockedDevice device_;
  std::unique_ptr<Model> model_ = load(device_);
  std::unique_ptr<Sequence> sequence_ = std::make_unique<Sequence>(*model_);
  uint32_t done_ = 0;
};

TEST_F(MeasurementTest, TimesWhatTheModelHasRoomFor) {
  const ModelMeasurement measured = measure({{1, 4, 9, 10}, {0, 64, 96}, 60, 3});
  EXPECT_TRUE(measured.complete);
  ASSERT_EQ(measured.contexts.size(), 2u);  // 96 leaves no room for trees
  EXPECT_EQ(measured.contexts[1].context, 64u);
  for (const MeasuredContext& context : measured.contexts) {
    ASSERT_EQ(context.passes.size(), 3u);  // 10 rows are wider than a pass
    EXPECT_EQ(context.passes[2].width, 9u);
    for (const MeasuredWidth& pass : context.passes) {
      EXPECT_EQ(pass.time.repeats, 3u);
      EXPECT_EQ(pass.time.ms(), 5e-4);
      EXPECT_DOUBLE_EQ(pass.time.host_gap_ms(), pass.time.wall_ms - 5e-4);
      EXPECT_NEAR(pass.time.host_ms, pass.time.wall_ms - 5e-4, 1e-9);
    }
    EXPECT_DOUBLE_EQ(measured.weights_gb_s(context), static_cast<double>(model_->pass_bytes()) / (5e-4 * 1e6));
  }
  EXPECT_EQ(measured.peak.read_gb_s, 100);
  EXPECT_TRUE(measured.drafts.empty());
  EXPECT_EQ(done_, 6u);
  EXPECT_EQ(sequence_->length(), 0u);
}

TEST_F(MeasurementTest, TimesWholeRoundsOfAPairOfRandomWeights) {
  MeasurementPlan plan{{1, 2, 9}, {0, 64}, 60, 2};
  plan.calibration_seconds = 0.2;
  std::vector<std::string> stages;
  const MeasuringCallbacks callbacks{[&](const LoadProgress& step) { stages.push_back(step.stage); }, {}};
  const MeasuredModel model = measure_shape(device_, "tiny-q4_0", CacheType::f16, plan, callbacks);
  EXPECT_EQ(model.skipped, "");
  EXPECT_EQ(model.block, 16u);
  ASSERT_TRUE(model.measurement.has_value());
  const ModelMeasurement& measured = *model.measurement;
  EXPECT_EQ(measured.drafts.size(), 3u);  // nothing waits at context 0
  ASSERT_EQ(measured.rounds.size(), 4u);  // of one token and of many, at 2 and 9 rows
  const std::vector<std::pair<uint32_t, uint32_t>> expected = {{2, 1}, {2, 2}, {9, 1}, {9, 8}};
  for (size_t i = 0; i < expected.size(); ++i) {
    const MeasuredRound& round = measured.rounds[i];
    EXPECT_EQ(std::pair(round.width, round.emitted), expected[i]);
    EXPECT_EQ(round.context, 0u);
    EXPECT_EQ(round.time.repeats, 2u);
    EXPECT_GE(round.time.device_ms, 2 * 5e-4) << "draft and pass";
    EXPECT_DOUBLE_EQ(measured.speedup(round),
                     measured.contexts[0].passes[0].time.wall_ms * round.emitted / round.time.wall_ms);
  }
  ASSERT_TRUE(model.calibration.has_value());
  EXPECT_FALSE(model.calibration->verify_points().empty());
  EXPECT_NE(std::ranges::find(stages, "Calibrating"), stages.end());
  MeasuredReport report;
  report.models = {model};
  const auto json = to_json(report);
  EXPECT_EQ(json["models"][0]["drafter"]["rounds"].size(), 4u);
  EXPECT_EQ(json["models"][0]["drafter"]["rounds"][3]["emitted"], 8);
}

/// A device whose memory ends between two contexts of the plan.
TEST_F(MeasurementTest, MeasuresAShapeUpToTheContextThatMemoryHolds) {
  const MeasurementPlan plan{{1, 2}, {0, 64, 65536}, 60, 1};
  class Small : public ForwardingDevice {
   public:
    explicit Small() : ForwardingDevice(make_reference_device(uint64_t{64} << 20)) {}
    DevicePeak measure_peak() override { return {100, 200, 50}; }
  } device;
  const MeasuredModel model = measure_shape(device, "tiny-q4_0", CacheType::f16, plan, {});
  ASSERT_TRUE(model.measurement.has_value()) << model.skipped;
  EXPECT_EQ(model.measurement->contexts.size(), 2u);
  EXPECT_EQ(model.measurement->contexts.back().context, 64u);
}

TEST_F(MeasurementTest, SaysThatTimeRanOut) {
  const ModelMeasurement measured = measure({{1, 2}, {0}, 1e-9, 3});
  EXPECT_FALSE(measured.complete);
  EXPECT_TRUE(measured.contexts.empty());
}

TEST_F(MeasurementTest, EndsWhenItIsStopped) {
  std::stop_source stop;
  stop.request_stop();
  sequence_->pretend(5, 0);
  try {
    measure({{1, 2}, {0}, 60, 3}, stop.get_token());
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::cancelled);
  }
  EXPECT_EQ(sequence_->length(), 0u);
}

TEST_F(MeasurementTest, RefusesPlansOfNothing) {
  for (const MeasurementPlan& plan : {MeasurementPlan{{}, {0}, 1, 1}, MeasurementPlan{{1}, {}, 1, 1},
                                      MeasurementPlan{{1}, {0}, 0, 1}, MeasurementPlan{{1}, {0}, 1, 0}}) {
    EXPECT_THROW(measure(plan), Error);
  }
}

TEST_F(MeasurementTest, ReportHasPassesAsPredictionsHaveThem) {
  MeasuredModel model;
  model.shape = "llama-2x64-f32";
  model.kernels = "shaders 12 fma";
  model.measurement = measure({{1, 4}, {0}, 60, 2});
  model.self_test = SelfTestReport{true, true, true, "Exact.", "", 1};
  MeasuredModel skipped;
  skipped.shape = "qwen3-32b-bf16";
  skipped.skipped = "The model needs more.";
  MeasuredReport report;
  report.info.name = "Some GPU";
  report.info.kernels = "shaders 12 matrix; Q4_K 4096 x 4096 (2 rows, 64 lanes)";
  report.models = {model, skipped};
  const nlohmann::ordered_json json = to_json(report);
  EXPECT_EQ(json["version"], kMeasuredReportVersion);
  EXPECT_EQ(json["device"]["kernel_family"], "matrix");
  ASSERT_EQ(json["devices"].size(), 1u);
  const auto& passes = json["devices"][0];
  EXPECT_EQ(passes["name"], "Some GPU");
  EXPECT_EQ(passes["source"], "measured");
  EXPECT_EQ(passes["clock"], "device");
  EXPECT_EQ(passes["kernels"], "fma");
  EXPECT_EQ(passes["widths"], (std::vector<uint32_t>{1, 4}));
  EXPECT_LE(passes["bandwidth_share"], 1.0);
  EXPECT_TRUE(json["models"][0]["self_test"]["passed"]);
  EXPECT_EQ(json["models"][1]["skipped"], "The model needs more.");
}

}  // namespace
}  // namespace canopy::test
