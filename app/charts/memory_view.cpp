#include "app/charts/memory_view.h"

#include <algorithm>

#include "engine/trace/round_statistics.h"

namespace canopy::app {

CacheView cache_view(const RoundRecord* shown, const ModelReady* model, uint64_t context_used) {
  CacheView view;
  if (model != nullptr) {
    view.capacity = model->memory.context > 0 ? model->memory.context : model->context;
    view.slots = model->memory.rows;
    view.cache_bytes = model->memory.cache;
    view.tree_bytes = model->memory.tree;
    view.state_bytes = model->memory.states;
  }
  if (shown == nullptr) {
    view.committed = context_used;
    return view;
  }
  view.committed = shown->context;
  view.kept = std::min<uint64_t>(shown->width, uint64_t{drafted_part(*shown).tokens} + 1);
  view.dropped = shown->width - view.kept;
  return view;
}

}  // namespace canopy::app
