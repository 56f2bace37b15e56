#pragma once
// What a CudaDevice owns, behind the types of engine/compute.

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "cuda_backend/kernels/params.h"
#include "cuda_backend/memory.h"
#include "cuda_backend/weight_tiles.h"
#include "engine/base/error.h"
#include "engine/compute/kv_slots.h"

namespace canopy::cuda {

struct CudaBuffer : Buffer {
  CudaBuffer(std::shared_ptr<Memory> whole, uint64_t first, uint64_t size)
      : memory(std::move(whole)), offset(first), bytes_(size) {}
  uint64_t bytes() const override { return bytes_; }
  Address address() const { return memory->address() + offset; }

  std::shared_ptr<Memory> memory;
  uint64_t offset;

 private:
  uint64_t bytes_;
};

struct CudaWeight : Weight {
  CudaWeight(WeightType type, const TileLayout& layout) : Weight(type, layout.rows, layout.cols), tiles(layout) {}
  TileLayout tiles;
  MemoryShare memory;

  WeightParams params() const { return tiles.params(memory.address()); }
};

struct CudaActivations : Activations {
  using Activations::Activations;
  std::unique_ptr<Memory> values, squares, halves, units;  // units: of the rows, then the next ones

  static uint32_t stride_of(uint32_t cols) { return (cols + kStep - 1) / kStep * kStep; }
  static uint32_t blocks_of(uint32_t cols) { return (cols + kSquareBlock - 1) / kSquareBlock; }
  // Bytes of rows.
  static uint64_t value_bytes(uint64_t rows, uint32_t cols) { return rows * stride_of(cols) * 4; }
  static uint64_t square_bytes(uint64_t rows, uint32_t cols) { return rows * blocks_of(cols) * 4; }
  static uint64_t half_bytes(uint64_t rows, uint32_t cols) { return rows * stride_of(cols) * 2; }
  static uint64_t unit_bytes(uint64_t rows) { return rows * 2 * 4; }
  ActivationsParams params() const {
    return {values->address(),
            squares->address(),
            halves->address(),
            units->address(),
            units->address() + max_width() * uint64_t{4},
            cols(),
            stride_of(cols()),
            blocks_of(cols())};
  }
};

struct CudaKv : KvLayer {
  KvShape shape;
  std::unique_ptr<Memory> keys, values;

  CacheParams params() const {
    return {keys->address(),
            values->address(),
            static_cast<uint32_t>(slot_bytes(shape) / 4),
            static_cast<uint32_t>(shape.type),
            shape.kv_heads,
            shape.head_dim};
  }
};

/// The object as this backend's; throws bad_input, naming it, for null or another backend's.
template <class Own, class T>
const Own& own(const T* object, std::string_view what) {
  const auto* found = dynamic_cast<const Own*>(object);
  if (found == nullptr) {
    throw bad_input(std::string(what) + (object == nullptr ? " is missing." : " belongs to another device."));
  }
  return *found;
}

}  // namespace canopy::cuda
