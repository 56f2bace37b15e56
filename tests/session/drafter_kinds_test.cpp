// Every kind of drafter, from a folder and from GGUF, beside a model in the same form where that brings a tokenizer:
// greedy and seeded, as a chain and as a tree it writes the text of plain decoding and leaves the same cache. Short, so
// that all of it runs on every device.

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/session/head_modes.h"

namespace canopy::test {
namespace {

struct DrafterForm {
  const char *kind, *form;
  const char *model, *drafter;  // "mtp": the model's own head
  DraftSources source;
  uint32_t layer;  // of the model, with keys and values
};

void PrintTo(const DrafterForm& one, std::ostream* out) {
  *out << one.drafter << " beside " << one.model;
}

class DrafterKinds : public HeadModes, public ::testing::WithParamInterface<DrafterForm> {
 protected:
  DrafterKinds() : HeadModes(GetParam().source, GetParam().layer) {}
};

TEST_P(DrafterKinds, DraftAsChainsAndAsTrees) {
  if (cache_under_test() == CacheType::q8_0 && GetParam().source == kFromAssistant) {
    GTEST_SKIP() << "heads of 16 elements fit no blocks of 32";
  }
  open(GetParam().model, GetParam().drafter);
  ASSERT_NE(loaded_->drafter, nullptr);
  EXPECT_EQ(loaded_->drafter->source(), GetParam().source);
  EXPECT_EQ(loaded_->drafter_note, "");
  const std::vector<uint32_t> prompt{69, 102, 33, 84};
  for (const float temperature : {0.0f, 0.9f}) {
    const ReplySettings settings = tokens(5, temperature);
    const Reply expected = fresh(plain(), prompt, settings);
    ASSERT_GT(expected.ids.size(), 1u);
    const std::vector<float> kv = cache();
    for (const Way& way : {Way{"chain", DecodeMode::chain, 1, CostPolicy::measured, source_},
                           Way{"tree of 4", DecodeMode::tree, 4, CostPolicy::measured, source_}}) {
      SCOPED_TRACE(std::string(way.name) + " at temperature " + std::to_string(temperature));
      const Reply drafted = fresh(way, prompt, settings);
      EXPECT_EQ(drafted.ids, expected.ids);
      const std::vector<float> after = cache();
      EXPECT_TRUE(after.size() == kv.size() && std::memcmp(after.data(), kv.data(), kv.size() * sizeof(float)) == 0);
      size_t nodes = 0;
      for (const RoundRecord& round : drafted.rounds) {
        for (const RoundNode& row : round.nodes) nodes += (row.node.sources & source_) != 0 ? 1 : 0;
      }
      EXPECT_GT(nodes, 0u) << "nothing was drafted";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, DrafterKinds,
    ::testing::Values(
        DrafterForm{"DFlash", "folder", "tiny-qwen3", "tiny-qwen3-dflash-b8", kFromDflash, 7},
        DrafterForm{"DFlash", "gguf", "tiny-qwen3-f16.gguf", "tiny-qwen3-dflash-b8-f16.gguf", kFromDflash, 7},
        DrafterForm{"JetSpec", "folder", "tiny-qwen3", "tiny-qwen3-jetspec", kFromDflash, 7},
        DrafterForm{"JetSpec", "gguf", "tiny-qwen3-f16.gguf", "tiny-qwen3-jetspec-f16.gguf", kFromDflash, 7},
        DrafterForm{"DSpark", "folder", "tiny-qwen3", "tiny-qwen3-dspark", kFromDflash, 7},
        DrafterForm{"DSpark", "gguf", "tiny-qwen3-f16.gguf", "tiny-qwen3-dspark-f16.gguf", kFromDflash, 7},
        DrafterForm{"DFlash2", "folder", "tiny-qwen3", "tiny-qwen3-dflash2", kFromDflash, 7},
        DrafterForm{"DFlash2", "gguf", "tiny-qwen3-f16.gguf", "tiny-qwen3-dflash2-f16.gguf", kFromDflash, 7},
        DrafterForm{"Mtp", "folder", "tiny-qwen3_5-mtp", "mtp", kFromMtp, 3},
        DrafterForm{"Mtp", "gguf", "tiny-qwen3_5-mtp-f16.gguf", "mtp", kFromMtp, 3},
        DrafterForm{"Mtp", "gguf_alone", "tiny-qwen3_5-mtp-f16.gguf", "mtp-tiny-qwen3_5-f16.gguf", kFromMtp, 3},
        DrafterForm{"Eagle3", "folder", "tiny-qwen3", "tiny-qwen3-eagle3", kFromEagle, 7},
        DrafterForm{"Eagle3", "gguf", "tiny-qwen3-f16.gguf", "tiny-qwen3-eagle3-f16.gguf", kFromEagle, 7},
        DrafterForm{"Assistant", "folder", "tiny-gemma4-f16.gguf", "tiny-gemma4-assistant", kFromAssistant, 2},
        DrafterForm{"Assistant", "gguf", "tiny-gemma4-f16.gguf", "tiny-gemma4-assistant-f16.gguf", kFromAssistant, 2}),
    [](const auto& info) { return std::string(info.param.kind) + "_" + info.param.form; });

}  // namespace
}  // namespace canopy::test
