// GGUF models in several files: any part opens all of them, and what does not belong together is refused by its name.

#include "engine/format/gguf.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <ostream>

#include "engine/format/describe.h"
#include "engine/format/drafter_file.h"
#include "engine/format/model_file.h"
#include "engine/format/model_paths.h"
#include "tests/base/expect_error.h"
#include "tests/format/split_gguf.h"
#include "tests/format/tiny_drafter.h"
#include "tests/format/tiny_model.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::GgufBuilder;
using test::TempFolder;
using test::tiny_gguf;

/// The tiny model with a different number in each tensor, so that tensors cannot be mistaken for each other.
GgufBuilder numbered_gguf() {
  GgufBuilder b = tiny_gguf();
  float number = 1;
  for (GgufBuilder::Tensor& tensor : b.tensors) tensor.data.replace(0, 4, test::le(number++));
  return b;
}

/// A first part without tensors, as gguf-split --no-tensor-first-split writes it, and two with some each.
std::vector<GgufBuilder> three_parts() {
  return test::split_gguf(numbered_gguf(), {0, 5, 11});
}

TEST(GgufParts, EveryPartOpensAllOfThem) {
  const TempFolder folder, alone;
  const auto paths = test::write_parts(folder, "tiny", three_parts());
  const ModelFile whole = ModelFile::open(alone.write("tiny.gguf", numbered_gguf().build()));
  for (const fs::path& path : paths) {
    const ModelFile model = ModelFile::open(path);
    EXPECT_EQ(model.files(), paths);
    EXPECT_EQ(model.config().parameters, whole.config().parameters);
    EXPECT_EQ(model.config().tied_head, whole.config().tied_head);
    EXPECT_EQ(model.tokenizer().tokens, whole.tokenizer().tokens);
    ASSERT_EQ(model.tensors().size(), whole.tensors().size());
    for (size_t i = 0; i < whole.tensors().size(); ++i) {
      const TensorView& tensor = model.tensors()[i];
      EXPECT_EQ(tensor.name, whole.tensors()[i].name);
      EXPECT_TRUE(std::ranges::equal(tensor.bytes, whole.tensors()[i].bytes)) << tensor.name;
    }
    EXPECT_NO_THROW(model.check_unchanged());
  }
}

TEST(GgufParts, MetadataThatSpeaksOfTensorsFindsThemInOtherParts) {
  const TempFolder folder;
  GgufBuilder b = numbered_gguf();
  b.zeros("output.weight", {8, 10}).tensor("rope_freqs.weight", {2}, TensorType::f32, test::le(1.0f) + test::le(8.0f));
  const auto paths = test::write_parts(folder, "tiny", test::split_gguf(b, {1, 11, 13}));
  const ModelFile model = ModelFile::open(paths[0]);
  EXPECT_FALSE(model.config().tied_head);
  EXPECT_EQ(model.config().rope_scaling.divisors, (std::vector<float>{1, 8}));
}

TEST(GgufParts, ADrafterMayBeSplitToo) {
  const TempFolder folder;
  const GgufBuilder whole = test::tiny_drafter_gguf();
  const auto paths = test::write_parts(folder, "drafter", test::split_gguf(whole, {3, whole.tensors.size()}));
  EXPECT_TRUE(DrafterFile::is_drafter(paths[1]));
  EXPECT_EQ(DrafterFile::open(paths[1]).config().block_size, 4u);
}

TEST(GgufParts, AChangedPartIsNoticed) {
  const TempFolder folder;
  const auto paths = test::write_parts(folder, "tiny", three_parts());
  const ModelFile model = ModelFile::open(paths[0]);
  fs::resize_file(paths[2], 100);
  expect_error("-00003-of-00003.gguf changed while it was open", [&] { model.check_unchanged(); });
}

TEST(GgufParts, AreDescribedAsOneModel) {
  const TempFolder folder;
  const auto paths = test::write_parts(folder, "tiny", three_parts());
  uint64_t bytes = 0;
  for (const fs::path& path : paths) bytes += fs::file_size(path);
  const auto d = describe_json(paths[1]);
  EXPECT_EQ(d["file_bytes"], bytes);
  EXPECT_EQ(d["files"].size(), 3u);
  EXPECT_EQ(d["tensors"].size(), 11u);
  EXPECT_EQ(d["config"]["layers"], 1);
  EXPECT_EQ(d["metadata"]["general.name"], "tiny");
  EXPECT_NE(describe_text(d).find(" in 3 files\n"), std::string::npos);
  EXPECT_EQ(describe_json(folder.path())["tensors"].size(), 11u) << "the folder's only model";
}

TEST(GgufParts, AFolderOfPartsIsTheirModelAndAProjectorIsNone) {
  const TempFolder folder;
  const auto paths = test::write_parts(folder, "tiny", three_parts());
  EXPECT_EQ(resolve_model_path(folder.path()), paths[0]);
  folder.write("mmproj-F16.gguf", "x");
  EXPECT_EQ(resolve_model_path(folder.path()), paths[0]);
  EXPECT_EQ(ModelFile::open(folder.path()).tensors().size(), 11u);
  folder.write("other.gguf", "x");
  expect_error("2 GGUF models ('other.gguf', 'tiny-00001-of-00003.gguf'); open one of them",
               [&] { resolve_model_path(folder.path()); });
}

TEST(GgufParts, ADownloadInAFolderOfItsOwnIsFound) {
  const TempFolder folder;
  fs::create_directories(folder.path() / "Q4_K_M");
  const fs::path file = folder.path() / "Q4_K_M" / "tiny.gguf";
  std::ofstream(file, std::ios::binary) << tiny_gguf().build();
  EXPECT_EQ(resolve_model_path(folder.path()), file);
  fs::create_directories(folder.path() / "Q8_0");
  EXPECT_EQ(resolve_model_path(folder.path()), folder.path()) << "which of the two is not said";
}

TEST(GgufParts, AllPartsHaveTheSameName) {
  GgufBuilder unnamed = numbered_gguf();
  unnamed.without("general.name");
  const TempFolder folder;
  const auto paths = test::write_parts(folder, "tiny-Q4_K_M", test::split_gguf(unnamed, {4, 11}));
  for (const fs::path& path : paths) {
    EXPECT_EQ(model_path_name(path), "tiny-Q4_K_M.gguf");
    EXPECT_EQ(ModelFile::open(path).config().name, "tiny-Q4_K_M");
    EXPECT_EQ(gguf_part_files(path), paths);
  }
  EXPECT_FALSE(is_later_gguf_part(paths[0]));
  EXPECT_TRUE(is_later_gguf_part(paths[1]));
}

TEST(GgufParts, NamesAreReadStrictly) {
  const auto name = gguf_part_name("a-00001-of-00002-00002-of-00010.gguf");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->stem, "a-00001-of-00002");
  EXPECT_EQ(name->number, 2u);
  EXPECT_EQ(name->count, 10u);
  EXPECT_EQ(name->of_part(7), "a-00001-of-00002-00007-of-00010.gguf");
  for (const char* other :
       {"", "a.gguf", "-00001-of-00002.gguf", "a-0001-of-0002.gguf", "a-00000-of-00002.gguf", "a-00003-of-00002.gguf",
        "a-00001-of-00002.GGUF", "a-+0001-of-00002.gguf", "a-00001-of-0000x.gguf", "a-00001-of-99999.gguf"}) {
    EXPECT_FALSE(gguf_part_name(other)) << other;
    EXPECT_FALSE(is_later_gguf_part(other)) << other;
    EXPECT_EQ(gguf_part_files(other), std::vector<fs::path>{other});
  }
}

struct PartsCase {
  const char* name;
  const char* message;
  /// Changes the parts before they are written, and the files after.
  std::function<void(std::vector<GgufBuilder>&)> change;
  std::function<void(const std::vector<fs::path>&)> move = [](const auto&) {};
  size_t opened = 0;
};

void PrintTo(const PartsCase& c, std::ostream* out) {
  *out << c.name;
}

template <class T>
auto with_part_key(size_t part, const char* key, T value) {
  return [=](std::vector<GgufBuilder>& parts) { parts[part].without(key).value<T>(key, value); };
}

void copy_over(const fs::path& from, const fs::path& to) {
  fs::copy_file(from, to, fs::copy_options::overwrite_existing);
}

const auto unchanged = [](std::vector<GgufBuilder>&) {};

const PartsCase parts_cases[] = {
    {"PartMissing",
     "t-00002-of-00003.gguf: The file does not exist; it is part 2 of 3 of the model, all of which are needed.",
     unchanged, [](const auto& paths) { fs::remove(paths[1]); }},
    {"FirstMissing", "t-00001-of-00003.gguf: The file does not exist; it is part 1 of 3", unchanged,
     [](const auto& paths) { fs::remove(paths[0]); }, 2},
    {"PartEmpty", "t-00003-of-00003.gguf: The file ", unchanged,
     [](const auto& paths) { fs::resize_file(paths[2], 0); }},
    {"PartCut", "t-00002-of-00003.gguf: ", unchanged, [](const auto& paths) { fs::resize_file(paths[1], 300); }},
    {"PartIsAFolder", "t-00002-of-00003.gguf is a directory.", unchanged,
     [](const auto& paths) {
       fs::remove(paths[1]);
       fs::create_directory(paths[1]);
     }},
    {"Reordered",
     "t-00002-of-00003.gguf: This is not part 2 of 3 of the model: its 'split.no' is that of part 3; files were",
     unchanged,
     [](const auto& paths) {
       fs::rename(paths[1], paths[0].string() + ".other");
       fs::rename(paths[2], paths[1]);
       fs::rename(paths[0].string() + ".other", paths[2]);
     }},
    {"Repeated", "t-00003-of-00003.gguf: This is not part 3 of 3 of the model: its 'split.no' is that of part 2;",
     unchanged, [](const auto& paths) { copy_over(paths[1], paths[2]); }},
    {"OpenedIsAnother",
     "This is part 3 of 3 of a split model, but its name is 't-00002-of-00003.gguf', so that the "
     "others cannot be found: the name must end in '-00003-of-00003.gguf'.",
     unchanged, [](const auto& paths) { copy_over(paths[2], paths[1]); }, 1},
    {"ForeignWhole", "This is not part 2 of 3 of the model: it is no part of a split model, as it has no 'split.count'",
     [](auto& parts) { parts[1].without("split.count"); }},
    {"ForeignCount", "This is not part 2 of 3 of the model: it is of a model of 5 parts.",
     with_part_key<uint16_t>(1, "split.count", 5)},
    {"ForeignTensorCount",
     "t-00003-of-00003.gguf: This is not part 3 of 3 of the model: it is of a model of 99 tensors",
     with_part_key<int32_t>(2, "split.tensors.count", 99)},
    {"ForeignArchitecture", "its 'general.architecture' is 'qwen3', that of the others 'llama'.",
     [](auto& parts) { parts[1].text("general.architecture", "qwen3"); }},
    {"ForeignName", "its 'general.name' is 'other', that of the others 'tiny'.",
     [](auto& parts) { parts[2].text("general.name", "other"); }},
    {"ForeignTensors", "The 3 parts have 10 tensors together, but 'split.tensors.count' is 11: one of them is of",
     [](auto& parts) { parts[2].tensors.pop_back(); }},
    {"TensorInTwoParts",
     "The tensor 'token_embd.weight' is in two parts, 't-00002-of-00003.gguf' and 't-00003-of-00003",
     [](auto& parts) { parts[2].tensors.push_back(parts[1].tensors.front()); }},
    {"NumberMissing", "The metadata 'split.no' is missing.", [](auto& parts) { parts[0].without("split.no"); }},
    {"NumberMissingLater", "t-00002-of-00003.gguf: The metadata 'split.no' is missing.",
     [](auto& parts) { parts[1].without("split.no"); }},
    {"NumberOutside", "The metadata 'split.no' is 3; a model of 3 parts has those from 0 to 2.",
     with_part_key<uint16_t>(0, "split.no", 3)},
    {"NumberNegative", "'split.no' is -1; a whole number", with_part_key<int32_t>(0, "split.no", -1)},
    {"CountHuge", "The metadata 'split.count' is 65535; at most 1024 parts are allowed.",
     with_part_key<uint16_t>(0, "split.count", 65535)},
    {"CountText", "'split.count' is of type string; a whole number",
     [](auto& parts) { parts[0].without("split.count").text("split.count", "3"); }},
    {"TensorsMissing", "The metadata 'split.tensors.count' is missing.",
     [](auto& parts) {
       for (GgufBuilder& part : parts) part.without("split.tensors.count");
     }},
};

class PartsRefused : public testing::TestWithParam<PartsCase> {};

TEST_P(PartsRefused, SaysWhichPartAndWhy) {
  const TempFolder folder;
  std::vector<GgufBuilder> parts = three_parts();
  GetParam().change(parts);
  const auto paths = test::write_parts(folder, "t", parts);
  GetParam().move(paths);
  const fs::path& opened = paths[GetParam().opened];
  const std::string message = test::error_of([&] { ModelFile::open(opened); });
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
  EXPECT_TRUE(message.starts_with(opened.string())) << "the path is named: " << message;
}

INSTANTIATE_TEST_SUITE_P(Cases, PartsRefused, testing::ValuesIn(parts_cases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(GgufParts, ARenamedPartCannotFindTheOthers) {
  const TempFolder folder;
  const auto parts = three_parts();
  expect_error("This is part 1 of 3 of a split model, but its name is 'model.gguf', so that the others cannot be found",
               [&] { ModelFile::open(folder.write("model.gguf", parts[0].build())); });
}

TEST(GgufParts, OnePartIsAWholeModelUnderAnyName) {
  const TempFolder folder;
  const auto one = test::split_gguf(numbered_gguf(), {11});
  EXPECT_EQ(ModelFile::open(folder.write("any.gguf", one[0].build())).tensors().size(), 11u);
  // A name like a part's on a file that is none says nothing.
  EXPECT_EQ(ModelFile::open(folder.write("b-00002-of-00002.gguf", tiny_gguf().build())).files().size(), 1u);
}

}  // namespace
}  // namespace canopy
