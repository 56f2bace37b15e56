#include "engine/session/tree_verifier.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "engine/base/error.h"
#include "engine/model/tree_rows.h"

namespace canopy {
namespace {

std::vector<uint32_t> first_rows(uint32_t count) {
  std::vector<uint32_t> rows(count);
  std::iota(rows.begin(), rows.end(), 0u);
  return rows;
}

}  // namespace

bool TreeVerifier::verify(const DraftTree& tree, uint32_t committed, HeadOutput head, bool keep_aux, bool probabilities,
                          const std::stop_token& stop) {
  batch_.clear();
  add_tree(tree, committed, model_.limits().context, batch_);
  first_answer_ = 0;
  // A walk visits few rows, most of them early ones: the logits of others are computed when it does, and only those it
  // visits leave the device.
  rows_with_logits_ = head == HeadOutput::logits ? std::min(tree.width(), model_.limits().head_rows) : 0;
  PassOutputs outputs = head == HeadOutput::argmax ? PassOutputs::argmax_of(first_rows(tree.width()))
                                                   : PassOutputs::logits_of(first_rows(rows_with_logits_));
  parents_.clear();
  if (probabilities && head == HeadOutput::argmax && tree.drafted() > 0) {
    outputs.probabilities = true;
    for (const TreeNode& node : tree.nodes().subspan(1)) {
      parents_.push_back(node.parent);
      outputs.token_logits.emplace_back(node.parent, node.token);
    }
  }
  return run(std::move(outputs), keep_aux, stop);
}

bool TreeVerifier::prefill(std::span<const uint32_t> tokens, uint32_t committed, HeadOutput head, bool keep_aux,
                           const std::stop_token& stop) {
  batch_.clear();
  for (uint32_t i = 0; i < tokens.size(); ++i) batch_.add_text(tokens[i], committed + i);
  parents_.clear();
  first_answer_ = batch_.width() - 1;
  rows_with_logits_ = head == HeadOutput::logits ? 1 : 0;
  PassOutputs outputs;
  outputs.head = head;
  if (head != HeadOutput::none) outputs.rows = {first_answer_};
  return run(std::move(outputs), keep_aux, stop);
}

bool TreeVerifier::run(PassOutputs outputs, bool keep_aux, const std::stop_token& stop) {
  outputs.keep_aux_hidden_states = keep_aux;
  outputs.keep_logits = outputs.head == HeadOutput::logits;
  result_ = model_.run(batch_, outputs, stop, cache_);
  device_ms_ = model_.device().last_run_ms();
  return result_.completed;
}

uint32_t TreeVerifier::best(uint32_t node) const {
  const uint32_t token = result_.ids.at(node);
  if (token >= model_.config().vocab) {
    throw bad_input("The model's logits are not numbers at position " +
                    std::to_string(batch_.rows.at(first_answer_ + node).position + 1) +
                    ": its weights are damaged, or the device computes wrongly.");
  }
  return token;
}

std::span<const float> TreeVerifier::logits(uint32_t node) {
  if (node < rows_with_logits_) {
    row_logits_.resize(model_.config().vocab);
    model_.read_logits(node, row_logits_);
  } else {
    rows_with_logits_ = 0;  // theirs are overwritten
    row_logits_ = model_.compute_logits(PassOutputs::logits_of({node})).logits;
  }
  return row_logits_;
}

float TreeVerifier::log_p(uint32_t node) const {
  if (node == 0 || node > parents_.size()) return std::numeric_limits<float>::quiet_NaN();
  // Rounding may take it a hair above 0 where the token is as good as certain.
  return std::min(0.0f, result_.token_logits[node - 1] - result_.log_sum_exp[parents_[node - 1]]);
}

}  // namespace canopy
