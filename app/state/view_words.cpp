// What the state is called for the user: titles, figures of progress, the engine's activity (view_model.h).

#include <algorithm>
#include <filesystem>

#include "app/base/model_name.h"
#include "app/state/view_model.h"
#include "engine/base/atomic_file.h"
#include "engine/base/figures.h"
#include "engine/format/model_paths.h"

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

void require_not_in_use(const ViewModel& view, const std::filesystem::path& target) {
  std::vector<NamedFile> in_use = {{"the recording that is shown,", view.rounds.trace_path}};
  if (view.recording.running()) in_use.push_back({"the recording under way,", view.recording.path});
  if (view.model_state != ModelState::none) {
    for (const std::string& model : {view.model_path, view.models.drafter}) {
      if (model.empty()) continue;
      for (const std::filesystem::path& file : model_files(model)) in_use.push_back({"the model in use,", file});
    }
  }
  const std::vector<NamedFile> outputs = {{"This", target}};
  require_other_files(outputs, in_use);
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
