#pragma once
// The page "Models": search on a hub, pairs that are known to fit, downloads, and the models of this computer.

#include <string>

#include "app/ui/panel.h"

namespace canopy::app {

class ModelsPage final : public Panel {
 public:
  const char* name() const override { return "Models"; }
  void draw(const ViewModel& view, CommandSink& sink) override;

 private:
  void draw_head(const ViewModel& view, CommandSink& sink, float width);
  void draw_search(CommandSink& sink, float width);

  std::string words_;  // in the box
};

/// For the start page, where no model is here yet: what could be fetched at once, and the downloads. `width` pixels, at
/// the cursor.
void draw_first_models(const ViewModel& view, CommandSink& sink, float width);

}  // namespace canopy::app
