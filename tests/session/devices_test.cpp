// Both backends' devices as one list, on machines that are made up.

#include "engine/session/devices.h"

#include <gtest/gtest.h>

#include "cuda_backend/cuda_device.h"
#include "engine/base/error.h"
#include "engine/vulkan/vulkan_device.h"
#include "tests/cuda_backend/fake_device.h"

namespace canopy::test {
namespace {

vk::DeviceReport vulkan_device(uint32_t index, const char* name, const std::string& gpu) {
  vk::DeviceReport report;
  report.index = index;
  report.name = name;
  report.type = vk::DeviceType::discrete;
  report.uuid = gpu + "-0123";
  report.driver_name = "driver";
  report.driver_version = "1";
  report.api_version = "1.3.280";
  report.usable = true;
  return report;
}

/// The first made-up GPU, as Vulkan's driver would tell its identity.
const std::string kFirstGpu = "00000000000000000000000000000001";

Backend made_up_vulkan(const std::string& gpu = kFirstGpu) {
  return vulkan_backend([=] { return std::vector{vulkan_device(0, "Made-up GPU by Vulkan", gpu)}; });
}

Backend made_up_cuda() {
  return cuda_backend([] { return cuda::FoundDriver{fake_driver(), "", true}; }, fake_kernels);
}

std::vector<Backend> source(const FakeMachine& machine, const std::string& vulkan_gpu = kFirstGpu) {
  use_machine(machine);
  return {made_up_vulkan(vulkan_gpu), made_up_cuda()};
}

TEST(DevicesTest, OneListHasBothBackends) {
  FakeMachine machine;
  machine.gpus = {FakeGpu{}, {"Old", 70, 1 << 30}};
  const std::vector<DeviceChoice> devices = list_devices(source(machine));
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(devices[0].selector, "vulkan:0");
  EXPECT_EQ(devices[0].words, "Vulkan 1.3, driver 1");
  EXPECT_EQ(devices[0].details, "driver 1, Vulkan 1.3.280");
  EXPECT_EQ(devices[0].backend_title, "Vulkan");
  EXPECT_EQ(devices[0].same_gpu, "cuda:0");
  EXPECT_FALSE(devices[0].preferred);
  EXPECT_EQ(devices[1].selector, "cuda:0");
  EXPECT_EQ(devices[1].backend, "cuda");
  EXPECT_EQ(devices[1].backend_title, "CUDA");
  EXPECT_NE(devices[1].words.find("compute capability 9.0"), std::string::npos) << devices[1].words;
  EXPECT_NE(devices[1].details.find("\nCompute capability 9.0"), std::string::npos) << devices[1].details;
  EXPECT_EQ(devices[1].same_gpu, "vulkan:0");
  EXPECT_EQ(devices[1].memory_bytes, uint64_t{2} << 30);
  EXPECT_TRUE(devices[1].preferred);
  EXPECT_FALSE(devices[2].usable);
  EXPECT_NE(devices[2].reason.find("7.0"), std::string::npos);
}

TEST(DevicesTest, OtherGpusAreNotTakenForTheSame) {
  for (const DeviceChoice& device : list_devices(source({}, "another"))) EXPECT_EQ(device.same_gpu, "");
}

TEST(DevicesTest, AMachineWithoutNvidiaHasNoLineOfIt) {
  const Backend none = cuda_backend(
      [] {
        return cuda::FoundDriver{std::nullopt, "There is no NVIDIA driver here.", false};
      },
      fake_kernels);
  const std::vector<DeviceChoice> devices = list_devices({made_up_vulkan(), none});
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_TRUE(devices[0].preferred);
}

TEST(DevicesTest, ADriverThatDoesNotStartIsALineWithItsReason) {
  FakeMachine machine;
  machine.init_result = 803;
  const std::vector<DeviceChoice> devices = list_devices(source(machine));
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_TRUE(devices[0].preferred);
  EXPECT_EQ(devices[1].backend, "cuda");
  EXPECT_FALSE(devices[1].usable);
  EXPECT_NE(devices[1].reason.find("803"), std::string::npos);
  const auto json = devices_json(find_devices(source(machine)));
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[1]["backend"], "cuda");
  EXPECT_EQ(json[1]["usable"], false);
  EXPECT_EQ(json[1]["reason"], devices[1].reason);
}

TEST(DevicesTest, CudaWorksWithoutAnyVulkan) {
  use_machine({});
  const Backend no_vulkan = vulkan_backend(
      []() -> std::vector<vk::DeviceReport> { throw Error(ErrorKind::unavailable, "No Vulkan driver was found."); });
  const std::vector<Backend> alone = {no_vulkan, made_up_cuda()};
  const std::vector<DeviceChoice> devices = list_devices(alone);
  ASSERT_EQ(devices.size(), 2u) << "and why Vulkan is not here";
  EXPECT_TRUE(devices[0].preferred);
  EXPECT_EQ(devices[1].reason, "No Vulkan driver was found.");
  const std::unique_ptr<Device> device = open_device("", {"auto"}, alone);
  EXPECT_EQ(device->info().backend, "cuda");
  EXPECT_EQ(gpu_of(device->info().uuid), kFirstGpu);
  try {
    list_devices({no_vulkan, cuda_backend([] { return cuda::FoundDriver{}; }, fake_kernels)});
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "No Vulkan driver was found.");
  }
}

TEST(DevicesTest, AGpuThatDoesNotOpenIsSaidWhereItWasNamed) {
  FakeMachine machine;
  machine.failures = {{"retain_context", 1, 801}};
  const std::vector<Backend> broken = source(machine);
  try {
    open_device("cuda", {"auto"}, broken);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::unavailable);
    EXPECT_NE(std::string(e.what()).find("Opening the GPU"), std::string::npos);
  }
}

TEST(DevicesTest, InsteadOfAGpuThatWasNamedNoOtherIsOpened) {
  FakeMachine machine;
  machine.failures = {{"retain_context", 1, 801}};
  const std::vector<Backend> broken = source(machine, "another");
  const std::vector<DeviceChoice> devices = list_devices(broken);
  ASSERT_EQ(devices.size(), 2u);
  ASSERT_EQ(devices[1].backend, "cuda");
  ASSERT_EQ(devices[1].same_gpu, "") << "Vulkan does not have it";
  try {
    open_device("1", {"auto"}, broken);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("Opening the GPU"), std::string::npos);
  }
}

TEST(DevicesTest, KernelsThatCudaHasNotAreSaidWhereItWasNamed) {
  try {
    open_device("cuda:0", {"matrix_i8"}, source({}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::unavailable);
    EXPECT_STREQ(e.what(), "The CUDA backend has no kernels matrix_i8.");
  }
}

// On Hopper the default is another family, which the self-test falls back from, too.
TEST(DevicesTest, KernelsForEachWarpCanBeNamed) {
  const auto family = [](const std::string& choice) {
    const std::string kernels = open_device("cuda:0", {choice}, source({}))->info().kernels;
    return kernels.substr(kernels.rfind(' ') + 1);
  };
  EXPECT_EQ(family("auto"), "warpgroups");
  EXPECT_EQ(family("matrix"), "matrix");
}

// A third backend needs nothing but a place in the list.
TEST(DevicesTest, ABackendThatNobodyKnowsIsListedChosenAndInvolved) {
  Backend abacus;
  abacus.name = "abacus";
  abacus.title = "Abacus";
  abacus.kernels = {"beads"};
  abacus.find = [] {
    FoundDevice device;
    device.backend = "abacus";
    device.name = "Wooden frame";
    device.type = "cpu";
    device.usable = true;
    device.words = "ten rows";
    device.facts = {{"name", "Wooden frame"}, {"beads", 100}};
    return FoundDevices{{device}, "", ""};
  };
  std::string opened;
  abacus.open = [&](uint32_t ordinal, const DeviceSettings& settings) -> std::unique_ptr<Device> {
    opened = std::to_string(ordinal) + " " + settings.kernels;
    throw Error(ErrorKind::unavailable, "A bead is missing.");
  };
  FakeMachine machine;
  machine.init_result = 803;
  use_machine(machine);
  const Backend no_vulkan = vulkan_backend([] { return std::vector<vk::DeviceReport>(); });
  const std::vector<Backend> backends = {no_vulkan, made_up_cuda(), abacus};
  const std::vector<DeviceChoice> devices = list_devices(backends);
  ASSERT_EQ(devices.size(), 2u) << "and why CUDA is not here";
  EXPECT_EQ(devices[0].selector, "abacus:0");
  EXPECT_EQ(devices[0].backend_title, "Abacus");
  EXPECT_TRUE(devices[0].preferred);
  EXPECT_EQ(devices_json(find_devices(backends))[0]["beads"], 100);
  EXPECT_EQ(kernel_names(backends), (std::vector<std::string>{"auto", "matrix", "matrix_i8", "beads"}));
  for (const char* selector : {"", "abacus", "wooden", "cpu", "0"}) {
    opened.clear();
    EXPECT_THROW(open_device(selector, {"beads"}, backends), Error);
    EXPECT_EQ(opened, "0 beads") << selector;
  }
  try {
    open_device("", {"matrix"}, backends);
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "The Abacus backend has no kernels matrix.");
  }
}

/// A backend of one device, which notes that it was opened and does not open.
Backend made_up_backend(const std::string& name, const std::string& type, std::string& opened) {
  Backend backend;
  backend.name = name;
  backend.title = name;
  backend.find = [name, type] {
    FoundDevice device;
    device.backend = name;
    device.name = "The " + type + " one";
    device.type = type;
    device.usable = true;
    return FoundDevices{{device}, "", ""};
  };
  backend.open = [name, &opened](uint32_t, const DeviceSettings&) -> std::unique_ptr<Device> {
    opened += name + " ";
    throw Error(ErrorKind::unavailable, name + " is broken.");
  };
  return backend;
}

TEST(DevicesTest, TheBestIsPreferredAndWhatWasNamedIsKept) {
  std::string opened;
  const std::vector<Backend> backends = {made_up_backend("vulkan", "software", opened),
                                         made_up_backend("cpu", "cpu", opened),
                                         made_up_backend("cuda", "discrete", opened)};
  const std::vector<DeviceChoice> devices = list_devices(backends);
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_TRUE(!devices[0].preferred && !devices[1].preferred && devices[2].preferred);
  for (const char* selector : {"cpu", "cpu:0", "1", "the cpu"}) {
    opened.clear();
    try {
      open_device(selector, {}, backends);
      FAIL();
    } catch (const Error& e) {
      EXPECT_STREQ(e.what(), "cpu is broken.") << selector;
    }
    EXPECT_EQ(opened, "cpu ") << selector << ": no other instead";
  }
  opened.clear();
  EXPECT_THROW(open_device("", {}, backends), Error);
  EXPECT_EQ(opened, "cuda cpu ") << "where none was named the next best is tried";
}

TEST(DevicesTest, MemoryIsEmulatedOnTheProcessorAlone) {
  std::string opened;
  const std::vector<Backend> backends = {made_up_backend("vulkan", "software", opened),
                                         made_up_backend("cuda", "discrete", opened)};
  for (const char* selector : {"", "vulkan"}) {
    try {
      open_device(selector, {.memory_gb_s = 7}, backends);
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::bad_input);
      EXPECT_NE(std::string(e.what()).find("Memory is emulated on the processor alone, and The "), std::string::npos)
          << e.what();
    }
  }
  EXPECT_EQ(opened, "");
  const DeviceInfo slow = open_device("cpu", {.threads = 1, .memory_gb_s = 7.5})->info();
  const DeviceInfo own = open_device("cpu", {.threads = 1})->info();
  EXPECT_EQ(slow.driver, own.driver + ", emulated memory of 7.5 GB/s a thread");
  EXPECT_EQ(slow.kernels, own.kernels) << "the same bits";
}

TEST(DevicesTest, HelpNamesEveryTypeAndBackend) {
  const std::string help = device_help();
  EXPECT_NE(help.find("a type (discrete, integrated, virtual, cpu, software)"), std::string::npos) << help;
  EXPECT_NE(help.find("a backend (vulkan, cuda, cpu)"), std::string::npos) << help;
}

TEST(DevicesTest, JsonHasTheBackendOfEach) {
  FakeMachine machine;
  const auto json = devices_json(find_devices(source(machine)));
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["backend"], "vulkan");
  EXPECT_EQ(json[0]["same_gpu"], "cuda:0");
  EXPECT_EQ(json[1]["backend"], "cuda");
  EXPECT_EQ(json[1]["index"], 1);
  EXPECT_EQ(json[1]["compute_capability"], "9.0");
  EXPECT_EQ(json[1]["usable"], true);
}

}  // namespace
}  // namespace canopy::test
