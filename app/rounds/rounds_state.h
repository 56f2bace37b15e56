#pragma once
// What is shown of the rounds: which log, which of its rounds, which node.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "app/rounds/playback.h"
#include "app/rounds/round_log.h"

namespace canopy::app {

/// A node of a round's tree. The bonus is no node of the record: it goes by the number behind the last one.
struct NodeRef {
  size_t round = 0;
  uint32_t node = 0;  // of RoundRecord::nodes, 0 is the root; nodes.size(): the bonus
  bool operator==(const NodeRef&) const = default;
};

struct RoundsState {
  std::shared_ptr<RoundLog> log;  // never null
  Playback playback;
  std::optional<NodeRef> hovered;   // in the tree or in the chat: the other one shows it too
  std::optional<NodeRef> selected;  // its card stays open
  std::string trace_path;           // of a trace that is shown; empty: the engine's own rounds

  /// The round to show; null before the first, and where its tree was let go.
  std::shared_ptr<const RoundRecord> shown() const {
    return playback.shown < log->rounds() ? log->round(playback.shown) : nullptr;
  }
};

}  // namespace canopy::app
