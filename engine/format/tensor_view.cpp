#include "engine/format/tensor_view.h"

namespace canopy {

uint64_t TensorView::rows() const {
  uint64_t product = 1;
  for (uint32_t i = 0; i + 1 < rank; ++i) product *= shape[i];
  return product;
}

std::string TensorView::shape_text() const {
  std::string text = "[";
  for (uint32_t i = 0; i < rank; ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

}  // namespace canopy
