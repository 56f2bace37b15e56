#pragma once
// Quantized Hugging Face folders (FP8, GPTQ, AWQ, MXFP4): what their configuration says of it, and the matrices that
// their tensors of codes, scales and zeros stand for.

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "engine/format/tensor.h"

namespace canopy {

// How the weights of a Hugging Face folder are quantized: 'quantization_config' of config.json, or the file beside it
// that older tools wrote.

struct HfQuantization {
  enum class Method { none, fp8, gptq, awq, mxfp4 };
  Method method = Method::none;
  uint32_t group_size = 0;             // gptq, awq: columns of a row that share a scale; 0: all
  bool symmetric = false;              // gptq: all zeros are 8
  bool zeros_less_one = false;         // gptq: the first version of the format stores zeros less 1
  std::array<uint32_t, 2> block = {};  // fp8: rows and columns that share a scale; 0: no blocks
};

/// "FP8", "GPTQ", "AWQ", "MXFP4"; empty for none.
std::string_view to_string(HfQuantization::Method method);

/// Reads the config of a folder. Throws bad_input, saying what can be read, for another method and for settings whose
/// arithmetic is not known: what is not understood would give other weights without a word.
HfQuantization read_hf_quantization(std::string_view config_json, const std::filesystem::path& folder);

/// Puts codes, scales and zeros together to matrices "NAME.weight", in the place of their codes; all other tensors stay
/// as they are. Only the small tensors that say how columns are grouped are read here. Throws bad_input where a part of
/// a matrix is missing or does not fit the others, and where a folder has such parts without saying how they were made.
std::vector<TensorView> unpacked_tensors(std::span<const TensorView> found, const HfQuantization& quantization);

}  // namespace canopy
