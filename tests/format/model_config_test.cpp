#include "engine/format/model_config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <ostream>

#include "tests/base/expect_error.h"

namespace canopy {
namespace {

ModelConfig good() {
  ModelConfig c;
  c.architecture = "llama";
  c.layers = 2;
  c.hidden = 64;
  c.heads = 4;
  c.kv_heads = 2;
  c.head_dim = 16;
  c.ffn = 128;
  c.vocab = 100;
  c.max_context = 512;
  c.rms_eps = 1e-5f;
  c.rope_theta = 10000;
  c.bos = 1;
  c.eos = {2, 99};
  return c;
}

RopeScaling llama3() {
  RopeScaling scaling;
  scaling.kind = RopeScaling::Kind::llama3;
  scaling.factor = 8;
  scaling.low_freq_factor = 1;
  scaling.high_freq_factor = 4;
  scaling.original_context = 64;
  return scaling;
}

struct RefusedConfig {
  const char* name;
  const char* message;
  std::function<void(ModelConfig&)> change;
};

void PrintTo(const RefusedConfig& c, std::ostream* out) {
  *out << c.name;
}

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

const RefusedConfig refused_configs[] = {
    {"NoLayers", "layer count is 0; 1 to 512", [](auto& c) { c.layers = 0; }},
    {"TooManyLayers", "layer count is 513; 1 to 512", [](auto& c) { c.layers = 513; }},
    {"NoHidden", "hidden size is 0", [](auto& c) { c.hidden = 0; }},
    {"HugeHidden", "hidden size is 4294967295", [](auto& c) { c.hidden = UINT32_MAX; }},
    {"NoHeads", "head count is 0", [](auto& c) { c.heads = 0; }},
    {"NoKvHeads", "key/value head count is 0", [](auto& c) { c.kv_heads = 0; }},
    {"HeadsOfFewLayers", "states the head count of 1 layers; it has", [](auto& c) { c.layer_heads = {c.heads}; }},
    {"HeadsNotDivisible", "head count 4 is no multiple of its key/value head count 3", [](auto& c) { c.kv_heads = 3; }},
    {"MoreKvHeads", "head count 4 is no multiple of its key/value head count 8", [](auto& c) { c.kv_heads = 8; }},
    {"NoHeadDim", "head dimension is 0", [](auto& c) { c.head_dim = 0; }},
    {"OddHeadDim", "head dimension is 15; it must be even", [](auto& c) { c.head_dim = 15; }},
    {"HugeHeadDim", "head dimension is 2048", [](auto& c) { c.head_dim = 2048; }},
    {"NoFfn", "feed-forward size is 0", [](auto& c) { c.ffn = 0; }},
    {"NoVocab", "vocabulary size is 0", [](auto& c) { c.vocab = 0; }},
    {"HugeVocab", "vocabulary size is 4194305; 1 to 4194304", [](auto& c) { c.vocab = (1 << 22) + 1; }},
    {"NoContext", "context length is 0", [](auto& c) { c.max_context = 0; }},
    {"EpsZero", "RMS norm epsilon is 0; a number above 0", [](auto& c) { c.rms_eps = 0; }},
    {"EpsNan", "RMS norm epsilon is nan", [](auto& c) { c.rms_eps = nan; }},
    {"EpsNegative", "RMS norm epsilon is -1", [](auto& c) { c.rms_eps = -1; }},
    {"ThetaNan", "rope theta is nan", [](auto& c) { c.rope_theta = nan; }},
    {"ThetaZero", "rope theta is 0", [](auto& c) { c.rope_theta = 0; }},
    {"ThetaInfinite", "rope theta is inf", [](auto& c) { c.rope_theta = infinity; }},
    {"BosOutside", "bos token is 100, outside its vocabulary of 100 tokens", [](auto& c) { c.bos = 100; }},
    {"EosOutside", "eos token is 4294967295, outside", [](auto& c) { c.eos.push_back(UINT32_MAX); }},
    {"LinearFactorZero", "rope scaling factor is 0",
     [](auto& c) { c.rope_scaling = {.kind = RopeScaling::Kind::linear, .factor = 0, .divisors = {}}; }},
    {"Llama3EqualFactors", "high_freq_factor is 1; a number above 1",
     [](auto& c) {
       c.rope_scaling = llama3();
       c.rope_scaling.high_freq_factor = 1;
     }},
    {"Llama3NoContext", "original_max_position_embeddings is 0",
     [](auto& c) {
       c.rope_scaling = llama3();
       c.rope_scaling.original_context = 0;
     }},
    {"FactorsCount", "has 7 rope frequency factors; 8 are expected",
     [](auto& c) { c.rope_scaling = {.kind = RopeScaling::Kind::factors, .divisors = std::vector<float>(7, 1.0f)}; }},
    {"FactorsNan", "rope frequency factor is nan",
     [](auto& c) { c.rope_scaling = {.kind = RopeScaling::Kind::factors, .divisors = std::vector<float>(8, nan)}; }},
};

class ConfigRefused : public testing::TestWithParam<RefusedConfig> {};

TEST_P(ConfigRefused, NamesTheField) {
  ModelConfig config = good();
  ASSERT_NO_THROW(validate_config(config));
  GetParam().change(config);
  test::expect_error(GetParam().message, [&] { validate_config(config); });
}

INSTANTIATE_TEST_SUITE_P(Cases, ConfigRefused, testing::ValuesIn(refused_configs),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(RopeFrequencies, FollowTheFormulas) {
  ModelConfig config = good();
  const auto plain = rope_frequencies(config);
  ASSERT_EQ(plain.size(), 8u);
  EXPECT_EQ(plain[0], 1.0);
  EXPECT_NEAR(plain[4], 0.01, 1e-15);
  config.rope_scaling = {.kind = RopeScaling::Kind::linear, .factor = 4, .divisors = {}};
  EXPECT_NEAR(rope_frequencies(config)[4], 0.0025, 1e-15);
  config.rope_scaling = {.kind = RopeScaling::Kind::factors, .divisors = {1, 1, 1, 1, 8, 1, 1, 1}};
  EXPECT_NEAR(rope_frequencies(config)[4], 0.00125, 1e-15);
}

TEST(RopeFrequencies, YarnKeepsWhatTurnsOftenAndDividesWhatTurnsSeldom) {
  ModelConfig config = good();
  config.head_dim = 128;
  config.rope_theta = 1e6;
  const auto plain = rope_frequencies(config);
  config.rope_scaling.kind = RopeScaling::Kind::yarn;
  config.rope_scaling.factor = 4;
  config.rope_scaling.original_context = 32768;
  const auto scaled = rope_frequencies(config);
  // 32 and 1 turns in 32768 positions: pairs 23.6 and 39.7, of which all between 23 and 40 lie on a ramp.
  for (size_t i = 0; i <= 23; ++i) EXPECT_EQ(scaled[i], plain[i]) << i;
  for (size_t i = 24; i < 40; ++i) {
    const double kept = 1 - (static_cast<double>(i) - 23) / 17;
    EXPECT_NEAR(scaled[i] / plain[i], kept + (1 - kept) / 4, 1e-12) << i;
  }
  for (size_t i = 40; i < 64; ++i) EXPECT_DOUBLE_EQ(scaled[i], plain[i] / 4) << i;
}

TEST(RopeFrequencies, LongRopeChoosesByTheContext) {
  ModelConfig config = good();
  const auto plain = rope_frequencies(config);
  config.rope_scaling.kind = RopeScaling::Kind::longrope;
  config.rope_scaling.original_context = 100;
  config.rope_scaling.divisors.assign(8, 1);
  config.rope_scaling.long_divisors.assign(8, 2);
  EXPECT_EQ(rope_frequencies(config), plain);
  EXPECT_EQ(rope_frequencies(config, 100), plain);
  EXPECT_EQ(rope_frequencies(config, 101)[3], plain[3] / 2);
}

TEST(RopeFrequencies, Llama3KeepsShortStretchesLongAndJoinsContinuously) {
  ModelConfig config = good();
  const auto plain = rope_frequencies(config);
  config.rope_scaling = llama3();
  const auto scaled = rope_frequencies(config);
  for (size_t i = 0; i < plain.size(); ++i) {
    const double wavelength = 2 * 3.14159265358979 / plain[i];
    if (wavelength < 64.0 / 4) {
      EXPECT_EQ(scaled[i], plain[i]);
    } else if (wavelength > 64.0) {
      EXPECT_DOUBLE_EQ(scaled[i], plain[i] / 8);
    } else {
      EXPECT_LT(scaled[i], plain[i]);
      EXPECT_GT(scaled[i], plain[i] / 8);
    }
  }
  EXPECT_EQ(scaled[0], plain[0]);
  EXPECT_DOUBLE_EQ(scaled[7], plain[7] / 8);
}

}  // namespace
}  // namespace canopy
