// shaders/sampling.glsl against engine/compute/sampling.h: the same bits, whatever goes in.

#include "engine/compute/sampling.h"

#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "engine/vulkan/command_list.h"
#include "engine/vulkan/context.h"
#include "engine/vulkan/kernel.h"
#include "tests/vulkan/devices.h"

namespace canopy::vk {

std::span<const ShaderCode> test_shaders();

namespace {

using Quad = std::array<uint32_t, 4>;
struct Push {
  uint32_t count;
};
constexpr uint32_t inputs = 1u << 20;  // of a dispatch

float as_float(uint32_t bits) {
  return std::bit_cast<float>(bits);
}
uint32_t as_bits(float x) {
  return std::bit_cast<uint32_t>(x);
}

class SamplingArithmeticTest : public testing::DeviceTest {
 protected:
  /// Runs a function of the shader over the inputs and compares each result with `expected`.
  void compare(uint32_t function, const std::vector<Quad>& in, const SamplingWords& words,
               const std::function<Quad(const Quad&)>& expected) {
    const auto context = open();
    const uint64_t bytes = in.size() * sizeof(Quad);
    const Buffer from = context->create_buffer(BufferKind::device, bytes, "inputs");
    const Buffer to = context->create_buffer(BufferKind::device, bytes, "results");
    const Buffer settings = context->create_buffer(BufferKind::device, sizeof(words), "settings");
    context->upload(from, 0, std::as_bytes(std::span(in)));
    context->upload(settings, 0, std::as_bytes(std::span(&words, 1)));
    CommandList list(*context);
    const auto count = static_cast<uint32_t>(in.size());
    list.bind(context->kernel(find_shader(test_shaders(), "sampling"), {.spec = {{0, function}}}), {from, to, settings},
              Push{count});
    list.dispatch((count + 63) / 64);
    context->run(list);
    std::vector<Quad> out(in.size());
    context->download(to, 0, std::as_writable_bytes(std::span(out)));
    for (size_t i = 0; i < in.size(); ++i) {
      const Quad& x = in[i];
      ASSERT_EQ(out[i], expected(x)) << std::hex << "of " << x[0] << " " << x[1] << " " << x[2] << " " << x[3];
    }
  }
};
CANOPY_ON_EVERY_DEVICE(SamplingArithmeticTest);

TEST_P(SamplingArithmeticTest, noiseIsTheHosts) {
  std::mt19937 random(1);
  std::vector<Quad> in;
  for (uint32_t i = 0; i < inputs; ++i) {
    // Numbers of all lengths, and numbers that little misses to 1.
    const uint32_t zeros = i % 54;
    uint64_t number = (uint64_t{random()} << 32 | random()) >> zeros;
    if (i % 108 >= 54) number = ~number;
    in.push_back({static_cast<uint32_t>(number >> 32), static_cast<uint32_t>(number), 0, 0});
  }
  compare(0, in, {}, [](const Quad& x) {
    const Uniform u = uniform_of(x[0], x[1]);
    return Quad{u.high, u.low, static_cast<uint32_t>(gumbel_noise(u)),
                static_cast<uint32_t>(noise_at_most(bit_count(u)))};
  });
}

// Any two settled logits, near and far from each other, at any temperature.
TEST_P(SamplingArithmeticTest, distancesAndWeightsAreTheHosts) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal(0, 10);
  std::vector<Quad> in;
  for (uint32_t i = 0; i < inputs; ++i) {
    uint32_t best = as_bits(normal(random)), logit = as_bits(normal(random));
    if (i % 4 == 1) best = random(), logit = random();
    if (i % 4 == 2) logit = best ^ random() % 64;
    if (!is_finite(best)) best = as_bits(1.5f);
    if (!is_finite(logit)) logit = as_bits(-0.5f);
    best = settled(best), logit = settled(logit);
    if (as_float(best) < as_float(logit)) std::swap(best, logit);
    const int exponent = i % 8 < 6 ? static_cast<int>(random() % 16) - 8 : static_cast<int>(random() % 200) - 100;
    const float inverse = std::ldexp(1.0f + static_cast<float>(random() % 4096) / 4096, exponent);
    in.push_back({best, logit, as_bits(std::min(inverse, 0x1p100f)), static_cast<uint32_t>(random())});
  }
  compare(1, in, {}, [](const Quad& x) {
    const uint32_t far = distance(as_float(x[0]), as_float(x[1]), as_float(x[2]));
    return Quad{far, weight_at(far), weight_at(x[3] & 0x3FFFFFFF), settled(x[0])};
  });
}

TEST_P(SamplingArithmeticTest, penaltiesAreTheHosts) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 10);
  for (int set = 0; set < 4; ++set) {
    SamplingWords words;
    words.repetition = set == 3 ? 0x1.8p-120f : 1 + std::abs(normal(random)) / 10;
    words.inverse_repetition = 1 / words.repetition;
    words.presence = normal(random) / 10;
    words.frequency = set == 2 ? 0x1p-124f : normal(random) / 50;
    std::vector<Quad> in;
    for (uint32_t i = 0; i < inputs / 4; ++i) {
      const uint32_t logit = i % 2 == 0 ? as_bits(normal(random)) : static_cast<uint32_t>(random());
      uint32_t bias = i % 8 == 0 ? static_cast<uint32_t>(random()) : i % 4 == 0 ? as_bits(normal(random)) : 0;
      if (!is_finite(bias)) bias = 0;
      in.push_back({logit, settled(bias), static_cast<uint32_t>(i % 3 == 0 ? 0 : random() % 40000), 0});
    }
    // Overflow gives an infinity or NaN; which NaN is the device's own.
    const auto canonical = [](uint32_t bits) { return (bits & 0x7FFFFFFF) > 0x7F800000 ? 0x7FC00000 : bits; };
    for (Quad& x : in) x[0] = canonical(x[0]);
    compare(2, in, words, [&](const Quad& x) {
      return Quad{as_bits(adjusted_logit(as_float(x[0]), as_float(x[1]), x[2], words)), 0, 0, 0};
    });
  }
}

TEST_P(SamplingArithmeticTest, randomWordsAreTheHosts) {
  std::mt19937 random(4);
  SamplingWords words;
  words.seed[0] = 0x89ABCDEF, words.seed[1] = 0x01234567;
  std::vector<Quad> in;
  for (uint32_t i = 0; i < inputs / 8; ++i) {
    in.push_back({static_cast<uint32_t>(random()), i, static_cast<uint32_t>(random()), i * 7});
  }
  compare(3, in, words, [&](const Quad& x) { return philox4x32(x, {words.seed[0], words.seed[1]}); });
}

}  // namespace
}  // namespace canopy::vk
