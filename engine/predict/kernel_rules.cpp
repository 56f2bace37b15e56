#include "engine/predict/kernel_rules.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/compute/product_split.h"

namespace canopy::predict {
namespace {

struct NamedKernels {
  const char* name;
  Kernels kernels;
};
constexpr NamedKernels kNames[] = {
    {"today", Kernels::today}, {"fma", Kernels::fma}, {"matrix", Kernels::matrix}, {"llama.cpp", Kernels::llama_cpp}};

// Machine code of AMD's compiler for navi31, per 16 × 256 = 4096 weights and wave of 32: the FMA kernel has 361
// instructions and 85 a column, of which pairs of multiply-adds are in f32_tflop_s already. The matrix kernel that
// decodes into shared memory has 393 beside its matrix instructions at 16 columns, 250 of them the decoding, and 42
// more for each further 16.
constexpr double kPerWeight = 32.0 / 4096;
constexpr double kDecodeOps = 250 * kPerWeight;
constexpr double kFmaOtherOps = (361 - 250) * kPerWeight;
constexpr double kMatrixOtherOps = (393 - 250 - 42) * kPerWeight;
constexpr double kMatrixColumnOps = 42 * kPerWeight / 16;

// Share of the time that an invocation has loads under way: between two barriers it decodes and multiplies.
constexpr double kLoadingToday = 0.5, kLoadingMatrix = 0.7, kLoadingFma = 0.8;

struct NamedRule {
  const char* name;
  double KernelRules::*rule;
};
constexpr NamedRule kRules[] = {{"tile_rows", &KernelRules::tile_rows},
                                {"tile_columns", &KernelRules::tile_columns},
                                {"invocations", &KernelRules::invocations},
                                {"bytes_in_flight", &KernelRules::bytes_in_flight},
                                {"occupancy", &KernelRules::occupancy},
                                {"activation_bytes", &KernelRules::activation_bytes},
                                {"decode_ops", &KernelRules::decode_ops},
                                {"attention_positions", &KernelRules::attention_positions},
                                {"attention_rows", &KernelRules::attention_rows},
                                {"attention_invocations", &KernelRules::attention_invocations},
                                {"attention_bytes_in_flight", &KernelRules::attention_bytes_in_flight},
                                {"heads_steps", &KernelRules::heads_steps},
                                {"attention_steps", &KernelRules::attention_steps},
                                {"swiglu_steps", &KernelRules::swiglu_steps},
                                {"add_steps", &KernelRules::add_steps},
                                {"linear_steps", &KernelRules::linear_steps},
                                {"submissions", &KernelRules::submissions}};

KernelRules today_rules() {
  KernelRules rules;
  rules.tile_rows = 128;
  rules.tile_columns = 8;
  rules.repeats_weights = true;
  rules.invocations = 512;                     // 32 × 4 rows, up to 16 segments of K at a time
  rules.bytes_in_flight = 64 * kLoadingToday;  // a unit of 16 bytes of each of 4 rows
  rules.decode_ops = kDecodeOps;
  rules.other_ops = kFmaOtherOps;
  rules.attention_positions = 0;
  rules.attention_rows = 1;
  rules.attention_invocations = 32;
  rules.attention_bytes_in_flight = 64;
  rules.attention_steps = 1;
  rules.submissions = 3;  // upload, pass, read
  rules.downloads_logits = true;
  return rules;
}

KernelRules fma_rules() {
  KernelRules rules;
  rules.tile_rows = kProductBand;
  rules.tile_columns = 8;
  rules.splits_columns = true;
  rules.buckets = true;
  rules.invocations = 256;  // 64 rows × up to 4 slices of K
  rules.slice_columns = 256;
  rules.bytes_in_flight = 32 * kLoadingFma;
  rules.decode_ops = kDecodeOps;
  rules.other_ops = kFmaOtherOps;
  return rules;
}

KernelRules matrix_rules() {
  KernelRules rules;
  rules.tile_rows = kProductBand;
  rules.tile_columns = 64;
  rules.least_columns = 16;
  rules.splits_columns = true;
  rules.buckets = true;
  rules.invocations = 128;
  rules.bytes_in_flight = 32 * kLoadingMatrix;
  rules.decode_ops = kDecodeOps;
  rules.other_ops = kMatrixOtherOps;
  rules.ops_a_column = kMatrixColumnOps;
  rules.matrix_cores = true;
  return rules;
}

/// Two rows of a weight in a workgroup of 64, sums in integers of 8 bits; norm, q k v together, rotation and K/V store;
/// attention and its merge; product with the addition; norm, gate and up together, activation; product.
KernelRules llama_cpp_rules() {
  KernelRules rules;
  rules.tile_rows = 2;
  rules.tile_columns = 1;
  rules.invocations = 64;
  rules.bytes_in_flight = 32 * kLoadingFma;
  rules.activation_bytes = 1;
  rules.decode_ops = 1;
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
  throw bad_input("There are no kernels named '" + printable(name) + "'; allowed: today, fma, matrix, llama.cpp.");
}

Kernels default_kernels(const DeviceProfile& device) {
  return device.matrix_tflop_s > 0 ? Kernels::matrix : Kernels::fma;
}

KernelRules rules_of(Kernels kernels) {
  KernelRules rules;
  switch (kernels) {
    case Kernels::today: rules = today_rules(); break;
    case Kernels::fma: rules = fma_rules(); break;
    case Kernels::matrix: rules = matrix_rules(); break;
    case Kernels::llama_cpp: rules = llama_cpp_rules(); break;
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

uint32_t width_bucket(uint32_t width) {
  for (const uint32_t bucket : {1u, 8u, 16u, 32u}) {
    if (width <= bucket) return bucket;
  }
  return (width + 63) / 64 * 64;
}

double decode_factor(WeightType type) {
  switch (type) {
    case WeightType::f32: return 0.5;
    case WeightType::f16: return 0.25;
    case WeightType::bf16: return 0.75;
    case WeightType::q8_0: return 0.8;
    case WeightType::q4_0:
    case WeightType::q4_1: return 1;
    case WeightType::q4_k: return 1.1;
    case WeightType::q2_k: return 1.2;
    case WeightType::q5_0:
    case WeightType::q5_1: return 1.3;
    case WeightType::q5_k: return 1.4;
    case WeightType::q3_k:
    case WeightType::q6_k:
    case WeightType::iq4_nl:
    case WeightType::iq4_xs:
    case WeightType::mxfp4: return 1.5;
  }
  return 1;
}

}  // namespace canopy::predict
