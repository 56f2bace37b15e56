#include "tests/vulkan/devices.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>

namespace canopy::vk::testing {
namespace {

// SwiftShader, which Debian's Chromium contains: subgroups of 4, no fp16, no 16-bit storage.
constexpr const char* swiftshader = "/usr/lib/chromium/vk_swiftshader_icd.json";

InstanceOptions test_options() {
  if (std::getenv("VK_DRIVER_FILES") == nullptr && std::getenv("VK_ICD_FILENAMES") == nullptr &&
      std::filesystem::exists(swiftshader)) {
    setenv("VK_ADD_DRIVER_FILES", swiftshader, /*overwrite=*/0);
  }
  InstanceOptions options;
  if (std::getenv("CANOPY_VALIDATION") == nullptr) {
    options.validation = Validation::core;
  }
  return options;
}

}  // namespace

Instance& instance() {
  static Instance shared(test_options());
  return shared;
}

std::vector<uint32_t> usable_devices() {
  std::vector<uint32_t> indexes;
  for (const DeviceReport& report : instance().list_devices()) {
    if (report.usable) {
      indexes.push_back(report.index);
    }
  }
  return indexes;
}

std::string device_test_name(const ::testing::TestParamInfo<uint32_t>& info) {
  std::string name = instance().list_devices().at(info.param).name;
  name = name.substr(0, name.find_first_of(" ("));
  std::erase_if(name, [](unsigned char c) { return std::isalnum(c) == 0; });
  return name + std::to_string(info.param);
}

void DeviceTest::TearDown() {
  for (const ValidationMessage& message : instance().messages()) {
    ADD_FAILURE() << "The validation layer says: " << message.text;
  }
}

}  // namespace canopy::vk::testing
