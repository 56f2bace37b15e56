// What the CUDA backend asks of the driver for a pass, for copies and for measurements.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <set>

#include "cuda_backend/context.h"
#include "cuda_backend/cuda_device.h"
#include "cuda_backend/kernels/params.h"
#include "tests/cuda_backend/fake_device.h"
#include "tests/cuda_backend/fake_driver.h"

namespace canopy::test {
namespace {

std::unique_ptr<Device> opened_device() {
  use_machine({});
  return open_cuda_device(fake_device_options());
}

/// What is called while something runs, by function.
std::map<std::string, uint64_t> calls_during(const std::function<void()>& act) {
  const auto before = all_calls();
  act();
  std::map<std::string, uint64_t> calls;
  for (const auto& [function, count] : all_calls()) {
    const auto found = before.find(function);
    const uint64_t new_ones = count - (found == before.end() ? 0 : found->second);
    if (new_ones > 0) calls[function] = new_ones;
  }
  return calls;
}

TEST(CudaPassTest, APassIsOneLaunchAndOneWait) {
  const auto device = opened_device();
  const auto in = device->allocate_exchanged(64 * 4, HostUse::writes, "in");
  const auto results = device->allocate_exchanged(4 * 8, HostUse::reads, "results");
  const auto x = device->allocate_activations(1, 64, "x");
  const std::vector<Op> ops = {NormRowsArgs{1, in.get(), {}, x.get()}, ArgmaxArgs{1, in.get(), 64, results.get()}};
  const auto commands = device->compile(ops);
  const auto pass = [&](uint32_t best) {
    std::vector<float> values(64, 0.0f);
    values[best] = 1;
    device->write(*in, 0, as_bytes_of(values));
    EXPECT_TRUE(device->run(*commands));
    uint32_t id = 0;
    device->read(*results, 0, std::as_writable_bytes(std::span(&id, 1)));
    return id;
  };
  EXPECT_EQ(pass(3), 3u);
  for (const uint32_t best : {17u, 0u, 63u}) {
    const auto calls = calls_during([&] { EXPECT_EQ(pass(best), best); });
    EXPECT_EQ(calls, (std::map<std::string, uint64_t>{{"launch_graph", 1}, {"wait_stream", 1}}));
  }
  EXPECT_GT(device->last_run_ms(), 0);
}

TEST(CudaPassTest, WritesToTheDeviceAreCopiedAtOnceAndWaitForNothing) {
  const auto device = opened_device();
  constexpr uint64_t bytes = uint64_t{9} << 20;  // more than is staged at a time
  const auto buffer = device->allocate(bytes, "a buffer");
  std::vector<uint32_t> values(bytes / 4);
  for (uint32_t i = 0; i < values.size(); ++i) values[i] = i * 2654435761u;
  const std::vector<uint32_t> kept = values;
  device->write(*buffer, 0, as_bytes_of(values));
  values.assign(values.size(), 0);
  const auto calls = calls_during([&] {
    for (uint32_t i = 0; i < 100; ++i)
      device->write(*buffer, i * 400, std::as_bytes(std::span(kept).subspan(i * 100, 50)));
  });
  EXPECT_EQ(calls, (std::map<std::string, uint64_t>{{"copy_to_device", 100}}));
  std::vector<uint32_t> first(values.size() / 2), second(values.size() / 2);
  const std::vector<BufferRead> reads = {{buffer.get(), 0, std::as_writable_bytes(std::span(first))},
                                         {buffer.get(), bytes / 2, std::as_writable_bytes(std::span(second))}};
  device->read_all(reads);
  EXPECT_TRUE(std::ranges::equal(first, std::span(kept).first(first.size())));
  EXPECT_TRUE(std::ranges::equal(second, std::span(kept).last(second.size())));
}

TEST(CudaPassTest, KernelsThatMayOverlapDoSoOnGpusThatKnowHow) {
  for (const auto& [capability, driver] : {std::pair(89, 13000), {90, 13000}, {90, 12030}, {90, 12020}}) {
    FakeMachine machine;
    machine.gpus[0].capability = capability;
    machine.driver_version = driver;
    use_machine(machine);
    const CudaDeviceOptions options = fake_device_options();
    cuda::Context context(options.api, options.facts, options.kernels);
    const cuda::Memory from(context, 64, true, "from"), to(context, 64, false, "to");
    cuda::KernelCall call = cuda::call_of("upload", cuda::UploadParams{from.address(), to.address(), 4}, 256, 1);
    std::vector<cuda::KernelCall> calls = {call, call, call};
    calls[1].overlaps = true;
    const cuda::Graph graph(context, calls);
    context.start(graph);
    context.finish();
    EXPECT_EQ(overlapping_launches(), capability == 90 && driver >= 12030 ? 1u : 0u);
  }
}

TEST(CudaPassTest, KernelsOfAPassOverlapButForTheFirst) {
  FakeMachine machine;
  machine.gpus[0].capability = 90;
  use_machine(machine);
  const auto device = open_cuda_device(fake_device_options());
  const auto in = device->allocate_exchanged(64 * 4, HostUse::writes, "in");
  const auto results = device->allocate_exchanged(4 * 8, HostUse::reads, "results");
  const auto x = device->allocate_activations(1, 64, "x");
  const std::vector<Op> ops = {NormRowsArgs{1, in.get(), {}, x.get()}, ArgmaxArgs{1, in.get(), 64, results.get()}};
  const uint64_t before = calls_of("launch"), overlapping = overlapping_launches();
  const auto commands = device->compile(ops);
  EXPECT_GE(calls_of("launch") - before, ops.size());
  EXPECT_EQ(overlapping_launches() - overlapping, calls_of("launch") - before - 1);
}

/// Rows of a pass, all alike, times a weight of halves, on a GPU that the rest of the machine does not matter for.
std::vector<float> rows_on(int capability, uint32_t width) {
  constexpr uint32_t rows = 256, cols = 600;
  FakeMachine machine;
  machine.gpus[0].capability = capability;
  use_machine(machine);
  const auto device = open_cuda_device(fake_device_options());
  uint32_t state = 7;
  const auto next = [&] { return state = state * 1664525u + 1013904223u; };
  std::vector<uint16_t> halves(rows * cols);
  for (uint16_t& half : halves) half = static_cast<uint16_t>(0x2C00u | (next() >> 16 & 0x83FFu));
  std::vector<float> row(cols), all;
  for (float& value : row) value = static_cast<float>(next() >> 8) / static_cast<float>(1 << 23) - 1.0f;
  for (uint32_t w = 0; w < width; ++w) all.insert(all.end(), row.begin(), row.end());
  const WeightPart part{WeightType::f16, rows, cols, std::as_bytes(std::span(halves))};
  const auto weight = device->make_weight({&part, 1}, WeightLayout::stacked, "weight");
  const auto in = device->allocate_activations(width, cols, "in");
  device->write_activations(*in, width, all);
  const auto out = device->allocate(uint64_t{width} * rows * 4, "out");
  const std::vector<Op> ops = {LinearArgs{width, weight.get(), in.get(), 1e-5f, out.get(), rows, 0}};
  EXPECT_TRUE(device->run(*device->compile(ops)));
  std::vector<float> results(uint64_t{width} * rows);
  device->read(*out, 0, std::as_writable_bytes(std::span(results)));
  return results;
}

// What is narrow, and how wide passes are dealt out, depends on the GPU; no bit does.
TEST(CudaPassTest, RowsHaveTheSameBitsHoweverAGpuIsGivenThem) {
  const std::vector<float> alone = rows_on(90, 1);
  for (const int capability : {89, 90}) {
    for (const uint32_t width : {3u, 6u, 8u, 40u}) {
      const std::vector<float> together = rows_on(capability, width);
      for (uint32_t w = 0; w < width; ++w) {
        ASSERT_EQ(std::memcmp(alone.data(), together.data() + w * alone.size(), alone.size() * 4), 0)
            << "row " << w << " of " << width << ", capability " << capability;
      }
    }
  }
}

/// The kernels that ran to measure tensor cores.
std::set<std::string> matrix_peaks_of(Device& device) {
  take_launched_kernels();
  EXPECT_GT(device.measure_peak().matrix_gflop_s, 0.001);
  std::set<std::string> kernels = take_launched_kernels();
  std::erase_if(kernels, [](const std::string& kernel) {
    return !kernel.starts_with("peak_") || kernel.starts_with("peak_fma") || kernel == "peak_read";
  });
  return kernels;
}

TEST(CudaPassTest, MeasuresTensorCoresByTheInstructionsOfProducts) {
  using Kernels = std::set<std::string>;
  auto device = opened_device();
  EXPECT_EQ(matrix_peaks_of(*device), Kernels{"peak_warpgroups"});
  ASSERT_TRUE(device->fall_back());
  EXPECT_EQ(matrix_peaks_of(*device), Kernels{"peak_matrix"});
  device.reset();
  FakeMachine machine;
  machine.gpus[0].capability = 89;
  use_machine(machine);
  device = open_cuda_device(fake_device_options());
  EXPECT_EQ(matrix_peaks_of(*device), Kernels{"peak_matrix"});
}

TEST(CudaPassTest, MeasuresWhatTheGpuReaches) {
  const auto device = opened_device();
  const DevicePeak peak = device->measure_peak();
  EXPECT_GT(peak.read_gb_s, 0.01);
  EXPECT_GT(peak.fma_gflop_s, 0.001);
  EXPECT_LT(peak.fma_gflop_s, 1e4);
  EXPECT_GT(peak.plain_fma_gflop_s, 0.001);
  EXPECT_GT(device->sample_fma_rate(), 0.001);
  EXPECT_GT(device->measure_upload(), 0.01);
}

}  // namespace
}  // namespace canopy::test
