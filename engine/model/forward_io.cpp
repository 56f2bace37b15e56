#include "engine/model/forward_io.h"

#include <limits>
#include <numeric>
#include <string>

#include "engine/base/error.h"
#include "engine/model/model.h"

namespace canopy {
namespace {

std::vector<uint32_t> first_rows(uint32_t count) {
  std::vector<uint32_t> rows(count);
  std::iota(rows.begin(), rows.end(), 0u);
  return rows;
}

/// Whether the head is wanted of every row, in their order.
bool wants_all_rows(const ForwardInput& input) {
  if (input.head_rows.size() != input.batch.rows.size()) return false;
  for (uint32_t i = 0; i < input.head_rows.size(); ++i) {
    if (input.head_rows[i] != i) return false;
  }
  return true;
}

/// Keys of the row that has most.
uint32_t longest(const RowBatch& batch) {
  uint32_t positions = 1;
  for (const Row& row : batch.rows) positions = std::max(positions, row.position + 1);
  return positions;
}

void validate_rows(const RowBatch& batch, const ModelConfig& config, const ModelLimits& limits) {
  validate(batch, config.vocab, limits.context, limits.slots());
  if (batch.width() > limits.max_width) {
    throw bad_input("A pass of " + std::to_string(batch.width()) + " rows was asked for; allowed: at most " +
                    std::to_string(limits.max_width) + ".");
  }
  for (size_t i = 0; i < batch.rows.size(); ++i) {
    if (batch.rows[i].ancestor_count > kMaxTreeDepth + 1) {
      throw bad_input("Row " + std::to_string(i) + " of the pass has " +
                      std::to_string(batch.rows[i].ancestor_count - 1) + " ancestors; allowed: at most " +
                      std::to_string(kMaxTreeDepth) + ".");
    }
  }
}

void validate_states(const StateUse& use, const ModelLimits& limits) {
  const bool makes_one = use.to != StateUse::kNowhere;
  if (use.from < limits.states &&
      (!makes_one || (use.to < limits.states && use.to != use.from && use.to != StatePool::kEmpty))) {
    return;
  }
  throw bad_input("A pass goes on from state " + std::to_string(use.from) +
                  (makes_one ? " to state " + std::to_string(use.to) : "") + "; allowed: two below " +
                  std::to_string(limits.states) + ", the other not that of an empty text.");
}

void validate_head(const ForwardInput& input, const ModelLimits& limits) {
  const uint32_t most = input.head == HeadOutput::logits ? limits.head_rows : limits.max_width;
  const bool wants_head = input.head != HeadOutput::none;
  if (wants_head == input.head_rows.empty() || input.head_rows.size() > most) {
    throw bad_input("The " + std::string(input.head == HeadOutput::logits ? "logits" : "head") + " of " +
                    std::to_string(input.head_rows.size()) + " rows were asked for; allowed: 1 to " +
                    std::to_string(most) + ", or none without a head.");
  }
  for (const uint32_t row : input.head_rows) {
    if (row >= input.batch.width()) {
      throw bad_input("The head of row " + std::to_string(row) + " was asked for; the pass has " +
                      std::to_string(input.batch.width()) + " rows.");
    }
  }
  if (!wants_head && (input.probabilities || input.likeliest)) {
    throw bad_input("Probabilities or the likeliest tokens were asked for; they come with a head only.");
  }
}

void validate_sampling(const ForwardInput& input, const ModelConfig& config, const ModelLimits& limits) {
  const std::vector<uint32_t>& parents = input.parents;
  if (!parents.empty() && parents.size() != input.head_rows.size()) {
    throw bad_input("The parents of " + std::to_string(parents.size()) + " rows were given; tokens are drawn after " +
                    std::to_string(input.head_rows.size()) + ".");
  }
  std::vector<uint32_t> depths(parents.size());
  for (size_t i = 0; i < parents.size(); ++i) {
    if (parents[i] == kNoToken) continue;
    if (parents[i] < i) depths[i] = depths[parents[i]] + 1;
    if (depths[i] == 0 || depths[i] > kMaxSampledDepth) {
      throw bad_input("Row " + std::to_string(i) + " after which a token is drawn has the parent " +
                      std::to_string(parents[i]) + "; allowed: rows before it, " + std::to_string(kMaxSampledDepth) +
                      " deep at most.");
    }
  }
  const auto& adjustments = input.sampling.adjustments;
  if (adjustments.size() > limits.max_adjustments()) {
    throw bad_input("The logits of " + std::to_string(adjustments.size()) + " tokens are adjusted; allowed: at most " +
                    std::to_string(limits.max_adjustments()) + ".");
  }
  for (size_t i = 0; i < adjustments.size(); ++i) {
    if (adjustments[i].token >= config.vocab || (i > 0 && adjustments[i].token <= adjustments[i - 1].token)) {
      throw bad_input("Adjustment " + std::to_string(i) + " names token " + std::to_string(adjustments[i].token) +
                      "; allowed: ascending tokens below " + std::to_string(config.vocab) + ".");
    }
  }
}

}  // namespace

uint32_t tree_end(std::span<const uint32_t> pages, const ModelLimits& limits) {
  if (pages.empty()) return limits.context;
  return static_cast<uint32_t>(std::min<uint64_t>(limits.context, uint64_t{pages.size()} * kPagePositions));
}

ForwardInput text_input(std::span<const uint32_t> tokens, uint32_t committed, HeadOutput head,
                        std::span<const uint32_t> pages) {
  ForwardInput input;
  input.batch.pages.assign(pages.begin(), pages.end());
  for (uint32_t i = 0; i < tokens.size(); ++i) input.batch.add_text(tokens[i], committed + i);
  input.head = head;
  if (head != HeadOutput::none) input.head_rows = {input.batch.width() - 1};
  return input;
}

ForwardInput tree_input(const DraftTree& tree, uint32_t committed, const ModelLimits& limits, HeadOutput head,
                        bool probabilities, std::span<const uint32_t> pages) {
  ForwardInput input;
  input.batch.pages.assign(pages.begin(), pages.end());
  add_tree(tree, committed, tree_end(pages, limits), limits.first_tree_slot(), input.batch);
  input.head = head;
  if (head == HeadOutput::argmax || head == HeadOutput::sampled) input.head_rows = first_rows(tree.width());
  if (head == HeadOutput::sampled) {
    for (const TreeNode& node : tree.nodes()) input.parents.push_back(node.parent);
  }
  if (head == HeadOutput::logits) input.head_rows = first_rows(std::min(tree.width(), limits.head_rows));
  if (probabilities && head != HeadOutput::none && tree.drafted() > 0) {
    input.probabilities = true;
    input.read_with_logits = head == HeadOutput::logits;
    input.token_logits.reserve(tree.drafted());
    for (const TreeNode& node : tree.nodes().subspan(1)) {
      const bool known = node.parent < input.head_rows.size();
      input.token_logits.push_back({known ? node.parent : TokenLogit::no_row, node.token});
    }
  }
  return input;
}

void validate(const ForwardInput& input, const ModelConfig& config, const ModelLimits& limits) {
  validate_rows(input.batch, config, limits);
  validate_head(input, limits);
  if (input.head == HeadOutput::sampled) validate_sampling(input, config, limits);
  if (input.token_logits.size() > limits.max_token_logits()) {
    throw bad_input(std::to_string(input.token_logits.size()) + " single logits were asked for; allowed: at most " +
                    std::to_string(limits.max_token_logits()) + ".");
  }
  for (const auto& [index, token] : input.token_logits) {
    if ((index >= input.head_rows.size() && index != TokenLogit::no_row) || token >= config.vocab) {
      throw bad_input("The logit of token " + std::to_string(token) + " of wanted row " + std::to_string(index) +
                      " was asked for; there are " + std::to_string(input.head_rows.size()) + " wanted rows and " +
                      std::to_string(config.vocab) + " tokens.");
    }
  }
  if (limits.states > 0) validate_states(input.states, limits);
  if (input.aux_hidden_states && limits.aux_layers == 0) {
    throw bad_input("Taps were asked for; the model was loaded without any.");
  }
}

PassShape shape_of(const ForwardInput& input, const ModelConfig& config, const ModelLimits& limits,
                   const DeviceInfo& device) {
  PassShape shape;
  shape.width = padded_width(device, input.batch.width());
  shape.max_positions = rounded_positions(longest(input.batch), limits.context);
  shape.head = input.head;
  const uint32_t most = input.head == HeadOutput::logits ? limits.head_rows : limits.rows();
  const auto head_rows = static_cast<uint32_t>(input.head_rows.size());
  shape.all_rows = shape.width <= most && wants_all_rows(input);
  if (head_rows > 0) shape.head_rows = shape.all_rows ? shape.width : std::min(padded_width(device, head_rows), most);
  shape.probabilities = input.probabilities;
  shape.likeliest = input.likeliest && config.vocab >= kLikeliest;
  // Trees of all sizes share a few recordings.
  const auto count = static_cast<uint32_t>(input.token_logits.size());
  if (count > 0) shape.token_logits = std::bit_ceil(std::max(kFewestTokenLogits, count));
  if (input.head == HeadOutput::sampled) {
    const SamplingWords& words = input.sampling.words;
    shape.random = words.inverse_temperature != 0;
    shape.filtered = words.top_k != 0 || words.top_p != 0;
    const auto adjusted = static_cast<uint32_t>(input.sampling.adjustments.size());
    if (input.sampling.adjusts) shape.adjustments = std::bit_ceil(std::max(kFewestAdjustments, adjusted));
  }
  shape.aux_hidden_states = input.aux_hidden_states;
  shape.recurrent = limits.states > 0;
  shape.expert_layers = config.layers_with_experts();
  return shape;
}

Row padded_row(const RowBatch& batch, size_t i) {
  if (i < batch.rows.size()) return batch.rows[i];
  Row nothing;
  nothing.slot = kNoSlot;
  return nothing;
}

uint32_t padded_head_row(const ForwardInput& input, const PassShape& shape, size_t i) {
  if (i < input.head_rows.size()) return input.head_rows[i];
  return shape.all_rows ? static_cast<uint32_t>(i) : 0;
}

bool ForwardOutput::has_aux_hidden_states() const {
  return aux_hidden_states_ && is_last();
}

bool ForwardOutput::is_of(const Model& model, uint32_t position, uint32_t slot, size_t rows) const {
  return model_ == &model && first_slot_ == slot && positions_.size() == rows && positions_.front() == position;
}

bool ForwardOutput::is_last() const {
  return model_ != nullptr && model_->pass_ == pass_;
}

size_t ForwardOutput::index_of(uint32_t row) const {
  if (row < head_rows_.size() && head_rows_[row] == row) return row;  // of trees
  return static_cast<size_t>(std::ranges::find(head_rows_, row) - head_rows_.begin());
}

uint32_t ForwardOutput::best(uint32_t row) const {
  const size_t index = index_of(row);
  if (index >= best_logits_.size()) {
    throw bad_input("The most probable token after row " + std::to_string(row) +
                    " was asked for; the pass gave those of " + std::to_string(best_logits_.size()) + " rows.");
  }
  if (choices_[index] >= model_->config().vocab) {
    throw bad_input("The model's logits are not numbers at position " + std::to_string(positions_[row] + 1) +
                    ": its weights are damaged, or the device computes wrongly.");
  }
  return choices_[index];
}

uint32_t ForwardOutput::drawn(uint32_t row) const {
  const size_t index = index_of(row);
  const size_t count = best_logits_.empty() ? choices_.size() : 0;
  if (index >= count) {
    throw bad_input("A token drawn after row " + std::to_string(row) + " was asked for; the pass drew tokens after " +
                    std::to_string(count) + " rows.");
  }
  return choices_[index];
}

float ForwardOutput::best_logit(uint32_t row) const {
  best(row);
  return best_logits_[index_of(row)];
}

float ForwardOutput::log_p(uint32_t node) const {
  if (node == 0 || node > parents_.size() || log_sum_exp_.empty()) return std::numeric_limits<float>::quiet_NaN();
  if (parents_[node - 1] == TokenLogit::no_row) return std::numeric_limits<float>::quiet_NaN();
  // Rounding may take it a hair above 0 where the token is as good as certain.
  return std::min(0.0f, token_logits_[node - 1] - log_sum_exp_[parents_[node - 1]]);
}

void ForwardOutput::require_current(uint32_t row) const {
  if (!completed() || row >= positions_.size()) {
    throw bad_input("The logits of row " + std::to_string(row) + " were asked for; the pass has " +
                    std::to_string(positions_.size()) + " rows.");
  }
  if (model_->pass_ != pass_) {
    throw bad_input("The logits of row " + std::to_string(row) +
                    " were asked for after the model had begun another pass; they must be read before.");
  }
}

void ForwardOutput::read(std::span<const uint32_t> rows, std::span<float> to) {
  for (const uint32_t row : rows) require_current(row);
  const uint32_t vocab = model_->config().vocab;
  std::vector<uint32_t> indices;
  for (const uint32_t row : rows) indices.push_back(static_cast<uint32_t>(index_of(row)));
  if (std::ranges::all_of(indices, [&](uint32_t index) { return index < model_->logits_left_; })) {
    return model_->read_logits(indices, to, *this);
  }
  const size_t most = model_->limits().head_rows;
  for (size_t first = 0; first < rows.size(); first += most) {
    const size_t count = std::min(most, rows.size() - first);
    model_->compute_logits(rows.subspan(first, count), static_cast<uint32_t>(positions_.size()));
    indices.resize(count);
    for (uint32_t i = 0; i < count; ++i) indices[i] = i;
    model_->read_logits(indices, to.subspan(first * vocab, count * vocab), *this);
  }
}

std::span<const float> ForwardOutput::logits(uint32_t row) {
  require_current(row);
  row_logits_.resize(model_->config().vocab);
  read({&row, 1}, row_logits_);
  return row_logits_;
}

std::vector<float> ForwardOutput::logits(std::span<const uint32_t> rows) {
  for (const uint32_t row : rows) require_current(row);
  std::vector<float> all(rows.empty() ? 0 : rows.size() * model_->config().vocab);
  read(rows, all);
  return all;
}

}  // namespace canopy
