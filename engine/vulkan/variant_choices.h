#pragma once
// The variants of matrix products that timing chose, kept in a file in the cache folder, so that a device is measured
// once.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/compute/types.h"
#include "engine/vulkan/product_config.h"

namespace canopy::vk {

/// What a product does with its sums. Kernels of one op are chosen apart from those of another.
enum class ProductOp { linear, add, swiglu, experts };
const char* to_string(ProductOp op);

/// The product that a variant is chosen for.
struct VariantKey {
  KernelFamily family = KernelFamily::fma;
  ProductOp op = ProductOp::linear;
  WeightType type = WeightType::f32;
  uint32_t rows = 0;  // of the weight
  uint32_t cols = 0;
  uint32_t width = 0;  // rows of the pass; one for each bucket of widths
  // Of a mixture, whose weight has `experts` times `rows`, and of which each row goes through `used`.
  uint32_t experts = 0, used = 0;
  auto operator<=>(const VariantKey&) const = default;
};

/// "add Q4_K 4096x12288 x16", "experts Q4_K 8 of 128 1536x2048 x16"
std::string describe(const VariantKey& key);

/// What makes a variant of its family: the numbers of FmaConfig or MatrixConfig.
using VariantNumbers = std::vector<uint32_t>;

class VariantChoices {
 public:
  /// file: empty for none. identity: device, driver and shaders; a file of another identity is ignored, as is a damaged
  /// one, and log_info() says so.
  VariantChoices(std::filesystem::path file, std::string identity);

  /// What was chosen; nothing for a product that was not measured. Whoever asks compares with the variants there are
  /// now.
  const VariantNumbers* find(const VariantKey& key) const;
  void set(const VariantKey& key, VariantNumbers numbers);
  size_t size() const { return choices_.size(); }

  /// Writes the file if something changed. What goes wrong is returned, not thrown: the choices are only a cache.
  std::string save();

 private:
  void load();

  std::filesystem::path file_;
  std::string identity_;
  std::map<VariantKey, VariantNumbers> choices_;
  bool changed_ = false;
};

}  // namespace canopy::vk
