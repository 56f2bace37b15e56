#include "engine/vulkan/spirv.h"

#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/vulkan/kernel.h"

namespace canopy::vk {

std::span<const ShaderCode> test_shaders();

namespace {

ShaderReflection reflect_shader(std::string_view name) {
  return reflect(find_shader(test_shaders(), name).words);
}

TEST(Reflect, findsBindingsPushConstantsAndSpecialisation) {
  const ShaderReflection shader = reflect_shader("scale");
  EXPECT_EQ(shader.entry_point, "main");
  ASSERT_EQ(shader.bindings.size(), 3u);
  EXPECT_EQ(shader.bindings[0].type, BindingType::storage_buffer);
  EXPECT_TRUE(shader.bindings[0].read_only);
  EXPECT_EQ(shader.bindings[0].static_bytes, 0u);  // a run-time array alone
  EXPECT_EQ(shader.bindings[1].type, BindingType::storage_buffer);
  EXPECT_FALSE(shader.bindings[1].read_only);
  EXPECT_EQ(shader.bindings[2].type, BindingType::uniform_buffer);
  EXPECT_EQ(shader.bindings[2].static_bytes, 16u);
  EXPECT_EQ(shader.push_bytes, 8u);
  ASSERT_EQ(shader.spec_constants.size(), 2u);
  EXPECT_EQ(shader.spec_constants[0].id, 0u);
  EXPECT_EQ(shader.spec_constants[0].default_value, 64u);
  EXPECT_EQ(shader.spec_constants[1].id, 3u);
  EXPECT_EQ(shader.local_size, (std::array<uint32_t, 3>{64, 1, 1}));
  EXPECT_EQ(shader.local_size_ids[0], 0u);
  EXPECT_EQ(shader.local_size_ids[1], std::nullopt);
}

TEST(Reflect, noticesAConstantWithTwoDefaults) {
  const ShaderReflection shader = reflect_shader("ambiguous");
  ASSERT_EQ(shader.spec_constants.size(), 1u);
  EXPECT_TRUE(shader.spec_constants[0].ambiguous);
  EXPECT_EQ(shader.local_size[0], 1u);  // the default of drivers
}

TEST(Reflect, findsBindingsAndFixedSizes) {
  const ShaderReflection shader = reflect_shader("gather_pairs");
  ASSERT_EQ(shader.bindings.size(), 2u);
  EXPECT_EQ(shader.bindings[0].type, BindingType::storage_buffer);
  EXPECT_EQ(shader.bindings[1].binding, 4u);
  EXPECT_EQ(shader.find_binding(4), &shader.bindings[1]);
  EXPECT_EQ(shader.find_binding(1), nullptr);
  EXPECT_EQ(shader.local_size, (std::array<uint32_t, 3>{32, 1, 1}));
  EXPECT_TRUE(shader.spec_constants.empty());
}

TEST(Reflect, measuresLayoutsArraysAndSharedMemory) {
  const ShaderReflection shader = reflect_shader("layouts");
  const ShaderBinding* header = shader.find_binding(0);
  ASSERT_NE(header, nullptr);
  EXPECT_EQ(header->static_bytes, 16u + 3 * 16 + 64);  // vec3 + uint, three vec3 of stride 16, mat4
  const ShaderBinding* array = shader.find_binding(1);
  ASSERT_NE(array, nullptr);
  EXPECT_EQ(array->count, 4u);
  EXPECT_EQ(array->type, BindingType::uniform_buffer);
  EXPECT_EQ(array->static_bytes, 8u * 4);  // float[8] in std430
  EXPECT_EQ(shader.shared_bytes, 32u * 4 + 16);
}

TEST(Reflect, readsEveryShaderOfTheEngine) {
  for (const ShaderCode& shader : engine_shaders()) {
    const ShaderReflection reflection = reflect(shader.words);
    EXPECT_FALSE(reflection.bindings.empty()) << shader.name;
    EXPECT_LE(reflection.push_bytes, 128u) << shader.name;
  }
}

// Arrays in shared memory whose lengths depend on specialisation constants: split_parts, lane_sums and last_group.
TEST(Reflect, sizesSharedMemoryByTheConstantsGiven) {
  const std::span<const uint32_t> words = find_shader("product_add_q4_1").words;
  EXPECT_EQ(reflect(words).shared_bytes, 64u * 4 + 16 + 16 + 8 * 4) << "one column, one slice";
  const SpecConstant constants[] = {{0, 8}, {1, 64}, {2, 4}, {3, 1}, {4, 2}};  // columns, lanes, slices, rows, stage
  EXPECT_EQ(reflect(words, constants).shared_bytes, 4u * 8 * 64 * 4 + 2 * 16 + 16 + 8 * 8 * 4);
}

// Neither crashes nor reads past its input, which ASan would notice.
TEST(Reflect, survivesEveryTruncation) {
  const std::span<const uint32_t> whole = find_shader(test_shaders(), "layouts").words;
  for (size_t length = 0; length < whole.size(); ++length) {
    const std::vector<uint32_t> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    try {
      static_cast<void>(reflect(cut));
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::bad_input);
    }
  }
}

TEST(Reflect, survivesEveryFlippedBit) {
  const std::span<const uint32_t> whole = find_shader(test_shaders(), "layouts").words;
  std::vector<uint32_t> words(whole.begin(), whole.end());
  size_t refused = 0;
  for (size_t bit = 0; bit < words.size() * 32; ++bit) {
    words[bit / 32] ^= 1u << (bit % 32);
    try {
      static_cast<void>(reflect(words));
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::bad_input);
      ++refused;
    }
    words[bit / 32] ^= 1u << (bit % 32);
  }
  EXPECT_GT(refused, 100u);
}

TEST(Reflect, refusesWhatIsNoModule) {
  EXPECT_THROW(reflect({}), Error);
  const std::vector<uint32_t> zeros(64);
  EXPECT_THROW(reflect(zeros), Error);
}

TEST(FindShader, namesSimilarOnes) {
  EXPECT_EQ(find_shader(test_shaders(), "gather_words").name, "gather_words");
  try {
    find_shader(test_shaders(), "gather_triples");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("similar ones are gather_pairs, gather_words"), std::string::npos) << e.what();
  }
  EXPECT_FALSE(has_shader("no such shader"));
}

TEST(MergeShaders, refusesTwoOfOneName) {
  const ShaderCode a{"a", {}};
  const ShaderCode b{"b", {}};
  EXPECT_EQ(merge_shaders({{&b, 1}, {&a, 1}}).front().name, "a");
  EXPECT_THROW(merge_shaders({{&a, 1}, {&b, 1}, {&a, 1}}), Error);
}

}  // namespace
}  // namespace canopy::vk
