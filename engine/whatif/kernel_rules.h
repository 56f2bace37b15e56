#pragma once
// The families of kernels that times can be predicted for: how each cuts an op into workgroups and what it does for an
// element, as figures.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/compute/types.h"
#include "engine/whatif/device_profile.h"

namespace canopy::predict {

enum class Kernels {
  fma,        // K cut over workgroups (vulkan/product_config.h), tiles of 8 rows of the pass in one dispatch
  matrix,     // the same cut, up to 64 rows of the pass at a time on matrix cores, weights decoded to f16
  matrix_i8,  // the same in integers of 8 bits, scaled in f32 for each block; others bits, so never by itself
  cuda,       // those of the CUDA backend, by their machine code (op_work.cpp): NVIDIA only
  llama_cpp,  // a workgroup for two weight rows, ops fused as its Vulkan backend does: width 1 only, for comparison
  // Those of processors (engine/cpu), by their instructions: processor_work.cpp.
  avx2,
  vnni,
  avx512,
  neon,
};

bool is_of_processors(Kernels kernels);
/// Whether the processor has the instructions.
bool has(const ProcessorFigures& processor, Kernels kernels);

struct KernelRules {
  Kernels kernels = Kernels::matrix;

  // Products. The cut into workgroups is what the backend chooses (kernel_work.h) where these are 0.
  double tile_rows = 0;     // of the weight
  double tile_columns = 0;  // rows of the pass
  double invocations = 0;
  double columns_in_flight = 0;              // of the weight, that a workgroup has asked for at a time
  bool splits_columns = false;               // K over workgroups, by vulkan/product_config.h
  std::vector<uint32_t> width_buckets = {};  // that the pass is padded to, as DeviceInfo has them
  double loading = 0.7;                      // share of the time of a step that its columns are under way
  double registers = 72;                     // of an invocation
  double activation_bytes = 4;               // of a value, as a product reads it

  // Instructions × lanes.
  double decode = 1;          // for a weight: times decode_ops()
  double stage_ops = 0;       // for each value that a workgroup stages: activations of its chunk and tile
  double column_ops = 0;      // for each weight and row of the pass
  bool stages_asked = false;  // only for rows of the pass that there are, not for a whole tile
  bool matrix_cores = false;  // multiply-adds are theirs

  // Attention: split into partial results by the backend's plan, or a workgroup takes a K/V head, 256 keys and 8 rows
  // of the pass.
  bool splits_attention = false;
  double attention_bytes_in_flight = 32;  // of an invocation; 0: what the plan's workgroups bring at a time

  // Dispatches that wait for the one before. Of kernels whose last workgroup finishes heads, or merges a row's
  // attention, those are without the step that this takes elsewhere.
  bool last_finishes = false;
  double heads_steps = 2;  // project_heads
  double attention_steps = 2;
  double swiglu_steps = 1;
  double add_steps = 1;  // linear_add
  double linear_steps = 1;

  // The host's part of a pass.
  double submissions = 1;  // each waited for
};

/// The name on the command line: "fma", "matrix", "matrix_i8", "cuda", "llama.cpp", "avx2", "vnni", "avx512", "neon".
const char* to_string(Kernels kernels);
/// Nothing else: throws bad_input that lists them.
Kernels kernels_named(std::string_view name);
/// What a device gets from the Vulkan backend: matrix where it has matrix cores, else fma.
Kernels vulkan_kernels(const DeviceProfile& device);
/// What Canopy uses there unless told otherwise: cuda on NVIDIA's GPUs, on other GPUs the Vulkan backend's; of a
/// processor those of its widest registers.
Kernels default_kernels(const DeviceProfile& device);

KernelRules rules_of(Kernels kernels);

/// Replaces single rules: "tile_rows=128,bytes_in_flight=64". Throws bad_input that lists the names.
void assume(KernelRules& rules, std::string_view changes);

/// The rules for a product with weights of this type: dense ones stay on halves where others are integers.
KernelRules rules_for(const KernelRules& rules, WeightType type);

/// Instructions × lanes for a weight of this type, beside multiply-adds and staging.
double decode_ops(Kernels kernels, WeightType type);
/// The same for a weight and a row of the pass: what scales the sums of blocks. 0 where nothing does.
double scale_ops(Kernels kernels, WeightType type);
/// Scales that a block of 32 weights has.
uint32_t scales_of_block(WeightType type);

}  // namespace canopy::predict
