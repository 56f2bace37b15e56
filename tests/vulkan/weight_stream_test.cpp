#include "engine/vulkan/upload.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "engine/vulkan/device_objects.h"
#include "tests/vulkan/devices.h"

namespace canopy::vk {
namespace {

using testing::error_of;

constexpr uint32_t kRows = 64 * 37 + 5, kCols = 96;
constexpr uint64_t kRowBytes = kCols / 32 * 34;  // q8_0, which has scales apart

class WeightStreamTest : public testing::DeviceTest {
 protected:
  WeightStreamTest() : file_(kRows * kRowBytes) {
    uint32_t state = 1;
    for (std::byte& byte : file_) byte = static_cast<std::byte>((state = state * 1664525 + 1013904223) >> 24);
  }

  WeightPart part() const { return {WeightType::q8_0, kRows, kCols, file_}; }

  /// The bands in pieces of at most `most`, into the two buffers.
  static std::vector<StreamPiece> pieces(const WeightShardLayout& whole, uint64_t most, const Buffer& units,
                                         const Buffer& scales) {
    std::vector<StreamPiece> result;
    for (uint64_t first = 0; first < whole.bands(); first += most) {
      const uint64_t bands = std::min(most, whole.bands() - first);
      const auto first_row = static_cast<uint32_t>(first * kBandRows);
      const auto stored = static_cast<uint32_t>(bands * kBandRows);
      result.push_back({{first_row, std::min(stored, whole.rows - first_row), stored, bands * whole.band_unit_bytes(),
                         bands * whole.band_scale_bytes()},
                        &units,
                        &scales,
                        first * whole.band_unit_bytes(),
                        first * whole.band_scale_bytes()});
    }
    return result;
  }

  std::vector<std::byte> file_;
};
CANOPY_ON_EVERY_DEVICE(WeightStreamTest);

// Many more pieces than slots, several weights through one ring.
TEST_P(WeightStreamTest, bringsWhatRepackMakes) {
  const auto context = open({.force_staging = true});
  const std::vector<WeightPart> parts = {part()};
  const WeightShardLayout whole = shard_rows(WeightType::q8_0, {kRows, kCols}, 1 << 30).at(0);
  std::vector<uint32_t> units(whole.unit_bytes / 4), scales(whole.scale_bytes / 4);
  repack(parts, WeightLayout::stacked, whole, units, scales);
  UploadRing ring(*context, 3 * (whole.band_unit_bytes() + whole.band_scale_bytes()));
  uint64_t next_slot = 0;
  for (const uint64_t bands : {3u, 1u, 2u}) {
    const Buffer to_units = context->create_buffer(BufferKind::device, whole.unit_bytes, "units");
    const Buffer to_scales = context->create_buffer(BufferKind::device, whole.scale_bytes, "scales");
    stream(ring, next_slot, parts, WeightLayout::stacked, pieces(whole, bands, to_units, to_scales));
    std::vector<uint32_t> back_units(units.size()), back_scales(scales.size());
    context->download(to_units, 0, std::as_writable_bytes(std::span(back_units)));
    context->download(to_scales, 0, std::as_writable_bytes(std::span(back_scales)));
    EXPECT_EQ(back_units, units) << bands;
    EXPECT_EQ(back_scales, scales) << bands;
  }
  EXPECT_EQ(next_slot, 13u + 38u + 19u);
}

TEST_P(WeightStreamTest, aReaderThatThrowsEndsItAndTheRingGoesOn) {
  const auto context = open({.force_staging = true});
  const WeightShardLayout whole = shard_rows(WeightType::q8_0, {kRows, kCols}, 1 << 30).at(0);
  const Buffer units = context->create_buffer(BufferKind::device, whole.unit_bytes, "units");
  const Buffer scales = context->create_buffer(BufferKind::device, whole.scale_bytes, "scales");
  const std::vector<StreamPiece> all = pieces(whole, 2, units, scales);
  UploadRing ring(*context, 2 * (whole.band_unit_bytes() + whole.band_scale_bytes()));
  uint64_t next_slot = 0;
  for (const uint32_t last : {0u, 5u, 64u * 20, kRows - 1}) {
    std::atomic<uint32_t> asked{0};
    WeightPart failing = part();
    failing.read = [&](uint32_t first, uint32_t count, std::vector<std::byte>&) {
      ++asked;
      if (first + count > last) throw cancelled("Enough.");
      return std::span<const std::byte>(file_).subspan(first * kRowBytes, count * kRowBytes);
    };
    const std::vector<WeightPart> parts = {failing};
    EXPECT_EQ(error_of([&] { stream(ring, next_slot, parts, WeightLayout::stacked, all); }), "cancelled: Enough.");
    EXPECT_LE(asked, last / 64 + 1 + std::thread::hardware_concurrency()) << "threads went on after the failure";
  }
  const std::vector<WeightPart> parts = {part()};
  EXPECT_EQ(error_of([&] { stream(ring, next_slot, parts, WeightLayout::stacked, all); }), "");
  std::vector<uint32_t> expected(whole.unit_bytes / 4), expected_scales(whole.scale_bytes / 4), back(expected.size());
  repack(parts, WeightLayout::stacked, whole, expected, expected_scales);
  context->download(units, 0, std::as_writable_bytes(std::span(back)));
  EXPECT_EQ(back, expected);
}

}  // namespace
}  // namespace canopy::vk
