#pragma once
// A driver of made-up GPUs, which runs the kernels that were compiled for the host. Its calls can be made to fail.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cuda_backend/driver_api.h"

namespace canopy::test {

struct FakeGpu {
  std::string name = "Made-up GPU";
  int capability = 90;
  uint64_t memory = uint64_t{2} << 30;
  bool prohibited = false;
};

/// What the driver is made of. One of them is in use at a time, by one thread.
struct FakeMachine {
  int driver_version = 13000;
  std::vector<FakeGpu> gpus = {FakeGpu{}};
  int init_result = cuda::kSuccess;

  /// The nth call (from 1) of a function gives a result without doing anything; a lost context stays lost until reset.
  struct Failure {
    std::string function;  // as DriverApi names it
    uint64_t nth = 1;
    cuda::Result result = 1;
  };
  std::vector<Failure> failures;
};

/// Makes this the machine that fake_driver() speaks of, with nothing allocated and no calls counted.
void use_machine(FakeMachine machine);
cuda::DriverApi fake_driver();

/// How often a function was called since use_machine().
uint64_t calls_of(std::string_view function);
/// What is allocated, opened and recorded now, and was not given back: 0 once everything is closed.
uint64_t objects_alive();

}  // namespace canopy::test
