#pragma once
// What the CPU device owns, all in the memory of the process, and how ops get at it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "engine/compute/types.h"
#include "engine/cpu/kernels.h"

namespace canopy::cpu {

/// How much the device has allocated. Shared with all that is allocated, which may outlive the device.
struct Ledger {
  uint64_t at_start = 0;  // bytes that were available when the device was opened
  uint64_t used = 0;
  /// Bytes that may still be allocated: of what there was at the start and what the system has now the less.
  uint64_t available() const;
};

/// For what is read as a whole again and again the system may take pages of 2 MiB; of what is filled little by little,
/// as caches are, it would clear more than is used.
enum class Pages { usual, large };

/// Zeroed memory of the process, aligned to 64 bytes.
class Memory {
 public:
  /// Throws out_of_memory with the needed and the available bytes.
  Memory(std::shared_ptr<Ledger> ledger, uint64_t bytes, std::string_view name, Pages pages = Pages::usual);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<Ledger> ledger_;
  uint64_t bytes_;
  std::byte* data_ = nullptr;
};

class CpuBuffer : public Buffer {
 public:
  CpuBuffer(std::shared_ptr<Ledger> ledger, uint64_t bytes, std::string_view name)
      : memory_(std::make_unique<Memory>(std::move(ledger), bytes, name)), data_(memory_->data(), bytes) {}
  CpuBuffer(CpuBuffer& whole, uint64_t offset, uint64_t bytes) : data_(whole.data_.subspan(offset, bytes)) {}
  uint64_t bytes() const override { return data_.size(); }
  std::span<std::byte> data() const { return data_; }

 private:
  std::unique_ptr<Memory> memory_;  // none in a part
  std::span<std::byte> data_;
};

class CpuActivations : public Activations {
 public:
  CpuActivations(std::shared_ptr<Ledger> ledger, uint32_t max_width, uint32_t cols, std::string_view name);
  static uint64_t bytes_of(uint32_t max_width, uint32_t cols);
  /// At a width: where blocks lie depends on it.
  RowsView view(uint32_t width) const;

 private:
  Memory memory_;
};

/// Weights that are loaded together lie in common memory.
class CpuWeight : public Weight {
 public:
  CpuWeight(WeightType type, const Packed& packed, std::shared_ptr<Memory> memory, std::byte* data);
  const Packed& packed() const { return packed_; }

 private:
  Packed packed_;
  std::shared_ptr<Memory> memory_;
};

/// Keys and values of a layer: for each page of 64 slots and each head keys [dim][64], then values [64][dim], in the
/// type of the cache. In q8_0 bytes of code + 128, and behind those of a page its scales, halves: of keys [dim /
/// 32][64], of values [64][dim / 32]. A latent cache has keys alone.
class CpuKv : public KvLayer {
 public:
  CpuKv(std::shared_ptr<Ledger> ledger, const KvShape& shape, std::string_view name);
  const KvShape& shape() const { return shape_; }

  std::byte* keys(uint32_t page, uint32_t head) const { return memory_.data() + at(page, head); }
  std::byte* values(uint32_t page, uint32_t head) const { return keys(page, head) + page_bytes_; }  // if not latent

  /// Keys of a page as floats [dim][64], and values, not of a latent cache, as [64][stride].
  void load_keys(const Kernels& kernels, uint32_t page, uint32_t head, float* to) const;
  void load_values(const Kernels& kernels, uint32_t page, uint32_t head, uint32_t stride, float* to) const;
  /// One head of a slot as floats [dim], of values [value_dim]: keys go to every `step`-th element of `to`.
  void load_key(uint32_t slot, uint32_t head, uint32_t step, float* to) const;
  void load_value(uint32_t slot, uint32_t head, float* to) const;
  /// Stores a slot, [kv_heads, dim] floats, rounded to the cache's type (engine/compute/kv_slots.h).
  void store_keys(const Kernels& kernels, uint32_t slot, const float* heads);
  void store_values(const Kernels& kernels, uint32_t slot, const float* heads);

  /// Bytes of a slot as they lie in the cache, keys and values of all heads; and the copy of them, and back.
  uint64_t slot_bytes() const;
  void save_slot(uint32_t slot, std::byte* to) const;
  void restore_slot(uint32_t slot, const std::byte* from);

 private:
  uint64_t at(uint32_t page, uint32_t head) const {
    return (uint64_t{page} * shape_.kv_heads + head) * shape_.planes() * page_bytes_;
  }
  void load_key(uint32_t slot, uint32_t head, uint32_t step, uint32_t count, float* to) const;
  template <class Visit>
  void for_pieces(uint32_t slot, Visit visit) const;

  KvShape shape_;
  uint64_t page_bytes_;  // of keys, or of values, of one head
  Memory memory_;
};

/// Throws bad_input with `message` unless `holds`.
void require(bool holds, std::string_view message);

/// The first `count` elements of a buffer of this device. Throws bad_input, naming `what`, where it is missing or too
/// small.
std::byte* bytes_of(const Buffer* buffer, uint64_t bytes, std::string_view what);
template <class T = float>
T* elements(const Buffer* buffer, uint64_t count, std::string_view what) {
  return reinterpret_cast<T*>(bytes_of(buffer, count * sizeof(T), what));
}

/// Activations that are read or written at a width, by the number of their columns.
RowsView rows_of(const Activations* activations, uint32_t width, uint32_t cols, std::string_view what);
const Packed& packed_of(const Weight* weight, std::string_view what);
CpuKv& kv_of(const KvLayer* layer, const KvShape& shape, std::string_view what);

}  // namespace canopy::cpu
