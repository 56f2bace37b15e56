// EAGLE-3 heads on disk: folders as EAGLE's authors and vLLM's speculators write them and llama.cpp's GGUF, what they
// are told apart by, and what is refused of damaged ones, by name.

#include "engine/format/eagle_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "engine/format/describe.h"
#include "engine/format/draft_file.h"
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

const char* const kEagleGguf = "tiny-llama3-eagle3-f16.gguf";
const char* const kEagleHeads[] = {"tiny-qwen3-eagle3", "tiny-qwen3-eagle3-f16.gguf", "tiny-llama3-eagle3", kEagleGguf,
                                   "tiny-llama3-eagle31"};

TEST(EagleFile, IsReadFromFoldersAndGguf) {
  for (const char* name : kEagleHeads) {
    SCOPED_TRACE(name);
    const EagleFile head = EagleFile::open(golden(name));
    const EagleConfig& config = head.config();
    EXPECT_TRUE(EagleFile::is_eagle(golden(name)));
    EXPECT_FALSE(MtpFile::is_alone(golden(name)));
    EXPECT_EQ(config.layer.architecture, "eagle3");
    EXPECT_EQ(config.layer.layers, 1u);
    EXPECT_EQ(config.taps(), 3u);
    const bool is_gguf = std::string(name).ends_with(".gguf");
    EXPECT_EQ(head.layer_spec().rope, is_gguf ? RopeLayout::interleaved : RopeLayout::half);
    EXPECT_EQ(head.layer_spec().qk_norm, name == std::string("tiny-llama3-eagle31"));
  }
  const EagleFile folder = EagleFile::open(golden("tiny-qwen3-eagle3")),
                  gguf = EagleFile::open(golden("tiny-qwen3-eagle3-f16.gguf"));
  EXPECT_EQ(folder.config().draft_token_ids.size(), 384u);
  EXPECT_EQ(folder.config().draft_token_ids, gguf.config().draft_token_ids) << "offsets there, ids here";
  EXPECT_EQ(folder.config().layer.parameters, gguf.config().layer.parameters);
  EXPECT_EQ(folder.config().dialect, "EAGLE");
  EXPECT_TRUE(folder.config().aux_layers.empty());
  EXPECT_EQ(folder.config().aux_layers_of(8), (std::vector<uint32_t>{1, 3, 4}));
  EXPECT_EQ(gguf.config().aux_layers, (std::vector<uint32_t>{1, 3, 4}));
  EXPECT_FALSE(folder.has_own_embedding());
  EXPECT_EQ(folder.require("blk.0.attn_q", 128, 192).cols(), 192u);
  const EagleFile llama = EagleFile::open(golden("tiny-llama3-eagle3")),
                  llama_gguf = EagleFile::open(golden(kEagleGguf));
  EXPECT_EQ(llama.config().dialect, "speculators (vLLM)");
  EXPECT_EQ(llama.config().target_hidden, 64u);
  EXPECT_EQ(llama.config().layer.hidden, 48u);
  EXPECT_EQ(llama.config().aux_layers, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_TRUE(llama.config().norm_before_fc && llama.config().norm_before_residual);
  EXPECT_TRUE(llama_gguf.config().norm_before_fc && llama_gguf.config().norm_before_residual);
  EXPECT_TRUE(llama.has_own_embedding() && llama_gguf.has_own_embedding());
  EXPECT_EQ(llama.config().drafted_tokens(), 500u);
  EXPECT_EQ(llama.config().layer.rope_scaling.kind, RopeScaling::Kind::llama3);
  EXPECT_EQ(llama_gguf.config().layer.rope_scaling.kind, RopeScaling::Kind::factors);
  const EagleFile newer = EagleFile::open(golden("tiny-llama3-eagle31"));
  EXPECT_TRUE(newer.config().fc_norm && newer.config().norm_output);
  EXPECT_EQ(newer.config().layer.rope_theta, 1e6) << "in rope_parameters";
  EXPECT_NO_THROW(newer.require("fc_norm.2", 1, 64));
}

TEST(EagleFile, IsToldApartFromModelsAndDrafters) {
  for (const char* name : {"tiny-qwen3", "tiny-llama3", "tiny-qwen3-f16.gguf", "tiny-qwen3-dflash-b8",
                           "tiny-qwen3-dflash-b8-f16.gguf", "mtp-tiny-qwen3_5-f16.gguf", "nowhere.gguf"}) {
    EXPECT_FALSE(EagleFile::is_eagle(golden(name))) << name;
  }
  expect_error("This is a model of the class 'LlamaForCausalLM', not an EAGLE-3 head",
               [] { EagleFile::open(golden("tiny-llama3")); });
  expect_error("architecture 'qwen3', not an EAGLE-3 head", [] { EagleFile::open(golden("tiny-qwen3-f16.gguf")); });
  expect_error("This is an EAGLE-3 head, not a DFlash drafter",
               [] { DrafterFile::open(golden("tiny-qwen3-eagle3-f16.gguf")); });
  for (const char* name : {"tiny-qwen3-eagle3", "tiny-qwen3-eagle3-f16.gguf"}) {
    expect_error("cannot write text by itself", [&] { ModelFile::open(golden(name)); });
  }
}

TEST(EagleFile, PairsSayWhatFits) {
  for (const char* drafter : {"tiny-qwen3-eagle3", "tiny-qwen3-eagle3-f16.gguf"}) {
    const PairReport report = describe_pair(golden("tiny-qwen3"), golden(drafter));
    EXPECT_TRUE(report.fits) << report.reason;
    EXPECT_EQ(report.kind, DraftKind::eagle);
    EXPECT_TRUE(report.warnings.empty());
  }
  const PairReport foreign = describe_pair(golden("tiny-llama3"), golden("tiny-qwen3-eagle3"));
  EXPECT_FALSE(foreign.fits);
  EXPECT_NE(foreign.reason.find("it reads states of 96 elements, the model's hidden size is 64."), std::string::npos)
      << foreign.reason;
  const PairReport wordy = describe_pair(golden("tiny-qwen3_5-mtp"), golden("tiny-llama3-eagle31"));
  EXPECT_NE(wordy.reason.find("it was made for a vocabulary of 500 tokens; the model has"), std::string::npos)
      << wordy.reason;
}

TEST(EagleFile, IsDescribed) {
  const json config = describe_json(golden("tiny-llama3-eagle31"))["config"];
  EXPECT_EQ(config["drafted_tokens"], 160);
  EXPECT_EQ(config["taps"], (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(config["fc_norm"], true);
  EXPECT_EQ(config["dialect"], "speculators (vLLM)");
}

TEST(EagleFile, DamagedFilesAreRefusedByName) {
  const TempFolder folder;
  const auto refused = [&](const std::string& bytes, const char* message) {
    const auto path = folder.write("head.gguf", bytes);
    expect_error(message, [&] { EagleFile::open(path); });
    expect_error("head.gguf", [&] { EagleFile::open(path); });
  };
  refused(renamed(kEagleGguf, "blk.0.attn_norm_2.weight", "blk.0.attn_norm_3.weight"),
          "The tensor 'blk.0.attn_norm_2.weight' of the EAGLE-3 head is missing; its shape should be [48].");
  refused(renamed(kEagleGguf, "blk.0.attn_k.weight", "blk.0.attn_x.weight"),
          "The tensor 'blk.0.attn_k.weight' of the EAGLE-3 head is missing; its shape should be [32, 96].");
  refused(renamed(kEagleGguf, "enc.output_norm.weight", "enc.output_morn.weight"),
          "The tensor 'enc.output_norm.weight' of the");
  refused(renamed(kEagleGguf, "token_embd.weight", "token_embx.weight"),
          "The tensor 'token_embd.weight' of the EAGLE-3 head");
  refused(renamed(kEagleGguf, "rope_freqs.weight", "rope_fraqs.weight"), "has no place in an EAGLE-3 head");
  refused(renumbered(kEagleGguf, "eagle3.block_count", 2), "The EAGLE-3 head has 2 layers; one is supported.");
  refused(renumbered(kEagleGguf, "eagle3.embedding_length", 64), "is expected.");
  refused(renumbered(kEagleGguf, "eagle3.target_hidden_size", 0), "target's hidden size is 0 (target_hidden_size)");
  refused(renumbered(kEagleGguf, "eagle3.target_hidden_size", 96), "has the shape [48, 192]; [48, 288] is expected.");
  refused(renumbered(kEagleGguf, "eagle3.vocab_size", 400),
          "'tokenizer.ggml.tokens' has 500 tokens, more than the 400");
  std::string taps = file_bytes(golden(kEagleGguf));
  const std::string key = "eagle3.target_layers";
  const size_t at = taps.find(key) + key.size() + 4 + 4 + 8;  // type, type of elements, their number
  for (const auto& [value, message] : {std::pair{0,
                                                 "Element 0 of the metadata 'eagle3.target_layers' is 0; inputs of "
                                                 "layers from 1 to 65535 are allowed there"},
                                       {2,
                                        "Element 1 of the metadata 'eagle3.target_layers' is 2; inputs of layers "
                                        "from 3"},
                                       {-1, "Element 0 of the metadata 'eagle3.target_layers' is -1"}}) {
    std::memcpy(taps.data() + at, &value, sizeof(value));
    refused(taps, message);
  }
}

/// A folder's copy whose configuration has other fields.
TEST(EagleFile, ConfigurationsThatCannotBeRunAreRefusedByField) {
  const TempFolder folder;
  const auto copy = [&](const char* name, const std::function<void(json&)>& change) {
    json config = json::parse(file_bytes(golden(name) / "config.json"));
    change(config);
    folder.write("config.json", config.dump());
    folder.write("model.safetensors", file_bytes(golden(name) / "model.safetensors"));
    return folder.path();
  };
  const auto refused = [&](const char* name, const std::function<void(json&)>& change, const char* message) {
    const auto path = copy(name, change);
    expect_error(message, [&] { EagleFile::open(path); });
  };
  const char* const eagle = "tiny-qwen3-eagle3";
  const char* const newer = "tiny-llama3-eagle31";
  refused(
      eagle, [](json& c) { c["num_hidden_layers"] = 2; }, "The EAGLE-3 head has 2 layers; one is supported.");
  refused(
      eagle, [](json& c) { c["model_type"] = "gemma3"; }, "'model_type' of config.json is 'gemma3'");
  refused(
      eagle, [](json& c) { c["attention_bias"] = true; }, "'attention_bias'");
  refused(
      eagle, [](json& c) { c.erase("vocab_size"); }, "'vocab_size'");
  refused(
      eagle, [](json& c) { c["vocab_size"] = 300; }, "tensor 'd2t'");
  refused(
      eagle, [](json& c) { c["draft_vocab_size"] = 383; }, "drafts 383 tokens (draft_vocab_size), but 'd2t' names 384");
  refused(
      eagle, [](json& c) { c["norm_before_fc"] = true; },
      "The tensor 'input_norm.weight' of the EAGLE-3 head is missing; its shape should be [288].");
  refused(
      eagle,
      [](json& c) {
        c["eagle_aux_hidden_state_layer_ids"] = {2, 4};
      },
      "[96, 192] is expected.");
  refused(
      eagle,
      [](json& c) {
        c["eagle_aux_hidden_state_layer_ids"] = {2, 5, 4};
      },
      "Element 2 of the field 'eagle_aux_hidden_state_layer_ids' of config.json is 4");
  refused(
      eagle, [](json& c) { c["eagle_aux_hidden_state_layer_ids"] = json::array(); }, "has 0 elements; 1 to 64");
  refused(
      eagle, [](json& c) { c["architectures"] = {"Qwen3ForCausalLM"}; }, "not an EAGLE-3 head");
  refused(
      newer, [](json& c) { c["fc_norm"] = false; }, "The tensor 'fc_norm.0.weight' has no place in an EAGLE-3 head");
  refused(
      newer, [](json& c) { c["norm_before_fc"] = true; }, "norms its feature twice");
  refused(
      newer, [](json& c) { c["target_hidden_size"] = 80; }, "is expected.");
  refused(
      newer, [](json& c) { c["transformer_layer_config"]["layer_types"] = {"sliding_attention"}; },
      "The field 'layer_types' of config.json gives the EAGLE-3 head a sliding window");
  refused(
      newer, [](json& c) { c["transformer_layer_config"] = 3; }, "'transformer_layer_config'");
  // By other names of the class, and with ids as NVIDIA's tools write them, of outputs.
  EXPECT_TRUE(EagleFile::is_eagle(copy(eagle, [](json& c) { c["architectures"] = {"LlamaForCausalLM"}; })));
  const EagleFile exported = EagleFile::open(copy(eagle, [](json& c) {
    c["eagle_config"]["eagle_aux_hidden_state_layer_ids"] = {1, 3, 4};
  }));
  EXPECT_EQ(exported.config().aux_layers, (std::vector<uint32_t>{1, 3, 4}));
  EXPECT_EQ(EagleFile::open(copy(eagle, [](json& c) { c.erase("rope_theta"); })).config().layer.rope_theta, 10000);
  // In a model of few layers the usual three are not apart.
  expect_error("of a model of 6 layers there is no usual choice",
               [] { EagleFile::open(golden("tiny-qwen3-eagle3")).config().aux_layers_of(6); });
}

TEST(EagleFile, DamagedFoldersAreRefusedByName) {
  const TempFolder folder;
  const auto refused = [&](const char* name, const std::string& from, const std::string& to, const char* message) {
    ASSERT_EQ(from.size(), to.size());
    std::string bytes = file_bytes(golden(name) / "model.safetensors");
    const size_t at = bytes.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    folder.write("config.json", file_bytes(golden(name) / "config.json"));
    folder.write("model.safetensors", bytes.replace(at, from.size(), to));
    expect_error(message, [&] { EagleFile::open(folder.path()); });
  };
  const char* const eagle = "tiny-qwen3-eagle3";
  refused(eagle, "\"fc.weight", "\"fx.weight", "The tensor 'fc.weight' of the EAGLE-3 head is missing");
  refused(eagle, "midlayer.hidden_norm", "midlayer.hidden_morn",
          "The tensor 'midlayer.hidden_norm.weight' of the EAGLE-3 head is missing; its shape should be [96].");
  refused(
      eagle, "midlayer.self_attn.q_proj", "midlayer.self_attn.x_proj",
      "The tensor 'midlayer.self_attn.q_proj.weight' of the EAGLE-3 head is missing; its shape should be [128, 192].");
  refused(eagle, "\"lm_head", "\"lm_hexd", "The tensor 'lm_head.weight' of the EAGLE-3 head is missing");
  refused(eagle, "\"d2t\"", "\"d3t\"", "384 of 1010 tokens, but 'd2t', which names them, is missing");
  refused("tiny-llama3-eagle31", "layers.0.mlp.up_proj", "layers.0.mlp.ux_proj",
          "The tensor 'layers.0.mlp.up_proj.weight' of the EAGLE-3 head is missing");
  refused("tiny-llama3-eagle31", "fc_norm.1", "fc_norm.7", "The tensor 'fc_norm.1.weight' of the EAGLE-3 head");
  refused("tiny-llama3-eagle31", "self_attn.k_norm", "self_attn.k_morn",
          "The tensor 'layers.0.self_attn.k_norm.weight' of the EAGLE-3 head");
}

/// Cut anywhere it is refused; with a bit turned it is refused or stays a head.
TEST(EagleFile, AFileCutAnywhereIsRefusedAndOneWithATurnedBitToo) {
  const TempFolder folder;
  const std::string whole = file_bytes(golden(kEagleGguf));
  for (size_t size = 0; size < whole.size(); size += 1 + size / 9) {
    const auto path = folder.write("cut.gguf", std::string_view(whole).substr(0, size));
    EXPECT_THROW(EagleFile::open(path), Error) << size;
    EXPECT_NO_THROW(EagleFile::is_eagle(path));
  }
  for (size_t at = 0; at < whole.size() / 6; at += 1 + at / 40) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
    const auto path = folder.write("bit.gguf", bytes);
    try {
      const EagleFile head = EagleFile::open(path);
      EXPECT_EQ(head.config().layer.layers, 1u) << at;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("bit.gguf"), std::string::npos) << at;
    }
  }
}

}  // namespace
}  // namespace canopy
