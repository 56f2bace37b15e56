#pragma once
// Reads the golden files of tests/golden: tensors, lists of ids, checkpoints.

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "engine/format/safetensors.h"

namespace canopy::test {

std::filesystem::path golden_folder();

/// A file's name as the name of a test: GoogleTest takes letters, digits and underscores.
std::string test_name(std::string file);

nlohmann::json golden_json(const std::string& name);

/// The f32 tensors of one golden file, by name.
class GoldenTensors {
 public:
  explicit GoldenTensors(const std::string& name);
  /// The tensor's elements. Throws when there is no f32 tensor of that name.
  std::span<const float> operator[](const std::string& name) const;

 private:
  SafetensorsFile file_;
};

/// Largest absolute difference; infinity for NaN or different sizes.
double max_difference(std::span<const float> actual, std::span<const float> expected);

/// Every row of x [count, width] divided by its root mean square and multiplied by weight [width].
std::vector<float> rms_norm(std::span<const float> x, std::span<const float> weight, float eps);

}  // namespace canopy::test
