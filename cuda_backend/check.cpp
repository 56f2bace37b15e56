#include "cuda_backend/check.h"

namespace canopy::cuda {
std::string describe(const DriverApi& api, Result result) {
  const char* name = nullptr;
  const char* text = nullptr;
  api.error_name(result, &name);
  api.error_string(result, &text);
  const std::string number = "CUDA error " + std::to_string(result);
  return (name != nullptr ? name : number) + (text != nullptr ? ", " + std::string(text) : "");
}

Error error_of(const DriverApi& api, Result result, const std::string& doing) {
  const std::string why = doing + " failed: " + describe(api, result) + ".";
  if (is_lost(result)) return Error(ErrorKind::device_lost, why + " The device must be opened again.");
  if (result == kOutOfMemory) return out_of_memory(why);
  return Error(ErrorKind::unavailable, why);
}

}  // namespace canopy::cuda
