#pragma once
// How attention (kernels/attention.cu) is cut into blocks, and what memory lies between its chunks and their merge.
// Pure arithmetic; nothing of it changes a bit of a result.

#include <cstdint>

#include "cuda_backend/kernels/params.h"
#include "cuda_backend/product_plan.h"
#include "engine/compute/types.h"

namespace canopy::cuda {

/// What is fixed when attention is recorded.
struct AttentionExtent {
  KvShape shape;
  uint32_t heads = 0;
  uint32_t max_positions = 0;  // that the page table has
  uint64_t keys = 0;           // of a row, at most
  bool windowed = false;       // a row's first key may lie anywhere
};

/// Of a launch.
struct AttentionLaunch {
  bool many = false;  // which of the two kernels
  uint32_t threads = 0;
  uint32_t blocks = 0;
  uint32_t shared_bytes = 0;

  const char* kernel(CacheType type) const;
};

/// Bytes that the results of the chunks of `rows` rows take, and rows whose results stay below what attention may use:
/// 64 MiB, or one row's.
uint64_t attention_scratch_bytes(const AttentionExtent& extent, uint32_t rows);
uint32_t attention_rows_at_a_time(const AttentionExtent& extent);

/// Fills what says how the work is cut: for p.row_count rows. Shared memory of a launch is what the GPU has, at most.
AttentionLaunch plan_attention(AttentionParams& p, const AttentionExtent& extent, const GpuLimits& gpu);

}  // namespace canopy::cuda
