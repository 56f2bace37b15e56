#pragma once
// Keys and values of a model's layers on the device, and moves between their slots. Which pages of them a text has is
// in page_table.h.

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/compute/device.h"
#include "engine/format/model_config.h"
#include "engine/model/load_plan.h"
#include "engine/model/page_table.h"

namespace canopy {

// Keys and values of a model's layers on the device. The layers of a KvCache are of one shape, so there is one for each
// number of K/V heads that layers have: one in most models.

class KvCaches {
 public:
  /// Zeroed slots of all layers of attention. Throws what Device::allocate_kv() throws.
  KvCaches(Device& device, const ModelConfig& config, const ModelLimits& limits, std::string_view name);
  /// Those of another: layer n is its layer `layers[n]`.
  KvCaches(const KvCaches& other, std::span<const uint32_t> layers);

  /// Of a layer of the model that is one of attention; some share one.
  KvLayer& layer(uint32_t n) const;
  const KvShape& shape(uint32_t n) const { return parts_[places_[n].part].shape; }

  struct Part {
    KvShape shape;
    std::shared_ptr<KvCache> cache;
  };
  std::span<const Part> parts() const { return parts_; }

 private:
  struct Place {
    uint32_t part = 0, index = 0;
  };
  std::vector<Part> parts_;
  std::vector<Place> places_;  // by layer of the model
};

// Moves slots of all layers, with a recording for each power of two of moves.

class KvMover {
 public:
  /// list: uint32 [kMaxKvMoves, 2]. All must outlive it.
  KvMover(Device& device, Buffer& list, const KvCaches& caches) : device_(device), list_(list), caches_(caches) {}

  /// As if all moves happened at once; at most kMaxKvMoves, of slots that the cache has. Waits for them.
  void move(std::span<const KvMove> moves) {
    if (moves.empty()) return;
    const uint32_t count = std::bit_ceil(static_cast<uint32_t>(moves.size()));
    padded_.assign(moves.begin(), moves.end());
    padded_.resize(count, moves.back());
    std::unique_ptr<Commands>& commands = commands_.at(static_cast<size_t>(std::countr_zero(count)));
    if (!commands) {
      Recorder record;
      for (const KvCaches::Part& part : caches_.parts())
        record(KvMoveArgs{&list_, count, part.shape, part.cache.get()});
      commands = device_.compile(record.finish());
    }
    device_.finish();  // commands that were started may read the list
    device_.write(list_, 0, as_bytes_of(padded_));
    device_.run(*commands);
  }

 private:
  Device& device_;
  Buffer& list_;
  const KvCaches& caches_;
  std::vector<KvMove> padded_;  // as the list has them: uint32 from, to
  std::array<std::unique_ptr<Commands>, std::bit_width(kMaxKvMoves)> commands_;  // by log2 of the moves
};

}  // namespace canopy
