#include "engine/format/quantization_hf.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>

#include "engine/base/error.h"
#include "engine/base/printable.h"
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
  const json root = parse_json(config_json, "config.json");
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

}  // namespace canopy
