#include "tests/reference/reference_device.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/numbers.h"
#include "engine/format/dequantize.h"
#include "engine/model/weight_plan.h"
#include "tests/reference/matrix_product.h"
#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy {
namespace {

using namespace reference;

struct RecordedOps : Commands {
  OpList ops;
};

/// Number of rows of the joined matrix. Throws when the parts do not fit each other; reads no data.
uint32_t joined_rows(std::span<const WeightPart> parts, WeightLayout layout) {
  require(!parts.empty(), "A weight needs at least one part.");
  uint32_t rows = 0;
  for (const WeightPart& part : parts) {
    require(part.rows > 0 && part.cols > 0, "A part of a weight is empty.");
    require(part.type == parts[0].type, "The parts of a weight have different types.");
    require(part.cols == parts[0].cols, "The parts of a weight have different numbers of columns.");
    require(part.cols % block_size(part.type).elements == 0, "A row of a weight is no whole number of blocks.");
    rows = checked_add(rows, part.rows, "number of rows of a weight");
  }
  for (size_t p = 0; layout == WeightLayout::paired && p < parts.size(); p += 2) {
    const bool pair = p + 1 < parts.size() && parts[p].rows == parts[p + 1].rows;
    require(pair, "A paired weight needs two parts of as many rows, or several such pairs.");
  }
  return rows;
}

/// The row of the joined matrix for row r of part p; first is the number of rows in the parts before it.
uint32_t joined_row(std::span<const WeightPart> parts, WeightLayout layout, size_t p, uint32_t first, uint32_t r) {
  if (layout == WeightLayout::stacked) return first + r;
  return p % 2 == 0 ? first + 2 * r : first - parts[p].rows + 2 * r + 1;
}

class ReferenceDevice : public Device {
 public:
  ReferenceDevice(uint64_t memory_bytes, bool rounds_to_8_bits) {
    ledger_->total = memory_bytes;
    info_.rounds_to_8_bits = rounds_to_8_bits;
  }

  const DeviceInfo& info() const override { return info_; }
  MemoryInfo memory() const override { return {ledger_->total, ledger_->total - ledger_->used}; }

  std::unique_ptr<Buffer> allocate(uint64_t bytes, std::string_view name) override {
    return std::make_unique<HostBuffer>(ledger_, bytes, name);
  }
  std::unique_ptr<Buffer> part(Buffer& whole, uint64_t offset, uint64_t bytes, std::string_view name) override {
    check_part(whole, offset, bytes, name);
    return std::make_unique<HostBuffer>(dynamic_cast<HostBuffer&>(whole), offset, bytes);
  }
  std::unique_ptr<Activations> allocate_activations(uint32_t max_width, uint32_t cols, std::string_view name) override {
    return std::make_unique<HostActivations>(ledger_, max_width, cols, name);
  }
  std::unique_ptr<KvCache> allocate_kv(const KvShape& shape, uint32_t layers, std::string_view name) override {
    require(shape.slots > 0 && shape.kv_heads > 0 && shape.head_dim > 0, "A K/V cache needs slots, heads and columns.");
    require(shape.head_dim % 2 == 0, "The head dimension of a K/V cache is odd; rotations need pairs.");
    check_keeps_heads(shape.type, shape.head_dim);
    check_latent_values(shape);
    std::vector<std::unique_ptr<KvLayer>> all;
    for (uint32_t i = 0; i < layers; ++i) all.push_back(std::make_unique<HostKv>(ledger_, shape, name));
    return std::make_unique<KvCache>(std::move(all));
  }

  std::unique_ptr<Weight> make_weight(std::span<const WeightPart> parts, WeightLayout layout,
                                      std::string_view name) override;

  uint64_t weight_bytes(std::span<const WeightPart> parts, WeightLayout layout) const override {
    return uint64_t{joined_rows(parts, layout)} * parts[0].cols * sizeof(float);
  }
  uint64_t activation_bytes(uint32_t max_width, uint32_t cols) const override {
    return HostActivations::bytes_of(max_width, cols);
  }

  void write(Buffer& to, uint64_t offset, std::span<const std::byte> from) override {
    std::byte* data = range(to, offset, from.size());
    std::copy(from.begin(), from.end(), data);
  }
  void read_all(std::span<const BufferRead> reads) override {
    for (const BufferRead& r : reads) std::copy_n(range(*r.from, r.offset, r.to.size()), r.to.size(), r.to.begin());
  }

  std::vector<float> read_activations(const Activations& activations, uint32_t width) override {
    require(width <= activations.max_width(), "read_activations: the activations have fewer rows.");
    const auto& host = dynamic_cast<const HostActivations&>(activations);
    return {host.row(0), host.row(0) + size_t{width} * activations.cols()};
  }
  void write_activations(Activations& activations, uint32_t width, std::span<const float> values) override;

  std::vector<float> read_kv(const KvLayer& layer, bool values, uint32_t first, uint32_t count) override;
  void write_kv(KvLayer& layer, bool values, uint32_t first, std::span<const float> data) override;

  DevicePeak measure_peak() override {
    throw Error(ErrorKind::unavailable, "The reference device is an oracle; its speed is not measured.");
  }
  double sample_fma_rate() override { return measure_peak().fma_gflop_s; }

  std::unique_ptr<Commands> compile(std::span<const Op> ops, const std::stop_token& stop) override;
  bool run(Commands& commands, const std::stop_token& stop) override;
  void start(Commands& commands) override { run(commands, {}); }
  void finish() override {}
  double last_run_ms() const override { return 0; }

 private:
  /// The bytes [offset, offset + size) of a buffer, checked.
  static std::byte* range(const Buffer& buffer, uint64_t offset, uint64_t size) {
    require(offset % 4 == 0 && size % 4 == 0, "A copy's offset or size is no multiple of 4 bytes.");
    const HostBuffer& host = host_buffer(&buffer, checked_add(offset, size, "end of a copy"), "A copied buffer");
    return const_cast<std::byte*>(host.data().data()) + offset;
  }

  std::shared_ptr<Ledger> ledger_ = std::make_shared<Ledger>();
  DeviceInfo info_{.name = "Reference",
                   .type = "reference",
                   .driver = "plain C++, double accumulation",
                   .uuid = "reference",
                   .kernels = "formulas",
                   .widest_tile = 4,
                   .prompt_rows = 32};
};

std::unique_ptr<Weight> ReferenceDevice::make_weight(std::span<const WeightPart> parts, WeightLayout layout,
                                                     std::string_view name) {
  const uint32_t rows = joined_rows(parts, layout);
  const WeightType type = parts[0].type;
  const uint32_t cols = parts[0].cols;
  for (const WeightPart& part : parts) {
    require(part.read || part.data.size() == part.rows * row_bytes(part),
            "The data of a part of " + std::string(name) + " has " + std::to_string(part.data.size()) +
                " bytes; needed: " + std::to_string(part.rows * row_bytes(part)) + ".");
  }
  auto weight = std::make_unique<HostWeight>(ledger_, type, rows, cols, name);
  const bool dense = is_dense(type);
  weight->rounds_to_8_bits = info_.rounds_to_8_bits && !dense;
  uint32_t first = 0;
  std::vector<std::byte> scratch;
  for (size_t p = 0; p < parts.size(); ++p) {
    for (uint32_t r = 0; r < parts[p].rows; ++r) {
      float* out = weight->row(joined_row(parts, layout, p, first, r));
      dequantize(stored_as(type), read_rows(parts[p], r, 1, scratch), {out, cols});
    }
    first += parts[p].rows;
  }
  return weight;
}

void ReferenceDevice::write_activations(Activations& activations, uint32_t width, std::span<const float> values) {
  HostActivations& host =
      written_activations(&activations, width, activations.cols(), "write_activations: activations");
  require(values.size() == size_t{width} * activations.cols(), "write_activations: the values are not [width, cols].");
  std::copy(values.begin(), values.end(), host.row(0));
  for (uint32_t w = 0; w < width; ++w) host.sum_of_squares(w) = sum_of_squares(host.row(w), activations.cols());
}

std::vector<float> ReferenceDevice::read_kv(const KvLayer& layer, bool values, uint32_t first, uint32_t count) {
  const auto& host = dynamic_cast<const HostKv&>(layer);
  require(uint64_t{first} + count <= host.shape().slots, "read_kv: slots outside the cache.");
  const float* data = values ? host.values(first) : host.keys(first);
  return {data, data + count * host.slot_size()};
}

void ReferenceDevice::write_kv(KvLayer& layer, bool values, uint32_t first, std::span<const float> data) {
  auto& host = dynamic_cast<HostKv&>(layer);
  require(data.size() % host.slot_size() == 0, "write_kv: the data are no whole number of slots.");
  require(first + data.size() / host.slot_size() <= host.shape().slots, "write_kv: slots outside the cache.");
  float* to = values ? host.values(first) : host.keys(first);
  host.store(data, to);
}

std::unique_ptr<Commands> ReferenceDevice::compile(std::span<const Op> ops, const std::stop_token& stop) {
  auto recorded = std::make_unique<RecordedOps>();
  for (const Op& op : ops) {
    if (stop.stop_requested()) return nullptr;
    recorded->ops.push_back(op);
  }
  return recorded;
}

bool ReferenceDevice::run(Commands& commands, const std::stop_token& stop) {
  auto& recorded = dynamic_cast<RecordedOps&>(commands);
  for (size_t i = 0; i < recorded.ops.size(); ++i) {
    if (i > 0 && stop.stop_requested()) return false;
    reference::compute_op(recorded.ops[i]);
  }
  return true;
}

}  // namespace

void reference::compute_op(const Op& op) {
  std::visit([](const auto& args) { compute(args); }, op);
}

std::unique_ptr<Device> make_reference_device(uint64_t memory_bytes, bool rounds_to_8_bits) {
  return std::make_unique<ReferenceDevice>(memory_bytes, rounds_to_8_bits);
}

}  // namespace canopy
