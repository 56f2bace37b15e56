#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/conversation/conversation.h"
#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// The bar that searches the shown conversation: Enter and the arrows go from hit to hit, Esc closes it.
class FindBar {
 public:
  /// Draws it at the cursor. True when another hit became the current() one and should be scrolled to.
  bool draw(const ViewModel& view, CommandSink& sink, float width);

  const std::vector<ChatHit>& hits() const { return hits_; }
  /// The current hit; null if there is none.
  const ChatHit* current() const { return at_ < hits_.size() ? &hits_[at_] : nullptr; }
  /// Whether it has the keyboard focus.
  bool active() const { return active_; }
  /// Call in frames in which the bar is not drawn. True in the first of them.
  bool close();

 private:
  bool search(const ViewModel& view);

  std::string wanted_;
  std::vector<ChatHit> hits_;
  size_t at_ = 0;
  bool open_ = false, active_ = false;
  // The text and conversation that hits_ belong to:
  std::string searched_;
  uint64_t leaf_ = 0;
  size_t bytes_ = 0, messages_ = 0;
};

}  // namespace canopy::app
