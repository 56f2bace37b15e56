#include "tests/cuda_backend/gpu_under_test.h"

#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "cuda_backend/cuda_device.h"
#include "cuda_backend/driver.h"
#include "engine/base/error.h"

namespace canopy::test {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

size_t ordinal_under_test() {
  const std::string selector = environment("CANOPY_TEST_SELECTOR"), prefix = "cuda:";
  if (selector.empty()) return 0;
  const std::string number = selector.starts_with(prefix) ? selector.substr(prefix.size()) : "";
  if (number.empty() || number.find_first_not_of("0123456789") != std::string::npos) {
    throw std::runtime_error("CANOPY_TEST_SELECTOR is " + selector + "; allowed of CUDA: cuda:0, cuda:1, ...");
  }
  return std::stoul(number);
}

}  // namespace

std::unique_ptr<Device> open_gpu_under_test(std::string& reason) {
  const size_t ordinal = ordinal_under_test();
  const std::string family = environment("CANOPY_TEST_FAMILY");
  if (!family.empty() && family != "matrix") {
    throw std::runtime_error("CANOPY_TEST_FAMILY is " + family + "; allowed of CUDA: matrix");
  }
  const cuda::FoundDriver driver = cuda::find_driver();
  reason = driver.reason;
  if (!driver.api) return nullptr;
  const cuda::Kernels& kernels = cuda::installed_kernels();
  const std::vector<cuda::DeviceFacts> all = cuda::list_devices(*driver.api, kernels);
  reason = ordinal >= all.size() ? "There is no GPU cuda:" + std::to_string(ordinal) + "." : all[ordinal].reason;
  if (!reason.empty()) return nullptr;
  std::unique_ptr<Device> device = open_cuda_device({*driver.api, all[ordinal], kernels.fatbins});
  while (family == "matrix" && device->fall_back()) {
  }
  return device;
}

}  // namespace canopy::test
