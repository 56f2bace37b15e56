#include "tests/vulkan/isa_kernels.h"

#include <bit>
#include <initializer_list>
#include <iterator>
#include <set>
#include <utility>

#include "engine/vulkan/attention.h"
#include "engine/vulkan/product_config.h"

namespace canopy::vk::testing {
namespace {

constexpr const char* weight_types[] = {"f32",  "f16",  "bf16", "q8_0", "q4_1",   "q5_1",   "q2_k",
                                        "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs", "mxfp4"};
constexpr const char* product_ops[] = {"product_linear_", "product_add_", "product_swiglu_", "product_heads_"};
constexpr uint32_t head_sizes[] = {64, 128};

// Waves of kernels that were not measured, and of those that are chosen only where they are faster.
constexpr uint32_t kWavesByRule = 8, kLeastWaves = 4;

// The variants for products of some widths: by rule alone, or all that can be chosen. Which ones depends on the weight:
// a matrix in the middle of a model, which is cut into chunks, and a head, which is not.
template <class Candidates>
std::vector<GatedVariant> product_variants(std::initializer_list<uint32_t> widths, bool all, uint32_t waves_by_rule,
                                           const Candidates& candidates) {
  std::vector<GatedVariant> gated;
  std::set<std::string> known;
  for (const uint32_t width : widths) {
    for (const uint32_t rows : {4096u, 151936u}) {
      const auto configs = candidates(ProductShape{rows, 4096, chunk_columns(rows, 4096), width});
      for (size_t i = 0; i < (all ? configs.size() : 1); ++i) {
        const ProductVariant variant = configs[i].variant();
        if (!known.insert(variant.text).second) continue;
        gated.push_back({variant.columns, variant.options, i == 0 ? waves_by_rule : kLeastWaves});
      }
    }
  }
  return gated;
}

// Heads of 128 elements with norms, rotated in halves, for a cache in q8_0, which takes the most.
void add_head_constants(std::vector<GatedVariant>& variants) {
  for (GatedVariant& variant : variants) {
    const SpecConstant heads[] = {{10, 128}, {11, 0}, {12, 1}, {13, 1}, {14, static_cast<uint32_t>(CacheType::q8_0)}};
    variant.options.spec.insert(variant.options.spec.end(), std::begin(heads), std::end(heads));
  }
}

void add_products(std::vector<GatedKernel>& kernels, const Context& context, bool all_variants) {
  const DeviceLimits& limits = context.limits();
  const MatrixShape* matrix = product_matrix(context.report(), context.features());
  const MatrixShape* integers = integer_matrix(context.report(), context.features());
  const auto fma_of = [&](const ProductShape& shape) {
    return fma_candidates(shape, kMostFmaColumns, /*software=*/false, limits);
  };
  const auto cores_of = [&](const MatrixShape* cores) {
    return [&limits, cores](const ProductShape& shape) {
      return matrix_candidates(shape, *cores, kMostMatrixColumns, /*software=*/false, limits);
    };
  };
  for (const std::string op : product_ops) {
    const bool all = all_variants || op == product_ops[1];  // product_add, which needs the most
    GatedKernel fma{.variants = product_variants({1, 2, 4, 8}, all, kWavesByRule, fma_of)};
    GatedKernel cores, integer_cores;
    cores.must_fuse = false;  // only the decoding of some types multiplies and adds
    // GFX1151's SIMDs have two thirds of the registers of NAVI31's.
    if (matrix != nullptr) cores.variants = product_variants({16, 32, 64}, all, kLeastWaves, cores_of(matrix));
    if (integers != nullptr) {
      integer_cores.variants = product_variants({16, 32, 64}, all, kLeastWaves, cores_of(integers));
    }
    if (op == product_ops[3]) {
      for (GatedKernel* kernel : {&fma, &cores, &integer_cores}) add_head_constants(kernel->variants);
    }
    for (const std::string type : weight_types) {
      fma.shader = op + type;
      kernels.push_back(fma);
      cores.shader = op + type + "_matrix";
      if (matrix != nullptr) kernels.push_back(cores);
      integer_cores.shader = op + type + "_matrix_i8";
      if (integers != nullptr && has_shader(integer_cores.shader)) kernels.push_back(integer_cores);
    }
  }
}

// These have one pipeline for all widths.
void add_row_kernels(std::vector<GatedKernel>& kernels) {
  const auto add = [&](const std::string& shader, std::vector<SpecConstant> spec, uint32_t least_waves) {
    kernels.push_back({shader, {{1, {std::move(spec), 0}, least_waves}}});
  };
  for (const CacheType cache : kCacheTypes) {
    for (const uint32_t head : head_sizes) {
      add(std::string("rope_store_") + to_string(cache), {{0, 32}, {1, head}, {2, 0}, {3, 1}, {4, 1}},
          8);  // halves, norms of q and k
    }
  }
  for (const std::string type : weight_types) add("embed_" + type, {}, 8);
  for (const uint32_t within : {0u, 1u}) add("gated_norm", {{0, within}}, 8);
  add("norm_add_quads", {}, 8);
  add("norm_add_words", {}, 8);
  add("cap_logits", {}, 8);
  add("conv_rows", {}, 8);
  // The taps of all published models, of delta nets and of scans.
  add("delta_inputs", {{0, 4}, {1, 1}, {2, 0}}, 8);
  add("delta_inputs", {{0, 4}, {1, 0}, {2, 1}}, 8);
  for (const uint32_t reads : {0u, 1u}) {
    for (const uint32_t corrects : {0u, 1u}) add("delta_net", {{0, 128}, {1, reads}, {2, corrects}}, kLeastWaves);
  }
  add("short_conv", {{0, 3}, {1, 1}}, 8);
  add("short_conv", {{0, 3}, {1, 0}}, 8);
  kernels.back().must_fuse = false;  // of tails alone
  add("gate_inputs", {}, 8);
  add("square_relu", {}, 8);
  kernels.back().must_fuse = false;
  add("gate", {}, 8);
  kernels.back().must_fuse = false;
  add("add_bias", {}, 8);
  kernels.back().must_fuse = false;
}

// Tiles of few and of many queries; chunks that rows share, one by one and merged on the way, and a row's own. Capped
// scores take registers where those of all positions are there: in the largest tile.
void add_attention(std::vector<GatedKernel>& kernels) {
  const AttentionDevice device{.max_shared_bytes = 32 << 10};
  for (const CacheType cache : kCacheTypes) {
    for (const uint32_t head : {64u, 128u, 256u}) {
      for (const auto& [own, chunks] : {std::pair(0u, 1u), std::pair(0u, kSpanChunks), std::pair(1u, 1u)}) {
        for (const uint32_t queries : {4u, 8u, 16u, 32u}) {
          const AttentionTile tile = attention_tile(queries, head_slices(head, cache), device);
          for (const uint32_t merged : {0u, own != 0 ? kSpanChunks : chunks}) {
            kernels.push_back(
                {std::string("attention_part_") + to_string(cache),
                 {{1,
                   {{{0, tile.lanes}, {1, head}, {2, 4}, {5, tile.queries}, {6, own}, {7, chunks}, {8, merged}}, 0},
                   4}}});
          }
        }
      }
    }
  }
  const AttentionTile largest = attention_tile(32, head_slices(256, CacheType::f16), device);
  kernels.push_back({"attention_part_f16",
                     {{1,
                       {{{0, largest.lanes},
                         {1, 256},
                         {2, 2},
                         {5, largest.queries},
                         {6, 0},
                         {7, kSpanChunks},
                         {8, kSpanChunks},
                         {11, std::bit_cast<uint32_t>(50.0f)}},
                        0},
                       4}}});
  for (const uint32_t head : {64u, 128u, 256u}) {
    for (const uint32_t chunks : {1u, kSpanChunks}) {
      kernels.push_back({"attention_merge", {{1, {{{0, 32}, {1, head}, {5, 8}, {7, chunks}}, 0}, 4}}});
    }
  }
}

// On matrix cores, of experts as Qwen3-30B-A3B has them: the variants by rule, or all that can be chosen.
std::vector<GatedVariant> expert_variants(const MatrixShape& matrix, const DeviceLimits& limits, bool all) {
  std::vector<GatedVariant> gated;
  std::set<std::string> known;
  for (const auto& [rows, cols] : {std::pair{1536u, 2048u}, {2048u, 768u}}) {
    for (const uint32_t width : {1u, 64u, 512u}) {
      const auto variants = expert_candidates({{128, 8}, rows, cols, width, &matrix, false}, limits);
      for (size_t i = 0; i < (all ? variants.size() : 1); ++i) {
        const ProductVariant variant = variants[i].matrix->variant();
        KernelOptions options = variant.options;
        options.spec.push_back({9, variants[i].tiles.grouped ? 1u : 0u});
        if (known.insert(variants[i].text()).second) gated.push_back({variant.columns, options, kLeastWaves});
      }
    }
  }
  return gated;
}

// As engine/vulkan/record_products.cpp has them: by multiply-adds pair by pair, and in tiles of four and eight pairs.
void add_experts(std::vector<GatedKernel>& kernels, const Context& context, bool all_variants) {
  const auto variant = [](uint32_t columns, uint32_t slices) {
    return GatedVariant{columns, {{{0, columns}, {1, 64}, {2, slices}, {3, columns > 1 ? 1u : 0u}}, 0}, kLeastWaves};
  };
  const MatrixShape* matrix = product_matrix(context.report(), context.features());
  // Types of each kind in which weights are decoded.
  const std::set<std::string> looked_at = {"f32", "q8_0", "q4_k", "q6_k", "mxfp4"};
  for (const std::string op : {"expert_swiglu_", "expert_products_"}) {
    for (const std::string type : weight_types) {
      kernels.push_back({op + type, {variant(1, 4), variant(4, 2), variant(8, 1)}});
      if (matrix == nullptr) continue;
      const bool all = all_variants || (op == "expert_swiglu_" && looked_at.contains(type));
      GatedKernel cores{op + type + "_matrix", expert_variants(*matrix, context.limits(), all)};
      cores.must_fuse = false;
      kernels.push_back(cores);
    }
  }
  for (const std::string type : {"quads", "words"}) kernels.push_back({"route_logits_" + type, {{1, {}}}});
  kernels.push_back({"expert_add", {{1, {}}}});
  GatedKernel choose{"route_choose", {{1, {}}}};
  choose.must_fuse = false;
  kernels.push_back(choose);
}

// Products whose sum were fused in one would draw other tokens than the host.
void add_sampling(std::vector<GatedKernel>& kernels) {
  for (const char* shader :
       {"sample_adjust", "sample_best_plain", "sample_best_filtered", "sample_count", "sample_draw", "sample_edge",
        "sample_final_best", "sample_final_drawn", "sample_gather", "sample_select"}) {
    GatedKernel kernel{shader, {{1, {{{0, 128}}, 0}}}};
    kernel.must_fuse = false;
    kernels.push_back(kernel);
  }
}

}  // namespace

std::vector<GatedKernel> gated_kernels(const Context& context, bool all_variants) {
  std::vector<GatedKernel> kernels;
  add_products(kernels, context, all_variants);
  add_row_kernels(kernels);
  add_attention(kernels);
  add_experts(kernels, context, all_variants);
  add_sampling(kernels);
  return kernels;
}

}  // namespace canopy::vk::testing
