#include "engine/model/kv_cache.h"

#include <algorithm>

namespace canopy {

KvCaches::KvCaches(Device& device, const ModelConfig& config, const ModelLimits& limits, std::string_view name)
    : places_(config.layers) {
  std::vector<uint32_t> layers;  // of each part
  for (uint32_t n = 0; n < config.layers; ++n) {
    if (!config.is_attention(n)) continue;
    if (const uint32_t other = config.kv_layer_of(n); other != n) {
      places_[n] = places_[other];  // of a layer before it
      continue;
    }
    const KvShape shape = kv_shape(config, limits, n);
    const auto found = std::ranges::find(parts_, shape, &Part::shape);
    const auto part = static_cast<uint32_t>(found - parts_.begin());
    if (found == parts_.end()) {
      parts_.push_back({shape, nullptr});
      layers.push_back(0);
    }
    places_[n] = {part, layers[part]++};
  }
  for (size_t i = 0; i < parts_.size(); ++i) parts_[i].cache = device.allocate_kv(parts_[i].shape, layers[i], name);
}

KvCaches::KvCaches(const KvCaches& other, std::span<const uint32_t> layers) : parts_(other.parts_) {
  for (const uint32_t n : layers) places_.push_back(other.places_[n]);
}

KvLayer& KvCaches::layer(uint32_t n) const {
  return parts_[places_[n].part].cache->layer(places_[n].index);
}

}  // namespace canopy
