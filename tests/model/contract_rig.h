#pragma once
// For tests of the numeric contract: computes the results of rows in passes, and of the same rows alone.

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

namespace canopy::test {

/// A named model of random weights.
struct ContractCase {
  std::string name;
  RandomModel model;
};
void PrintTo(const ContractCase& c, std::ostream* out);

/// What a row computes: logits, aux hidden states and K/V of all layers.
struct RowResult {
  std::vector<float> logits, aux_hidden_states, kv;
};

bool same_bits(std::span<const float> a, std::span<const float> b);
/// Whether the bits are the same; the failure says what differs.
::testing::AssertionResult same(const RowResult& row, const RowResult& alone);

/// The token at a position of the text that all tests use.
uint32_t text_token(uint32_t position);

struct RigSizes {
  uint32_t text = 0;     // positions of the text
  uint32_t context = 0;  // positions of the cache; the slots of trees follow
  uint32_t widest = 0;   // rows of the widest pass
  uint32_t tree_slots = 0;
};

/// A draft tree over the continuation of the text. Node 0 is the root; some of the other nodes are the text's tokens,
/// some are not.
struct BushyTree {
  RowBatch batch;
  std::vector<int32_t> parents;
  std::vector<uint32_t> on_text;  // by depth: the rows that are the text's tokens

  /// Rows from the root to `row`.
  std::vector<uint32_t> path_to(uint32_t row) const;
};

/// A loaded model with the results of every position of the text, each computed alone; shared by all tests of a suite.
class ContractRig {
 public:
  ContractRig(const RandomModel& random, const RigSizes& sizes);

  Model& model() { return *model_; }
  const RowResult& alone(uint32_t position) const { return alone_[position]; }

  /// Computes a row of text alone and stores its K/V at its position.
  RowResult commit(uint32_t token, uint32_t position);
  /// Writes the text's own K/V again, after a test wrote something else.
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

/// The base of suites over models of these sizes. A case has one rig, which all tests of the suite share.
template <RigSizes sizes>
class ContractSuite : public ::testing::TestWithParam<ContractCase> {
 protected:
  static ContractRig& rig() {
    std::unique_ptr<ContractRig>& rig = rigs_[GetParam().name];
    if (!rig) rig = std::make_unique<ContractRig>(GetParam().model, sizes);
    return *rig;
  }
  static void TearDownTestSuite() { rigs_.clear(); }  // before the device is closed

 private:
  static inline std::map<std::string, std::unique_ptr<ContractRig>> rigs_;
};

}  // namespace canopy::test
