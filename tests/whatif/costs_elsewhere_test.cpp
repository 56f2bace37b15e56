// What a recording would cost elsewhere: predicted for a profile, or from a calibration that somebody sent.

#include "engine/whatif/elsewhere.h"

#include <gtest/gtest.h>

#include <fstream>

#include "engine/speculation/calibration.h"
#include "engine/whatif/prediction.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/speculation/simulator_table.h"
#include "tests/whatif/simulated_recording.h"

namespace canopy::test {
namespace {

TraceSizes target_sizes() {
  TraceSizes sizes;
  sizes.layers = 4;
  sizes.hidden = 512;
  sizes.heads = 8;
  sizes.kv_heads = 2;
  sizes.head_dim = 64;
  sizes.ffn = 1536;
  sizes.vocab = 4096;
  sizes.tied_head = true;
  sizes.parameters = 12345678;
  sizes.types = {{"attn_q", "Q4_K"},   {"attn_k", "Q4_K"}, {"attn_v", "Q6_K"},   {"attn_output", "Q4_K"},
                 {"ffn_gate", "Q4_K"}, {"ffn_up", "Q4_K"}, {"ffn_down", "Q6_K"}, {"token_embd", "Q6_K"}};
  return sizes;
}

TraceHeader header_with_sizes() {
  TraceHeader header;
  header.target = {"Some Model", "some.gguf", "llama", "Q4_K", "", target_sizes()};
  TraceSizes drafter = target_sizes();
  drafter.layers = 1;
  drafter.vocab = 0;
  drafter.block = 8;
  drafter.taps = 3;
  drafter.drafted_tokens = 4096;
  drafter.types = {{"attn_q", "BF16"}, {"fc", "BF16"}};
  header.drafter = TraceModel{"Its drafter", "drafter.gguf", "dflash", "BF16", "", drafter};
  return header;
}

class CostsElsewhereTest : public testing::Test {
 protected:
  CostsElsewhereTest() {
    const DeviceSpec spec = devices_named({"roofline"})[0];
    const VirtualDevice device(spec, 200, 11);
    Controller controller({}, spec.block_size);
    record_run(controller, trace_, device, 31, {.tokens = 200, .prompt = 30}, recording_);
  }

  std::span<const RecordedReply> replies() const { return recording_.replies; }
  CostTable predicted(const char* device, const TraceHeader& header) const {
    return costs_of_device(predict::device_profile(device), header, replies()).costs->table;
  }

  std::filesystem::path calibration(const CalibrationKey& key) const {
    CostTable table;
    for (uint32_t width = 1; width <= 64; ++width) table.set_verify(width, 100, 5 + 0.01 * width);
    table.set_draft(1, 100, 0.5);
    write_calibration(folder_.path() / "card.json", key, table);
    return folder_.path() / "card.json";
  }

  Trace trace_ = Trace(texts_named({"usual"})[0], 200, 11);
  SimulatedRecording recording_;
  TempFolder folder_;
};

TEST_F(CostsElsewhereTest, APredictionHasAllWidthsAndDrafts) {
  const CostsElsewhere there = costs_of_device(predict::device_profile("h100"), header_with_sizes(), replies());
  EXPECT_EQ(there.source, CostSource::predicted);
  EXPECT_EQ(there.name, "H100 SXM");
  EXPECT_NE(there.from.find("nothing was measured"), std::string::npos);
  const CostTable& table = there.costs->table;
  double before = 0;
  for (const uint32_t width : {1u, 2u, 8u, 16u, 32u}) {
    EXPECT_GE(table.verify_ms(width, 100), 0.99 * before) << width;
    before = table.verify_ms(width, 100);
  }
  EXPECT_GT(table.verify_ms(1, 100), 0.01);
  EXPECT_LT(table.verify_ms(1, 100), 2);
  EXPECT_TRUE(table.has_draft());
  EXPECT_GT(table.draft_ms(1, 100), 0);
  EXPECT_GT(table.draft_ms(64, 100), table.draft_ms(1, 100));
  EXPECT_LT(table.draft_ms(1, 100), table.verify_ms(1, 100));  // one layer of four
}

/// Of a head that drafts token by token a pass over one row makes a token, whatever the longest draft.
TEST_F(CostsElsewhereTest, ADraftMadeTokenByTokenIsPricedByItsPasses) {
  TraceHeader header = header_with_sizes();
  header.drafter->sizes->taps = 2;
  header.drafter->sizes->block = 13;
  const double block = predicted("h100", header).draft_ms(1, 100);
  for (RecordedReply& reply : recording_.replies) reply.drafting.sources = kFromMtp;
  const CostTable table = predicted("h100", header);
  EXPECT_LT(table.draft_ms(1, 100), block);
  EXPECT_GT(table.draft_ms(1, 100), 0);
}

/// Their small tables and convolutions are part of a draft.
TEST_F(CostsElsewhereTest, RelativesOfDflashTakeLonger) {
  TraceHeader header = header_with_sizes();
  const double plain = predicted("h100", header).draft_ms(1, 100);
  header.drafter->sizes->markov_rank = 256;
  const double dspark = predicted("h100", header).draft_ms(1, 100);
  EXPECT_GT(dspark, plain);
  EXPECT_LT(dspark, 20 * plain);
  header.drafter->sizes->markov_rank = 0;
  header.drafter->sizes->row_conv_taps = 2;
  header.drafter->sizes->row_conv_group = 16;
  const double dflash2 = predicted("h100", header).draft_ms(1, 100);
  EXPECT_GT(dflash2, plain);
  EXPECT_LT(dflash2, 5 * plain);
}

/// By the definition of a pass: as `predict` says of the same shape.
TEST_F(CostsElsewhereTest, APredictionIsWhatPredictSaysOfTheShape) {
  TraceHeader header = header_with_sizes();
  header.target = {"Something else inside", "SmolLM2-135M-Instruct.Q4_1.gguf", "llama", "Q4_1", "", std::nullopt};
  header.drafter.reset();
  const predict::DeviceProfile& device = predict::device_profile("rx7900xtx");
  const CostTable table = costs_of_device(device, header, replies()).costs->table;
  EXPECT_FALSE(table.has_draft());
  const predict::NamedModelPasses opened = predict::open_for_prediction("smollm2-135m-q4_1");
  const auto rules = predict::rules_of(predict::default_kernels(device));
  for (const CostPoint& point : table.verify_points()) {
    if (point.rows % 7 != 1) continue;
    EXPECT_DOUBLE_EQ(point.ms, predict::predict_pass(*opened.model, device, rules, point.rows, point.context).ms);
  }
}

// More rows touch more experts, until all are read.
TEST_F(CostsElsewhereTest, ExpertsCountAsRowsTouchThem) {
  TraceHeader header = header_with_sizes();
  const double dense = predicted("rtx4090", header).verify_ms(1, 100);
  TraceSizes& sizes = *header.target.sizes;
  sizes.hidden = 2048;
  sizes.expert_layers = 4;
  sizes.experts = 64;
  sizes.experts_used = 4;
  sizes.expert_ffn = 1024;
  const CostTable table = predicted("rtx4090", header);
  EXPECT_GT(table.verify_ms(1, 100), dense);
  EXPECT_GT(table.verify_ms(16, 100), 2 * table.verify_ms(1, 100));
  sizes.experts_used = 65;
  test::expect_error("number of experts that a token uses is 65; 1 to 64", [&] { predicted("rtx4090", header); });
}

// A state of 48 heads of 128 x 128 floats is read and written in each of three layers of four: 19 MB.
TEST_F(CostsElsewhereTest, StatesOfRecurrencesCount) {
  TraceHeader header = header_with_sizes();
  TraceSizes& sizes = *header.target.sizes;
  sizes.layers = 4;
  const double without = predicted("rtx4090", header).verify_ms(1, 100);
  sizes.types.emplace_back("ssm_out", "F16");
  test::expect_error("has recurrent layers, whose sizes it does not name", [&] { predicted("rtx4090", header); });
  sizes.recurrent_layers = 3;
  sizes.key_heads = 16;
  sizes.value_heads = 48;
  sizes.key_dim = sizes.value_dim = 128;
  sizes.conv_taps = 4;
  sizes.output_gate = true;
  const double bytes = 3.0 * 2 * 48 * 128 * 128 * 4;
  EXPECT_GT(predicted("rtx4090", header).verify_ms(1, 100), without + bytes / 1.1e12 * 1e3);
  sizes.key_dim = 129;
  test::expect_error("recurrent key head dimension is 129", [&] { predicted("rtx4090", header); });
}

// Of scans a value is half as long as a key, so that as many heads have half of a state.
TEST_F(CostsElsewhereTest, ScansOfGraniteCountAsOnesOfTheirSizes) {
  TraceHeader header = header_with_sizes();
  TraceSizes& sizes = *header.target.sizes;
  header.target.architecture = "granitehybrid";
  sizes.layers = 4;
  sizes.qk_norm = false;
  const double without = predicted("rtx4090", header).verify_ms(1, 100);
  sizes.recurrent_layers = 3;
  sizes.key_heads = 1;
  sizes.value_heads = 128;
  sizes.key_dim = 128;
  sizes.value_dim = 64;
  sizes.conv_taps = 4;
  sizes.types.emplace_back("ssm_in", "F16");
  sizes.types.emplace_back("ssm_out", "F16");
  const double bytes = 3.0 * 2 * 128 * 128 * 64 * 4;
  EXPECT_GT(predicted("rtx4090", header).verify_ms(1, 100), without + bytes / 1.1e12 * 1e3);
  header.target.architecture = "nemotron_h_moe";
  test::expect_error("has layers that are a mixer or a feed-forward each", [&] { predicted("rtx4090", header); });
}

TEST_F(CostsElsewhereTest, SizesCountAndNotNames) {
  TraceHeader large = header_with_sizes();
  large.target.sizes->layers *= 4;
  const double small_ms = predicted("rtx4090", header_with_sizes()).verify_ms(1, 100);
  const double large_ms = predicted("rtx4090", large).verify_ms(1, 100);
  EXPECT_GT(large_ms, 1.5 * small_ms);
  TraceHeader coarse = header_with_sizes();
  for (auto& [kind, type] : coarse.target.sizes->types) type = "F16";
  EXPECT_GT(predicted("rtx3090", coarse).verify_ms(1, 100),
            predicted("rtx3090", header_with_sizes()).verify_ms(1, 100));
}

TEST_F(CostsElsewhereTest, WithoutSizesTheNameDecidesOrTheUser) {
  TraceHeader header = header_with_sizes();
  header.target.sizes.reset();
  header.drafter->sizes.reset();
  expect_error("does not say how large", [&] { predicted("h100", header); });
  const CostsElsewhere named = costs_of_device(predict::device_profile("h100"), header, replies(), "qwen3-0.6b-q4_k");
  EXPECT_TRUE(named.costs->table.has_draft());
  EXPECT_EQ(target_shape(header, "qwen3-0.6b-q4_k").config.layers, 28u);
}

TEST_F(CostsElsewhereTest, SizesOfNoModelAreRefused) {
  const auto refuse = [&](const char* message, const auto& change) {
    TraceHeader header = header_with_sizes();
    change(header);
    expect_error(message, [&] { predicted("h100", header); });
  };
  refuse("layer count", [](TraceHeader& header) { header.target.sizes->layers = 4'000'000'000u; });
  refuse("head dimension", [](TraceHeader& header) { header.target.sizes->head_dim = 63; });
  refuse("multiple", [](TraceHeader& header) { header.target.sizes->kv_heads = 3; });
  refuse("vocabulary", [](TraceHeader& header) { header.target.sizes->vocab = 0; });
  refuse("which is not known", [](TraceHeader& header) { header.target.sizes->types[0].second = "Q9_Z"; });
  refuse("no whole blocks", [](TraceHeader& header) { header.target.sizes->hidden = 520; });
  refuse("reads 0 layers", [](TraceHeader& header) { header.drafter->sizes->taps = 0; });
  refuse("reads 4000 layers", [](TraceHeader& header) { header.drafter->sizes->taps = 4000; });
  refuse("a Markov head of rank 5000", [](TraceHeader& header) { header.drafter->sizes->markov_rank = 5000; });
  refuse("convolutions of 2 taps in groups of 0",
         [](TraceHeader& header) { header.drafter->sizes->row_conv_taps = 2; });
  refuse("convolutions of 2 taps in groups of 15", [](TraceHeader& header) {
    header.drafter->sizes->row_conv_taps = 2;
    header.drafter->sizes->row_conv_group = 15;
  });
}

TEST_F(CostsElsewhereTest, ACalibrationFromElsewhereIsUsedForTheSamePairOnly) {
  CalibrationKey key;
  key.driver = "NVIDIA 550.1";
  key.model = "other-name.gguf, 12345678 parameters, 99 bytes";
  key.drafter = "a drafter, 7 bytes, block " + std::to_string(replies()[0].drafting.block) + ", 4096 tokens";
  const CostsElsewhere there = costs_of_file(calibration(key), header_with_sizes(), replies());
  EXPECT_EQ(there.source, CostSource::measured);
  EXPECT_EQ(there.name, "card");
  EXPECT_NE(there.from.find("NVIDIA 550.1"), std::string::npos);
  EXPECT_DOUBLE_EQ(there.costs->table.verify_ms(3, 100), 5.03);
  const auto refuse = [&](const char* message, const CalibrationKey& other) {
    const std::filesystem::path path = calibration(other);
    expect_error(message, [&] { costs_of_file(path, header_with_sizes(), replies()); });
    expect_error("card.json", [&] { costs_of_file(path, header_with_sizes(), replies()); });
  };
  CalibrationKey other = key;
  other.model = "other-name.gguf, 12345679 parameters, 99 bytes";
  refuse("parameters are 12345679 there, 12345678 recorded", other);
  other = key;
  other.drafter = "a drafter, 7 bytes, block 99, 4096 tokens";
  refuse("block is 99 there", other);
}

TEST_F(CostsElsewhereTest, FilesThatAreNoCalibrationsAreRefusedByName) {
  const auto refuse = [&](const char* message, const std::string& content) {
    const std::filesystem::path path = folder_.path() / "bad.json";
    std::ofstream(path, std::ios::binary) << content;
    expect_error(message, [&] { costs_of_file(path, header_with_sizes(), replies()); });
    expect_error("bad.json", [&] { costs_of_file(path, header_with_sizes(), replies()); });
  };
  refuse("cannot be used", "");
  refuse("cannot be used", "{\"format\": ");
  refuse("no calibration", R"({"format": "something", "version": 1})");
  refuse("version 7", R"({"format": "canopy-calibration", "version": 7})");
  refuse("more than", std::string(2'000'000, ' '));
  expect_error("no readable file",
               [&] { costs_of_file(folder_.path() / "none.json", header_with_sizes(), replies()); });
  std::ifstream stream(calibration({.model = "m"}), std::ios::binary);
  std::string whole((std::istreambuf_iterator<char>(stream)), {});
  whole.replace(whole.find("5.01"), 4, "0.01");
  refuse("damaged", whole);
}

/// The chain from a profile to a verdict.
TEST_F(CostsElsewhereTest, ARecordingIsReRunOnAPredictedDevice) {
  WhatIfWish wish;
  // Of a model that is large enough for its weights to take the time.
  const auto costs = [&](const char* device) {
    return costs_of_device(predict::device_profile(device), header_with_sizes(), replies(), "qwen3-8b-q4_k").costs;
  };
  wish.costs = costs("h100");
  const WhatIf fast = what_if(replies(), wish);
  wish.costs = costs("strix-halo");
  const WhatIf slow = what_if(replies(), wish);
  EXPECT_TRUE(fast.exact);
  EXPECT_EQ(fast.tokens, slow.tokens);
  EXPECT_GT(fast.tokens_per_second(), slow.tokens_per_second());
  EXPECT_GT(fast.ar_tokens_per_second(), slow.ar_tokens_per_second());
}

}  // namespace
}  // namespace canopy::test
