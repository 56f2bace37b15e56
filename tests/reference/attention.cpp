// Positions of row w: below prefix where the page table has them, then its ancestors. Its keys: up to its own position
// (causal) or all (block), and with a window only those from position + 1 - window on. Head h reads kv head h / (heads
// / kv_heads). A row without ancestors sees nothing and gets zeros. s_j = scale * q . K_j        p_j = exp(s_j - max s)
// / sum_j exp(s_j - max s)        out = sum_j p_j V_j
// A sink is one more s_j, without V_j. With a softcap c, s_j = c tanh(scale * q . K_j / c).

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/compute/rows.h"
#include "tests/reference/matrix_product.h"
#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {
namespace {

/// The slots that a row sees, in the order of their absolute positions.
std::vector<uint32_t> visible_slots(const AttentionArgs& args, const Row& row) {
  if (row.ancestor_count == 0) return {};
  require(row.ancestor_count <= kMostAncestors, "attention: a row has more than 65 ancestors.");
  const uint64_t end = uint64_t{row.first_ancestor} + row.ancestor_count;
  const auto ancestors = elements<uint32_t>(args.ancestors, end, "attention: ancestors");
  const uint64_t count = (uint64_t{args.max_positions} + kPagePositions - 1) / kPagePositions;
  const auto pages = elements<uint32_t>(args.pages, count, "attention: pages");
  const auto placed = [&](uint32_t p) { return pages[p / kPagePositions] * kPagePositions + p % kPagePositions; };
  require(row.prefix <= args.max_positions, "attention: a row's prefix is longer than max_positions.");
  std::vector<uint32_t> slots;
  for (uint32_t p = 0; p < row.prefix; ++p) slots.push_back(placed(p));
  slots.insert(slots.end(), ancestors.begin() + row.first_ancestor, ancestors.end());
  const uint64_t last = uint64_t{row.position} + 1;
  require(slots.size() >= last, "attention: a row's position lies beyond its ancestors.");
  if (args.mask == AttentionMask::causal) slots.resize(last);
  if (args.window > 0 && last > args.window) {
    slots.erase(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(last - args.window));
  }
  require(slots.size() <= args.max_positions, "attention: a row has more keys than max_positions.");
  require(row.in_place <= row.ancestor_count, "attention: more ancestors are in place than there are.");
  for (uint32_t a = 0; a < row.in_place; ++a) {
    require(ancestors[row.first_ancestor + a] == placed(row.prefix + a), "attention: an ancestor is not in place.");
  }
  for (const uint32_t slot : slots) require(slot < args.shape.slots, "attention: a slot lies outside the cache.");
  return slots;
}

/// What a product of a query and a key counts as.
struct Scores {
  double scale = 1, softcap = 0;
  double of(double product) const {
    return softcap > 0 ? softcap * std::tanh(scale * product / softcap) : scale * product;
  }
};

/// One head of one row; q is [head_dim], out [value_dim]. sink: -inf where there is none.
void attend(const float* q, const HostKv& cache, const std::vector<uint32_t>& slots, uint32_t kv_head,
            const Scores& scores, double sink, float* out) {
  const uint32_t dim = cache.shape().head_dim, value_dim = cache.shape().value_dim();
  const size_t offset = size_t{kv_head} * dim;
  std::vector<double> weights(slots.size());
  double largest = sink;
  for (size_t j = 0; j < slots.size(); ++j) {
    weights[j] = scores.of(dot(q, cache.keys(slots[j]) + offset, dim));
    largest = std::max(largest, weights[j]);
  }
  if (slots.empty()) {
    std::fill_n(out, value_dim, 0.0f);
    return;
  }
  double sum = std::exp(sink - largest);
  for (double& weight : weights) {
    weight = std::exp(weight - largest);
    sum += weight;
  }
  std::vector<double> result(value_dim);
  for (size_t j = 0; j < slots.size(); ++j) {
    const float* value = cache.values(slots[j]) + offset;
    for (uint32_t d = 0; d < value_dim; ++d) result[d] += weights[j] * value[d];
  }
  for (uint32_t d = 0; d < value_dim; ++d) out[d] = static_cast<float>(result[d] / sum);
}

}  // namespace

template <>
void compute(const AttentionArgs& args) {
  require(args.shape.kv_heads > 0 && args.heads % args.shape.kv_heads == 0,
          "attention: heads are no multiple of the kv heads.");
  const uint32_t dim = args.shape.head_dim, value_dim = args.shape.value_dim();
  const uint32_t group = args.heads / args.shape.kv_heads;
  const size_t stride = size_t{args.heads} * dim;
  const auto q = elements<float>(args.q, args.width * stride, "attention: q");
  const auto rows = elements<Row>(args.rows, args.width, "attention: rows");
  std::vector<float> sinks(args.heads, -std::numeric_limits<float>::infinity());
  if (args.sinks != nullptr)
    std::ranges::copy(elements<float>(args.sinks, args.heads, "attention: sinks"), sinks.begin());
  const Scores scores{args.scale, args.softcap};
  const HostKv& cache = host_kv(args.cache, args.shape, "attention: cache");
  HostActivations& out = written_activations(args.out, args.width, args.heads * value_dim, "attention: out");

  for (uint32_t w = 0; w < args.width; ++w) {
    const std::vector<uint32_t> slots = visible_slots(args, rows[w]);
    for (uint32_t h = 0; h < args.heads; ++h) {
      attend(q.data() + w * stride + size_t{h} * dim, cache, slots, h / group, scores, sinks[h],
             out.row(w) + size_t{h} * value_dim);
    }
    out.sum_of_squares(w) = std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace canopy::reference
