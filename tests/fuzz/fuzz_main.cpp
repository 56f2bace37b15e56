// The entry point for libFuzzer.

#include <cstdint>

#include "tests/fuzz/harness.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  canopy::fuzz::run_within_limits({reinterpret_cast<const char*>(data), size});
  return 0;
}
