// One safetensors file: header, tensors, metadata. The input is the file.

#include "engine/format/safetensors.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/tensor_checks.h"

namespace canopy::fuzz {

void run(std::string_view input) {
  accepted([&] {
    const SafetensorsFile file = SafetensorsFile::parse(bytes_of(input));
    check_tensors(file.tensors(), bytes_of(input));
    size_t bytes = 0;
    for (const TensorView& tensor : file.tensors()) bytes += tensor.bytes.size();
    require(bytes < input.size(), "tensors take no byte twice, and none of the header's");
    for (const auto& [key, value] : file.metadata()) touch(key + value);
  });
}

}  // namespace canopy::fuzz
