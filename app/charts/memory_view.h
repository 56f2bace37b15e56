#pragma once
// The contents of the K/V cache at the shown round. Pure.

#include <cstdint>

#include "engine/client/engine_client.h"
#include "engine/trace/round_record.h"

namespace canopy::app {

struct CacheView {
  uint64_t committed = 0;  // positions of text before the shown round
  uint64_t kept = 0;       // rows of its tree whose K/V was moved behind the text: the root and the accepted nodes
  uint64_t dropped = 0;    // all other rows of its tree
  uint64_t capacity = 0;   // positions; 0 where it is not known
  uint64_t slots = 0;      // most rows that a tree may have; 0 where it is not known
  // Device memory; 0 where it is not known. Of states, also where there are none.
  uint64_t cache_bytes = 0, tree_bytes = 0, state_bytes = 0;
  uint64_t used() const { return committed + kept; }
};

/// shown and model may be null; without a round, context_used positions are committed.
CacheView cache_view(const RoundRecord* shown, const ModelReady* model, uint64_t context_used);

}  // namespace canopy::app
