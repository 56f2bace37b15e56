#include "engine/cuda_backend/peak.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "engine/compute/best_seconds.h"
#include "engine/cuda_backend/kernels/params.h"

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

}  // namespace

FmaProbe::FmaProbe(Context& context) : context_(context), out_(context, 16, false, "the peak's result") {
  plain_ = try_kernel("peak_fma_plain", 32);
  graph_.reset();
  best_ = 0;
  for (const uint32_t chains : {8u, 16u, 32u}) try_kernel("peak_fma_" + std::to_string(chains), chains * 4);
}

uint32_t FmaProbe::blocks() const {
  return std::max(1u, context_.facts().multiprocessors) * kBlocksOfAMultiprocessor;
}

std::unique_ptr<Graph> FmaProbe::recorded(const std::string& kernel, uint32_t loops) {
  PeakFmaParams params;
  params.out = out_.address();
  params.loops = loops;
  const KernelCall call = call_of(kernel, params, kThreads, blocks());
  return std::make_unique<Graph>(context_, std::span(&call, 1));
}

/// GFLOP/s. Keeps the kernel when it is the fastest so far. `fmas`: of a thread, in one loop.
double FmaProbe::try_kernel(const std::string& kernel, uint32_t fmas) {
  std::unique_ptr<Graph> graph;
  uint32_t recorded_loops = 0;
  const auto run = [&](uint32_t loops) {
    if (loops != recorded_loops) graph = recorded(kernel, loops);
    recorded_loops = loops;
    return seconds_of(context_, *graph);
  };
  const double flops = 2.0 * fmas * kThreads * blocks();  // of one loop
  const double rate = flops / best_seconds(run, 1u << 20) * 1e-9;
  if (rate > best_) {
    best_ = rate;
    flops_ = flops * recorded_loops;
    graph_ = std::move(graph);
  }
  return rate;
}

double FmaProbe::run() {
  return flops_ / seconds_of(context_, *graph_) * 1e-9;
}

DevicePeak measure_peak(Context& context) {
  DevicePeak peak;
  const FmaProbe probe(context);
  peak.fma_gflop_s = probe.best();
  peak.plain_fma_gflop_s = probe.plain();
  peak.read_gb_s = read_gb_s(context);
  return peak;
}

}  // namespace canopy::cuda
