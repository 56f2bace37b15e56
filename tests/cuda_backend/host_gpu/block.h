#pragma once
// Runs kernels that were compiled for the host as a GPU would: a block's threads as fibers with barriers, warps of 32
// with shuffles and matrix products, shared memory filled with NaN beforehand. Every mistake that a GPU would answer
// with wrong values is an error here: threads that wait for different things, an index outside of shared memory, an
// address outside of device memory.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace canopy::host_gpu {

inline constexpr uint32_t kWarp = 32;

struct Dim {
  uint32_t x = 1, y = 1, z = 1;
};

struct Launch {
  Dim grid;
  uint32_t threads = kWarp;  // of a block, a multiple of kWarp
  uint32_t shared_bytes = 0;
};

/// A kernel's code: called once by each thread.
using KernelBody = void (*)(const void* params);

/// Runs all blocks of a grid, on all cores. Throws std::logic_error with what the kernel did wrong and where.
void launch(const std::string& kernel, KernelBody body, const void* params, const Launch& launch);

// ---- of the thread that calls them, inside a kernel -----------------------------------------------------------------

struct Place {
  uint32_t thread = 0;  // in its block
  uint32_t threads = 0;
  Dim block, grid;
  bool waited = false;  // for all earlier kernels
};
const Place& place();

/// Until a thread calls this, earlier kernels may still run: it may read only memory that no kernel writes. One that
/// ends without is an error.
void wait_for_earlier_kernels();

/// Waits until all threads of the block are here.
void wait_for_block();

/// Begins to copy 16 bytes of device memory to shared memory; zeros where `from` is 0. What was there is gone at once,
/// what comes is there when this thread has waited for the group that the copy belongs to; the copies since the last
/// end_copy_group() are one.
void copy_async(uint32_t to, uint64_t from);
void end_copy_group();
/// Waits until at most so many of this thread's groups, the last ones, are under way.
void wait_for_copies(uint32_t pending);

/// Products of warpgroups (warpgroups.h).
void show_to_warpgroups();
void begin_warpgroup_products();
void begin_warpgroup_product(float* sums, const uint32_t* a, uint32_t b);
void end_warpgroup_products();

/// A part of the block's shared memory, checked.
std::byte* shared_bytes(uint32_t offset, uint32_t bytes);

/// What a lane gives to an operation of its warp.
struct LaneWords {
  uint32_t words[12] = {};
};
/// Gives `mine` and waits until all 32 lanes have given theirs: those of all of them, in order. They stay valid until
/// the lane's next exchange but one.
std::span<const LaneWords, kWarp> exchange(const LaneWords& mine);

/// An operation of all lanes of a warp: once all 32 have given `mine`, `operation` makes their results of them, once.
using WarpOperation = void (*)(std::span<const LaneWords, kWarp> given, std::span<LaneWords, kWarp> results);
LaneWords together(const LaneWords& mine, WarpOperation operation);
/// Until at most so many of the groups are under way, the last ones; `multiply` computes products of the others.
void wait_for_warpgroup_products(uint32_t pending, WarpOperation multiply);

/// Throws std::logic_error: the kernel did something that a GPU cannot.
[[noreturn]] void fail(const std::string& what);

}  // namespace canopy::host_gpu
