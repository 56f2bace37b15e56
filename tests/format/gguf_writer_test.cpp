// A file that is written can be read back with the same contents.

#include "engine/format/gguf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/base/expect_error.h"
#include "tests/format/gguf_builder.h"

namespace canopy {
namespace {

using test::as_bytes;

TEST(GgufWriter, MetadataOfEveryKind) {
  GgufWriter writer;
  writer.text("a.text", "words");
  writer.u32("a.u32", UINT32_MAX);
  writer.f32("a.f32", 1e-6f);
  writer.boolean("a.yes", true);
  writer.i32s("a.i32s", std::array<int32_t, 3>{2, -4, 6});
  writer.booleans("a.booleans", {true, false, true});
  writer.f32s("a.f32s", std::array<float, 2>{0.5f, -1e-6f});
  writer.texts("a.texts", std::array<std::string, 3>{"one", "", "three"});
  const std::string bytes = writer.build();
  const GgufFile file = GgufFile::parse(as_bytes(bytes));
  EXPECT_EQ(file.version(), 3u);
  EXPECT_EQ(file.text("a.text"), "words");
  EXPECT_EQ(file.u32("a.u32"), UINT32_MAX);
  EXPECT_EQ(file.number("a.f32"), double{1e-6f});
  EXPECT_EQ(file.boolean_if("a.yes"), true);
  EXPECT_EQ(file.i32s("a.i32s"), (std::vector<int32_t>{2, -4, 6}));
  EXPECT_EQ(file.booleans("a.booleans"), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(file.f32s("a.f32s"), (std::vector<float>{0.5f, -1e-6f}));
  EXPECT_EQ(file.texts("a.texts"), (std::vector<std::string_view>{"one", "", "three"}));
  EXPECT_EQ(file.metadata().size(), 8u);
}

TEST(GgufWriter, CopiesEntriesOfEveryTypeByteForByte) {
  test::GgufBuilder b;
  b.value<uint8_t>("u8", 200).value<int8_t>("i8", -100).value<uint16_t>("u16", 60000).value<int16_t>("i16", -30000);
  b.value<uint32_t>("u32", 4000000000u).value<int32_t>("i32", -2000000000).value<float>("f32", -0.5f);
  b.value<bool>("boolean", true).value<uint64_t>("u64", 1ull << 60).value<int64_t>("i64", -(1ll << 60));
  b.value<double>("f64", 1e300).text("text", "a\nb").texts("texts", {"x", "", "yz"});
  b.numbers<float>("numbers", {1, 2}).numbers<bool>("booleans", {true, false});
  const std::string original = b.build();
  const GgufFile file = GgufFile::parse(as_bytes(original));
  GgufWriter writer;
  for (const GgufValue& value : file.metadata()) writer.copy(value);
  EXPECT_EQ(writer.build(), original);
}

TEST(GgufWriter, TensorsAreAlignedAndKeepTheirShapes) {
  GgufWriter writer;
  const auto fill = [](char with) {
    return [with](std::span<std::byte> out) { std::ranges::fill(out, static_cast<std::byte>(with)); };
  };
  writer.tensor("vector", std::array<uint64_t, 1>{3}, TensorType::f32, fill('a'));
  writer.tensor("matrix", std::array<uint64_t, 2>{2, 32}, TensorType::q8_0, fill('b'));
  EXPECT_EQ(writer.tensor_count(), 2u);
  const std::string bytes = writer.build();
  const GgufFile file = GgufFile::parse(as_bytes(bytes));
  ASSERT_EQ(file.tensors().size(), 2u);
  const TensorView& vector = file.tensors()[0];
  EXPECT_EQ(vector.shape_text(), "[3]");
  ASSERT_EQ(vector.bytes.size(), 12u);
  EXPECT_EQ(vector.bytes.back(), std::byte{'a'});
  const TensorView& matrix = file.tensors()[1];
  EXPECT_EQ(matrix.shape_text(), "[2, 32]");
  EXPECT_EQ(matrix.type, TensorType::q8_0);
  ASSERT_EQ(matrix.bytes.size(), 68u);
  EXPECT_EQ(matrix.bytes.front(), std::byte{'b'});
  EXPECT_EQ(matrix.bytes.back(), std::byte{'b'});
}

TEST(GgufWriter, RefusesRowsThatAreNoWholeBlocks) {
  GgufWriter writer;
  test::expect_error("odd", [&] {
    writer.tensor("odd", std::array<uint64_t, 2>{1, 33}, TensorType::q8_0, [](std::span<std::byte>) {});
  });
}

}  // namespace
}  // namespace canopy
