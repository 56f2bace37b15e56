#include "tests/model/golden_data.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <stdexcept>

namespace canopy::test {

std::filesystem::path golden_folder() {
  const char* dir = std::getenv("CANOPY_GOLDEN_DIR");
  return dir != nullptr && *dir != '\0' ? std::filesystem::path(dir)
                                        : std::filesystem::path(CANOPY_SOURCE_DIR) / "tests" / "golden";
}

std::string test_name(std::string file) {
  std::ranges::replace_if(
      file, [](char c) { return c == '-' || c == '.'; }, '_');
  return file;
}

nlohmann::json golden_json(const std::string& name) {
  std::ifstream in(golden_folder() / name, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read the golden file " + name);
  return nlohmann::json::parse(in);
}

GoldenTensors::GoldenTensors(const std::string& name) : file_(SafetensorsFile::open(golden_folder() / name)) {}

std::span<const float> GoldenTensors::operator[](const std::string& name) const {
  for (const TensorView& tensor : file_.tensors()) {
    if (tensor.name != name || tensor.type != TensorType::f32) continue;
    return {reinterpret_cast<const float*>(tensor.bytes.data()), tensor.elements()};
  }
  throw std::runtime_error("the golden file has no f32 tensor " + name);
}

double max_difference(std::span<const float> actual, std::span<const float> expected) {
  if (actual.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    const double difference = std::abs(double{actual[i]} - double{expected[i]});
    if (!(difference <= std::numeric_limits<double>::max())) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, difference);
  }
  return worst;
}

std::vector<float> rms_norm(std::span<const float> x, std::span<const float> weight, float eps) {
  std::vector<float> result(x.size());
  for (size_t row = 0; row < x.size(); row += weight.size()) {
    double sum = 0;
    for (size_t i = 0; i < weight.size(); ++i) sum += double{x[row + i]} * double{x[row + i]};
    const double scale = 1.0 / std::sqrt(sum / static_cast<double>(weight.size()) + double{eps});
    for (size_t i = 0; i < weight.size(); ++i) result[row + i] = static_cast<float>(x[row + i] * scale * weight[i]);
  }
  return result;
}

}  // namespace canopy::test
