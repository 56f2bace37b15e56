#include "app/models/device_words.h"

#include <algorithm>

#include "app/models/memory_table.h"

namespace canopy::app {
namespace {

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
  const bool shared = device.type == "integrated" || device.type == "cpu" || device.type == "software";
  return bytes_text(device.memory_bytes) + (shared ? " shared" : "");
}

std::string backend_words(const std::vector<DeviceChoice>& devices, const std::string& backend) {
  const auto found = std::ranges::find(devices, backend, &DeviceChoice::backend);
  return found == devices.end() ? backend : found->backend_title;
}

std::string self_test_words(const ModelsState& models, const DeviceChoice& device) {
  const bool software = device.type == "software";
  const DeviceTest* test = test_of(models, device);
  if (!test) return software ? "works, slow; not tested yet" : "self-test with the first model";
  if (!test->passed) return "failed the self-test";
  return software ? "works, slow; passed the self-test" : "passed the self-test";
}

std::string device_words(const DeviceChoice& device) {
  return joined(joined(device.type == "cpu" ? "processor" : device.type, memory_words(device)), device.words);
}

std::string device_details(const ModelsState& models, const DeviceChoice& device) {
  std::string text = device.name;
  if (!device.usable) return text + "\nCannot be used: " + device.reason;
  text += "\n" + joined(device.type == "software" ? "A software device"
                        : device.type == "cpu"    ? "The processor"
                                                  : device.type,
                        memory_words(device));
  if (!device.details.empty()) text += "\n" + device.details;
  if (!device.same_gpu.empty()) text += "\nThe same GPU as " + device.same_gpu;
  const DeviceTest* test = test_of(models, device);
  return text + "\n" + (test ? test->note : "Every model that is opened begins with a self-test of exactness.");
}

}  // namespace canopy::app
