// Hugging Face folders: config.json, the index, its shards, the small files beside them. The input is an archive of the
// folder (archived_folder.h).

#include <nlohmann/json.hpp>

#include "engine/format/describe.h"
#include "engine/format/safetensors.h"
#include "tests/fuzz/archived_folder.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/tensor_checks.h"

namespace canopy::fuzz {

void run(std::string_view input) {
  static ScratchFolder folder;
  write_archived_folder(folder, input);
  accepted([&] { check_model(ModelFile::open(folder.path())); });
  accepted([&] { touch(describe_text(describe_json(folder.path()))); });
  accepted([&] {
    const auto weights = SafetensorsFolder::open(folder.path());
    check_tensors(weights.tensors());
    for (const SafetensorsFile& file : weights.files()) {
      require(file.file().path().parent_path() == folder.path(), "a shard lies in the folder itself");
    }
  });
  folder.clear();
}

}  // namespace canopy::fuzz
