#pragma once

#include <string>

namespace canopy::app {

/// The name of a model for the user, with its quantization where that is known: "SmolLM2-135M-Instruct Q4_1". For a
/// GGUF it is the name of its file, which the user chose; the name inside the file is whatever its converter was given
/// ("Smollm2 135M 8k Lc100K Mix1 Ep2"). For a folder, whose name may be a hash, it is `name`.
std::string model_name(const std::string& name, const std::string& file_name, const std::string& quantization);

}  // namespace canopy::app
