#include "engine/cpu/objects.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#elif defined(_WIN32)
#include <windows.h>
#endif

#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/machine.h"
#include "engine/base/numbers.h"
#include "engine/compute/kv_slots.h"

namespace canopy::cpu {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kLargePage = 2 << 20;

uint64_t rounded_up(uint64_t bytes, uint64_t to) {
  return (bytes + to - 1) / to * to;
}

#if defined(__linux__)
// Pages of the system are zero, and are there only once something is written to them.
bool is_mapped(uint64_t bytes) {
  return bytes >= kLargePage;
}
/// One large page more than asked for, so that large pages fit in whole.
std::byte* map(uint64_t bytes, Pages pages) {
  const uint64_t whole = rounded_up(bytes, kLargePage) + kLargePage;
  void* from = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (from == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(from);
  const uint64_t before =
      rounded_up(reinterpret_cast<uintptr_t>(begin), kLargePage) - reinterpret_cast<uintptr_t>(begin);
  if (before > 0) munmap(begin, before);
  if (before < kLargePage) munmap(begin + whole - (kLargePage - before), kLargePage - before);
  if (pages == Pages::large) madvise(begin + before, whole - kLargePage, MADV_HUGEPAGE);
  return begin + before;
}
void unmap(std::byte* data, uint64_t bytes) {
  munmap(data, rounded_up(bytes, kLargePage));
}
#elif defined(_WIN32)
bool is_mapped(uint64_t bytes) {
  return bytes >= kLargePage;
}
/// Large pages need a right that users do not have, so these are the usual ones; zero, and there once they are written
/// to.
std::byte* map(uint64_t bytes, Pages) {
  return static_cast<std::byte*>(VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
}
void unmap(std::byte* data, uint64_t) {
  if (data != nullptr) VirtualFree(data, 0, MEM_RELEASE);
}
#else
bool is_mapped(uint64_t) {
  return false;
}
std::byte* map(uint64_t, Pages) {
  return nullptr;
}
void unmap(std::byte*, uint64_t) {}
#endif

std::byte* allocate(uint64_t bytes, Pages pages) {
  if (is_mapped(bytes)) return map(bytes, pages);
  const uint64_t whole = rounded_up(std::max<uint64_t>(bytes, 1), kAlignment);
  void* data = ::operator new (whole, std::align_val_t{kAlignment}, std::nothrow);
  if (data != nullptr) std::memset(data, 0, whole);
  return static_cast<std::byte*>(data);
}

void release(std::byte* data, uint64_t bytes) {
  if (is_mapped(bytes)) return unmap(data, bytes);
  ::operator delete (data, std::align_val_t{kAlignment});
}

}  // namespace

uint64_t Ledger::available() const {
  const uint64_t left = at_start > used ? at_start - used : 0;
  return std::min(left, system_memory().available);
}

Memory::Memory(std::shared_ptr<Ledger> ledger, uint64_t bytes, std::string_view name, Pages pages)
    : ledger_(std::move(ledger)), bytes_(bytes) {
  const auto refuse = [&](uint64_t available) {
    throw out_of_memory("Allocating " + std::string(name) + " takes " + byte_figures(bytes, available) +
                        " of the computer's memory, but " + byte_figures(available, bytes) + " are available.");
  };
  // Small memory is not worth asking the system what it has.
  if (bytes >= kLargePage || ledger_->used + bytes > ledger_->at_start) {
    const uint64_t available = ledger_->available();
    if (bytes > available) refuse(available);
  }
  data_ = allocate(bytes_, pages);
  if (data_ == nullptr) refuse(ledger_->available());
  ledger_->used += bytes_;
}

Memory::~Memory() {
  release(data_, bytes_);
  ledger_->used -= bytes_;
}

// ---- activations and weights --------------------------------------------------------------------------------------

namespace {

struct ActivationParts {
  uint64_t codes, factors, squares, values;  // where each begins
  uint64_t bytes;
};
ActivationParts parts_of(uint64_t max_width, uint64_t cols) {
  const uint64_t blocks = max_width * ((cols + kBlock - 1) / kBlock);
  ActivationParts parts = {};
  parts.factors = blocks * kBlock * sizeof(int16_t);
  parts.squares = parts.factors + blocks * sizeof(BlockFactors);
  parts.values = rounded_up(parts.squares + blocks * sizeof(float), kAlignment);
  parts.bytes = parts.values + blocks * kBlock * sizeof(float);
  return parts;
}

}  // namespace

uint64_t CpuActivations::bytes_of(uint32_t max_width, uint32_t cols) {
  return parts_of(max_width, cols).bytes;
}

CpuActivations::CpuActivations(std::shared_ptr<Ledger> ledger, uint32_t max_width, uint32_t cols, std::string_view name)
    : Activations(max_width, cols), memory_(std::move(ledger), bytes_of(max_width, cols), name) {}

RowsView CpuActivations::view(uint32_t width) const {
  const ActivationParts parts = parts_of(max_width(), cols());
  RowsView view;
  view.codes = reinterpret_cast<int16_t*>(memory_.data() + parts.codes);
  view.factors = reinterpret_cast<BlockFactors*>(memory_.data() + parts.factors);
  view.squares = reinterpret_cast<float*>(memory_.data() + parts.squares);
  view.values = reinterpret_cast<float*>(memory_.data() + parts.values);
  view.cols = cols();
  view.blocks = (cols() + kBlock - 1) / kBlock;
  view.stride = width;
  return view;
}

CpuWeight::CpuWeight(WeightType type, const Packed& packed, std::shared_ptr<Memory> memory, std::byte* data)
    : Weight(type, packed.rows, packed.cols), packed_(packed), memory_(std::move(memory)) {
  packed_.data = reinterpret_cast<const uint8_t*>(data);
}

// ---- keys and values ----------------------------------------------------------------------------------------------

namespace {

uint64_t element_bytes(CacheType type) {
  return type == CacheType::f32 ? 4 : type == CacheType::f16 ? 2 : 1;
}
/// Of keys or values of one head.
uint64_t page_bytes(const KvShape& shape) {
  const uint64_t scales = shape.type == CacheType::q8_0 ? uint64_t{shape.head_dim} / kKvBlock * kPage * 2 : 0;
  return uint64_t{shape.head_dim} * kPage * element_bytes(shape.type) + scales;
}
uint64_t layer_bytes(const KvShape& shape) {
  return (uint64_t{shape.slots} + kPage - 1) / kPage * shape.kv_heads * shape.planes() * page_bytes(shape);
}

float code_value(std::byte code) {
  return static_cast<float>(std::to_integer<int>(code) - 128);
}
uint16_t half_at(const std::byte* from, uint64_t index) {
  uint16_t half;
  std::memcpy(&half, from + 2 * index, sizeof half);
  return half;
}

}  // namespace

CpuKv::CpuKv(std::shared_ptr<Ledger> ledger, const KvShape& shape, std::string_view name)
    : shape_(shape), page_bytes_(page_bytes(shape)), memory_(std::move(ledger), layer_bytes(shape), name) {}

void CpuKv::load_keys(const Kernels& kernels, uint32_t page, uint32_t head, float* to) const {
  const std::byte* from = keys(page, head);
  const uint32_t count = shape_.head_dim * kPage;
  if (shape_.type == CacheType::f32) {
    std::memcpy(to, from, size_t{count} * sizeof(float));
  } else if (shape_.type == CacheType::f16) {
    kernels.from_halves(reinterpret_cast<const uint16_t*>(from), to, count);
  } else {
    for (uint32_t d = 0; d < shape_.head_dim; d += kKvBlock) {
      float scales[kPage];
      kernels.from_halves(reinterpret_cast<const uint16_t*>(from + count) + d / kKvBlock * kPage, scales, kPage);
      for (uint32_t i = d * kPage; i < (d + kKvBlock) * kPage; ++i) to[i] = code_value(from[i]) * scales[i % kPage];
    }
  }
}

void CpuKv::load_values(const Kernels& kernels, uint32_t page, uint32_t head, uint32_t stride, float* to) const {
  const std::byte* from = values(page, head);
  const uint32_t dim = shape_.head_dim;
  if (shape_.type == CacheType::f16 && stride == dim) {
    kernels.from_halves(reinterpret_cast<const uint16_t*>(from), to, kPage * dim);
    return;
  }
  for (uint32_t j = 0; j < kPage; ++j, to += stride) {
    if (shape_.type == CacheType::f32) {
      std::memcpy(to, from + size_t{j} * dim * sizeof(float), dim * sizeof(float));
    } else if (shape_.type == CacheType::f16) {
      kernels.from_halves(reinterpret_cast<const uint16_t*>(from) + size_t{j} * dim, to, dim);
    } else {
      for (uint32_t d = 0; d < dim; ++d) {
        const uint16_t scale = half_at(from + size_t{kPage} * dim, (size_t{j} * dim + d) / kKvBlock);
        to[d] = code_value(from[size_t{j} * dim + d]) * f16_to_f32(scale);
      }
    }
    std::fill(to + dim, to + stride, 0.0f);
  }
}

void CpuKv::load_key(uint32_t slot, uint32_t head, uint32_t step, float* to) const {
  load_key(slot, head, step, shape_.head_dim, to);
}

void CpuKv::load_key(uint32_t slot, uint32_t head, uint32_t step, uint32_t count, float* to) const {
  const std::byte* from = keys(slot / kPage, head);
  const uint32_t place = slot % kPage;
  for (uint32_t d = 0; d < count; ++d, to += step) {
    const size_t at = size_t{d} * kPage + place;
    if (shape_.type == CacheType::f32) {
      std::memcpy(to, from + at * sizeof(float), sizeof(float));
    } else if (shape_.type == CacheType::f16) {
      *to = f16_to_f32(half_at(from, at));
    } else {
      const uint64_t scale = uint64_t{d} / kKvBlock * kPage + place;
      *to = code_value(from[at]) * f16_to_f32(half_at(from + size_t{kPage} * shape_.head_dim, scale));
    }
  }
}

void CpuKv::load_value(uint32_t slot, uint32_t head, float* to) const {
  if (shape_.is_latent()) return load_key(slot, head, 1, shape_.latent_values, to);
  const std::byte* from = values(slot / kPage, head);
  const size_t first = size_t{slot % kPage} * shape_.head_dim;
  for (uint32_t d = 0; d < shape_.head_dim; ++d) {
    const size_t at = first + d;
    if (shape_.type == CacheType::f32) {
      std::memcpy(to + d, from + at * sizeof(float), sizeof(float));
    } else if (shape_.type == CacheType::f16) {
      to[d] = f16_to_f32(half_at(from, at));
    } else {
      to[d] = code_value(from[at]) * f16_to_f32(half_at(from + size_t{kPage} * shape_.head_dim, at / kKvBlock));
    }
  }
}

/// Calls visit(bytes in the cache, how many lie together, how many such pieces, bytes from one to the next) for all
/// that belongs to a slot, in a fixed order.
template <class Visit>
void CpuKv::for_pieces(uint32_t slot, Visit visit) const {
  const uint64_t size = element_bytes(shape_.type), dim = shape_.head_dim, place = slot % kPage;
  const bool scales = shape_.type == CacheType::q8_0;
  for (uint32_t head = 0; head < shape_.kv_heads; ++head) {
    std::byte* key = keys(slot / kPage, head);
    visit(key + place * size, size, dim, kPage * size);
    if (scales) visit(key + dim * kPage + place * 2, 2, dim / kKvBlock, uint64_t{kPage} * 2);
    if (shape_.is_latent()) continue;
    std::byte* value = values(slot / kPage, head);
    visit(value + place * dim * size, dim * size, 1, 0);
    if (scales) visit(value + dim * kPage + place * dim / kKvBlock * 2, dim / kKvBlock * 2, 1, 0);
  }
}

uint64_t CpuKv::slot_bytes() const {
  return shape_.planes() * shape_.kv_heads * page_bytes_ / kPage;
}

void CpuKv::save_slot(uint32_t slot, std::byte* to) const {
  for_pieces(slot, [&](const std::byte* from, uint64_t bytes, uint64_t count, uint64_t stride) {
    for (uint64_t i = 0; i < count; ++i, to += bytes) std::memcpy(to, from + i * stride, bytes);
  });
}

void CpuKv::restore_slot(uint32_t slot, const std::byte* from) {
  for_pieces(slot, [&](std::byte* to, uint64_t bytes, uint64_t count, uint64_t stride) {
    for (uint64_t i = 0; i < count; ++i, from += bytes) std::memcpy(to + i * stride, from, bytes);
  });
}

namespace {

/// A slot as engine/compute/kv_slots.h encodes it: codes of all heads, then their scales.
struct EncodedSlot {
  std::vector<std::byte> bytes;
  uint64_t codes;  // of all heads
  uint32_t head_scales;
  const std::byte* scales(uint32_t head) const { return bytes.data() + codes + uint64_t{head} * head_scales * 2; }
};
EncodedSlot encoded(const KvShape& shape, const float* heads) {
  const uint64_t elements = uint64_t{shape.kv_heads} * shape.head_dim;
  return {encode_slots(shape, {heads, elements}), elements, (shape.head_dim / kKvBlock + 1) / 2 * 2};
}

}  // namespace

void CpuKv::store_keys(const Kernels& kernels, uint32_t slot, const float* heads) {
  const uint32_t dim = shape_.head_dim, place = slot % kPage;
  if (shape_.type == CacheType::q8_0) {
    const EncodedSlot own = encoded(shape_, heads);
    for (uint32_t head = 0; head < shape_.kv_heads; ++head) {
      std::byte* to = keys(slot / kPage, head);
      for (uint32_t d = 0; d < dim; ++d) to[d * kPage + place] = own.bytes[size_t{head} * dim + d];
      for (uint32_t b = 0; b < dim / kKvBlock; ++b) {
        std::memcpy(to + size_t{dim} * kPage + (b * kPage + place) * 2, own.scales(head) + size_t{2} * b, 2);
      }
    }
    return;
  }
  for (uint32_t head = 0; head < shape_.kv_heads; ++head, heads += dim) {
    std::byte* to = keys(slot / kPage, head);
    if (shape_.type == CacheType::f32) {
      for (uint32_t d = 0; d < dim; ++d) std::memcpy(to + (size_t{d} * kPage + place) * 4, heads + d, 4);
      continue;
    }
    for (uint32_t d = 0; d < dim; d += 64) {
      uint16_t halves[64];
      const uint32_t count = std::min(64u, dim - d);
      kernels.to_halves(heads + d, halves, count);
      for (uint32_t i = 0; i < count; ++i) std::memcpy(to + (size_t{d + i} * kPage + place) * 2, halves + i, 2);
    }
  }
}

void CpuKv::store_values(const Kernels& kernels, uint32_t slot, const float* heads) {
  const uint32_t dim = shape_.head_dim, place = slot % kPage;
  if (shape_.type == CacheType::q8_0) {
    const EncodedSlot own = encoded(shape_, heads);
    for (uint32_t head = 0; head < shape_.kv_heads; ++head) {
      std::byte* to = values(slot / kPage, head);
      std::memcpy(to + size_t{place} * dim, own.bytes.data() + size_t{head} * dim, dim);
      std::memcpy(to + size_t{dim} * kPage + size_t{place} * dim / kKvBlock * 2, own.scales(head), dim / kKvBlock * 2);
    }
    return;
  }
  for (uint32_t head = 0; head < shape_.kv_heads; ++head, heads += dim) {
    std::byte* to = values(slot / kPage, head) + size_t{place} * dim * element_bytes(shape_.type);
    if (shape_.type == CacheType::f32) {
      std::memcpy(to, heads, dim * sizeof(float));
    } else {
      kernels.to_halves(heads, reinterpret_cast<uint16_t*>(to), dim);
    }
  }
}

// ---- access -------------------------------------------------------------------------------------------------------

void require(bool holds, std::string_view message) {
  if (!holds) throw bad_input(std::string(message));
}

namespace {

template <class Own, class T>
Own& own(T* object, std::string_view what) {
  require(object != nullptr, std::string(what) + " is missing.");
  auto* own = dynamic_cast<Own*>(object);
  require(own != nullptr, std::string(what) + " belongs to another device.");
  return *own;
}

}  // namespace

std::byte* bytes_of(const Buffer* buffer, uint64_t bytes, std::string_view what) {
  const auto& own_buffer = own<const CpuBuffer>(buffer, what);
  require(own_buffer.bytes() >= bytes, std::string(what) + " holds " + std::to_string(own_buffer.bytes()) +
                                           " bytes; needed: " + std::to_string(bytes) + ".");
  return own_buffer.data().data();
}

RowsView rows_of(const Activations* activations, uint32_t width, uint32_t cols, std::string_view what) {
  const auto& rows = own<const CpuActivations>(activations, what);
  require(rows.cols() == cols, std::string(what) + " has " + std::to_string(rows.cols()) +
                                   " columns; needed: " + std::to_string(cols) + ".");
  require(width >= 1 && width <= rows.max_width(), std::string(what) + " is used at width " + std::to_string(width) +
                                                       "; allowed: 1 to " + std::to_string(rows.max_width()) + ".");
  return rows.view(width);
}

const Packed& packed_of(const Weight* weight, std::string_view what) {
  return own<const CpuWeight>(weight, what).packed();
}

CpuKv& kv_of(const KvLayer* layer, const KvShape& shape, std::string_view what) {
  auto& kv = own<CpuKv>(const_cast<KvLayer*>(layer), what);
  require(kv.shape() == shape, std::string(what) + " has another shape than the op.");
  return kv;
}

}  // namespace canopy::cpu
