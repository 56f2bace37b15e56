#include "engine/whatif/processor_work.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "engine/whatif/prediction.h"
#include "tests/whatif/messages.h"

namespace canopy::predict {
namespace {

using test::message_of;

constexpr Kernels kOfProcessors[] = {Kernels::avx2, Kernels::vnni, Kernels::avx512, Kernels::neon};

double ms(RecordedModel& model, const DeviceProfile& device, Kernels kernels, uint32_t width, uint32_t context = 0) {
  return predict_pass(model, device, rules_of(kernels), width, context).ms;
}

TEST(Processors, FiguresArePlausible) {
  const auto within = [](double value, double low, double high) { return value >= low && value <= high; };
  for (const DeviceProfile& device : processor_profiles()) {
    SCOPED_TRACE(device.name);
    const ProcessorFigures& processor = device.processor;
    EXPECT_TRUE(within(device.memory_gb_s, 40, 1000));
    EXPECT_TRUE(within(device.memory_share, 0.5, 1));
    EXPECT_TRUE(within(device.step_us, 0.1, 20));
    EXPECT_TRUE(within(processor.cores(), 8, 192));
    EXPECT_TRUE(within(processor.core_gb_s, 10, 120));
    EXPECT_GE(processor.core_gb_s * processor.cores(), device.memory_gb_s * device.memory_share);
    for (const ProcessorCores* cores : {&processor.fast, &processor.slow}) {
      if (cores->count == 0) continue;
      EXPECT_TRUE(within(cores->clock_ghz, 2, 6));
      for (const VectorUnits& units : {cores->of_128, cores->of_256, cores->of_512}) {
        EXPECT_GE(units.all, units.multiplies);
        EXPECT_TRUE(units.all == 0 || within(units.multiplies, 1, 4));
      }
    }
    EXPECT_TRUE(has(processor, default_kernels(device)));
    EXPECT_EQ(device.units, 0u) << "it is no GPU";
  }
  EXPECT_EQ(processor_profiles().size(), 6u);
}

TEST(Processors, TakeTheKernelsOfTheirWidestRegisters) {
  EXPECT_EQ(default_kernels(device_profile("ryzen9-7950x")), Kernels::avx512);
  EXPECT_EQ(default_kernels(device_profile("i9-14900k")), Kernels::vnni);
  EXPECT_EQ(default_kernels(device_profile("m4max-cpu")), Kernels::neon);
  for (const Kernels kernels : kOfProcessors) {
    EXPECT_TRUE(is_of_processors(kernels));
    EXPECT_EQ(kernels_named(to_string(kernels)), kernels);
    EXPECT_EQ(rules_of(kernels).kernels, kernels);
  }
  EXPECT_FALSE(is_of_processors(Kernels::fma));
}

TEST(Processors, WiderPassesAndLongerContextsTakeLonger) {
  for (const char* shape : {"smollm2-135m-q4_1", "qwen3-8b-q4_k_m", "qwen3-4b-bf16"}) {
    RecordedModel model(model_shape(shape));
    for (const DeviceProfile& device : processor_profiles()) {
      for (const Kernels kernels : kOfProcessors) {
        if (!has(device.processor, kernels)) continue;
        double before = 0;
        for (const uint32_t width : usual_widths()) {
          const double now = ms(model, device, kernels, width);
          EXPECT_GE(now, before) << shape << " on " << device.name << " with " << to_string(kernels) << ", " << width;
          before = now;
        }
        before = 0;
        for (const uint32_t context : {0u, 64u, 512u, 4096u, 32768u}) {
          const double now = ms(model, device, kernels, 1, context);
          EXPECT_GE(now, before) << shape << " on " << device.name << " with " << to_string(kernels) << ", " << context;
          before = now;
        }
      }
    }
  }
}

TEST(Processors, NothingIsFasterThanTheMemory) {
  RecordedModel model(model_shape("qwen3-8b-q4_k"));
  for (const DeviceProfile& device : processor_profiles()) {
    const PassPrediction pass = predict_pass(model, device, rules_of(default_kernels(device)), 1, 0);
    EXPECT_GT(bandwidth_share(pass, device), 0.3 * device.memory_share) << device.name;
    EXPECT_LT(bandwidth_share(pass, device), device.memory_share) << device.name;
    EXPECT_EQ(pass.host_ms, 0);
    double us = 0;
    for (const OpPrediction& op : pass.ops) us += op.count * op.each.total;
    EXPECT_NEAR(pass.ms, us / 1e3, 1e-9);
  }
}

// What an instruction set is worth: little where memory decides, up to all of it where multiplications do.
TEST(Processors, SetsDifferWhereArithmeticDecides) {
  RecordedModel model(model_shape("qwen3-8b-q4_k"));
  const DeviceProfile& device = device_profile("ryzen9-9950x");
  EXPECT_LT(ms(model, device, Kernels::avx2, 1), 1.3 * ms(model, device, Kernels::avx512, 1));
  EXPECT_GT(ms(model, device, Kernels::avx2, 64), 1.5 * ms(model, device, Kernels::avx512, 64));
  const DeviceProfile& intel = device_profile("i9-14900k");  // whose units start three instructions a clock, Zen's four
  EXPECT_LT(ms(model, intel, Kernels::vnni, 64), ms(model, intel, Kernels::avx2, 64));
  // Zen 4 takes two turns for the instructions of 512 bits: what it saves is the additions beside AVX2's products.
  const DeviceProfile& zen4 = device_profile("ryzen9-7950x");
  EXPECT_GT(ms(model, zen4, Kernels::avx512, 64), 1.5 * ms(model, device, Kernels::avx512, 64));
}

// Two cores of a Xeon (AVX-512, 10 GB/s of weights a core): milliseconds of a pass of one row behind 128 positions, and
// wider ones over it, as a prototype of the kernels took with random weights. Medians moved by up to 30 % between runs.
TEST(Processors, AXeonTakesWhatItTook) {
  const DeviceProfile xeon = {.name = "xeon",
                              .gpu = "Xeon, 2 cores",
                              .memory_gb_s = 20,
                              .step_us = 0.2,
                              .processor = {.fast = {2, 3.9, {}, {2, 3}, {2, 2}}, .core_gb_s = 10, .avx_vnni = true}};
  const struct {
    const char* shape;
    Kernels kernels;
    double ms, of_8, of_17;
  } known[] = {
      {"qwen3-0.6b-q4_k", Kernels::avx2, 27.2, 2.15, 4.74},   {"qwen3-0.6b-q4_k", Kernels::vnni, 25.4, 2.21, 4.58},
      {"qwen3-0.6b-q4_k", Kernels::avx512, 22.0, 1.74, 3.22}, {"qwen3-1.7b-q4_k", Kernels::avx2, 65.8, 2.37, 5.41},
      {"qwen3-1.7b-q4_k", Kernels::vnni, 68.7, 2.02, 4.38},   {"qwen3-1.7b-q4_k", Kernels::avx512, 56.1, 1.64, 3.04},
      {"qwen3-4b-q4_k", Kernels::avx2, 150, 2.38, 5.42},      {"qwen3-4b-q4_k", Kernels::avx512, 124, 1.64, 3.22}};
  for (const auto& [shape, kernels, one_ms, of_8, of_17] : known) {
    RecordedModel model(model_shape(shape));
    const double one = ms(model, xeon, kernels, 1, 128);
    const std::string what = std::string(shape) + " with " + to_string(kernels);
    EXPECT_NEAR(one / one_ms, 1, 0.25) << what;
    EXPECT_NEAR(ms(model, xeon, kernels, 8, 128) / one / of_8, 1, 0.25) << what;
    EXPECT_NEAR(ms(model, xeon, kernels, 17, 128) / one / of_17, 1, 0.25) << what;
  }
}

TEST(Processors, OnlyCoresWithUnitsOfAnOpWork) {
  RecordedModel small(model_shape("smollm2-135m-q4_1"));
  DeviceProfile many = device_profile("epyc-9654");
  const double whole = ms(small, many, Kernels::avx512, 1);
  many.step_us = 0;
  const double without_waiting = ms(small, many, Kernels::avx512, 1);
  EXPECT_GT(whole, without_waiting);
  const PassPrediction pass = predict_pass(small, many, rules_of(Kernels::avx512), 1, 0);
  const auto add = std::ranges::find(pass.ops, "linear_add", &OpPrediction::name);
  ASSERT_NE(add, pass.ops.end());
  EXPECT_EQ(add->workgroups, 18) << "576 outputs, 32 at a time";
  // 18 cores bring what 18 cores bring.
  const double least = static_cast<double>(576 * 576 / 32 * 20) / (18 * many.processor.core_gb_s * 1e3);
  EXPECT_GE(add->each.memory, least * 0.999);
}

TEST(Processors, KernelsOfOthersAreRefused) {
  RecordedModel model(model_shape("smollm2-135m-q4_1"));
  const auto refusal = [&](const char* device, Kernels kernels) {
    return message_of([&] { predict_pass(model, device_profile(device), rules_of(kernels), 1, 0); });
  };
  EXPECT_NE(refusal("epyc-9654", Kernels::matrix).find("are those of GPUs"), std::string::npos);
  EXPECT_NE(refusal("h100", Kernels::avx2).find("is no processor"), std::string::npos);
  EXPECT_NE(refusal("i9-14900k", Kernels::avx512).find("allowed: avx2, vnni."), std::string::npos);
  EXPECT_NE(refusal("m4max-cpu", Kernels::avx2).find("allowed: neon."), std::string::npos);
}

}  // namespace
}  // namespace canopy::predict
