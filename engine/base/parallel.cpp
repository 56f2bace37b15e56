#include "engine/base/parallel.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <vector>

namespace canopy {

void parallel_for(uint64_t count, uint64_t least, const std::function<void(uint64_t begin, uint64_t end)>& work) {
  const uint64_t cores = std::max(1u, std::thread::hardware_concurrency());
  const uint64_t parts = std::clamp<uint64_t>(count / std::max<uint64_t>(least, 1), 1, cores);
  if (count == 0) return;
  std::vector<std::exception_ptr> failures(parts);
  const auto run = [&](uint64_t part) {
    try {
      work(count * part / parts, count * (part + 1) / parts);
    } catch (...) {
      failures[part] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (uint64_t part = 1; part < parts; ++part) {
      try {
        threads.emplace_back(run, part);
      } catch (const std::system_error&) {
        run(part);  // no further thread could be started: run this part here
      }
    }
    run(0);
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace canopy
