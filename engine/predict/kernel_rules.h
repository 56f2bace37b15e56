#pragma once
// The families of kernels that times can be predicted for: how each cuts an op into workgroups and what it does for an
// element, as figures.

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/compute/types.h"
#include "engine/predict/device_profile.h"

namespace canopy::predict {

enum class Kernels {
  today,      // 128 weight rows of a workgroup, K whole, tiles of 8 rows of the pass: made for software devices
  fma,        // K cut over workgroups (compute/product_split.h), tiles of 8 rows of the pass in one dispatch
  matrix,     // the same cut, up to 64 rows of the pass at a time on matrix cores, weights decoded to f16
  llama_cpp,  // a workgroup for two weight rows, ops fused as its Vulkan backend does: width 1 only, for comparison
};

struct KernelRules {
  Kernels kernels = Kernels::matrix;

  // Products. A workgroup takes tile_rows rows of the weight and at most tile_columns rows of the pass.
  double tile_rows = 64;
  double tile_columns = 64;
  double least_columns = 1;      // of the arithmetic: narrower passes are padded
  bool splits_columns = false;   // K over workgroups, by compute/product_split.h
  bool buckets = false;          // the pass is padded by compute/product_split.h
  bool repeats_weights = false;  // each tile of the pass reads the weights from memory again
  double invocations = 128;
  double slice_columns = 0;     // not 0: an invocation for each weight row and slice of K, `invocations` at most
  double bytes_in_flight = 32;  // of weights, for an invocation
  double occupancy = 0.5;
  double activation_bytes = 4;  // of a value, as a product reads it

  // Instructions × lanes, or multiply-adds, for each weight of a tile.
  double decode_ops = 0;      // of a 4-bit weight; other types by decode_factor()
  double other_ops = 0;       // once for each weight
  double ops_a_column = 0;    // for each weight and row of the pass, beside the multiply-add
  bool matrix_cores = false;  // the multiply-adds are theirs

  // Attention: a workgroup takes a K/V head, attention_positions keys (0: all) and attention_rows rows of the pass.
  double attention_positions = 256;
  double attention_rows = 8;
  double attention_invocations = 128;
  double attention_bytes_in_flight = 32;

  // Dispatches that wait for the one before.
  double heads_steps = 2;  // project_heads
  double attention_steps = 2;
  double swiglu_steps = 1;
  double add_steps = 1;  // linear_add
  double linear_steps = 1;

  // The host's part of a pass.
  double submissions = 1;         // each waited for
  bool downloads_logits = false;  // of a row that is sampled, and samples it itself
};

/// The name on the command line: "today", "fma", "matrix", "llama.cpp".
const char* to_string(Kernels kernels);
/// Nothing else: throws bad_input that lists them.
Kernels kernels_named(std::string_view name);
/// What a device gets: matrix where it has matrix cores, else fma.
Kernels default_kernels(const DeviceProfile& device);

KernelRules rules_of(Kernels kernels);

/// Replaces single rules: "tile_rows=128,bytes_in_flight=64". Throws bad_input that lists the names.
void assume(KernelRules& rules, std::string_view changes);

/// Rows that a pass of `width` rows is padded to on GPUs, so that few widths have kernels and recordings of their own:
/// 1, 8, 16, 32, then multiples of 64.
uint32_t width_bucket(uint32_t width);

/// Instructions for a weight of this type, by those for one of 4 bits.
double decode_factor(WeightType type);

}  // namespace canopy::predict
