#include "app/state/token_counts.h"

#include "app/conversation/attached_text.h"
#include "app/state/view_model.h"

namespace canopy::app {

std::vector<Command> take_count_requests(ViewModel& view) {
  std::vector<Command> wanted;
  if (view.model_state != ModelState::ready || !view.model) return wanted;
  for (Attachment& each : view.chat.attachments) {
    if (each.id != 0 && each.vocabulary == view.model->vocabulary) continue;
    each.id = ++view.last_id;
    each.tokens = 0;
    each.vocabulary = view.model->vocabulary;
    wanted.emplace_back(CountTokens{each.id, fenced(each)});
  }
  return wanted;
}

void take_count(ViewModel& view, const TokensCounted& event) {
  for (Attachment& each : view.chat.attachments) {
    if (each.id != event.id) continue;
    each.tokens = event.tokens;
    if (event.vocabulary != 0) each.vocabulary = event.vocabulary;
  }
}

}  // namespace canopy::app
