#pragma once
// The K/V cache where the shown round was written: committed text, rows of the tree, and the room left.

#include "app/panels/panel.h"

namespace canopy::app {

class KvPanel final : public Panel {
 public:
  const char* name() const override { return "KV"; }
  void draw(const ViewModel& view, CommandSink& sink) override;
};

}  // namespace canopy::app
