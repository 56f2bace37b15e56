#include "engine/format/tensor.h"

#include <utility>

#include "engine/base/error.h"
#include "engine/base/numbers.h"

namespace canopy {
namespace {

using T = TensorType;

/// The plain element types share their names with safetensors; the block types do not exist there.
bool exists_in_safetensors(TensorType type) {
  switch (type) {
    case T::f32:
    case T::f16:
    case T::bf16:
    case T::f64:
    case T::i8:
    case T::i16:
    case T::i32:
    case T::i64: return true;
    default: return type >= T::boolean;
  }
}

}  // namespace

std::span<const TensorTypeInfo> all_tensor_types() {
  return tensor_types;
}

std::optional<TensorType> tensor_type_from_ggml(uint32_t id) {
  if (id >= static_cast<uint32_t>(T::boolean)) return std::nullopt;
  const TensorTypeInfo* info = find_tensor_type(id);
  return info == nullptr ? std::nullopt : std::optional(info->type);
}

std::optional<TensorType> tensor_type_from_safetensors(std::string_view dtype) {
  for (const TensorTypeInfo& info : tensor_types) {
    if (info.name == dtype && exists_in_safetensors(info.type)) return info.type;
  }
  return std::nullopt;
}

const TensorTypeInfo& tensor_type_info(TensorType type) {
  if (const TensorTypeInfo* info = find_tensor_type(static_cast<uint32_t>(type))) return *info;
  throw bad_input("There is no tensor type with the id " + std::to_string(static_cast<uint32_t>(type)) + ".");
}

std::string_view to_string(TensorType type) {
  return tensor_type_info(type).name;
}

uint64_t tensor_bytes(TensorType type, uint64_t elements, std::string_view what) {
  const TensorTypeInfo& info = tensor_type_info(type);
  if (elements % info.block_elements != 0) {
    throw bad_input("The " + std::string(what) + " has " + std::to_string(elements) + " elements, no whole number of " +
                    std::string(info.name) + " blocks of " + std::to_string(info.block_elements) + ".");
  }
  return checked_mul<uint64_t>(elements / info.block_elements, info.block_bytes, "size of the " + std::string(what));
}

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

uint64_t set_shape(TensorView& tensor, std::span<const uint64_t> shape, const std::string& owner) {
  if (shape.size() > TensorView::max_rank) {
    throw bad_input("The " + owner + " has " + std::to_string(shape.size()) + " dimensions; at most " +
                    std::to_string(TensorView::max_rank) + " are allowed.");
  }
  tensor.rank = static_cast<uint32_t>(shape.size());
  std::ranges::copy(shape, tensor.shape.begin());
  uint64_t elements = 1;
  for (const uint64_t dimension : shape) elements = checked_mul(elements, dimension, "element count of " + owner);
  return tensor_bytes(tensor.type, elements, owner);
}

void place_tensor(TensorView& tensor, uint64_t offset, uint64_t size, std::span<const std::byte> data,
                  const std::string& owner, const std::string& why) {
  if (offset > data.size() || size > data.size() - offset) {
    throw bad_input((why.empty() ? "" : why + " ") + "The " + owner + " of " + std::to_string(size) +
                    " bytes at offset " + std::to_string(offset) + " lies outside the file, whose data section has " +
                    std::to_string(data.size()) + " bytes.");
  }
  tensor.bytes = data.subspan(offset, size);
}

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
