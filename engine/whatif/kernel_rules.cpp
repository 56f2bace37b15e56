#include "engine/whatif/kernel_rules.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace canopy::predict {
namespace {

struct NamedKernels {
  const char* name;
  Kernels kernels;
};
constexpr NamedKernels kNames[] = {
    {"fma", Kernels::fma},   {"matrix", Kernels::matrix},       {"matrix_i8", Kernels::matrix_i8},
    {"cuda", Kernels::cuda}, {"llama.cpp", Kernels::llama_cpp}, {"avx2", Kernels::avx2},
    {"vnni", Kernels::vnni}, {"avx512", Kernels::avx512},       {"neon", Kernels::neon}};

// Machine code: what RADV 25.0.7 makes of the shaders for navi31, as vector instructions of the main loop that are no
// matrix instructions and move nothing, for each weight that an invocation decodes. The main loops of
// product_linear_TYPE_matrix stage units of eight activations in 21 to 40, those of product_linear_TYPE_matrix_i8 in 79
// to 94; multiply-adds of a column are one each, none is paired.
struct DecodeOps {
  WeightType type;
  double fma, matrix, integers;
};
constexpr DecodeOps kDecodeOps[] = {
    {WeightType::f32, 1, 0.5, 0.5},     {WeightType::f16, 1.4, 0.3, 0.3},   {WeightType::bf16, 2.5, 1.5, 1.5},
    {WeightType::q8_0, 4.4, 2.8, 0.4},  {WeightType::q4_1, 4.2, 2.6, 1.4},  {WeightType::q4_0, 4.2, 2.6, 1.4},
    {WeightType::q5_0, 6.7, 4.5, 2.5},  {WeightType::q5_1, 6.7, 4.5, 2.5},  {WeightType::q2_k, 5.5, 3.3, 2.5},
    {WeightType::q3_k, 8.6, 6.1, 3.1},  {WeightType::q4_k, 4.8, 2.5, 1.6},  {WeightType::q5_k, 7.4, 4.9, 2.8},
    {WeightType::q6_k, 8.5, 4.5, 3.4},  {WeightType::iq4_nl, 13.5, 4.6, 4}, {WeightType::iq4_xs, 14, 4.6, 4.1},
    {WeightType::mxfp4, 14.7, 4.3, 4.6}};
static_assert(std::size(kDecodeOps) == kWeightTypes);

constexpr double kMatrixStageOps = 3.5, kIntegerStageOps = 11, kFmaStageOps = 7.5;
// An element of a block's share: made a float, its scales multiplied, added; and its minimum.
constexpr double kShareOps = 3, kMinimumOps = 1, kBlockWeights = 32;
// Sums of products of 8-bit integers: two instructions for eight weights, and what unpacks them.
constexpr double kDotOps = 1.1;

struct NamedRule {
  const char* name;
  double KernelRules::*rule;
};
constexpr NamedRule kRules[] = {{"tile_rows", &KernelRules::tile_rows},
                                {"tile_columns", &KernelRules::tile_columns},
                                {"invocations", &KernelRules::invocations},
                                {"columns_in_flight", &KernelRules::columns_in_flight},
                                {"registers", &KernelRules::registers},
                                {"activation_bytes", &KernelRules::activation_bytes},
                                {"decode", &KernelRules::decode},
                                {"stage_ops", &KernelRules::stage_ops},
                                {"attention_bytes_in_flight", &KernelRules::attention_bytes_in_flight},
                                {"heads_steps", &KernelRules::heads_steps},
                                {"attention_steps", &KernelRules::attention_steps},
                                {"swiglu_steps", &KernelRules::swiglu_steps},
                                {"add_steps", &KernelRules::add_steps},
                                {"linear_steps", &KernelRules::linear_steps},
                                {"submissions", &KernelRules::submissions}};

KernelRules fma_rules() {
  KernelRules rules;
  rules.splits_columns = true;
  rules.splits_attention = true;
  rules.attention_bytes_in_flight = 0;
  rules.last_finishes = true;
  rules.heads_steps = 1;
  rules.attention_steps = 1;
  rules.width_buckets = {1, 2, 4, 8};
  rules.loading = 0.8;
  rules.stage_ops = kFmaStageOps;
  rules.column_ops = 1;
  return rules;
}

KernelRules matrix_rules() {
  KernelRules rules;
  rules.splits_columns = true;
  rules.splits_attention = true;
  rules.attention_bytes_in_flight = 0;
  rules.last_finishes = true;
  rules.heads_steps = 1;
  rules.attention_steps = 1;
  rules.width_buckets = {1, 8, 16, 32, 64};
  rules.registers = 120;
  rules.stage_ops = kMatrixStageOps;
  rules.stages_asked = true;
  rules.matrix_cores = true;
  return rules;
}

KernelRules integer_rules() {
  KernelRules rules = matrix_rules();
  rules.registers = 168;
  rules.stage_ops = kIntegerStageOps;
  return rules;
}

/// Two rows of a weight in a workgroup of 64 with 32 bytes in flight each, sums in integers of 8 bits. Steps: norm, q k
/// v together, rotation and K/V store; attention and its merge; product with the addition; norm, gate and up together,
/// activation; product.
KernelRules llama_cpp_rules() {
  KernelRules rules;
  rules.loading = 0.8;
  rules.registers = 48;
  rules.activation_bytes = 1;
  rules.heads_steps = 4;
  rules.swiglu_steps = 3;
  rules.linear_steps = 2;
  return rules;
}

std::string rule_names() {
  std::string names;
  for (const NamedRule& each : kRules) names += (names.empty() ? "" : ", ") + std::string(each.name);
  return names;
}

void assume_one(KernelRules& rules, std::string_view change) {
  const size_t equals = change.find('=');
  const std::string_view name = change.substr(0, equals);
  const auto found = std::ranges::find_if(kRules, [&](const NamedRule& each) { return each.name == name; });
  if (found == std::end(kRules)) {
    throw bad_input("There is no rule of kernels named '" + printable(name) + "'; allowed: " + rule_names() + ".");
  }
  const std::string_view text = equals == std::string_view::npos ? "" : change.substr(equals + 1);
  double value = 0;
  const auto end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || stop != end || !(value > 0 && value <= 65536)) {
    throw bad_input("The rule " + std::string(name) + " is '" + printable(text) +
                    "'; allowed: a number above 0, up to 65536.");
  }
  rules.*(found->rule) = value;
}

}  // namespace

const char* to_string(Kernels kernels) {
  return std::ranges::find(kNames, kernels, &NamedKernels::kernels)->name;
}

Kernels kernels_named(std::string_view name) {
  const auto found = std::ranges::find_if(kNames, [&](const NamedKernels& each) { return each.name == name; });
  if (found != std::end(kNames)) return found->kernels;
  throw bad_input("There are no kernels named '" + printable(name) +
                  "'; allowed: fma, matrix, matrix_i8, cuda, llama.cpp; of processors avx2, vnni, avx512, neon.");
}

bool is_of_processors(Kernels kernels) {
  switch (kernels) {
    case Kernels::avx2:
    case Kernels::vnni:
    case Kernels::avx512:
    case Kernels::neon: return true;
    default: return false;
  }
}

bool has(const ProcessorFigures& processor, Kernels kernels) {
  switch (kernels) {
    case Kernels::avx2: return processor.fast.of_256.all > 0;
    case Kernels::vnni: return processor.avx_vnni;
    case Kernels::avx512: return processor.fast.of_512.all > 0;
    case Kernels::neon: return processor.fast.of_128.all > 0;
    default: return false;
  }
}

Kernels vulkan_kernels(const DeviceProfile& device) {
  return device.matrix_tflop_s > 0 ? Kernels::matrix : Kernels::fma;
}

Kernels default_kernels(const DeviceProfile& device) {
  for (const Kernels kernels : {Kernels::avx512, Kernels::vnni, Kernels::avx2, Kernels::neon})
    if (has(device.processor, kernels)) return kernels;
  return device.cuda_capability > 0 ? Kernels::cuda : vulkan_kernels(device);
}

KernelRules rules_of(Kernels kernels) {
  KernelRules rules;
  switch (kernels) {
    case Kernels::fma: rules = fma_rules(); break;
    case Kernels::matrix: rules = matrix_rules(); break;
    case Kernels::matrix_i8: rules = integer_rules(); break;
    case Kernels::cuda: rules.width_buckets = {1, 8, 16, 32, 64}; break;
    case Kernels::llama_cpp: rules = llama_cpp_rules(); break;
    case Kernels::avx2:
    case Kernels::vnni:
    case Kernels::avx512:
    case Kernels::neon: break;  // processor_work.cpp has them
  }
  rules.kernels = kernels;
  return rules;
}

void assume(KernelRules& rules, std::string_view changes) {
  while (!changes.empty()) {
    const size_t comma = changes.find(',');
    assume_one(rules, changes.substr(0, comma));
    changes = comma == std::string_view::npos ? "" : changes.substr(comma + 1);
  }
}

KernelRules rules_for(const KernelRules& rules, WeightType type) {
  if (rules.kernels != Kernels::matrix_i8 || !is_dense(type)) return rules;
  KernelRules halves = rules;
  const KernelRules matrix = rules_of(Kernels::matrix);
  halves.kernels = Kernels::matrix;
  halves.registers = matrix.registers;
  halves.stage_ops = matrix.stage_ops;
  halves.stages_asked = matrix.stages_asked;
  return halves;
}

uint32_t scales_of_block(WeightType type) {
  return type == WeightType::q2_k || type == WeightType::q3_k || type == WeightType::q6_k ? 2 : 1;
}

double scale_ops(Kernels kernels, WeightType type) {
  if (kernels != Kernels::matrix_i8) return 0;
  bool minimum = false;
  switch (type) {
    case WeightType::q4_0:
    case WeightType::q4_1:
    case WeightType::q5_0:
    case WeightType::q5_1:
    case WeightType::q2_k:
    case WeightType::q4_k:
    case WeightType::q5_k: minimum = true; break;
    default: break;
  }
  return scales_of_block(type) * (kShareOps + (minimum ? kMinimumOps : 0)) / kBlockWeights;
}

double decode_ops(Kernels kernels, WeightType type) {
  const DecodeOps& ops = *std::ranges::find(kDecodeOps, type, &DecodeOps::type);
  switch (kernels) {
    case Kernels::fma: return ops.fma;
    case Kernels::matrix: return ops.matrix;
    case Kernels::matrix_i8: return ops.integers;
    case Kernels::cuda: return 0;  // op_work.cpp has them
    case Kernels::llama_cpp: return kDotOps;
    default: return 0;  // processor_work.cpp has them
  }
}

}  // namespace canopy::predict
