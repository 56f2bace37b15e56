// Every call of the driver may fail: what fails is said, nothing is left, and a GPU that is lost can be opened again.

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_backend/cuda_device.h"
#include "engine/base/error.h"
#include "tests/cuda_backend/fake_device.h"

namespace canopy::test {
namespace {

constexpr cuda::Result kLaunchFailed = 719, kNotSupported = 801;

FakeMachine quick_machine() {
  FakeMachine machine;
  machine.computes = false;
  return machine;
}

/// All that a model asks of a device: loading, a pass, copies, measurements.
void use_device() {
  const auto device = open_cuda_device(fake_device_options());
  const uint32_t rows = 64, cols = 256;
  const std::vector<float> values(rows * cols, 1.0f);
  const std::vector<WeightPart> parts = {{WeightType::f32, rows, cols, as_bytes_of(values)}};
  const std::vector<WeightRequest> requests = {{parts, WeightLayout::stacked}};
  device->expect_weights(requests);
  const auto weight = device->make_weight(parts, WeightLayout::stacked, "a weight");
  device->expect_weights({});
  const auto in = device->allocate_exchanged(cols * 4, HostUse::writes, "in");
  const auto out = device->allocate_exchanged(4 * 8, HostUse::reads, "out");
  const auto plain = device->allocate(uint64_t{20} << 20, "a buffer");
  const auto x = device->allocate_activations(1, cols, "x");
  const std::vector<Op> ops = {NormRowsArgs{1, in.get(), {}, x.get()}, ArgmaxArgs{1, in.get(), cols, out.get()}};
  const auto commands = device->compile(ops);
  device->write(*in, 0, as_bytes_of(values).first(cols * 4));
  device->write(*plain, 0, as_bytes_of(values).first(cols * 4));
  device->run(*commands);
  device->last_run_ms();
  std::vector<float> read(cols);
  device->read(*plain, 0, std::as_writable_bytes(std::span(read)));
  device->memory();
}

/// The error that using a device ends in; nothing where it ends well.
std::optional<Error> failure() {
  try {
    use_device();
  } catch (const Error& e) {
    return e;
  }
  return std::nullopt;
}

/// Calls whose results change nothing any more: something is being given back, and the context is torn down next.
const std::set<std::string, std::less<>> kGivingBack = {
    "free",          "free_host",       "destroy_stream",     "destroy_event", "unload_module",
    "destroy_graph", "release_context", "destroy_graph_exec", "wait_event"};

/// How often each function is called by use_device() after the devices were listed.
std::map<std::string, uint64_t, std::less<>> calls_of_use() {
  use_machine(quick_machine());
  use_device();
  EXPECT_EQ(objects_alive(), 0u);
  return all_calls();
}

TEST(CudaFaultsTest, EveryCallThatFailsIsSaidAndLeavesNothing) {
  for (const auto& [function, count] : calls_of_use()) {
    if (kGivingBack.contains(function) || function.starts_with("device_") || function.starts_with("driver_")) continue;
    for (const uint64_t nth : std::set<uint64_t>{1, count}) {
      // The last time that the context is set, it is given back; asking for devices is a matter of listing them.
      if ((function == "set_context" && nth == count) || function == "init" || function == "device") continue;
      for (const cuda::Result result : {kLaunchFailed, kNotSupported}) {
        if (function == "retain_context" && result == kLaunchFailed) continue;  // there is no context to lose
        SCOPED_TRACE(function + ", call " + std::to_string(nth) + ", result " + std::to_string(result));
        FakeMachine machine = quick_machine();
        machine.failures = {{function, nth, result}};
        use_machine(machine);
        const std::optional<Error> error = failure();
        ASSERT_TRUE(error.has_value());
        EXPECT_EQ(error->kind(), result == kLaunchFailed ? ErrorKind::device_lost : ErrorKind::unavailable)
            << error->what();
        EXPECT_NE(std::string(error->what()).find(std::to_string(result)), std::string::npos) << error->what();
        EXPECT_EQ(objects_alive(), 0u);
        EXPECT_EQ(calls_of("reset_context"), result == kLaunchFailed ? 1u : 0u);
        EXPECT_FALSE(failure().has_value()) << "a new device works";
      }
    }
  }
}

TEST(CudaFaultsTest, AGpuThatIsLostWhileThingsAreGivenBackIsResetToo) {
  const auto calls = calls_of_use();
  for (const char* function : {"free", "free_host", "destroy_event", "destroy_graph"}) {
    SCOPED_TRACE(function);
    ASSERT_TRUE(calls.contains(function));
    FakeMachine machine = quick_machine();
    machine.failures = {{function, calls.find(function)->second, kLaunchFailed}};
    use_machine(machine);
    failure();
    EXPECT_EQ(objects_alive(), 0u);
    EXPECT_EQ(calls_of("reset_context"), 1u);
    EXPECT_FALSE(failure().has_value());
  }
}

/// Writes through a kernel's buffer and reads it back.
void expect_works(Device& device) {
  const auto buffer = device.allocate(4 * 64, "a buffer");
  std::vector<uint32_t> values(64), read(64);
  for (uint32_t i = 0; i < 64; ++i) values[i] = i * 2654435761u;
  device.write(*buffer, 0, as_bytes_of(values));
  device.read(*buffer, 0, std::as_writable_bytes(std::span(read)));
  EXPECT_EQ(read, values);
}

TEST(CudaFaultsTest, TwoGpusDoNotDisturbEachOther) {
  FakeMachine machine;
  machine.gpus = {FakeGpu{}, FakeGpu{.name = "Another", .memory = uint64_t{1} << 30}};
  use_machine(machine);
  const auto first = open_cuda_device(fake_device_options(0));
  auto second = open_cuda_device(fake_device_options(1));
  const uint64_t before = first->memory().available, before_of_second = second->memory().available;
  const auto buffer = first->allocate(uint64_t{20} << 20, "a buffer");
  EXPECT_LE(first->memory().available, before - (uint64_t{20} << 20)) << "it lies on the GPU that was asked";
  EXPECT_EQ(second->memory().available, before_of_second);
  expect_works(*first);
  expect_works(*second);
  const auto in = first->allocate_exchanged(64 * 4, HostUse::writes, "in");
  const auto x = first->allocate_activations(1, 64, "x");
  const std::vector<Op> ops = {NormRowsArgs{1, in.get(), {}, x.get()}};
  const auto commands = first->compile(ops);
  second.reset();
  expect_works(*first);
  EXPECT_TRUE(first->run(*commands));
  first->memory();
  // One that cannot be opened leaves the other alone as well.
  fail_call("load_module", 1, 209);
  EXPECT_THROW(open_cuda_device(fake_device_options(1)), Error);
  expect_works(*first);
}

TEST(CudaFaultsTest, EveryAllocationMayFindNoMemory) {
  const auto calls = calls_of_use();
  for (const char* function : {"allocate", "allocate_host"}) {
    for (uint64_t nth = 1; nth <= calls.find(function)->second; ++nth) {
      SCOPED_TRACE(std::string(function) + ", call " + std::to_string(nth));
      FakeMachine machine = quick_machine();
      machine.failures = {{function, nth, cuda::kOutOfMemory}};
      use_machine(machine);
      const std::optional<Error> error = failure();
      // A block of weights that is not to be had is asked for in parts, here the one weight alone.
      ASSERT_TRUE(error.has_value());
      EXPECT_EQ(error->kind(), ErrorKind::out_of_memory) << error->what();
      EXPECT_TRUE(std::regex_search(error->what(), std::regex(": [0-9.]+ (bytes|kB|MB) are needed"))) << error->what();
      if (std::string_view(function) == "allocate") {
        EXPECT_NE(std::string(error->what()).find(" are free."), std::string::npos) << error->what();
      }
      EXPECT_EQ(objects_alive(), 0u);
      EXPECT_EQ(calls_of("reset_context"), 0u);
    }
  }
}

}  // namespace
}  // namespace canopy::test
