#include "engine/model/load_plan.h"

#include <gtest/gtest.h>

#include "engine/base/error.h"
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
    EXPECT_NE(std::string(e.what()).find("weights 100 MiB"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("120 MiB are available"), std::string::npos) << e.what();
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

TEST(MemoryPlan, CountsWhatRecurrentLayersAllocate) {
  ModelConfig c = hybrid();
  c.layers = 4;
  c.recurrent.resize(4);
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
