#pragma once
// Whether two files of different formats are one model.

#include <gtest/gtest.h>

#include <string>

#include "engine/model/model.h"
#include "tests/model/all_logits.h"
#include "tests/model/device_under_test.h"
#include "tests/model/golden_data.h"
#include "tests/model/same_bits.h"

namespace canopy::test {

/// The rows of a golden checkpoint's first text.
inline RowBatch golden_text(const std::string& checkpoint) {
  const auto ids =
      golden_json(checkpoint + ".golden.json").at("sequences").at(0).at("ids").get<std::vector<uint32_t>>();
  RowBatch text;
  for (uint32_t i = 0; i < ids.size(); ++i) text.add_text(ids[i], i);
  return text;
}

/// What a file computes of a text.
inline std::vector<float> logits_of(const ModelFile& file, const RowBatch& text) {
  ModelOptions options;
  options.cache_type = cache_under_test();
  options.context = 64;
  const auto model = Model::load(device_under_test(), file, options);
  return run_for_all_logits(*model, text).logits;
}

/// Expects the same logits bit by bit, of that checkpoint's first text.
inline void expect_same_model(const ModelFile& file, const ModelFile& expected, const std::string& checkpoint) {
  const RowBatch text = golden_text(checkpoint);
  EXPECT_TRUE(same_bits(logits_of(file, text), logits_of(expected, text))) << checkpoint;
}

}  // namespace canopy::test
