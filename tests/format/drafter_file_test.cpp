// Every dialect of a drafter gives the same config and the same tensors.

#include "engine/format/drafter_file.h"

#include <gtest/gtest.h>

#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/format/tiny_drafter.h"

namespace canopy {
namespace {

using test::expect_error;
using test::GgufBuilder;
using test::SafetensorsBuilder;
using test::TempFolder;
using test::tiny_drafter_config;
using test::tiny_drafter_gguf;
using test::tiny_drafter_safetensors;
using test::tiny_fork_drafter;

DrafterConfig config_of(const GgufBuilder& builder) {
  const TempFolder folder;
  return DrafterFile::open(folder.write("d.gguf", builder.build())).config();
}

DrafterConfig config_of_folder(const std::string& config_json) {
  const TempFolder folder;
  folder.write("config.json", config_json);
  folder.write("model.safetensors", tiny_drafter_safetensors().build());
  return DrafterFile::open(folder.path()).config();
}

/// Checks what all files of the tiny drafter have in common.
void expect_tiny(const DrafterFile& drafter) {
  const DrafterConfig& c = drafter.config();
  EXPECT_EQ(c.transformer.layers, 2u);
  EXPECT_EQ(c.transformer.head_dim, 4u);
  EXPECT_EQ(c.transformer.rope_layout, RopeLayout::half);
  EXPECT_EQ(c.transformer.rope_theta, 10000);
  EXPECT_TRUE(c.transformer.has_qk_norm);
  EXPECT_EQ(c.block_size, 4u);
  EXPECT_EQ(c.mask_token, 9u);
  EXPECT_EQ(c.aux_layers, (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(c.feature_width(), 16u);
  EXPECT_EQ(c.vocab, 10u);
  EXPECT_EQ(c.attention, std::vector<DrafterAttention>(2));
  EXPECT_EQ(drafter.require("fc", 8, 16).bytes.size(), 512u);
  EXPECT_EQ(drafter.require("hidden_norm", 1, 8).rank, 1u);
  EXPECT_EQ(drafter.require("output_norm", 1, 8).rank, 1u);
  EXPECT_EQ(drafter.require("blk.1.ffn_norm", 1, 8).rank, 1u);
  EXPECT_EQ(drafter.tensors().size(), 25u);
  EXPECT_EQ(drafter.find("token_embd"), nullptr);
  EXPECT_NO_THROW(drafter.check_unchanged());
}

void expect_tiny_gguf(const GgufBuilder& builder, const std::string& dialect) {
  SCOPED_TRACE(dialect);
  const TempFolder folder;
  const DrafterFile drafter = DrafterFile::open(folder.write("d.gguf", builder.build()));
  expect_tiny(drafter);
  EXPECT_EQ(drafter.config().dialect, dialect);
  EXPECT_EQ(drafter.config().transformer.name, "tiny-drafter");
}

TEST(DrafterFile, ReadsHuggingFaceFolders) {
  const TempFolder folder;
  folder.write("config.json", tiny_drafter_config());
  folder.write("model.safetensors", tiny_drafter_safetensors().build());
  for (const auto& path : {folder.path(), folder.path() / "model.safetensors"}) {
    const DrafterFile drafter = DrafterFile::open(path);
    expect_tiny(drafter);
    EXPECT_EQ(drafter.config().dialect, "Hugging Face");
    EXPECT_EQ(drafter.config().target_layers, 4u);
  }
}

/// The config.json of the tiny drafter as vLLM's speculators write it; `extra` is inserted before the closing brace,
/// `layer` into the description of the layers.
std::string speculators_config(const std::string& extra = "", const std::string& layer = "",
                               const std::string& algorithm = "dflash") {
  return R"({"architectures":["DFlashSpeculator"],"speculators_model_type":")" + algorithm +
         R"(","speculators_version":"0.5.0","block_size":4,"mask_token_id":9,"target_hidden_size":null,)"
         R"("aux_hidden_state_layer_ids":[1,3],"draft_vocab_size":10,"sample_from_anchor":false,)"
         R"("speculators_config":{"algorithm":")" +
         algorithm +
         R"(","verifier":{"name_or_path":"org/model"}},)"
         R"("transformer_layer_config":{"model_type":"qwen3","hidden_size":8,"num_hidden_layers":2,)"
         R"("num_attention_heads":2,"num_key_value_heads":1,"head_dim":4,"intermediate_size":16,"vocab_size":10,)"
         R"("max_position_embeddings":64,"rms_norm_eps":1e-5)" +
         (layer.empty() ? R"(,"rope_theta":10000.0)" : layer) + "}" + extra + "}";
}

TEST(DrafterFile, ReadsTheFormOfSpeculators) {
  const TempFolder folder;
  folder.write("model.safetensors", tiny_drafter_safetensors().zeros("verifier_norm.weight", {8}).build());
  const auto open = [&](const std::string& config) {
    folder.write("config.json", config);
    return DrafterFile::open(folder.path());
  };
  EXPECT_EQ(open(speculators_config()).config().dialect, "speculators (vLLM)");
  EXPECT_TRUE(DrafterFile::is_drafter(folder.path()));
  const DrafterConfig config =
      open(speculators_config("", R"(,"rope_parameters":{"rope_type":"default","rope_theta":5e5})")).config();
  EXPECT_EQ(config.aux_layers, (std::vector<uint32_t>{0, 2})) << "one less: they are outputs here";
  EXPECT_EQ(config.transformer.rope_theta, 5e5);
  EXPECT_EQ(config.mask_token, 9u);
  EXPECT_EQ(config.vocab, 10u);
  EXPECT_EQ(config.attention, std::vector<DrafterAttention>(2));
  const std::string sliding =
      R"(,"rope_theta":1e4,"layer_types":["sliding_attention","full_attention"],"sliding_window":16)";
  using Attention = std::vector<DrafterAttention>;
  EXPECT_EQ(open(speculators_config("", sliding)).config().attention, (Attention{{16, false}, {0, false}}));
  EXPECT_EQ(open(speculators_config(R"(,"sliding_window_non_causal":false)", sliding)).config().attention,
            (Attention{{16, true}, {0, false}}));
  test::SafetensorsBuilder reduced = tiny_drafter_safetensors();
  std::string offsets;
  for (const int64_t offset : {1, 4, 6}) offsets += test::le(offset);
  reduced.tensor("d2t", "I64", {3}, offsets).tensor("t2d", "BOOL", {10}, std::string(10, '\0'));
  reduced.zeros("lm_head.weight", {3, 8}).zeros("embed_tokens.weight", {10, 8});
  folder.write("model.safetensors", reduced.build());
  std::string three = speculators_config();
  three.replace(three.find("\"draft_vocab_size\":10"), 21, "\"draft_vocab_size\":3");
  const DrafterConfig few = open(three).config();
  EXPECT_EQ(few.draft_token_ids, (std::vector<uint32_t>{1, 5, 8}));
  EXPECT_TRUE(few.own_head);
}

TEST(DrafterFile, OtherDraftersOfSpeculatorsAreNamed) {
  const auto refused = [](const char* message, const std::string& config) {
    expect_error(message, [&] { config_of_folder(config); });
  };
  refused("form of vLLM's speculators, of the algorithm 'eagle3', which is not supported; dflash and dspark are",
          speculators_config("", "", "eagle3"));
  refused("'projector_type' is 'domino'", speculators_config(R"(,"projector_type":"domino")"));
  refused("'shift_label' is true", speculators_config(R"(,"shift_label":true)"));
  refused("lacks the field 'rope_theta'", speculators_config("", R"(,"hidden_act":"silu")"));
  std::string embedding = speculators_config();
  embedding.replace(embedding.find("[1,3]"), 5, "[0,3]");
  refused("'aux_hidden_state_layer_ids' of config.json names 0", embedding);
}

TEST(DrafterFile, ReadsShards) {
  const TempFolder folder;
  folder.write("config.json", tiny_drafter_config());
  test::SafetensorsBuilder first;
  first.zeros("fc.weight", {8, 16});
  folder.write("a.safetensors", first.build());
  const std::string whole = tiny_drafter_safetensors().build();
  folder.write("b.safetensors", whole);
  folder.write("model.safetensors.index.json",
               R"({"weight_map":{"fc.weight":"a.safetensors","norm.weight":"b.safetensors"}})");
  test::expect_error("The tensor 'fc.weight' is in two shards.", [&] { DrafterFile::open(folder.path()); });
  folder.write("model.safetensors.index.json", R"({"weight_map":{"norm.weight":"b.safetensors"}})");
  expect_tiny(DrafterFile::open(folder.path()));
}

TEST(DrafterFile, ReadsLlamaCppsDialect) {
  expect_tiny_gguf(tiny_drafter_gguf(), "dflash (llama.cpp)");
}

TEST(DrafterFile, ReadsItsUnshiftedRelative) {
  GgufBuilder own_mask = tiny_drafter_gguf();
  own_mask.without("tokenizer.ggml.mask_token_id").value<uint32_t>("dflash.mask_token_id", 9);
  own_mask.without("dflash.target_layers").numbers<int32_t>("dflash.target_layers", {0, 2});
  expect_tiny_gguf(own_mask, "dflash (unshifted)");

  GgufBuilder own_aux_layers = tiny_drafter_gguf();
  own_aux_layers.without("dflash.target_layers").numbers<uint32_t>("dflash.dflash.target_layer_ids", {0, 2});
  own_aux_layers.without("dflash.block_size").value<uint32_t>("dflash.dflash.block_size", 4);
  expect_tiny_gguf(own_aux_layers, "dflash (unshifted)");
}

TEST(DrafterFile, ReadsTheForksDialects) {
  for (const char* name : {"dflash-draft", "qwen35-dflash-draft", "gemma4-dflash-draft"}) {
    expect_tiny_gguf(tiny_fork_drafter(name), name);
  }
  GgufBuilder other_names = test::drafter_keys("dflash-draft");
  other_names.value<uint32_t>("dflash-draft.block_size", 4).value<uint32_t>("dflash-draft.mask_token_id", 9);
  other_names.numbers<int32_t>("dflash-draft.target_layer_ids", {0, 2});
  test::add_drafter_tensors(other_names, "dflash_fc.weight", "dflash_hidden_norm.weight", "post_attention_norm.weight");
  expect_tiny_gguf(other_names, "dflash-draft");
}

TEST(DrafterFile, KeepsTheOrderOfTheTaps) {
  GgufBuilder b = tiny_drafter_gguf();
  b.without("dflash.target_layers").numbers<int32_t>("dflash.target_layers", {4, 2});
  EXPECT_EQ(config_of(b).aux_layers, (std::vector<uint32_t>{3, 1}));
}

TEST(DrafterFile, ReadsSlidingLayersAsCausal) {
  const std::vector<DrafterAttention> expected = {{16, true}, {0, false}};
  const std::string types = R"(,"layer_types":["sliding_attention","full_attention"],"sliding_window":16)";
  EXPECT_EQ(config_of_folder(tiny_drafter_config(types)).attention, expected);
  GgufBuilder b = tiny_drafter_gguf();
  b.value<uint32_t>("dflash.attention.sliding_window", 16);
  b.numbers<bool>("dflash.attention.sliding_window_pattern", {true, false});
  EXPECT_EQ(config_of(b).attention, expected);
}

TEST(DrafterFile, IsCausalOverridesWhatTheKindOfLayerMeans) {
  const std::string types = R"(,"layer_types":["sliding_attention","full_attention"],"sliding_window":16)";
  using Layers = std::vector<DrafterAttention>;
  EXPECT_EQ(config_of_folder(tiny_drafter_config(types + R"(,"is_causal":false)")).attention,
            (Layers{{16, false}, {0, false}}));
  EXPECT_EQ(config_of_folder(tiny_drafter_config(types, R"(,"is_causal":true)")).attention,
            (Layers{{16, true}, {0, true}}));
  EXPECT_EQ(config_of_folder(tiny_drafter_config(types + R"(,"is_causal":null)")).attention,
            (Layers{{16, true}, {0, false}}));
}

TEST(DrafterFile, ReadsTheFlagsOfJetSpec) {
  const std::string types = R"(,"layer_types":["sliding_attention","full_attention"],"sliding_window":16)";
  using Layers = std::vector<DrafterAttention>;
  const Layers causal = {{16, true}, {0, true}}, usual = {{16, true}, {0, false}},
               both_ways = {{16, false}, {0, false}};
  const auto attention = [&](const std::string& extra, const std::string& inner) {
    return config_of_folder(tiny_drafter_config(types + extra, inner)).attention;
  };
  EXPECT_EQ(attention("", R"(,"causal_head":true)"), causal);
  EXPECT_EQ(attention("", R"(,"causal":true)"), causal);
  EXPECT_EQ(attention(R"(,"is_causal":false)", R"(,"causal_head":true)"), causal) << "any of them";
  EXPECT_EQ(attention("", R"(,"causal_head":false,"causal":false)"), usual);
  EXPECT_EQ(attention(R"(,"is_causal":false)", R"(,"causal_head":false)"), both_ways);

  const DrafterConfig usual_rows = config_of_folder(tiny_drafter_config());
  EXPECT_FALSE(usual_rows.draft_shift);
  EXPECT_EQ(usual_rows.first_slot(), 1u);
  EXPECT_EQ(usual_rows.depths(), 3u);
  const DrafterConfig shifted = config_of_folder(tiny_drafter_config("", R"(,"draft_shift":true)"));
  EXPECT_EQ(shifted.first_slot(), 0u);
  EXPECT_EQ(shifted.depths(), 3u);
  GgufBuilder b = tiny_drafter_gguf();
  b.value<bool>("dflash.attention.causal", true).value<bool>("dflash.draft_shift", true);
  EXPECT_EQ(config_of(b).attention, (Layers{{0, true}, {0, true}}));
  EXPECT_EQ(config_of(b).first_slot(), 0u);
}

/// Zeros of the tables of a Markov head of rank 4, under Hugging Face's names.
SafetensorsBuilder dspark_safetensors(bool confidence) {
  SafetensorsBuilder b = tiny_drafter_safetensors();
  b.zeros("markov_head.markov_w1.weight", {10, 4}).zeros("markov_head.markov_w2.weight", {10, 4});
  if (confidence) b.zeros("confidence_head.proj.weight", {1, 12}).zeros("confidence_head.proj.bias", {1});
  return b;
}

DrafterConfig dspark_config(const std::string& config_json, bool confidence) {
  const TempFolder folder;
  folder.write("config.json", config_json);
  folder.write("model.safetensors", dspark_safetensors(confidence).build());
  return DrafterFile::open(folder.path()).config();
}

TEST(DrafterFile, ReadsTheHeadsOfDspark) {
  std::string of_class = tiny_drafter_config(
      R"(,"markov_rank":4,"markov_head_type":"vanilla","enable_confidence_head":true,"draft_vocab_size":10)");
  of_class.replace(of_class.find("DFlashDraftModel"), 16, "Qwen3DSparkModel");
  const DrafterConfig with = dspark_config(of_class, true);
  EXPECT_EQ(with.markov, (MarkovConfig{4, true, true, true}));
  EXPECT_TRUE(with.sample_from_anchor);
  EXPECT_EQ(with.first_slot(), 0u);
  EXPECT_EQ(with.depths(), 4u);
  const DrafterConfig without =
      dspark_config(tiny_drafter_config("", R"(,"markov_rank":4,"sample_from_anchor":false)"), false);
  EXPECT_EQ(without.markov, (MarkovConfig{4, false, true, false}));
  EXPECT_EQ(without.first_slot(), 1u);
  EXPECT_EQ(without.depths(), 3u);

  GgufBuilder b = tiny_drafter_gguf();
  b.zeros("markov_w1.weight", {4, 10}).zeros("markov_w2.weight", {4, 10});
  EXPECT_EQ(config_of(b).markov, (MarkovConfig{4, false, true, false}));
  EXPECT_TRUE(config_of(b).sample_from_anchor) << "where nothing is said";
  b.value<bool>("dflash.sample_from_anchor", false).value<bool>("dflash.has_confidence_head", true);
  b.zeros("conf_proj.weight", {8, 1});
  EXPECT_EQ(config_of(b).markov, (MarkovConfig{4, true, false, false})) << "of the hidden state alone";
  EXPECT_FALSE(config_of(b).sample_from_anchor);
}

TEST(DrafterFile, ReadsConvolutionsAndTheSelectorOfDflash2) {
  std::string config =
      tiny_drafter_config("", R"(,"conv_kernel_size":2,"conv_group_size":4,"selector_rank":3,"selector_top_k":5)");
  config.replace(config.find("DFlashDraftModel"), 16, "DFlash2DraftModel");
  SafetensorsBuilder b = tiny_drafter_safetensors();
  for (const std::string layer : {"layers.0.", "layers.1."}) {
    for (const std::string part : {"attention_conv.", "mlp_conv."}) {
      b.zeros(layer + part + "base_kernel", {2, 2, 8}).zeros(layer + part + "kernel_projection.weight", {8, 8});
    }
  }
  b.zeros("candidate_selector.hidden_projection.weight", {3, 8});
  b.zeros("candidate_selector.predecessor_codebook", {10, 3}).zeros("candidate_selector.successor_codebook", {10, 3});
  const TempFolder folder;
  folder.write("config.json", config);
  folder.write("model.safetensors", b.build());
  const DrafterFile drafter = DrafterFile::open(folder.path());
  EXPECT_EQ(drafter.config().conv, (DrafterConvConfig{2, 4}));
  EXPECT_EQ(drafter.config().selector, (SelectorConfig{3, 5}));
  EXPECT_EQ(drafter.config().first_slot(), 1u);
  EXPECT_EQ(drafter.config().depths(), 3u);
  EXPECT_EQ(drafter.require("blk.1.ffn_conv_base", 4, 8).rank, 3u);
  EXPECT_EQ(drafter.require("blk.0.attn_conv_proj", 8, 8).rank, 2u);
  EXPECT_EQ(drafter.require("selector_successor", 10, 3).shown_name(), "candidate_selector.successor_codebook");
}

TEST(DrafterFile, AWindowInAllLayersLeavesThoseThatAreNotCalledSlidingInBothDirections) {
  using Layers = std::vector<DrafterAttention>;
  const std::string swa = R"(,"use_swa":true,"swa_window_size":16)";
  EXPECT_EQ(config_of_folder(tiny_drafter_config("", swa)).attention, (Layers{{16, false}, {16, false}}));
  EXPECT_EQ(config_of_folder(tiny_drafter_config(R"(,"sliding_window":8)", R"(,"use_swa":true)")).attention,
            (Layers{{8, false}, {8, false}}));
  const std::string types = R"(,"layer_types":["full_attention","sliding_attention"],"sliding_window":8)";
  EXPECT_EQ(config_of_folder(tiny_drafter_config(types, swa)).attention, (Layers{{16, false}, {16, true}}));
  EXPECT_EQ(config_of_folder(tiny_drafter_config(types, R"(,"use_swa":false)")).attention,
            (Layers{{0, false}, {8, true}}));
}

TEST(DrafterFile, TheForksFlagOfCausalAttentionMeansNothingWhereItIsFalse) {
  GgufBuilder b = tiny_fork_drafter();
  b.value<uint32_t>("dflash-draft.attention.sliding_window", 16);
  b.numbers<bool>("dflash-draft.attention.sliding_window_pattern", {true, false});
  b.value<bool>("dflash-draft.attention.causal", false);
  EXPECT_EQ(config_of(b).attention, (std::vector<DrafterAttention>{{16, true}, {0, false}}));
  b.without("dflash-draft.attention.causal").value<bool>("dflash-draft.attention.causal", true);
  EXPECT_EQ(config_of(b).attention, (std::vector<DrafterAttention>{{16, true}, {0, true}}));
}

TEST(DrafterFile, FindsFieldsAtTheTopLevelAndInDflashConfig) {
  const std::string head =
      R"({"architectures":["DFlashDraftModel"],"hidden_size":8,"num_hidden_layers":2,"num_attention_heads":2,)"
      R"("num_key_value_heads":1,"head_dim":4,"intermediate_size":16,"max_position_embeddings":64,"rms_norm_eps":1e-5,)";
  const DrafterConfig inner = config_of_folder(
      head + R"("rope_parameters":{"rope_theta":1e7,"rope_type":"default"},)"
             R"("dflash_config":{"block_size":4,"mask_token_id":9,"target_layer_ids":[0,2],"num_target_layers":4}})");
  EXPECT_EQ(inner.block_size, 4u);
  EXPECT_EQ(inner.target_layers, 4u);
  EXPECT_EQ(inner.transformer.rope_theta, 1e7);
  EXPECT_EQ(inner.vocab, 0u);
  const DrafterConfig top = config_of_folder(
      head + R"("rope_theta":1e6,"block_size":4,"mask_token_id":9,"target_layer_ids":[0,2],"dflash_config":null})");
  EXPECT_EQ(top.aux_layers, (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(top.mask_token, 9u);
}

TEST(DrafterFile, ReadsScales) {
  const DrafterConfig folder = config_of_folder(tiny_drafter_config(
      R"(,"input_embedding_scale":2.5,"final_logit_softcapping":30)", R"(,"output_multiplier":0.5)"));
  EXPECT_EQ(folder.input_embedding_scale, 2.5f);
  EXPECT_EQ(folder.output_multiplier, 0.5f);
  EXPECT_EQ(folder.final_logit_softcapping, 30.0f);
  GgufBuilder b = tiny_drafter_gguf();
  b.value<float>("dflash.embedding_scale", 2.5f).value<float>("dflash.logit_scale", 0.0f);
  b.value<float>("dflash.final_logit_softcapping", 30.0f);
  EXPECT_EQ(config_of(b).input_embedding_scale, 2.5f);
  EXPECT_EQ(config_of(b).output_multiplier, 1.0f) << "converters write 0 for none";
  EXPECT_EQ(config_of(b).final_logit_softcapping, 30.0f);
}

TEST(DrafterFile, LeavesOutAVocabularyOfItsOwn) {
  GgufBuilder b = tiny_drafter_gguf();
  b.zeros("token_embd.weight", {8, 10}).zeros("output.weight", {8, 10});
  EXPECT_TRUE(config_of(b).brings_vocabulary);
  EXPECT_FALSE(config_of(tiny_drafter_gguf()).brings_vocabulary);
}

TEST(DrafterFile, NormsOfQueriesAndKeysMayBeAbsent) {
  GgufBuilder b = tiny_drafter_gguf();
  for (const char* name : {"blk.0.attn_q_norm", "blk.0.attn_k_norm", "blk.1.attn_q_norm", "blk.1.attn_k_norm"}) {
    b.without_tensor(name + std::string(".weight"));
  }
  EXPECT_FALSE(config_of(b).transformer.has_qk_norm);
}

TEST(DrafterFile, BringsItsTokenizerAlong) {
  GgufBuilder b = tiny_drafter_gguf();
  b.without("dflash.vocab_size").text("tokenizer.ggml.model", "gpt2");
  b.texts("tokenizer.ggml.tokens", {"a", "b", "c", "d", "e", "f", "g", "h", "i", "<mask>"});
  const TempFolder folder;
  const DrafterFile drafter = DrafterFile::open(folder.write("d.gguf", b.build()));
  EXPECT_EQ(drafter.tokenizer().tokens.back(), "<mask>");
  EXPECT_EQ(drafter.config().vocab, 10u);
}

}  // namespace
}  // namespace canopy
