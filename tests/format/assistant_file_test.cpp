// Assistants of Gemma 4 on disk: Hugging Face's folder and llama.cpp's GGUF, what they are told apart by, and what is
// refused of damaged ones, by name.

#include "engine/format/assistant_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "engine/format/describe.h"
#include "engine/format/draft_file.h"
#include "engine/format/eagle_file.h"
#include "engine/format/mtp_file.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/format/golden_path.h"

namespace canopy {
namespace {

using nlohmann::json;
using test::expect_error;
using test::file_bytes;
using test::golden;
using test::renamed;
using test::renumbered;
using test::TempFolder;

const char* const kAssistantFolder = "tiny-gemma4-assistant";
const char* const kAssistantGguf = "tiny-gemma4-assistant-f16.gguf";

/// A folder's copy whose configuration is another.
std::filesystem::path changed(const TempFolder& folder, const std::function<void(json&)>& change) {
  json config = json::parse(file_bytes(golden(kAssistantFolder) / "config.json"));
  change(config);
  folder.write("config.json", config.dump());
  folder.write("model.safetensors", file_bytes(golden(kAssistantFolder) / "model.safetensors"));
  return folder.path();
}

TEST(AssistantFile, IsReadFromFolderAndGguf) {
  const AssistantFile folder = AssistantFile::open(golden(kAssistantFolder)),
                      gguf = AssistantFile::open(golden(kAssistantGguf));
  for (const AssistantFile* file : {&folder, &gguf}) {
    const AssistantConfig& config = file->config();
    SCOPED_TRACE(config.dialect);
    EXPECT_EQ(config.target_hidden, 32u);
    EXPECT_EQ(config.layers.hidden, 24u);
    EXPECT_EQ(config.layers.layers, 4u);
    EXPECT_EQ(config.layers.shared_kv_layers, 4u);
    EXPECT_EQ(config.layers.windows, (std::vector<uint32_t>{12, 12, 12, 0}));
    EXPECT_EQ(config.layers.head_dim_of(0), 16u);
    EXPECT_EQ(config.layers.head_dim_of(3), 32u);
    EXPECT_EQ(config.layers.vocab, 280u);
    EXPECT_EQ(config.layers.rope_scaling.turned_pairs, 4u);
    EXPECT_EQ(config.layers.logit_softcap, 0);
    EXPECT_FALSE(config.has_centroids);
    EXPECT_EQ(config.layers.parameters, folder.config().layers.parameters + (file == &gguf ? 16 : 0));  // rope_freqs
    EXPECT_NO_THROW(file->require("pre_projection", 24, 64));
    EXPECT_NO_THROW(file->require("post_projection", 32, 24));
  }
  for (const char* name : {kAssistantFolder, kAssistantGguf}) {
    EXPECT_TRUE(AssistantFile::is_assistant(golden(name)));
    EXPECT_FALSE(EagleFile::is_eagle(golden(name)));
    EXPECT_FALSE(MtpFile::is_alone(golden(name)));
    expect_error("cannot write text by itself", [&] { ModelFile::open(golden(name)); });
    const json config = describe_json(golden(name))["config"];
    EXPECT_EQ(config["target_hidden"], 32);
    EXPECT_EQ(config["reads_keys_of_target"], true);
  }
  for (const char* name : {"tiny-gemma4", "tiny-gemma4-f16.gguf", "tiny-qwen3-eagle3", "nowhere.gguf"}) {
    EXPECT_FALSE(AssistantFile::is_assistant(golden(name))) << name;
  }
  expect_error("not an assistant of Gemma 4", [] { AssistantFile::open(golden("tiny-gemma4")); });
  expect_error("architecture 'gemma4', not an assistant", [] { AssistantFile::open(golden("tiny-gemma4-f16.gguf")); });
  expect_error("This is an assistant of Gemma 4, not a DFlash drafter",
               [] { DrafterFile::open(golden(kAssistantGguf)); });
}

TEST(AssistantFile, PairsSayWhatFits) {
  for (const char* drafter : {kAssistantFolder, kAssistantGguf}) {
    for (const char* target : {"tiny-gemma4", "tiny-gemma4-f16.gguf", "tiny-gemma4-e", "tiny-gemma4-moe"}) {
      const PairReport report = describe_pair(golden(target), golden(drafter));
      EXPECT_TRUE(report.fits) << report.reason;
      EXPECT_EQ(report.kind, DraftKind::assistant);
      EXPECT_TRUE(report.warnings.empty());
    }
  }
  EXPECT_NE(describe_pair(golden("tiny-qwen3"), golden(kAssistantGguf))
                .reason.find("it reads keys and values of models of Gemma 4; this one's architecture is qwen3."),
            std::string::npos);
  const TempFolder folder;
  const auto reason = [&](const std::function<void(json&)>& change) {
    return describe_pair(golden("tiny-gemma4"), changed(folder, change)).reason;
  };
  EXPECT_NE(reason([](json& c) { c["backbone_hidden_size"] = 64; }).find("[24, 128] is expected"), std::string::npos);
  const PairReport turned = describe_pair(
      golden("tiny-gemma4"),
      changed(folder, [](json& c) { c["text_config"]["rope_parameters"]["sliding_attention"]["rope_theta"] = 500.0; }));
  ASSERT_EQ(turned.warnings.size(), 1u);
  EXPECT_NE(turned.warnings[0].find("turns its heads by other angles"), std::string::npos);
}

/// A layer reads the last one of its kind that has keys of its own.
TEST(AssistantFile, LayersReadTheLastOfTheirKind) {
  const AssistantFile assistant = AssistantFile::open(golden(kAssistantFolder));
  const ModelConfig& own = assistant.config().layers;
  for (const auto& [target, sliding, full] :
       {std::tuple{"tiny-gemma4", 2u, 3u}, {"tiny-gemma4-e", 1u, 2u}, {"tiny-gemma4-moe", 2u, 3u}}) {
    const ModelFile model = ModelFile::open(golden(target));
    EXPECT_EQ(layer_read_by(model.config(), own, 0), sliding) << target;
    EXPECT_EQ(layer_read_by(model.config(), own, 3), full) << target;
  }
  ModelConfig full = ModelFile::open(golden("tiny-gemma4")).config();
  full.turns_locally.assign(4, false);
  expect_error("Layer 0 of the assistant reads keys of a layer with a window, and the model has none with any.",
               [&] { layer_read_by(full, own, 0); });
}

TEST(AssistantFile, ConfigurationsThatCannotBeRunAreRefusedByField) {
  const TempFolder folder;
  const auto refused = [&](const std::function<void(json&)>& change, const char* message) {
    const auto path = changed(folder, change);
    expect_error(message, [&] { AssistantFile::open(path); });
  };
  refused([](json& c) { c.erase("text_config"); }, "The field 'text_config' of config.json is missing");
  refused([](json& c) { c["text_config"] = 3; }, "'text_config'");
  refused([](json& c) { c.erase("backbone_hidden_size"); }, "'backbone_hidden_size'");
  refused([](json& c) { c["backbone_hidden_size"] = 0; }, "hidden size is 0 (backbone_hidden_size)");
  refused([](json& c) { c["text_config"]["num_kv_shared_layers"] = 2; },
          "The field 'num_kv_shared_layers' of text_config of config.json is 2, and the assistant has 4 layers");
  refused(
      [](json& c) {
        c["text_config"]["hidden_size_per_layer_input"] = 8;
        c["text_config"]["vocab_size_per_layer_input"] = 280;
      },
      "(hidden_size_per_layer_input)");
  refused([](json& c) { c["text_config"]["tie_word_embeddings"] = false; }, "'tie_word_embeddings'");
  refused([](json& c) { c["text_config"]["sliding_window"] = 0; }, "'sliding_window'");
  refused([](json& c) { c["text_config"]["sliding_window"] = 1; }, "(sliding_window) is 1; it must be at least 2");
  refused([](json& c) { c["text_config"]["hidden_activation"] = "silu"; }, "'hidden_activation'");
  refused([](json& c) { c["text_config"]["num_attention_heads"] = 8; }, "is expected");
  refused([](json& c) { c["text_config"]["layer_types"] = {"full_attention"}; }, "'layer_types'");
  refused([](json& c) { c["text_config"]["vocab_size"] = 281; }, "[281, 24] is expected");
  refused(
      [](json& c) {
        c["text_config"]["enable_moe_block"] = true;
        c["text_config"]["num_experts"] = 4;
        c["text_config"]["top_k_experts"] = 2;
        c["text_config"]["moe_intermediate_size"] = 8;
      },
      "4 experts in its layers");
}

TEST(AssistantFile, CentroidsAreLeftOutWithASentence) {
  const TempFolder folder;
  // The same file with a tensor more.
  std::string bytes = file_bytes(golden(kAssistantFolder) / "model.safetensors");
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof(header));
  json tensors = json::parse(bytes.substr(8, header));
  tensors["masked_embedding.centroids.weight"] = tensors["post_projection.weight"];
  const std::string weights = bytes.substr(8 + header), added(1536, '\0');
  tensors["masked_embedding.centroids.weight"]["data_offsets"] = {weights.size(), weights.size() + added.size()};
  const std::string text = tensors.dump();
  const uint64_t size = text.size();
  folder.write("config.json", file_bytes(golden(kAssistantFolder) / "config.json"));
  folder.write("model.safetensors",
               std::string(reinterpret_cast<const char*>(&size), sizeof(size)) + text + weights + added);
  EXPECT_TRUE(AssistantFile::open(folder.path()).config().has_centroids);
  const PairReport report = describe_pair(golden("tiny-gemma4"), folder.path());
  EXPECT_TRUE(report.fits) << report.reason;
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_NE(report.warnings[0].find("('masked_embedding'), which is left out"), std::string::npos);
}

TEST(AssistantFile, DamagedFilesAreRefusedByName) {
  const TempFolder folder;
  const auto refused = [&](const std::string& bytes, const char* message) {
    const auto path = folder.write("assistant.gguf", bytes);
    expect_error(message, [&] { AssistantFile::open(path); });
    expect_error("assistant.gguf", [&] { AssistantFile::open(path); });
  };
  refused(renamed(kAssistantGguf, "nextn.pre_projection.weight", "nextn.pro_projection.weight"),
          "The tensor 'nextn.pre_projection.weight' of the assistant is missing; its shape should be [24, 64].");
  refused(renamed(kAssistantGguf, "nextn.post_projection.weight", "nextn.past_projection.weight"),
          "The tensor 'nextn.post_projection.weight' of the assistant is missing; its shape should be [32, 24].");
  refused(renamed(kAssistantGguf, "blk.2.attn_q.weight", "blk.2.attn_x.weight"), "blk.2.attn_q");
  refused(renamed(kAssistantGguf, "blk.1.post_ffw_norm.weight", "blk.1.post_ffx_norm.weight"),
          "of the assistant is missing");
  refused(renamed(kAssistantGguf, "rope_freqs.weight", "rope_fraqs.weight"),
          "The tensor 'rope_freqs.weight' is missing");
  refused(renamed(kAssistantGguf, "token_embd.weight", "token_embx.weight"), "The tensor 'token_embd.weight'");
  refused(renumbered(kAssistantGguf, "gemma4-assistant.block_count", 3), "gemma4-assistant.attention.");
  refused(renumbered(kAssistantGguf, "gemma4-assistant.embedding_length", 32), "is expected.");
  refused(renumbered(kAssistantGguf, "gemma4-assistant.embedding_length_out", 0),
          "hidden size is 0 (embedding_length_out)");
  refused(renumbered(kAssistantGguf, "gemma4-assistant.embedding_length_out", 64), "is expected.");
  refused(renumbered(kAssistantGguf, "gemma4-assistant.attention.shared_kv_layers", 3),
          "The metadata 'gemma4-assistant.attention.shared_kv_layers' is 3, and the assistant has 4 layers");
  refused(renumbered(kAssistantGguf, "gemma4-assistant.attention.shared_kv_layers", UINT32_MAX), "shared_kv_layers");
  refused(renumbered(kAssistantGguf, "gemma4-assistant.attention.sliding_window", 0),
          "'gemma4-assistant.attention.sliding_window' is 0");
  refused(renumbered(kAssistantGguf, "gemma4-assistant.attention.key_length_swa", 0),
          "gemma4-assistant.attention.value_length_swa");
}

/// Cut anywhere it is refused; with a bit turned it is refused or stays an assistant.
TEST(AssistantFile, AFileCutAnywhereIsRefusedAndOneWithATurnedBitToo) {
  const TempFolder folder;
  const std::string whole = file_bytes(golden(kAssistantGguf));
  for (size_t size = 0; size < whole.size(); size += 1 + size / 9) {
    const auto path = folder.write("cut.gguf", std::string_view(whole).substr(0, size));
    EXPECT_THROW(AssistantFile::open(path), Error) << size;
    EXPECT_NO_THROW(AssistantFile::is_assistant(path));
  }
  for (size_t at = 0; at < whole.size() / 6; at += 1 + at / 40) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
    const auto path = folder.write("bit.gguf", bytes);
    try {
      const AssistantFile assistant = AssistantFile::open(path);
      EXPECT_EQ(assistant.config().layers.shared_kv_layers, assistant.config().layers.layers) << at;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("bit.gguf"), std::string::npos) << at;
    }
  }
}

}  // namespace
}  // namespace canopy
