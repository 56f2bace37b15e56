#pragma once
// What the tests of the numeric contract compare: what a row leaves behind, and the same computed alone.

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "tests/base/temp_folder.h"
#include "tests/model/random_model.h"
#include "tests/model/same_bits.h"

namespace canopy::test {

/// A model of random weights and the name of its case.
struct ContractCase {
  std::string name;
  RandomModel model;
};
void PrintTo(const ContractCase& c, std::ostream* out);

/// Logits, aux hidden states and K/V of all layers.
struct RowResult {
  std::vector<float> logits, aux_hidden_states, kv;
};

/// Fails with what differs.
::testing::AssertionResult same(const RowResult& row, const RowResult& alone);

/// Token of the text that every test speaks of.
uint32_t text_token(uint32_t position);

struct RigSizes {
  uint32_t text = 0;     // positions
  uint32_t context = 0;  // of the cache; tree slots follow
  uint32_t widest = 0;   // pass
  uint32_t tree_slots = 0;
};

/// A draft tree over the text's continuation: node 0 is the root; of the others some spell the text, some do not.
struct BushyTree {
  RowBatch batch;
  std::vector<int32_t> parents;
  std::vector<uint32_t> on_text;  // rows that spell the text, by depth

  /// Rows from the root to `row`.
  std::vector<uint32_t> path_to(uint32_t row) const;
};

/// One loaded model and the results of every position of the text, each computed alone; shared by the tests.
class ContractRig {
 public:
  ContractRig(const RandomModel& random, const RigSizes& sizes);

  Model& model() { return *model_; }
  const RowResult& alone(uint32_t position) const { return alone_[position]; }

  /// Computes a row of text alone, in its place of the cache.
  RowResult commit(uint32_t token, uint32_t position);
  /// Puts the text's own K/V back where a test wrote something else.
  void restore(uint32_t first, uint32_t count);
  std::vector<RowResult> compute(const RowBatch& batch);

  BushyTree bushy_tree(uint32_t committed, uint32_t width) const;
  void add_node(BushyTree& tree, uint32_t token, uint32_t committed, int32_t parent) const;

 private:
  void read_kv(const RowBatch& batch, std::vector<RowResult>& results);

  TempFolder folder_;
  RigSizes sizes_;
  ModelFile file_;
  std::unique_ptr<Model> model_;
  std::vector<RowResult> alone_;
};

/// The base of suites over models of these sizes: a case has one rig, which all tests of the suite share.
template <RigSizes sizes>
class ContractSuite : public ::testing::TestWithParam<ContractCase> {
 protected:
  static ContractRig& rig() {
    std::unique_ptr<ContractRig>& rig = rigs_[GetParam().name];
    if (!rig) rig = std::make_unique<ContractRig>(GetParam().model, sizes);
    return *rig;
  }
  static void TearDownTestSuite() { rigs_.clear(); }  // before the device goes

 private:
  static inline std::map<std::string, std::unique_ptr<ContractRig>> rigs_;
};

}  // namespace canopy::test
