#pragma once
// The objects of the reference device, all in host memory, and how ops get at them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/compute/types.h"

namespace canopy::reference {

/// Bytes allocated on one device. Shared with everything allocated there, which may outlive the device.
struct Ledger {
  uint64_t total = 0;
  uint64_t used = 0;
};

/// A part of the ledger's bytes, given back by the destructor.
class Reservation {
 public:
  /// Throws out_of_memory with the needed and the available bytes.
  Reservation(std::shared_ptr<Ledger> ledger, uint64_t bytes, std::string_view name);
  ~Reservation();
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

 private:
  std::shared_ptr<Ledger> ledger_;
  uint64_t bytes_;
};

class HostBuffer : public Buffer {
 public:
  HostBuffer(std::shared_ptr<Ledger> ledger, uint64_t bytes, std::string_view name)
      : reservation_(std::in_place, std::move(ledger), bytes, name), own_(bytes), data_(own_) {}
  /// A part of another buffer, which must outlive it.
  HostBuffer(HostBuffer& whole, uint64_t offset, uint64_t bytes) : data_(whole.data_.subspan(offset, bytes)) {}
  uint64_t bytes() const override { return data_.size(); }

  std::span<std::byte> data() { return data_; }
  std::span<const std::byte> data() const { return data_; }

 private:
  std::optional<Reservation> reservation_;  // not of a part
  std::vector<std::byte> own_;              // empty in a part
  std::span<std::byte> data_;
};

class HostActivations : public Activations {
 public:
  HostActivations(std::shared_ptr<Ledger> ledger, uint32_t max_width, uint32_t cols, std::string_view name);
  static uint64_t bytes_of(uint32_t max_width, uint32_t cols);

  float* row(uint32_t w) { return values_.data() + size_t{w} * cols(); }
  const float* row(uint32_t w) const { return values_.data() + size_t{w} * cols(); }

  /// Sum of squares of the row before the norm's weight. NaN where the writing op computed none, so that an op which
  /// needs it by mistake gives NaN.
  double& sum_of_squares(uint32_t w) { return sums_[w]; }
  double sum_of_squares(uint32_t w) const { return sums_[w]; }

  /// The width at which these activations were last written. They may be read only at this width, since a backend's
  /// layout may depend on it.
  uint32_t written_width = 0;

  /// 1 / sqrt(mean of squares + eps), or 1 where eps is 0 (no norm).
  double norm_scale(uint32_t w, float eps) const;

 private:
  Reservation reservation_;
  std::vector<float> values_;  // [max_width, cols]
  std::vector<double> sums_;   // [max_width]
};

class HostWeight : public Weight {
 public:
  HostWeight(std::shared_ptr<Ledger> ledger, WeightType type, uint32_t rows, uint32_t cols, std::string_view name);
  /// Whether what it is multiplied with is rounded to 8 bits.
  bool rounds_to_8_bits = false;

  float* row(uint32_t r) { return values_.data() + size_t{r} * cols(); }
  const float* row(uint32_t r) const { return values_.data() + size_t{r} * cols(); }

 private:
  Reservation reservation_;
  std::vector<float> values_;  // [rows, cols], decoded
};

/// K and V of one layer, each element rounded to the type of the cache. Values of a latent cache are its keys.
class HostKv : public KvLayer {
 public:
  HostKv(std::shared_ptr<Ledger> ledger, const KvShape& shape, std::string_view name);
  const KvShape& shape() const { return shape_; }

  /// [kv_heads, head_dim] of one slot.
  float* keys(uint32_t slot) { return keys_.data() + size_t{slot} * slot_size(); }
  const float* keys(uint32_t slot) const { return keys_.data() + size_t{slot} * slot_size(); }
  float* values(uint32_t slot) { return shape_.is_latent() ? keys(slot) : values_.data() + size_t{slot} * slot_size(); }
  const float* values(uint32_t slot) const {
    return shape_.is_latent() ? keys(slot) : values_.data() + size_t{slot} * slot_size();
  }

  size_t slot_size() const { return size_t{shape_.kv_heads} * shape_.head_dim; }
  /// Writes whole heads, each element as the nearest that the cache can hold: in f16 with ties to even, in q8_0 with
  /// the scale that its block of 32 elements has.
  void store(std::span<const float> heads, float* to) const;

 private:
  Reservation reservation_;
  KvShape shape_;
  std::vector<float> keys_;    // [slots, kv_heads, head_dim]
  std::vector<float> values_;  // [slots, kv_heads, head_dim]; latent: none
};

// Access for ops. Each throws bad_input when its argument is missing, comes from another device or is too small; `what`
// is the name of the argument in the message, for example "attention: q".

/// The first `count` elements of a buffer. (Memory from operator new may be read as any trivial type.)
template <class T>
std::span<T> elements(Buffer* buffer, uint64_t count, std::string_view what);
template <class T>
std::span<const T> elements(const Buffer* buffer, uint64_t count, std::string_view what);

/// Activations that the op writes at this width.
HostActivations& written_activations(Activations* activations, uint32_t width, uint32_t cols, std::string_view what);
/// Activations that the op reads; an op before must have written them at the same width.
const HostActivations& read_activations(const Activations* activations, uint32_t width, uint32_t cols,
                                        std::string_view what);
const HostWeight& host_weight(const Weight* weight, std::string_view what);
HostKv& host_kv(KvLayer* layer, const KvShape& shape, std::string_view what);
const HostKv& host_kv(const KvLayer* layer, const KvShape& shape, std::string_view what);

/// Throws bad_input with `message` unless `holds`.
void require(bool holds, std::string_view message);

const HostBuffer& host_buffer(const Buffer* buffer, uint64_t bytes, std::string_view what);

template <class T>
std::span<const T> elements(const Buffer* buffer, uint64_t count, std::string_view what) {
  return {reinterpret_cast<const T*>(host_buffer(buffer, count * sizeof(T), what).data().data()), count};
}

template <class T>
std::span<T> elements(Buffer* buffer, uint64_t count, std::string_view what) {
  const auto view = elements<T>(static_cast<const Buffer*>(buffer), count, what);
  return {const_cast<T*>(view.data()), view.size()};
}

}  // namespace canopy::reference
