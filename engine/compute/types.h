#pragma once
// Types shared by all backends: element types, device properties, and the opaque objects that a device owns.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/numbers.h"

namespace canopy {

/// How a weight matrix is kept on a device. Files in other types are converted when they are loaded.
enum class WeightType : uint32_t {
  // clang-format off
  f32, f16, bf16, q8_0, q4_1,
  q4_0, q5_0, q5_1, q2_k, q3_k, q4_k, q5_k, q6_k, iq4_nl, iq4_xs, mxfp4,
  // clang-format on
};
inline constexpr uint32_t kWeightTypes = 16;
/// Elements as they are, not codes of blocks.
constexpr bool is_dense(WeightType type) {
  return type == WeightType::f32 || type == WeightType::f16 || type == WeightType::bf16;
}

std::string to_string(WeightType type);  // as files spell it: "Q4_1"

/// Elements that share one scale, and the bytes they take in a file: {32, 20} for q4_1, {1, 2} for f16.
struct BlockSize {
  uint32_t elements = 1;
  uint32_t bytes = 4;
};
BlockSize block_size(WeightType type);

struct DeviceInfo {
  std::string name;
  std::string type;    // "discrete", "integrated", "virtual", "cpu", "software" (a GPU's interface on the processor) or
                       // "reference"
  std::string driver;  // name and version
  /// Stable across launches, changes with the driver: the GPU's own identity in hex, which is the same whatever backend
  /// it is opened by (gpu_of), then '-' and the rest.
  std::string uuid;
  std::string
      kernels;  // "VERSION; CHOICE; ...": version of the backend's shaders, then the variants chosen by timing so far
  bool draws_tokens = false;  // the op `sample` takes less time there than reading logits and drawing on the host
  uint32_t widest_tile = 1;   // most rows of a pass that one kernel of a product computes
  /// Rows of a prompt's pass beyond which wider passes read no more of it in the same time, and tell of it later.
  uint32_t prompt_rows = UINT32_MAX;
  /// Widths, ascending, that passes are padded to, so that those between share kernels and recordings; beyond the last,
  /// its multiples. Empty: no pass is padded.
  std::vector<uint32_t> width_buckets = {};
  bool adds_in_halves = false;     // sums of 32 columns of quantized weights, so that none is exact but by chance
  bool rounds_to_8_bits = false;   // activations, in products with quantized weights: other results than by default
  bool rounds_to_16_bits = false;  // activations, in products with quantized weights, by blocks of 32
  std::string pci_address = {};    // "0000:03:00.0"; empty where it has none, or the driver does not tell
  std::string backend = {};        // "vulkan", "cuda", "cpu"; empty for one that is none of these
};

/// Whether a device of this type computes on the machine's own cores, so that what else they do takes time from it.
bool is_on_processor(std::string_view type);

/// The GPU's own identity in a DeviceInfo::uuid; empty where there is none.
std::string_view gpu_of(std::string_view uuid);

/// The width that a pass of `width` rows is padded to.
uint32_t padded_width(const DeviceInfo& info, uint32_t width);

struct MemoryInfo {
  uint64_t total = 0;      // bytes the device may use at all
  uint64_t available = 0;  // bytes it may still allocate
};

/// Peak rates of a device, measured by Device::measure_peak().
struct DevicePeak {
  double read_gb_s = 0;          // 10^9 bytes a second
  double fma_gflop_s = 0;        // 10^9 operations a second, a multiply-add counting as two
  double plain_fma_gflop_s = 0;  // the same in a loop over 32 sums that is not unrolled: a bound for simple kernels
  double matrix_gflop_s = 0;     // of matrix cores, by the instructions of wide products of quantized weights; 0: none

  /// Each rate the larger of both.
  void raise_to(const DevicePeak& other) {
    read_gb_s = std::max(read_gb_s, other.read_gb_s);
    fma_gflop_s = std::max(fma_gflop_s, other.fma_gflop_s);
    plain_fma_gflop_s = std::max(plain_fma_gflop_s, other.plain_fma_gflop_s);
    matrix_gflop_s = std::max(matrix_gflop_s, other.matrix_gflop_s);
  }
  /// What bounds products: matrix cores, or multiply-adds.
  double product_gflop_s() const { return matrix_gflop_s > 0 ? matrix_gflop_s : fma_gflop_s; }
};

/// Device memory with one owner. The op that fills it defines its contents; row-major f32 unless the op says otherwise.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual uint64_t bytes() const = 0;
};

/// Offsets of parts (Device::part) are multiples of this: the largest alignment that Vulkan lets a device ask for.
inline constexpr uint64_t kPartAlignment = 256;
/// Throws bad_input, with the name in the message, for a part that Device::part refuses.
void check_part(const Buffer& whole, uint64_t offset, uint64_t bytes, std::string_view name);

/// A weight matrix [rows, cols] in the backend's own layout: rows are outputs, cols are inputs.
class Weight {
 public:
  Weight(WeightType type, uint32_t rows, uint32_t cols) : type_(type), rows_(rows), cols_(cols) {}
  virtual ~Weight() = default;
  WeightType type() const { return type_; }
  uint32_t rows() const { return rows_; }
  uint32_t cols() const { return cols_; }

 private:
  WeightType type_;
  uint32_t rows_;
  uint32_t cols_;
};

/// Bytes of one row and of all rows in the file's blocks. On the device they may take more: its layout may add padding.
uint64_t stored_row_bytes(const Weight& weight);
uint64_t stored_bytes(const Weight& weight);
/// "Q4_1 [576, 1536]"
std::string describe(const Weight& weight);

/// Activations [width, cols] in the layout a backend's matrix products read, f32. Next to the values it can carry the
/// partial sums of squares an RMS norm needs: the norm's weight is multiplied in by the op that writes activations, its
/// scale by the op that reads it, so that a norm costs no pass of its own.
class Activations {
 public:
  Activations(uint32_t max_width, uint32_t cols) : max_width_(max_width), cols_(cols) {}
  virtual ~Activations() = default;
  uint32_t max_width() const { return max_width_; }
  uint32_t cols() const { return cols_; }

 private:
  uint32_t max_width_;
  uint32_t cols_;
};

/// One layer's keys and values: [slots, kv_heads, head_dim] each, in `type`; of a latent cache keys alone. Which slot
/// holds what is the business of those who name slots in rows and page tables.
class KvLayer {
 public:
  virtual ~KvLayer() = default;
};

/// The layers of a cache, all of one shape.
class KvCache {
 public:
  explicit KvCache(std::vector<std::unique_ptr<KvLayer>> layers) : layers_(std::move(layers)) {}
  virtual ~KvCache() = default;
  uint32_t layers() const { return static_cast<uint32_t>(layers_.size()); }
  KvLayer& layer(uint32_t index) const { return *layers_.at(index); }

 private:
  std::vector<std::unique_ptr<KvLayer>> layers_;
};

struct KvShape {
  uint32_t slots = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;  // even; in q8_0 a multiple of 32
  CacheType type = CacheType::f16;
  /// Of a latent cache (multi-head latent attention: DeepSeek-AI, "DeepSeek-V2", 2024): a value is the first so many
  /// elements of its key, as they are stored, so that only keys have memory. A multiple of 4, at most head_dim; 0: not
  /// latent.
  uint32_t latent_values = 0;

  bool is_latent() const { return latent_values != 0; }
  /// Elements of a value.
  uint32_t value_dim() const { return is_latent() ? latent_values : head_dim; }
  /// What a slot has of head_dim elements for each head: keys and values, or keys alone.
  uint32_t planes() const { return is_latent() ? 1 : 2; }
  bool operator==(const KvShape&) const = default;
};

/// "2 K/V heads of 64 in f16"
std::string describe(const KvShape& shape);

/// Returns the blocks of rows [first, first + count) of a matrix. The result may point into `scratch`, so the caller
/// keeps that while it uses the result. Called from several threads at once, each with its own scratch. An exception is
/// passed on to the caller of the operation that reads the matrix.
using RowReader =
    std::function<std::span<const std::byte>(uint32_t first, uint32_t count, std::vector<std::byte>& scratch)>;

/// Rows of a matrix as a file holds them: row-major blocks of `type`. The bytes stay the caller's.
struct WeightPart {
  WeightType type = WeightType::f32;
  uint32_t rows = 0;
  uint32_t cols = 0;
  std::span<const std::byte> data = {};  // all rows
  RowReader read = {};                   // used instead of data where rows are made on demand
};

/// Rows [first, first + count) of a part, from its reader or its data. Throws bad_input when there are too few bytes.
std::span<const std::byte> read_rows(const WeightPart& part, uint32_t first, uint32_t count,
                                     std::vector<std::byte>& scratch);

/// Bytes of one row.
uint64_t row_bytes(const WeightPart& part);

/// How the parts of one Weight are joined. All parts have the same type and cols.
enum class WeightLayout {
  stacked,  // part after part: q, k, v
  paired,   // row i of part 0, row i of part 1, row i + 1 of part 0, ...: gate and up (same rows); more pairs follow
};

/// What Device::make_weight is asked for; the parts need no bytes yet.
struct WeightRequest {
  std::vector<WeightPart> parts;
  WeightLayout layout = WeightLayout::stacked;
};

/// An RMS norm split in two: the writer of activations multiplies by `weight` and leaves sums of squares, the reader
/// multiplies its results by 1 / sqrt(mean of squares + eps).
struct NormWrite {
  const Buffer* weight = nullptr;  // [cols]
};

}  // namespace canopy
