#include "engine/format/unpacked_tensors.h"

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/format/four_bit_matrix.h"
#include "engine/format/fp8_matrix.h"

namespace canopy {
namespace {

using Method = HfQuantization::Method;

constexpr std::string_view codes_suffix = ".qweight", weight_suffix = ".weight";

/// Scales of activations and of caches, which other programs keep in 8 bits: no part of the weights.
constexpr std::array<std::string_view, 5> unread_scales = {".input_scale", ".activation_scale", ".q_scale", ".k_scale",
                                                           ".v_scale"};

class Unpacker {
 public:
  Unpacker(std::span<const TensorView> found, const HfQuantization& quantization)
      : found_(found), quantization_(quantization) {
    for (const TensorView& tensor : found) by_name_.emplace(tensor.name, &tensor);
  }

  std::vector<TensorView> unpack() {
    std::vector<TensorView> made;
    made.reserve(found_.size());
    for (const TensorView& tensor : found_) made.push_back(unpacked(tensor));
    // What became part of a matrix was pushed as itself before: it is left out now that all are known.
    std::erase_if(made, [&](const TensorView& tensor) { return used_.contains(tensor.name); });
    return made;
  }

 private:
  TensorView unpacked(const TensorView& tensor) {
    const std::string_view name = tensor.name;
    if (is_four_bits() && name.ends_with(codes_suffix)) return four_bits(tensor);
    if (quantization_.method == Method::fp8) {
      if (tensor.type == TensorType::f8_e4m3 && name.ends_with(weight_suffix)) return fp8(tensor);
      for (const std::string_view suffix : unread_scales) {
        if (name.ends_with(suffix)) used_.insert(tensor.name);
      }
    }
    return tensor;
  }

  bool is_four_bits() const { return quantization_.method == Method::gptq || quantization_.method == Method::awq; }

  TensorView four_bits(const TensorView& codes) {
    const std::string base = codes.name.substr(0, codes.name.size() - codes_suffix.size());
    FourBitTensors parts;
    parts.codes = &codes;
    parts.zeros = &required(base + ".qzeros", codes);
    parts.scales = &required(base + ".scales", codes);
    parts.columns = used(base + ".g_idx");
    return four_bit_matrix(base + std::string(weight_suffix), parts, quantization_);
  }

  TensorView fp8(const TensorView& elements) {
    const TensorView* scales = used(elements.name + "_scale_inv");
    return fp8_matrix(elements, scales != nullptr ? *scales : required(elements.name + "_scale", elements),
                      quantization_);
  }

  const TensorView* used(const std::string& name) {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return nullptr;
    used_.insert(name);
    return found->second;
  }

  const TensorView& required(const std::string& name, const TensorView& owner) {
    if (const TensorView* found = used(name)) return *found;
    throw bad_input("The tensor " + quoted_name(name) + " is missing, which belongs to " + quoted_name(owner.name) +
                    " in a folder of " + std::string(to_string(quantization_.method)) + ".");
  }

  std::span<const TensorView> found_;
  const HfQuantization& quantization_;
  std::unordered_map<std::string_view, const TensorView*> by_name_;
  std::unordered_set<std::string> used_;
};

}  // namespace

std::vector<TensorView> unpacked_tensors(std::span<const TensorView> found, const HfQuantization& quantization) {
  if (quantization.method == Method::none) {
    for (const TensorView& tensor : found) {
      if (!tensor.name.ends_with(codes_suffix)) continue;
      throw bad_input("The tensor " + quoted_name(tensor.name) +
                      " holds codes of a quantization of which the folder says nothing: config.json has no "
                      "'quantization_config', and there is no quantize_config.json.");
    }
    return {found.begin(), found.end()};
  }
  return Unpacker(found, quantization).unpack();
}

}  // namespace canopy
