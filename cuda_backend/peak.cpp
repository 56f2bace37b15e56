#include "cuda_backend/peak.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "cuda_backend/kernels/peak_params.h"
#include "engine/compute/best_seconds.h"

namespace canopy::cuda {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kBlocksOfAMultiprocessor = 16;  // twice what one holds at once
constexpr uint64_t kReadBlockBytes = uint64_t{kPeakReadUnits} * kThreads * 16;

double seconds_of(Context& context, const Graph& graph) {
  const auto start = std::chrono::steady_clock::now();
  context.start(graph);
  context.finish();
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double device = context.last_ms() * 1e-3;
  return device > 0 ? device : wall;
}

/// Several times the cache, as far as memory is free.
uint64_t read_bytes(const Context& context) {
  const uint64_t wanted = std::clamp<uint64_t>(uint64_t{context.facts().l2_bytes} * 8, 4 << 20, uint64_t{512} << 20);
  const uint64_t blocks = std::min(wanted, context.memory().available / 4) / kReadBlockBytes;
  return std::max<uint64_t>(blocks, 1) * kReadBlockBytes;
}

double read_gb_s(Context& context) {
  const uint64_t bytes = read_bytes(context);
  const Memory data(context, bytes, false, "the peak's data"), out(context, 16, false, "the peak's result");
  context.fill(data.address(), 1, bytes / 4);
  const KernelCall call = call_of("peak_read", PeakReadParams{data.address(), out.address(), 0}, kThreads,
                                  static_cast<uint32_t>(bytes / kReadBlockBytes));
  std::unique_ptr<Graph> graph;
  uint32_t recorded_times = 0;
  const auto run = [&](uint32_t times) {
    if (times != recorded_times) graph = std::make_unique<Graph>(context, std::vector<KernelCall>(times, call));
    recorded_times = times;
    return seconds_of(context, *graph);
  };
  return static_cast<double>(bytes) / best_seconds(run, 256) * 1e-9;
}

/// A kernel that repeats a loop.
class LoopKernel {
 public:
  LoopKernel(Context& context, Address out, std::string name, uint32_t shared_bytes = 0)
      : context_(context), out_(out), name_(std::move(name)), shared_bytes_(shared_bytes) {}

  /// GFLOP/s, the best of several runs. `fmas`: of a thread, in one loop.
  double rate(uint32_t fmas) {
    const auto run = [this](uint32_t loops) {
      if (loops != loops_) record(loops);
      return seconds_of(context_, *graph_);
    };
    flops_ = 2.0 * fmas * kThreads * blocks();
    return flops_ / best_seconds(run, 1u << 20) * 1e-9;
  }
  /// What rate() ran last, and its operations.
  std::unique_ptr<Graph> take_graph() { return std::move(graph_); }
  double flops() const { return flops_ * loops_; }

 private:
  uint32_t blocks() const { return std::max(1u, context_.facts().multiprocessors) * kBlocksOfAMultiprocessor; }
  void record(uint32_t loops) {
    PeakLoopParams params;
    params.out = out_;
    params.loops = loops;
    const KernelCall call = call_of(name_, params, kThreads, blocks(), 1, 1, shared_bytes_);
    graph_ = std::make_unique<Graph>(context_, std::span(&call, 1));
    loops_ = loops;
  }

  Context& context_;
  const Address out_;
  const std::string name_;
  const uint32_t shared_bytes_;
  std::unique_ptr<Graph> graph_;
  uint32_t loops_ = 0;
  double flops_ = 0;  // of one loop
};

double matrix_gflop_s(Context& context, bool warpgroups) {
  const Memory out(context, 16, false, "the peak's result");
  if (warpgroups) {
    constexpr uint32_t fmas = kPeakWarpgroupProducts * 64 * 64 * 16 / 128;  // of the 128 threads of a warpgroup
    return LoopKernel(context, out.address(), "peak_warpgroups", kPeakWarpgroupBytes).rate(fmas);
  }
  constexpr uint32_t fmas = kPeakMatrixChains * 2 * 16 * 8 * 16 / 32;  // of the 32 threads of a warp
  return LoopKernel(context, out.address(), "peak_matrix").rate(fmas);
}

}  // namespace

FmaProbe::FmaProbe(Context& context) : context_(context), out_(context, 16, false, "the peak's result") {
  plain_ = try_kernel("peak_fma_plain", 32);
  graph_.reset();
  best_ = 0;
  for (const uint32_t chains : {8u, 16u, 32u}) try_kernel("peak_fma_" + std::to_string(chains), chains * 4);
}

/// GFLOP/s. Keeps the kernel when it is the fastest so far. `fmas`: of a thread, in one loop.
double FmaProbe::try_kernel(const std::string& kernel, uint32_t fmas) {
  LoopKernel looped(context_, out_.address(), kernel);
  const double rate = looped.rate(fmas);
  if (rate > best_) {
    best_ = rate;
    flops_ = looped.flops();
    graph_ = looped.take_graph();
  }
  return rate;
}

double FmaProbe::run() {
  return flops_ / seconds_of(context_, *graph_) * 1e-9;
}

DevicePeak measure_peak(Context& context, bool warpgroups) {
  DevicePeak peak;
  const FmaProbe probe(context);
  peak.fma_gflop_s = probe.best();
  peak.plain_fma_gflop_s = probe.plain();
  peak.matrix_gflop_s = matrix_gflop_s(context, warpgroups);
  peak.read_gb_s = read_gb_s(context);
  return peak;
}

}  // namespace canopy::cuda
