// Every architecture, as a model of random weights with a drafter of random weights: all modes write the text of plain
// decoding.

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/session/engine.h"
#include "tests/base/temp_folder.h"
#include "tests/model/device_under_test.h"
#include "tests/model/random_drafter.h"
#include "tests/model/random_model.h"

namespace canopy::test {
namespace {

class ArchitectureModes : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    RandomModel target;
    target.architecture = GetParam();
    target.layers = 4;  // the fourth of smollm3 is unlike the others
    OpenRequest request;
    request.path = folder_.write("target.gguf", target.build());
    RandomDrafter().write(folder_, ModelFile::open(request.path).config());
    request.drafter = folder_.path() / "model.safetensors";
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

INSTANTIATE_TEST_SUITE_P(All, ArchitectureModes,
                         ::testing::Values("llama", "qwen2", "qwen3", "qwen3moe", "qwen35", "qwen35moe", "smollm3",
                                           "gpt-oss", "gemma2", "gemma3"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace canopy::test
