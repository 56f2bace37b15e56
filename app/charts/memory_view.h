#pragma once
// What the K/V cache holds where a round was written. Pure.

#include <cstdint>

#include "engine/client/engine_client.h"
#include "engine/trace/round_record.h"

namespace canopy::app {

struct CacheView {
  uint64_t committed = 0;  // positions of the text before the shown round
  uint64_t kept = 0;       // rows of its tree that were moved behind them: the root and what was accepted
  uint64_t dropped = 0;    // rows of its tree that were not
  uint64_t capacity = 0;   // positions; 0 where it is not known
  uint64_t slots = 0;      // rows that a tree may have; likewise
  uint64_t cache_bytes = 0, tree_bytes = 0;  // what both take in the device's memory; 0 where it is not known
  uint64_t used() const { return committed + kept; }
};

/// shown and model may be null; without a round, context_used positions are committed.
CacheView cache_view(const RoundRecord* shown, const ModelReady* model, uint64_t context_used);

}  // namespace canopy::app
