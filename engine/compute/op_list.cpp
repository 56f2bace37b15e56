#include "engine/compute/op_list.h"

#include "engine/base/error.h"

namespace canopy {

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

void check_heads(const ProjectHeadsArgs& args) {
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
