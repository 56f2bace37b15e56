// Drafters that are damaged, of another kind or wrong are refused with the file, the field, its value and what is
// allowed.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <ostream>

#include "engine/format/drafter_file.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/format/tiny_drafter.h"
#include "tests/format/tiny_model.h"

namespace canopy {
namespace {

using test::GgufBuilder;
using test::TempFolder;
using test::tiny_drafter_config;
using test::tiny_drafter_gguf;
using test::tiny_drafter_safetensors;
using test::tiny_fork_drafter;

void expect_refused(const std::filesystem::path& path, const std::string& words) {
  const std::string message = test::error_of([&] { DrafterFile::open(path); });
  EXPECT_NE(message.find(words), std::string::npos) << "expected: " << words << "\nactual:   " << message;
  EXPECT_TRUE(message.starts_with(path.string())) << "the path is named: " << message;
}

// Cases in GGUF files.

using Change = std::function<void(GgufBuilder&)>;

struct GgufCase {
  const char* name;
  const char* message;
  Change change;
};

void PrintTo(const GgufCase& c, std::ostream* out) {
  *out << c.name;
}

Change drop(const char* key) {
  return [key](GgufBuilder& b) { b.without(key); };
}

template <class T>
Change set(const char* key, T value) {
  return [key, value](GgufBuilder& b) { b.without(key).value<T>(key, value); };
}

Change words(const char* key, const char* value) {
  return [key, value](GgufBuilder& b) { b.without(key).text(key, value); };
}

Change aux_layers(std::vector<int32_t> layers) {
  return [layers](GgufBuilder& b) { b.without("dflash.target_layers").numbers("dflash.target_layers", layers); };
}

Change drop_tensor(const char* name) {
  return [name](GgufBuilder& b) { b.without_tensor(name); };
}

Change reshape(const char* name, std::vector<uint64_t> dimensions, TensorType type = TensorType::f32) {
  return [=](GgufBuilder& b) { b.without_tensor(name).zeros(name, dimensions, type); };
}

Change extra(const char* name) {
  return [name](GgufBuilder& b) { b.zeros(name, {8}); };
}

Change sliding(uint32_t window, const std::vector<bool>& pattern) {
  return [=](GgufBuilder& b) {
    if (window != 0) b.value<uint32_t>("dflash.attention.sliding_window", window);
    std::string elements;
    for (const bool one : pattern) elements += one ? '\1' : '\0';
    b.array("dflash.attention.sliding_window_pattern", GgufType::boolean, pattern.size(), elements);
  };
}

void markov_tables(GgufBuilder& b) {
  b.zeros("markov_w1.weight", {4, 10}).zeros("markov_w2.weight", {4, 10});
}

void convolution(GgufBuilder& b, uint32_t taps, uint32_t group) {
  b.value<uint32_t>("dflash.conv_kernel_size", taps).value<uint32_t>("dflash.conv_group_size", group);
}

void selector(GgufBuilder& b, uint32_t rank, uint32_t top_k) {
  b.value<uint32_t>("dflash.selector_rank", rank).value<uint32_t>("dflash.selector_top_k", top_k);
}

constexpr const char* block = "dflash.block_size";
constexpr const char* mask = "tokenizer.ggml.mask_token_id";

const GgufCase gguf_cases[] = {
    {"ArchitectureMissing", "The metadata 'general.architecture' is missing.", drop("general.architecture")},
    {"ArchitectureNumber", "'general.architecture' is of type u32; string is expected",
     set<uint32_t>("general.architecture", 1)},
    {"ATarget", "This is a model of the architecture 'llama', not a drafter; a DFlash drafter is expected",
     words("general.architecture", "llama")},
    {"AnotherDrafter", "This is an EAGLE-3 head, not a DFlash drafter, which is expected here.",
     words("general.architecture", "eagle3")},
    {"BlockMissing", "The metadata 'dflash.block_size' is missing.", drop(block)},
    {"BlockText", "'dflash.block_size' is of type string; a whole number is expected", words(block, "8")},
    {"BlockNegative", "'dflash.block_size' is -4; a whole number from 0", set<int32_t>(block, -4)},
    {"BlockZero", "block size is 0; 2 to 64 is allowed", set<uint32_t>(block, 0)},
    {"BlockOne", "block size is 1; 2 to 64 is allowed", set<uint32_t>(block, 1)},
    {"BlockHuge", "block size is 4294967295; 2 to 64 is allowed", set<uint32_t>(block, UINT32_MAX)},
    {"TapsMissing", "The metadata 'dflash.target_layers' is missing.", drop("dflash.target_layers")},
    {"TapsOneNumber", "'dflash.target_layers' is of type u32; an array of i32 is expected",
     set<uint32_t>("dflash.target_layers", 3)},
    {"TapsFloats", "'dflash.target_layers' is of type an array of f32; an array of i32 is expected",
     [](auto& b) {
       b.without("dflash.target_layers").template numbers<float>("dflash.target_layers", {1, 2});
     }},
    {"TapsEmpty", "names 0 target layers (taps); 1 to 64 are allowed", aux_layers({})},
    {"TapsMany", "names 65 target layers (taps); 1 to 64 are allowed",
     [](auto& b) {
       std::vector<int32_t> many;
       for (int32_t i = 1; i <= 65; ++i) many.push_back(i);
       aux_layers(many)(b);
     }},
    {"TapsDuplicate", "names target layer 2 twice among its taps", aux_layers({3, 3})},
    {"TapZero",
     "'dflash.target_layers' holds 0; at least 1 is expected, this dialect (dflash (llama.cpp)) counts from 1",
     aux_layers({0, 3})},
    {"TapNegative", "'dflash.target_layers' holds -1; at least 1", aux_layers({1, -1})},
    {"TapOutside", "tap 2 is outside the 2 layers that it says its target has (0 to 1)",
     set<uint32_t>("dflash.num_target_layers", 2)},
    {"MaskMissing", "The metadata 'tokenizer.ggml.mask_token_id' is missing.", drop(mask)},
    {"MaskBoolean", "'tokenizer.ggml.mask_token_id' is of type boolean; a whole number", set<bool>(mask, true)},
    {"MaskOutside", "mask token is 10, outside its vocabulary of 10 tokens", set<uint32_t>(mask, 10)},
    {"LayersZero", "layer count is 0; 1 to 512 is allowed", set<uint32_t>("dflash.block_count", 0)},
    {"LayersHuge", "layer count is 4294967295", set<uint32_t>("dflash.block_count", UINT32_MAX)},
    {"LayersMore", "The tensor 'blk.2.attn_norm' is missing; its shape should be [8].",
     set<uint32_t>("dflash.block_count", 3)},
    {"LayersFewer", "The tensor 'blk.1.attn_norm' has no place in a DFlash drafter",
     set<uint32_t>("dflash.block_count", 1)},
    {"HiddenMissing", "The metadata 'dflash.embedding_length' is missing.", drop("dflash.embedding_length")},
    {"HeadsZero", "head count is 0", set<uint32_t>("dflash.attention.head_count", 0)},
    {"HeadDimOdd", "head dimension is 5; it must be even", set<uint32_t>("dflash.attention.key_length", 5)},
    {"FfnZero", "feed-forward size is 0", set<uint32_t>("dflash.feed_forward_length", 0)},
    {"ContextMissing", "The metadata 'dflash.context_length' is missing.", drop("dflash.context_length")},
    {"ContextZero", "context length is 0", set<uint32_t>("dflash.context_length", 0)},
    {"EpsMissing", "'dflash.attention.layer_norm_rms_epsilon' is missing",
     drop("dflash.attention.layer_norm_rms_epsilon")},
    {"EpsNan", "RMS norm epsilon is nan", set<float>("dflash.attention.layer_norm_rms_epsilon", NAN)},
    {"ThetaMissing", "The metadata 'dflash.rope.freq_base' is missing.", drop("dflash.rope.freq_base")},
    {"ThetaNan", "rope theta is nan", set<float>("dflash.rope.freq_base", NAN)},
    {"RopeSections", "'dflash.rope.dimension_sections' splits the rotary embedding (element 0 is 1); only [2, 0, 0, 0]",
     [](auto& b) {
       b.template numbers<int32_t>("dflash.rope.dimension_sections", {1, 1, 0, 0});
     }},
    {"WindowWithoutPattern", "a sliding window of 16 positions, but 'dflash.attention.sliding_window_pattern'",
     set<uint32_t>("dflash.attention.sliding_window", 16)},
    {"PatternWithoutWindow", "Layer 1 of the drafter is sliding by", sliding(0, {false, true})},
    {"PatternShort", "'dflash.attention.sliding_window_pattern' has 1 elements; 2 are expected", sliding(16, {true})},
    {"PatternNoBoolean", "Element 1 of the metadata 'dflash.attention.sliding_window_pattern' is 2; only 0 and 1",
     [](auto& b) {
       b.template value<uint32_t>("dflash.attention.sliding_window", 16);
       b.array("dflash.attention.sliding_window_pattern", GgufType::boolean, 2, "\1\2");
     }},
    {"PatternNumbers", "is of type an array of i32; an array of boolean is expected",
     [](auto& b) {
       b.template numbers<int32_t>("dflash.attention.sliding_window_pattern", {1, 0});
     }},
    {"CausalText", "'dflash.attention.causal' is of type string; boolean is expected",
     words("dflash.attention.causal", "false")},
    {"ShiftNumber", "'dflash.draft_shift' is of type u32; boolean is expected", set<uint32_t>("dflash.draft_shift", 1)},
    {"Activation", "'dflash.hidden_activation' is 'gelu'; only silu is supported",
     words("dflash.hidden_activation", "gelu")},
    {"AttentionScale", "'dflash.attention.scale' scales attention, which is not supported",
     set<float>("dflash.attention.scale", 1.0f)},
    {"EmbeddingScaleNan", "input embedding scale is nan", set<float>("dflash.embedding_scale", NAN)},
    {"EmbeddingScaleNegative", "input embedding scale is -1; a number above 0",
     set<float>("dflash.embedding_scale", -1)},
    {"LogitScaleInfinite", "output multiplier is inf", set<float>("dflash.logit_scale", INFINITY)},
    {"SoftcapNegative", "final logit softcapping is -2; a number from 0",
     set<float>("dflash.final_logit_softcapping", -2)},
    {"TargetHidden", "hidden size is 8, its target's 16; they must be equal",
     set<uint32_t>("dflash.target_hidden_size", 16)},
    {"ConvGroupMissing", "The drafter's convolution has groups of 0 columns (conv_group_size); a divisor of",
     set<uint32_t>("dflash.conv_kernel_size", 2)},
    {"ConvGroupOdd",
     "The drafter's convolution has groups of 3 columns (conv_group_size); a divisor of the hidden size, 8",
     [](auto& b) { convolution(b, 2, 3); }},
    {"ConvTapsMissing", "The drafter's convolution has 0 taps (conv_kernel_size); 1 to 8 are allowed.",
     set<uint32_t>("dflash.conv_group_size", 4)},
    {"ConvTapsHuge", "The drafter's convolution has 4294967295 taps (conv_kernel_size); 1 to 8 are allowed.",
     [](auto& b) { convolution(b, UINT32_MAX, 4); }},
    {"ConvTensorMissing", "The tensor 'blk.0.attn_conv_base' is missing; its shape should be [4, 8].",
     [](auto& b) { convolution(b, 2, 4); }},
    {"ConvBaseShape", "The tensor 'blk.0.attn_conv_base' has the shape [2, 3, 8]; [4, 8] is expected.",
     [](auto& b) {
       convolution(b, 2, 4);
       b.zeros("blk.0.attn_conv_base", {8, 3, 2});
     }},
    {"ConvProjectionShape", "The tensor 'blk.0.attn_conv_proj' has the shape [4, 8]; [8, 8] is expected.",
     [](auto& b) {
       convolution(b, 2, 4);
       b.zeros("blk.0.attn_conv_base", {8, 2, 2}).zeros("blk.0.attn_conv_proj.weight", {8, 4});
     }},
    {"SelectorRankMissing", "The rank of the drafter's candidate selector is 0; 1 to 4096 is allowed.",
     set<uint32_t>("dflash.selector_top_k", 4)},
    {"SelectorCandidatesMissing",
     "The drafter's candidate selector has 0 candidates (selector_top_k); 1 to 10 are allowed.",
     set<uint32_t>("dflash.selector_rank", 4)},
    {"SelectorCandidatesMany", "has 11 candidates (selector_top_k); 1 to 10 are allowed.",
     [](auto& b) { selector(b, 4, 11); }},
    {"SelectorTensorMissing", "The tensor 'selector_hidden' is missing; its shape should be [4, 8].",
     [](auto& b) { selector(b, 4, 5); }},
    {"SelectorCodebookShape", "The tensor 'selector_predecessor' has the shape [9, 4]; [10, 4] is expected.",
     [](auto& b) {
       selector(b, 4, 5);
       b.zeros("selector_hidden.weight", {8, 4}).zeros("selector_predecessor.weight", {4, 9});
     }},
    {"SelectorAndMarkov", "The drafter has a Markov head and a candidate selector; one of them is supported.",
     [](auto& b) {
       markov_tables(b);
       selector(b, 4, 5);
     }},
    {"MarkovTensorMissing", "The tensor 'markov_w1' is missing; its shape should be [10, 256].",
     set<uint32_t>("dflash.markov_rank", 256)},
    {"MarkovRankHuge", "The rank of the drafter's Markov head is 1000000; 1 to 4096 is allowed.",
     set<uint32_t>("dflash.markov_rank", 1000000)},
    {"MarkovRankOfTensorHuge", "The rank of the drafter's Markov head is 5000; 1 to 4096 is allowed.",
     reshape("markov_w1.weight", {5000, 10})},
    {"MarkovTableOfOneVector", "The tensor 'markov_w1' has the shape [8]; [10, 8] is expected.",
     extra("markov_w1.weight")},
    {"MarkovTableOfOthers", "The tensor 'markov_w1' has the shape [9, 4]; [10, 4] is expected.",
     reshape("markov_w1.weight", {4, 9})},
    {"SecondMarkovTableMissing", "The tensor 'markov_w2' is missing; its shape should be [10, 4].",
     reshape("markov_w1.weight", {4, 10})},
    {"SecondMarkovTableAlone", "The tensor 'markov_w2' has no place in a DFlash drafter", extra("markov_w2.weight")},
    {"ConfidenceAlone", "The drafter has a confidence head, but no Markov head: the tensor 'markov_w1' is missing.",
     set<bool>("dflash.has_confidence_head", true)},
    {"ConfidenceMissing", "The tensor 'conf_proj' is missing; its shape should be [12].",
     [](auto& b) {
       markov_tables(b);
       b.template value<bool>("dflash.has_confidence_head", true);
     }},
    {"ConfidenceShape", "The tensor 'conf_proj' has the shape [1, 13]; [12] is expected.",
     [](auto& b) {
       markov_tables(b);
       b.zeros("conf_proj.weight", {13, 1});
     }},
    {"ConfidenceBiasShape", "The tensor 'conf_proj.bias' has the shape [2]; [1] is expected.",
     [](auto& b) {
       markov_tables(b);
       b.zeros("conf_proj.weight", {12, 1}).zeros("conf_proj.bias", {2});
     }},
    {"ConfidenceBiasAlone", "The tensor 'conf_proj.bias' has no place in a DFlash drafter",
     [](auto& b) {
       markov_tables(b);
       b.zeros("conf_proj.bias", {1});
     }},
    {"AnchorText", "'dflash.sample_from_anchor' is of type string; boolean is expected",
     words("dflash.sample_from_anchor", "yes")},
    {"AnchorAndShift", "The drafter's 'sample_from_anchor' and 'draft_shift' are both true",
     [](auto& b) {
       b.template value<bool>("dflash.sample_from_anchor", true).template value<bool>("dflash.draft_shift", true);
     }},
    {"MarkovAndSoftcap", "a Markov head beside an output multiplier or a final logit softcapping",
     [](auto& b) {
       markov_tables(b);
       b.template value<float>("dflash.final_logit_softcapping", 30.0f);
     }},
    {"OtherLayers", "a drafter with layers of another architecture, as the metadata 'dflash.decoder_arch' says",
     words("dflash.decoder_arch", "laguna")},
    {"ConvTensorAlone", "The tensor 'blk.0.attn_conv_base' has no place in a DFlash drafter",
     extra("blk.0.attn_conv_base")},
    {"SelectorTensorAlone", "The tensor 'selector_predecessor' has no place in a DFlash drafter",
     extra("selector_predecessor.weight")},
    {"UnknownTensor", "The tensor 'blk.0.attn_sinks' has no place in a DFlash drafter",
     extra("blk.0.attn_sinks.weight")},
    {"Bias", "The tensor 'blk.0.attn_q.bias' has no place in a DFlash drafter", extra("blk.0.attn_q.bias")},
    {"FcMissing", "The tensor 'fc' is missing; its shape should be [8, 16].", drop_tensor("fc.weight")},
    {"FcOfOtherTaps", "The tensor 'fc' has the shape [8, 24]; [8, 16] is expected.", reshape("fc.weight", {24, 8})},
    {"HiddenNormMissing", "The tensor 'hidden_norm' is missing; its shape should be [8].",
     drop_tensor("enc.output_norm.weight")},
    {"OutputNormShape", "The tensor 'output_norm' has the shape [4]; [8] is expected.",
     reshape("output_norm.weight", {4})},
    {"LayerTensorMissing", "The tensor 'blk.1.attn_v' is missing; its shape should be [4, 8].",
     drop_tensor("blk.1.attn_v.weight")},
    {"OneNormOfQueriesMissing", "The tensor 'blk.1.attn_q_norm' is missing; its shape should be [4].",
     drop_tensor("blk.1.attn_q_norm.weight")},
    {"TensorTransposed", "The tensor 'blk.0.ffn_down' has the shape [16, 8]; [8, 16] is expected.",
     reshape("blk.0.ffn_down.weight", {8, 16})},
    {"TensorType", "The tensor 'fc' is stored as I32; supported types: F32",
     reshape("fc.weight", {16, 8}, TensorType::i32)},
    {"NameStandsTwice", "There are two tensors that stand for 'fc'.", extra("dflash.fc.weight")},
    {"TokenizerOutside", "'tokenizer.ggml.tokens' has 11 tokens, more than the 10",
     [](auto& b) {
       b.text("tokenizer.ggml.model", "gpt2");
       b.texts("tokenizer.ggml.tokens", {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"});
     }},
    {"Split", "The metadata 'split.no' is missing.", set<uint16_t>("split.count", 3)},
};

class DrafterGgufRefused : public testing::TestWithParam<GgufCase> {};

TEST_P(DrafterGgufRefused, SaysWhy) {
  const TempFolder folder;
  GgufBuilder builder = tiny_drafter_gguf();
  GetParam().change(builder);
  expect_refused(folder.write("d.gguf", builder.build()), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(Cases, DrafterGgufRefused, testing::ValuesIn(gguf_cases),
                         [](const auto& info) { return std::string(info.param.name); });

// Cases with the keys of forks.

const GgufCase fork_cases[] = {
    {"BlockMissing", "The metadata 'dflash-draft.block_size' is missing.", drop("dflash-draft.dflash.block_size")},
    {"TapsMissing", "The metadata 'dflash-draft.dflash.target_layer_ids' is missing.",
     drop("dflash-draft.dflash.target_layer_ids")},
    {"TapNegative", "'dflash-draft.dflash.target_layer_ids' holds -1; at least 0 is expected.",
     [](auto& b) {
       const char* key = "dflash-draft.dflash.target_layer_ids";
       b.without(key).template numbers<int32_t>(key, {-1, 2});
     }},
    {"MaskMissing", "The metadata 'dflash-draft.dflash.mask_token_id' is missing.",
     drop("dflash-draft.dflash.mask_token_id")},
    {"MaskOutside", "mask token is 12, outside its vocabulary of 10 tokens",
     set<uint32_t>("dflash-draft.dflash.mask_token_id", 12)},
    {"Dspark",
     "This is a DSpark drafter in a fork's dialect, as the metadata 'dflash-draft.dflash.dspark.enabled' says",
     set<uint32_t>("dflash-draft.dflash.dspark.enabled", 1)},
    {"TwoNormsForOne", "There are two tensors that stand for 'blk.0.ffn_norm'.",
     extra("blk.0.post_attention_norm.weight")},
};

class DrafterForkRefused : public testing::TestWithParam<GgufCase> {};

TEST_P(DrafterForkRefused, SaysWhy) {
  const TempFolder folder;
  GgufBuilder builder = tiny_fork_drafter();
  GetParam().change(builder);
  expect_refused(folder.write("d.gguf", builder.build()), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(Cases, DrafterForkRefused, testing::ValuesIn(fork_cases),
                         [](const auto& info) { return std::string(info.param.name); });

// Cases in config.json.

struct ConfigCase {
  const char* name;
  const char* message;
  std::string from;  // text to replace in the config of the tiny drafter
  std::string to;
};

void PrintTo(const ConfigCase& c, std::ostream* out) {
  *out << c.name;
}

const std::string end = ",\"target_layer_ids\":[0,2]}";  // end of dflash_config, with more of config.json after it

const ConfigCase config_cases[] = {
    {"NoJson", "config.json is not valid JSON", "{\"arch", "\"arch"},
    {"ClassMissing", "config.json lacks the field 'architectures'.", "architectures", "x"},
    {"ClassText", "The field 'architectures' of config.json is \"DFlashDraftModel\"; a list is expected",
     "[\"DFlashDraftModel\"]", "\"DFlashDraftModel\""},
    {"TwoClasses", "must be a list of one class name", "[\"DFlash", "[\"A\",\"DFlash"},
    {"ATarget", "This is a model of the class 'Qwen3ForCausalLM', not a drafter", "DFlashDraftModel",
     "Qwen3ForCausalLM"},
    {"AnotherDrafter",
     "This is a drafter of the class 'DFlash3DraftModel', which is not supported; DFlashDraftModel, DFlash2DraftModel "
     "or",
     "DFlashDraftModel", "DFlash3DraftModel"},
    {"Dflash2WithoutConvolution", "dflash_config of config.json lacks the field 'conv_kernel_size'", "DFlashDraftModel",
     "DFlash2DraftModel"},
    {"SelectorWithoutCandidates", "has 0 candidates (selector_top_k); 1 to 10 are allowed.", end,
     ",\"selector_rank\":256" + end},
    {"ConvTapsText", "The field 'conv_kernel_size' of dflash_config of config.json is \"2\"; a whole number", end,
     ",\"conv_kernel_size\":\"2\"" + end},
    {"DsparkWithoutRank", "dflash_config of config.json lacks the field 'markov_rank'", "DFlashDraftModel",
     "Qwen3DSparkModel"},
    {"MarkovRankZero", "The field 'markov_rank' of config.json is 0; a DSpark drafter has a Markov head.",
     "[\"DFlashDraftModel\"]", "[\"Qwen3DSparkModel\"],\"markov_rank\":0"},
    {"MarkovRankText", "The field 'markov_rank' of config.json is \"x\"; a whole number", "[\"DFlashDraftModel\"]",
     "[\"Qwen3DSparkModel\"],\"markov_rank\":\"x\""},
    {"MarkovKind", "The field 'markov_head_type' of config.json is 'gated'; vanilla is supported.", end,
     ",\"markov_rank\":4,\"markov_head_type\":\"gated\"" + end},
    {"MarkovTensorMissing", "The tensor 'markov_w1' is missing; its shape should be [10, 4].", end,
     ",\"markov_rank\":4" + end},
    {"AnchorNumber", "The field 'sample_from_anchor' of dflash_config of config.json is 1; true or false", end,
     ",\"sample_from_anchor\":1" + end},
    {"DflashConfigList", "The field 'dflash_config' of config.json is an array; an object is expected",
     "\"dflash_config\":{", "\"dflash_config\":[],\"x\":{"},
    {"MaskMissing", "dflash_config of config.json lacks the field 'mask_token_id'", "mask_token_id", "x"},
    {"MaskNull", "dflash_config of config.json lacks the field 'mask_token_id'", "id\":9", "id\":null"},
    {"MaskText", "The field 'mask_token_id' of dflash_config of config.json is \"9\"; a whole number", "id\":9",
     "id\":\"9\""},
    {"MaskOutside", "mask token is 10, outside its vocabulary of 10 tokens", "id\":9", "id\":10"},
    {"TapsMissing", "dflash_config of config.json lacks the field 'target_layer_ids'", "target_layer_ids", "x"},
    {"TapsNumber", "'target_layer_ids' of dflash_config of config.json is 2; a list is expected", "[0,2]", "2"},
    {"TapsEmpty", "names 0 target layers (taps)", "[0,2]", "[]"},
    {"TapNegative", "'target_layer_ids' of dflash_config of config.json is -1; a whole number", "[0,2]", "[-1,2]"},
    {"TapText", "'target_layer_ids' of dflash_config of config.json is \"a\"; a whole number", "[0,2]", "[\"a\",2]"},
    {"TapsDuplicate", "names target layer 2 twice", "[0,2]", "[2,2]"},
    {"TapOutside", "tap 4 is outside the 4 layers that it says its target has (0 to 3)", "[0,2]", "[0,4]"},
    {"BlockMissing", "lacks the field 'block_size'", "\"block_size\":4,", ""},
    {"BlockTwice", "The field 'block_size' of config.json is 4 at the top level, but 8 in dflash_config", end,
     ",\"block_size\":8" + end},
    {"BlockHalf", "The field 'block_size' of config.json is 4.5; a whole number", "block_size\":4", "block_size\":4.5"},
    {"BlockZero", "block size is 0; 2 to 64 is allowed", "block_size\":4", "block_size\":0"},
    {"BlockHuge", "block size is 100000; 2 to 64 is allowed", "block_size\":4", "block_size\":100000"},
    {"LayerTypesShort", "The field 'layer_types' of config.json has 1 elements; 2 are expected, one a layer.", end,
     end + ",\"layer_types\":[\"full_attention\"]"},
    {"LayerTypeUnknown",
     "Element 1 of the field 'layer_types' of config.json is 'linear_attention'; full_attention and", end,
     end + ",\"layer_types\":[\"full_attention\",\"linear_attention\"]"},
    {"LayerTypeNumber", "Element 0 of the field 'layer_types' of config.json is '7'", end,
     end + ",\"layer_types\":[7,7]"},
    {"WindowMissing", "config.json lacks the field 'sliding_window'", end,
     end + ",\"layer_types\":[\"full_attention\",\"sliding_attention\"]"},
    {"WindowZero", "The field 'sliding_window' of config.json is 0; at least 1 is expected", end,
     end + ",\"sliding_window\":0,\"layer_types\":[\"full_attention\",\"sliding_attention\"]"},
    {"SwaWindowZero", "The field 'swa_window_size' of dflash_config of config.json is 0; at least 1 is expected",
     "\"mask_token_id\":9", "\"mask_token_id\":9,\"use_swa\":true,\"swa_window_size\":0"},
    {"SwaWindowMissing", "config.json lacks the field 'sliding_window'", end, end + ",\"use_swa\":true"},
    {"SwaText", "The field 'use_swa' of config.json is \"all\"; true or false is expected", end,
     end + ",\"use_swa\":\"all\""},
    {"CausalText", "The field 'is_causal' of config.json is \"no\"; true or false is expected", end,
     end + ",\"is_causal\":\"no\""},
    {"CausalHeadText", "The field 'causal_head' of dflash_config of config.json is \"yes\"; true or false is expected",
     end, ",\"causal_head\":\"yes\"" + end},
    {"ShiftNumber", "The field 'draft_shift' of dflash_config of config.json is 2; true or false is expected", end,
     ",\"draft_shift\":2" + end},
    {"ShiftTwice", "The field 'draft_shift' of config.json is true at the top level, but false in dflash_config",
     "\"target_layer_ids\":[0,2]}", "\"target_layer_ids\":[0,2],\"draft_shift\":false},\"draft_shift\":true"},
    {"ThetaMissing", "config.json lacks the field 'rope_theta', at the top level and in 'rope_parameters'.",
     "\"rope_theta\":10000.0,", ""},
    {"ThetaZero", "rope theta is 0", "10000.0", "0"},
    {"RopeUnknown", "config.json's rope scaling is of type 'ntk'; supported are", end,
     end + ",\"rope_scaling\":{\"rope_type\":\"ntk\",\"factor\":2}"},
    {"Activation", "The field 'hidden_act' of config.json is 'gelu'; only silu is supported", end,
     end + ",\"hidden_act\":\"gelu\""},
    {"AttentionBias", "The field 'attention_bias' of config.json is true; biases are not supported", end,
     end + ",\"attention_bias\":true"},
    {"SoftcapText",
     "The field 'final_logit_softcapping' of dflash_config of config.json is \"x\"; a number is expected", end,
     ",\"final_logit_softcapping\":\"x\"" + end},
    {"ScaleZero", "input embedding scale is 0; a number above 0", end, ",\"input_embedding_scale\":0" + end},
    {"ScaleHuge", "output multiplier is inf", end, ",\"output_multiplier\":1e300" + end},
    {"TargetHidden", "The field 'target_hidden_size' of dflash_config of config.json is 16; only", end,
     ",\"target_hidden_size\":16" + end},
    {"HiddenMissing", "config.json lacks the field 'hidden_size'", "hidden_size", "x"},
    {"OtherHidden", "The tensor 'fc.weight' has the shape [8, 16]; [16, 32] is expected.", "\"hidden_size\":8",
     "\"hidden_size\":16"},
};

class DrafterConfigRefused : public testing::TestWithParam<ConfigCase> {};

TEST_P(DrafterConfigRefused, SaysWhy) {
  const TempFolder folder;
  std::string config = tiny_drafter_config();
  const size_t place = config.find(GetParam().from);
  ASSERT_NE(place, std::string::npos);
  config.replace(place, GetParam().from.size(), GetParam().to);
  folder.write("config.json", config);
  folder.write("model.safetensors", tiny_drafter_safetensors().build());
  expect_refused(folder.path(), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(Cases, DrafterConfigRefused, testing::ValuesIn(config_cases),
                         [](const auto& info) { return std::string(info.param.name); });

// Cases of paths and files.

TEST(DrafterMalformed, PathsThatAreNoDrafter) {
  const TempFolder folder;
  expect_refused(folder.path() / "missing.gguf", "does not exist");
  expect_refused(folder.path(), "The folder has no config.json");
  expect_refused(folder.write("empty.gguf", ""), "is empty");
  expect_refused(folder.write("zip.gguf", "PK\3\4...."), "This is no GGUF file");
  folder.write("config.json", tiny_drafter_config());
  expect_refused(folder.path(), "has neither model.safetensors nor");
}

TEST(DrafterMalformed, ATargetsFiles) {
  const TempFolder folder;
  folder.write("config.json", test::tiny_config());
  folder.write("model.safetensors", test::tiny_safetensors().build());
  expect_refused(folder.path(), "This is a model of the class 'LlamaForCausalLM', not a drafter");
  expect_refused(folder.write("t.gguf", test::tiny_gguf("qwen3").build()),
                 "This is a model of the architecture 'qwen3', not a drafter");
}

TEST(DrafterMalformed, AFileCutAnywhere) {
  const TempFolder folder;
  const std::string whole = tiny_drafter_gguf().build();
  for (size_t size = 0; size < whole.size(); size += 97) {
    expect_refused(folder.write("cut.gguf", whole.substr(0, size)), "");
  }
  folder.write("config.json", tiny_drafter_config());
  const std::string weights = tiny_drafter_safetensors().build();
  for (size_t size = 0; size < weights.size(); size += 97) {
    folder.write("model.safetensors", weights.substr(0, size));
    expect_refused(folder.path(), "");
  }
}

/// Number of bytes before the tensors' data.
size_t header_bytes(const std::string& file, const GgufBuilder& builder) {
  size_t data = 0;
  for (const GgufBuilder::Tensor& tensor : builder.tensors) data += (tensor.data.size() + 31) / 32 * 32;
  return file.size() - std::min(data, file.size());
}

TEST(DrafterMalformed, AFlippedBitIsRefusedOrGivesAValidDrafter) {
  const TempFolder folder;
  const GgufBuilder builder = tiny_drafter_gguf();
  const std::string whole = builder.build();
  size_t loaded = 0;
  size_t refused = 0;
  for (size_t bit = 0; bit < header_bytes(whole, builder) * 8; bit += 29) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    const auto path = folder.write("d.gguf", damaged);
    try {
      const DrafterFile drafter = DrafterFile::open(path);
      EXPECT_NO_THROW(validate_drafter_config(drafter.config())) << "bit " << bit;
      EXPECT_NO_THROW(drafter.validate_tensors()) << "bit " << bit;
      ++loaded;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::bad_input) << "bit " << bit;
      EXPECT_TRUE(std::string(e.what()).starts_with(path.string())) << "bit " << bit << ": " << e.what();
      ++refused;
    }
  }
  EXPECT_GT(loaded, 20u) << "names for people, sizes that only the forward pass uses";
  EXPECT_GT(refused, 200u);
}

TEST(DrafterMalformed, ATensorOfARelativeInAFolder) {
  const TempFolder folder;
  folder.write("config.json", tiny_drafter_config());
  for (const char* name : {"layers.0.attention_conv.base_kernel", "candidate_selector.predecessor_codebook"}) {
    folder.write("model.safetensors", tiny_drafter_safetensors().zeros(name, {8}).build());
    expect_refused(folder.path(), "has no place in a DFlash drafter");
  }
  folder.write("model.safetensors", tiny_drafter_safetensors().zeros("layers.0.extra.weight", {8}).build());
  expect_refused(folder.path(), "The tensor 'layers.0.extra.weight' has no place in a DFlash drafter");
}

}  // namespace
}  // namespace canopy
