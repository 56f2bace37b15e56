// Drafters whose layers have different numbers of heads, which GGUF files may say: they draft what the same drafter
// drafts with idle heads in their places.

#include <gtest/gtest.h>

#include <numeric>

#include "engine/model/drafter.h"
#include "tests/model/device_under_test.h"
#include "tests/model/fewer_heads.h"
#include "tests/model/random_drafter.h"
#include "tests/model/random_model.h"

namespace canopy::test {
namespace {

/// A drafter of random weights for `target` whose second layer has idle heads.
GgufBuilder drafter_with_idle_heads(const ModelConfig& target) {
  const RandomDrafter random;
  const TempFolder folder;
  random.write(folder, target);
  const DrafterFile drafter = DrafterFile::open(folder.path());
  GgufBuilder b;
  b.text("general.architecture", "dflash").text("general.name", "random");
  const auto number = [&](const char* key, uint32_t value) { b.value<uint32_t>(std::string("dflash.") + key, value); };
  number("block_count", random.layers);
  number("context_length", target.max_context);
  number("embedding_length", target.hidden);
  number("feed_forward_length", random.ffn);
  number("attention.head_count", random.heads);
  number("attention.head_count_kv", random.kv_heads);
  number("attention.key_length", random.head_dim);
  number("vocab_size", target.vocab);
  number("block_size", random.block);
  b.value<float>("dflash.attention.layer_norm_rms_epsilon", 1e-5f).value<float>("dflash.rope.freq_base", 10000.0f);
  b.numbers<int32_t>("dflash.target_layers", {1, 2}).value<uint32_t>("tokenizer.ggml.mask_token_id", random.mask_token);
  for (const TensorView& tensor : drafter.tensors()) {
    const std::string name = tensor.name == "hidden_norm" ? "enc.output_norm" : tensor.name;
    std::vector<uint64_t> dimensions = {tensor.cols()};
    if (tensor.rank == 2) dimensions.push_back(tensor.rows());
    b.tensor(name + ".weight", dimensions, tensor.type,
             {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()});
  }
  make_heads_idle(b, "blk.1.");
  return b;
}

Draft draft_of(const ModelFile& target, const GgufBuilder& drafter, std::vector<uint32_t> expected_heads) {
  const TempFolder folder;
  const DrafterFile file = DrafterFile::open(folder.write("drafter.gguf", drafter.build()));
  EXPECT_EQ(file.config().transformer.layer_heads, expected_heads);
  ModelOptions options;
  options.cache_type = cache_under_test();
  options.context = 128;
  options.aux_layers = {0, 1};
  const auto model = Model::load(device_under_test(), target, options);
  const auto loaded =
      Drafter::load(file, *model, {.cache_type = cache_under_test(), .callbacks = {}, .target_file = &target});
  DraftState state(*loaded);
  constexpr uint32_t length = 37;
  std::vector<uint32_t> text(length), rows(length);
  for (uint32_t i = 0; i < length; ++i) text[i] = (i * 29 + 3) % 77;
  std::iota(rows.begin(), rows.end(), 0u);
  ForwardInput input = text_input(text, 0);
  input.aux_hidden_states = true;
  EXPECT_TRUE(model->forward(input).completed());
  EXPECT_TRUE(loaded->append_features(state, rows));
  return loaded->draft(state, 5, loaded->max_depth()).value();
}

TEST(DrafterHeads, MayDifferBetweenLayers) {
  const TempFolder folder;
  const ModelFile target = ModelFile::open(folder.write("target.gguf", RandomModel().build()));
  const GgufBuilder idle = drafter_with_idle_heads(target.config());
  GgufBuilder fewer = idle;
  fewer.without("dflash.attention.head_count").numbers<uint32_t>("dflash.attention.head_count", {4, 2});
  fewer.without("dflash.attention.head_count_kv").numbers<uint32_t>("dflash.attention.head_count_kv", {2, 1});
  leave_out_idle_heads(fewer, "blk.1.");
  const Draft a = draft_of(target, idle, {}), b = draft_of(target, fewer, {4, 2});
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.logits, b.logits);
  EXPECT_EQ(a.log_sum_exp, b.log_sum_exp);
}

}  // namespace
}  // namespace canopy::test
