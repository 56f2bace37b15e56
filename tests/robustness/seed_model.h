#pragma once
// A small complete model as a GGUF file and as a Hugging Face folder, with a drafter for each: a byte-level vocabulary
// with merges and control tokens, a chat template, one layer with matrices of many types. A few KB, so that every bit
// of every file can be tried.

#include <string>
#include <vector>

#include "tests/format/gguf_builder.h"

namespace canopy::test {

struct SeedFile {
  std::string name;
  std::string bytes;
};

/// Texts that the tests encode and render.
inline constexpr const char* seed_sample = "abcd ab<|im_end|>\nhg \xC3\xA9";

/// 32 wide, 2 heads of 16 over 1 key/value head, 24 tokens; Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, MXFP4, BF16 and F32.
GgufBuilder seed_gguf();

/// The same with a vocabulary like Llama 2's (characters, scores, byte tokens) instead of the byte-level one.
GgufBuilder seed_gguf_with_scores();

/// config.json, generation_config.json, tokenizer.json, tokenizer_config.json, model.safetensors: 8 wide, 2 heads of 4
/// over 1 key/value head, 24 tokens; F32, F16 and BF16.
std::vector<SeedFile> seed_folder();

/// The same, 32 wide, with matrices of 4-bit codes as GPTQ (an order of columns of its own in one of them), AWQ or
/// 8-bit floats as FP8 folders store them: "gptq", "awq" or "fp8".
std::vector<SeedFile> seed_packed_folder(const std::string& method);

/// The same with weights in two shards, an index, and tokenizer.model instead of tokenizer.json.
std::vector<SeedFile> seed_folder_with_shards();

/// A drafter of one layer for seed_gguf(), in llama.cpp's dialect: block 4, mask 17, a sliding layer; Q8_0, Q4_0, Q4_1,
/// Q5_0, IQ4_NL and F32.
GgufBuilder seed_drafter_gguf();

/// config.json and model.safetensors of a drafter for seed_folder(): block 4, mask 17; BF16, F16 and F32.
std::vector<SeedFile> seed_drafter_folder();

/// A SentencePiece model (protocol buffer) of 20 pieces, with a compiled table of replacements where one is given.
std::string seed_sentencepiece_model(const std::string& table = {});

}  // namespace canopy::test
