#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/conversation/conversation.h"
#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// Searches the conversation that is shown: Enter and the arrows go from hit to hit, Esc closes.
class FindBar {
 public:
  /// Draws at the cursor. True when another hit is to be brought into view: current() says which.
  bool draw(const ViewModel& view, CommandSink& sink, float width);

  const std::vector<ChatHit>& hits() const { return hits_; }
  /// Null without a hit.
  const ChatHit* current() const { return at_ < hits_.size() ? &hits_[at_] : nullptr; }
  /// Whether it has the keyboard.
  bool active() const { return active_; }
  /// Call when it is not drawn. True the first time after it was.
  bool close();

 private:
  bool search(const ViewModel& view);

  std::string wanted_;
  std::vector<ChatHit> hits_;
  size_t at_ = 0;
  bool open_ = false, active_ = false;
  // What hits_ were found in:
  std::string searched_;
  uint64_t leaf_ = 0;
  size_t bytes_ = 0, messages_ = 0;
};

}  // namespace canopy::app
