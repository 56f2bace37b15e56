// Weights quantized while loading: the same model as if the file had been quantized before.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>

#include "engine/model/model.h"
#include "engine/model/weight_plan.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/model/all_logits.h"
#include "tests/model/device_under_test.h"
#include "tests/model/golden_data.h"
#include "tests/model/random_model.h"
#include "tests/model/same_bits.h"

namespace canopy::test {
namespace {

/// Rows of 256 and of 96 elements, so that some can be Q4_K and the rest Q8_0.
RandomModel wide_model(TensorType type) {
  RandomModel random;
  random.type = type;
  random.hidden = 256;
  random.heads = 4;
  random.head_dim = 64;
  random.ffn = 96;
  return random;
}

std::unique_ptr<Model> load(const ModelFile& file, QuantizeOnLoad quantize) {
  ModelOptions options;
  options.cache_type = cache_under_test();
  options.context = 64;
  options.max_width = 8;
  options.quantize = quantize;
  return Model::load(device_under_test(), file, options);
}

struct Results {
  std::vector<float> logits, keys, values;
};

Results results_of(Model& model) {
  RowBatch batch;
  std::vector<uint32_t> rows;
  for (uint32_t i = 0; i < 5; ++i) {
    batch.add_text((i * 31 + 7) % 77, i);
    rows.push_back(i);
  }
  const uint32_t last = model.config().layers - 1;
  Results results;
  results.logits = logits_of(model, batch, rows);
  results.keys = model.read_kv(last, false, 0, 5);
  results.values = model.read_kv(last, true, 0, 5);
  return results;
}

/// The type that the loader should give a matrix, by the rule written once more here.
std::optional<TensorType> expected_type(QuantizeOnLoad quantize, bool tied, const std::string& name, uint64_t cols) {
  if (cols % 32 != 0 || name.ends_with("ffn_gate_inp")) return std::nullopt;
  const bool is_head = name == "output" || (tied && name == "token_embd");
  if (quantize == QuantizeOnLoad::q4_k && cols % 256 == 0 && !is_head) return TensorType::q4_k;
  return TensorType::q8_0;
}

struct Case {
  TensorType type;
  QuantizeOnLoad quantize;
  bool tied;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << to_string(c.type) << "_" << to_string(c.quantize) << (c.tied ? "_tied" : "");
}

class QuantizeOnLoadTest : public ::testing::TestWithParam<Case> {};

void expect_the_bits_of_one_quantized_before(RandomModel random, const Case& choice) {
  const auto [type, quantize, tied] = choice;
  const TempFolder folder;
  const ModelFile plain = ModelFile::open(folder.write("plain.gguf", random.build()));
  random.requantize = [quantize = quantize, tied = tied](const std::string& name, uint64_t cols) {
    return expected_type(quantize, tied, name, cols);
  };
  const ModelFile quantized = ModelFile::open(folder.write("quantized.gguf", random.build()));
  const auto on_load = load(plain, quantize);
  const auto before = load(quantized, QuantizeOnLoad::none);
  EXPECT_EQ(on_load->memory().weights, before->memory().weights);
  EXPECT_EQ(on_load->quantized(), quantize);
  EXPECT_EQ(before->quantization(), "");
  const Results a = results_of(*on_load), b = results_of(*before), unquantized = results_of(*load(plain, {}));
  EXPECT_TRUE(same_bits(a.logits, b.logits));
  EXPECT_TRUE(same_bits(a.keys, b.keys));
  EXPECT_TRUE(same_bits(a.values, b.values));
  EXPECT_FALSE(same_bits(a.logits, unquantized.logits));  // otherwise no comparison above could fail
}

TEST_P(QuantizeOnLoadTest, GivesTheBitsOfAFileThatWasQuantizedBefore) {
  RandomModel random = wide_model(GetParam().type);
  random.tied = GetParam().tied;
  expect_the_bits_of_one_quantized_before(random, GetParam());
}

TEST_P(QuantizeOnLoadTest, AppliesToExpertsAndNotToTheirRouters) {
  RandomModel random = wide_model(GetParam().type);
  random.tied = GetParam().tied;
  random.architecture = "qwen3moe";
  random.expert_ffn = 96;
  expect_the_bits_of_one_quantized_before(random, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Types, QuantizeOnLoadTest,
                         ::testing::Values(Case{TensorType::f32, QuantizeOnLoad::q8_0, true},
                                           Case{TensorType::f16, QuantizeOnLoad::q8_0, false},
                                           Case{TensorType::bf16, QuantizeOnLoad::q8_0, true},
                                           Case{TensorType::f32, QuantizeOnLoad::q4_k, false},
                                           Case{TensorType::bf16, QuantizeOnLoad::q4_k, true}),
                         ::testing::PrintToStringParamName());

TEST(QuantizeOnLoad, SaysWhatBecameOfTheTensors) {
  const TempFolder folder;
  const ModelFile file = ModelFile::open(folder.write("f16.gguf", wide_model(TensorType::f16).build()));
  EXPECT_EQ(load(file, QuantizeOnLoad::q8_0)->quantization(),
            "Quantized while loading: 15 tensors to Q8_0, 1.1 MB of the file to 595.4 kB.");
  // In each of two layers the matrices with 256 columns; not the head, and not ffn_down with its 96.
  EXPECT_EQ(load(file, QuantizeOnLoad::q4_k)->quantization(),
            "Quantized while loading: 3 tensors to Q8_0, 12 tensors to Q4_K, 1.1 MB of the file to 349.6 kB.");
  EXPECT_EQ(load(file, QuantizeOnLoad::none)->quantization(), "");
}

TEST(QuantizeOnLoad, RowsOfNoWholeBlocksStay) {
  RandomModel random = wide_model(TensorType::f16);
  random.ffn = 80;
  const TempFolder folder;
  const auto model = load(ModelFile::open(folder.write("f16.gguf", random.build())), QuantizeOnLoad::q8_0);
  EXPECT_NE(model->quantization().find("13 tensors to Q8_0"), std::string::npos) << model->quantization();
  EXPECT_NE(model->quantization().find("2 of type F16 stay as they are: their rows are no multiple of 32."),
            std::string::npos)
      << model->quantization();
  for (const float logit : results_of(*model).logits) ASSERT_TRUE(std::isfinite(logit));
}

TEST(QuantizeOnLoad, WhatIsQuantizedAlreadyStays) {
  const TempFolder folder;
  const ModelFile file = ModelFile::open(folder.write("q8.gguf", wide_model(TensorType::q8_0).build()));
  const auto asked = load(file, QuantizeOnLoad::q4_k);
  EXPECT_EQ(asked->quantization(), "");
  EXPECT_TRUE(same_bits(results_of(*asked).logits, results_of(*load(file, {})).logits));
}

TEST(QuantizeOnLoad, AWeightThatIsNotANumberIsNamed) {
  RandomModel random = wide_model(TensorType::f32);
  const TempFolder folder;
  std::string bytes = random.build();
  const ModelFile whole = ModelFile::open(folder.write("whole.gguf", bytes));
  const auto* matrix = whole.find("blk.1.ffn_up");
  const std::string needle(reinterpret_cast<const char*>(matrix->bytes.data()), 64);
  const size_t at = bytes.find(needle);
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at + 2 * 256 * 4, 4, le(std::nanf("")));  // the first element of row 2
  const ModelFile broken = ModelFile::open(folder.write("broken.gguf", bytes));
  expect_error("Row 2 of the tensor 'blk.1.ffn_up'", [&] { load(broken, QuantizeOnLoad::q8_0); });
}

TEST(QuantizeOnLoad, ConvertsAnySliceToTheSameBlocks) {
  const TempFolder folder;
  const ModelFile file = ModelFile::open(folder.write("bf16.gguf", wide_model(TensorType::bf16).build()));
  const TensorView& tensor = file.require("blk.0.ffn_up", 96, 256);
  for (const WeightType type : {WeightType::f32, WeightType::q8_0, WeightType::q4_k}) {
    std::vector<std::byte> all, part;
    convert_rows(tensor, 0, 96, type, all);
    const size_t row = all.size() / 96;
    convert_rows(tensor, 17, 5, type, part);
    ASSERT_EQ(part.size(), 5 * row);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + static_cast<ptrdiff_t>(17 * row)));
  }
}

/// A trained model: its greedy continuation of its training text hardly changes.
TEST(QuantizeOnLoad, ATrainedModelStillPredictsItsText) {
  const ModelFile file = ModelFile::open(golden_folder() / "tiny-qwen3-f16.gguf");
  const auto ids = golden_json("gguf_logits.json").at("prompt_ids").get<std::vector<uint32_t>>();
  const auto count = static_cast<uint32_t>(std::min<size_t>(ids.size(), 64));
  const auto best = [&](QuantizeOnLoad quantize) {
    ModelOptions options;
    options.cache_type = cache_under_test();
    options.context = options.max_width = 64;
    options.quantize = quantize;
    RowBatch text;
    std::vector<uint32_t> rows;
    for (uint32_t i = 0; i < count; ++i) {
      text.add_text(ids[i], i);
      rows.push_back(i);
    }
    const auto model = Model::load(device_under_test(), file, options);
    const ForwardOutput output = model->forward({text, HeadOutput::argmax, rows});
    return std::vector<uint32_t>(output.choices().begin(), output.choices().end());
  };
  const std::vector<uint32_t> plain = best(QuantizeOnLoad::none);
  for (const auto& [quantize, share] : {std::pair(QuantizeOnLoad::q8_0, 0.95), std::pair(QuantizeOnLoad::q4_k, 0.75)}) {
    const std::vector<uint32_t> quantized = best(quantize);
    uint32_t same = 0;
    for (uint32_t i = 0; i < count; ++i) same += plain[i] == quantized[i];
    EXPECT_GE(same, share * count) << to_string(quantize);
  }
}

}  // namespace
}  // namespace canopy::test
