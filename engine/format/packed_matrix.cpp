#include "engine/format/packed_matrix.h"

#include <utility>

namespace canopy {
namespace {

class PackedRows final : public PackedMatrix {
 public:
  PackedRows(std::shared_ptr<const PackedMatrix> whole, uint64_t first) : whole_(std::move(whole)), first_(first) {}
  void make_rows(uint64_t first, uint64_t count, std::span<std::byte> out) const override {
    whole_->make_rows(first_ + first, count, out);
  }
  std::string_view form() const override { return whole_->form(); }

 private:
  std::shared_ptr<const PackedMatrix> whole_;
  uint64_t first_;
};

}  // namespace

std::shared_ptr<const PackedMatrix> packed_rows(std::shared_ptr<const PackedMatrix> whole, uint64_t first) {
  return std::make_shared<const PackedRows>(std::move(whole), first);
}

uint64_t row_bytes(const TensorView& tensor) {
  return tensor_bytes(tensor.type, tensor.cols(), tensor.name);
}

std::span<const std::byte> rows_of(const TensorView& tensor, uint64_t first, uint64_t count,
                                   std::vector<std::byte>& scratch) {
  const uint64_t row = row_bytes(tensor);
  if (!tensor.packed) return tensor.bytes.subspan(row * first, row * count);
  scratch.resize(row * count);
  tensor.packed->make_rows(first, count, scratch);
  return scratch;
}

}  // namespace canopy
