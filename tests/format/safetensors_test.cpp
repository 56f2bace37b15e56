#include "engine/format/safetensors.h"

#include <gtest/gtest.h>

#include <functional>
#include <ostream>

#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/format/safetensors_builder.h"

namespace canopy {
namespace {

using test::as_bytes;
using test::expect_error;
using test::le;
using test::safetensors_entry;
using test::safetensors_file;
using test::SafetensorsBuilder;
using test::TempFolder;

std::string small_file() {
  SafetensorsBuilder b;
  b.tensor("b", "BF16", {2, 3}, std::string(12, 'b')).tensor("a", "F32", {}, le(1.0f)).tensor("none", "U8", {0, 5}, "");
  return b.build();
}

TEST(Safetensors, ReadsTensorsScalarsAndEmptyOnes) {
  const std::string bytes = small_file();
  const SafetensorsFile file = SafetensorsFile::parse(as_bytes(bytes));
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.tensors()[0].name, "b");
  EXPECT_EQ(file.tensors()[0].type, TensorType::bf16);
  EXPECT_EQ(file.tensors()[0].rows(), 2u);
  EXPECT_EQ(file.tensors()[0].cols(), 3u);
  EXPECT_EQ(file.tensors()[1].rank, 0u);
  EXPECT_EQ(file.tensors()[1].bytes.size(), 4u);
  EXPECT_EQ(file.tensors()[2].bytes.size(), 0u);
}

TEST(Safetensors, ReadsMetadataAndPaddedHeaders) {
  const std::string bytes = safetensors_file(
      "{\"__metadata__\":{\"format\":\"pt\"}," + safetensors_entry("w", "I8", {2}, 0, 2) + "}   ", "xy");
  const SafetensorsFile file = SafetensorsFile::parse(as_bytes(bytes));
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_EQ(static_cast<char>(file.tensors()[0].bytes[1]), 'y');
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const std::string whole = small_file();
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::vector<char> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THROW(SafetensorsFile::parse(std::as_bytes(std::span(cut))), Error) << size;
  }
}

TEST(Safetensors, NoBitFlipGetsPastTheChecksAsAnythingButAnError) {
  const std::string whole = small_file();
  for (size_t i = 0; i < whole.size() * 8; ++i) {
    std::string flipped = whole;
    flipped[i / 8] = static_cast<char>(flipped[i / 8] ^ (1 << (i % 8)));
    try {
      const SafetensorsFile file = SafetensorsFile::parse(as_bytes(flipped));
      for (const TensorView& tensor : file.tensors()) {
        ASSERT_LE(tensor.bytes.data() + tensor.bytes.size(), as_bytes(flipped).data() + flipped.size());
      }
    } catch (const Error&) {
      // Refusing is right too.
    }
  }
}

TEST(Safetensors, ConvolutionsOfFilmsMayHaveFiveDimensions) {
  SafetensorsBuilder b;
  b.tensor("model.visual.patch_embed.proj.weight", "U8", {2, 3, 2, 1, 4}, std::string(48, 'v'));
  b.tensor("visual.six", "U8", {2, 3, 2, 1, 1, 4}, std::string(48, 'v'));
  const std::string bytes = b.build();
  const SafetensorsFile file = SafetensorsFile::parse(as_bytes(bytes));
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.tensors()[0].shape_text(), "[6, 2, 1, 4]");
  EXPECT_EQ(file.tensors()[1].shape_text(), "[12, 1, 1, 4]");
}

struct SafetensorsCase {
  const char* name;
  const char* message;
  std::string file;
};

void PrintTo(const SafetensorsCase& c, std::ostream* out) {
  *out << c.name;
}

/// A file with this single entry in its header and 4 bytes of data.
std::string entry(const std::string& text) {
  return safetensors_file("{" + text + "}", "1234");
}

std::vector<SafetensorsCase> safetensors_cases() {
  const std::string big = "18446744073709551615";
  return {
      {"LengthCut", "The file ends inside the header's length at offset 0", "1234567"},
      {"LengthBeyondFile", "The file ends inside the header at offset 8: 100 bytes", le<uint64_t>(100) + "{}"},
      {"LengthOverLimit", "The header's length is 100000001 bytes; at most 100000000", le<uint64_t>(100000001) + "{}"},
      {"LengthWraps", "is 18446744073709551615 bytes; at most", le<uint64_t>(UINT64_MAX) + "{}"},
      {"LengthZero", "The header does not begin with '{'.", le<uint64_t>(0)},
      {"NoBrace", "The header does not begin with '{'.", safetensors_file(" {}", "")},
      {"Array", "The header does not begin with '{'.", safetensors_file("[]", "")},
      {"NotJson", "The header is not valid JSON", safetensors_file("{oops}", "")},
      {"TrailingJson", "The header is not valid JSON", safetensors_file("{}{}", "")},
      {"BadUtf8", "The header is not valid JSON", safetensors_file("{\"\xff\":1}", "")},
      {"Deep", "The header is nested more than 64", safetensors_file("{\"a\":" + std::string(3000, '['), "")},
      {"NameTwice", "The header has the key 'w' twice.",
       entry(safetensors_entry("w", "U8", {4}, 0, 4) + "," + safetensors_entry("w", "U8", {4}, 0, 4))},
      {"NameEmpty", "A tensor's name is empty.", entry(safetensors_entry("", "U8", {4}, 0, 4))},
      {"EntryNumber", "The entry of tensor 'w' is no object.", entry("\"w\":1")},
      {"DtypeMissing", "The tensor 'w' lacks the field 'dtype'.", entry(R"("w":{"shape":[4],"data_offsets":[0,4]})")},
      {"ShapeMissing", "The tensor 'w' lacks the field 'shape'.", entry(R"("w":{"dtype":"U8","data_offsets":[0,4]})")},
      {"OffsetsMissing", "lacks the field 'data_offsets'.", entry(R"("w":{"dtype":"U8","shape":[4]})")},
      {"DtypeUnknown", "The tensor 'w' has the unknown dtype 'F128'.",
       entry(safetensors_entry("w", "F128", {1}, 0, 4))},
      {"DtypeNumber", "The field 'dtype' of tensor 'w' must be a string.",
       entry(R"("w":{"dtype":1,"shape":[4],"data_offsets":[0,4]})")},
      {"ShapeNegative", "The field 'shape' of tensor 'w' must be a list of whole numbers",
       entry(R"("w":{"dtype":"U8","shape":[-4],"data_offsets":[0,4]})")},
      {"ShapeFraction", "The field 'shape' of tensor 'w' must be a list",
       entry(R"("w":{"dtype":"U8","shape":[4.0],"data_offsets":[0,4]})")},
      {"ShapeText", "The field 'shape' of tensor 'w' must be a list",
       entry(R"("w":{"dtype":"U8","shape":"4","data_offsets":[0,4]})")},
      {"FiveDimensions", "The tensor 'w' has 5 dimensions; at most 4",
       entry(safetensors_entry("w", "U8", {1, 1, 1, 1, 4}, 0, 4))},
      {"FiveDimensionsOfAFilmWrap", "The element count of tensor 'model.visual.w' overflows",
       entry(R"("model.visual.w":{"dtype":"U8","shape":[)" + big + R"(,2,1,1,4],"data_offsets":[0,4]})")},
      {"FiveDimensionsOfAFilmAreOthers", "The tensor 'visual.w' of shape [2, 1, 1, 4] and type U8 takes 8 bytes",
       entry(safetensors_entry("visual.w", "U8", {2, 1, 1, 1, 4}, 0, 4))},
      {"ShapeWraps", "The element count of tensor 'w' overflows",
       entry(R"("w":{"dtype":"U8","shape":[)" + big + "," + big + R"(],"data_offsets":[0,4]})")},
      {"BytesWrap", "The size of the tensor 'w' overflows",
       entry(R"("w":{"dtype":"F64","shape":[)" + big + R"(],"data_offsets":[0,4]})")},
      {"PartialBlock", "The tensor 'w' has 3 elements, no whole number of F4 blocks of 2.",
       entry(safetensors_entry("w", "F4", {3}, 0, 4))},
      {"OffsetsThree", "The field 'data_offsets' of tensor 'w' must be a beginning and an end",
       entry(R"("w":{"dtype":"U8","shape":[4],"data_offsets":[0,4,4]})")},
      {"OffsetsReversed", "must be a beginning and an end not before it",
       entry(safetensors_entry("w", "U8", {4}, 4, 0))},
      {"OffsetsNegative", "The field 'data_offsets' of tensor 'w' must be a list",
       entry(R"("w":{"dtype":"U8","shape":[4],"data_offsets":[-4,0]})")},
      {"SizeMismatch", "The tensor 'w' of shape [3] and type U8 takes 3 bytes, but its data_offsets span 4.",
       entry(safetensors_entry("w", "U8", {3}, 0, 4))},
      {"HoleInFront", "There is a hole in the data: the tensor 'w' begins at 2",
       entry(safetensors_entry("w", "U8", {2}, 2, 4))},
      {"HoleBetween", "There is a hole in the data: the tensor 'v' begins at 3",
       entry(safetensors_entry("u", "U8", {2}, 0, 2) + "," + safetensors_entry("v", "U8", {1}, 3, 4))},
      {"Overlap", "There is an overlap in the data: the tensor 'v' begins at 1",
       entry(safetensors_entry("u", "U8", {2}, 0, 2) + "," + safetensors_entry("v", "U8", {3}, 1, 4))},
      {"TrailingBytes", "The tensors take 2 bytes, but 4 bytes follow the header.",
       entry(safetensors_entry("u", "U8", {2}, 0, 2))},
      {"DataCut", "The tensors take 8 bytes, but 4 bytes follow the header.",
       entry(safetensors_entry("u", "U8", {8}, 0, 8))},
      {"OnlyTrailingBytes", "The tensors take 0 bytes, but 4 bytes follow", safetensors_file("{}", "1234")},
      {"MetadataArray", "'__metadata__' must be an object of strings", safetensors_file(R"({"__metadata__":[]})", "")},
      {"MetadataNumber", "'__metadata__' entry 'k' is no string", safetensors_file(R"({"__metadata__":{"k":1}})", "")},
  };
}

class SafetensorsMalformed : public testing::TestWithParam<SafetensorsCase> {};

TEST_P(SafetensorsMalformed, IsRefusedByName) {
  expect_error(GetParam().message, [&] { SafetensorsFile::parse(as_bytes(GetParam().file)); });
}

INSTANTIATE_TEST_SUITE_P(Cases, SafetensorsMalformed, testing::ValuesIn(safetensors_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- folders --------------------------------------------------------------------------------------------------------

std::string one_tensor(const std::string& name) {
  return SafetensorsBuilder().tensor(name, "U8", {1}, "x").build();
}

constexpr const char* index_name = "model.safetensors.index.json";

TEST(SafetensorsFolder, ReadsShards) {
  const TempFolder folder;
  folder.write("model-1.safetensors", one_tensor("a"));
  folder.write("model-2.safetensors", one_tensor("b"));
  folder.write(index_name, R"({"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}})");
  const SafetensorsFolder weights = SafetensorsFolder::open(folder.path());
  EXPECT_EQ(weights.files().size(), 2u);
  EXPECT_EQ(weights.tensors().size(), 2u);
}

TEST(SafetensorsFolder, RefusesShardsOutsideTheFolder) {
  for (const std::string name :
       {"../model.safetensors", "/etc/model.safetensors", "sub/model.safetensors", "..\\\\model.safetensors",
        "C:model.safetensors", "", "..", "passwd", ".hidden.safetensors", "a\\u0000.safetensors"}) {
    const TempFolder folder;
    folder.write(index_name, R"({"weight_map":{"a":")" + name + "\"}}");
    expect_error("a shard must be a .safetensors file in the same folder",
                 [&] { SafetensorsFolder::open(folder.path()); });
  }
}

TEST(SafetensorsFolder, RefusesIndicesThatDoNotFit) {
  const TempFolder folder;
  expect_error("has neither model.safetensors nor", [&] { SafetensorsFolder::open(folder.path()); });
  const auto refused = [&](std::string_view message, std::string_view index) {
    folder.write(index_name, index);
    expect_error(message, [&] { SafetensorsFolder::open(folder.path()); });
  };
  folder.write("m.safetensors", one_tensor("a"));
  folder.write("n.safetensors", one_tensor("a"));
  refused("The index has no 'weight_map'", "{}");
  refused("The index has no 'weight_map', or an empty one", R"({"weight_map":{}})");
  refused("The field 'weight_map' of the index is an array; an object", R"({"weight_map":[]})");
  refused("gives the tensor 'a' no shard's name", R"({"weight_map":{"a":1}})");
  refused("missing.safetensors does not exist", R"({"weight_map":{"a":"missing.safetensors"}})");
  refused("The tensor 'b' is not in the shard 'm.safetensors'", R"({"weight_map":{"b":"m.safetensors"}})");
  refused("The tensor 'a' is in two shards.", R"({"weight_map":{"a":"m.safetensors","b":"n.safetensors"}})");
  refused("The index is not valid JSON", "{");
  refused("twice", R"({"weight_map":{"a":"m.safetensors","a":"n.safetensors"}})");
}

}  // namespace
}  // namespace canopy
