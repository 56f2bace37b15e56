// Per head h of q, k and v:  y = h * norm / sqrt(mean(h^2) + eps)     (only where a norm is given); of q and k also
//                         (y_a, y_b) -> (y_a cos - y_b sin, y_a sin + y_b cos)     for each pair (a, b)
// (a, b) = (2 i, 2 i + 1) interleaved, (i, i + head_dim / 2) otherwise; cos and sin of rotation[position, i], of a
// query rotation[position + query_offset, i]. q goes out, k and v into the row's slot, rounded to the cache's type. A
// row without a slot stores nothing.

#include <cmath>
#include <vector>

#include "engine/compute/rows.h"
#include "tests/reference/matrix_product.h"
#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {
namespace {

/// One head after its norm, which is empty where there is none.
std::vector<double> normed(const float* head, uint32_t head_dim, std::span<const float> norm, float eps) {
  std::vector<double> y(head, head + head_dim);
  if (norm.empty()) return y;
  const double scale = 1.0 / std::sqrt(sum_of_squares(head, head_dim) / head_dim + eps);
  for (uint32_t d = 0; d < head_dim; ++d) y[d] *= scale * norm[d];
  return y;
}

/// One head after norm and rotation; angles has (cos, sin) for each pair.
std::vector<float> rotated(const float* head, uint32_t head_dim, std::span<const float> norm, float eps,
                           const float* angles, bool interleaved) {
  const std::vector<double> y = normed(head, head_dim, norm, eps);
  std::vector<float> result(head_dim);
  const uint32_t pairs = head_dim / 2;
  for (uint32_t i = 0; i < pairs; ++i) {
    const uint32_t a = interleaved ? 2 * i : i;
    const uint32_t b = interleaved ? 2 * i + 1 : i + pairs;
    const double cosine = angles[2 * i];
    const double sine = angles[2 * i + 1];
    result[a] = static_cast<float>(y[a] * cosine - y[b] * sine);
    result[b] = static_cast<float>(y[a] * sine + y[b] * cosine);
  }
  return result;
}

}  // namespace

template <>
void compute(const RopeStoreArgs& args) {
  const uint32_t dim = args.shape.head_dim;
  const uint32_t kv_heads = args.shape.kv_heads;
  const bool latent = args.shape.is_latent();
  const size_t in_stride = (size_t{args.heads} + (latent ? 1 : 2) * size_t{kv_heads}) * dim;
  const size_t q_stride = size_t{args.heads} * dim;
  const auto qkv = elements<float>(args.qkv, args.width * in_stride, "rope_store: qkv");
  const auto rows = elements<Row>(args.rows, args.width, "rope_store: rows");
  require(args.cache != nullptr || kv_heads == 0, "rope_store: K and V have no cache.");
  std::span<float> q;
  if (args.heads > 0) q = elements<float>(args.q, args.width * q_stride, "rope_store: q");
  std::span<const float> q_norm;
  std::span<const float> k_norm, v_norm;
  if (args.q_norm != nullptr) q_norm = elements<float>(args.q_norm, dim, "rope_store: q norm");
  if (args.k_norm != nullptr) k_norm = elements<float>(args.k_norm, dim, "rope_store: k norm");
  if (args.v_norm != nullptr) v_norm = elements<float>(args.v_norm, dim, "rope_store: v norm");

  for (uint32_t w = 0; w < args.width; ++w) {
    const Row& row = rows[w];
    require(kv_heads == 0 || row.slot == kNoSlot || row.slot < args.shape.slots,
            "rope_store: a row's slot lies outside the cache.");
    const uint64_t position = row.position, of_query = position + args.query_offset;
    const auto table = elements<float>(args.rotation, (of_query + 1) * dim, "rope_store: rotation");
    const float* angles = table.data() + position * dim;
    const float* query_angles = table.data() + of_query * dim;
    const float* in = qkv.data() + w * in_stride;
    for (uint32_t h = 0; h < args.heads; ++h, in += dim) {
      const auto head = rotated(in, dim, q_norm, args.norm_eps, query_angles, args.interleaved);
      std::copy(head.begin(), head.end(), q.data() + w * q_stride + size_t{h} * dim);
    }
    if (row.slot == kNoSlot || kv_heads == 0) continue;
    HostKv& cache = host_kv(args.cache, args.shape, "rope_store: cache");
    float* key = cache.keys(row.slot);
    for (uint32_t h = 0; h < kv_heads; ++h, in += dim, key += dim) {
      cache.store(rotated(in, dim, k_norm, args.norm_eps, angles, args.interleaved), key);
    }
    if (latent) continue;
    float* value = cache.values(row.slot);
    for (uint32_t h = 0; h < kv_heads; ++h, in += dim, value += dim) {
      const std::vector<double> y = normed(in, dim, v_norm, args.norm_eps);
      cache.store(std::vector<float>(y.begin(), y.end()), value);
    }
  }
}

}  // namespace canopy::reference
