#include "engine/compute/types.h"

#include <array>

#include "engine/base/error.h"

namespace canopy {
namespace {

struct TypeEntry {
  WeightType type;
  const char* name;
  BlockSize block;
};

// Bytes of a block: scales first, then the packed elements, as in GGUF.
constexpr std::array types = std::to_array<TypeEntry>({
    {WeightType::f32, "F32", {1, 4}},
    {WeightType::f16, "F16", {1, 2}},
    {WeightType::bf16, "BF16", {1, 2}},
    {WeightType::q8_0, "Q8_0", {32, 2 + 32}},
    {WeightType::q4_1, "Q4_1", {32, 2 + 2 + 16}},
    {WeightType::q4_0, "Q4_0", {32, 2 + 16}},
    {WeightType::q5_0, "Q5_0", {32, 2 + 4 + 16}},
    {WeightType::q5_1, "Q5_1", {32, 2 + 2 + 4 + 16}},
    {WeightType::q2_k, "Q2_K", {256, 2 + 2 + 16 + 64}},
    {WeightType::q3_k, "Q3_K", {256, 2 + 64 + 32 + 12}},
    {WeightType::q4_k, "Q4_K", {256, 2 + 2 + 12 + 128}},
    {WeightType::q5_k, "Q5_K", {256, 2 + 2 + 12 + 32 + 128}},
    {WeightType::q6_k, "Q6_K", {256, 2 + 128 + 64 + 16}},
    {WeightType::iq4_nl, "IQ4_NL", {32, 2 + 16}},
    {WeightType::iq4_xs, "IQ4_XS", {256, 2 + 2 + 4 + 128}},
    {WeightType::mxfp4, "MXFP4", {32, 1 + 16}},
});
static_assert(types.size() == kWeightTypes);

constexpr bool in_the_order_of_the_enum() {
  for (uint32_t i = 0; i < types.size(); ++i) {
    if (static_cast<uint32_t>(types[i].type) != i) return false;
  }
  return true;
}
static_assert(in_the_order_of_the_enum());

const TypeEntry& entry_of(WeightType type) {
  const auto index = static_cast<uint32_t>(type);
  if (index >= types.size()) throw bad_input("A weight has no known type.");
  return types[index];
}

}  // namespace

std::string to_string(WeightType type) {
  return entry_of(type).name;
}

uint64_t stored_row_bytes(const Weight& weight) {
  const BlockSize block = block_size(weight.type());
  return uint64_t{weight.cols()} / block.elements * block.bytes;
}

uint64_t stored_bytes(const Weight& weight) {
  return stored_row_bytes(weight) * weight.rows();
}

std::string describe(const Weight& weight) {
  return to_string(weight.type()) + " [" + std::to_string(weight.rows()) + ", " + std::to_string(weight.cols()) + "]";
}

std::string describe(const KvShape& shape) {
  return std::to_string(shape.kv_heads) + " K/V heads of " + std::to_string(shape.head_dim) +
         (shape.is_latent() ? ", values their first " + std::to_string(shape.latent_values) + " elements," : "") +
         " in " + to_string(shape.type);
}

std::span<const std::byte> read_rows(const WeightPart& part, uint32_t first, uint32_t count,
                                     std::vector<std::byte>& scratch) {
  const uint64_t row = row_bytes(part);
  const uint64_t begin = part.read ? 0 : row * first;
  const std::span<const std::byte> bytes = part.read ? part.read(first, count, scratch) : part.data;
  if (begin > bytes.size() || row * count > bytes.size() - begin) {
    throw bad_input("A weight's rows " + std::to_string(first) + " to " + std::to_string(uint64_t{first} + count) +
                    " take " + std::to_string(row * count) + " bytes, but its part has only " +
                    std::to_string(bytes.size()) + ".");
  }
  return bytes.subspan(begin, row * count);
}

uint64_t row_bytes(const WeightPart& part) {
  const BlockSize block = block_size(part.type);
  return uint64_t{part.cols} / block.elements * block.bytes;
}

BlockSize block_size(WeightType type) {
  return entry_of(type).block;
}

void check_part(const Buffer& whole, uint64_t offset, uint64_t bytes, std::string_view name) {
  if (bytes > 0 && offset % kPartAlignment == 0 && offset <= whole.bytes() && bytes <= whole.bytes() - offset) return;
  throw bad_input("The part \"" + std::string(name) + "\" of a buffer has " + std::to_string(bytes) +
                  " bytes at offset " + std::to_string(offset) + "; allowed: 1 byte or more within the buffer's " +
                  std::to_string(whole.bytes()) + " bytes, at multiples of " + std::to_string(kPartAlignment) + ".");
}

bool is_on_processor(std::string_view type) {
  return type == "cpu" || type == "software";
}

std::string_view gpu_of(std::string_view uuid) {
  return uuid.substr(0, uuid.find('-'));
}

uint32_t padded_width(const DeviceInfo& info, uint32_t width) {
  if (info.width_buckets.empty()) return width;
  for (const uint32_t bucket : info.width_buckets) {
    if (width <= bucket) return bucket;
  }
  const uint32_t last = info.width_buckets.back();
  return (width + last - 1) / last * last;
}

}  // namespace canopy
