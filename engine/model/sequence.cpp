#include "engine/model/sequence.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "engine/base/error.h"
#include "engine/speculation/ddtree.h"

namespace canopy {

Sequence::Sequence(Model& model, FeatureDrafter* drafter)
    : model_(model),
      drafter_(drafter),
      draft_state_(drafter != nullptr ? std::make_unique<DraftState>(*drafter, &tokens_, &table_) : nullptr),
      table_(model.pages()) {
  if (model.states().places() > 0) states_.emplace(model.states());
}

Sequence::Sequence(const Sequence* other)
    : model_(other->model_),
      drafter_(other->drafter_),
      draft_state_(other->draft_state_ ? other->draft_state_->fork(&tokens_, &table_) : nullptr),
      table_(other->table_),
      states_(other->states_),
      in_round_(other->in_round_),
      tokens_(other->tokens_) {
  if (states_) states_->begin(false);  // a pass that the other has begun is the other's
  table_.cut(length());
}

std::unique_ptr<Sequence> Sequence::fork() const {
  return std::unique_ptr<Sequence>(new Sequence(this));
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
  ForwardInput input = text_input(tokens, length(), head, table_.pages());
  if (states_) {
    // The end of a turn; and what comes before rows that are read again when a reply is written again.
    if (in_round_ || head != HeadOutput::none) states_->keep();
    input.states = states_->begin(true);
  }
  return input;
}

ForwardInput Sequence::tree(const DraftTree& tree, HeadOutput head, bool probabilities) {
  uint32_t depth = 0;
  for (const TreeNode& node : tree.nodes()) depth = std::max(depth, node.depth);
  reserve(depth + 1);
  ForwardInput input = tree_input(tree, length(), model_.limits(), head, probabilities, table_.pages());
  if (states_) input.states = states_->begin(tree.drafted() == 0);  // a root is always accepted
  return input;
}

ForwardInput Sequence::branches(const DraftTree& tree, uint32_t first, HeadOutput head) {
  if (states_ || length() == 0 || first == 0 || first >= tree.width()) {
    throw bad_input("A pass over the nodes of a tree from node " + std::to_string(first) + " of " +
                    std::to_string(tree.width()) + " on was asked for, behind " + std::to_string(length()) +
                    " tokens; allowed: from a drafted node on, behind some text, of a model without recurrent layers.");
  }
  uint32_t depth = 0;
  for (const TreeNode& node : tree.nodes()) depth = std::max(depth, node.depth);
  reserve(depth);
  ForwardInput input = tree_input(tree, length() - 1, model_.limits(), head, false, table_.pages());
  std::vector<Row>& rows = input.batch.rows;  // they name their ancestors by slots, which earlier passes have filled
  std::vector<uint32_t>& ancestors = input.batch.ancestors;
  const uint32_t unused = rows[first].first_ancestor;  // of the rows that go: a pass has room for those of its own rows
  rows.erase(rows.begin(), rows.begin() + first);
  ancestors.erase(ancestors.begin(), ancestors.begin() + unused);
  for (Row& row : rows) row.first_ancestor -= unused;
  input.head_rows.resize(rows.size());
  std::iota(input.head_rows.begin(), input.head_rows.end(), 0u);
  return input;
}

bool Sequence::append(std::span<const uint32_t> tokens, const ForwardOutput& pass, const std::stop_token& stop) {
  require_room(tokens.size());
  require_own(pass, tokens.size());
  const bool keeps_features = has_features_of(pass, tokens.front());
  std::vector<uint32_t> rows(tokens.size());
  std::iota(rows.begin(), rows.end(), 0u);
  if (!has_state_of(pass, rows.size())) require_last(pass);
  commit_states(rows, pass);
  if (keeps_features) skip_features();
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  in_round_ = false;
  if (!keeps_features) return true;
  return drafter_->append_features(*draft_state_, rows, stop);
}

bool Sequence::append_each(std::span<const uint32_t> tokens, const ForwardOutput& pass,
                           const std::function<bool()>& then, const std::stop_token& stop) {
  require_room(tokens.size());
  require_own(pass, tokens.size());
  if (!has_features_of(pass, tokens.front())) {
    throw bad_input("Tokens were to be committed one by one with their features; the features of " +
                    std::to_string(feature_length()) + " of " + std::to_string(length()) +
                    " tokens before are kept, and the pass must leave those of its own.");
  }
  if (states_) require_last(pass);
  skip_features();
  const auto append_all = [&] {
    for (uint32_t row = 0; row < tokens.size(); ++row) {
      tokens_.push_back(tokens[row]);
      if (!drafter_->append_features(*draft_state_, {&row, 1}, stop) || !then()) return false;
    }
    return true;
  };
  const uint32_t before = length();
  const bool all = append_all();
  in_round_ = false;
  std::vector<uint32_t> rows(length() - before);
  std::iota(rows.begin(), rows.end(), 0u);
  commit_states(rows, pass);
  return all;
}

/// Whether the pass has put the state after these rows, all that it had, where it belongs.
bool Sequence::has_state_of(const ForwardOutput& pass, size_t rows) const {
  return !states_ || (rows == pass.width() && states_->is_behind(pass.states().to));
}

void Sequence::require_last(const ForwardOutput& pass) const {
  if (pass.is_last()) return;
  throw bad_input(
      "Rows were to be committed after the model had begun another pass; allowed: of its last pass only, but for text "
      "that the pass itself has committed.");
}

/// Brings the state behind rows that are committed, each of which follows the one before. Returns the milliseconds that
/// were waited for the device, by its clock.
double Sequence::commit_states(std::span<const uint32_t> rows, const ForwardOutput& pass) {
  if (!states_ || rows.empty()) return 0;
  double device_ms = 0;
  if (!has_state_of(pass, rows.size())) {
    StateUse use = pass.states();
    use.to = states_->place_behind();
    model_.apply_rows(rows, use);
    device_ms = model_.device().last_run_ms();
  }
  states_->end(static_cast<uint32_t>(rows.size()));
  return device_ms;
}

double Sequence::commit(const DraftTree& tree, const AcceptedPath& path, const ForwardOutput& pass) {
  require_room(path.nodes.size());
  require_own(pass, tree.width());
  const std::vector<KvMove> moves = moves_of(tree, path, length());
  if (!moves.empty() || !has_state_of(pass, path.nodes.size())) require_last(pass);
  const Device& device = model_.device();
  const bool keeps_features = has_features_of(pass, tree[0].token);
  model_.move_kv(moves);
  double device_ms = moves.empty() ? 0 : device.last_run_ms();
  device_ms += commit_states(path.nodes, pass);
  in_round_ = true;
  if (keeps_features) skip_features();
  for (const uint32_t node : path.nodes) tokens_.push_back(tree[node].token);
  if (keeps_features) drafter_->append_features_soon(*draft_state_, path.nodes);
  return device_ms;
}

std::vector<KvMove> Sequence::moves_of(const DraftTree& tree, const AcceptedPath& path, uint32_t position) const {
  TreeSlots slots(tree, table_.pages(), position, tree_end(table_.pages(), model_.limits()),
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
    const KvMove move{slots.of(next++), slot_of(position + depth)};
    if (move.from != move.to) moves.push_back(move);
  }
  return moves;
}

void Sequence::commit_branches(const DraftTree& tree, const AcceptedPath& path) {
  require_room(path.accepted());
  model_.move_kv(moves_of(tree, path, length() - 1));
  for (uint32_t depth = 1; depth < path.nodes.size(); ++depth) tokens_.push_back(tree[path.nodes[depth]].token);
}

/// Whether the pass left features of the tokens that come next, `first` and others, and those of all before are kept.
bool Sequence::has_features_of(const ForwardOutput& pass, uint32_t first) const {
  return draft_state_ && pass.has_aux_hidden_states() &&
         (draft_state_->known() == length() || !drafter_->reads_all_features()) && draft_state_->goes_on_with(first);
}

/// Of committed tokens whose features nobody will read, some may be missing.
void Sequence::skip_features() {
  if (!drafter_->reads_all_features()) draft_state_->skip_to(length());
}

uint32_t Sequence::feature_length() const {
  if (!draft_state_) return 0;
  const bool has_last = draft_state_->known() == length() && draft_state_->has_last();
  return drafter_->reads_all_features() || has_last || length() == 0 ? draft_state_->known() : length() - 1;
}

uint32_t Sequence::reusable_length() const {
  return draft_state_ && !drafter_->reads_all_features() ? length() : feature_length();
}

std::optional<Draft> Sequence::draft(uint32_t root, const DraftWish& wish, const std::stop_token& stop) {
  if (drafter_ == nullptr) throw bad_input("A draft was asked for; the sequence was made without a drafter.");
  if (feature_length() < length()) {
    throw bad_input("A draft behind " + std::to_string(length()) + " tokens was asked for; the features of only " +
                    std::to_string(feature_length()) + " are kept.");
  }
  return drafter_->draft(*draft_state_, root, wish, stop);
}

void Sequence::own_last_page() {
  reserve(1);
  if (draft_state_) drafter_->reserve(*draft_state_);
}

void Sequence::inject() {
  if (draft_state_) drafter_->settle(*draft_state_);
}

void Sequence::go_on_with(uint32_t token) {
  if (draft_state_ && !draft_state_->goes_on_with(token)) draft_state_->truncate(draft_state_->known() - 1);
}

void Sequence::forget_features(uint32_t length) {
  if (draft_state_) draft_state_->truncate(length);
}

void Sequence::truncate(uint32_t length) {
  length = reachable(length);
  if (states_ && length < this->length()) {
    states_->cut(length);
    in_round_ = false;
  }
  if (draft_state_) draft_state_->truncate(length);  // which looks at the token behind
  tokens_.resize(length);
  table_.cut(length);
}

uint32_t Sequence::reachable(uint32_t length) const {
  if (length >= this->length()) return this->length();
  return states_ ? states_->nearest(length) : length;
}

void Sequence::adopt_states(const Sequence& beginning) {
  if (states_ && beginning.states_) states_->adopt(*beginning.states_);
}

bool Sequence::give_up_state() {
  if (!states_ || length() == 0) return false;
  if (!states_->give_up()) clear();
  return true;
}

void Sequence::pretend(uint32_t length, uint32_t waiting) {
  if (length > capacity()) {
    throw bad_input(std::to_string(length) + " tokens were pretended; allowed: at most " + std::to_string(capacity()) +
                    ".");
  }
  table_.reserve(0, length);
  if (draft_state_) draft_state_->pretend(length - std::min(waiting, length), waiting);
  if (states_) states_->pretend(length);
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
