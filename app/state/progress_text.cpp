#include "app/state/progress_text.h"

#include "engine/base/figures.h"

namespace canopy::app {

std::string progress_figures(const Progress& p) {
  return canopy::progress_figures(p.done, p.total, p.in_bytes, p.seconds_left);
}

std::string state_words(const ViewModel& view) {
  if (view.model_state == ModelState::loading) return "Loading";
  switch (view.reply_state) {
    case ReplyState::reading_prompt: return "Reading prompt";
    case ReplyState::writing: return "Generating";
    case ReplyState::stopping: return "Stopping";
    case ReplyState::idle: break;
  }
  if (view.checks.check.running()) return "Checking against plain decoding";
  return view.model_state == ModelState::ready ? "Ready" : "No model";
}

}  // namespace canopy::app
