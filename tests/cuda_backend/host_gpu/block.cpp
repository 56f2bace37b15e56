#include "tests/cuda_backend/host_gpu/block.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <vector>

#include "engine/base/machine.h"
#include "tests/cuda_backend/host_gpu/fiber.h"
#include "tests/cuda_backend/host_gpu/host_memory.h"
#include "tests/cuda_backend/host_gpu/warpgroups.h"

namespace canopy::host_gpu {
namespace {

enum class Waits { no, warp, block };

struct Warp {
  std::array<std::array<LaneWords, kWarp>, 2> given;  // by parity of the exchange
  std::array<std::array<LaneWords, kWarp>, 2> results;
  uint32_t arrived = 0;
  uint32_t exchanges = 0;  // that are complete
};

/// Copies of a thread that are under way: groups, and those that belong to none yet.
class Copies {
 public:
  struct Copy {
    uint32_t to;
    uint64_t from;
  };
  void clear() {
    all_.clear();
    ends_.clear();
    done_ = 0;
  }
  void add(const Copy& copy) { all_.push_back(copy); }
  void end_group() { ends_.push_back(all_.size()); }
  /// Hands the copies of all groups but the last `pending` to `perform`.
  template <class Perform>
  void finish(size_t pending, const Perform& perform) {
    while (ends_.size() - finished_groups_ > pending) {
      for (const size_t end = ends_[finished_groups_++]; done_ < end; ++done_) perform(all_[done_]);
    }
    if (finished_groups_ == ends_.size() && done_ == all_.size()) reset();
  }
  void reset() {
    clear();
    finished_groups_ = 0;
  }

 private:
  std::vector<Copy> all_;
  std::vector<size_t> ends_;  // of groups, in all_
  size_t done_ = 0, finished_groups_ = 0;
};

/// The block that runs on this thread of the processor.
class Block {
 public:
  void run(const std::string& kernel, KernelBody body, const void* params, const Launch& launch, Dim index) {
    body_ = body;
    params_ = params;
    begin(launch, index);
    // Alternating directions: a kernel whose result depends on which thread comes first is then likely to show it.
    bool ascending = true;
    while (alive_ > 0) {
      bool ran = false;
      for (uint32_t i = 0; i < launch.threads && !error_; ++i) {
        ran = step(ascending ? i : launch.threads - 1 - i) || ran;
      }
      if (error_) rethrow(kernel);
      if (!ran) release_barrier(kernel);
      ascending = !ascending;
    }
  }

  const Place& place() const { return places_[current_]; }
  void wait_for_earlier() { places_[current_].waited = true; }

  void wait_for_block() {
    waits_[current_] = Waits::block;
    ++at_barrier_;
    fibers_[current_]->pause();
  }

  std::byte* shared_bytes(uint32_t offset, uint32_t bytes) {
    if (uint64_t{offset} + bytes > shared_bytes_) {
      fail("shared memory of " + std::to_string(shared_bytes_) + " bytes has no bytes " + std::to_string(offset) +
           " to " + std::to_string(uint64_t{offset} + bytes));
    }
    return shared_.data() + offset;
  }

  void copy_async(uint32_t to, uint64_t from) {
    if (from != 0) accessed(from, kCopyBytes, kCopyBytes, false);
    if (to % kCopyBytes != 0) fail("a copy to byte " + std::to_string(to) + " of shared memory, no multiple of 16");
    std::memset(shared_bytes(to, kCopyBytes), 0xFF, kCopyBytes);
    copies_[current_].add({to, from});
  }
  void end_copy_group() { copies_[current_].end_group(); }
  void wait_for_copies(uint32_t pending) {
    copies_[current_].finish(pending, [&](const Copies::Copy& copy) {
      std::byte* const to = shared_bytes(copy.to, kCopyBytes);
      if (copy.from == 0) {
        std::memset(to, 0, kCopyBytes);
      } else {
        std::memcpy(to, checked_address(copy.from, kCopyBytes), kCopyBytes);
      }
    });
  }

  std::span<const LaneWords, kWarp> exchange(const LaneWords& mine) {
    return warps_[current_ / kWarp].given[meet(mine, nullptr)];
  }
  LaneWords together(const LaneWords& mine, WarpOperation operation) {
    const uint32_t place = meet(mine, operation);
    return warps_[current_ / kWarp].results[place][current_ % kWarp];
  }

  void show_to_warpgroups() { warpgroups_.show(current_); }
  void begin_warpgroup_products() { warpgroups_.begin_group(current_); }
  void begin_warpgroup_product(float* sums, const uint32_t* a, uint32_t b) {
    warpgroups_.begin_product(current_, sums, a, b);
  }
  void end_warpgroup_products() { warpgroups_.end_group(current_); }
  void wait_for_warpgroup_products(uint32_t pending, WarpOperation multiply) {
    meet({}, nullptr);
    if (current_ % kWarp == 0) warpgroups_.finish(current_ / kWarp, pending, multiply);
    meet({}, nullptr);
  }

 private:
  static constexpr uint32_t kCopyBytes = 16;

  /// Waits for the other lanes; what all have given is at the place that this returns. The last one does the operation.
  uint32_t meet(const LaneWords& mine, WarpOperation operation) {
    Warp& warp = warps_[current_ / kWarp];
    const uint32_t place = warp.exchanges % 2;
    warp.given[place][current_ % kWarp] = mine;
    if (++warp.arrived == kWarp) {
      if (operation != nullptr) operation(warp.given[place], warp.results[place]);
      warp.arrived = 0;
      ++warp.exchanges;
      const uint32_t first = current_ / kWarp * kWarp;
      for (uint32_t i = first; i < first + kWarp; ++i) {
        if (waits_[i] == Waits::warp) waits_[i] = Waits::no;
      }
    } else {
      waits_[current_] = Waits::warp;
      fibers_[current_]->pause();
    }
    return place;
  }

  void begin(const Launch& launch, Dim index) {
    copies_.resize(std::max<size_t>(copies_.size(), launch.threads));
    for (Copies& copies : copies_) copies.reset();
    while (fibers_.size() < launch.threads) fibers_.push_back(std::make_unique<Fiber>());
    places_.assign(launch.threads, {0, launch.threads, index, launch.grid});
    waits_.assign(launch.threads, Waits::no);
    warps_.assign(launch.threads / kWarp, Warp());
    shared_bytes_ = launch.shared_bytes;
    shared_.assign(launch.shared_bytes, std::byte{0xFF});  // NaN, and no plausible index
    alive_ = launch.threads;
    at_barrier_ = 0;
    error_ = nullptr;
    warpgroups_.reset(launch.threads, shared_);
    for (uint32_t i = 0; i < launch.threads; ++i) {
      places_[i].thread = i;
      fibers_[i]->prepare([](void* block) { static_cast<Block*>(block)->call(); }, this);
    }
  }

  /// Runs a thread that waits for nothing; false where it waits or has ended.
  bool step(uint32_t thread) {
    if (fibers_[thread]->ended() || waits_[thread] != Waits::no) return false;
    current_ = thread;
    fibers_[thread]->resume();
    if (fibers_[thread]->ended()) --alive_;
    return true;
  }

  void call() {
    try {
      body_(params_);
      if (!places_[current_].waited) fail("it ended and did not wait for earlier kernels");
      warpgroups_.end(current_);
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  /// Nothing can run: all that are left must be at the barrier.
  void release_barrier(const std::string& kernel) {
    if (at_barrier_ != alive_ || alive_ == 0) {
      throw std::logic_error(kernel + ": " + std::to_string(at_barrier_) + " of " + std::to_string(alive_) +
                             " threads of a block wait at a barrier, the others for their warps: none can go on.");
    }
    at_barrier_ = 0;
    warpgroups_.meet();
    std::ranges::fill(waits_, Waits::no);
  }

  [[noreturn]] void rethrow(const std::string& kernel) {
    const Place& at = places_[current_];
    try {
      std::rethrow_exception(error_);
    } catch (const std::exception& e) {
      throw std::logic_error(kernel + ", block " + std::to_string(at.block.x) + "," + std::to_string(at.block.y) + "," +
                             std::to_string(at.block.z) + ", thread " + std::to_string(at.thread) + ": " + e.what());
    }
  }

  KernelBody body_ = nullptr;
  const void* params_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Place> places_;
  std::vector<Waits> waits_;
  std::vector<Copies> copies_;
  std::vector<Warp> warps_;
  std::vector<std::byte> shared_;
  Warpgroups warpgroups_;
  uint32_t shared_bytes_ = 0, alive_ = 0, at_barrier_ = 0, current_ = 0;
  std::exception_ptr error_;
};

thread_local Block* running = nullptr;

Block& block() {
  if (running == nullptr) throw std::logic_error("Code of a kernel was called outside of a kernel.");
  return *running;
}

}  // namespace

void launch(const std::string& kernel, KernelBody body, const void* params, const Launch& launch) {
  if (launch.threads == 0 || launch.threads > 1024 || launch.threads % kWarp != 0) {
    throw std::logic_error(kernel + ": a block of " + std::to_string(launch.threads) +
                           " threads; allowed: multiples of 32 up to 1,024.");
  }
  const uint64_t blocks = uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  parallel_for(blocks, 1, [&](uint64_t begin, uint64_t end) {
    Block block;
    running = &block;
    struct Leave {
      ~Leave() { running = nullptr; }
    } leave;
    for (uint64_t i = begin; i < end; ++i) {
      const auto x = static_cast<uint32_t>(i % launch.grid.x);
      const auto y = static_cast<uint32_t>(i / launch.grid.x % launch.grid.y);
      const auto z = static_cast<uint32_t>(i / launch.grid.x / launch.grid.y);
      block.run(kernel, body, params, launch, {x, y, z});
    }
  });
}

const Place& place() {
  return block().place();
}
void wait_for_earlier_kernels() {
  block().wait_for_earlier();
}
void wait_for_block() {
  block().wait_for_block();
}
void copy_async(uint32_t to, uint64_t from) {
  block().copy_async(to, from);
}
void end_copy_group() {
  block().end_copy_group();
}
void wait_for_copies(uint32_t pending) {
  block().wait_for_copies(pending);
}
std::byte* shared_bytes(uint32_t offset, uint32_t bytes) {
  return block().shared_bytes(offset, bytes);
}
std::span<const LaneWords, kWarp> exchange(const LaneWords& mine) {
  return block().exchange(mine);
}
LaneWords together(const LaneWords& mine, WarpOperation operation) {
  return block().together(mine, operation);
}
void show_to_warpgroups() {
  block().show_to_warpgroups();
}
void begin_warpgroup_products() {
  block().begin_warpgroup_products();
}
void begin_warpgroup_product(float* sums, const uint32_t* a, uint32_t b) {
  block().begin_warpgroup_product(sums, a, b);
}
void end_warpgroup_products() {
  block().end_warpgroup_products();
}
void wait_for_warpgroup_products(uint32_t pending, WarpOperation multiply) {
  block().wait_for_warpgroup_products(pending, multiply);
}
void fail(const std::string& what) {
  throw std::logic_error(what);
}

}  // namespace canopy::host_gpu
