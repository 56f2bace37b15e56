#pragma once
// What tests of modes share: the ways to decode, a model with a drafter, and all ways against plain decoding.

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "engine/session/engine.h"
#include "tests/compute/stepping_device.h"
#include "tests/model/device_under_test.h"
#include "tests/model/golden_data.h"

namespace canopy::test {

struct Way {
  const char* name;
  DecodeMode mode;
  uint32_t budget;
  CostPolicy policy = CostPolicy::measured;
  DraftSources sources = kUsualSources;
};

inline constexpr Way kDrafted[] = {
    {"chain", DecodeMode::chain, 1},
    {"tree of 1", DecodeMode::tree, 1},
    {"tree of 16", DecodeMode::tree, 16},
    {"tree of 100", DecodeMode::tree, 100},
    {"adaptive", DecodeMode::adaptive, 1},
    {"adaptive, ema", DecodeMode::adaptive, 1, CostPolicy::ema},
    {"adaptive, paper", DecodeMode::adaptive, 1, CostPolicy::paper},
    {"tree of 16 by the drafter", DecodeMode::tree, 16, CostPolicy::measured, kFromDflash},
    {"chain from the text", DecodeMode::chain, 1, CostPolicy::measured, kFromSuffix},
    {"tree of 16 from the text", DecodeMode::tree, 16, CostPolicy::measured, kFromSuffix},
    {"adaptive from the text", DecodeMode::adaptive, 1, CostPolicy::measured, kFromSuffix},
    {"tree of 16, recycled", DecodeMode::tree, 16, CostPolicy::measured, kFromRecycling},
    {"chain, recycled", DecodeMode::chain, 1, CostPolicy::measured, kFromRecycling},
    {"tree of 100 from all sources", DecodeMode::tree, 100, CostPolicy::measured, kAllSources},
    {"adaptive from all sources", DecodeMode::adaptive, 1, CostPolicy::measured, kAllSources},
    {"adaptive without a drafter", DecodeMode::adaptive, 1, CostPolicy::measured, kFreeSources},
    {"adaptive, no sources", DecodeMode::adaptive, 1, CostPolicy::measured, 0},
};
inline constexpr Way kPlain = {"ar", DecodeMode::ar, 1};
inline constexpr Way kTree = {"tree of 16", DecodeMode::tree, 16};

class ModesTest : public ::testing::Test {
 protected:
  void open(uint32_t context = 512) { open(device_under_test(), context); }
  void open(Device& device, uint32_t context = 512) {
    OpenRequest request;
    request.path = golden_folder() / "tiny-qwen3";
    request.drafter = golden_folder() / drafter_;
    request.cache_type = cache_under_test();
    request.context = context;
    request.self_test = false;
    // What rounds activations does so for quantized weights.
    if (device.info().rounds_to_8_bits) request.quantize = QuantizeOnLoad::q8_0;
    loaded_ = Engine::open(device, request, {});
  }
  void SetUp() override { open(); }

  std::vector<uint32_t> encode(const std::string& text) const { return loaded_->text.encode_raw(text); }

  static ReplySettings in(const Way& way, ReplySettings settings) {
    settings.mode = way.mode;
    settings.budget = way.budget;
    settings.policy = way.policy;
    settings.sources = way.sources;
    return settings;
  }
  static ReplySettings tokens(uint32_t count) {
    ReplySettings settings;
    settings.max_tokens = count;
    return settings;
  }

  Reply fresh(const Way& way, std::span<const uint32_t> prompt, const ReplySettings& settings) {
    loaded_->resident->clear();
    return loaded_->reply(prompt, in(way, settings));
  }

  /// Keys and values of all committed positions, in two layers.
  std::vector<float> cache() {
    std::vector<float> all;
    for (const uint32_t layer : {0u, loaded_->model->config().layers - 1}) {
      for (const bool values : {false, true}) {
        const std::vector<float> part = loaded_->resident->current().read_kv(layer, values);
        all.insert(all.end(), part.begin(), part.end());
      }
    }
    return all;
  }

  /// Writes the reply by plain decoding and in every other way; all results must have the same bits.
  void expect_same(std::span<const uint32_t> prompt, const ReplySettings& settings) {
    const Reply plain = fresh(kPlain, prompt, settings);
    const std::vector<uint32_t> committed(loaded_->resident->current().tokens().begin(),
                                          loaded_->resident->current().tokens().end());
    const std::vector<float> kv = cache();
    for (const Way& way : kDrafted) {
      if (way.policy == CostPolicy::paper && loaded_->drafter == nullptr) continue;
      SCOPED_TRACE(way.name);
      const Reply reply = fresh(way, prompt, settings);
      EXPECT_EQ(reply.ids, plain.ids);
      EXPECT_EQ(reply.text, plain.text);
      EXPECT_EQ(reply.reason, plain.reason);
      ASSERT_EQ(std::vector<uint32_t>(loaded_->resident->current().tokens().begin(),
                                      loaded_->resident->current().tokens().end()),
                committed);
      const std::vector<float> drafted = cache();
      EXPECT_EQ(std::memcmp(drafted.data(), kv.data(), kv.size() * sizeof(float)), 0);
      const bool asks_drafter = (way.sources & kFromDflash) != 0 && loaded_->drafter != nullptr;
      EXPECT_EQ(loaded_->resident->current().feature_length(), asks_drafter ? committed.size() : 0);
    }
  }

  const char* drafter_ = "tiny-qwen3-dflash-b8";
  SteppingDevice stepping_{device_under_test()};
  std::unique_ptr<Engine> loaded_;
};

inline const char* const kCode = "def read_file(path, mode='r', encoding=None):\n    \"\"\"Return the contents";

/// Costs at which drafts pay.
inline CostTable cheap_drafts() {
  CostTable costs;
  for (const uint32_t width : {1u, 2u, 16u, 64u}) costs.set_verify(width, 16, 10 + 0.05 * width);
  for (const uint32_t waiting : {1u, 16u}) costs.set_draft(waiting, 16, 1 + 0.01 * waiting);
  return costs;
}

}  // namespace canopy::test
