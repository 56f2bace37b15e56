// The head of a mixture as GLM-4.5's against a model whose only layer is the head's, and that reads what the head
// makes of tokens and hidden states; and every mode with such a head against plain decoding.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "engine/model/mtp_head.h"
#include "engine/model/sequence.h"
#include "engine/session/engine.h"
#include "tests/base/temp_folder.h"
#include "tests/model/all_logits.h"
#include "tests/model/device_under_test.h"
#include "tests/model/random_model.h"

namespace canopy::test {
namespace {

RandomModel model_with_head(bool normed_heads) {
  RandomModel model;
  model.architecture = "glm4moe";
  model.layers = 2;
  model.tied = false;
  model.further = true;
  model.normed_heads = normed_heads;
  return model;
}

std::vector<float> floats_of(const GgufBuilder& file, const std::string& name) {
  for (const GgufBuilder::Tensor& tensor : file.tensors) {
    if (tensor.name != name) continue;
    std::vector<float> values(tensor.data.size() / sizeof(float));
    std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
    return values;
  }
  ADD_FAILURE() << name;
  return {};
}

void put_floats(GgufBuilder& file, const std::string& name, std::span<const float> values) {
  for (GgufBuilder::Tensor& tensor : file.tensors) {
    if (tensor.name != name) continue;
    ASSERT_EQ(tensor.data.size(), values.size_bytes()) << name;
    std::memcpy(tensor.data.data(), values.data(), values.size_bytes());
  }
}

std::vector<double> rms_normed(std::span<const float> x, std::span<const float> weight, double eps) {
  double squares = 0;
  for (const float value : x) squares += double{value} * value;
  const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + eps);
  std::vector<double> result;
  for (size_t i = 0; i < x.size(); ++i) result.push_back(x[i] * scale * weight[i]);
  return result;
}

/// The head's layer as a model of one layer without a dense start, whose token i is row i of `inputs`.
std::string layer_alone(const GgufBuilder& whole, std::span<const float> inputs) {
  GgufBuilder file = whole;
  file.without("glm4moe.block_count").without("glm4moe.nextn_predict_layers");
  file.without("glm4moe.leading_dense_block_count").value<uint32_t>("glm4moe.block_count", 1);
  put_floats(file, "token_embd.weight", inputs);
  put_floats(file, "output_norm.weight", floats_of(whole, "blk.2.nextn.shared_head_norm.weight"));
  std::erase_if(file.tensors, [](const GgufBuilder::Tensor& tensor) {
    return tensor.name.starts_with("blk.0.") || tensor.name.starts_with("blk.1.") ||
           tensor.name.find(".nextn.") != std::string::npos;
  });
  for (GgufBuilder::Tensor& tensor : file.tensors) {
    if (tensor.name.starts_with("blk.2.")) tensor.name[4] = '0';
  }
  return file.build();
}

class MtpLayer : public ::testing::TestWithParam<bool> {};

TEST_P(MtpLayer, LogitsAreThoseOfAModelOfTheLayerAlone) {
  const RandomModel random = model_with_head(GetParam());
  const GgufBuilder whole = random.builder();
  const TempFolder folder;
  const auto path = folder.write("model.gguf", whole.build());
  const ModelFile file = ModelFile::open(path);
  const ModelConfig& config = file.config();
  ModelOptions options;
  options.cache_type = cache_under_test();
  options.context = 128;
  options.aux_layers = mtp_aux_layers(config);
  const auto model = Model::load(device_under_test(), file, options);
  const auto head = MtpHead::load(MtpFile::open(path), *model, {cache_under_test(), {}});

  const std::vector<uint32_t> text = {5, 33, 61, 7, 7, 70, 12, 44, 3, 28, 9, 51, 66, 20};
  const uint32_t root = 17, hidden = config.hidden;
  const auto count = static_cast<uint32_t>(text.size());
  Sequence sequence(*model, head.get());
  ForwardInput input = sequence.text(text, HeadOutput::argmax);
  input.aux_hidden_states = true;
  const ForwardOutput output = model->forward(input);
  const std::vector<float> states = aux_hidden_states_of(*model, count);
  ASSERT_TRUE(sequence.append(text, output));
  const Draft draft = sequence.draft(root, 1).value();
  const DepthCandidates list = draft.list(0);

  // Row p reads token p and the state behind the token before it.
  const std::vector<float> embedding = floats_of(whole, "token_embd.weight"),
                           fc = floats_of(whole, "blk.2.nextn.eh_proj.weight");
  const std::vector<float> of_embedding = floats_of(whole, "blk.2.nextn.enorm.weight"),
                           of_hidden = floats_of(whole, "blk.2.nextn.hnorm.weight"),
                           last = floats_of(whole, "output_norm.weight");
  std::vector<float> inputs(size_t{config.vocab} * hidden);
  for (uint32_t p = 1; p <= count; ++p) {
    const uint32_t token = p < count ? text[p] : root;
    std::vector<double> joined =
        rms_normed(std::span(embedding).subspan(size_t{token} * hidden, hidden), of_embedding, config.rms_eps);
    const std::vector<double> state =
        rms_normed(std::span(states).subspan(size_t{p - 1} * hidden, hidden), last, config.rms_eps);
    const std::vector<float> rounded(state.begin(), state.end());
    const std::vector<double> behind = rms_normed(rounded, of_hidden, config.rms_eps);
    joined.insert(joined.end(), behind.begin(), behind.end());
    for (uint32_t r = 0; r < hidden; ++r) {
      const double sum = std::inner_product(joined.begin(), joined.end(), fc.begin() + ptrdiff_t{2} * r * hidden, 0.0);
      inputs[size_t{p - 1} * hidden + r] = static_cast<float>(sum);
    }
  }
  options.aux_layers = {};
  const auto alone = Model::load(device_under_test(),
                                 ModelFile::open(folder.write("alone.gguf", layer_alone(whole, inputs))), options);
  RowBatch rows;
  for (uint32_t i = 0; i < count; ++i) rows.add_text(i, i);
  const std::vector<float> all = run_for_all_logits(*alone, rows).logits;
  const std::span<const float> logits = std::span(all).last(config.vocab);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  EXPECT_NEAR(list.log_sum_exp, std::log(sum), tolerance(1e-4));
  ASSERT_FALSE(list.tokens.empty());
  for (size_t i = 0; i < list.tokens.size(); ++i) {
    EXPECT_NEAR(list.logits[i], logits[list.tokens[i]], tolerance(1e-4)) << "candidate " << i;
  }
}

TEST_P(MtpLayer, TheTextIsThatOfPlainDecoding) {
  const TempFolder folder;
  OpenRequest request;
  request.path = folder.write("model.gguf", model_with_head(GetParam()).build());
  request.own_head = true;
  request.cache_type = cache_under_test();
  request.context = 256;
  request.self_test = false;
  const auto loaded = Engine::open(device_under_test(), request, {});
  ASSERT_NE(loaded->drafter, nullptr) << loaded->drafter_note;
  EXPECT_EQ(loaded->drafter->source(), kFromMtp);
  const auto prompt = loaded->text.encode_raw("HowDoesItGoOn");
  for (const float temperature : {0.0f, 0.9f}) {
    ReplySettings settings;
    settings.max_tokens = 24;
    settings.sampling.temperature = temperature;
    settings.sampling.seed = 5;
    settings.sources = kFromMtp;
    settings.mode = DecodeMode::ar;
    const Reply plain = loaded->reply(prompt, settings);
    size_t drafted = 0;
    for (const auto& [mode, budget] :
         {std::pair{DecodeMode::chain, 1u}, std::pair{DecodeMode::tree, 1u}, std::pair{DecodeMode::tree, 16u},
          std::pair{DecodeMode::tree, 100u}, std::pair{DecodeMode::adaptive, 1u}}) {
      loaded->resident->clear();
      settings.mode = mode;
      settings.budget = budget;
      const Reply reply = loaded->reply(prompt, settings);
      EXPECT_EQ(reply.ids, plain.ids) << "temperature " << temperature << ", budget " << budget;
      for (const RoundRecord& round : reply.rounds) drafted += round.nodes.size();
    }
    EXPECT_GT(drafted, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Heads, MtpLayer, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "normed" : "plain"; });

}  // namespace
}  // namespace canopy::test
