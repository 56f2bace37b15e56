#pragma once
// A driver of made-up GPUs, which runs the kernels that were compiled for the host. What is submitted runs as late as
// it may, when something waits for it, so that a wait that is missing shows. Its calls can be made to fail.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_backend/driver.h"

namespace canopy::test {

struct FakeGpu {
  std::string name = "Made-up GPU";
  int capability = 90;
  uint64_t memory = uint64_t{2} << 30;
  bool prohibited = false;
  std::string uuid = {};  // 16 bytes; empty: one of its own
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
  bool computes = true;  // false: kernels are launched and do nothing, which is quick
};

/// Makes this the machine that fake_driver() speaks of, with nothing allocated and no calls counted.
void use_machine(FakeMachine machine);
cuda::DriverApi fake_driver();

/// Of the machine in use: the nth call from now on of a function gives a result without doing anything. Nothing may
/// use the driver meanwhile.
void fail_call(const std::string& function, uint64_t nth, cuda::Result result);

/// How often a function was called since use_machine().
uint64_t calls_of(std::string_view function);
/// All of them, by function.
const std::map<std::string, uint64_t, std::less<>>& all_calls();
/// Kernels that were launched with leave to start while those before them run.
uint64_t overlapping_launches();
/// Names of the kernels that were launched since the last call, or use_machine().
std::set<std::string> take_launched_kernels();
/// What is allocated, opened and recorded now, and was not given back: 0 once everything is closed.
uint64_t objects_alive();

}  // namespace canopy::test
