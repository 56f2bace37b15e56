#include "engine/format/gguf.h"

#include <gtest/gtest.h>

#include "engine/base/bytes.h"
#include "tests/base/expect_error.h"
#include "tests/format/gguf_builder.h"
#include "tests/format/tiny_model.h"

namespace canopy {
namespace {

using test::as_bytes;
using test::expect_error;
using test::GgufBuilder;
using test::le;

TEST(Gguf, ReadsEveryValueType) {
  GgufBuilder b;
  b.value<uint8_t>("u8", 200).value<int8_t>("i8", -100).value<uint16_t>("u16", 60000).value<int16_t>("i16", -30000);
  b.value<uint32_t>("u32", 4000000000u).value<int32_t>("i32", -2000000000).value<float>("f32", 0.1f);
  b.value<bool>("bool", true).text("string", "zwölf").numbers<float>("array", {1.5f, -2.5f});
  b.value<uint64_t>("u64", UINT64_MAX).value<int64_t>("i64", INT64_MIN).value<double>("f64", 0.1);
  const std::string bytes = b.build();
  const GgufFile file = GgufFile::parse(as_bytes(bytes));
  ASSERT_EQ(file.metadata().size(), 13u);
  EXPECT_EQ(file.find("u8")->unsigned_value, 200u);
  EXPECT_EQ(file.find("i8")->signed_value, -100);
  EXPECT_EQ(file.find("u16")->unsigned_value, 60000u);
  EXPECT_EQ(file.find("i16")->signed_value, -30000);
  EXPECT_EQ(file.u32("u32"), 4000000000u);
  EXPECT_EQ(file.find("i32")->signed_value, -2000000000);
  EXPECT_EQ(file.number("f32"), 0.1f);
  EXPECT_EQ(file.boolean_if("bool"), true);
  EXPECT_EQ(file.text("string"), "zwölf");
  EXPECT_EQ(file.f32s("array"), (std::vector<float>{1.5f, -2.5f}));
  EXPECT_EQ(file.find("u64")->unsigned_value, UINT64_MAX);
  EXPECT_EQ(file.find("i64")->signed_value, INT64_MIN);
  EXPECT_EQ(file.number("f64"), 0.1);
}

TEST(Gguf, ReadsArraysOfStringsAndSkipsNestedOnes) {
  GgufBuilder b;
  b.texts("words", {"", "a", "bc"});
  const std::string inner = le<uint32_t>(4) + le<uint64_t>(2) + le<uint32_t>(1) + le<uint32_t>(2);
  b.array("nested", GgufType::array, 2, inner + inner).value<uint32_t>("after", 7);
  const std::string bytes = b.build();
  const GgufFile file = GgufFile::parse(as_bytes(bytes));
  EXPECT_EQ(file.texts("words"), (std::vector<std::string_view>{"", "a", "bc"}));
  EXPECT_EQ(file.find("nested")->count, 2u);
  EXPECT_EQ(file.u32("after"), 7u) << "what follows a nested array is found";
}

TEST(Gguf, ReadsTensorsRowMajor) {
  GgufBuilder b;
  b.version = 2;
  b.tensor("m", {32, 3}, TensorType::q8_0, std::string(3 * 34, 'q')).zeros("v", {5});
  const std::string bytes = b.build();
  const GgufFile file = GgufFile::parse(as_bytes(bytes));
  const TensorView& m = file.tensors()[0];
  EXPECT_EQ(m.shape_text(), "[3, 32]");
  EXPECT_EQ(m.rows(), 3u);
  EXPECT_EQ(m.cols(), 32u);
  EXPECT_EQ(m.bytes.size(), 102u);
  EXPECT_EQ(static_cast<char>(m.bytes.front()), 'q');
  EXPECT_EQ(file.tensors()[1].shape_text(), "[5]");
  EXPECT_EQ(file.version(), 2u);
}

TEST(Gguf, HonoursTheAlignment) {
  GgufBuilder b;
  b.alignment = 128;
  b.value<uint32_t>("general.alignment", 128).zeros("a", {1}).tensor("b", {1}, TensorType::i8, "x");
  const std::string bytes = b.build();
  const GgufFile file = GgufFile::parse(as_bytes(bytes));
  EXPECT_EQ(file.alignment(), 128u);
  EXPECT_EQ(static_cast<char>(file.tensors()[1].bytes[0]), 'x');
}

TEST(Gguf, AccessorsNameKeyActualAndWantedType) {
  GgufBuilder b;
  b.text("name", "x").value<int32_t>("negative", -1).value<uint64_t>("big", uint64_t{1} << 32);
  b.numbers<uint8_t>("bytes", {1}).numbers<uint32_t>("large", {0x80000000u}).value<uint32_t>("count", 3);
  const std::string bytes = b.build();
  const GgufFile file = GgufFile::parse(as_bytes(bytes));
  expect_error("'name' is of type string; a whole number is expected", [&] { file.u32("name"); });
  expect_error("'negative' is -1; a whole number from 0 to 4294967295", [&] { file.u32("negative"); });
  expect_error("'big' is 4294967296; a whole number", [&] { file.u32("big"); });
  expect_error("'count' is of type u32; f32 or f64 is expected", [&] { file.number("count"); });
  expect_error("'count' is of type u32; boolean is expected", [&] { file.boolean_if("count"); });
  expect_error("'count' is of type u32; string is expected", [&] { file.text("count"); });
  expect_error("'count' is of type u32; an array of string is expected", [&] { file.texts("count"); });
  expect_error("'bytes' is of type an array of u8; an array of string", [&] { file.texts("bytes"); });
  expect_error("'bytes' is of type an array of u8; an array of f32", [&] { file.f32s("bytes"); });
  expect_error("'bytes' is of type an array of u8; a whole number", [&] { file.u32("bytes"); });
  expect_error("Element 0 of the metadata 'large' is 2147483648", [&] { file.i32s("large"); });
  expect_error("The metadata 'absent' is missing.", [&] { file.u32("absent"); });
  EXPECT_FALSE(file.u32_if("absent"));
  EXPECT_TRUE(file.texts("absent").empty());
}

TEST(Gguf, EveryTruncationIsRefused) {
  const std::string whole = test::tiny_gguf().build();
  ASSERT_NO_THROW(GgufFile::parse(as_bytes(whole)));
  for (size_t size = 0; size < whole.size(); ++size) {
    // A fresh allocation of exactly this size, so that sanitizers see a read one byte past it.
    const std::vector<char> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THROW(GgufFile::parse(std::as_bytes(std::span(cut))), Error) << size;
  }
}

TEST(Gguf, NoBitFlipGetsPastTheChecksAsAnythingButAnError) {
  const std::string whole = test::tiny_gguf().build();
  const size_t header = whole.size() - 3500;  // after it there are only weights
  int accepted = 0;
  for (size_t i = 0; i < header; ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      try {
        const GgufFile file = GgufFile::parse(as_bytes(flipped));
        for (const TensorView& tensor : file.tensors()) {
          ASSERT_GE(tensor.bytes.data(), as_bytes(flipped).data());
          ASSERT_LE(tensor.bytes.data() + tensor.bytes.size(), as_bytes(flipped).data() + flipped.size());
        }
        ++accepted;
      } catch (const Error&) {
        // Refusing is right too.
      }
    }
  }
  EXPECT_GT(accepted, 0) << "flips in names are harmless";
}

}  // namespace
}  // namespace canopy
