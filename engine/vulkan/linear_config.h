#pragma once
// Which of the bitwise equal variants of the matrix product runs in the family that reads texels: the choices of
// shaders/linear_core.glsl. They change who computes what, never the order of a row's sum.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/compute/types.h"
#include "engine/vulkan/device_report.h"
#include "engine/vulkan/kernel.h"

namespace canopy::vk {

struct LinearConfig {
  uint32_t rows = 4;    // of an invocation: 4, 8 or 16
  uint32_t lanes = 8;   // invocations along the rows
  uint32_t body = 512;  // multiply-adds a loop body is unrolled to at most
  auto operator<=>(const LinearConfig&) const = default;
};

/// Specialisation for a tile of n columns. How far loops are unrolled follows from n and the rows: bodies of a few
/// hundred multiply-adds run fastest on software devices (instruction caches) and keep compile times low.
/// quads: rows, strides and offsets are multiples of 4, and rows one of config.rows.
KernelOptions linear_options(const LinearConfig& config, WeightType type, uint32_t n, bool ragged, bool quads);

/// The product that a variant is chosen for.
struct LinearShapeKey {
  WeightType type = WeightType::f32;
  uint32_t rows = 0;
  uint32_t cols = 0;
  uint32_t columns = 0;  // of the tile, rounded up to a power of two: choices are made per bucket
  auto operator<=>(const LinearShapeKey&) const = default;
};

/// Chosen variants by shape, kept in a file beside the pipeline cache so that a device is measured once.
class LinearChoices {
 public:
  /// identity: device, driver and version of the shaders; a file of another identity is ignored.
  LinearChoices(std::filesystem::path file, std::string identity);

  std::optional<LinearConfig> find(const LinearShapeKey& key) const;
  void set(const LinearShapeKey& key, const LinearConfig& config);
  /// Writes the file when something changed. What goes wrong is returned, not thrown: the choices are only a cache.
  std::string save();

 private:
  void load();

  std::filesystem::path file_;
  std::string identity_;
  std::map<LinearShapeKey, LinearConfig> choices_;
  bool changed_ = false;
};

/// Variants worth measuring for tiles of so many columns, the likeliest first; there is at least one.
std::vector<LinearConfig> linear_candidates(uint32_t columns);

}  // namespace canopy::vk
