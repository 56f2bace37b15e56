// How slots of the K/V cache lie in memory, and what q8_0 rounds to.

#include "engine/compute/kv_slots.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/base/error.h"
#include "engine/base/numbers.h"
#include "tests/compute/random_data.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

KvShape q8(uint32_t kv_heads, uint32_t head_dim, uint32_t slots = 1) {
  return {slots, kv_heads, head_dim, CacheType::q8_0};
}

/// One head of 32 elements, the last 32 - values.size() of them 0.
std::vector<std::byte> encoded(std::vector<float> values) {
  values.resize(32);
  return encode_slots(q8(1, 32), values);
}

std::vector<float> rounded(const std::vector<float>& values) {
  return decode_slots(q8(1, 32), encoded(values));
}

int code(const std::vector<std::byte>& slot, size_t i) {
  return std::to_integer<int>(slot.at(i)) - 128;
}

uint32_t scale_bits(const std::vector<std::byte>& slot, size_t at) {
  return std::to_integer<uint32_t>(slot.at(at)) | std::to_integer<uint32_t>(slot.at(at + 1)) << 8;
}

TEST(KvSlotsTest, TakeWhatTheirTypeAndWholeUnitsTake) {
  EXPECT_EQ(slot_bytes({1, 8, 128, CacheType::f32}), 4096u);
  EXPECT_EQ(slot_bytes({1, 8, 128, CacheType::f16}), 2048u);
  EXPECT_EQ(slot_bytes(q8(8, 128)), 1024u + 64u);
  EXPECT_EQ(slot_bytes(q8(3, 64)), 208u);        // 192 codes, 3 words of scales, filled up to 16
  EXPECT_EQ(slot_bytes(q8(1, 32)), 48u);         // 32 codes, a word for one scale
  EXPECT_EQ(slot_bytes(q8(2, 96)), 192u + 16u);  // three scales take two words
  EXPECT_DOUBLE_EQ(mean_element_bytes(q8(8, 128)), 1.0625);
  EXPECT_DOUBLE_EQ(mean_element_bytes({1, 3, 64, CacheType::f16}), 2.0);
}

TEST(KvSlotsTest, HaveCodesThenScales) {
  std::vector<float> values(2 * 96, 0.0f);
  values[0] = 127;  // head 0, block 0: scale 1
  values[1] = -3;
  values[95] = -254;  // head 0, block 2: scale 2
  values[94] = 4;
  values[96 + 32] = 12.7f;  // head 1, block 1
  const std::vector<std::byte> slot = encode_slots(q8(2, 96), values);
  ASSERT_EQ(slot.size(), 208u);
  EXPECT_EQ(code(slot, 0), 127);
  EXPECT_EQ(code(slot, 1), -3);
  EXPECT_EQ(code(slot, 2), 0);
  EXPECT_EQ(code(slot, 95), -127);
  EXPECT_EQ(code(slot, 94), 2);
  EXPECT_EQ(code(slot, 128), 127);
  EXPECT_EQ(scale_bits(slot, 192), f32_to_f16(1));
  EXPECT_EQ(scale_bits(slot, 194), 0u);
  EXPECT_EQ(scale_bits(slot, 196), f32_to_f16(2));
  EXPECT_EQ(scale_bits(slot, 202), f32_to_f16(0.1f));  // the second head's scales start with a word of their own
  EXPECT_EQ(decode_slots(q8(2, 96), slot)[95], -254);
}

TEST(KvSlotsTest, RoundToTheNearestMultipleOfTheScale) {
  const std::vector<float> values = {127, 0.5f, -0.5f, 0.49999997f, 1.5f, -2.5f, 2.4999998f, 126.5f, 126.49999f};
  const std::vector<float> wanted = {127, 1, -1, 0, 2, -3, 2, 127, 126};
  const std::vector<float> got = rounded(values);
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(got[i], wanted[i]) << values[i];
}

TEST(KvSlotsTest, KeepBlocksOfZerosAndOfWhatIsTooSmall) {
  for (const float small : {0.0f, -0.0f, 1e-9f, std::numeric_limits<float>::denorm_min()}) {
    const std::vector<std::byte> slot = encoded({small, -small});
    EXPECT_EQ(scale_bits(slot, 32), 0u) << small;
    EXPECT_EQ(code(slot, 0), 0) << small;
  }
}

// A subnormal half is off by up to a third, so that more than 127 multiples of it may be wanted.
TEST(KvSlotsTest, StopAt127OfASubnormalScale) {
  const float largest = 127 * 1.4f * 0x1p-24f;
  const std::vector<std::byte> slot = encoded({largest, -largest, largest / 2});
  EXPECT_EQ(scale_bits(slot, 32), 1u);
  EXPECT_EQ(code(slot, 0), 127);
  EXPECT_EQ(code(slot, 1), -127);
  EXPECT_EQ(code(slot, 2), 89);
}

TEST(KvSlotsTest, MakeBlocksNanThatHaveNoFiniteScale) {
  for (const float wrong : {kInfinity, -kInfinity, kNan, -kNan, 127 * 65520.0f}) {
    const std::vector<std::byte> slot = encoded({1, wrong});
    EXPECT_EQ(scale_bits(slot, 32), 0x7E00u) << wrong;
    for (const float value : decode_slots(q8(1, 32), slot)) EXPECT_TRUE(std::isnan(value));
  }
  EXPECT_EQ(rounded({127 * 65504.0f})[0], 127 * 65504.0f);
}

// The oracle's formula has doubles and divisions; this one is compared with the shaders bit by bit.
TEST(KvSlotsTest, AgreeWithTheOracleByTheBit) {
  const auto device = make_reference_device();
  for (const CacheType type : kCacheTypes) {
    const KvShape shape{50, 3, 96, type};
    Random random(7);
    std::vector<float> values = random.values(50 * 3 * 96);
    for (size_t i = 0; i < values.size(); ++i) values[i] *= std::exp2(static_cast<float>(i / 288 % 50) - 35);
    const auto cache = device->allocate_kv(shape, 1, "test");
    device->write_kv(cache->layer(0), false, 0, values);
    EXPECT_EQ(device->read_kv(cache->layer(0), false, 0, 50), decode_slots(shape, encode_slots(shape, values)))
        << to_string(type);
  }
}

TEST(KvSlotsTest, RefuseHeadsThatAreNoWholeBlocks) {
  EXPECT_NO_THROW(check_keeps_heads(CacheType::f16, 80));
  EXPECT_NO_THROW(check_keeps_heads(CacheType::q8_0, 96));
  EXPECT_NO_THROW(check_latent_values({1, 1, 576, CacheType::f16, 512}));
  EXPECT_THROW(check_latent_values({1, 1, 48, CacheType::f16, 52}), Error);
  EXPECT_THROW(check_latent_values({1, 1, 48, CacheType::f16, 38}), Error);
  try {
    check_keeps_heads(CacheType::q8_0, 80);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::bad_input);
    EXPECT_NE(std::string(e.what()).find("80 elements"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("multiples of 32"), std::string::npos) << e.what();
  }
  EXPECT_THROW(make_reference_device()->allocate_kv(q8(2, 48, 4), 1, "test"), Error);
  EXPECT_THROW(encode_slots(q8(1, 32), std::vector<float>(33)), Error);
  EXPECT_THROW(decode_slots(q8(1, 32), std::vector<std::byte>(47)), Error);
}

TEST(CacheTypeTest, HasANameForEachType) {
  for (const CacheType type : kCacheTypes) EXPECT_EQ(cache_type_from(to_string(type)), type);
  EXPECT_EQ(cache_type_from("q4_0"), std::nullopt);
  EXPECT_EQ(cache_type_from(""), std::nullopt);
  try {
    checked_cache_type("Q8");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("\"Q8\""), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("f16, q8_0, f32"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace canopy::test
