#include "cuda_backend/record.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/numbers.h"

namespace canopy::cuda {
namespace {

CacheParams cache_of(const KvLayer* layer, const KvShape& shape) {
  const auto& found = own<CudaKv>(layer, "The K/V cache");
  if (!(found.shape == shape)) {
    throw bad_input("The K/V cache has " + describe(found.shape) + "; the op names " + describe(shape) + ".");
  }
  return found.params();
}

}  // namespace

uint64_t floats(uint64_t rows, uint64_t cols) {
  return checked_mul(checked_mul(rows, cols, "size of an operand"), uint64_t{4}, "size of an operand");
}

Address Scratch::at_least(uint64_t bytes, const char* name) {
  if (blocks_.empty() || blocks_.back()->bytes() < bytes) {
    blocks_.push_back(std::make_unique<Memory>(context_, bytes, false, name));
  }
  return blocks_.back()->address();
}

ActivationsParams CallRecorder::rows_of(const Activations* activations, uint32_t width, uint32_t cols,
                                        const char* what) {
  const auto& found = own<CudaActivations>(activations, what);
  if (found.cols() != cols || found.max_width() < width || width == 0) {
    throw bad_input(std::string(what) + " has room for " + std::to_string(found.max_width()) + " rows of " +
                    std::to_string(found.cols()) + " columns; needed: " + std::to_string(width) + " of " +
                    std::to_string(cols) + ", at least one row.");
  }
  return found.params();
}

Address CallRecorder::at(const Buffer* buffer, uint64_t bytes, const char* what, bool optional) {
  if (buffer == nullptr && optional) return 0;
  const auto& own_buffer = own<CudaBuffer>(buffer, what);
  if (own_buffer.bytes() < bytes) {
    throw bad_input(std::string(what) + " holds " + std::to_string(own_buffer.bytes()) +
                    " bytes; needed: " + std::to_string(bytes) + ".");
  }
  if (own_buffer.memory->source != nullptr) inputs.push_back(&own_buffer);
  return own_buffer.address();
}

void CallRecorder::record(const Op& op) {
  std::visit([this](const auto& args) { add(args); }, op);
}

void CallRecorder::add(const EmbedArgs& args) {
  const auto& table = own<CudaWeight>(args.table, "The embedding");
  EmbedParams p;
  p.table = table.params();
  p.rows = at(args.rows, uint64_t{args.width} * sizeof(Row), "The rows of a pass");
  p.x = at(args.x, floats(args.width, table.cols()), "The residual stream");
  p.norm = at(args.norm.weight, floats(1, table.cols()), "The weight of a norm");
  p.out = rows_of(args.out, args.width, table.cols(), "The activations of an embedding");
  p.scale = args.scale;
  calls.push_back(call_of(std::string("embed_") + kernel_suffix(table.type()), p, 32, args.width));
}

void CallRecorder::product(ProductParams p, const CudaWeight& first, const CudaWeight* second, const Activations* in,
                           uint32_t width, float eps) {
  p.weights[0] = first.params();
  if (second != nullptr) p.weights[1] = second->params();
  const TileShape second_shape = second != nullptr ? second->tiles.shape : TileShape{};
  p.in = rows_of(in, width, first.cols(), "The activations of a product");
  p.width = width;
  p.norm_eps = eps;
  const ProductPlan plan =
      plan_product(p.weights[0], first.tiles.shape, p.weights[1], second_shape, width, limits_, p.kind);
  p.chunk_supers = plan.cut.chunk_supers;
  p.segment_supers = plan.cut.segment_supers;
  p.row_warps = plan.row_warps;
  p.stages = plan.stages;
  p.row_tiles[0] = plan.row_tiles[0];
  p.row_tiles[1] = plan.row_tiles[1];
  if (plan.parts > 1) {
    p.partials = partials_.at_least(plan.partial_bytes(), "the partial sums of products");
    p.counters = counters_.at_least(floats(1, plan.tiles()), "the counters of products");
  }
  const std::string name = product_kernel(first.type(), second != nullptr ? second->type() : first.type(), plan);
  const uint32_t rows = plan.row_tiles[0] + plan.row_tiles[1];
  if (plan.columns == kNarrow) {
    calls.push_back(call_of(name, p, plan.threads, rows, 1, 1, plan.shared_bytes));
  } else {
    calls.push_back(call_of(name, p, plan.threads, plan.pass_tiles, rows, plan.parts, plan.shared_bytes));
  }
}

void CallRecorder::add(const LinearArgs& args) {
  const auto& weight = own<CudaWeight>(args.weight, "The weight of a product");
  if (args.offset + weight.rows() > args.stride) {
    throw bad_input("A product writes " + std::to_string(weight.rows()) + " columns from " +
                    std::to_string(args.offset) + " on into rows of " + std::to_string(args.stride) + ".");
  }
  ProductParams p;
  p.kind = ProductKind::store;
  p.out = at(args.out, floats(args.width, args.stride), "The output of a product");
  p.out_stride = args.stride;
  p.out_offset = args.offset;
  product(p, weight, nullptr, args.in, args.width, args.norm_eps);
}

void CallRecorder::add(const LinearAddArgs& args) {
  const auto& weight = own<CudaWeight>(args.weight, "The weight of a product");
  const uint32_t rows = weight.rows();
  ProductParams p;
  p.kind = ProductKind::add;
  p.out = at(args.x, floats(args.width, rows), "The residual stream");
  p.norm = at(args.norm.weight, floats(1, rows), "The weight of a norm");
  p.out_activations = rows_of(args.out, args.width, rows, "The activations of a sum");
  if (args.aux != nullptr) {
    if (args.aux_offset + rows > args.aux_stride) throw bad_input("Aux hidden states do not fit into their rows.");
    p.aux = at(args.aux, floats(args.width, args.aux_stride), "The aux hidden states");
    p.aux_stride = args.aux_stride;
    p.aux_offset = args.aux_offset;
  }
  product(p, weight, nullptr, args.in, args.width, 0);
}

void CallRecorder::add(const LinearSwigluArgs& args) {
  const auto& weight = own<CudaWeight>(args.weight, "The weight of a product");
  const uint32_t rows = weight.rows();
  if (rows % 2 != 0) throw bad_input("A paired weight has an odd number of rows.");
  ProductParams p;
  p.kind = ProductKind::swiglu;
  p.out_activations = rows_of(args.out, args.width, rows / 2, "The gated activations");
  p.gelu = args.gate == GateFunction::gelu ? 1 : 0;
  product(p, weight, nullptr, args.in, args.width, args.norm_eps);
}

RopeStoreParams CallRecorder::heads_of(const RopeStoreArgs& args) {
  if (args.shape.head_dim > kMostHeadDim || args.shape.head_dim % 2 != 0) {
    throw bad_input("Heads of " + std::to_string(args.shape.head_dim) + " elements; allowed: even, up to " +
                    std::to_string(kMostHeadDim) + ".");
  }
  RopeStoreParams p;
  p.qkv = at(args.qkv, floats(args.width, args.elements()), "The projections of the heads");
  p.rows = at(args.rows, uint64_t{args.width} * sizeof(Row), "The rows of a pass");
  p.rotation = at(args.rotation, floats(uint64_t{args.query_offset} + 1, args.shape.head_dim), "The rotation table");
  p.q_norm = at(args.q_norm, floats(1, args.shape.head_dim), "The norm of the queries", true);
  p.k_norm = at(args.k_norm, floats(1, args.shape.head_dim), "The norm of the keys", true);
  p.v_norm = at(args.v_norm, floats(1, args.shape.head_dim), "The norm of the values", true);
  p.q = at(args.q, floats(args.width, uint64_t{args.heads} * args.shape.head_dim), "The queries", args.heads == 0);
  if (args.cache != nullptr) p.cache = cache_of(args.cache, args.shape);
  if (args.cache == nullptr && args.shape.kv_heads != 0) throw bad_input("Keys and values have no K/V cache.");
  p.cache.head_dim = args.shape.head_dim;
  p.heads = args.heads;
  p.row_heads = args.row_heads();
  p.norm_eps = args.norm_eps;
  p.interleaved = args.interleaved ? 1 : 0;
  p.query_offset = args.query_offset;
  return p;
}

void CallRecorder::add(const RopeStoreArgs& args) {
  calls.push_back(call_of("rope_store", heads_of(args), 32, args.row_heads(), args.width, 1, kMostHeadDim * 4));
}

/// As few launches as the weights' types allow: a head is finished by whoever brings its last rows.
void CallRecorder::add(const ProjectHeadsArgs& args) {
  constexpr uint32_t least_head_dim = 8;  // of smaller ones a block would have more than it can count
  // Products leave values as they are, and always have keys.
  if (args.heads.shape.head_dim < least_head_dim || args.heads.v_norm != nullptr || args.heads.cache == nullptr ||
      args.weights.empty()) {
    for (const Op& op : separate_ops(args)) record(op);
    return;
  }
  check_heads(args);
  ProductParams p;
  p.kind = ProductKind::heads;
  p.heads = heads_of(args.heads);
  p.out = p.heads.qkv;
  p.out_stride = args.heads.elements();
  const uint32_t heads = args.heads.heads + 2 * args.heads.shape.kv_heads;
  const uint32_t most_tiles = (args.heads.width + kNarrow - 1) / kNarrow;
  p.head_counters = head_counters_.at_least(floats(most_tiles, heads), "the counters of heads");
  for (size_t i = 0; i < args.weights.size();) {
    const auto& first = own<CudaWeight>(args.weights[i], "The weight of a product");
    const auto* second =
        i + 1 < args.weights.size() ? &own<CudaWeight>(args.weights[i + 1], "The weight of a product") : nullptr;
    if (second != nullptr && !go_together(first.type(), first.params(), second->type(), second->params())) {
      second = nullptr;
    }
    product(p, first, second, args.in, args.heads.width, args.in_norm_eps);
    p.out_offset += first.rows() + (second != nullptr ? second->rows() : 0);
    i += second != nullptr ? 2 : 1;
  }
}

void CallRecorder::add(const AttentionArgs& args) {
  if (args.heads == 0 || args.heads % args.shape.kv_heads != 0) {
    throw bad_input("Attention with " + std::to_string(args.heads) + " query heads for " +
                    std::to_string(args.shape.kv_heads) + " K/V heads; allowed: a multiple.");
  }
  if (args.shape.head_dim % 2 != 0) {
    throw bad_input("Attention with heads of " + std::to_string(args.shape.head_dim) + " elements; allowed: even.");
  }
  AttentionParams p;
  const uint32_t cols = args.heads * args.shape.value_dim();
  p.q = at(args.q, floats(args.width, uint64_t{args.heads} * args.shape.head_dim), "The queries");
  p.rows = at(args.rows, uint64_t{args.width} * sizeof(Row), "The rows of a pass");
  p.ancestors = at(args.ancestors, 0, "The lists of ancestors");
  p.pages = at(args.pages, (uint64_t{args.max_positions} + kPagePositions - 1) / kPagePositions * 4, "The page table");
  p.cache = cache_of(args.cache, args.shape);
  p.out = rows_of(args.out, args.width, cols, "The output of attention");
  p.heads = args.heads;
  p.scale = args.scale;
  p.block_mask = args.mask == AttentionMask::block ? 1 : 0;
  p.window = args.window;
  p.softcap = args.softcap;
  if (args.sinks != nullptr) p.sinks = at(args.sinks, floats(1, args.heads), "The sinks of attention");
  const AttentionExtent extent{args.shape, args.heads, args.max_positions, args.keys(), args.window > 0};
  const uint32_t group = std::min(args.width, attention_rows_at_a_time(extent));
  p.part_out = attention_.at_least(attention_scratch_bytes(extent, group), "the results of attention's chunks");
  for (p.first_row = 0; p.first_row < args.width; p.first_row += group) {
    p.row_count = std::min(group, args.width - p.first_row);
    const AttentionLaunch launch = plan_attention(p, extent, limits_);
    p.part_sums = p.part_out + floats(uint64_t{p.row_count} * args.heads * p.entries(), p.value_dim);
    p.counters =
        counters_.at_least(floats(uint64_t{args.shape.kv_heads} * p.tiles, p.value_slices), "counters of blocks");
    calls.push_back(
        call_of(launch.kernel(args.shape.type), p, launch.threads, launch.blocks, 1, 1, launch.shared_bytes));
  }
}

void CallRecorder::add(const SelectArgs& args) {
  const uint32_t cols = own<CudaActivations>(args.in, "The activations to choose from").cols();
  SelectParams p;
  p.in = rows_of(args.in, args.width, cols, "The activations to choose from");
  p.out = rows_of(args.out, args.count, cols, "The chosen activations");
  p.index = at(args.index, (uint64_t{args.first} + args.count) * 4, "The index of rows");
  p.first = args.first;
  calls.push_back(call_of("select_rows", p, 32, args.count));
}

void CallRecorder::add(const ArgmaxArgs& args) {
  if (args.width == 0 || args.vocab == 0) throw bad_input("The best of no logits were asked for.");
  ArgmaxParams p;
  p.logits = at(args.logits, floats(args.width, args.vocab), "The logits");
  p.out = at(args.out, (uint64_t{args.first_out} + args.width) * 8, "The best tokens");
  p.vocab = args.vocab;
  p.first_out = args.first_out;
  const uint32_t blocks = (args.vocab + kArgmaxBlock - 1) / kArgmaxBlock;
  p.found = partials_.at_least(uint64_t{args.width} * blocks * 8, "the best tokens of blocks");
  p.counters = counters_.at_least(floats(1, args.width), "counters of blocks");
  calls.push_back(call_of("argmax", p, 256, blocks, args.width, 1, 256 / 32 * 8 + 4));
}

void CallRecorder::add(const TopKArgs& args) {
  if (args.k == 0 || args.k > kMaxTopK || args.k > args.vocab) {
    throw bad_input("The " + std::to_string(args.k) + " largest of " + std::to_string(args.vocab) +
                    " logits; allowed: 1 to " + std::to_string(std::min(kMaxTopK, args.vocab)) + ".");
  }
  if (!std::isfinite(args.multiplier) || args.multiplier == 0 || !std::isfinite(args.softcap) || args.softcap < 0) {
    throw bad_input("Logits with a multiplier of " + std::to_string(args.multiplier) + " and a softcap of " +
                    std::to_string(args.softcap) + "; allowed: finite, not 0, and finite, not negative.");
  }
  const uint64_t rows = uint64_t{args.first_out} + args.width;
  TopKParams p;
  p.logits = at(args.logits, floats(args.width, args.vocab), "The logits");
  p.ids = at(args.ids, floats(rows, args.k), "The most probable tokens");
  p.values = at(args.values, floats(rows, args.k), "Their logits");
  p.log_sum_exp = at(args.log_sum_exp, floats(1, rows), "The sums of a row");
  p.vocab = args.vocab;
  p.k = args.k;
  p.first_out = args.first_out;
  p.multiplier = args.multiplier;
  p.softcap = args.softcap;
  const uint32_t blocks = (args.vocab + kTopBlock - 1) / kTopBlock;
  const uint64_t found = uint64_t{args.width} * blocks * args.k * 8;
  p.found = partials_.at_least(found + floats(args.width, uint64_t{blocks} * 2), "the largest logits of blocks");
  p.sums = p.found + found;
  p.counters = counters_.at_least(floats(1, args.width), "counters of blocks");
  constexpr uint32_t words = 256 + 2 * 64 + 16 + kTopBlock;  // as in kernels/top_k.cu
  calls.push_back(call_of("top_k", p, 256, blocks, args.width, 1, words * 4));
}

void CallRecorder::add(const SampleArgs& args) {
  constexpr uint32_t most_vocab = 1u << 20;  // so that sums of weights do not overflow
  if (args.width == 0 || args.vocab == 0 || args.vocab > most_vocab) {
    throw bad_input("sample is asked for " + std::to_string(args.width) + " rows of " + std::to_string(args.vocab) +
                    " logits; allowed: rows of 1 to " + std::to_string(most_vocab) + ".");
  }
  if (args.filtered && !args.random) throw bad_input("sample is asked to filter tokens at temperature 0.");
  const uint64_t end = uint64_t{args.first_row} + args.width;
  const uint32_t blocks = (args.vocab + kSampleBlock - 1) / kSampleBlock;
  SampleParams p;
  p.logits = at(args.logits, floats(args.width, args.vocab), "The logits");
  p.settings = at(args.settings, sizeof(SamplingWords), "The settings of a draw");
  p.rows = at(args.rows, end * sizeof(SampledRow), "The rows after which tokens are drawn");
  p.tokens = at(args.out, end * 4, "The drawn tokens");
  p.vocab = args.vocab;
  p.first_row = args.first_row;
  const uint64_t pairs = uint64_t{args.width} * blocks * 8, states = uint64_t{args.width} * sizeof(SampleState);
  const uint64_t list = uint64_t{args.width} * kSampleList * 8;
  p.best = partials_.at_least(2 * pairs + (args.filtered ? states + list : 0), "what is found of a row's tokens");
  p.drawn = p.best + pairs;
  p.state = p.drawn + pairs;
  p.list = p.state + states;
  p.counters = counters_.at_least(floats(1, args.width), "counters of blocks");
  if (args.adjustments != nullptr) {
    p.adjustments = at(args.adjustments, uint64_t{args.most_adjustments} * sizeof(TokenAdjustment), "The adjustments");
    p.most_adjustments = args.most_adjustments;
    const uint32_t places = args.most_adjustments + kMaxSampledDepth;
    calls.push_back(call_of("sample_adjust", p, 128, (places + 127) / 128, args.width));
  }
  // As in kernels/sample.cu and kernels/logits.h.
  constexpr uint32_t few = 256, buckets = 256 + SampleState::kBuckets * 12, select = 3584;
  const auto step = [&](const char* name, uint32_t shared) {
    calls.push_back(call_of(name, p, 256, blocks, args.width, 1, shared));
  };
  if (!args.random) return step("sample_best", few);
  step(args.filtered ? "sample_best_filtered" : "sample_best_random", few);
  if (!args.filtered) return step("sample_draw", few);
  step("sample_count", buckets);
  step("sample_gather", select);
}

void CallRecorder::add(const PickArgs& args) {
  PickParams p;
  p.logits = at(args.logits, floats(args.rows, args.vocab), "The logits");
  p.pairs = at(args.pairs, uint64_t{args.count} * 8, "The pairs of rows and tokens");
  p.out = at(args.out, floats(1, args.count), "The picked logits");
  p.count = args.count;
  p.first_row = args.first_row;
  p.rows = args.rows;
  p.vocab = args.vocab;
  calls.push_back(call_of("pick_logits", p, 64, (args.count + 63) / 64));
}

void CallRecorder::add(const CopyRowsArgs& args) {
  if (args.in == args.out) throw bad_input("Rows were to be copied within a buffer; allowed: to another one.");
  if (args.count == 0) return;
  CopyRowsParams p;
  p.in = at(args.in, 0, "The rows to copy");
  p.moves = at(args.moves, uint64_t{args.count} * 8, "The list of copies");
  p.out = at(args.out, 0, "The copied rows");
  p.cols = args.cols;
  calls.push_back(call_of("copy_rows", p, 128, args.count));
}

void CallRecorder::add(const NormRowsArgs& args) {
  const uint32_t cols = own<CudaActivations>(args.out, "The activations of a norm").cols();
  NormRowsParams p;
  p.in = at(args.in, floats(args.width, cols), "The rows of a norm");
  p.norm = at(args.norm.weight, floats(1, cols), "The weight of a norm", true);
  p.out = rows_of(args.out, args.width, cols, "The activations of a norm");
  calls.push_back(call_of("norm_rows", p, 32, args.width));
}

void CallRecorder::add(const NormAddArgs& args) {
  const uint32_t cols = own<CudaActivations>(args.out, "The activations of a sum").cols();
  if (args.in == args.x)
    throw bad_input("A norm's input is the residual stream that it is added to; they must differ.");
  NormAddParams p;
  p.in = at(args.in, floats(args.width, cols), "The rows of a norm");
  p.weight = at(args.weight, floats(1, cols), "The weight of a norm");
  p.x = at(args.x, floats(args.width, cols), "The residual stream");
  p.norm = at(args.norm.weight, floats(1, cols), "The weight of a norm");
  p.out = rows_of(args.out, args.width, cols, "The activations of a sum");
  p.eps = args.eps;
  p.x_scale = args.x_scale;
  if (args.aux != nullptr) {
    if (args.aux_offset + cols > args.aux_stride) throw bad_input("Aux hidden states do not fit into their rows.");
    p.aux = at(args.aux, floats(args.width, args.aux_stride), "The aux hidden states");
    p.aux_stride = args.aux_stride;
    p.aux_offset = args.aux_offset;
    p.aux_scale = args.aux_scale;
  }
  calls.push_back(call_of("norm_add", p, kNormAddThreads, args.width, 1, 1, kNormAddThreads / 32 * 4));
}

void CallRecorder::add(const CapLogitsArgs& args) {
  if (!(args.cap > 0)) {
    throw bad_input("Logits with a softcap of " + std::to_string(args.cap) + "; allowed: a positive number.");
  }
  CapLogitsParams p;
  p.logits = at(args.logits, floats(args.width, args.vocab), "The logits");
  p.vocab = args.vocab;
  p.cap = args.cap;
  calls.push_back(call_of("cap_logits", p, 256, (args.vocab + 255) / 256, args.width));
}

void CallRecorder::add(const ConvRowsArgs& args) {
  check_conv_rows(args);
  ConvRowsParams p;
  p.in = at(args.in, floats(args.width, args.cols), "The rows of a convolution");
  p.base = at(args.base, floats(2 * args.taps, args.cols), "The base kernels of a convolution");
  p.kernel = at(args.kernel, floats(args.width, args.kernel_cols()), "The kernels of a convolution");
  p.x = at(args.x, floats(args.width, args.cols), "The rows that a convolution is added to");
  p.cols = args.cols;
  p.taps = args.taps;
  p.group = args.group;
  p.side = args.side;
  calls.push_back(call_of("conv_rows", p, 128, args.width));
}

void CallRecorder::add(const AddBiasArgs& args) {
  AddBiasParams p;
  p.x = at(args.x, floats(args.width, args.cols), "The rows that a bias is added to");
  p.bias = at(args.bias, floats(1, args.cols), "The bias");
  p.cols = args.cols;
  calls.push_back(call_of("add_bias", p, 128, args.width));
}

void CallRecorder::add(const KvMoveArgs& args) {
  std::vector<uint64_t> layers;
  KvMoveParams p;
  for (uint32_t i = 0; i < args.cache->layers(); ++i) {
    const CacheParams layer = cache_of(&args.cache->layer(i), args.shape);
    layers.push_back(layer.keys);
    if (!args.shape.is_latent()) layers.push_back(layer.values);
    p.slot_words = layer.slot_words;
  }
  tables_.push_back(std::make_unique<Memory>(context_, layers.size() * 8, false, "a table of layers"));
  context_.write(tables_.back()->address(), std::as_bytes(std::span(layers)));
  p.layers = tables_.back()->address();
  p.moves = at(args.moves, uint64_t{args.count} * 8, "The list of moves");
  p.count = args.count;
  p.scratch = moves_.at_least(uint64_t{args.count} * layers.size() * p.slot_words * 4, "keys and values that move");
  const auto planes = static_cast<uint32_t>(layers.size());
  calls.push_back(call_of("kv_gather", p, 64, args.count, planes));
  calls.push_back(call_of("kv_scatter", p, 64, args.count, planes));
}

// Mixtures of experts: kernels/route.cu, kernels/experts.cu.

namespace {

static_assert(kMostExperts == kMaxExperts && kMostUsedExperts == kMaxUsedExperts && kGateSlope == kClampedSlope);

constexpr uint32_t kMostBlocks = 65535;  // of a grid, but along x
constexpr uint32_t kMostPairs = 1u << 24;

/// Pairs of a row and one of its experts, whose tiles a grid has room for.
uint32_t pairs_of(uint32_t width, const ExpertCounts& experts, const char* op) {
  const uint64_t pairs = uint64_t{width} * experts.used;
  const auto tiles = [&] {
    return most_expert_tiles(experts, static_cast<uint32_t>(pairs), columns_of_experts(experts, width));
  };
  if (pairs >= 1 && pairs <= kMostPairs && tiles() <= kMostBlocks) return static_cast<uint32_t>(pairs);
  throw bad_input(std::string(op) + " is asked for " + std::to_string(width) + " rows of " + describe(experts) +
                  "; allowed: 1 to " + std::to_string(kMostPairs) + " pairs of a row and an expert, in at most " +
                  std::to_string(kMostBlocks) + " tiles.");
}

}  // namespace

void CallRecorder::add(const RouteArgs& args) {
  check_route(args);
  const uint32_t all = args.experts.all, router_rows = args.experts.router_rows();
  const uint32_t cols = own<CudaActivations>(args.in, "The activations of a router").cols();
  RouteParams p;
  p.in = rows_of(args.in, args.width, cols, "The activations of a router");
  p.router = at(args.router, floats(router_rows, cols), "The router");
  p.logits = at(args.logits, floats(args.width, router_rows), "The logits of experts");
  p.chosen = at(args.chosen, floats(args.width, args.experts.used), "The chosen experts");
  p.shares = at(args.shares, floats(args.width, args.experts.row_shares()), "The shares of experts");
  p.counters = counters_.at_least(floats(1, args.width), "counters of blocks");
  p.experts = all;
  p.used = args.experts.used;
  p.shared_experts = args.experts.row_shares() - args.experts.used;
  p.shared_gates = router_rows - all;
  p.factor = args.factor;
  p.sigmoid = args.sigmoid ? 1 : 0;
  p.groups = args.groups;
  p.groups_used = args.groups_used;
  if (args.choice_bias != nullptr) p.choice_bias = at(args.choice_bias, floats(1, all), "The choice bias of a router");
  p.of_chosen = args.of_chosen ? 1 : 0;
  p.norm_eps = args.norm_eps;
  if (args.bias != nullptr) p.bias = at(args.bias, floats(1, router_rows), "The bias of a router");
  if (args.scales != nullptr) p.scales = at(args.scales, floats(1, all), "The scales of experts");
  if (args.touched != nullptr) {
    const uint64_t words = args.experts.touched_words();
    p.rows = at(args.rows, uint64_t{args.width} * sizeof(Row), "The rows of a pass");
    p.touched = at(args.touched, (args.layer + 1) * words * 4, "The touched experts") + args.layer * words * 4;
  }
  groups_ = {};
  const uint32_t blocks = (router_rows + kRouteExperts - 1) / kRouteExperts;
  calls.push_back(call_of("route", p, kRouteExperts * 32, blocks, args.width, 1, kRouteShared));
}

void CallRecorder::add(const CountExpertsArgs& args) {
  check_experts(args.experts, "count_experts");
  CountExpertsParams p;
  p.words = args.experts.touched_words();
  p.touched = at(args.touched, floats(args.layers, p.words), "The touched experts");
  p.counts = at(args.counts, floats(1, args.layers), "The counts of experts");
  calls.push_back(call_of("count_experts", p, 32, args.layers));
}

CallRecorder::Groups CallRecorder::groups_of(Address chosen, const ExpertCounts& experts, uint32_t pairs,
                                             uint32_t columns) {
  if (columns == 1) return {};
  const uint32_t most = most_expert_tiles(experts, pairs, columns);
  const uint64_t tile_bytes = uint64_t{most} * sizeof(ExpertTile);
  Groups groups{chosen, pairs, columns, experts.all};
  groups.tiles = groups_memory_.at_least(tile_bytes + floats(1, pairs), "groups of rows with the same expert");
  groups.order = groups.tiles + tile_bytes;
  if (groups == groups_) return groups;  // made for the op before, and not written since
  groups_ = groups;
  ExpertGroupsParams p;
  p.chosen = chosen;
  p.tiles = groups.tiles;
  p.order = groups.order;
  p.pairs = pairs;
  p.experts = experts.all;
  p.tile_pairs = columns;
  p.most_tiles = most;
  calls.push_back(call_of("expert_groups", p, kGroupThreads, 1, 1, 1, kGroupShared));
  return groups;
}

void CallRecorder::product_of_experts(ProductParams product, const Weight* weight, const Activations* in,
                                      uint32_t in_rows, const Buffer* chosen, const ExpertCounts& experts,
                                      uint32_t pairs, const Buffer* bias, float limit) {
  const auto& all = own<CudaWeight>(weight, "The weight of experts");
  check_experts(experts, "A product with experts");
  const uint32_t rows = all.rows() / experts.all;
  if (all.rows() % experts.all != 0 || rows % kTileRows != 0) {
    throw bad_input("The weight of " + std::to_string(experts.all) + " experts has " + std::to_string(all.rows()) +
                    " rows; on CUDA devices each expert must have a multiple of " + std::to_string(kTileRows) +
                    " rows. Choose the GPU's Vulkan device.");
  }
  ExpertParams p;
  p.product = product;
  p.product.weights[0] = all.params();
  p.product.weights[0].rows = rows;
  p.product.in = rows_of(in, in_rows, all.cols(), "The activations of a product");
  const TileShape& shape = all.tiles.shape;
  const uint32_t columns = columns_of_experts(experts, pairs / experts.used);
  const ExpertPlan plan = plan_experts(p.product.weights[0], shape, columns, limits_);
  p.product.width = columns;
  p.product.chunk_supers = plan.product.cut.chunk_supers;
  p.product.segment_supers = plan.product.cut.segment_supers;
  p.product.row_warps = plan.product.row_warps;
  p.product.stages = plan.product.stages;
  p.product.row_tiles[0] = plan.product.row_tiles[0];
  p.tile_at = plan.tile_at;
  p.totals_at = plan.totals_at;
  p.chosen = at(chosen, floats(1, pairs), "The chosen experts");
  const Groups groups = groups_of(p.chosen, experts, pairs, columns);
  p.tiles = groups.tiles;
  p.order = groups.order;
  p.expert_bytes = uint64_t{p.product.weights[0].groups()} * p.product.weights[0].supers() * shape.bytes();
  p.row_pairs = pairs / in_rows;
  if (bias != nullptr) p.bias = at(bias, floats(1, all.rows()), "The bias of experts");
  p.limit = limit;
  calls.push_back(call_of(expert_kernel(all.type(), columns), p, plan.product.threads, plan.product.row_tiles[0],
                          most_expert_tiles(experts, pairs, columns), 1, plan.shared_bytes));
}

void CallRecorder::add(const ExpertSwigluArgs& args) {
  check_experts(args.experts, "expert_swiglu");
  const uint32_t pairs = pairs_of(args.width, args.experts, "expert_swiglu"), rows = args.expert_rows();
  if (rows % 2 != 0) throw bad_input("Paired experts have an odd number of rows.");
  ProductParams p;
  p.kind = ProductKind::swiglu;
  p.norm_eps = args.norm_eps;
  p.gelu = args.gate == GateFunction::gelu ? 1 : 0;
  p.out_activations = rows_of(args.out, pairs, rows / 2, "The gated activations of experts");
  product_of_experts(p, args.weight, args.in, args.width, args.chosen, args.experts, pairs, args.bias, args.limit);
}

void CallRecorder::add(const ExpertAddArgs& args) {
  check_experts(args.experts, "expert_add");
  const uint32_t pairs = pairs_of(args.width, args.experts, "expert_add"), rows = args.expert_rows();
  ProductParams product;
  product.kind = ProductKind::store;
  product.out = at(args.products, floats(pairs, rows), "The products of experts");
  product.out_stride = rows;
  product_of_experts(product, args.weight, args.in, pairs, args.chosen, args.experts, pairs, args.bias, 0);
  if (args.x == nullptr) return;
  ExpertAddParams p;
  p.products = product.out;
  p.shares = at(args.shares, floats(args.width, args.experts.row_shares()), "The shares of experts");
  if (args.experts.shared) p.shared = at(args.shared, floats(args.width, rows), "The shared expert");
  p.x = at(args.x, floats(args.width, rows), "The residual stream");
  p.norm = at(args.norm.weight, floats(1, rows), "The weight of a norm");
  p.out = rows_of(args.out, args.width, rows, "The activations of a sum");
  p.used = args.experts.used;
  if (args.aux != nullptr) {
    if (args.aux_offset + rows > args.aux_stride) throw bad_input("Aux hidden states do not fit into their rows.");
    p.aux = at(args.aux, floats(args.width, args.aux_stride), "The aux hidden states");
    p.aux_stride = args.aux_stride;
    p.aux_offset = args.aux_offset;
  }
  constexpr uint32_t threads = 256;
  calls.push_back(call_of("expert_add", p, threads, (rows + threads - 1) / threads, args.width));
}

// Calls of the kernels of recurrent layers.

namespace {

DeltaShapeParams params_of(const DeltaShape& shape, uint32_t width, const char* op) {
  check_delta_shape(shape, op);
  if (width == 0) throw bad_input(std::string(op) + " is asked for no steps; allowed: 1 or more.");
  return {shape.row_elements(), shape.channels(), shape.key_heads,       shape.value_heads,       shape.key_dim,
          shape.value_dim,      shape.taps,       shape.tiled ? 1u : 0u, shape.corrects ? 1u : 0u};
}

}  // namespace

void CallRecorder::add(const DeltaInputsArgs& args) {
  const DeltaShape& shape = args.shape;
  DeltaInputsParams p;
  p.shape = params_of(shape, args.width, "delta_inputs");
  p.in = at(args.in, floats(args.rows, shape.row_elements()), "The inputs of a recurrence");
  p.out = at(args.out, floats(args.rows, shape.row_elements()), "The prepared inputs of a recurrence");
  p.steps = at(args.steps, uint64_t{args.width} * sizeof(DeltaStep), "The steps of a recurrence");
  p.taps = at(args.taps, floats(shape.channels(), shape.taps), "The taps of a convolution");
  p.bias = at(args.bias, floats(1, shape.value_heads), "The bias of decays");
  p.rate = at(args.rate, floats(1, shape.value_heads), "The rates of decays");
  p.tails = at(args.tails, floats(1, shape.tail_elements()), "The tails of texts");
  p.conv_bias = at(args.conv_bias, floats(1, shape.channels()), "The bias of a convolution", true);
  p.query_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(shape.key_dim)));
  p.eps = DeltaInputsArgs::kEps;
  calls.push_back(call_of("delta_inputs", p, 32, 2 * shape.key_heads + shape.value_heads + 1, args.width));
}

void CallRecorder::add(const DeltaNetArgs& args) {
  const DeltaShape& shape = args.shape;
  DeltaNetParams p;
  p.shape = params_of(shape, args.width, "delta_net");
  p.in = at(args.in, floats(args.rows, shape.row_elements()), "The prepared inputs of a recurrence");
  p.out = at(args.out, floats(args.rows, shape.values()), "What a recurrence gives", true);
  p.steps = at(args.steps, uint64_t{args.width} * sizeof(DeltaStep), "The steps of a recurrence");
  p.states = at(args.states, floats(1, shape.state_elements()), "The states of texts");
  p.spare = at(args.spare, floats(1, shape.state_elements()), "The states that are put aside");
  p.step_count = args.width;
  if ((args.skip != nullptr) == shape.corrects) {
    throw bad_input("delta_net is asked for " + describe(shape) + ", with" + (shape.corrects ? "" : "out") +
                    " a skip; scans have one, delta nets none.");
  }
  p.skip = at(args.skip, floats(1, shape.value_heads), "The skip of a scan", true);
  static_assert(kMostKeyDim == DeltaShape::kMostKeyDim);
  calls.push_back(call_of(shape.corrects ? "delta_net" : "scan", p, kStateColumns * kColumnLanes,
                          (shape.value_dim + kStateColumns - 1) / kStateColumns, shape.value_heads));
}

void CallRecorder::add(const ShortConvArgs& args) {
  check_short_conv(args);
  ShortConvParams p;
  p.in = at(args.in, floats(args.rows, 3 * uint64_t{args.cols}), "The inputs of a short convolution");
  p.steps = at(args.steps, uint64_t{args.width} * sizeof(DeltaStep), "The steps of a short convolution");
  p.kernel = at(args.kernel, floats(args.cols, args.taps), "The kernel of a short convolution");
  p.tails = at(args.tails, floats(1, args.tail_elements()), "The tails of texts");
  if (args.out != nullptr) p.out = rows_of(args.out, args.out_rows(), args.cols, "What a short convolution gives");
  p.cols = args.cols;
  p.taps = args.taps;
  calls.push_back(call_of("short_conv", p, 128, args.width));
}

void CallRecorder::add(const GatedNormArgs& args) {
  const uint32_t cols = args.heads * args.head_dim;
  GatedNormParams p;
  p.in = at(args.in, floats(args.width, cols), "The rows of a gated norm");
  p.gate = at(args.gate, floats(args.width, cols), "The gates of a norm");
  p.weight = at(args.weight, floats(1, args.weights()), "The weight of a gated norm");
  p.out = rows_of(args.out, args.width, cols, "The activations of a gated norm");
  p.head_dim = args.head_dim;
  p.eps = args.eps;
  p.gate_within = args.gate_within ? 1 : 0;
  calls.push_back(call_of("gated_norm", p, 32, args.heads, args.width));
}

void CallRecorder::add(const GateArgs& args) {
  const uint32_t cols = own<CudaActivations>(args.x, "The gated activations").cols();
  GateParams p;
  p.x = rows_of(args.x, args.width, cols, "The gated activations");
  p.gate = at(args.gate, floats(args.width, cols), "The gates of activations");
  calls.push_back(call_of("gate", p, 128, args.width));
}

void CallRecorder::add(const SquareReluArgs& args) {
  const uint32_t cols = own<CudaActivations>(args.out, "The squared rows").cols();
  SquareReluParams p;
  p.in = at(args.in, floats(args.width, cols), "The rows to be squared");
  p.out = rows_of(args.out, args.width, cols, "The squared rows");
  calls.push_back(call_of("square_relu", p, 128, args.width));
}

void CallRecorder::add(const GateInputsArgs& args) {
  const uint32_t cols = own<CudaActivations>(args.out, "The gated inputs").cols();
  if (uint64_t{args.offset} + cols > args.stride) {
    throw bad_input("Elements " + std::to_string(args.offset) + " to " + std::to_string(uint64_t{args.offset} + cols) +
                    " of rows of " + std::to_string(args.stride) + " were to be gated.");
  }
  GateInputsParams p;
  p.gate = at(args.gate, floats(args.width, cols), "The gates of inputs");
  p.inputs = at(args.inputs, floats(args.width, args.stride), "The inputs to be gated");
  p.out = rows_of(args.out, args.width, cols, "The gated inputs");
  p.stride = args.stride;
  p.offset = args.offset;
  p.scale = args.scale;
  calls.push_back(call_of("gate_inputs", p, 128, args.width));
}

}  // namespace canopy::cuda
