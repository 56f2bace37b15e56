#include "engine/format/other_models.h"

#include <algorithm>

namespace canopy {
namespace {

using Kind = OtherModel::Kind;

// Names as llama.cpp's llm_arch_names has them, classes as transformers has them.
constexpr OtherModel all_others[] = {
    {"apertus", "ApertusFor", "Apertus"},
    {"arcee", "ArceeFor", "Arcee AFM"},
    {"arctic", "ArcticFor", "Snowflake Arctic"},
    {"baichuan", "BaichuanFor", "Baichuan"},
    {"bailingmoe2", "BailingMoeV2For", "Ling 2, Ring 2"},
    {"bert", "Bert", "BERT, E5, MiniLM", Kind::vectors},
    {"bloom", "BloomFor", "BLOOM"},
    {"chatglm", "ChatGLM", "ChatGLM, GLM-4-9B"},
    {"cogvlm", "CogVLMFor", "CogVLM", Kind::pictures},
    {"cohere2", "Cohere2For", "Command R7B, Command A"},
    {"command-r", "CohereFor", "Command R"},
    {"dbrx", "DbrxFor", "DBRX"},
    {"deepseek", "DeepseekFor", "DeepSeek (the first)"},
    {"dots1", "Dots1For", "dots.llm1"},
    {"dream", "Dream", "Dream", Kind::blanks},
    {"ernie4_5", "Ernie4_5For", "ERNIE 4.5"},
    {"ernie4_5-moe", "Ernie4_5_MoeFor", "ERNIE 4.5 with experts"},
    {"exaone", "ExaoneFor", "EXAONE 3"},
    {"exaone4", "Exaone4For", "EXAONE 4"},
    {"falcon", "FalconFor", "Falcon"},
    {"falcon-h1", "FalconH1For", "Falcon H1"},
    {"gemma", "GemmaFor", "Gemma (the first)"},
    {"gemma-embedding", "Gemma3TextModel", "EmbeddingGemma", Kind::vectors},
    {"gemma3n", "Gemma3nFor", "Gemma 3n"},
    {"glm4", "Glm4For", "GLM-4-32B, GLM-Z1"},
    {"gpt2", "GPT2", "GPT-2"},
    {"gptneox", "GPTNeoXFor", "Pythia, GPT-NeoX"},
    {"granitemoe", "GraniteMoeFor", "Granite 3 with experts"},
    {"grok", "Grok1", "Grok"},
    {"grovemoe", "GroveMoeFor", "GroveMoE"},
    {"hunyuan-dense", "HunYuanDenseV1For", "Hunyuan"},
    {"hunyuan-moe", "HunYuanMoEV1For", "Hunyuan with experts"},
    {"internlm2", "InternLM2For", "InternLM 2 and 3"},
    {"jais", "JAISLMHead", "Jais"},
    {"jamba", "JambaFor", "Jamba"},
    {"jina-bert-v2", "JinaBert", "Jina embeddings", Kind::vectors},
    {"kimi-linear", "KimiLinearFor", "Kimi Linear"},
    {"llada", "LLaDA", "LLaDA", Kind::blanks},
    {"llada-moe", "LLaDAMoE", "LLaDA with experts", Kind::blanks},
    {"llama4", "Llama4For", "Llama 4"},
    {"mamba", "MambaFor", "Mamba", Kind::recurrence},
    {"mamba2", "Mamba2For", "Mamba 2, Codestral Mamba", Kind::recurrence},
    {"minicpm", "MiniCPMFor", "MiniCPM"},
    {"minicpm3", "MiniCPM3For", "MiniCPM 3"},
    {"minimax-m2", "MiniMaxM2For", "MiniMax M2"},
    {"modern-bert", "ModernBert", "ModernBERT", Kind::vectors},
    {"mpt", "MPTFor", "MPT"},
    {"nemotron", "NemotronFor", "Nemotron 4, Minitron"},
    {"neo-bert", "NeoBERT", "NeoBERT", Kind::vectors},
    {"nomic-bert", "NomicBert", "Nomic Embed", Kind::vectors},
    {"olmo", "OlmoFor", "OLMo"},
    {"olmo2", "Olmo2For", "OLMo 2"},
    {"olmoe", "OlmoeFor", "OLMoE"},
    {"openelm", "OpenELMFor", "OpenELM"},
    {"phi2", "PhiFor", "Phi-1.5, Phi-2"},
    {"phimoe", "PhiMoEFor", "Phi-3.5-MoE"},
    {"plamo2", "Plamo2For", "PLaMo 2"},
    {"qwen", "QWenLMHead", "Qwen (the first)"},
    {"qwen2moe", "Qwen2MoeFor", "Qwen1.5 and Qwen2 with experts"},
    {"qwen2vl", "Qwen2_5_VLFor", "Qwen2.5-VL", Kind::pictures},
    {"refact", "GPTRefactFor", "Refact", Kind::code},
    {"rwkv6", "Rwkv6For", "RWKV 6", Kind::recurrence},
    {"rwkv7", "Rwkv7For", "RWKV 7", Kind::recurrence},
    {"seed_oss", "SeedOssFor", "Seed-OSS"},
    {"smallthinker", "SmallThinkerFor", "SmallThinker"},
    {"stablelm", "StableLmFor", "StableLM"},
    {"starcoder", "GPTBigCodeFor", "StarCoder", Kind::code},
    {"starcoder2", "Starcoder2For", "StarCoder 2", Kind::code},
    {"t5", "T5", "T5, Flan-T5, MADLAD", Kind::translation},
    {"t5encoder", "UMT5", "The encoder of T5", Kind::vectors},
    {"wavtokenizer-dec", "", "WavTokenizer", Kind::sound},
    {"whisper", "Whisper", "Whisper", Kind::sound},
    {"xverse", "XverseFor", "XVERSE"},
};
static_assert(std::ranges::is_sorted(all_others, {}, &OtherModel::name));

}  // namespace

std::span<const OtherModel> other_models() {
  return all_others;
}

const OtherModel* find_other_model(std::string_view name_or_class) {
  const OtherModel* found = nullptr;
  for (const OtherModel& each : all_others) {
    if (each.name == name_or_class) return &each;
    const bool starts = !each.class_start.empty() && name_or_class.starts_with(each.class_start);
    if (starts && (found == nullptr || each.class_start.size() > found->class_start.size())) found = &each;
  }
  return found;
}

std::string_view advice_on(OtherModel::Kind kind) {
  switch (kind) {
    case Kind::text: return "For text and chats Qwen3, Gemma 4, Llama 3 and gpt-oss run here.";
    case Kind::code: return "For code Qwen3-Coder and Qwen2.5-Coder run here.";
    case Kind::pictures: return "Nothing here sees pictures; for text Qwen3 and the text part of Gemma 4 run.";
    case Kind::vectors: return "It makes vectors of texts and writes none, so that nothing here can use it.";
    case Kind::translation:
      return "It reads with one half and writes with the other; what runs here, as Qwen3 and Gemma 4, goes on with a "
             "text.";
    case Kind::recurrence:
      return "It is a recurrence without attention; of hybrids with attention Qwen3.5, Granite 4 and Nemotron 3 run "
             "here.";
    case Kind::blanks: return "It fills blanks instead of writing one token after another; Qwen3 and Gemma 4 run here.";
    case Kind::sound: return "It is for sounds, which nothing here hears or makes.";
  }
  return {};
}

}  // namespace canopy
