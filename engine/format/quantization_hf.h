#pragma once
// How the weights of a Hugging Face folder are quantized: 'quantization_config' of config.json, or the file beside it
// that older tools wrote.

#include <array>
#include <cstdint>
#include <filesystem>
#include <string_view>

namespace canopy {

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

}  // namespace canopy
