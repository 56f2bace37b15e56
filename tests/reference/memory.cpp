#include "tests/reference/memory.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "engine/base/error.h"
#include "engine/base/numbers.h"

namespace canopy::reference {

Reservation::Reservation(std::shared_ptr<Ledger> ledger, uint64_t bytes, std::string_view name)
    : ledger_(std::move(ledger)), bytes_(bytes) {
  const uint64_t available = ledger_->total - ledger_->used;
  if (bytes > available) {
    throw out_of_memory("Allocating " + std::string(name) + " takes " + std::to_string(bytes) +
                        " bytes of the reference device, but " + std::to_string(available) + " are available.");
  }
  ledger_->used += bytes;
}

Reservation::~Reservation() {
  ledger_->used -= bytes_;
}

uint64_t HostActivations::bytes_of(uint32_t max_width, uint32_t cols) {
  return uint64_t{max_width} * cols * sizeof(float) + max_width * sizeof(double);
}

HostActivations::HostActivations(std::shared_ptr<Ledger> ledger, uint32_t max_width, uint32_t cols,
                                 std::string_view name)
    : Activations(max_width, cols),
      reservation_(std::move(ledger), bytes_of(max_width, cols), name),
      values_(size_t{max_width} * cols),
      sums_(max_width, std::numeric_limits<double>::quiet_NaN()) {}

double HostActivations::norm_scale(uint32_t w, float eps) const {
  return eps > 0 ? 1.0 / std::sqrt(sums_[w] / cols() + eps) : 1.0;
}

HostWeight::HostWeight(std::shared_ptr<Ledger> ledger, WeightType type, uint32_t rows, uint32_t cols,
                       std::string_view name)
    : Weight(type, rows, cols),
      reservation_(std::move(ledger), uint64_t{rows} * cols * sizeof(float), name),
      values_(size_t{rows} * cols) {}

HostKv::HostKv(std::shared_ptr<Ledger> ledger, const KvShape& shape, std::string_view name)
    : reservation_(std::move(ledger),
                   uint64_t{shape.planes()} * shape.slots * shape.kv_heads * shape.head_dim * sizeof(float), name),
      shape_(shape),
      keys_(shape.slots * slot_size()),
      values_(shape.is_latent() ? 0 : shape.slots * slot_size()) {}

namespace {

/// 32 elements in q8_0: a scale that is the half next to the largest magnitude / 127, and whole multiples of it, at
/// most 127, ties away from zero. What a half cannot hold as a scale makes the whole block NaN.
void round_block(const float* values, float* to) {
  float largest = 0;
  bool finite = true;
  for (int i = 0; i < 32; ++i) {
    largest = std::max(largest, std::abs(values[i]));
    finite = finite && std::isfinite(values[i]);
  }
  const float scale = f16_to_f32(f32_to_f16(largest * (1.0f / 127.0f)));
  for (int i = 0; i < 32; ++i) {
    const double steps = scale > 0 ? std::min(std::round(std::abs(double{values[i]}) / scale), 127.0) : 0.0;
    to[i] = finite && std::isfinite(scale) ? std::copysign(static_cast<float>(steps * scale), values[i])
                                           : std::numeric_limits<float>::quiet_NaN();
  }
}

}  // namespace

void HostKv::store(std::span<const float> heads, float* to) const {
  switch (shape_.type) {
    case CacheType::f32: std::copy(heads.begin(), heads.end(), to); break;
    case CacheType::f16:
      std::transform(heads.begin(), heads.end(), to, [](float value) { return f16_to_f32(f32_to_f16(value)); });
      break;
    case CacheType::q8_0:
      for (size_t i = 0; i < heads.size(); i += 32) round_block(heads.data() + i, to + i);
      break;
  }
}

void require(bool holds, std::string_view message) {
  if (!holds) throw bad_input(std::string(message));
}

namespace {

/// `object` as the class in which this device made it.
template <class Host, class T>
Host& own(T* object, std::string_view what) {
  const std::string name(what);
  require(object != nullptr, name + " is missing.");
  auto* host = dynamic_cast<Host*>(object);
  require(host != nullptr, name + " belongs to another device.");
  return *host;
}

}  // namespace

const HostBuffer& host_buffer(const Buffer* buffer, uint64_t bytes, std::string_view what) {
  const auto& host = own<const HostBuffer>(buffer, what);
  require(host.bytes() >= bytes, std::string(what) + " holds " + std::to_string(host.bytes()) +
                                     " bytes; needed: " + std::to_string(bytes) + ".");
  return host;
}

const HostActivations& read_activations(const Activations* activations, uint32_t width, uint32_t cols,
                                        std::string_view what) {
  const auto& host = own<const HostActivations>(activations, what);
  const std::string name(what);
  require(host.cols() == cols,
          name + " has " + std::to_string(host.cols()) + " columns; needed: " + std::to_string(cols) + ".");
  require(width == host.written_width, name + " was written at width " + std::to_string(host.written_width) +
                                           " and is read at width " + std::to_string(width) +
                                           "; both must be the same.");
  return host;
}

HostActivations& written_activations(Activations* activations, uint32_t width, uint32_t cols, std::string_view what) {
  auto& host = own<HostActivations>(activations, what);
  const std::string name(what);
  require(host.cols() == cols,
          name + " has " + std::to_string(host.cols()) + " columns; needed: " + std::to_string(cols) + ".");
  require(width >= 1 && width <= host.max_width(), name + " is written at width " + std::to_string(width) +
                                                       "; allowed: 1 to " + std::to_string(host.max_width()) + ".");
  host.written_width = width;
  return host;
}

const HostWeight& host_weight(const Weight* weight, std::string_view what) {
  return own<const HostWeight>(weight, what);
}

const HostKv& host_kv(const KvLayer* layer, const KvShape& shape, std::string_view what) {
  const auto& host = own<const HostKv>(layer, what);
  require(host.shape() == shape, std::string(what) + " was allocated with another shape than the op names.");
  return host;
}

HostKv& host_kv(KvLayer* layer, const KvShape& shape, std::string_view what) {
  return const_cast<HostKv&>(host_kv(static_cast<const KvLayer*>(layer), shape, what));
}

}  // namespace canopy::reference
