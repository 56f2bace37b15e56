#include "tests/model/device_under_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>

#include "cuda_backend/cuda_device.h"
#include "engine/cpu/cpu_device.h"
#include "engine/vulkan/vulkan_device.h"
#include "tests/cuda_backend/gpu_under_test.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {
namespace {

std::string environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

std::vector<std::string> list(const char* name) {
  std::vector<std::string> items;
  std::istringstream text(environment(name, ""));
  for (std::string item; std::getline(text, item, ',');) items.push_back(item);
  return items;
}

// Without the user's cache folder, so that every run tests the same variants.
std::unique_ptr<Device> open_vulkan() {
  VulkanDeviceOptions options;
  options.selector = environment("CANOPY_TEST_SELECTOR", "");
  const std::string family = environment("CANOPY_TEST_FAMILY", "");
  if (!family.empty()) options.family = vk::kernel_family(family).value();
  const std::string tile = environment("CANOPY_TEST_MAX_TILE", "");
  if (!tile.empty()) options.max_tile = static_cast<uint32_t>(std::stoul(tile));
  return open_vulkan_device(options);
}

std::unique_ptr<Device> open_cuda_host() {
  if (open_made_up_gpu == nullptr)
    throw std::runtime_error("CANOPY_TEST_DEVICE is cuda_host: only cuda_models_test has it");
  return open_made_up_gpu();
}

std::unique_ptr<Device> open_cuda() {
  std::string reason;
  std::unique_ptr<Device> device = open_gpu_under_test(reason);
  if (device == nullptr) throw std::runtime_error("CANOPY_TEST_DEVICE is cuda. " + reason);
  return device;
}

std::unique_ptr<Device> open() {
  const std::string kind = environment("CANOPY_TEST_DEVICE", "reference");
  if (kind == "reference") return make_reference_device();
  if (kind == "reference_i8") return make_reference_device(uint64_t{8} << 30, /*rounds_to_8_bits=*/true);
  if (kind == "cpu") return open_cpu_device({environment("CANOPY_TEST_KERNELS", "auto"), 2});
  if (kind == "vulkan") return open_vulkan();
  if (kind == "cuda") return open_cuda();
  if (kind == "cuda_host") return open_cuda_host();
  throw std::runtime_error("CANOPY_TEST_DEVICE is " + kind +
                           "; allowed: reference, reference_i8, cpu, vulkan, cuda, cuda_host");
}

/// Any message of the validation layers fails the run.
class NoValidationMessages : public ::testing::Environment {
 public:
  void TearDown() override {
    for (const auto& message : validation_messages(device_under_test())) {
      ADD_FAILURE() << message.id << ": " << message.text;
    }
  }
};

const auto* const registered = ::testing::AddGlobalTestEnvironment(new NoValidationMessages);

}  // namespace

std::unique_ptr<Device> (*open_made_up_gpu)() = nullptr;

Device& device_under_test() {
  static std::unique_ptr<Device> device = open();
  // NVIDIA's driver may be gone by the time that a program's statics are: its device is not closed.
  static Device* const opened = device->info().backend == "cuda" ? device.release() : device.get();
  return *opened;
}

CacheType cache_under_test() {
  return checked_cache_type(environment("CANOPY_TEST_KV", "f32"));
}

bool prompt_under_test(const std::string& name) {
  const std::vector<std::string> chosen = list("CANOPY_TEST_PROMPTS");
  return chosen.empty() || std::find(chosen.begin(), chosen.end(), name) != chosen.end();
}

std::vector<uint32_t> widths_under_test(const std::vector<uint32_t>& all) {
  std::vector<uint32_t> chosen;
  for (const std::string& item : list("CANOPY_TEST_WIDTHS")) chosen.push_back(static_cast<uint32_t>(std::stoul(item)));
  return chosen.empty() ? all : chosen;
}

std::vector<uint32_t> budgets_under_test(const std::vector<uint32_t>& all) {
  const std::vector<std::string> chosen = list("CANOPY_TEST_BUDGETS");
  std::vector<uint32_t> result;
  for (const uint32_t budget : all) {
    if (chosen.empty() || std::find(chosen.begin(), chosen.end(), std::to_string(budget)) != chosen.end()) {
      result.push_back(budget);
    }
  }
  return result;
}

}  // namespace canopy::test
