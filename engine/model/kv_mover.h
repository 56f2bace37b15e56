#pragma once
// Moves slots of all layers, with a recording for each power of two of moves.

#include <array>
#include <bit>
#include <memory>
#include <span>
#include <vector>

#include "engine/compute/device.h"
#include "engine/model/kv_caches.h"
#include "engine/model/page_table.h"

namespace canopy {

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
