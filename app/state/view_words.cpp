// What the state is called for the user: titles, figures of progress, the engine's activity (view_model.h).

#include <algorithm>
#include <filesystem>

#include "app/base/model_name.h"
#include "app/state/view_model.h"
#include "engine/base/figures.h"

namespace canopy::app {

float Progress::fraction() const {
  if (total == 0) return -1.0f;
  return std::clamp(static_cast<float>(static_cast<double>(done) / static_cast<double>(total)), 0.0f, 1.0f);
}

std::string conversation_title(const ViewModel& view) {
  return view.messages.shown_title();
}

std::string model_title(const ModelReady& model) {
  const std::string title = model_name(model.name, model.file_name, model.quantization);
  return title + (model.quantized_to.empty() ? "" : " as " + model.quantized_to) +
         (model.kernels_note.empty() ? "" : ", 8-bit activations");
}

std::string file_name(const std::string& path) {
  const std::filesystem::path p(path);
  return p.has_filename() ? p.filename().string() : p.parent_path().filename().string();
}

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
  if (view.comparison.busy()) return view.comparison.progress.paused ? "Paused measuring" : "Measuring";
  if (view.model_state == ModelState::released) return released_words(view);
  return view.model_state == ModelState::ready ? "Ready" : "No model";
}

}  // namespace canopy::app
