#include "engine/session/draft_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/error.h"

namespace canopy {

std::unique_ptr<DraftModel> DraftModel::load(const ModelFile& file, const Model& target,
                                             const DraftModelOptions& options) {
  ModelOptions wanted;
  wanted.cache_type = options.cache_type;
  wanted.context = std::min(target.limits().context, file.config().max_context);
  wanted.max_width = std::min(128u, target.limits().max_width);
  wanted.tree_slots = 1;  // its drafts are chains, in the places of text
  wanted.callbacks = options.callbacks;
  wanted.memory = options.memory;
  auto model = Model::load(target.device(), file, wanted);
  return std::unique_ptr<DraftModel>(new DraftModel(std::move(model), target.config().vocab));
}

DraftModel::DraftModel(std::unique_ptr<Model> model, uint32_t vocabulary)
    : model_(std::move(model)), texts_(*model_, nullptr), vocabulary_(vocabulary) {}

uint32_t DraftModel::deepest(size_t text) const {
  const uint32_t context = model_->limits().context;
  return text > context ? 0 : std::min<uint32_t>(kDeepest, context - static_cast<uint32_t>(text) + 1);
}

uint32_t DraftModel::unread(size_t text) const {
  const size_t read = texts_.current().length();
  return text > read ? static_cast<uint32_t>(text - read) : 1;
}

/// Tokens that the target alone has, as a text may hold some that were added to it, read as the first of all.
void DraftModel::take(std::span<const uint32_t> text) {
  text_.assign(text.begin(), text.end());
  for (uint32_t& token : text_) token = token < config().vocab ? token : 0;
}

bool DraftModel::begin(std::span<const uint32_t> prompt, const std::stop_token& stop) {
  take(prompt);
  texts_.begin(text_, false);
  return deepest(text_.size()) == 0 || read(HeadOutput::none, stop);
}

/// All of text_ that is not in the cache, and the last token's row with that head.
bool DraftModel::read(HeadOutput head, const std::stop_token& stop) {
  Sequence& sequence = texts_.current();
  const std::span<const uint32_t> text = text_;
  while (sequence.length() < text.size()) {
    const size_t left = text.size() - sequence.length();
    const auto rows = static_cast<uint32_t>(std::min<size_t>(left, model_->limits().max_width));
    const std::span<const uint32_t> tokens = text.subspan(sequence.length(), rows);
    const bool last = rows == left;
    ForwardInput input = sequence.text(tokens, last ? head : HeadOutput::none);
    input.likeliest = input.probabilities = last && head == HeadOutput::argmax;
    output_ = model_->forward(input, stop);
    if (!output_.completed() || !sequence.append(tokens, output_, stop)) return false;
    device_ms_ += output_.device_ms();
  }
  return true;
}

const BlockDraft* DraftModel::draft(std::span<const uint32_t> text, const DraftWish& wish,
                                    const std::stop_token& stop) {
  take(text);
  Sequence& sequence = texts_.current();
  sequence.truncate(std::min(sequence.shared_with(text_), static_cast<uint32_t>(text.size()) - 1));
  draft_ = {.candidates = kLikeliest, .behind_best = true};
  device_ms_ = 0;
  if (!read(HeadOutput::argmax, stop)) return nullptr;
  add_depth();
  BestPath path(wish);
  while (path.goes_on(draft_.at(draft_.depths))) {
    text_.push_back(std::min(draft_.tokens[size_t{draft_.depths - 1} * kLikeliest], config().vocab - 1));
    if (!read(HeadOutput::argmax, stop)) return nullptr;
    add_depth();
  }
  sequence.truncate(static_cast<uint32_t>(text.size()));  // what was drafted is no part of the text
  return &draft_;
}

/// The likeliest tokens behind the last row. In the place of those that the target does not have, rows that pad its
/// embedding, stand others that are most improbable.
void DraftModel::add_depth() {
  const std::span<const uint32_t> ids = output_.likeliest(0);
  const std::span<const float> logits = output_.likeliest_logits(0);
  const size_t first = draft_.tokens.size();
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= vocabulary_ || !std::isfinite(logits[i])) continue;
    draft_.tokens.push_back(ids[i]);
    draft_.logits.push_back(logits[i]);
  }
  float least = draft_.tokens.size() > first ? draft_.logits.back() : output_.log_sum_exp()[0];
  for (uint32_t token = 0; draft_.tokens.size() < first + kLikeliest; ++token) {
    if (std::find(draft_.tokens.begin() + static_cast<std::ptrdiff_t>(first), draft_.tokens.end(), token) !=
        draft_.tokens.end())
      continue;
    draft_.tokens.push_back(token);
    draft_.logits.push_back(least -= 30);
  }
  draft_.log_sum_exp.push_back(output_.log_sum_exp()[0]);
  ++draft_.depths;
}

void DraftModel::draft_anywhere(uint32_t unread, uint32_t context, const std::stop_token& stop) {
  Sequence& sequence = texts_.current();
  const uint32_t most = model_->limits().context;
  unread = std::min(std::max(unread, 1u), most);
  sequence.pretend(std::min(context, most - unread), 0);
  device_ms_ = 0;
  text_.assign(sequence.length() + unread, 0);
  read(HeadOutput::argmax, stop);
  sequence.clear();
}

}  // namespace canopy
