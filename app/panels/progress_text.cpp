#include "app/panels/progress_text.h"

#include <cstdio>

#include "app/look/widgets.h"

namespace canopy::app {
namespace {

constexpr uint64_t kLikelyBytes = 1u << 20;  // no load has a million steps

}  // namespace

std::string progress_figures(const Progress& p) {
  if (p.total == 0) return "";
  if (p.total < kLikelyBytes) return grouped(p.done) + " of " + grouped(p.total);
  char text[64];
  constexpr double kMiB = 1024.0 * 1024.0;
  std::snprintf(text, sizeof text, "%.1f of %.1f MiB", static_cast<double>(p.done) / kMiB,
                static_cast<double>(p.total) / kMiB);
  return text;
}

std::string speed_figures(double tokens_per_second) {
  char text[32];
  std::snprintf(text, sizeof text, tokens_per_second < 9.95 ? "%.1f" : "%.0f", tokens_per_second);
  return text;
}

std::string state_words(const ViewModel& view) {
  if (view.model_state == ModelState::loading) return "Loading";
  switch (view.reply_state) {
    case ReplyState::reading_prompt: return "Reading prompt";
    case ReplyState::writing: return "Writing";
    case ReplyState::stopping: return "Stopping";
    case ReplyState::idle: break;
  }
  return view.model_state == ModelState::ready ? "Ready" : "No model";
}

}  // namespace canopy::app
