// What people open that is no model is named, with what runs here and what to get instead.

#include "engine/format/model_paths.h"

#include <gtest/gtest.h>

#include <ostream>

#include "engine/format/architecture.h"
#include "engine/format/drafter_file.h"
#include "engine/format/model_file.h"
#include "tests/base/expect_error.h"
#include "tests/format/split_gguf.h"
#include "tests/format/tiny_model.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::expect_error;
using test::GgufBuilder;
using test::TempFolder;
using test::tiny_config;
using test::tiny_gguf;
using test::tiny_safetensors;

const std::string lfs_pointer =
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 4368439584\n";

TEST(ForeignFile, WhatRunsIsTheListOfArchitectures) {
  EXPECT_EQ(what_runs().find("these architectures run here: llama (Llama 2 and 3, Mistral, SmolLM2), mistral3 ("), 0u);
  EXPECT_TRUE(what_runs().ends_with("."));
}

TEST(ForeignFile, AGitLfsPointerNamesTheSizeOfTheRealFile) {
  const std::string words = "This is a Git LFS pointer, a short text in the place of a file of 4.37 GB";
  const TempFolder gguf;
  expect_error(words, [&] { ModelFile::open(gguf.write("m.gguf", lfs_pointer)); });
  expect_error(words, [&] { DrafterFile::open(gguf.path() / "m.gguf"); });
  for (const char* name : {"model.safetensors", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
                           "generation_config.json"}) {
    const TempFolder folder;
    folder.write("config.json", tiny_config());
    folder.write("model.safetensors", tiny_safetensors().build());
    folder.write(name, lfs_pointer);
    const std::string message = error_of([&] { ModelFile::open(folder.path()); });
    EXPECT_NE(message.find(words), std::string::npos) << message;
    EXPECT_NE(message.find(name), std::string::npos) << message;
  }
  expect_error("in the place of a file of unknown size: ", [&] {
    ModelFile::open(gguf.write("n.gguf", "version https://git-lfs.github.com/spec/v1\nsize many\n"));
  });
}

TEST(ForeignFile, ACutGgufSaysHowMuchOfItIsThere) {
  const std::string whole = tiny_gguf().build();
  const TempFolder folder;
  for (const size_t size : {whole.size() - 1, whole.size() - 2000, whole.size() - 2720}) {
    expect_error("The file is incomplete, as after a download that was cut short: get it again. " +
                     std::to_string(size) + " of " + std::to_string(whole.size()) + " bytes are there.",
                 [&] { ModelFile::open(folder.write("m.gguf", whole.substr(0, size))); });
  }
  // A stub that ends in the list of what it has begins with the same words.
  expect_error("The file is incomplete, as after a download that was cut short: get it again. The tensor count is ",
               [&] { ModelFile::open(folder.write("m.gguf", whole.substr(0, 60))); });
  const std::vector<GgufBuilder> parts = test::split_gguf(tiny_gguf(), {5, 11});
  const auto paths = test::write_parts(folder, "t", parts);
  const uint64_t size = fs::file_size(paths[1]);
  fs::resize_file(paths[1], size - 40);
  expect_error("t-00002-of-00002.gguf: The file is incomplete, as after a download that was cut short: get it again. ",
               [&] { ModelFile::open(paths[0]); });
  expect_error(std::to_string(size - 40) + " of " + std::to_string(size) + " bytes are there",
               [&] { ModelFile::open(paths[0]); });
}

struct StartCase {
  const char* name;
  std::string start;
  const char* message;
};

void PrintTo(const StartCase& c, std::ostream* out) {
  *out << c.name;
}

const StartCase start_cases[] = {
    {"PyTorchZip", std::string("PK\x03\x04\0\0", 6),
     "a ZIP archive, which is mostly a checkpoint of PyTorch (.bin, .pt, .pth): a pickle"},
    {"PyTorchPickle", "\x80\x02}q\x01", "a checkpoint of PyTorch (.bin, .pt, .pth): a pickle"},
    {"Ggml", "tjgg\x03", "a GGML file from before GGUF (2023)."},
    {"OldLora", "algg\x01", "a LoRA adapter of the time before GGUF"},
    {"Hdf5", "\x89HDF\r\n", "the weights of Keras or TensorFlow"},
    {"Gzip", "\x1F\x8B\x08", "a gzip archive."},
    {"Xz",
     "\xFD"
     "7zXZ",
     "an xz archive."},
    {"Page", "\n <!DOCTYPE HTML><html>", "It is a web page: the address of the page about the file was downloaded"},
};

class ForeignStart : public testing::TestWithParam<StartCase> {};

TEST_P(ForeignStart, IsNamedWithWhatToGetInstead) {
  const TempFolder folder;
  const std::string content = GetParam().start + std::string(100, ' ');
  const std::string message = error_of([&] { ModelFile::open(folder.write("model.bin", content)); });
  EXPECT_NE(message.find("This is no GGUF file: it begins with '"), std::string::npos) << message;
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
  EXPECT_TRUE(
      message.ends_with("Get the model as a GGUF file, or as a Hugging Face folder with safetensors; " + what_runs()))
      << message;
  EXPECT_EQ(explain_foreign_file(folder.path() / "model.bin"), explain_foreign_file(test::as_bytes(content)));
  // Under the name of weights too.
  folder.write("config.json", tiny_config());
  const std::string named = error_of([&] { ModelFile::open(folder.write("model.safetensors", content)); });
  EXPECT_NE(named.find(GetParam().message), std::string::npos) << named;
}

INSTANTIATE_TEST_SUITE_P(Starts, ForeignStart, testing::ValuesIn(start_cases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ForeignFile, ModelsAreNotForeign) {
  EXPECT_EQ(explain_foreign_file(test::as_bytes(tiny_gguf().build())), "");
  EXPECT_EQ(explain_foreign_file(test::as_bytes(tiny_safetensors().build())), "");
  EXPECT_EQ(explain_foreign_file(std::span<const std::byte>()), "");
  EXPECT_EQ(explain_foreign_file(fs::path("nowhere/at/all")), "");
}

TEST(ForeignFile, AdaptersAndProjectorsInGgufAreNoModels) {
  const TempFolder folder;
  const auto refused = [&](const char* words, const GgufBuilder& builder) {
    const auto path = folder.write("m.gguf", builder.build());
    const std::string message = error_of([&] { ModelFile::open(path); });
    EXPECT_NE(message.find(words), std::string::npos) << message;
    EXPECT_TRUE(message.ends_with(what_runs())) << message;
    EXPECT_EQ(error_of([&] { DrafterFile::open(path); }), message);
  };
  GgufBuilder lora;
  lora.text("general.type", "adapter").text("adapter.type", "lora").text("general.architecture", "llama");
  refused("This is a LoRA adapter of a model of the architecture llama, a change to the weights of a model", lora);
  GgufBuilder old_lora;
  refused("This is a LoRA adapter, a change", old_lora.text("adapter.type", "lora"));
  GgufBuilder projector;
  refused("This is the projector of images or sounds of a model (mmproj), not the model itself",
          projector.text("general.architecture", "clip"));
  GgufBuilder named;
  refused("(mmproj)", named.text("general.type", "mmproj").text("general.architecture", "llama"));
  GgufBuilder matrix;
  refused("This is an importance matrix", matrix.text("general.type", "imatrix"));
  GgufBuilder vector;
  refused("This is a control vector", vector.text("general.architecture", "controlvector"));
}

struct FolderCase {
  const char* name;
  std::vector<std::pair<const char*, std::string>> files;
  const char* message;
};

void PrintTo(const FolderCase& c, std::ostream* out) {
  *out << c.name;
}

const FolderCase folder_cases[] = {
    {"Lora",
     {{"adapter_config.json", R"({"peft_type":"LORA","base_model_name_or_path":"some/Model-8B"})"},
      {"adapter_model.safetensors", "x"}},
     "This is a LoRA adapter of 'some/Model-8B', a change to the weights of a model and no model itself; adapters "
     "cannot be applied here. Get a model that it was merged into; "},
    {"LoraUnreadable", {{"adapter_config.json", "{"}}, "This is a LoRA adapter, a change"},
    {"LoraBesideAConfig",
     {{"config.json", tiny_config()}, {"adapter_model.safetensors", "x"}, {"adapter_config.json", "{}"}},
     "This is a LoRA adapter, a change"},
    {"WeightsAlone",
     {{"model.safetensors", tiny_safetensors().build()}},
     "The folder has no config.json; a GGUF file or a Hugging Face folder is expected. It has weights, such as "
     "'model.safetensors', but these say nothing of the model they are of: get config.json"},
    {"PicklesAlone", {{"pytorch_model.bin", "x"}}, "The folder has no config.json; a GGUF file"},
    {"Pickles",
     {{"config.json", tiny_config()}, {"pytorch_model-00001-of-00002.bin", "x"}},
     "Its weights are in 'pytorch_model-00001-of-00002.bin'. It is a checkpoint of PyTorch (.bin, .pt, .pth): a "
     "pickle"},
    {"NoWeights",
     {{"config.json", tiny_config()}},
     "nor model.safetensors.index.json. Its weights were not downloaded."},
    {"OtherNames",
     {{"config.json", tiny_config()}, {"a.safetensors", "x"}},
     "Its weights are in files of other names; with several, the index says which are the model's."},
    {"Images", {{"model_index.json", "{}"}}, "It holds a model that makes images. Get the model as"},
    {"Mlx",
     {{"config.json", tiny_config(R"(,"quantization":{"group_size":64,"bits":4})")}},
     "The folder's weights are quantized for MLX, Apple's library (4 bits), which cannot be read. Get the model as a "
     "GGUF file, or the folder that it was made from; these architectures run here: "},
    {"MlxTwice",
     {{"config.json", tiny_config(R"(,"quantization":{"group_size":64,"bits":8},"quantization_config":{"bits":8})")}},
     "for MLX, Apple's library (8 bits)"},
    {"Architecture",
     {{"config.json", R"({"architectures":["Qwen2_5_VLForConditionalGeneration"]})"}},
     "The model's architecture 'Qwen2_5_VLForConditionalGeneration' (Qwen2.5-VL) is not supported. Nothing here sees "
     "pictures; for text Qwen3 and the text part of Gemma 4 run. Supported are: LlamaForCausalLM"},
    {"UnknownArchitecture",
     {{"config.json", R"({"architectures":["NobodyKnowsForCausalLM"]})"}},
     "The model's architecture 'NobodyKnowsForCausalLM' is not supported; supported are: LlamaForCausalLM"},
};

class ForeignFolder : public testing::TestWithParam<FolderCase> {};

TEST_P(ForeignFolder, IsNamedWithWhatToGetInstead) {
  const TempFolder folder;
  for (const auto& [name, content] : GetParam().files) folder.write(name, content);
  const std::string message = error_of([&] { ModelFile::open(folder.path()); });
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
  EXPECT_TRUE(message.starts_with(folder.path().string())) << message;
  EXPECT_TRUE(message.ends_with('.')) << message;
}

INSTANTIATE_TEST_SUITE_P(Folders, ForeignFolder, testing::ValuesIn(folder_cases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ForeignFile, ASafetensorsFileWithoutItsFolderSaysWhatIsMissing) {
  const TempFolder folder;
  const auto path = folder.write("model-Q4.safetensors", tiny_safetensors().build());
  expect_error("It has weights, such as 'model-Q4.safetensors', but these say nothing of the model they are of",
               [&] { ModelFile::open(path); });
}

TEST(ForeignFile, AnUnfinishedDownloadOfShardsCountsThem) {
  const TempFolder folder;
  folder.write("config.json", tiny_config());
  folder.write("a.safetensors", tiny_safetensors().build());
  folder.write("model.safetensors.index.json",
               R"({"weight_map":{"model.norm.weight":"a.safetensors","x":"b.safetensors","y":"c.safetensors"}})");
  expect_error("b.safetensors does not exist; 1 of the 3 shards that the index names are there.",
               [&] { ModelFile::open(folder.path()); });
}

}  // namespace
}  // namespace canopy
