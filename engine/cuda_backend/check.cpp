#include "engine/cuda_backend/check.h"

#include <algorithm>
#include <iterator>

namespace canopy::cuda {
namespace {

// Of the driver API's results those after which a context cannot be used, or the GPU itself is gone.
constexpr Result kLost[] = {
    4,    // deinitialized
    46,   // device unavailable
    214,  // ECC uncorrectable
    220,  // NVLink uncorrectable
    226,  // an error that was contained to this process
    700,  // illegal address
    702,  // launch timeout
    709,  // context is destroyed
    710,  // assert
    714,  // hardware stack error
    715,  // illegal instruction
    716,  // misaligned address
    717,  // invalid address space
    718,  // invalid program counter
    719,  // launch failed
    721,  // tensor memory leak
    911,  // external device
    999,  // unknown, as after a driver's reset
};

}  // namespace

bool is_lost(Result result) {
  return std::ranges::find(kLost, result) != std::end(kLost);
}

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
