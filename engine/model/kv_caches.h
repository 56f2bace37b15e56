#pragma once
// Keys and values of a model's layers on the device. The layers of a KvCache are of one shape, so there is one for each
// number of K/V heads that layers have: one in most models.

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/compute/device.h"
#include "engine/format/model_config.h"
#include "engine/model/memory_plan.h"

namespace canopy {

class KvCaches {
 public:
  /// Zeroed slots of all layers of attention. Throws what Device::allocate_kv() throws.
  KvCaches(Device& device, const ModelConfig& config, const ModelLimits& limits, std::string_view name);

  /// Of a layer of the model that is one of attention.
  KvLayer& layer(uint32_t n) const;
  const KvShape& shape(uint32_t n) const { return parts_[places_[n].part].shape; }

  struct Part {
    KvShape shape;
    std::unique_ptr<KvCache> cache;
  };
  std::span<const Part> parts() const { return parts_; }

 private:
  struct Place {
    uint32_t part = 0, index = 0;
  };
  std::vector<Part> parts_;
  std::vector<Place> places_;  // by layer of the model
};

}  // namespace canopy
