#include "tests/model/contract_rig.h"

#include <algorithm>
#include <cstring>

#include "tests/model/all_logits.h"
#include "tests/model/device_under_test.h"

namespace canopy::test {

void PrintTo(const ContractCase& c, std::ostream* out) {
  *out << c.name;
}

::testing::AssertionResult same(const RowResult& row, const RowResult& alone) {
  if (!same_bits(row.logits, alone.logits)) return ::testing::AssertionFailure() << "logits differ";
  if (!same_bits(row.aux_hidden_states, alone.aux_hidden_states))
    return ::testing::AssertionFailure() << "tap features differ";
  if (!same_bits(row.kv, alone.kv)) return ::testing::AssertionFailure() << "keys or values differ";
  return ::testing::AssertionSuccess();
}

uint32_t text_token(uint32_t position) {
  return (position * 29 + position / 7 + 3) % 77;
}

std::vector<uint32_t> BushyTree::path_to(uint32_t row) const {
  std::vector<uint32_t> path;
  for (auto node = static_cast<int32_t>(row); node >= 0; node = parents[static_cast<size_t>(node)]) {
    path.insert(path.begin(), static_cast<uint32_t>(node));
  }
  return path;
}

ContractRig::ContractRig(const RandomModel& random, const RigSizes& sizes)
    : sizes_(sizes), file_(ModelFile::open(folder_.write("model.gguf", random.build()))) {
  ModelOptions options;
  options.cache_type = cache_under_test();
  options.context = sizes.context;
  options.max_width = sizes.widest;
  options.tree_slots = sizes.tree_slots;
  options.aux_layers = {0, 1};
  model_ = Model::load(device_under_test(), file_, options);
  for (uint32_t position = 0; position < sizes.text; ++position) {
    alone_.push_back(commit(text_token(position), position));
  }
}

RowResult ContractRig::commit(uint32_t token, uint32_t position) {
  RowBatch batch;
  batch.add_text(token, position);
  return compute(batch)[0];
}

void ContractRig::restore(uint32_t first, uint32_t count) {
  for (uint32_t i = first; i < std::min(first + count, sizes_.text); ++i) commit(text_token(i), i);
}

std::vector<RowResult> ContractRig::compute(const RowBatch& batch) {
  const FullPass pass = run_for_all_logits(*model_, batch, true);
  std::vector<RowResult> results(batch.width());
  const size_t vocab = pass.logits.size() / batch.width();
  const size_t aux_values = pass.aux_hidden_states.size() / batch.width();
  for (size_t i = 0; i < results.size(); ++i) {
    results[i].logits.assign(&pass.logits[i * vocab], &pass.logits[i * vocab] + vocab);
    results[i].aux_hidden_states.assign(&pass.aux_hidden_states[i * aux_values],
                                        &pass.aux_hidden_states[i * aux_values] + aux_values);
  }
  read_kv(batch, results);
  return results;
}

void ContractRig::read_kv(const RowBatch& batch, std::vector<RowResult>& results) {
  uint32_t low = ~0u;
  uint32_t high = 0;
  for (const Row& row : batch.rows) {
    low = std::min(low, row.slot);
    high = std::max(high, row.slot);
  }
  for (uint32_t layer = 0; layer < model_->config().layers; ++layer) {
    for (const bool values : {false, true}) {
      const std::vector<float> all = model_->read_kv(layer, values, low, high - low + 1);
      const size_t size = model_->config().kv_width_of(layer);
      for (size_t i = 0; i < results.size(); ++i) {
        const float* from = &all[(batch.rows[i].slot - low) * size];
        results[i].kv.insert(results[i].kv.end(), from, from + size);
      }
    }
  }
}

void ContractRig::add_node(BushyTree& tree, uint32_t token, uint32_t committed, int32_t parent) const {
  // Slots in another order than the rows, since nothing may rely on both orders being the same.
  const uint32_t slot = sizes_.context + (tree.batch.width() * 7) % sizes_.tree_slots;
  tree.batch.add_node(token, slot, committed, parent);
  tree.parents.push_back(parent);
}

BushyTree ContractRig::bushy_tree(uint32_t committed, uint32_t width) const {
  BushyTree tree;
  add_node(tree, text_token(committed), committed, -1);
  tree.on_text = {0};
  for (uint32_t i = 1; i < width; ++i) {
    const bool spell = i % 3 == 2 && tree.on_text.size() < 12;
    const uint32_t any = (i * 2654435761u >> 7) % i;  // a pseudo-random node before it
    const auto parent = static_cast<int32_t>(spell ? tree.on_text.back() : any);
    const uint32_t depth = tree.batch.rows[static_cast<size_t>(parent)].position + 1 - committed;
    add_node(tree, (text_token(committed + depth) + (spell ? 0 : 1 + i)) % 77, committed, parent);
    if (spell) tree.on_text.push_back(i);
  }
  return tree;
}

}  // namespace canopy::test
