// Every architecture, as a model of random weights with a drafter of random weights: all modes write the text of plain
// decoding.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/session/engine.h"
#include "tests/base/temp_folder.h"
#include "tests/model/device_under_test.h"
#include "tests/model/random_drafter.h"
#include "tests/model/random_model.h"

namespace canopy::test {
namespace {

struct ModesCase {
  std::string name;
  RandomModel model = {};
};

void PrintTo(const ModesCase& one, std::ostream* out) {
  *out << one.name;
}

class ArchitectureModes : public ::testing::TestWithParam<ModesCase> {
 protected:
  void SetUp() override { open(false); }

  /// With a drafter of random weights, or a copy of the model that drafts for it token by token.
  void open(bool copy) {
    loaded_.reset();
    const RandomModel& target = GetParam().model;
    OpenRequest request;
    request.path = folder_.write("target.gguf", target.build());
    RandomDrafter().write(folder_, ModelFile::open(request.path).config());
    request.drafter = copy ? folder_.write("copy.gguf", target.build()) : folder_.path() / "model.safetensors";
    request.cache_type = cache_under_test();
    request.context = 256;
    request.self_test = false;
    loaded_ = Engine::open(device_under_test(), request, {});
  }

  bool has_experts() const { return loaded_->model->config().layers_with_experts() > 0; }

  Reply reply(DecodeMode mode, uint32_t budget, ReplySettings settings) {
    loaded_->resident->clear();
    settings.mode = mode;
    settings.budget = budget;
    return loaded_->reply(loaded_->text.encode_raw("HowDoesItGoOn"), settings);
  }

  TempFolder folder_;
  std::unique_ptr<Engine> loaded_;
};

TEST_P(ArchitectureModes, TheTextIsThatOfPlainDecoding) {
  size_t accepted = 0;
  for (const float temperature : {0.0f, 0.9f}) {
    ReplySettings settings;
    settings.max_tokens = 24;
    settings.sampling.temperature = temperature;
    settings.sampling.seed = 5;
    const Reply plain = reply(DecodeMode::ar, 1, settings);
    EXPECT_FALSE(plain.ids.empty());
    for (const auto& [mode, budget] :
         {std::pair{DecodeMode::chain, 1u}, std::pair{DecodeMode::tree, 1u}, std::pair{DecodeMode::tree, 16u},
          std::pair{DecodeMode::tree, 100u}, std::pair{DecodeMode::adaptive, 1u}}) {
      const Reply drafted = reply(mode, budget, settings);
      EXPECT_EQ(drafted.ids, plain.ids) << "temperature " << temperature << ", budget " << budget;
      for (const RoundRecord& round : drafted.rounds) {
        EXPECT_EQ(round.distinct_experts > 0, has_experts()) << "round " << round.round;
        EXPECT_LE(round.distinct_experts, 6) << "round " << round.round;
      }
      accepted += plain.ids.size() - std::min(plain.ids.size(), drafted.rounds.size());
    }
  }
  EXPECT_GT(accepted, 0u) << "no draft was ever accepted: the comparison shows little";
}

/// Also of recurrent layers, whose texts cannot be cut anywhere: all that it drafts is what it would write.
TEST_P(ArchitectureModes, ACopyOfTheModelDraftsItsText) {
  open(true);
  ASSERT_NE(loaded_->draft_model, nullptr);
  ReplySettings settings;
  settings.max_tokens = 40;
  settings.sources = kFromDraft;
  const Reply plain = reply(DecodeMode::ar, 1, settings);
  for (const auto& [mode, budget] : {std::pair{DecodeMode::chain, 1u}, std::pair{DecodeMode::tree, 12u}}) {
    const Reply drafted = reply(mode, budget, settings);
    EXPECT_EQ(drafted.ids, plain.ids);
    size_t chain = 0, accepted = 0;  // a tree has tokens beside it
    for (const RoundRecord& round : drafted.rounds) {
      uint32_t deepest = 0;
      for (const RoundNode& row : round.nodes) deepest = std::max(deepest, row.node.depth);
      chain += deepest, accepted += round.accepted;
    }
    EXPECT_GT(accepted, 0u);
    if (mode == DecodeMode::chain) {
      EXPECT_GE(accepted + 1, chain) << "of the last round the reply may have needed fewer";
    }
  }
}

std::vector<ModesCase> modes_cases() {
  std::vector<ModesCase> cases;
  for (const char* architecture :
       {"llama", "phi3", "qwen2", "qwen3", "qwen3moe", "qwen35", "qwen35moe", "qwen3next", "smollm3", "gpt-oss",
        "gemma2", "gemma3", "gemma4", "qwen3vl", "qwen3vlmoe", "mistral3", "granite"}) {
    ModesCase& one = cases.emplace_back(ModesCase{architecture});
    one.model.architecture = architecture;
    one.model.layers = 4;  // the fourth of smollm3 is unlike the others
    std::ranges::replace(one.name, '-', '_');
  }
  ModesCase& inputs = cases.emplace_back(ModesCase{"gemma4_layer_inputs"});
  inputs.model.architecture = "gemma4";
  inputs.model.layers = 5;
  inputs.model.layer_inputs = 24;
  inputs.model.shared_kv = 2;
  ModesCase& beside = cases.emplace_back(ModesCase{"gemma4_experts_beside"});
  beside.model.architecture = "gemma4";
  beside.model.layers = 4;
  beside.model.experts_beside = true;
  // Layers with different numbers of heads; with biases and sinks of theirs, and beside recurrences, with gates.
  for (const char* architecture : {"llama", "gpt-oss"}) {
    ModesCase& one = cases.emplace_back(ModesCase{std::string(architecture) + "_layer_heads"});
    one.model.architecture = architecture;
    one.model.layers = 4;
    one.model.layer_heads = {4, 2, 6, 4};
    one.model.layer_kv_heads = {2, 2, 1, 4};
    std::ranges::replace(one.name, '-', '_');
  }
  ModesCase& convolutions = cases.emplace_back(ModesCase{"lfm2"});
  convolutions.model.architecture = "lfm2";
  convolutions.model.layers = 4;
  convolutions.model.seed = 4;  // with the first its reply ends after a few tokens
  for (const bool normed : {false, true}) {
    ModesCase& glm = cases.emplace_back(ModesCase{normed ? "glm4moe_normed" : "glm4moe"});
    glm.model.architecture = "glm4moe";
    glm.model.layers = 3;
    glm.model.normed_heads = normed;
  }
  for (const bool sigmoid : {false, true}) {
    ModesCase& latent = cases.emplace_back(ModesCase{sigmoid ? "deepseek2_sigmoid" : "deepseek2_softmax"});
    latent.model.architecture = "deepseek2";
    latent.model.layers = 3;
    latent.model.head_dim = 48;
    latent.model.latent_query_rank = sigmoid ? 24 : 0;
    latent.model.latent_sigmoid = sigmoid;
  }
  for (const bool experts : {false, true}) {
    ModesCase& granite = cases.emplace_back(ModesCase{experts ? "granitehybrid_experts" : "granitehybrid"});
    granite.model.architecture = "granitehybrid";
    granite.model.layers = 8;
    granite.model.granite_experts = experts;
  }
  ModesCase& nemotron = cases.emplace_back(ModesCase{"nemotron_h_moe"});
  nemotron.model.architecture = "nemotron_h_moe";
  nemotron.model.layers = 6;
  ModesCase& hybrid = cases.emplace_back(ModesCase{"qwen35_layer_heads"});
  hybrid.model.architecture = "qwen35";
  hybrid.model.layers = 8;
  hybrid.model.layer_heads = {0, 0, 0, 2, 0, 0, 0, 4};
  hybrid.model.layer_kv_heads = {0, 0, 0, 1, 0, 0, 0, 2};
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, ArchitectureModes, ::testing::ValuesIn(modes_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace canopy::test
