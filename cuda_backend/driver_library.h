#pragma once
// Opens NVIDIA's driver library (libcuda.so.1, nvcuda.dll).

#include <optional>
#include <string>

#include "cuda_backend/driver_api.h"

namespace canopy::cuda {

/// The driver of this machine, or why there is none, as a sentence.
struct FoundDriver {
  std::optional<DriverApi> api;
  std::string reason;    // empty where there is one
  bool present = false;  // a driver is here, though perhaps too old
};

/// `library`: name or path; the usual one of this system by default. The library stays open until the program ends.
FoundDriver find_driver(const std::string& library = {});

}  // namespace canopy::cuda
