#pragma once

#include <string>

#include "app/panels/panel.h"

namespace canopy::app {

/// The panel of saved chats, the newest first, with a search over all their messages.
class HistoryPanel final : public Panel {
 public:
  const char* name() const override { return "History"; }
  void draw(const ViewModel& view, CommandSink& sink) override;

 private:
  void draw_row(const ViewModel& view, const ChatListing& listing, CommandSink& sink, float width);

  std::string search_;
};

}  // namespace canopy::app
