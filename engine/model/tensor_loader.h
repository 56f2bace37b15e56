#pragma once
// Tensors of a file onto a device: what the weights of a target and of a drafter have in common.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/compute/device.h"
#include "engine/format/tensor_view.h"
#include "engine/model/load_monitor.h"
#include "engine/model/read_ahead.h"
#include "engine/model/weight_plan.h"

namespace canopy {

class TensorLoader {
 public:
  /// `matrices` are those that will be loaded, in this order. check_unchanged throws when the file is no longer what
  /// was opened; it is asked before each tensor. All references must outlive the loader.
  TensorLoader(Device& device, std::span<const MatrixPlan* const> matrices, LoadMonitor& monitor,
               std::function<void()> check_unchanged);
  ~TensorLoader();
  TensorLoader(const TensorLoader&) = delete;
  TensorLoader& operator=(const TensorLoader&) = delete;

  /// Beside the device's copy only the rows at hand and some megabytes around them are in memory. Throws cancelled when
  /// the monitor's caller wants no more, bad_input for a weight that is not finite or cannot be quantized.
  std::unique_ptr<Weight> matrix(const MatrixPlan& plan);

  /// The decoded values of a vector, or of all rows of a matrix, plus `offset`, times `scale`; element i being that of
  /// order[i] where an order is given. Throws bad_input where one is not finite.
  std::unique_ptr<Buffer> norm(const TensorView& tensor, float offset = 0, std::span<const uint32_t> order = {},
                               float scale = 1);
  /// Rates of decays: its values, which must be negative, or -exp of them where they are `logarithms`.
  std::unique_ptr<Buffer> rates(const TensorView& tensor, bool logarithms);

  /// The decoded values of matrices of the same columns as floats, one below the other. Throws bad_input where one is
  /// not finite.
  std::unique_ptr<Buffer> router(std::span<const TensorView* const> parts);

  /// The decoded values of vectors, one after the other; element i being that of order[i] where an order is given.
  /// Throws bad_input where one is not finite.
  std::unique_ptr<Buffer> bias(std::span<const TensorView* const> parts, std::span<const uint32_t> order = {});
  std::unique_ptr<Buffer> bias(const TensorView& tensor);
  /// Those of a paired weight: elements of gate and up in turn.
  std::unique_ptr<Buffer> paired_bias(const TensorView& gate, const TensorView& up);
  /// Likewise.
  std::unique_ptr<Buffer> sinks(const TensorView& tensor);

 private:
  std::vector<float> values_of(std::span<const TensorView* const> parts, const char* kind);
  std::unique_ptr<Buffer> vector(std::span<const float> values, const std::string& name);
  void before_reading();

  Device& device_;
  LoadMonitor& monitor_;
  ReadAhead read_ahead_;
  std::function<void()> check_unchanged_;
};

}  // namespace canopy
