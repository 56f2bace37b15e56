#include "engine/compute/ops.h"

#include "engine/base/error.h"

namespace canopy {

std::string describe(const DeltaShape& shape) {
  return std::to_string(shape.key_heads) + " key heads of " + std::to_string(shape.key_dim) + ", " +
         std::to_string(shape.value_heads) + " value heads of " + std::to_string(shape.value_dim) + ", " +
         std::to_string(shape.taps) + " taps" + (shape.corrects ? "" : ", scanned");
}

void check_delta_shape(const DeltaShape& shape, const char* op) {
  const auto is_dim = [](uint32_t dim, uint32_t most) { return dim > 0 && dim % 4 == 0 && dim <= most; };
  const bool heads_fit = shape.key_heads > 0 && shape.value_heads > 0 && shape.value_heads % shape.key_heads == 0;
  if (heads_fit && is_dim(shape.key_dim, DeltaShape::kMostKeyDim) &&
      is_dim(shape.value_dim, DeltaShape::kMostValueDim) && shape.taps >= 2 && shape.taps <= DeltaShape::kMostTaps) {
    return;
  }
  throw bad_input(std::string(op) + " is asked for " + describe(shape) +
                  "; allowed: value heads a multiple of the key heads, key heads of 4 to " +
                  std::to_string(DeltaShape::kMostKeyDim) + " and value heads of 4 to " +
                  std::to_string(DeltaShape::kMostValueDim) + " elements, multiples of 4, and 2 to " +
                  std::to_string(DeltaShape::kMostTaps) + " taps.");
}

namespace {

constexpr size_t kNameWidth = 14;  // of a column of names

std::string price_text(const OpPrice& price) {
  return std::to_string(price.bytes) + " bytes, " + std::to_string(price.flops) + " FLOPs";
}

}  // namespace

const char* name_of(const Op& op) {
  return std::visit([](const auto& args) { return args.name; }, op);
}

OpPrice price_of(const Op& op) {
  return std::visit([](const auto& args) { return args.price(); }, op);
}

OpPrice price_of(std::span<const Op> ops) {
  OpPrice sum;
  for (const Op& op : ops) sum = sum + price_of(op);
  return sum;
}

std::string to_string(const Op& op) {
  std::string text = name_of(op);
  text.resize(std::max(text.size(), kNameWidth), ' ');
  return text + " " + std::visit([](const auto& args) { return args.shapes(); }, op) + "; " + price_text(price_of(op));
}

std::string to_string(std::span<const Op> ops) {
  std::string text;
  for (const Op& op : ops) text += to_string(op) + "\n";
  return text + std::to_string(ops.size()) + " ops; " + price_text(price_of(ops)) + "\n";
}

void check_short_conv(const ShortConvArgs& args) {
  if (args.width > 0 && args.cols > 0 && args.taps >= 2 && args.taps <= ShortConvArgs::kMostTaps) return;
  throw bad_input("short_conv has " + std::to_string(args.width) + " steps, " + std::to_string(args.cols) +
                  " columns and " + std::to_string(args.taps) + " taps; allowed: 1 or more of the first two and 2 to " +
                  std::to_string(ShortConvArgs::kMostTaps) + " taps.");
}

void check_conv_rows(const ConvRowsArgs& args) {
  if (args.group == 0 || args.cols % args.group != 0) {
    throw bad_input("conv_rows has " + std::to_string(args.cols) + " columns in groups of " +
                    std::to_string(args.group) + "; whole groups are allowed.");
  }
  if (args.taps == 0 || args.side > 1) {
    throw bad_input("conv_rows has " + std::to_string(args.taps) + " taps and side " + std::to_string(args.side) +
                    "; 1 or more and 0 or 1 are allowed.");
  }
  if (args.in == args.x) throw bad_input("conv_rows has one buffer as input and output; they must be two.");
}

void check_heads(const ProjectHeadsArgs& args) {
  if (args.heads.shape.is_latent()) {
    throw bad_input("project_heads was given a latent cache, whose keys are no products; rope_store takes one.");
  }
  uint64_t rows = 0;
  for (const Weight* weight : args.weights) rows += weight->rows();
  if (rows != args.heads.elements()) {
    throw bad_input("The weights of the heads have " + std::to_string(rows) + " rows; " +
                    std::to_string(args.heads.heads) + " heads and twice " + std::to_string(args.heads.shape.kv_heads) +
                    " K/V heads of " + std::to_string(args.heads.shape.head_dim) + " elements need " +
                    std::to_string(args.heads.elements()) + ".");
  }
}

void check_experts(const ExpertCounts& experts, const char* op) {
  const uint32_t most_used = std::min(kMaxUsedExperts, experts.all);
  if (experts.all >= 1 && experts.all <= kMaxExperts && experts.used >= 1 && experts.used <= most_used) return;
  throw bad_input(std::string(op) + " is asked for " + describe(experts) + "; allowed: 1 to " +
                  std::to_string(kMaxExperts) + " experts, and 1 to " + std::to_string(kMaxUsedExperts) +
                  " of them for a row.");
}

void check_route(const RouteArgs& args) {
  check_experts(args.experts, "route");
  const uint32_t all = args.experts.all, groups = args.groups, taken = args.groups_used;
  if (!args.sigmoid && (args.choice_bias != nullptr || groups != 1 || taken != 1)) {
    throw bad_input("route is asked for groups or a bias of the choice without a sigmoid; allowed: with one.");
  }
  if (groups == 1 && taken == 1) return;
  if (groups >= 1 && groups <= kMaxExpertGroups && all % groups == 0 && all / groups >= 2 && taken >= 1 &&
      taken <= groups && args.experts.used <= all / groups * taken) {
    return;
  }
  throw bad_input("route is asked for " + std::to_string(args.experts.used) + " of " + std::to_string(all) +
                  " experts out of " + std::to_string(taken) + " of " + std::to_string(groups) +
                  " groups; allowed: up to " + std::to_string(kMaxExpertGroups) +
                  " groups of the same number, at least 2, that have as many.");
}

std::string describe(const ExpertCounts& experts) {
  return std::to_string(experts.used) + " of " + std::to_string(experts.all) + " experts" +
         (experts.shared ? " and a shared one" : "");
}

OpList separate_ops(const ProjectHeadsArgs& args) {
  check_heads(args);
  OpList ops;
  uint32_t offset = 0;
  for (const Weight* weight : args.weights) {
    ops.push_back(LinearArgs{.width = args.heads.width,
                             .weight = weight,
                             .in = args.in,
                             .norm_eps = args.in_norm_eps,
                             .out = args.qkv,
                             .stride = args.heads.elements(),
                             .offset = offset});
    offset += weight->rows();
  }
  ops.push_back(args.heads);
  return ops;
}

}  // namespace canopy
