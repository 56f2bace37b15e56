// Heads that predict further tokens on disk: in a model's own file or folder and alone, and what is refused of damaged
// ones, by name.

#include "engine/format/mtp_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/format/describe.h"
#include "engine/format/draft_file.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/format/golden_path.h"

namespace canopy {
namespace {

using test::expect_error;
using test::file_bytes;
using test::golden;
using test::renamed;
using test::renumbered;
using test::TempFolder;

const char* const kAlone = "mtp-tiny-qwen3_5-f16.gguf";

TEST(MtpFile, IsReadFromFoldersModelsAndFilesOfItsOwn) {
  for (const char* name : {"tiny-qwen3_5-mtp", "tiny-qwen3_5-mtp-f16.gguf", kAlone}) {
    SCOPED_TRACE(name);
    const MtpFile head = MtpFile::open(golden(name));
    EXPECT_EQ(head.config().architecture, "qwen35");
    EXPECT_EQ(head.config().layers, 1u);
    EXPECT_EQ(head.config().hidden, 64u);
    EXPECT_EQ(head.config().vocab, 1010u);
    EXPECT_FALSE(head.config().is_recurrent(0));
    EXPECT_EQ(head.config().has_trained_form, name == std::string("tiny-qwen3_5-mtp"));
    EXPECT_EQ(head.model_layers(), 4u);
    EXPECT_EQ(head.tensors().size(), 15u);
    EXPECT_EQ(head.require("fc", 64, 128).cols(), 128u);
    EXPECT_EQ(head.require("blk.0.attn_q", 256, 64).rows(), 256u);
    EXPECT_FALSE(head.has_own_embedding());
    EXPECT_FALSE(head.has_own_output());
    EXPECT_EQ(MtpFile::is_alone(golden(name)), name == std::string(kAlone));
    EXPECT_EQ(check_pair(ModelFile::open(golden("tiny-qwen3_5-mtp")), head), std::vector<std::string>());
  }
  const MtpFile mixture = MtpFile::open(golden("tiny-qwen3_5moe-mtp"));
  EXPECT_TRUE(mixture.config().layer_has_experts(0));
  EXPECT_EQ(mixture.config().parameters, MtpFile::open(golden("tiny-qwen3_5moe-mtp-f16.gguf")).config().parameters);
  EXPECT_NO_THROW(mixture.require("blk.0.ffn_up.5", 16, 32));
}

TEST(MtpFile, IsToldApartFromModelsAndDrafters) {
  EXPECT_TRUE(MtpFile::is_in(ModelFile::open(golden("tiny-qwen3_5-mtp"))));
  EXPECT_TRUE(MtpFile::is_in(ModelFile::open(golden("tiny-qwen3_5moe-mtp-f16.gguf"))));
  EXPECT_FALSE(MtpFile::is_in(ModelFile::open(golden("tiny-qwen3_5"))));
  EXPECT_FALSE(MtpFile::is_in(ModelFile::open(golden("tiny-qwen3"))));
  for (const char* name : {"tiny-qwen3", "tiny-qwen3-f16.gguf", "tiny-qwen3-dflash-b8-f16.gguf", "nowhere.gguf"}) {
    EXPECT_FALSE(MtpFile::is_alone(golden(name))) << name;
  }
  EXPECT_FALSE(DrafterFile::is_drafter(golden(kAlone)));
  const ModelFile model = ModelFile::open(golden("tiny-qwen3_5-mtp-f16.gguf"));
  EXPECT_TRUE(MtpFile::is_meant(golden(kAlone), model));
  EXPECT_TRUE(MtpFile::is_meant(golden("tiny-qwen3_5-mtp"), model));
  EXPECT_FALSE(MtpFile::is_meant(golden("tiny-qwen3"), model)) << "a model that drafts token by token";
  expect_error("tiny-qwen3", [] { MtpFile::open(golden("tiny-qwen3")); });
  expect_error(
      "mtp-tiny-qwen3_5-f16.gguf: This is a head that predicts further tokens (MTP) without the layers of its model",
      [] { ModelFile::open(golden(kAlone)); });
  expect_error("The tensor 'mtp.fc.weight' of the head that predicts further tokens is missing; its shape should be",
               [] { MtpFile::open(golden("tiny-qwen3_5")); });
}

TEST(MtpFile, PairsSayWhatFits) {
  for (const char* target : {"tiny-qwen3_5-mtp", "tiny-qwen3_5-mtp-f16.gguf"}) {
    for (const char* drafter : {"tiny-qwen3_5-mtp", "tiny-qwen3_5-mtp-f16.gguf", kAlone}) {
      const PairReport report = describe_pair(golden(target), golden(drafter));
      EXPECT_TRUE(report.fits) << target << ", " << drafter << ": " << report.reason;
      EXPECT_EQ(report.kind, DraftKind::head);
      EXPECT_TRUE(report.warnings.empty());
    }
  }
  const PairReport foreign = describe_pair(golden("tiny-qwen3_5moe-mtp"), golden(kAlone));
  EXPECT_FALSE(foreign.fits);
  EXPECT_NE(foreign.reason.find("its architecture is qwen35, the model's qwen35moe"), std::string::npos)
      << foreign.reason;
  const PairReport older = describe_pair(golden("tiny-qwen3_5"), golden(kAlone));
  EXPECT_NE(older.reason.find("its number of layers is 4, the model's 8"), std::string::npos) << older.reason;
}

TEST(MtpFile, IsDescribed) {
  const auto model = describe_json(golden("tiny-qwen3_5-mtp-f16.gguf"));
  EXPECT_EQ(model["config"]["mtp_head"]["parameters"], MtpFile::open(golden(kAlone)).config().parameters);
  EXPECT_FALSE(describe_json(golden("tiny-qwen3_5"))["config"].contains("mtp_head"));
  const auto alone = describe_json(golden(kAlone));
  EXPECT_EQ(alone["config"]["predicts_further_tokens_of"]["layers"], 4);
}

TEST(MtpFile, DamagedFilesAreRefusedByName) {
  const TempFolder folder;
  const auto refused = [&](const std::string& bytes, const char* message) {
    const auto path = folder.write("head.gguf", bytes);
    expect_error(message, [&] { MtpFile::open(path); });
    expect_error("head.gguf", [&] { MtpFile::open(path); });
  };
  refused(renamed(kAlone, "blk.4.nextn.enorm.weight", "blk.4.nextn.xnorm.weight"),
          "The tensor 'blk.4.nextn.enorm' of the head that predicts further tokens is missing; its shape should be "
          "[64].");
  refused(renamed(kAlone, "blk.4.attn_k.weight", "blk.4.attn_x.weight"), "The tensor 'blk.4.attn_k' of the head");
  refused(renamed(kAlone, "blk.4.nextn.shared_head_norm.weight", "blk.4.nextn.shared_bead_norm.weight"),
          "The tensor 'blk.4.nextn.shared_bead_norm' has no place in the head that predicts further tokens");
  refused(renumbered(kAlone, "qwen35.nextn_predict_layers", 0), "The file has 0 layers that predict further tokens");
  refused(renumbered(kAlone, "qwen35.nextn_predict_layers", 2), "The model has recurrent layers only");
  refused(renumbered(kAlone, "qwen35.nextn_predict_layers", 5), "'qwen35.nextn_predict_layers' is 5; less than");
  refused(renumbered(kAlone, "qwen35.block_count", 4),
          "'qwen35.attention.recurrent_layers' has 5 elements; 4 are expected");
  refused(renumbered(kAlone, "qwen35.embedding_length", 96), "; [96, 192] is expected.");
  refused(renumbered(kAlone, "qwen35.attention.head_count_kv", 1),
          "'blk.4.attn_k' has the shape [64, 64]; [32, 64] is");
  // Without a norm of its own it has the model's.
  std::string bytes = renamed(kAlone, "blk.4.nextn.shared_head_norm.weight", "blk.0.nextn.shared_head_norm.weight");
  EXPECT_EQ(MtpFile::open(folder.write("norm.gguf", bytes)).require("output_norm", 1, 64).name, "output_norm");
}

TEST(MtpFile, DamagedFoldersAreRefusedByName) {
  const TempFolder folder;
  const std::string config = file_bytes(golden("tiny-qwen3_5-mtp") / "config.json");
  const std::string weights = file_bytes(golden("tiny-qwen3_5-mtp") / "model.safetensors");
  const auto refused = [&](const std::string& from, const std::string& to, const char* message) {
    ASSERT_EQ(from.size(), to.size());
    std::string bytes = weights;
    const size_t at = bytes.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    folder.write("config.json", config);
    folder.write("model.safetensors", bytes.replace(at, from.size(), to));
    expect_error(message, [&] { MtpFile::open(folder.path()); });
  };
  refused("mtp.fc.weight", "mtp.fx.weight", "The tensor 'mtp.fc.weight' of the head");
  refused("mtp.pre_fc_norm_hidden.weight", "mtp.pre_fc_norm_hidder.weight",
          "The tensor 'mtp.pre_fc_norm_hidden.weight' of the head that predicts further tokens is missing; its shape "
          "should be [64].");
  refused("mtp.layers.0.self_attn.o_proj.weight", "mtp.layers.0.self_attn.x_proj.weight",
          "The tensor 'mtp.layers.0.self_attn.o_proj.weight' of the head");
  refused("mtp.norm.weight", "mtp.porm.weight", "The tensor 'mtp.norm.weight' of the head");
  refused("mtp.layers.0.input_layernorm.weight", "mtp.layers.1.input_layernorm.weight",
          "The tensor 'mtp.layers.0.input_layernorm.weight' of the head");
}

/// Cut anywhere it is refused; with a bit turned it is refused or stays a head.
TEST(MtpFile, AFileCutAnywhereIsRefusedAndOneWithATurnedBitToo) {
  const TempFolder folder;
  const std::string whole = file_bytes(golden(kAlone));
  for (size_t size = 0; size < whole.size(); size += 1 + size / 9) {
    const auto path = folder.write("cut.gguf", std::string_view(whole).substr(0, size));
    EXPECT_THROW(MtpFile::open(path), Error) << size;
    EXPECT_NO_THROW(MtpFile::is_alone(path));
  }
  for (size_t at = 0; at < whole.size() / 3; at += 1 + at / 40) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
    const auto path = folder.write("bit.gguf", bytes);
    try {
      const MtpFile head = MtpFile::open(path);
      EXPECT_EQ(head.config().layers, 1u) << at;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("bit.gguf"), std::string::npos) << at;
    }
  }
}

}  // namespace
}  // namespace canopy
