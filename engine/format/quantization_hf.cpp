#include "engine/format/quantization_hf.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/numbers.h"
#include "engine/base/text.h"
#include "engine/format/architecture.h"
#include "engine/format/config_hf.h"
#include "engine/format/json_text.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Method = HfQuantization::Method;

constexpr uint64_t max_quantization_bytes = 1ull << 20;
constexpr const char* readable =
    "readable are fp8 (E4M3; also compressed-tensors with it), gptq and awq (4 bits) and mxfp4 (experts of gpt-oss). "
    "Get another form of the model, such as a GGUF file; ";

[[noreturn]] void refuse(const JsonFields& fields, const std::string& what) {
  throw bad_input("The field " + what + " of " + fields.what() + " is not supported: " + readable + what_runs());
}

/// "'bits': 3"
std::string stated(const JsonFields& fields, const char* field) {
  const json* value = fields.find(field);
  return "'" + std::string(field) + "': " + printable(value == nullptr ? "none" : value->dump(), 80);
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// The field under the first of its names that is there.
const char* name_of(const JsonFields& fields, std::initializer_list<const char*> names) {
  const auto found = std::ranges::find_if(names, [&](const char* name) { return fields.has(name); });
  return found == names.end() ? *names.begin() : *found;
}

void require_four_bits(const JsonFields& fields) {
  const char* name = name_of(fields, {"bits", "w_bit"});
  if (fields.u32(name) != 4) refuse(fields, stated(fields, name));
}

uint32_t read_group_size(const JsonFields& fields) {
  const char* name = name_of(fields, {"group_size", "q_group_size"});
  if (fields.at(name) == json(-1)) return 0;
  const uint32_t size = fields.u32(name);
  if (size == 0 || size > (1u << 20)) refuse(fields, stated(fields, name));
  return size;
}

/// Modules may have settings of their own, by expressions; those that begin with "-:" are only left out.
void refuse_dynamic(const JsonFields& fields) {
  const json* dynamic = fields.object("dynamic");
  if (dynamic == nullptr) return;
  for (const auto& [module, settings] : dynamic->items()) {
    if (!module.starts_with("-:")) refuse(fields, "'dynamic', with settings for " + quoted_name(module));
  }
}

HfQuantization read_gptq(const JsonFields& fields) {
  require_four_bits(fields);
  const char* name = name_of(fields, {"checkpoint_format", "format"});
  const std::string format = lower(fields.text_or(name, "gptq"));
  if (format != "gptq" && format != "gptq_v2") refuse(fields, stated(fields, name));
  if (fields.boolean_or("is_marlin_format", false)) refuse(fields, stated(fields, "is_marlin_format"));
  if (lower(fields.text_or("pack_dtype", "int32")) != "int32") refuse(fields, stated(fields, "pack_dtype"));
  refuse_dynamic(fields);
  HfQuantization result;
  result.method = Method::gptq;
  result.group_size = read_group_size(fields);
  result.symmetric = fields.boolean_or("sym", false);
  result.zeros_less_one = format == "gptq";
  return result;
}

HfQuantization read_awq(const JsonFields& fields) {
  require_four_bits(fields);
  const char* name = name_of(fields, {"version", "format"});
  if (lower(fields.text_or(name, "gemm")) != "gemm") refuse(fields, stated(fields, name));
  if (!fields.boolean_or("zero_point", true)) refuse(fields, stated(fields, "zero_point"));
  HfQuantization result;
  result.method = Method::awq;
  result.group_size = read_group_size(fields);
  return result;
}

std::array<uint32_t, 2> read_block(const JsonFields& fields, const char* name) {
  if (!fields.has(name)) return {};
  const auto block = fields.ids(name);
  if (block.size() != 2 || block[0] == 0 || block[1] == 0) refuse(fields, stated(fields, name));
  return {block[0], block[1]};
}

HfQuantization read_fp8(const JsonFields& fields) {
  const std::string format = lower(fields.text_or("fmt", "e4m3"));
  if (format != "e4m3" && format != "float8_e4m3fn") refuse(fields, stated(fields, "fmt"));
  HfQuantization result;
  result.method = Method::fp8;
  result.block = read_block(fields, "weight_block_size");
  return result;
}

/// One of many forms that this method has: 8-bit floats.
HfQuantization read_compressed_tensors(const JsonFields& fields) {
  if (fields.text_or("format", "") != "float-quantized") refuse(fields, stated(fields, "format"));
  const json* groups = fields.object("config_groups");
  if (groups == nullptr || groups->size() != 1) refuse(fields, "'config_groups', with other than one group,");
  const JsonFields group(groups->front(), "the group of " + fields.what());
  const json* weights = group.object("weights");
  if (weights == nullptr) refuse(group, "'weights', which is missing,");
  const JsonFields settings(*weights, "the weights in " + fields.what());
  if (settings.u32("num_bits") != 8) refuse(settings, stated(settings, "num_bits"));
  if (settings.text("type") != "float") refuse(settings, stated(settings, "type"));
  HfQuantization result;
  result.method = Method::fp8;
  result.block = read_block(settings, "block_structure");
  return result;
}

HfQuantization read_fields(const JsonFields& fields, std::string_view method) {
  if (method == "gptq") return read_gptq(fields);
  if (method == "awq") return read_awq(fields);
  if (method == "fp8") return read_fp8(fields);
  if (method == "mxfp4") return {.method = Method::mxfp4};  // of blocks beside scales: all there is to know
  if (method == "compressed-tensors") return read_compressed_tensors(fields);
  refuse(fields, "'quant_method': " + (method.empty() ? "none" : "\"" + printable(method, 80) + "\""));
}

/// MLX, Apple's library, writes {"group_size": 64, "bits": 4} as 'quantization', and often once more without a method
/// as 'quantization_config'; its words of codes are no other format's.
void refuse_mlx(const JsonFields& config) {
  const json* own = config.object("quantization");
  if (own == nullptr || !own->contains("bits")) return;
  throw bad_input("The folder's weights are quantized for MLX, Apple's library (" +
                  std::to_string(JsonFields(*own, "config.json's 'quantization'").u32("bits")) +
                  " bits), which cannot be read. Get the model as a GGUF file, or the folder that it was made from; " +
                  what_runs());
}

/// What AutoGPTQ and AutoAWQ wrote before 'quantization_config' was agreed on.
std::optional<HfQuantization> read_file_beside(const fs::path& folder, const char* name, std::string_view method) {
  const std::string text = read_optional_file(folder / name, max_quantization_bytes);
  if (text.empty()) return std::nullopt;
  const json root = parse_json(text, name);
  return read_fields(JsonFields(root, name), method);
}

}  // namespace

std::string_view to_string(Method method) {
  switch (method) {
    case Method::none: return "";
    case Method::fp8: return "FP8";
    case Method::gptq: return "GPTQ";
    case Method::awq: return "AWQ";
    case Method::mxfp4: return "MXFP4";
  }
  return "";
}

HfQuantization read_hf_quantization(std::string_view config_json, const fs::path& folder) {
  const json root = parse_config_json(config_json, "config.json");
  const JsonFields config(root, "config.json");
  refuse_mlx(config);
  if (const json* own = config.object("quantization_config")) {
    const JsonFields fields(*own, "config.json's 'quantization_config'");
    return read_fields(fields, lower(fields.text_or("quant_method", "")));
  }
  if (const auto gptq = read_file_beside(folder, "quantize_config.json", "gptq")) return *gptq;
  if (const auto awq = read_file_beside(folder, "quant_config.json", "awq")) return *awq;
  return {};
}

namespace {

/// Scales that a safetensors file stores as floats of some kind, read one at a time.
class StoredScales {
 public:
  /// F32, F16, BF16 and F8_E8M0, which is a power of two.
  static bool can_read(TensorType type) {
    return type == TensorType::f32 || type == TensorType::f16 || type == TensorType::bf16 ||
           type == TensorType::f8_e8m0;
  }

  explicit StoredScales(const TensorView& tensor) : type_(tensor.type), bytes_(tensor.bytes) {}

  float operator[](uint64_t i) const {
    switch (type_) {
      case TensorType::f16: return f16_to_f32(word<uint16_t>(i));
      case TensorType::bf16: return bf16_to_f32(word<uint16_t>(i));
      case TensorType::f8_e8m0: return power_of_two(word<uint8_t>(i));
      default: return word<float>(i);
    }
  }

  /// The bits of an element of 16.
  uint16_t bits(uint64_t i) const { return word<uint16_t>(i); }

  TensorType type() const { return type_; }

 private:
  template <class Word>
  Word word(uint64_t i) const {
    Word result;
    std::memcpy(&result, bytes_.data() + i * sizeof result, sizeof result);
    return result;
  }

  static float power_of_two(uint8_t code) { return code == 255 ? NAN : std::ldexp(1.0f, code - 127); }

  TensorType type_;
  std::span<const std::byte> bytes_;
};

// Matrices of 4-bit codes as GPTQ and AWQ store them: weight = scale * (code - zero), where scale and zero belong to a
// group of columns of a row. The codes of 8 columns (GPTQ) or of 8 rows (AWQ) share a word of 32 bits.

/// The tensors of one matrix [R, C] with G groups of columns; `columns` may be null.
struct FourBitTensors {
  const TensorView* codes = nullptr;    // qweight: I32 [C/8, R] (GPTQ) or [C, R/8] (AWQ)
  const TensorView* zeros = nullptr;    // qzeros: I32 [G, R/8]
  const TensorView* scales = nullptr;   // scales: F16, BF16 or F32 [G, R]
  const TensorView* columns = nullptr;  // g_idx: I32 [C], the group of each column
};

constexpr uint64_t codes_in_word = 8;
constexpr uint64_t block = 32;  // columns of a block of Q4_0 and Q4_1
constexpr uint32_t middle = 8;  // the zero of symmetric codes

// The place in a word of AWQ's that has the code of each of 8 rows.
constexpr std::array<uint32_t, codes_in_word> awq_places = {0, 4, 1, 5, 2, 6, 3, 7};

uint32_t word_at(std::span<const std::byte> words, uint64_t i) {
  uint32_t word = 0;
  std::memcpy(&word, words.data() + i * sizeof word, sizeof word);
  return word;
}

struct CodeGrid {
  uint64_t rows = 0;
  uint64_t cols = 0;
  uint64_t group = 0;  // columns
  uint64_t groups = 0;
};

class FourBitMatrix final : public PackedMatrix {
 public:
  FourBitMatrix(std::string name, TensorType type, const CodeGrid& extent, const FourBitTensors& tensors,
                std::vector<uint32_t> group_of, const HfQuantization& quantization)
      : name_(std::move(name)),
        type_(type),
        extent_(extent),
        codes_(tensors.codes->bytes),
        zeros_(tensors.zeros->bytes),
        scales_(*tensors.scales),
        group_of_(std::move(group_of)),
        is_awq_(quantization.method == Method::awq),
        less_one_(quantization.zeros_less_one) {}

  void make_rows(uint64_t first, uint64_t count, std::span<std::byte> out) const override {
    switch (type_) {
      case TensorType::q4_0:
      case TensorType::q4_1: return make_blocks(first, count, out);
      case TensorType::f16: return make_wide<uint16_t>(first, count, out, [](float v) { return f32_to_f16(v); });
      case TensorType::bf16: return make_wide<uint16_t>(first, count, out, [](float v) { return f32_to_bf16(v); });
      default: return make_wide<float>(first, count, out, [](float v) { return v; });
    }
  }

  std::string_view form() const override {
    if (!group_of_.empty()) return "GPTQ with columns in an order of their own (act-order)";
    return is_awq_ ? "AWQ" : "GPTQ";
  }

 private:
  /// The codes of one column.
  void codes_of(uint64_t col, uint64_t first, std::span<uint8_t> codes) const {
    if (!is_awq_) {
      const uint64_t begin = col / codes_in_word * extent_.rows + first;
      const uint32_t shift = 4 * static_cast<uint32_t>(col % codes_in_word);
      for (uint64_t r = 0; r < codes.size(); ++r) codes[r] = word_at(codes_, begin + r) >> shift & 15;
      return;
    }
    const uint64_t begin = col * (extent_.rows / codes_in_word);
    for (uint64_t r = 0; r < codes.size(); ++r) {
      const uint64_t row = first + r;
      codes[r] = word_at(codes_, begin + row / codes_in_word) >> (4 * awq_places[row % codes_in_word]) & 15;
    }
  }

  uint32_t zero_of(uint64_t group, uint64_t row) const {
    uint32_t word = word_at(zeros_, group * (extent_.rows / codes_in_word) + row / codes_in_word);
    if (less_one_) word += 0x11111111;  // as GPTQModel, which writes them with all carries of subtracting it
    const auto place = static_cast<uint32_t>(row % codes_in_word);
    return word >> (4 * (is_awq_ ? awq_places[place] : place)) & 15;
  }

  void make_blocks(uint64_t first, uint64_t count, std::span<std::byte> out) const {
    const TensorTypeInfo& info = tensor_type_info(type_);
    const uint64_t row_size = extent_.cols / block * info.block_bytes;
    std::vector<uint8_t> codes(block * count);
    for (uint64_t begin = 0; begin < extent_.cols; begin += block) {
      for (uint64_t c = 0; c < block; ++c) codes_of(begin + c, first, std::span(codes).subspan(c * count, count));
      const uint64_t group = begin / extent_.group;
      for (uint64_t r = 0; r < count; ++r) {
        std::byte* at = out.data() + r * row_size + begin / block * info.block_bytes;
        at = put_scales(group, first + r, at);
        for (uint64_t c = 0; c < block / 2; ++c) {
          at[c] = static_cast<std::byte>(codes[c * count + r] | codes[(c + block / 2) * count + r] << 4);
        }
      }
    }
  }

  /// Writes what a block has before its codes, and returns where these go.
  std::byte* put_scales(uint64_t group, uint64_t row, std::byte* at) const {
    const uint64_t place = group * extent_.rows + row;
    const uint16_t scale = scales_.bits(place);
    std::memcpy(at, &scale, sizeof scale);
    at += sizeof scale;
    const uint32_t zero = zero_of(group, row);
    if (type_ == TensorType::q4_0) {
      if (zero == middle) return at;
      throw bad_input("The matrix " + quoted_name(name_) + " has a zero of " + std::to_string(zero) + " in row " +
                      std::to_string(row) + ", but its 'quantization_config' says 'sym', by which all are 8.");
    }
    const uint16_t minimum = f32_to_f16(0.0f - scales_[place] * static_cast<float>(zero));
    std::memcpy(at, &minimum, sizeof minimum);
    return at + sizeof minimum;
  }

  template <class Word, class Round>
  void make_wide(uint64_t first, uint64_t count, std::span<std::byte> out, Round round) const {
    std::vector<float> scales(extent_.groups * count), zeros(scales.size());
    for (uint64_t group = 0; group < extent_.groups; ++group) {
      for (uint64_t r = 0; r < count; ++r) {
        scales[group * count + r] = scales_[group * extent_.rows + first + r];
        zeros[group * count + r] = static_cast<float>(zero_of(group, first + r));
      }
    }
    std::vector<uint8_t> codes(count);
    for (uint64_t col = 0; col < extent_.cols; ++col) {
      codes_of(col, first, codes);
      const uint64_t group = group_of_.empty() ? col / extent_.group : group_of_[col];
      for (uint64_t r = 0; r < count; ++r) {
        const uint64_t at = group * count + r;
        const Word value = round(scales[at] * (static_cast<float>(codes[r]) - zeros[at]));
        std::memcpy(out.data() + (r * extent_.cols + col) * sizeof value, &value, sizeof value);
      }
    }
  }

  std::string name_;
  TensorType type_;
  CodeGrid extent_;
  std::span<const std::byte> codes_, zeros_;
  StoredScales scales_;
  std::vector<uint32_t> group_of_;  // of each column; empty where groups are runs of columns
  bool is_awq_, less_one_;
};

[[noreturn]] void refuse_shape(const TensorView& tensor, const std::string& expected) {
  throw bad_input("The tensor " + quoted_name(tensor.name) + " is " + tensor.shape_text() + " of " +
                  std::string(to_string(tensor.type)) + "; " + expected + " is expected.");
}

void require_words(const TensorView& tensor, std::optional<std::array<uint64_t, 2>> shape) {
  const std::string wanted =
      shape ? "[" + std::to_string((*shape)[0]) + ", " + std::to_string((*shape)[1]) + "] of I32" : "a matrix of I32";
  const bool is_as_wanted = tensor.type == TensorType::i32 && tensor.rank == 2 &&
                            (!shape || (tensor.shape[0] == (*shape)[0] && tensor.shape[1] == (*shape)[1]));
  if (!is_as_wanted) refuse_shape(tensor, wanted);
}

CodeGrid grid_of_codes(const TensorView& codes, const HfQuantization& quantization) {
  require_words(codes, std::nullopt);
  const bool is_awq = quantization.method == Method::awq;
  CodeGrid extent;
  extent.cols = is_awq ? codes.shape[0] : checked_mul(codes.shape[0], codes_in_word, "columns of " + codes.name);
  extent.rows = is_awq ? checked_mul(codes.shape[1], codes_in_word, "rows of " + codes.name) : codes.shape[1];
  if (extent.cols == 0 || extent.rows == 0 || extent.rows % codes_in_word != 0) {
    refuse_shape(codes, "a number of rows that is a multiple of 8");
  }
  checked_mul(extent.rows, extent.cols, "elements of " + codes.name);
  extent.group = quantization.group_size == 0 ? extent.cols : quantization.group_size;
  extent.groups = (extent.cols - 1) / extent.group + 1;
  return extent;
}

/// The group of each column; empty where groups are runs of columns, as without g_idx.
std::vector<uint32_t> read_groups(const TensorView* columns, const CodeGrid& extent) {
  if (columns == nullptr) return {};
  if (columns->type != TensorType::i32 || columns->rank != 1 || columns->shape[0] != extent.cols) {
    refuse_shape(*columns, "[" + std::to_string(extent.cols) + "] of I32");
  }
  std::vector<uint32_t> groups(extent.cols);
  bool are_runs = true;
  for (uint64_t col = 0; col < extent.cols; ++col) {
    groups[col] = word_at(columns->bytes, col);
    if (groups[col] >= extent.groups) {
      throw bad_input("The tensor " + quoted_name(columns->name) + " puts column " + std::to_string(col) +
                      " into group " + std::to_string(static_cast<int32_t>(groups[col])) + "; there are " +
                      std::to_string(extent.groups) + " groups of " + std::to_string(extent.group) + " columns.");
    }
    are_runs = are_runs && groups[col] == col / extent.group;
  }
  if (are_runs) groups.clear();
  return groups;
}

TensorType type_of_rows(const CodeGrid& extent, TensorType scales, bool has_own_order, bool symmetric) {
  const bool blocks_have_one_group =
      !has_own_order && extent.cols % block == 0 && (extent.group % block == 0 || extent.groups == 1);
  if (!blocks_have_one_group || scales != TensorType::f16) return scales;
  return symmetric ? TensorType::q4_0 : TensorType::q4_1;
}

/// The matrix under that name. Its type holds the codes themselves where that loses nothing or next to nothing; errors
/// are in steps from a code to the next, of which the codes' own noise is 0.29:
///   Q4_0 where all zeros are 8, exactly;
///   Q4_1 else, with scale * zero rounded to a half: off by less than 0.0074 (root mean square 0.0012), as are weights
///     that programs for these files compute in halves (0.0005);
///   the type of the scales where a block of 32 columns has several groups (columns in an order of their own,
///     "act-order"), or where scales are no halves: bit for bit the weight that those programs compute. Q8_0 would be
///     off by up to 0.07 (0.015), Q4_1 by 0.86 (0.23); who wants Q8_0 says so when loading (QuantizeOnLoad).
/// Throws bad_input where tensors do not fit each other.
TensorView four_bit_matrix(std::string name, const FourBitTensors& tensors, const HfQuantization& quantization) {
  const CodeGrid extent = grid_of_codes(*tensors.codes, quantization);
  require_words(*tensors.zeros, std::array{extent.groups, extent.rows / codes_in_word});
  const TensorView& scales = *tensors.scales;
  const bool is_float =
      scales.type == TensorType::f16 || scales.type == TensorType::bf16 || scales.type == TensorType::f32;
  if (!is_float || scales.rank != 2 || scales.shape[0] != extent.groups || scales.shape[1] != extent.rows) {
    refuse_shape(scales, "[" + std::to_string(extent.groups) + ", " + std::to_string(extent.rows) +
                             "] of F16, BF16 or F32, one scale for " + std::to_string(extent.group) +
                             " columns of a row,");
  }
  std::vector<uint32_t> group_of = read_groups(tensors.columns, extent);
  TensorView matrix;
  matrix.name = std::move(name);
  matrix.stored_as = tensors.codes->name;
  matrix.type = type_of_rows(extent, scales.type, !group_of.empty(), quantization.symmetric);
  matrix.rank = 2;
  matrix.shape = {extent.rows, extent.cols};
  matrix.bytes = tensors.codes->bytes;
  matrix.packed = std::make_shared<FourBitMatrix>(matrix.stored_as, matrix.type, extent, tensors, std::move(group_of),
                                                  quantization);
  return matrix;
}

// Matrices of 8-bit floats (E4M3: 4 bits of exponent, 3 of mantissa, no infinity) with a scale for all of them, for
// each row, or for each block of rows and columns: weight = scale * element.

/// An E4M3 by its bits: exponents count from 2^-6, and the largest with all ones is no number.
float e4m3_to_f32(uint8_t bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  if (exponent == 15 && mantissa == 7) return NAN;
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                        : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

std::array<float, 256> e4m3_table() {
  std::array<float, 256> table{};
  for (size_t i = 0; i < table.size(); ++i) table[i] = e4m3_to_f32(static_cast<uint8_t>(i));
  return table;
}

/// Where the scale of an element is.
struct ScaleGrid {
  uint64_t block_rows = 1, block_cols = 1;
  uint64_t across = 1;  // scales beside each other
};

class Fp8Matrix final : public PackedMatrix {
 public:
  Fp8Matrix(const TensorView& elements, const TensorView& scales, const ScaleGrid& grid)
      : cols_(elements.cols()), elements_(elements.bytes), scales_(scales), grid_(grid) {}

  void make_rows(uint64_t first, uint64_t count, std::span<std::byte> out) const override {
    for (uint64_t row = first; row < first + count;) {
      const uint64_t band = row / grid_.block_rows;
      const uint64_t end = std::min(first + count, (band + 1) * grid_.block_rows);
      for (uint64_t col = 0; col < cols_; col += grid_.block_cols) {
        const std::array<uint16_t, 256> halves = halves_at(scales_[band * grid_.across + col / grid_.block_cols]);
        const uint64_t width = std::min(cols_ - col, grid_.block_cols);
        for (uint64_t r = row; r < end; ++r) put(halves, r, col, width, out.data() + ((r - first) * cols_ + col) * 2);
      }
      row = end;
    }
  }

  std::string_view form() const override { return "FP8"; }

 private:
  /// All weights that elements of a block can stand for.
  static std::array<uint16_t, 256> halves_at(float scale) {
    static const std::array<float, 256> values = e4m3_table();
    std::array<uint16_t, 256> halves;
    for (size_t i = 0; i < halves.size(); ++i) halves[i] = f32_to_f16(values[i] * scale);
    return halves;
  }

  void put(const std::array<uint16_t, 256>& halves, uint64_t row, uint64_t col, uint64_t width, std::byte* out) const {
    const auto* elements = reinterpret_cast<const uint8_t*>(elements_.data()) + row * cols_ + col;
    for (uint64_t c = 0; c < width; ++c) std::memcpy(out + c * 2, &halves[elements[c]], 2);
  }

  uint64_t cols_;
  std::span<const std::byte> elements_;
  StoredScales scales_;
  ScaleGrid grid_;
};

ScaleGrid grid_of(const TensorView& elements, const TensorView& scales, const HfQuantization& quantization) {
  const uint64_t rows = elements.shape[0], cols = elements.shape[1];
  const auto [block_rows, block_cols] = quantization.block;
  if (block_rows != 0 && scales.rank == 2) {
    const uint64_t down = (rows - 1) / block_rows + 1, across = (cols - 1) / block_cols + 1;
    if (scales.shape[0] == down && scales.shape[1] == across) return {block_rows, block_cols, across};
  }
  if (scales.elements() == 1) return {rows, cols, 1};
  const bool is_for_rows = scales.rank >= 1 && scales.rank <= 2 && scales.shape[0] == rows && scales.elements() == rows;
  if (is_for_rows) return {1, cols, 1};
  throw bad_input("The scales " + quoted_name(scales.name) + " are " + scales.shape_text() + " for a matrix of " +
                  elements.shape_text() + "; one scale, one for each row" +
                  (block_rows == 0 ? std::string(" or, if 'quantization_config' says so, one for each block")
                                   : ", or one for each block of " + std::to_string(block_rows) + " rows and " +
                                         std::to_string(block_cols) + " columns") +
                  " are expected.");
}

/// The matrix of `elements`, F8_E4M3 [R, C], and `scales`: one element, [R], [R, 1], or one a block as
/// quantization.block says. Called inverse in files of DeepSeek, they are multiplied with all the same. Rows are made
/// in F16, as an element has 4 significant bits: of the noise that FP8 has by itself that adds 0.8% (root mean square,
/// of normally distributed weights in blocks of 128 by 128), where BF16 adds 6% and Q8_0 21%. Who wants Q8_0 says so
/// when loading (QuantizeOnLoad). Throws bad_input where the two do not fit each other.
TensorView fp8_matrix(const TensorView& elements, const TensorView& scales, const HfQuantization& quantization) {
  if (elements.rank != 2 || elements.elements() == 0) {
    throw bad_input("The tensor " + quoted_name(elements.name) + " of FP8 is " + elements.shape_text() +
                    "; a matrix is expected.");
  }
  if (!StoredScales::can_read(scales.type)) {
    throw bad_input("The scales " + quoted_name(scales.name) + " are stored as " + std::string(to_string(scales.type)) +
                    "; F32, F16, BF16 or F8_E8M0 is expected.");
  }
  TensorView matrix = elements;
  matrix.type = TensorType::f16;
  matrix.packed = std::make_shared<Fp8Matrix>(elements, scales, grid_of(elements, scales, quantization));
  return matrix;
}

constexpr std::string_view codes_suffix = ".qweight", weight_suffix = ".weight";

/// Scales of activations and of caches, which other programs keep in 8 bits: no part of the weights.
constexpr std::array<std::string_view, 5> unread_scales = {".input_scale", ".activation_scale", ".q_scale", ".k_scale",
                                                           ".v_scale"};

class Unpacker {
 public:
  Unpacker(std::span<const TensorView> found, const HfQuantization& quantization)
      : found_(found), quantization_(quantization) {
    for (const TensorView& tensor : found) by_name_.emplace(tensor.name, &tensor);
  }

  std::vector<TensorView> unpack() {
    std::vector<TensorView> made;
    made.reserve(found_.size());
    for (const TensorView& tensor : found_) made.push_back(unpacked(tensor));
    // What became part of a matrix was pushed as itself before: it is left out now that all are known.
    std::erase_if(made, [&](const TensorView& tensor) { return used_.contains(tensor.name); });
    return made;
  }

 private:
  TensorView unpacked(const TensorView& tensor) {
    const std::string_view name = tensor.name;
    if (is_four_bits() && name.ends_with(codes_suffix)) return four_bits(tensor);
    if (quantization_.method == Method::fp8) {
      if (tensor.type == TensorType::f8_e4m3 && name.ends_with(weight_suffix)) return fp8(tensor);
      for (const std::string_view suffix : unread_scales) {
        if (name.ends_with(suffix)) used_.insert(tensor.name);
      }
    }
    return tensor;
  }

  bool is_four_bits() const { return quantization_.method == Method::gptq || quantization_.method == Method::awq; }

  TensorView four_bits(const TensorView& codes) {
    const std::string base = codes.name.substr(0, codes.name.size() - codes_suffix.size());
    FourBitTensors parts;
    parts.codes = &codes;
    parts.zeros = &required(base + ".qzeros", codes);
    parts.scales = &required(base + ".scales", codes);
    parts.columns = used(base + ".g_idx");
    return four_bit_matrix(base + std::string(weight_suffix), parts, quantization_);
  }

  TensorView fp8(const TensorView& elements) {
    const TensorView* scales = used(elements.name + "_scale_inv");
    return fp8_matrix(elements, scales != nullptr ? *scales : required(elements.name + "_scale", elements),
                      quantization_);
  }

  const TensorView* used(const std::string& name) {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return nullptr;
    used_.insert(name);
    return found->second;
  }

  const TensorView& required(const std::string& name, const TensorView& owner) {
    if (const TensorView* found = used(name)) return *found;
    throw bad_input("The tensor " + quoted_name(name) + " is missing, which belongs to " + quoted_name(owner.name) +
                    " in a folder of " + std::string(to_string(quantization_.method)) + ".");
  }

  std::span<const TensorView> found_;
  const HfQuantization& quantization_;
  std::unordered_map<std::string_view, const TensorView*> by_name_;
  std::unordered_set<std::string> used_;
};

}  // namespace

std::vector<TensorView> unpacked_tensors(std::span<const TensorView> found, const HfQuantization& quantization) {
  if (quantization.method == Method::none) {
    for (const TensorView& tensor : found) {
      if (!tensor.name.ends_with(codes_suffix)) continue;
      throw bad_input("The tensor " + quoted_name(tensor.name) +
                      " holds codes of a quantization of which the folder says nothing: config.json has no "
                      "'quantization_config', and there is no quantize_config.json.");
    }
    return {found.begin(), found.end()};
  }
  return Unpacker(found, quantization).unpack();
}

}  // namespace canopy
