#include "engine/vulkan/peak.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "engine/base/machine.h"
#include "engine/compute/backend.h"
#include "engine/vulkan/command_list.h"
#include "engine/vulkan/kernel.h"
#include "engine/vulkan/upload.h"

namespace canopy::vk {
namespace {

constexpr uint32_t invocations = 256;  // of a workgroup, in both shaders
constexpr uint32_t fma_steps = 4;
// Workgroups of peak_fma: half a million invocations are more than any GPU runs at once; a software device has few
// cores, and some need 100 times as long for a multiply-add.
constexpr uint32_t fma_groups = 2048;
constexpr uint32_t software_fma_groups = 64;
constexpr uint32_t matrix_chains = 8, matrix_subgroups = 4;  // of a workgroup of peak_matrix
constexpr uint32_t units = 16;                               // of 16 bytes that an invocation of peak_read reads
constexpr uint64_t group_bytes = uint64_t{units} * invocations * 16;

struct LoopsPush {
  uint32_t loops;
};

struct NeverPush {
  uint32_t never;
};

// Records the work `times` times; what a list of it takes is what is measured.
using Record = std::function<void(CommandList& list, uint32_t times)>;

double seconds_of(Context& context, CommandList& list) {
  using clock = std::chrono::steady_clock;
  const auto start = clock::now();
  context.run(list);
  const double wall = std::chrono::duration<double>(clock::now() - start).count();
  const std::vector<Timestamp> stamps = list.timestamps();
  const double device = stamps.size() == 2 ? stamps[1].microseconds * 1e-6 : 0;
  return device > 0 ? device : wall;
}

CommandList recorded(Context& context, const Record& record, uint32_t times) {
  CommandList list(context, {.name = "peak", .max_timestamps = 2});
  list.timestamp("start");
  record(list, times);
  list.timestamp("end");
  return list;
}

// Seconds per time. A list is recorded again only for another number of times.
double best_seconds(Context& context, const Record& record, uint32_t most_times) {
  std::unique_ptr<CommandList> list;
  uint32_t recorded_times = 0;
  const auto run = [&](uint32_t times) {
    if (times != recorded_times) list = std::make_unique<CommandList>(recorded(context, record, times));
    recorded_times = times;
    return seconds_of(context, *list);
  };
  return canopy::best_seconds(run, most_times);
}

// As large as fits, to be larger than the caches; a whole number of workgroups.
uint64_t read_bytes(const Context& context) {
  const DeviceLimits& limits = context.limits();
  const bool software = context.report().type == DeviceType::cpu;
  const uint64_t most =
      std::min<uint64_t>({software ? 64ULL << 20 : 256ULL << 20, limits.max_storage_range, limits.max_allocation,
                          context.memory_info().available() / 4, limits.max_group_count[0] * group_bytes});
  return std::max(most / group_bytes, uint64_t{1}) * group_bytes;
}

double read_gb_s(Context& context) {
  const uint64_t bytes = read_bytes(context);
  const Buffer data = context.create_buffer(BufferKind::device, bytes, "peak data");
  const Buffer out = context.create_buffer(BufferKind::device, 16, "peak result");
  {
    CommandList fill(context);
    fill.fill(data, 0, bytes, 1);  // pages that were never written may all be one page of zeros
    context.run(fill);
  }
  const NeverPush push{0};  // every unit adds 1
  const Kernel& kernel = context.kernel(find_shader("peak_read"), {.spec = {{0, units}}});
  const auto record = [&](CommandList& list, uint32_t times) {
    for (uint32_t i = 0; i < times; ++i) {
      list.bind(kernel, {data, out}, push);
      list.dispatch(static_cast<uint32_t>(bytes / group_bytes));
    }
  };
  return static_cast<double>(bytes) / best_seconds(context, record, 256) * 1e-9;
}

/// 0.5 and 1 keep every chain of multiply-adds near 2: no infinities, no subnormal numbers, which some devices are slow
/// at.
Buffer peak_numbers(Context& context) {
  Buffer numbers = context.create_buffer(BufferKind::host_write, 16, "peak numbers");
  const std::array<float, 4> values = {0.5F, 1.0F, -1.0F, 0.0F};
  context.upload(numbers, 0, std::as_bytes(std::span(values)));
  return numbers;
}

uint32_t loop_groups(const Context& context) {
  const bool software = context.report().type == DeviceType::cpu;
  return std::min(software ? software_fma_groups : fma_groups, context.limits().max_group_count[0]);
}

double matrix_gflop_s(Context& context, const MatrixShape& shape) {
  const uint32_t invocations_each = matrix_subgroups * context.limits().pinned_subgroup, groups = loop_groups(context);
  const Buffer numbers = peak_numbers(context);
  const uint64_t sum_bytes = uint64_t{shape.m} * shape.n * sizeof(float);
  const Buffer out = context.create_buffer(BufferKind::device, matrix_chains * sum_bytes, "peak result");
  const Kernel& kernel =
      context.kernel(find_shader("peak_matrix"),
                     {.spec = {{0, matrix_chains}, {1, invocations_each}, {2, shape.m}, {3, shape.n}, {4, shape.k}},
                      .subgroup_size = context.limits().pinned_subgroup});
  const auto record = [&](CommandList& list, uint32_t loops) {
    list.bind(kernel, {numbers, out}, LoopsPush{loops});
    list.dispatch(groups);
  };
  const double flops = 2.0 * shape.m * shape.n * shape.k * matrix_chains * matrix_subgroups * groups;  // of one loop
  return flops / best_seconds(context, record, 1U << 20) * 1e-9;
}

}  // namespace

FmaProbe::FmaProbe(Context& context)
    : context_(context),
      numbers_(peak_numbers(context)),
      out_(context.create_buffer(BufferKind::device, 16, "peak result")) {
  for (const uint32_t chains : {8U, 16U, 32U}) try_kernel(chains, fma_steps);
  const double unrolled = std::exchange(best_, 0.0);
  std::unique_ptr<CommandList> list = std::move(list_);
  const double flops = flops_;
  try_kernel(32, 1);
  plain_ = std::exchange(best_, unrolled);
  list_ = std::move(list);
  flops_ = flops;
}

// Keeps the kernel when it is the fastest so far.
void FmaProbe::try_kernel(uint32_t chains, uint32_t steps) {
  const uint32_t groups = loop_groups(context_);
  const Kernel& kernel = context_.kernel(find_shader("peak_fma"), {.spec = {{0, chains}, {1, steps}}});
  const auto record = [&](CommandList& list, uint32_t loops) {
    list.bind(kernel, {numbers_, out_}, LoopsPush{loops});
    list.dispatch(groups);
  };
  const double flops = 2.0 * chains * steps * invocations * groups;  // of one loop
  const double seconds = best_seconds(context_, record, 1U << 20);
  if (flops / seconds * 1e-9 <= best_) return;
  best_ = flops / seconds * 1e-9;
  const auto loops = static_cast<uint32_t>(std::clamp(kWantedRunSeconds / seconds, 1.0, 1048576.0));
  flops_ = flops * loops;
  list_ = std::make_unique<CommandList>(recorded(context_, record, loops));
}

FmaProbe::~FmaProbe() = default;

double FmaProbe::run() {
  return flops_ / seconds_of(context_, *list_) * 1e-9;
}

DevicePeak measure_peak(Context& context, const MatrixShape* matrix) {
  DevicePeak peak;
  const FmaProbe probe(context);
  peak.fma_gflop_s = probe.best();
  peak.plain_fma_gflop_s = probe.plain();
  if (matrix != nullptr) peak.matrix_gflop_s = matrix_gflop_s(context, *matrix);
  peak.read_gb_s = read_gb_s(context);
  return peak;
}

namespace {

constexpr uint64_t kUploadedBytes = 64ull << 20;

template <class F>
double best_gb_s(F&& run) {
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::max(best, static_cast<double>(kUploadedBytes) / seconds.count() * 1e-9);
  }
  return best;
}

}  // namespace

double measure_upload(Context& context) {
  const Buffer to = context.create_buffer(BufferKind::device, kUploadedBytes, "upload rate");
  context.wait_idle();
  if (!to.mapped().empty()) {
    const std::vector<std::byte> from(kUploadedBytes, std::byte{1});
    return best_gb_s([&] {
      parallel_for(kUploadedBytes, 1 << 20, [&](uint64_t begin, uint64_t end) {
        std::memcpy(to.mapped().data() + begin, from.data() + begin, end - begin);
      });
    });
  }
  UploadRing ring(context, UploadRing::kSlotBytes);
  for (uint64_t slot = 0; slot < UploadRing::kSlots; ++slot)
    std::memset(ring.slot(slot).data(), 1, UploadRing::kSlotBytes);
  return best_gb_s([&] {
    for (uint64_t i = 0; i < kUploadedBytes / UploadRing::kSlotBytes; ++i) {
      const SlotCopy copy = {0, &to, i * UploadRing::kSlotBytes, UploadRing::kSlotBytes};
      ring.wait_until_free(i);
      ring.submit(i, {&copy, 1});
    }
    context.wait_idle();
  });
}

}  // namespace canopy::vk
