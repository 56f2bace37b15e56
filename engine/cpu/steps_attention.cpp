// Heads and attention, and moves in caches.

#include <cmath>
#include <limits>

#include "engine/compute/rows.h"
#include "engine/cpu/steps.h"

namespace canopy::cpu {

namespace {

void norm_head(const float* head, uint32_t dim, const float* norm, float eps, float* to) {
  const auto scale = static_cast<float>(1 / std::sqrt(sum_of_squares(head, dim) / dim + double{eps}));
  for (uint32_t d = 0; d < dim; ++d) to[d] = head[d] * (scale * norm[d]);
}

/// One head after its norm, if any, and the rotation; angles has (cos, sin) for each pair.
void rotate(const float* head, uint32_t dim, const float* norm, float eps, const float* angles, bool interleaved,
            float* to) {
  float normed[1024];
  if (norm != nullptr) {
    norm_head(head, dim, norm, eps, normed);
    head = normed;
  }
  const uint32_t pairs = dim / 2;
  for (uint32_t i = 0; i < pairs; ++i) {
    const uint32_t a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : i + pairs;
    const float cosine = angles[2 * i], sine = angles[2 * i + 1];
    to[a] = head[a] * cosine - head[b] * sine;
    to[b] = head[a] * sine + head[b] * cosine;
  }
}

}  // namespace

void Compiler::add(const RopeStoreArgs& args) {
  const uint32_t dim = args.shape.head_dim, kv_heads = args.shape.kv_heads, heads = args.heads;
  require(dim <= 1024, "rope_store: heads of more than 1024 elements.");
  const size_t in_stride = args.elements(), q_stride = size_t{heads} * dim;
  const float* qkv = elements(args.qkv, args.width * in_stride, "rope_store: qkv");
  const Row* rows = elements<Row>(args.rows, args.width, "rope_store: rows");
  const size_t query_offset = args.query_offset;
  const float* rotation = elements(args.rotation, (query_offset + 1) * dim, "rope_store: rotation");
  const float* q_norm = args.q_norm != nullptr ? elements(args.q_norm, dim, "rope_store: q norm") : nullptr;
  const float* k_norm = args.k_norm != nullptr ? elements(args.k_norm, dim, "rope_store: k norm") : nullptr;
  const float* v_norm = args.v_norm != nullptr ? elements(args.v_norm, dim, "rope_store: v norm") : nullptr;
  float* q = heads > 0 ? elements(args.q, args.width * q_stride, "rope_store: q") : nullptr;
  require(args.cache != nullptr || kv_heads == 0, "rope_store: K and V have no cache.");
  CpuKv* cache = kv_heads > 0 ? &kv_of(args.cache, args.shape, "rope_store: cache") : nullptr;
  const uint64_t positions = args.rotation->bytes() / sizeof(float) / dim - query_offset;
  const float eps = args.norm_eps;
  const bool interleaved = args.interleaved;
  const uint32_t slots = args.shape.slots;
  step_of_each(
      args.width,
      [=, &k = k_](Worker& worker, uint32_t w) {
        const Row& row = rows[w];
        const float* angles = rotation + std::min<uint64_t>(row.position, positions - 1) * dim;
        const float* in = qkv + w * in_stride;
        for (uint32_t h = 0; h < heads; ++h, in += dim) {
          rotate(in, dim, q_norm, eps, angles + query_offset * dim, interleaved, q + w * q_stride + size_t{h} * dim);
        }
        if (cache == nullptr || row.slot >= slots) return;
        float* keys = worker.scratch();
        for (uint32_t h = 0; h < kv_heads; ++h, in += dim) {
          rotate(in, dim, k_norm, eps, angles, interleaved, keys + size_t{h} * dim);
        }
        cache->store_keys(k, row.slot, keys);
        if (cache->shape().is_latent()) return;
        if (v_norm == nullptr) return cache->store_values(k, row.slot, in);
        float* values = keys;  // which are stored
        for (uint32_t h = 0; h < kv_heads; ++h)
          norm_head(in + size_t{h} * dim, dim, v_norm, eps, values + size_t{h} * dim);
        cache->store_values(k, row.slot, values);
      },
      uint64_t{kv_heads} * dim);
}

namespace {

// What attention hands from one step to the next: enough rows at once for each thread to have work.
constexpr uint64_t kAttentionFloats = 4 << 20;

/// Positions of its virtual sequence that a row sees: [first, end).
struct Visible {
  uint32_t first = 0, end = 0;
  Visible(const Row& row, bool causal, uint32_t window) {
    if (row.ancestor_count == 0) return;
    end = causal ? row.position + 1 : row.prefix + row.ancestor_count;
    if (window > 0 && row.position + 1 > window) first = row.position + 1 - window;
  }
  /// The same of a page.
  uint32_t first_in(uint32_t page) const { return std::max(first, page * kPage); }
  uint32_t end_in(uint32_t page) const { return std::min(end, (page + 1) * kPage); }
  bool sees(uint32_t page) const { return first_in(page) < end_in(page); }
  uint32_t first_page() const { return first / kPage; }
  uint32_t end_page() const { return (end + kPage - 1) / kPage; }
};

/// What all steps of an attention op know.
struct Attention {
  const float* q;  // [W, heads * dim]
  const Row* rows;
  const uint32_t* ancestors;
  const uint32_t* pages;
  const CpuKv* cache;
  uint32_t heads, group, dim, value_dim, value_stride, window, page_count, slots;
  uint64_t page_bytes;  // of keys and values of a head
  uint64_t ancestor_count;
  bool causal;
  float scale, softcap;

  Visible visible(uint32_t w) const { return {rows[w], causal, window}; }
  /// parts: [rows at once, heads, pages, 2 + value_dim]
  float* part(float* parts, uint32_t r, uint32_t head, uint32_t page) const {
    return parts + ((size_t{r} * heads + head) * page_count + page) * (2 + value_dim);
  }
  /// The first position that does not lie where the page table has it.
  static uint32_t placed_end(const Row& row) { return row.prefix + row.in_place; }

  uint64_t scratch_floats(uint32_t rows_at_once) const {
    return size_t{kPage} * (dim + value_stride) + size_t{rows_at_once} * group * (sizeof(PageQuery) / sizeof(float));
  }

  /// The parts of all rows [begin, end) of one head of keys in one page.
  void attend(const Kernels& k, uint32_t begin, uint32_t end, uint32_t kv_head, uint32_t page, float* memory,
              float* parts) const {
    PageView view;
    float* keys = memory;
    float* values = keys + size_t{kPage} * dim;
    view.keys = keys;
    view.values = values;
    view.dim = dim;
    view.value_dim = value_dim;
    view.value_stride = value_stride;
    view.scale = scale;
    view.softcap = softcap;
    auto* queries = reinterpret_cast<PageQuery*>(values + size_t{kPage} * value_stride);
    uint32_t count = 0;
    const auto add = [&](uint32_t w) {
      const Visible own = visible(w);
      for (uint32_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
        queries[count++] = {q + (size_t{w} * heads + h) * dim, own.first_in(page) - page * kPage,
                            own.end_in(page) - page * kPage, part(parts, w - begin, h, page)};
      }
    };
    // Rows all of whose keys lie in the page share it; of the others each puts its own ancestors into it.
    bool loaded = false, alone = false;
    uint32_t shared = begin;   // one of the rows that share it
    uint32_t changed = kPage;  // from here on the page has some row's own ancestors
    const auto load = [&](uint32_t w) {
      const bool needs = page * kPage < std::min(placed_end(rows[w]), visible(w).end);
      if (!needs || loaded) return;
      const uint32_t stored = std::min(pages[page], (slots - 1) / kPage);
      cache->load_keys(k, stored, kv_head, keys);
      if (cache->shape().is_latent()) {
        take_values(keys, values);
      } else {
        cache->load_values(k, stored, kv_head, value_stride, values);
      }
      loaded = true;
    };
    for (uint32_t w = begin; w < end; ++w) {
      const Visible own = visible(w);
      if (!own.sees(page)) continue;
      if (own.end_in(page) > placed_end(rows[w])) {
        alone = true;
        continue;
      }
      shared = w;
      add(w);
    }
    const bool as_halves = cache->shape().type == CacheType::f16 && !cache->shape().is_latent() && value_stride == dim;
    if (count > 0 && count <= kQueriesTogether && as_halves && !alone) {
      const uint32_t stored = std::min(pages[page], (slots - 1) / kPage);
      view.half_keys = reinterpret_cast<const uint16_t*>(cache->keys(stored, kv_head));
      view.half_values = reinterpret_cast<const uint16_t*>(cache->values(stored, kv_head));
      return k.attend(view, queries, count);
    }
    if (count > 0) {
      load(shared);
      k.attend(view, queries, count);
    }
    for (uint32_t w = begin; alone && w < end; ++w) {
      const Visible own = visible(w);
      const uint32_t placed = std::max(placed_end(rows[w]), page * kPage);
      if (!own.sees(page) || own.end_in(page) <= placed_end(rows[w])) continue;
      if (placed - page * kPage > changed) loaded = false;
      load(w);
      changed = loaded ? std::min(changed, placed - page * kPage) : 0;
      for (uint32_t p = std::max(placed, own.first_in(page)); p < own.end_in(page); ++p) {
        const uint64_t at =
            std::min<uint64_t>(uint64_t{rows[w].first_ancestor} + p - rows[w].prefix, ancestor_count - 1);
        const uint32_t slot = std::min(ancestors[at], slots - 1), place = p - page * kPage;
        cache->load_key(slot, kv_head, kPage, keys + place);
        cache->load_value(slot, kv_head, values + size_t{place} * value_stride);
        std::fill_n(values + size_t{place} * value_stride + value_dim, value_stride - value_dim, 0.0f);
      }
      count = 0;
      add(w);
      k.attend(view, queries, count);
    }
  }

  /// Of a latent cache: the values of a page from its keys.
  void take_values(const float* keys, float* values) const {
    for (uint32_t j = 0; j < kPage; ++j, values += value_stride) {
      for (uint32_t d = 0; d < value_dim; ++d) values[d] = keys[size_t{d} * kPage + j];
      std::fill_n(values + value_dim, value_stride - value_dim, 0.0f);
    }
  }

  /// A row's result: its parts in the order of the pages.
  void merge(const Kernels& k, uint32_t w, uint32_t r, const float* sinks, float* parts, float* to) const {
    const Visible own = visible(w);
    for (uint32_t h = 0; h < heads; ++h, to += value_dim) {
      if (own.end <= own.first) {
        std::fill_n(to, value_dim, 0.0f);
        continue;
      }
      float* sum = part(parts, r, h, own.first_page());
      for (uint32_t page = own.first_page() + 1; page < own.end_page(); ++page)
        k.merge(sum, part(parts, r, h, page), value_dim);
      k.finish(sum, sinks != nullptr ? sinks[h] : -std::numeric_limits<float>::infinity(), to, value_dim);
    }
  }
};

uint32_t page_count(uint32_t max_positions) {
  return (max_positions + kPage - 1) / kPage;
}
uint64_t row_part_floats(uint32_t heads, uint32_t dim, uint32_t max_positions) {
  return uint64_t{heads} * page_count(max_positions) * (2 + dim);
}
uint32_t attention_rows_at_once(uint32_t heads, uint32_t dim, uint32_t max_positions, uint32_t width) {
  const uint64_t rows = kAttentionFloats / std::max<uint64_t>(1, row_part_floats(heads, dim, max_positions));
  return static_cast<uint32_t>(std::clamp<uint64_t>(rows, 1, width));
}

}  // namespace

void Compiler::add(const AttentionArgs& args) {
  require(args.shape.kv_heads > 0 && args.heads % args.shape.kv_heads == 0,
          "attention: heads are no multiple of the kv heads.");
  require(args.shape.head_dim <= 1024, "attention: heads of more than 1024 elements.");
  require(args.shape.value_dim() <= kMostValueDim, "attention: values of more than 512 elements.");
  require(args.max_positions > 0, "attention: no positions.");
  Attention a = {};
  a.heads = args.heads;
  a.group = args.heads / args.shape.kv_heads;
  a.dim = args.shape.head_dim;
  a.value_dim = args.shape.value_dim();
  a.value_stride = (a.value_dim + 15) / 16 * 16;
  a.window = args.window;
  a.page_count = page_count(args.max_positions);
  a.slots = args.shape.slots;
  a.page_bytes = static_cast<uint64_t>(args.shape.planes() * kPage * a.dim * mean_element_bytes(args.shape));
  a.causal = args.mask == AttentionMask::causal;
  a.scale = args.scale;
  a.softcap = args.softcap;
  a.q = elements(args.q, uint64_t{args.width} * a.heads * a.dim, "attention: q");
  a.rows = elements<Row>(args.rows, args.width, "attention: rows");
  a.ancestors = elements<uint32_t>(args.ancestors, 1, "attention: ancestors");
  a.ancestor_count = args.ancestors->bytes() / sizeof(uint32_t);
  a.pages = elements<uint32_t>(args.pages, a.page_count, "attention: pages");
  a.cache = &kv_of(args.cache, args.shape, "attention: cache");
  const float* sinks = args.sinks != nullptr ? elements(args.sinks, a.heads, "attention: sinks") : nullptr;
  const RowsView out = rows_of(args.out, args.width, a.heads * a.value_dim, "attention: out");
  const uint32_t at_once = attention_rows_at_once(a.heads, a.value_dim, args.max_positions, args.width);
  reserve_common(row_part_floats(a.heads, a.value_dim, args.max_positions) * at_once);
  const uint32_t kv_heads = args.shape.kv_heads;
  for (uint32_t begin = 0; begin < args.width; begin += at_once) {
    const uint32_t end = std::min(begin + at_once, args.width);
    const auto work = [&k = k_, a, begin, end, kv_heads](Worker& worker) {
      uint32_t first_page = a.page_count, end_page = 0;
      for (uint32_t w = begin; w < end; ++w) {
        const Visible own = a.visible(w);
        if (own.end <= own.first) continue;
        first_page = std::min(first_page, own.first_page());
        end_page = std::max(end_page, std::min(own.end_page(), a.page_count));
      }
      if (first_page >= end_page) return;
      // Some that lie behind each other, so that what is fetched ahead is the thread's own.
      const uint32_t units = kv_heads * (end_page - first_page);
      const uint32_t most = std::max(1u, units / (worker.threads() * kTakesOfThread));
      uint32_t unit = 0, next = 0;
      while (worker.next(units, most, unit, next)) {
        for (; unit < next; ++unit) {
          const Reading reading(worker, a.page_bytes);
          a.attend(k, begin, end, unit % kv_heads, first_page + unit / kv_heads, worker.scratch(), worker.common());
        }
      }
    };
    plan_.scratch_floats = std::max(plan_.scratch_floats, a.scratch_floats(at_once));
    plan_.steps.push_back({work, false});
    step_of_each(
        end - begin,
        [&k = k_, a, out, sinks, begin](Worker& worker, uint32_t r) {
          float* result = worker.scratch();
          a.merge(k, begin + r, r, sinks, worker.common(), result);
          std::fill_n(result + out.cols, out.blocks * kBlock - out.cols, 0.0f);
          for (uint32_t b = 0; b < out.blocks; ++b)
            k.write_block(out, begin + r, b, result + size_t{b} * kBlock, nullptr);
        },
        uint64_t{out.blocks} * kBlock);
  }
}

void Compiler::add(const KvMoveArgs& args) {
  require(args.count <= kMaxKvMoves, "kv_move: more than 64 moves.");
  require(args.cache != nullptr, "kv_move: no cache.");
  const uint32_t* moves = elements<uint32_t>(args.moves, uint64_t{args.count} * 2, "kv_move: moves");
  std::vector<CpuKv*> layers;
  for (uint32_t i = 0; i < args.cache->layers(); ++i) {
    layers.push_back(&kv_of(&args.cache->layer(i), args.shape, "kv_move: cache"));
  }
  const uint64_t bytes = layers.empty() ? 0 : layers[0]->slot_bytes();
  step_of_each(
      static_cast<uint32_t>(layers.size()),
      [layers, moves, bytes, count = args.count, slots = args.shape.slots](Worker& worker, uint32_t layer) {
        auto* saved = reinterpret_cast<std::byte*>(worker.scratch());
        for (uint32_t i = 0; i < count; ++i) {
          if (moves[2 * i] < slots) layers[layer]->save_slot(moves[2 * i], saved + i * bytes);
        }
        for (uint32_t i = 0; i < count; ++i) {
          if (moves[2 * i] < slots && moves[2 * i + 1] < slots)
            layers[layer]->restore_slot(moves[2 * i + 1], saved + i * bytes);
        }
      },
      (uint64_t{args.count} * bytes + 3) / 4);
}

uint64_t attention_bytes(const KvShape& shape, uint32_t heads, uint32_t max_width, uint32_t max_positions) {
  const uint32_t rows = attention_rows_at_once(heads, shape.value_dim(), max_positions, std::max(1u, max_width));
  return row_part_floats(heads, shape.value_dim(), max_positions) * rows * sizeof(float);
}

}  // namespace canopy::cpu
