#include "tests/model/device_under_test.h"

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include "engine/session/device_factory.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {
namespace {

std::string environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

std::unique_ptr<Device> open() {
  const std::string kind = environment("CANOPY_TEST_DEVICE", "reference");
  if (kind == "reference") return make_reference_device();
  if (kind == "vulkan") return open_device(environment("CANOPY_TEST_SELECTOR", ""));
  throw std::runtime_error("CANOPY_TEST_DEVICE is " + kind + "; allowed: reference, vulkan");
}

}  // namespace

Device& device_under_test() {
  static const std::unique_ptr<Device> device = open();
  return *device;
}

CacheType cache_under_test() {
  const std::string type = environment("CANOPY_TEST_KV", "f32");
  if (type == "f32") return CacheType::f32;
  if (type == "f16") return CacheType::f16;
  throw std::runtime_error("CANOPY_TEST_KV is " + type + "; allowed: f32, f16");
}

}  // namespace canopy::test
