#include "engine/vulkan/upload_rate.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "engine/base/parallel.h"
#include "engine/vulkan/upload_ring.h"

namespace canopy::vk {
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
