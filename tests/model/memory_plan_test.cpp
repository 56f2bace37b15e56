#include "engine/model/load_plan.h"

#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/format/hybrids.h"
#include "engine/model/pass_buffers.h"
#include "engine/model/recurrent_memory.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

/// SmolLM2's shape: 23,040 bytes of f16 cache a position.
ModelConfig config() {
  ModelConfig c;
  c.architecture = "llama";
  c.layers = 30;
  c.hidden = 576;
  c.heads = 9;
  c.kv_heads = 3;
  c.head_dim = 64;
  c.ffn = 1536;
  c.vocab = 49152;
  c.max_context = 8192;
  return c;
}

ModelLimits limits() {
  ModelLimits l;
  l.tree_slots = 128;
  l.max_width = 128;
  l.head_rows = head_rows_for(config(), 128);
  return l;
}

TEST(MemoryPlan, CountsTheCacheInItsOwnType) {
  const auto device = make_reference_device();
  ModelLimits l = limits();
  l.context = 1024;
  const MemoryPlan half = plan_memory(config(), l, 0, *device);
  EXPECT_EQ(half.cache, uint64_t{1024 + 128} * 30 * 2 * 3 * 64 * 2);
  l.cache_type = CacheType::f32;
  EXPECT_EQ(plan_memory(config(), l, 0, *device).cache, 2 * half.cache);
}

TEST(MemoryPlan, OfAModelThatIsNotHereYetIsThatOfARoomyContext) {
  const auto device = make_reference_device();
  ModelLimits l = limits();
  l.padded_rows = padded_width(device->info(), 128);
  l.context = kRoomyContext;
  const MemoryPlan plan = plan_roomy(config(), 100 * kMiB, 128, *device);
  EXPECT_EQ(plan.weights, 100 * kMiB);
  EXPECT_EQ(plan.total(), plan_memory(config(), l, 100 * kMiB, *device).total());
  ModelConfig shorter = config();
  shorter.max_context = 1024;
  l.context = 1024;
  EXPECT_EQ(plan_roomy(shorter, 0, 128, *device).cache, plan_memory(shorter, l, 0, *device).cache);
}

TEST(MemoryPlan, CountsWholePages) {
  const auto device = make_reference_device();
  ModelLimits l = limits();
  l.context = 1000;  // 16 pages
  l.spare_pages = 3;
  EXPECT_EQ(l.pages(), 19u);
  EXPECT_EQ(l.first_tree_slot(), 1216u);
  constexpr uint64_t slot = uint64_t{30} * 2 * 3 * 64 * 2;
  EXPECT_EQ(plan_memory(config(), l, 0, *device).cache, (1216 + 128) * slot);
  // Qwen3-8B's shape: 144 KiB a position.
  ModelConfig c = config();
  c.layers = 36;
  c.kv_heads = 8;
  c.head_dim = 128;
  c.max_context = 131072;
  l.context = 131072;
  l.spare_pages = 0;
  EXPECT_EQ(plan_memory(c, l, 0, *device).cache, uint64_t{131072 + 128} * 144 * 1024);
}

TEST(MemoryPlan, TakesTheModelsWholeContextWhereItFits) {
  const auto device = make_reference_device(4096 * kMiB);
  ModelLimits l = limits();
  choose_context(config(), l, 0, 100 * kMiB, *device, device->memory().available);
  EXPECT_EQ(l.context, 8192u);
}

TEST(MemoryPlan, ShortensTheContextToWhatFitsButNotBelowTheMinimum) {
  const auto device = make_reference_device(400 * kMiB);
  ModelLimits l = limits();
  const MemoryPlan plan = choose_context(config(), l, 0, 100 * kMiB, *device, device->memory().available);
  EXPECT_LT(l.context, 8192u);
  EXPECT_GE(l.context, kMinimumContext);
  EXPECT_LE(plan.total(), 400 * kMiB);

  const auto small = make_reference_device(120 * kMiB);
  try {
    choose_context(config(), l, 0, 100 * kMiB, *small, small->memory().available);
    FAIL() << "a model that does not fit was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::out_of_memory);
    EXPECT_NE(std::string(e.what()).find("weights 104.9 MB"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("125.8 MB are available"), std::string::npos) << e.what();
  }
}

TEST(MemoryPlan, RefusesAnExplicitContextThatDoesNotFitInsteadOfShorteningIt) {
  const auto device = make_reference_device(300 * kMiB);
  ModelLimits l = limits();
  EXPECT_THROW(choose_context(config(), l, 8192, 100 * kMiB, *device, device->memory().available), Error);
  try {
    choose_context(config(), l, 10000, 0, *device, device->memory().available);
    FAIL() << "more positions than the model has were accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::bad_input);
    EXPECT_NE(std::string(e.what()).find("8192"), std::string::npos) << e.what();
  }
}

TEST(MemoryPlan, HasPagesForSeveralTexts) {
  constexpr uint64_t position = uint64_t{30} * 2 * 3 * 64 * 2;
  const auto plan = [](ModelLimits& l, uint64_t megabytes, uint32_t context) {
    const auto device = make_reference_device(megabytes * kMiB);
    return choose_context(config(), l, context, 100 * kMiB, *device, device->memory().available);
  };
  ModelLimits l = limits();
  l.texts = 3;
  l.spare_pages = 2;
  const MemoryPlan three = plan(l, 10'000, 1000);
  EXPECT_EQ(l.pages(), 3u * 16 + 2);
  EXPECT_EQ(three.cache, (uint64_t{50} * 64 + 128) * position);
  // What does not fit is refused with numbers, and the way out is named; one text of that length would fit.
  ModelLimits one = limits();
  const uint64_t enough = plan(one, 10'000, 8192).total() / kMiB + 2;
  EXPECT_NO_THROW(plan(one, enough, 8192));
  l = limits();
  l.texts = 3;
  try {
    plan(l, enough, 8192);
    FAIL() << "three texts fit where there is room for one";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::out_of_memory);
    EXPECT_NE(std::string(e.what()).find("3 texts at once, each of 8192 positions"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("--parallel"), std::string::npos) << e.what();
  }
  // A context that is chosen is that of each of them.
  l = limits();
  l.texts = 3;
  const MemoryPlan chosen = plan(l, 600, 0);
  EXPECT_LE(chosen.cache, 250 * kMiB);
  EXPECT_LT(l.context, 8192u);
  EXPECT_GE(l.context, kMinimumContext);
}

TEST(MemoryPlan, TakesFurtherTextsOnlyWhereThereIsAmpleMemory) {
  const auto texts = [](uint64_t megabytes, uint32_t context) {
    ModelLimits l = limits();
    l.most_texts = 4;
    const auto device = make_reference_device(megabytes * kMiB);
    choose_context(config(), l, context, 100 * kMiB, *device, device->memory().available);
    return l.texts;
  };
  // 22.5 MiB a text of 1024 positions, 2.8 MiB for trees: at most half of what the weights leave.
  EXPECT_EQ(texts(10'000, 1024), 4u);
  EXPECT_EQ(texts(250, 1024), 3u);
  EXPECT_EQ(texts(200, 1024), 2u);
  EXPECT_EQ(texts(170, 1024), 1u);
  EXPECT_EQ(texts(600, 0), 1u) << "the longest context comes first";
}

TEST(MemoryPlan, KeepsTheLogitsOfFewRows) {
  const auto rows = [](uint32_t vocab, uint32_t max_width, uint32_t hidden = 2560) {
    ModelConfig c = config();
    c.vocab = vocab;
    c.hidden = hidden;
    return head_rows_for(c, max_width);
  };
  EXPECT_EQ(rows(77, 1025), 32u);
  EXPECT_EQ(rows(262144, 1025), 32u);  // 32 MiB
  EXPECT_EQ(rows(262145, 1025), 24u);  // whole tiles
  EXPECT_EQ(rows(1'000'000, 1025), 8u);
  EXPECT_EQ(rows(4'000'000, 1025), 8u);   // 122 MiB
  EXPECT_EQ(rows(10'000'000, 1025), 3u);  // as much as one storage buffer holds on every device
  EXPECT_EQ(rows(77, 5), 5u);
  EXPECT_EQ(rows(49152, 128, 576), 8u);  // a twelfth of a byte for each weight of the head
  EXPECT_EQ(rows(49152, 128, 64), 8u);
}

TEST(MemoryPlan, NeedsLittleBesideASmallModel) {
  const auto device = make_reference_device();
  ModelLimits l = limits();
  l.context = config().max_context;
  constexpr uint64_t weights = 96'576'768, file = 98'362'432;  // of SmolLM2 in Q4_1
  const MemoryPlan plan = plan_memory(config(), l, weights, *device);
  EXPECT_LE(static_cast<double>(plan.weights + plan.working), 1.15 * file);
}

/// Qwen3.5-27B's shape.
ModelConfig hybrid() {
  ModelConfig c = config();
  c.architecture = "qwen35";
  c.layers = 64;
  c.hidden = 5120;
  c.heads = 24;
  c.kv_heads = 4;
  c.head_dim = 256;
  c.rotary_dim = 64;
  c.ffn = 17408;
  c.has_output_gate = true;
  c.recurrent.resize(64);
  for (size_t n = 0; n < 64; ++n) c.recurrent[n] = n % 4 != 3;
  c.delta_net = {16, 48, 128, 128, 4, true};
  return c;
}

TEST(MemoryPlan, CountsStatesOfRecurrentLayers) {
  const auto device = make_reference_device(100'000 * kMiB);
  ModelLimits l = limits();
  l.context = 1024;
  l.states = 5;
  const MemoryPlan plan = plan_memory(hybrid(), l, 0, *device);
  EXPECT_EQ(plan.cache, uint64_t{1024 + 128} * 16 * 2 * 4 * 256 * 2) << "recurrent layers have no keys and values";
  constexpr uint64_t state = 48 * 128 * 128 * 4, tail = 3 * 10240 * 4;
  EXPECT_EQ(plan.states, uint64_t{5} * 48 * (state + tail));
  EXPECT_EQ(plan.total(), plan.cache + plan.states + plan.working + plan.reserve);
}

/// LFM2-1.2B's shape.
TEST(MemoryPlan, CountsTailsOfShortConvolutions) {
  ModelConfig c = config();
  c.architecture = "lfm2";
  c.layers = 16;
  c.hidden = 2048;
  c.recurrent.assign(16, true);
  for (const size_t n : {2, 5, 8, 10, 12, 14}) c.recurrent[n] = false;
  c.conv_taps = 3;
  const auto device = make_reference_device(100'000 * kMiB);
  ModelLimits l = limits();
  l.states = 5;
  EXPECT_EQ(plan_memory(c, l, 0, *device).states, uint64_t{5} * 10 * 2 * 2048 * 4);
  const uint64_t before = device->memory().available;
  const RecurrentMemory memory(*device, c, l);
  EXPECT_EQ(before - device->memory().available, kept_state_bytes(c, l) + recurrent_working_bytes(c, l, *device));
}

TEST(MemoryPlan, KeepsAsManyStatesAsAQuarterOfTheRestHolds) {
  const auto states = [](uint64_t megabytes) {
    const auto device = make_reference_device(megabytes * kMiB);
    ModelLimits l = limits();
    choose_context(hybrid(), l, 512, 1000 * kMiB, *device, device->memory().available);
    return l.states;
  };
  EXPECT_EQ(states(3000), kFewestStates);
  EXPECT_EQ(states(1000 + 4 * 8 * 152), 8u);  // 149.6 MiB each
  EXPECT_EQ(states(100'000), kMostStates);
  ModelLimits l = limits();
  const auto device = make_reference_device();
  choose_context(config(), l, 512, 0, *device, device->memory().available);
  EXPECT_EQ(l.states, 0u) << "without recurrent layers";
}

void expect_states_counted(const ModelConfig& c) {
  for (const uint32_t width : {1u, 7u, 128u}) {
    const auto device = make_reference_device(100'000 * kMiB);
    ModelLimits l = limits();
    l.context = 512;
    l.max_width = width;
    l.head_rows = head_rows_for(c, width);
    l.states = 4;
    const MemoryPlan plan = plan_memory(c, l, 0, *device);
    const uint64_t before = device->memory().available;
    const PassBuffers buffers = allocate_pass_buffers(*device, c, l);
    const RecurrentMemory recurrent(*device, c, l);
    EXPECT_EQ(plan.working + plan.states, before - device->memory().available) << "width " << width;
  }
}

TEST(MemoryPlan, CountsWhatRecurrentLayersAllocate) {
  ModelConfig c = hybrid();
  c.layers = 4;
  c.recurrent.resize(4);
  expect_states_counted(c);
  // Granite 4's.
  c.architecture = "granitehybrid";
  c.has_output_gate = false;
  c.rotates.assign(4, false);
  c.delta_net = {.key_heads = 1, .value_heads = 48, .key_dim = 128, .value_dim = 64, .taps = 4, .scans = true};
  expect_states_counted(c);
}

void expect_counted(const ModelConfig& config) {
  const auto device = make_reference_device();
  for (const uint32_t width : {1u, 128u, 1025u}) {
    ModelLimits l = limits();
    l.context = 1024;
    l.max_width = width;
    l.head_rows = head_rows_for(config, width);
    l.aux_layers = 5;
    const MemoryPlan plan = plan_memory(config, l, 0, *device);
    const uint64_t before = device->memory().available;
    const PassBuffers buffers = allocate_pass_buffers(*device, config, l);
    EXPECT_EQ(plan.working, before - device->memory().available) << "width " << width;
  }
}

TEST(MemoryPlan, CountsWhatIsAllocated) {
  expect_counted(config());
  ModelConfig gemma = config();
  gemma.architecture = "gemma3";
  gemma.has_post_norms = true;
  gemma.local_rope_theta = 10000;
  gemma.turns_locally.assign(gemma.layers, true);
  expect_counted(gemma);
  // Two sizes of heads: those of layers with a window are half as long, and there are more of them.
  gemma.architecture = "gemma4";
  gemma.local_head_dim = gemma.head_dim / 2;
  gemma.turns_locally.back() = false;
  gemma.layer_kv_heads.assign(gemma.layers, gemma.kv_heads);
  gemma.layer_kv_heads.back() = 1;
  expect_counted(gemma);
  gemma.layer_inputs = 40;
  expect_counted(gemma);
  gemma.layer_inputs = 0;
  gemma.has_experts_beside = true;
  gemma.experts = 6;
  gemma.experts_used = 2;
  gemma.expert_ffn = 32;
  gemma.has_experts.assign(gemma.layers, true);
  expect_counted(gemma);
}

TEST(MemoryPlan, CountsWhatFeedForwardsWithoutGatesWorkIn) {
  ModelConfig c = hybrid();
  c.architecture = "nemotron_h_moe";
  c.has_output_gate = false;
  c.delta_net = {.key_heads = 8, .value_heads = 64, .key_dim = 128, .value_dim = 64, .taps = 4, .scans = true};
  c.layers = 4;
  c.recurrent.clear();
  set_nemotron_layers("M*-M", c);
  expect_states_counted(c);
  c.recurrent.clear(), c.has_mixer.clear(), c.has_feed_forward.clear();
  set_nemotron_layers("M*EM", c);
  c.experts = 16;
  c.experts_used = 3;
  c.expert_ffn = 96;
  c.shared_ffn = 200;
  expect_states_counted(c);
}

TEST(MemoryPlan, CountsWhatScaledBranchesNeedForAuxHiddenStates) {
  ModelConfig c = config();
  c.residual_scale = 4;
  expect_counted(c);
}

TEST(MemoryPlan, CountsWhatLatentAttentionAllocates) {
  ModelConfig c = config();
  c.architecture = "deepseek2";
  c.kv_heads = 1;
  c.head_dim = 576;
  c.rotary_dim = 64;
  c.latent = {.rank = 512, .query_rank = 768, .key_dim = 128, .value_dim = 120};
  expect_counted(c);
  c.latent.query_rank = 0;
  expect_counted(c);
  ModelLimits l = limits();
  l.context = 1024;
  const auto device = make_reference_device();
  EXPECT_EQ(plan_memory(c, l, 0, *device).cache, uint64_t{1024 + 128} * 30 * 576 * 2) << "keys alone";
}

TEST(MemoryPlan, CountsRotationsOfQueriesThatGrow) {
  ModelConfig c = config();
  c.architecture = "mistral3";
  c.rope_scaling.original_context = 64;
  c.rope_scaling.query_growth = 0.1;
  EXPECT_EQ(rotation_words(c, 64), 64 * 64u);
  EXPECT_EQ(rotation_words(c, 65), 2 * 65 * 64u);
  expect_counted(c);
}

TEST(MemoryPlan, CountsWhatExpertsWorkIn) {
  ModelConfig c = config();
  c.experts = 60;
  c.experts_used = 4;
  c.expert_ffn = 352;
  c.has_experts.assign(c.layers, true);
  expect_counted(c);
}

}  // namespace
}  // namespace canopy::test
