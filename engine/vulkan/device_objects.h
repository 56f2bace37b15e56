#pragma once
// What buffers, activations, K/V layers and weights of engine/compute are on a Vulkan device, how they lie in its
// memory, and how the rows of a file are packed into that layout.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/base/numbers.h"
#include "engine/compute/types.h"
#include "engine/compute/weights.h"
#include "engine/vulkan/command_list.h"
#include "engine/vulkan/memory.h"

namespace canopy::vk {

// The layout of activations in memory; shaders/activations.glsl is the same in GLSL.

/// Sums that make up the sum of squares of a row of `cols` elements, one for each 64 (SQUARE_BLOCK of
/// shaders/product.glsl).
inline uint32_t square_blocks(uint32_t cols) {
  return (cols + 63) / 64;
}

/// Floats from one row to the next.
inline uint32_t activation_stride(uint32_t cols) {
  return (cols + 63) / 64 * 64;
}

// Types whose weights lie in device memory as words (shaders/weights.glsl reads them): per block of 32 columns, words
// of codes and words of the codes' upper bits; per group of blocks, 16 bits of scale for each (Q5: a whole word) and,
// for the K-quants and IQ4_XS, one word whose halves are factors of all. Nothing is widened: a row takes at most a
// tenth more than in the file.

struct WordFormat {
  uint32_t main_words;    // of a block: 4 bits a code, or 2 (2 words)
  uint32_t high_words;    // 1 bit a code each
  uint32_t group_blocks;  // blocks that share the words behind them
  uint32_t scale_words;   // of a group
  bool has_factor;

  constexpr uint32_t block_words() const { return main_words + high_words; }
  constexpr uint32_t group_words() const { return group_blocks * block_words() + scale_words + (has_factor ? 1 : 0); }
};

/// The format of a type, or nullptr for those kept in units (WeightShardLayout).
const WordFormat* word_format(WeightType type);

/// Words of one row of `cols` columns; whole groups.
uint32_t words_per_row(const WordFormat& format, uint32_t cols);

/// -2^power times a half, rounded as f32_to_f16 does.
constexpr uint16_t minus_power_of_two_times(uint16_t half, uint32_t power) {
  const uint32_t exponent = half >> 10 & 31;
  if (exponent == 0 || exponent + power > 30) {  // subnormal, or infinite by then
    return f32_to_f16(-static_cast<float>(1u << power) * f16_to_f32(half));
  }
  return static_cast<uint16_t>((half + (power << 10)) ^ 0x8000u);
}

// The layout of a weight matrix in device memory (shaders/weights.glsl reads it). Rows are cut into bands of 64, so
// that a workgroup reads its rows' weights in one forward run. In a band, units of 16 bytes: unit u of row r at index
// u * 64 + r; block types add one word of scale per block of 32 at index block * 64 + r (q4_1: scale and minimum as two
// halves; q8_0: the scale as f32). Other block types lie in bands of words (WordFormat). Rows are padded to whole
// bands, columns to a multiple of 32, with zeros. Large matrices are cut by rows.

inline constexpr uint32_t kBandRows = 64;

/// Columns that one 16-byte unit holds; not for types that have a word_format().
uint32_t columns_per_unit(WeightType type);

/// A run of rows kept in one pair of buffers.
struct WeightShardLayout {
  uint32_t first_row = 0;
  uint32_t rows = 0;
  uint32_t stored_rows = 0;
  uint64_t unit_bytes = 0;
  uint64_t scale_bytes = 0;  // 0 for types without scales

  uint64_t bands() const { return stored_rows / kBandRows; }
  uint64_t band_unit_bytes() const { return unit_bytes / bands(); }
  uint64_t band_scale_bytes() const { return scale_bytes / bands(); }
};

/// Cuts rows so that no buffer exceeds `max_bytes`. Shards start at whole bands.
std::vector<WeightShardLayout> shard_rows(WeightType type, WeightExtent extent, uint64_t max_bytes);

// Turns the rows of a file into that layout.

/// Packs the band of a shard with this index into its words, which are written once, forward, in at most four streams
/// that fill whole cache lines, and never read: they may lie in memory that the host does not cache.
using PackBand = std::function<void(const WeightShardLayout& shard, uint64_t band, std::span<uint32_t> units,
                                    std::span<uint32_t> scales)>;

/// For one thread, with the memory that it works in. It asks the parts, which must outlive it, for up to 64 rows at a
/// time and throws what their readers throw.
PackBand band_packer(std::span<const WeightPart> parts, WeightLayout layout);

/// Fills a shard's words from the file's bytes, band by band on all cores, which take the bands in ascending order.
/// `units` and `scales` have the shard's bytes. Throws what the parts' readers throw.
void repack(std::span<const WeightPart> parts, WeightLayout layout, const WeightShardLayout& shard,
            std::span<uint32_t> units, std::span<uint32_t> scales);

/// How many bands are work enough for one thread: starting it costs as much as fewer.
uint64_t bands_of_a_thread(const WeightShardLayout& shard);

// The Vulkan implementations of the handle types of engine/compute: buffers, weights, activations, K/V layers.

class VulkanBuffer : public canopy::Buffer {
 public:
  VulkanBuffer(vk::Buffer memory, uint64_t bytes)
      : own_(std::move(memory)), memory_(&own_), bytes_(bytes), bound_bytes_(own_.bytes()) {}
  /// A part of another buffer, which must outlive it.
  VulkanBuffer(const VulkanBuffer& whole, uint64_t offset, uint64_t bytes)
      : memory_(whole.memory_), offset_(whole.offset_ + offset), bytes_(bytes), bound_bytes_(bytes) {}
  uint64_t bytes() const override { return bytes_; }

  /// Where its bytes lie: from offset() on, bound_bytes() of them in a binding (of a whole buffer all that was
  /// allocated).
  const vk::Buffer& memory() const { return *memory_; }
  uint64_t offset() const { return offset_; }
  uint64_t bound_bytes() const { return bound_bytes_; }

 private:
  vk::Buffer own_;  // empty in a part
  const vk::Buffer* memory_ = nullptr;
  uint64_t offset_ = 0;
  uint64_t bytes_ = 0;
  uint64_t bound_bytes_ = 0;
};

class VulkanActivations : public canopy::Activations {
 public:
  VulkanActivations(uint32_t max_width, uint32_t cols)
      : Activations(max_width, cols), square_blocks(vk::square_blocks(cols)) {}

  Buffer values;           // [max_width, activation_stride(cols)]
  uint32_t square_blocks;  // sums in `squares` that make up the sum of squares of a row
  Buffer squares;          // [max_width, square_blocks]
};

/// A layer's parts of a cache's memory.
class VulkanKv : public canopy::KvLayer {
 public:
  VulkanKv(const KvShape& shape, const Binding& keys, const Binding& values)
      : shape(shape), keys(keys), values(values) {}

  KvShape shape;
  Binding keys;
  Binding values;  // of a latent cache the keys again
};

/// Planes, which are the keys or the values of a layer: those of layer 0, then of layer 1, ... A shard has as many as
/// one binding can, so that slots of all layers are moved in few dispatches.
class VulkanKvCache : public canopy::KvCache {
 public:
  struct Shard {
    std::unique_ptr<Buffer> memory;  // [planes, plane_words]
    uint32_t planes = 0;
  };
  VulkanKvCache(std::vector<std::unique_ptr<KvLayer>> layers, std::vector<Shard> shards, const KvShape& shape,
                uint32_t plane_words)
      : KvCache(std::move(layers)), shape(shape), plane_words(plane_words), shards(std::move(shards)) {}

  KvShape shape;
  uint32_t plane_words;
  std::vector<Shard> shards;
};

struct WeightShard {
  WeightShardLayout layout;
  Buffer units;
  Buffer scales;  // empty for types without scales
};

class VulkanWeight : public canopy::Weight {
 public:
  using Weight::Weight;
  std::vector<WeightShard> shards;
};

}  // namespace canopy::vk
