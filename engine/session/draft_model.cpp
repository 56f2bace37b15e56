#include "engine/session/draft_model.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace canopy {

std::unique_ptr<DraftModel> DraftModel::load(const ModelFile& file, const Model& target,
                                             const DraftModelOptions& options) {
  ModelOptions wanted;
  wanted.cache_type = options.cache_type;
  wanted.context = std::min(target.limits().context, file.config().max_context);
  wanted.max_width = std::min(128u, target.limits().max_width);
  wanted.tree_slots = (kDeepest - 1) * kMostBeams;
  wanted.most_texts = target.limits().texts;  // fewer cost time alone: what is missed is read again
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

uint32_t DraftModel::unread(std::span<const uint32_t> text) const {
  const size_t read = texts_.current().length() + path_run(text).accepted();
  return text.size() > read ? static_cast<uint32_t>(text.size() - read) : 1;
}

/// Whether the current text stands at the root of the last draft, with the K/V of its nodes: while another text was
/// current it may have lost its end, or the page behind it that nodes were put on.
bool DraftModel::keeps_tree() const {
  const Sequence& sequence = texts_.current();
  return tree_of_ == &sequence && sequence.length() == tree_length_ && sequence.pages() == tree_pages_;
}

/// The nodes of the last draft that the text has gone on with, but for its last token, whose row is wanted.
AcceptedPath DraftModel::path_run(std::span<const uint32_t> text) const {
  AcceptedPath path;
  const Sequence& sequence = texts_.current();
  if (!keeps_tree() || text.size() <= sequence.length()) return path;
  for (const uint32_t token : text.subspan(sequence.length(), text.size() - sequence.length() - 1)) {
    const uint32_t node = token < config().vocab ? tree_.child(path.nodes.back(), token) : TreeNode::none;
    if (node == TreeNode::none) break;
    path.nodes.push_back(node);
  }
  return path;
}

/// Tokens that the target alone has, as a text may hold some that were added to it, read as the first of all.
void DraftModel::take(std::span<const uint32_t> text) {
  text_.assign(text.begin(), text.end());
  for (uint32_t& token : text_) token = known(token);
}

HeldText DraftModel::begin(std::span<const uint32_t> prompt, uint64_t owner) {
  take(prompt);
  tree_of_ = nullptr;
  texts_.begin(text_, false, owner);
  return texts_.hold();
}

uint32_t DraftModel::prompt_left(std::span<const uint32_t> prompt) const {
  const size_t read = texts_.current().length();
  return deepest(prompt.size()) == 0 || read >= prompt.size() ? 0 : static_cast<uint32_t>(prompt.size() - read);
}

bool DraftModel::read_prompt(std::span<const uint32_t> prompt, const std::stop_token& stop) {
  take(prompt);
  return read_pass(HeadOutput::none, stop);
}

/// All of text_ that is not in the cache, and the last token's row with that head.
bool DraftModel::read(HeadOutput head, const std::stop_token& stop) {
  while (texts_.current().length() < text_.size()) {
    if (!read_pass(head, stop)) return false;
  }
  return true;
}

/// As much of it as one pass takes.
bool DraftModel::read_pass(HeadOutput head, const std::stop_token& stop) {
  Sequence& sequence = texts_.current();
  const size_t left = text_.size() - sequence.length();
  const auto rows = static_cast<uint32_t>(std::min<size_t>(left, model_->limits().max_width));
  const std::span<const uint32_t> tokens = std::span<const uint32_t>(text_).subspan(sequence.length(), rows);
  const bool last = rows == left;
  ForwardInput input = sequence.text(tokens, last ? head : HeadOutput::none);
  input.likeliest = input.probabilities = last && head == HeadOutput::argmax;
  output_ = model_->forward(input, stop);
  if (!output_.completed() || !sequence.append(tokens, output_, stop)) return false;
  device_ms_ += output_.device_ms();
  return true;
}

const BlockDraft* DraftModel::draft(std::span<const uint32_t> text, const DraftWish& wish,
                                    const std::stop_token& stop) {
  Sequence& sequence = texts_.current();
  const AcceptedPath accepted = path_run(text);
  take(text);
  if (accepted.accepted() > 0 && sequence.shared_with(text_) == sequence.length()) {
    sequence.commit_branches(tree_, accepted);
  }
  tree_of_ = nullptr;
  sequence.truncate(std::min(sequence.shared_with(text_), static_cast<uint32_t>(text.size()) - 1));
  draft_.candidates = kLikeliest;
  device_ms_ = 0;
  DraftWish possible = wish;
  possible.costs = wish.costs.first(std::min<size_t>(wish.costs.size(), most_beams()));
  if (!draft_beams(*this, text_.back(), possible, tree_, draft_, stop)) return nullptr;
  // What was drafted is no part of the text: branches are none until the text has gone on with them.
  tree_of_ = most_beams() > 1 ? &sequence : nullptr;
  tree_length_ = sequence.length();
  tree_pages_ = sequence.pages();
  if (tree_of_ == nullptr) sequence.truncate(static_cast<uint32_t>(text.size()));
  return &draft_;
}

/// The text is read up to the root, whose row is that of the first node. With recurrent layers the only path is read as
/// text, too.
bool DraftModel::run(const DraftTree& tree, uint32_t first, BlockDraft& draft, const std::stop_token& stop) {
  if (first > 0 && most_beams() == 1) text_.push_back(known(tree[first].token));
  const bool as_text = first == 0 || most_beams() == 1;
  if (!(as_text ? read(HeadOutput::argmax, stop) : run_branches(tree, first, stop))) return false;
  for (uint32_t i = 0; i < tree.width() - first; ++i) {
    add_list(output_.likeliest(i), output_.likeliest_logits(i), output_.log_sum_exp()[i], vocabulary_, draft);
  }
  return true;
}

bool DraftModel::run_branches(const DraftTree& tree, uint32_t first, const std::stop_token& stop) {
  ForwardInput input = texts_.current().branches(tree, first, HeadOutput::argmax);
  for (Row& row : input.batch.rows) row.token = known(row.token);
  input.likeliest = input.probabilities = true;
  output_ = model_->forward(input, stop);
  if (!output_.completed()) return false;
  device_ms_ += output_.device_ms();
  return true;
}

void DraftModel::draft_anywhere(uint32_t unread, uint32_t context, const std::stop_token& stop) {
  Sequence& sequence = texts_.current();
  const uint32_t most = model_->limits().context;
  unread = std::min(std::max(unread, 1u), most);
  sequence.pretend(std::min(context, most - unread), 0);
  device_ms_ = 0;
  tree_of_ = nullptr;
  text_.assign(sequence.length() + unread, 0);
  if (unread == 1 || unread > most_beams()) {
    read(HeadOutput::argmax, stop);
  } else {
    ForwardInput input = sequence.text(std::span(text_).last(unread), HeadOutput::argmax);
    input.head_rows.resize(unread);
    std::iota(input.head_rows.begin(), input.head_rows.end(), 0u);
    input.likeliest = input.probabilities = true;
    output_ = model_->forward(input, stop);
  }
  sequence.clear();
}

}  // namespace canopy
