#pragma once
// The panel of the K/V cache at the shown round: committed text, rows of the tree, and free room.

#include "app/panels/panel.h"

namespace canopy::app {

class KvPanel final : public Panel {
 public:
  const char* name() const override { return "KV"; }
  void draw(const ViewModel& view, CommandSink& sink) override;
};

}  // namespace canopy::app
