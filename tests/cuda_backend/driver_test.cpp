// The CUDA backend against a driver that lacks things, refuses and fails.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "cuda_backend/cuda_device.h"
#include "cuda_backend/driver.h"
#include "engine/base/error.h"
#include "tests/cuda_backend/fake_device.h"

namespace canopy::test {
namespace {

std::vector<cuda::DeviceFacts> facts_of(FakeMachine machine, const cuda::Kernels& kernels = fake_kernels()) {
  use_machine(std::move(machine));
  return cuda::list_devices(fake_driver(), kernels);
}

std::unique_ptr<Device> opened() {
  return open_cuda_device(fake_device_options());
}

/// The kind and message of the error that `act` ends in.
std::pair<ErrorKind, std::string> error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& e) {
    return {e.kind(), e.what()};
  }
  return {ErrorKind::bad_input, "nothing was thrown"};
}

TEST(CudaDriverTest, AMachineWithoutADriverSaysSo) {
  const cuda::FoundDriver found = cuda::find_driver("libcanopy-no-such-driver.so.1");
  EXPECT_FALSE(found.api.has_value());
  EXPECT_NE(found.reason.find("libcanopy-no-such-driver.so.1"), std::string::npos);
  const cuda::FoundDriver other = cuda::find_driver("libm.so.6");  // there, and no driver
  EXPECT_FALSE(other.api.has_value());
  EXPECT_NE(other.reason.find("cuInit"), std::string::npos);
}

TEST(CudaDriverTest, ListsEveryGpuWithTheReasonWhyNot) {
  FakeMachine machine;
  machine.gpus = {{"Good", 89, 1 << 30}, {"Old", 70, 1 << 30}, {"Closed", 90, 1 << 30, true}, {"Empty", 90, 0}};
  const auto facts = facts_of(machine);
  ASSERT_EQ(facts.size(), 4u);
  EXPECT_TRUE(facts[0].usable());
  EXPECT_EQ(facts[0].name, "Good");
  EXPECT_EQ(facts[0].capability, 89);
  EXPECT_TRUE(facts[0].driver.ends_with("CUDA 13.0"));
  EXPECT_EQ(facts[0].uuid.size(), 32u);
  EXPECT_NE(facts[0].uuid, facts[1].uuid);
  EXPECT_EQ(facts[1].pci_address, "0000:02:00.0");
  EXPECT_NE(facts[1].reason.find("7.0"), std::string::npos);
  EXPECT_NE(facts[2].reason.find("prohibited"), std::string::npos);
  EXPECT_NE(facts[3].reason.find("no memory"), std::string::npos);
}

TEST(CudaDriverTest, OldDriversAndBuildsWithoutKernelsAreReasons) {
  FakeMachine machine;
  machine.driver_version = 12040;
  const auto old = facts_of(machine);
  EXPECT_NE(old[0].reason.find("12.4; 13.0"), std::string::npos);
  const cuda::BuiltKernels built{64, "0", 13000, {75, 90}};
  const auto without = facts_of({}, cuda::load_kernels({}, std::nullopt));
  EXPECT_NE(without[0].reason.find("nvcc"), std::string::npos) << without[0].reason;
  const auto missing = facts_of({}, cuda::load_kernels(built, std::nullopt));
  EXPECT_NE(missing[0].reason.find("canopy-cuda"), std::string::npos) << missing[0].reason;
}

TEST(CudaDriverTest, KernelsRunOnTheirGenerationAndPtxOnLaterOnes) {
  const cuda::Kernels kernels{{}, 13000, {75, 86, 90, 120}};
  const std::map<int, bool> expected = {{75, true}, {80, false},  {86, true},  {87, true},  {89, true},
                                        {90, true}, {100, false}, {120, true}, {121, true}, {130, true}};
  for (const auto& [capability, runs] : expected) {
    FakeMachine machine;
    machine.gpus[0].capability = capability;
    const std::string reason = facts_of(machine, kernels)[0].reason;
    EXPECT_EQ(reason.empty(), runs) << capability;
    EXPECT_EQ(reason.find("no CUDA kernels") != std::string::npos, !runs) << reason;
  }
}

// Machine code for 9.0 alone has them: PTX of 9.0, which later GPUs may run, has not.
TEST(CudaDriverTest, HasWarpgroupsWhereItsOwnCodeRuns) {
  const std::vector<int> of_12_4 = {75, 80, 86, 89, 90}, of_13 = {75, 80, 86, 89, 90, 100, 120};
  for (const auto& [capability, has] :
       std::map<int, bool>{{75, false}, {80, false}, {89, false}, {90, true}, {100, false}, {120, false}}) {
    for (const std::vector<int>& architectures : {of_12_4, of_13}) {
      FakeMachine machine;
      machine.gpus[0].capability = capability;
      EXPECT_EQ(cuda::has_warpgroups(facts_of(machine, {{}, 12040, architectures})[0]), has) << capability;
    }
  }
  EXPECT_FALSE(cuda::has_warpgroups(facts_of({}, {{}, 12040, {75, 80, 86, 89}})[0]));
}

// Plans go by the code, not by the GPU: an older toolkit leaves PTX of 9.0 to a GPU of 12.0, whose stages are others.
TEST(CudaDriverTest, AGpuMayRunTheCodeOfAnOlderOne) {
  const std::vector<int> of_12_4 = {75, 80, 86, 89, 90}, of_13 = {75, 80, 86, 89, 90, 100, 120};
  const auto runs = [](const std::vector<int>& architectures, int capability) {
    FakeMachine machine;
    machine.gpus[0].capability = capability;
    return facts_of(machine, {{}, 12040, architectures})[0].architecture;
  };
  for (const auto& [capability, architecture] :
       std::map<int, int>{{75, 75}, {87, 86}, {89, 89}, {103, 90}, {120, 90}}) {
    EXPECT_EQ(runs(of_12_4, capability), architecture) << capability;
  }
  for (const auto& [capability, architecture] :
       std::map<int, int>{{75, 75}, {87, 86}, {90, 90}, {103, 100}, {110, 0}, {121, 120}, {130, 120}}) {
    EXPECT_EQ(runs(of_13, capability), architecture) << capability;
  }
}

TEST(CudaDriverTest, TheKernelModuleTellsItsVersion) {
  EXPECT_EQ(cuda::module_version("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27 07:15:33 UTC "
                                 "2025\nGCC version:  gcc version 12.2.0\n"),
            "580.65.06");
  EXPECT_EQ(cuda::module_version("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  590.1  Release Build\n"),
            "590.1");
  EXPECT_EQ(cuda::module_version(""), "");
  EXPECT_EQ(cuda::module_version("GCC version:  gcc version 12.2.0\n"), "");
}

TEST(CudaDriverTest, TheIdentityTellsGpusAndDriversApart) {
  FakeMachine machine;
  machine.gpus = {{}, {}};
  const auto facts = facts_of(machine);
  EXPECT_NE(cuda::device_identity(facts[0]), cuda::device_identity(facts[1]));
  EXPECT_EQ(gpu_of(cuda::device_identity(facts[0])), facts[0].uuid);
  machine.driver_version = 13010;
  EXPECT_NE(cuda::device_identity(facts_of(machine)[0]), cuda::device_identity(facts[0]));
}

TEST(CudaDriverTest, AGpuThatDoesNotAnswerIsListedWithWhatTheDriverSays) {
  FakeMachine machine;
  machine.gpus = {{}, {}};
  machine.failures = {{"device_name", 1, 999}};
  const auto facts = facts_of(machine);
  EXPECT_NE(facts[0].reason.find("999"), std::string::npos);
  machine.failures.clear();
  machine.init_result = cuda::kNoDevice;
  EXPECT_TRUE(facts_of(machine).empty());
  machine.init_result = 3;
  EXPECT_EQ(error_of([&] { facts_of(machine); }).first, ErrorKind::unavailable);
}

TEST(CudaDriverTest, EveryStepOfOpeningMayFailAndLeavesNothing) {
  for (const char* step : {"retain_context", "create_stream", "create_event", "load_module", "allocate_host"}) {
    FakeMachine machine;
    machine.failures = {{step, 1, 209}};
    use_machine(machine);
    EXPECT_EQ(error_of(opened).first, ErrorKind::unavailable) << step;
    EXPECT_EQ(objects_alive(), 0u) << step;
  }
}

TEST(CudaDriverTest, MemoryThatRunsOutIsSaidWithNeededAndFreeBytes) {
  FakeMachine machine;
  machine.gpus[0].memory = 1 << 20;
  use_machine(machine);
  const auto device = opened();
  const auto kept = device->allocate(1 << 19, "something");
  const auto [kind, message] = error_of([&] { device->allocate(1 << 20, "the cache"); });
  EXPECT_EQ(kind, ErrorKind::out_of_memory);
  EXPECT_NE(message.find("the cache"), std::string::npos);
  EXPECT_NE(message.find("1.0 MB are needed, 524.3 kB are free"), std::string::npos);
  EXPECT_EQ(device->memory().available, 1u << 19);
  EXPECT_NO_THROW(device->allocate(1 << 19, "what still fits"));
}

/// Squares of one row, to run anything.
std::unique_ptr<Commands> some_commands(Device& device, Buffer& in, Activations& out) {
  const std::vector<Op> ops = {NormRowsArgs{1, &in, {}, &out}};
  return device.compile(ops);
}

TEST(CudaDriverTest, ALostGpuIsSaidAndANewOneWorks) {
  FakeMachine machine;
  machine.failures = {{"launch_graph", 2, 700}};
  use_machine(machine);
  {
    const auto device = opened();
    const auto in = device->allocate(64 * 4, "in");
    const auto out = device->allocate_activations(1, 64, "out");
    const auto commands = some_commands(*device, *in, *out);
    EXPECT_TRUE(device->run(*commands));
    const auto [kind, message] = error_of([&] { device->run(*commands); });
    EXPECT_EQ(kind, ErrorKind::device_lost);
    EXPECT_NE(message.find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos);
    EXPECT_EQ(error_of([&] { device->allocate(64, "more"); }).first, ErrorKind::device_lost);
  }
  const auto device = opened();
  const auto in = device->allocate(64 * 4, "in");
  const auto out = device->allocate_activations(1, 64, "out");
  const auto commands = some_commands(*device, *in, *out);
  EXPECT_TRUE(device->run(*commands));
}

TEST(CudaDriverTest, NothingIsLeftWhenADeviceIsClosed) {
  use_machine({});
  {
    const auto device = opened();
    const auto in = device->allocate(64 * 4, "in");
    const auto read = device->allocate_exchanged(256, HostUse::reads, "results");
    const auto out = device->allocate_activations(1, 64, "out");
    const auto commands = some_commands(*device, *in, *out);
    EXPECT_GT(objects_alive(), 0u);
  }
  EXPECT_EQ(objects_alive(), 0u);
}

}  // namespace
}  // namespace canopy::test
