#include "app/models/device_words.h"

#include "app/models/memory_table.h"

namespace canopy::app {
namespace {

/// "1.3.230" -> "1.3"
std::string major_minor(const std::string& version) {
  const size_t first = version.find('.');
  const size_t second = first == std::string::npos ? first : version.find('.', first + 1);
  return version.substr(0, second);
}

std::string joined(const std::string& a, const std::string& b) {
  return a.empty() ? b : b.empty() ? a : a + ", " + b;
}

}  // namespace

std::string without_brackets(const std::string& text) {
  const size_t bracket = text.find(" (");
  return bracket == 0 || bracket == std::string::npos ? text : text.substr(0, bracket);
}

std::string memory_words(const DeviceChoice& device) {
  if (device.memory_bytes == 0) return "";
  const bool shared = device.type == "integrated" || device.type == "cpu";
  return bytes_text(device.memory_bytes) + (shared ? " shared" : "");
}

std::string backend_words(const std::string& backend) {
  return backend == "cuda" ? "CUDA" : backend == "vulkan" ? "Vulkan" : backend;
}

std::string driver_words(const DeviceChoice& device) {
  if (device.backend == "cuda") {
    return joined(without_brackets(device.driver),
                  device.capability.empty() ? "" : "compute capability " + device.capability);
  }
  const std::string vulkan = device.api_version.empty() ? "" : "Vulkan " + major_minor(device.api_version);
  return joined(vulkan, without_brackets(device.driver));
}

std::string self_test_words(const ModelsState& models, const DeviceChoice& device) {
  const bool software = device.type == "cpu";
  const DeviceTest* test = test_of(models, device);
  if (!test) return software ? "works, slow; not tested yet" : "self-test with the first model";
  if (!test->passed) return "failed the self-test";
  return software ? "works, slow; passed the self-test" : "passed the self-test";
}

std::string device_words(const DeviceChoice& device) {
  return joined(joined(device.type == "cpu" ? "software" : device.type, memory_words(device)), driver_words(device));
}

std::string device_details(const ModelsState& models, const DeviceChoice& device) {
  std::string text = device.name;
  if (!device.usable) return text + "\nCannot be used: " + device.reason;
  text += "\n" + joined(device.type == "cpu" ? "A software device" : device.type, memory_words(device));
  if (!device.driver.empty())
    text += "\n" + joined(device.driver, device.api_version.empty() ? "" : "Vulkan " + device.api_version);
  if (!device.capability.empty()) text += "\nCompute capability " + device.capability;
  if (!device.same_gpu.empty()) text += "\nThe same GPU as " + device.same_gpu;
  const DeviceTest* test = test_of(models, device);
  return text + "\n" + (test ? test->note : "Every model that is opened begins with a self-test of exactness.");
}

}  // namespace canopy::app
