#include "tests/fuzz/tensor_checks.h"

#include <cmath>
#include <string>
#include <vector>

#include "engine/format/dequantize.h"
#include "engine/format/model_config.h"
#include "engine/format/tensor.h"
#include "tests/fuzz/harness.h"

namespace canopy::fuzz {
namespace {

// Most elements of a tensor to decode, as decoding takes more time than everything else.
constexpr uint64_t most_decoded = 1024;

void check_tensor(const TensorView& tensor, std::span<const std::byte> file) {
  touch(tensor.bytes);
  if (!file.empty() && !tensor.bytes.empty()) {
    require(tensor.bytes.data() >= file.data() && &tensor.bytes.back() <= &file.back(), "a tensor lies in its file");
  }
  require(tensor.packed || tensor.bytes.size() == tensor_bytes(tensor.type, tensor.elements(), "tensor"),
          "a tensor has its bytes");
  require(tensor.rank <= TensorView::max_rank, "a tensor has at most four dimensions");
  require(!tensor.name.empty() && !tensor.shape_text().empty(), "a tensor has a name and a shape");
  if (can_dequantize(tensor.type) && tensor.elements() <= most_decoded) {
    std::vector<float> values(tensor.elements());
    std::vector<std::byte> scratch;
    accepted([&] { dequantize(tensor.type, rows_of(tensor, 0, tensor.rows(), scratch), values); });
  }
}

}  // namespace

void check_tensors(std::span<const TensorView> tensors, std::span<const std::byte> file) {
  for (const TensorView& tensor : tensors) check_tensor(tensor, file);
}

void check_rotations(const ModelConfig& config) {
  const RopeScaling& scaling = config.rope_scaling;
  const bool turns_all = scaling.kind != RopeScaling::Kind::proportional;
  for (const uint32_t context : {0u, config.max_context}) {
    const std::vector<double> frequencies = rope_frequencies(config, context);
    for (size_t i = 0; i < frequencies.size(); ++i) {
      const bool turns = turns_all || i < scaling.turned_pairs;
      require(std::isfinite(frequencies[i]) && (turns ? frequencies[i] > 0 : frequencies[i] == 0),
              "rotation frequencies are positive numbers, and 0 of pairs that do not turn");
    }
  }
  if (!config.has_local_rope()) return;
  for (const double frequency : local_rope_frequencies(config)) {
    require(std::isfinite(frequency) && frequency > 0, "local rotation frequencies are positive numbers");
  }
}

void check_model(const ModelFile& model) {
  check_tensors(model.tensors());
  model.check_unchanged();
  for (const TensorView& tensor : model.tensors()) {
    require(model.find(tensor.name) == &tensor, "a tensor is found by its name");
  }
  check_rotations(model.config());
}

}  // namespace canopy::fuzz
