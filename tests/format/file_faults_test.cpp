// Faults of a model's files as files, whatever their contents: missing, unreadable, too large, links.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "engine/format/model_file.h"
#include "engine/format/safetensors.h"
#include "tests/base/expect_error.h"
#include "tests/base/unprivileged.h"
#include "tests/format/tiny_model.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::TempFolder;
using test::tiny_config;
using test::tiny_gguf;
using test::tiny_safetensors;
using test::Unprivileged;

/// A complete Hugging Face folder, of which tests damage one file.
struct Folder : TempFolder {
  Folder() {
    write("config.json", tiny_config());
    write("model.safetensors", tiny_safetensors().build());
  }
  /// Checks that opening it is refused with these words, after its path.
  void expect_refused(std::string_view words) const {
    const std::string message = test::error_of([&] { ModelFile::open(path()); });
    EXPECT_NE(message.find(words), std::string::npos) << message;
    EXPECT_TRUE(message.starts_with(path().string())) << message;
  }
};

TEST(FileFaults, ADirectoryWithAModelsName) {
  const TempFolder folder;
  fs::create_directory(folder.path() / "model.gguf");
  expect_error("model.gguf: The folder has no config.json; a GGUF file or a Hugging Face folder is expected.",
               [&] { ModelFile::open(folder.path() / "model.gguf"); });
}

TEST(FileFaults, ADirectoryWhereAFileIsExpected) {
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja"}) {
    const Folder folder;
    fs::remove(folder.path() / name);
    fs::create_directory(folder.path() / name);
    folder.expect_refused("A file is expected, but " + (folder.path() / name).string() + " is a directory.");
  }
}

TEST(FileFaults, APipeAndADevice) {
  const TempFolder folder;
  const auto pipe = folder.path() / "model.gguf";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_error("A file is expected, but " + pipe.string() + " is a device or a pipe.", [&] { ModelFile::open(pipe); });
  expect_error("A file is expected, but /dev/null is a device or a pipe.", [] { ModelFile::open("/dev/null"); });
}

TEST(FileFaults, AnUnreadableFile) {
  const TempFolder gguf;
  const auto path = gguf.write("model.gguf", tiny_gguf().build());
  fs::permissions(path, fs::perms::none);
  const Folder folder;
  fs::permissions(folder.path() / "model.safetensors", fs::perms::none);
  const Unprivileged user;
  if (!user) GTEST_SKIP() << "root reads everything";
  expect_error("The file " + path.string() + " cannot be opened: Permission denied.", [&] { ModelFile::open(path); });
  folder.expect_refused("model.safetensors cannot be opened: Permission denied.");
}

TEST(FileFaults, AnEmptyFileOfAFolder) {
  const Folder folder;
  for (const char* name : {"generation_config.json", "tokenizer_config.json", "tokenizer.json", "chat_template.jinja",
                           "chat_template.json"}) {
    folder.write(name, "");
    folder.expect_refused("The file " + (folder.path() / name).string() + " is empty.");
    fs::remove(folder.path() / name);
  }
  folder.write("model.safetensors", "");
  folder.expect_refused("model.safetensors is empty.");
  folder.write("config.json", "");
  folder.expect_refused("config.json is not valid JSON");
}

TEST(FileFaults, FilesThatAreTooLargeAreNotRead) {
  const Folder folder;
  fs::resize_file(folder.write("config.json", "{"), (16u << 20) + 1);  // sparse
  folder.expect_refused("config.json has 16777217 bytes; at most 16777216 are allowed.");
  folder.write("config.json", tiny_config());
  fs::resize_file(folder.write("tokenizer.json", "{"), (128u << 20) + 1);
  folder.expect_refused("tokenizer.json has 134217729 bytes; at most 134217728 are allowed.");
}

TEST(FileFaults, TrailingBytesOfAGgufAreNoPartOfItAndThoseOfASafetensorsFileAreRefused) {
  const TempFolder folder;
  const auto path = folder.write("m.gguf", tiny_gguf().build() + std::string(100, 'x'));
  EXPECT_EQ(ModelFile::open(path).tensors().size(), 11u);
  const Folder hugging_face;
  hugging_face.write("model.safetensors", tiny_safetensors().build() + "x");
  hugging_face.expect_refused("model.safetensors: The tensors take 2720 bytes, but 2721 bytes follow the header.");
}

TEST(FileFaults, AHoleBetweenTheTensorsOfAGgufIsLegal) {
  const TempFolder folder;
  test::GgufBuilder b = tiny_gguf();
  uint64_t end = 0;  // of the data, which is made of multiples of the alignment
  for (const auto& tensor : b.tensors) end += tensor.data.size();
  const std::string values = test::le(1.0f) + std::string(508, '\0');
  test::GgufBuilder::Tensor& last = b.tensors.back();
  ASSERT_EQ(last.data.size(), values.size());
  last.data = values;
  last.offset = end - values.size() + 64;
  std::string file = b.build();
  file.insert(file.size() - values.size(), 64, 'h');
  const ModelFile model = ModelFile::open(folder.write("m.gguf", file));
  EXPECT_EQ(static_cast<char>(model.find("blk.0.ffn_down")->bytes[3]), values[3]);
  EXPECT_EQ(static_cast<char>(model.find("blk.0.ffn_down")->bytes[2]), values[2]);
}

TEST(FileFaults, AShardMayBeALinkButMustBeThere) {
  const TempFolder elsewhere;
  const auto blob = elsewhere.write("blob", tiny_safetensors().build());
  const Folder folder;
  fs::remove(folder.path() / "model.safetensors");
  std::string map;
  const std::string bytes = tiny_safetensors().build();
  const SafetensorsFile file = SafetensorsFile::parse(test::as_bytes(bytes));
  for (const TensorView& tensor : file.tensors()) {
    map += (map.empty() ? "\"" : ",\"") + tensor.name + "\":\"shard.safetensors\"";
  }
  folder.write("model.safetensors.index.json", "{\"weight_map\":{" + map + "}}");
  folder.expect_refused(
      "shard.safetensors does not exist; 0 of the 1 shards that the index names are there. Get the missing ones too.");
  // huggingface_hub's cache consists of such links. They are as trustworthy as the folder; a path inside an index is
  // not.
  fs::create_symlink(blob, folder.path() / "shard.safetensors");
  EXPECT_EQ(ModelFile::open(folder.path()).tensors().size(), 11u);
  fs::remove(folder.path() / "shard.safetensors");
  fs::create_symlink(elsewhere.path(), folder.path() / "shard.safetensors");
  folder.expect_refused("shard.safetensors is a directory.");
  fs::remove(folder.path() / "shard.safetensors");
  fs::create_symlink("shard.safetensors", folder.path() / "shard.safetensors");
  folder.expect_refused("shard.safetensors cannot be opened: Too many levels of symbolic links.");
}

TEST(FileFaults, ANameThatIsNoUtf8IsShownSafely) {
  const TempFolder folder;
  test::GgufBuilder b = tiny_gguf();
  b.without("general.name").text("general.name", "a\xff\x1b[31m");
  EXPECT_EQ(ModelFile::open(folder.write("m.gguf", b.build())).config().name, "a\xEF\xBF\xBD\\x1b[31m");
  b.text("general.\xff\x1b", "x").text("general.\xff\x1b", "y");
  expect_error("The metadata 'general.\xEF\xBF\xBD\\x1b' at offset ",
               [&] { ModelFile::open(folder.write("m.gguf", b.build())); });
}

TEST(FileFaults, AShardThatIsCutOrDamagedIsNamed) {
  const Folder folder;
  const std::string bytes = tiny_safetensors().build();
  folder.write("model.safetensors", bytes.substr(0, bytes.size() - 4));
  folder.expect_refused(
      "model.safetensors: The file is incomplete, as after a download that was cut short: get it again. " +
      std::to_string(bytes.size() - 4) + " of " + std::to_string(bytes.size()) +
      " bytes are there. The tensors take 2720 bytes, but 2716 bytes follow the header.");
}

}  // namespace
}  // namespace canopy
