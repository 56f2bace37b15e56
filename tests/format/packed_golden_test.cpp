// Matrices that AutoGPTQ, AutoAWQ and PyTorch packed give the weights that their own code makes of them
// (tests/golden/make_packed.py).

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "engine/base/mapped_file.h"
#include "engine/base/numbers.h"
#include "engine/format/dequantize.h"
#include "engine/format/quantization_hf.h"
#include "engine/format/safetensors.h"
#include "engine/format/tensor.h"
#include "tests/format/golden_path.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;

std::vector<float> decoded_tensor(const TensorView& tensor) {
  std::vector<float> values(tensor.elements());
  std::vector<std::byte> scratch;
  dequantize(tensor.type, rows_of(tensor, 0, tensor.rows(), scratch), values);
  return values;
}

void compare(const fs::path& folder) {
  SCOPED_TRACE(folder.filename());
  const HfQuantization quantization = read_hf_quantization(read_small_file(folder / "config.json", 1 << 20), folder);
  const SafetensorsFolder file = SafetensorsFolder::open(folder);
  const std::vector<TensorView> tensors = unpacked_tensors(file.tensors(), quantization);
  ASSERT_EQ(tensors.size(), 2u);
  const TensorView& matrix = tensors[tensors[0].name == "x.weight" ? 0 : 1];
  const TensorView& expected = tensors[tensors[0].name == "x.expected" ? 0 : 1];
  ASSERT_EQ(matrix.shape_text(), expected.shape_text());
  const std::vector<float> ours = decoded_tensor(matrix), theirs = decoded_tensor(expected);
  for (size_t i = 0; i < ours.size(); ++i) {
    if (matrix.type == TensorType::q4_1) {
      // Both are rounded to halves, theirs the weight, ours the product of scale and zero: 15 steps at most.
      ASSERT_NEAR(ours[i], theirs[i], 0x1p-11 * 2 * 15 * 0.022) << i;
    } else {
      // Theirs are halves, which ours are, or become without a bit lost.
      ASSERT_EQ(f16_to_f32(f32_to_f16(ours[i])), theirs[i]) << i;
    }
  }
}

TEST(PackedGolden, WeightsAreThoseOfTheFormatsOwnCode) {
  size_t cases = 0;
  for (const auto& entry : fs::directory_iterator(test::golden("packed"))) {
    compare(entry.path());
    ++cases;
  }
  EXPECT_GE(cases, 10u);
}

}  // namespace
}  // namespace canopy
