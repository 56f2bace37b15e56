// The CUDA backend against a driver that lacks things, refuses and fails.

#include <gtest/gtest.h>

#include <functional>

#include "engine/base/error.h"
#include "engine/cuda_backend/cuda_device.h"
#include "engine/cuda_backend/driver_library.h"
#include "tests/cuda_backend/fake_driver.h"

namespace canopy::test {
namespace {

std::vector<cuda::DeviceFacts> facts_of(FakeMachine machine, int least_driver = 13000) {
  use_machine(std::move(machine));
  return cuda::list_devices(fake_driver(), least_driver);
}

std::unique_ptr<Device> opened() {
  const cuda::DriverApi api = fake_driver();
  return open_cuda_device({api, cuda::list_devices(api, 13000).at(0), nullptr});
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
  EXPECT_EQ(facts[0].driver, "CUDA 13.0");
  EXPECT_EQ(facts[0].uuid.size(), 32u);
  EXPECT_NE(facts[0].uuid, facts[1].uuid);
  EXPECT_NE(facts[1].reason.find("7.0"), std::string::npos);
  EXPECT_NE(facts[2].reason.find("prohibited"), std::string::npos);
  EXPECT_NE(facts[3].reason.find("no memory"), std::string::npos);
}

TEST(CudaDriverTest, OldDriversAndBuildsWithoutKernelsAreReasons) {
  FakeMachine machine;
  machine.driver_version = 12040;
  const auto old = facts_of(machine);
  EXPECT_NE(old[0].reason.find("12.4; 13.0"), std::string::npos);
  EXPECT_NE(facts_of({}, 0)[0].reason.find("nvcc"), std::string::npos);
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
  EXPECT_NE(message.find("1048576 bytes are needed, 524288 are free"), std::string::npos);
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

TEST(CudaDriverTest, APassIsOneCallAndAllocatesNothing) {
  use_machine({});
  const auto device = opened();
  const auto in = device->allocate(64 * 4, "in");
  const auto out = device->allocate_activations(1, 64, "out");
  const auto commands = some_commands(*device, *in, *out);
  device->run(*commands);
  const uint64_t graphs = calls_of("launch_graph"), launches = calls_of("launch"), memory = calls_of("allocate");
  for (int i = 0; i < 3; ++i) device->run(*commands);
  EXPECT_EQ(calls_of("launch_graph"), graphs + 3);
  EXPECT_EQ(calls_of("launch"), launches);
  EXPECT_EQ(calls_of("allocate"), memory);
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
