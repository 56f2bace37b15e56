// Matrices of GPTQ, AWQ and FP8 folders give the weights that a plain computation gives, in the type that was chosen.

#include "engine/format/tensor.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <ostream>

#include "engine/format/dequantize.h"
#include "engine/format/quantization_hf.h"
#include "engine/format/safetensors.h"
#include "tests/base/expect_error.h"
#include "tests/format/quantized_folder.h"

namespace canopy {
namespace {

using Method = HfQuantization::Method;
using test::add_awq;
using test::add_gptq;
using test::FourBit;
using test::Fp8;
using test::random_four_bit;
using test::random_fp8;
using test::SafetensorsBuilder;

HfQuantization gptq(uint32_t group_size, bool symmetric = false, bool less_one = true) {
  HfQuantization q;
  q.method = Method::gptq;
  q.group_size = group_size;
  q.symmetric = symmetric;
  q.zeros_less_one = less_one;
  return q;
}

HfQuantization awq(uint32_t group_size) {
  HfQuantization q;
  q.method = Method::awq;
  q.group_size = group_size;
  return q;
}

HfQuantization fp8(uint32_t block_rows = 0, uint32_t block_cols = 0) {
  HfQuantization q;
  q.method = Method::fp8;
  q.block = {block_rows, block_cols};
  return q;
}

/// The tensors of a file, with the bytes that they point into.
struct Unpacked {
  Unpacked(const SafetensorsBuilder& builder, const HfQuantization& quantization)
      : bytes(builder.build()),
        file(SafetensorsFile::parse(test::as_bytes(bytes))),
        tensors(unpacked_tensors(file.tensors(), quantization)) {}

  const TensorView& only() const {
    EXPECT_EQ(tensors.size(), 1u);
    return tensors.front();
  }

  std::string bytes;
  SafetensorsFile file;
  std::vector<TensorView> tensors;
};

/// Rows decoded in runs of that many.
std::vector<float> decoded(const TensorView& tensor, uint64_t run) {
  std::vector<float> values(tensor.elements());
  std::vector<std::byte> scratch;
  for (uint64_t first = 0; first < tensor.rows(); first += run) {
    const uint64_t count = std::min(run, tensor.rows() - first);
    const std::span<const std::byte> rows = rows_of(tensor, first, count, scratch);
    EXPECT_EQ(rows.size(), row_bytes(tensor) * count);
    dequantize(tensor.type, rows, std::span(values).subspan(first * tensor.cols(), count * tensor.cols()));
  }
  return values;
}

/// Checks every weight; `allowed` is what it may be off by, from the scale and the plain value.
void expect_weights(const TensorView& tensor, uint64_t rows, uint64_t cols,
                    const std::function<double(uint64_t, uint64_t)>& weight,
                    const std::function<double(uint64_t, uint64_t)>& allowed) {
  ASSERT_EQ(tensor.shape_text(), "[" + std::to_string(rows) + ", " + std::to_string(cols) + "]");
  const std::vector<float> values = decoded(tensor, rows);
  for (const uint64_t run : {uint64_t{1}, uint64_t{5}, uint64_t{64}}) EXPECT_EQ(decoded(tensor, run), values) << run;
  for (uint64_t r = 0; r < rows; ++r) {
    for (uint64_t c = 0; c < cols; ++c) {
      ASSERT_NEAR(values[r * cols + c], weight(r, c), allowed(r, c)) << "row " << r << ", column " << c;
    }
  }
}

/// Rounding to a half.
double half_rounding(double value) {
  return std::abs(value) * 0x1p-11 + 0x1p-25;
}

void expect_four_bit(const TensorView& tensor, const FourBit& m, TensorType type) {
  EXPECT_EQ(tensor.type, type);
  const auto weight = [&](uint64_t r, uint64_t c) { return m.weight(r, c); };
  const auto allowed = [&](uint64_t r, uint64_t c) -> double {
    const uint64_t at = m.group_of[c] * m.rows + r;
    switch (type) {
      case TensorType::q4_0: return 0;
      // The product of scale and zero is rounded, then the sum of both in float.
      case TensorType::q4_1: return half_rounding(m.scales[at] * static_cast<double>(m.zeros[at])) + 1e-8;
      case TensorType::f16: return half_rounding(m.weight(r, c));
      case TensorType::bf16: return std::abs(m.weight(r, c)) * 0x1p-8;
      default: return std::abs(m.weight(r, c)) * 0x1p-24;
    }
  };
  expect_weights(tensor, m.rows, m.cols, weight, allowed);
}

struct FourBitCase {
  const char* name;
  Method method;
  uint64_t rows, cols, group;
  uint32_t group_size;
  test::FourBitForm form;
  int version;
  TensorType type;
};

void PrintTo(const FourBitCase& c, std::ostream* out) {
  *out << c.name;
}

constexpr test::FourBitForm asymmetric = {}, symmetric = {.symmetric = true}, act_order = {.act_order = true};

const FourBitCase four_bit_cases[] = {
    {"Awq32", Method::awq, 40, 96, 32, 32, asymmetric, 0, TensorType::q4_1},
    {"Awq64", Method::awq, 8, 128, 64, 64, asymmetric, 0, TensorType::q4_1},
    {"Awq128", Method::awq, 24, 256, 128, 128, asymmetric, 0, TensorType::q4_1},
    {"AwqOneGroup", Method::awq, 16, 96, 96, 0, asymmetric, 0, TensorType::q4_1},
    {"AwqOddGroups", Method::awq, 16, 96, 16, 16, asymmetric, 0, TensorType::f16},
    {"Gptq32", Method::gptq, 40, 96, 32, 32, asymmetric, 1, TensorType::q4_1},
    {"Gptq64", Method::gptq, 8, 128, 64, 64, asymmetric, 1, TensorType::q4_1},
    {"Gptq128", Method::gptq, 24, 256, 128, 128, asymmetric, 1, TensorType::q4_1},
    {"Gptq128Symmetric", Method::gptq, 24, 256, 128, 128, symmetric, 1, TensorType::q4_0},
    {"GptqSecondVersion", Method::gptq, 16, 128, 32, 32, asymmetric, 2, TensorType::q4_1},
    {"GptqSecondVersionSymmetric", Method::gptq, 16, 128, 32, 32, symmetric, 2, TensorType::q4_0},
    {"GptqOneGroup", Method::gptq, 16, 160, 160, 0, asymmetric, 1, TensorType::q4_1},
    {"GptqOneGroupSymmetric", Method::gptq, 16, 160, 160, 0, symmetric, 1, TensorType::q4_0},
    {"GptqLastGroupShort", Method::gptq, 16, 160, 128, 128, asymmetric, 1, TensorType::q4_1},
    {"GptqActOrder", Method::gptq, 24, 256, 128, 128, act_order, 1, TensorType::f16},
    {"GptqActOrder32", Method::gptq, 8, 64, 32, 32, act_order, 2, TensorType::f16},
    {"GptqNoWholeBlocks", Method::gptq, 8, 40, 40, 0, asymmetric, 1, TensorType::f16},
};

class FourBitMatrices : public testing::TestWithParam<FourBitCase> {};

TEST_P(FourBitMatrices, GiveThePlainWeights) {
  const FourBitCase& c = GetParam();
  const FourBit m = random_four_bit(c.rows, c.cols, c.group, 7, c.form);
  SafetensorsBuilder b;
  if (c.method == Method::awq) {
    add_awq(b, "x", m);
    const Unpacked file(b, awq(c.group_size));
    EXPECT_EQ(file.only().name, "x.weight");
    expect_four_bit(file.only(), m, c.type);
    return;
  }
  add_gptq(b, "x", m, c.version);
  const Unpacked file(b, gptq(c.group_size, c.form.symmetric, c.version == 1));
  expect_four_bit(file.only(), m, c.type);
}

INSTANTIATE_TEST_SUITE_P(Cases, FourBitMatrices, testing::ValuesIn(four_bit_cases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(PackedMatrix, RowsFromSomeRowOnAreThoseOfTheWhole) {
  class Numbered final : public PackedMatrix {
   public:
    void make_rows(uint64_t first, uint64_t count, std::span<std::byte> out) const override {
      for (uint64_t i = 0; i < count; ++i) out[i] = static_cast<std::byte>(first + i);
    }
    std::string_view form() const override { return "numbers"; }
  };
  const auto rows = packed_rows(std::make_shared<const Numbered>(), 5);
  std::array<std::byte, 2> made = {};
  rows->make_rows(3, 2, made);
  EXPECT_EQ(made, (std::array{std::byte{8}, std::byte{9}}));
  EXPECT_EQ(rows->form(), "numbers");
}

TEST(PackedMatrix, WithoutGIdxColumnsAreInOrder) {
  const FourBit m = random_four_bit(16, 64, 32, 3);
  SafetensorsBuilder b;
  add_gptq(b, "x", m, 1, false);
  expect_four_bit(Unpacked(b, gptq(32)).only(), m, TensorType::q4_1);
}

TEST(PackedMatrix, ScalesThatAreNoHalvesMakeWideWeights) {
  test::FourBitForm bf16, f32;
  bf16.round = [](float scale) { return bf16_to_f32(f32_to_bf16(scale)); };
  f32.round = [](float scale) { return scale; };
  const FourBit a = random_four_bit(16, 64, 32, 3, bf16), b = random_four_bit(16, 64, 32, 4, f32);
  SafetensorsBuilder gptq_file, awq_file;
  add_gptq(gptq_file, "x", a, 1, true, "BF16");
  expect_four_bit(Unpacked(gptq_file, gptq(32)).only(), a, TensorType::bf16);
  add_awq(awq_file, "x", b, "F32");
  expect_four_bit(Unpacked(awq_file, awq(32)).only(), b, TensorType::f32);
}

TEST(PackedMatrix, ZerosOfTheFirstVersionCarryIntoTheirNeighbours) {
  FourBit m = random_four_bit(8, 32, 32, 5);
  m.zeros = {0, 3, 0, 0, 15, 0, 1, 0};
  SafetensorsBuilder b;
  add_gptq(b, "x", m, 1);
  expect_four_bit(Unpacked(b, gptq(32)).only(), m, TensorType::q4_1);
}

TEST(PackedMatrix, AZeroThatASymmetricFolderCannotHaveIsRefused) {
  FourBit m = random_four_bit(8, 64, 32, 5, symmetric);
  m.zeros[8 + 5] = 7;  // group 1, row 5
  SafetensorsBuilder b;
  add_gptq(b, "x", m);
  const Unpacked file(b, gptq(32, true));
  std::vector<std::byte> scratch;
  EXPECT_NO_THROW(rows_of(file.only(), 0, 5, scratch));
  test::expect_error("The matrix 'x.qweight' has a zero of 7 in row 5, but its 'quantization_config' says 'sym'",
                     [&] { rows_of(file.only(), 4, 2, scratch); });
}

TEST(PackedMatrix, AScaleThatIsNoNumberIsRefusedLikeThatOfABlock) {
  FourBit m = random_four_bit(8, 64, 32, 5);
  m.scales[3] = INFINITY;
  SafetensorsBuilder b;
  add_awq(b, "x", m);
  const Unpacked file(b, awq(32));
  test::expect_error("Row 3 of the tensor 'x.qweight' of type Q4_1 holds a block whose scale is infinite",
                     [&] { require_finite(file.only(), 0, 8); });
  Fp8 f = random_fp8(4, 8, 4, 8, 1);
  f.elements[2 * 8 + 1] = 0x7F;
  SafetensorsBuilder c;
  c.tensor("x.weight", "F8_E4M3", {4, 8}, f.elements).tensor("x.weight_scale", "F32", {}, test::le(1.0f));
  test::expect_error("Row 2 of the tensor 'x.weight' of type F16 holds an element that is infinite or not a number",
                     [&] { require_finite(Unpacked(c, fp8()).only(), 0, 4); });
}

/// Each element by itself, so that all 256 are met.
TEST(PackedMatrix, EveryElementOfFp8) {
  Fp8 m{1, 256, 1, 256, {}, {0.5f}};
  for (int i = 0; i < 256; ++i) m.elements += static_cast<char>(i);
  SafetensorsBuilder b;
  b.tensor("x.weight", "F8_E4M3", {1, 256}, m.elements).tensor("x.weight_scale_inv", "F32", {1}, test::le(0.5f));
  const Unpacked file(b, fp8());
  const std::vector<float> values = decoded(file.only(), 1);
  for (size_t i = 0; i < 256; ++i) {
    if ((i & 0x7F) == 0x7F) {
      EXPECT_TRUE(std::isnan(values[i])) << i;
    } else {
      EXPECT_EQ(values[i], m.weight(0, i)) << i;
      EXPECT_EQ(std::signbit(values[i]), i >= 128) << i;
    }
  }
}

void expect_fp8(const SafetensorsBuilder& builder, const HfQuantization& quantization, const Fp8& m) {
  const Unpacked file(builder, quantization);
  EXPECT_EQ(file.only().type, TensorType::f16);
  EXPECT_EQ(file.only().packed->form(), "FP8");
  const auto weight = [&](uint64_t r, uint64_t c) { return m.weight(r, c); };
  expect_weights(file.only(), m.rows, m.cols, weight,
                 [&](uint64_t r, uint64_t c) { return half_rounding(m.weight(r, c)); });
}

TEST(PackedMatrix, Fp8InBlocksEvenWhereTheLastAreShort) {
  const std::pair<uint64_t, uint64_t> shapes[] = {{32, 64}, {33, 70}, {5, 7}, {16, 1}};
  for (const auto& [rows, cols] : shapes) {
    const Fp8 m = random_fp8(rows, cols, 16, 32, 9);
    for (const char* dtype : {"F32", "BF16"}) {
      SafetensorsBuilder b;
      b.tensor("x.weight", "F8_E4M3", {rows, cols}, m.elements);
      b.tensor("x.weight_scale_inv", dtype, {m.down(), m.across()}, test::stored_scales(m.scales, dtype));
      expect_fp8(b, fp8(16, 32), m);
    }
  }
}

TEST(PackedMatrix, Fp8WithAScaleForAllOrForEachRow) {
  const Fp8 whole = random_fp8(6, 40, 6, 40, 2), by_row = random_fp8(6, 40, 1, 40, 3);
  for (const std::vector<uint64_t>& shape : {std::vector<uint64_t>{}, {1}, {1, 1}}) {
    SafetensorsBuilder b;
    b.tensor("x.weight", "F8_E4M3", {6, 40}, whole.elements);
    b.tensor("x.weight_scale", "F32", shape, test::stored_scales(whole.scales, "F32"));
    b.tensor("x.input_scale", "F32", {}, test::le(0.1f));  // of activations
    expect_fp8(b, fp8(), whole);
  }
  for (const std::vector<uint64_t>& shape : {std::vector<uint64_t>{6}, {6, 1}}) {
    SafetensorsBuilder b;
    b.tensor("x.weight", "F8_E4M3", {6, 40}, by_row.elements);
    b.tensor("x.weight_scale", "BF16", shape, test::stored_scales(by_row.scales, "BF16"));
    expect_fp8(b, fp8(), by_row);
  }
}

TEST(PackedMatrix, Fp8WithScalesThatArePowersOfTwo) {
  Fp8 m = random_fp8(4, 8, 2, 4, 5);
  std::string scales;
  for (size_t i = 0; i < m.scales.size(); ++i) {
    scales += static_cast<char>(118 + i);
    m.scales[i] = std::ldexp(1.0f, static_cast<int>(118 + i) - 127);
  }
  SafetensorsBuilder b;
  b.tensor("x.weight", "F8_E4M3", {4, 8}, m.elements).tensor("x.weight_scale_inv", "F8_E8M0", {2, 2}, scales);
  expect_fp8(b, fp8(2, 4), m);
}

TEST(PackedMatrix, OtherTensorsStayAsTheyAreAndInTheirPlace) {
  SafetensorsBuilder b;
  b.zeros("a", {2});
  add_awq(b, "x", random_four_bit(8, 32, 32, 1));
  b.zeros("y.weight", {3, 4});
  const Unpacked file(b, awq(32));
  ASSERT_EQ(file.tensors.size(), 3u);
  EXPECT_EQ(file.tensors[0].name, "a");
  EXPECT_EQ(file.tensors[1].name, "x.weight");
  EXPECT_EQ(file.tensors[2].name, "y.weight");
  EXPECT_EQ(file.tensors[2].packed, nullptr);
}

struct UnpackRefusal {
  const char* name;
  const char* message;
  std::function<void(SafetensorsBuilder&)> add;
  HfQuantization quantization;
};

void PrintTo(const UnpackRefusal& c, std::ostream* out) {
  *out << c.name;
}

/// The tensors of a GPTQ matrix [8, 64] in groups of 32, one of which may be left out or replaced.
std::function<void(SafetensorsBuilder&)> gptq_but(const char* part, const char* dtype = "",
                                                  const std::vector<uint64_t>& shape = {}) {
  return [=](SafetensorsBuilder& b) {
    const auto put = [&](const std::string& name, const char* own_type, std::vector<uint64_t> own_shape) {
      const bool replaced = name == part;
      if (replaced && *dtype == '\0') return;
      const std::string type = replaced ? dtype : own_type;
      if (replaced) own_shape = shape;
      uint64_t bytes = type == "I32" || type == "F32" ? 4 : type == "I64" ? 8 : 2;
      for (const uint64_t extent : own_shape) bytes *= extent;
      b.tensor("x." + name, type, own_shape, std::string(bytes, '\0'));
    };
    put("qweight", "I32", {8, 8});
    put("qzeros", "I32", {2, 1});
    put("scales", "F16", {2, 8});
    put("g_idx", "I32", {64});
  };
}

std::function<void(SafetensorsBuilder&)> fp8_with(const char* dtype, const std::vector<uint64_t>& shape,
                                                  const std::vector<uint64_t>& weights = {4, 8}) {
  return [=](SafetensorsBuilder& b) {
    uint64_t elements = 1, scales = std::string(dtype) == "F64" ? 8 : 4;
    for (const uint64_t extent : weights) elements *= extent;
    for (const uint64_t extent : shape) scales *= extent;
    b.tensor("x.weight", "F8_E4M3", weights, std::string(elements, 'a'));
    b.tensor("x.weight_scale", dtype, shape, std::string(scales, '\0'));
  };
}

const UnpackRefusal unpack_refusals[] = {
    {"ZerosMissing", "The tensor 'x.qzeros' is missing, which belongs to 'x.qweight' in a folder of GPTQ.",
     gptq_but("qzeros"), gptq(32)},
    {"ScalesMissing", "The tensor 'x.scales' is missing, which belongs to 'x.qweight' in a folder of AWQ.",
     gptq_but("scales"), awq(32)},
    {"CodesOfFloats", "The tensor 'x.qweight' is [8, 8] of F16; a matrix of I32 is expected.",
     gptq_but("qweight", "F16", {8, 8}), gptq(32)},
    {"CodesOfOneDimension", "The tensor 'x.qweight' is [64] of I32; a matrix of I32 is expected.",
     gptq_but("qweight", "I32", {64}), gptq(32)},
    {"RowsNoMultiple", "The tensor 'x.qweight' is [8, 9] of I32; a number of rows that is a multiple of 8 is expected.",
     gptq_but("qweight", "I32", {8, 9}), gptq(32)},
    {"ZerosShape", "The tensor 'x.qzeros' is [1, 1] of I32; [2, 1] of I32 is expected.",
     gptq_but("qzeros", "I32", {1, 1}), gptq(32)},
    {"GroupsOfAnotherSize", "The tensor 'x.qzeros' is [2, 1] of I32; [1, 1] of I32 is expected.", gptq_but(""),
     gptq(128)},
    {"ScalesShape", "The tensor 'x.scales' is [2, 4] of F16; [2, 8] of F16, BF16 or F32, one scale for 32 columns",
     gptq_but("scales", "F16", {2, 4}), gptq(32)},
    {"ScalesOfIntegers", "The tensor 'x.scales' is [2, 8] of I32; [2, 8] of F16, BF16 or F32",
     gptq_but("scales", "I32", {2, 8}), gptq(32)},
    {"ColumnsShape", "The tensor 'x.g_idx' is [32] of I32; [64] of I32 is expected.", gptq_but("g_idx", "I32", {32}),
     gptq(32)},
    {"ColumnsType", "The tensor 'x.g_idx' is [64] of I64; [64] of I32 is expected.", gptq_but("g_idx", "I64", {64}),
     gptq(32)},
    {"ColumnOutside", "The tensor 'x.g_idx' puts column 0 into group -1; there are 2 groups of 32 columns.",
     [](SafetensorsBuilder& b) {
       gptq_but("g_idx")(b);
       b.tensor("x.g_idx", "I32", {64}, std::string(256, '\xFF'));
     },
     gptq(32)},
    {"NothingSaid",
     "The tensor 'x.qweight' holds codes of a quantization of which the folder says nothing",
     gptq_but(""),
     {}},
    {"Fp8ScaleMissing", "The tensor 'x.weight_scale' is missing, which belongs to 'x.weight' in a folder of FP8.",
     [](SafetensorsBuilder& b) {
       b.tensor("x.weight", "F8_E4M3", {4, 8}, std::string(32, 'a'));
     },
     fp8()},
    {"Fp8ScaleShape", "The scales 'x.weight_scale' are [3] for a matrix of [4, 8]; one scale, one for each row or, if",
     fp8_with("F32", {3}), fp8()},
    {"Fp8BlockShape",
     "are [2, 2] for a matrix of [4, 8]; one scale, one for each row, or one for each block of 2 rows and "
     "8 columns are expected.",
     fp8_with("F32", {2, 2}), fp8(2, 8)},
    {"Fp8ScaleType", "The scales 'x.weight_scale' are stored as F64; F32, F16, BF16 or F8_E8M0 is expected.",
     fp8_with("F64", {}), fp8()},
    {"Fp8Vector", "The tensor 'x.weight' of FP8 is [8]; a matrix is expected.", fp8_with("F32", {}, {8}), fp8()},
};

class UnpackRefused : public testing::TestWithParam<UnpackRefusal> {};

TEST_P(UnpackRefused, NamesTheTensor) {
  SafetensorsBuilder b;
  GetParam().add(b);
  test::expect_error(GetParam().message, [&] { Unpacked(b, GetParam().quantization); });
}

INSTANTIATE_TEST_SUITE_P(Cases, UnpackRefused, testing::ValuesIn(unpack_refusals),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace canopy
