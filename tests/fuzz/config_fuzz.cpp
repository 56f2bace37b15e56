// config.json and generation_config.json: JSON, typed access to it, and the validated config. The input is an archive
// of both; the text before the first file name is config.json.

#include "engine/format/architecture.h"
#include "engine/format/config_hf.h"
#include "tests/fuzz/archive.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/tensor_checks.h"

namespace canopy::fuzz {

void run(std::string_view input) {
  const auto files = split_archive(input);
  accepted([&] {
    const ModelConfig config = read_hf_config(find_file(files, ""), find_file(files, "generation_config.json"));
    validate_config(config);
    require(config.heads % config.kv_heads == 0 && config.head_dim % 2 == 0, "heads can be shared and turned");
    check_rotations(config);
    for (const RequiredTensor& tensor : required_tensors(config)) {
      require(tensor.rows > 0 && tensor.cols > 0, "every tensor has a shape");
    }
  });
}

}  // namespace canopy::fuzz
