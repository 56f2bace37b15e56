#include "engine/model/sequence.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "engine/base/error.h"
#include "engine/model/tree_rows.h"

namespace canopy {

Sequence::Sequence(Model& model, Drafter* drafter)
    : model_(model),
      drafter_(drafter),
      draft_state_(drafter != nullptr ? std::make_unique<DraftState>(*drafter) : nullptr),
      table_(model.pages()) {}

Sequence::Sequence(const Sequence& other, std::unique_ptr<DraftState> draft_state)
    : model_(other.model_),
      drafter_(other.drafter_),
      draft_state_(std::move(draft_state)),
      table_(other.table_),
      tokens_(other.tokens_) {
  table_.cut(length());
}

std::unique_ptr<Sequence> Sequence::fork() const {
  return std::unique_ptr<Sequence>(new Sequence(*this, draft_state_ ? draft_state_->fork() : nullptr));
}

void Sequence::reserve(uint32_t positions) {
  const uint32_t end = static_cast<uint32_t>(std::min<uint64_t>(uint64_t{length()} + positions, capacity()));
  const std::vector<KvMove> moves = table_.reserve(length(), end);
  try {
    model_.move_kv(moves);
  } catch (...) {
    truncate(length() / kPagePositions * kPagePositions);  // the page that was to be copied holds nothing
    throw;
  }
}

uint32_t Sequence::slot_of(uint32_t position) const {
  return table_.pages()[position / kPagePositions] * kPagePositions + position % kPagePositions;
}

std::vector<float> Sequence::read_kv(uint32_t layer, bool values) const {
  std::vector<float> all;
  for (uint32_t first = 0; first < length(); first += kPagePositions) {
    const uint32_t count = std::min(kPagePositions, length() - first);
    const std::vector<float> page = model_.read_kv(layer, values, slot_of(first), count);
    all.insert(all.end(), page.begin(), page.end());
  }
  return all;
}

uint32_t Sequence::shared_with(std::span<const uint32_t> ids) const {
  const auto most = static_cast<std::ptrdiff_t>(std::min(ids.size(), tokens_.size()));
  return static_cast<uint32_t>(std::mismatch(ids.begin(), ids.begin() + most, tokens_.begin()).first - ids.begin());
}

ForwardInput Sequence::text(std::span<const uint32_t> tokens, HeadOutput head) {
  reserve(static_cast<uint32_t>(std::min<size_t>(tokens.size(), capacity())));
  return text_input(tokens, length(), head, table_.pages());
}

ForwardInput Sequence::tree(const DraftTree& tree, HeadOutput head, bool probabilities) {
  uint32_t depth = 0;
  for (const TreeNode& node : tree.nodes()) depth = std::max(depth, node.depth);
  reserve(depth + 1);
  return tree_input(tree, length(), model_.limits(), head, probabilities, table_.pages());
}

bool Sequence::append(std::span<const uint32_t> tokens, const ForwardOutput& pass, const std::stop_token& stop) {
  require_room(tokens.size());
  require_own(pass, tokens.size());
  const bool keeps_features = has_features_of(pass);
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  if (!keeps_features) return true;
  std::vector<uint32_t> rows(tokens.size());
  std::iota(rows.begin(), rows.end(), 0u);
  return drafter_->append_features(*draft_state_, rows, stop);
}

bool Sequence::append_each(std::span<const uint32_t> tokens, const ForwardOutput& pass,
                           const std::function<bool()>& then, const std::stop_token& stop) {
  require_room(tokens.size());
  require_own(pass, tokens.size());
  if (!has_features_of(pass)) {
    throw bad_input("Tokens were to be committed one by one with their features; the features of " +
                    std::to_string(feature_length()) + " of " + std::to_string(length()) +
                    " tokens before are kept, and the pass must leave those of its own.");
  }
  for (uint32_t row = 0; row < tokens.size(); ++row) {
    tokens_.push_back(tokens[row]);
    if (!drafter_->append_features(*draft_state_, {&row, 1}, stop) || !then()) return false;
  }
  return true;
}

double Sequence::commit(const DraftTree& tree, const AcceptedPath& path, const ForwardOutput& pass) {
  require_room(path.nodes.size());
  require_own(pass, tree.width());
  TreeSlots slots(tree, table_.pages(), length(), tree_end(table_.pages(), model_.limits()),
                  model_.limits().first_tree_slot());
  std::vector<KvMove> moves;
  uint32_t next = 0;  // node whose slot is asked for next
  for (uint32_t depth = 0; depth < path.nodes.size(); ++depth) {
    const uint32_t node = path.nodes[depth];
    const uint32_t parent = depth == 0 ? TreeNode::none : path.nodes[depth - 1];
    if (node >= tree.width() || tree[node].parent != parent) {
      throw bad_input("Node " + std::to_string(node) + " at depth " + std::to_string(depth) +
                      " of a path was to be committed; allowed: a path of the tree's " + std::to_string(tree.width()) +
                      " nodes from the root on.");
    }
    while (next < node) slots.of(next++);
    const KvMove move{slots.of(next++), slot_of(length() + depth)};
    if (move.from != move.to) moves.push_back(move);
  }
  if (!moves.empty() && !pass.is_last()) {
    throw bad_input(
        "A path of a draft tree was to be committed after the model had begun another pass; allowed: of its last pass "
        "only.");
  }
  const Device& device = model_.device();
  const bool keeps_features = has_features_of(pass);
  model_.move_kv(moves);
  const double device_ms = moves.empty() ? 0 : device.last_run_ms();
  for (const uint32_t node : path.nodes) tokens_.push_back(tree[node].token);
  if (keeps_features) drafter_->append_features_soon(*draft_state_, path.nodes);
  return device_ms;
}

/// Whether the pass left features of the tokens that come next, and those of all before are kept.
bool Sequence::has_features_of(const ForwardOutput& pass) const {
  return draft_state_ && pass.has_aux_hidden_states() && draft_state_->known() == length();
}

std::optional<Draft> Sequence::draft(uint32_t root, uint32_t depths, const std::stop_token& stop) {
  if (drafter_ == nullptr) throw bad_input("A draft was asked for; the sequence was made without a drafter.");
  if (feature_length() < length()) {
    throw bad_input("A draft behind " + std::to_string(length()) + " tokens was asked for; the features of only " +
                    std::to_string(feature_length()) + " are kept.");
  }
  return drafter_->draft(*draft_state_, root, depths, stop);
}

void Sequence::own_last_page() {
  reserve(1);
  if (draft_state_) drafter_->reserve(*draft_state_);
}

void Sequence::inject() {
  if (draft_state_) drafter_->inject(*draft_state_);
}

void Sequence::forget_features(uint32_t length) {
  if (draft_state_) draft_state_->truncate(length);
}

void Sequence::truncate(uint32_t length) {
  if (length < tokens_.size()) tokens_.resize(length);
  table_.cut(this->length());
  if (draft_state_) draft_state_->truncate(length);
}

void Sequence::pretend(uint32_t length, uint32_t waiting) {
  if (length > capacity()) {
    throw bad_input(std::to_string(length) + " tokens were pretended; allowed: at most " + std::to_string(capacity()) +
                    ".");
  }
  table_.reserve(0, length);
  if (draft_state_) draft_state_->pretend(length - std::min(waiting, length), waiting);
  tokens_.assign(length, 0);
}

void Sequence::require_room(size_t tokens) const {
  if (tokens <= capacity() - length()) return;
  throw bad_input(std::to_string(tokens) + " tokens were to be committed behind " + std::to_string(length()) +
                  "; allowed: " + std::to_string(capacity()) + " in all.");
}

void Sequence::require_own(const ForwardOutput& pass, size_t rows) const {
  const bool has_place = length() < table_.positions();
  if (has_place && pass.is_of(model_, length(), slot_of(length()), rows)) return;
  throw bad_input("What was to be committed behind " + std::to_string(length()) +
                  " tokens is not of a pass over it; allowed: a pass over " + std::to_string(rows) +
                  " rows, the first at position " + std::to_string(length()) + ".");
}

}  // namespace canopy
