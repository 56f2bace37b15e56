// Drafters in GGUF files, in llama.cpp's dialect and those of its forks: recognising the dialect, the config in the
// metadata, the tensors under the dialect's names; heads that predict further tokens, EAGLE-3 heads and assistants. The
// input is the file.

#include <nlohmann/json.hpp>

#include "engine/format/assistant_file.h"
#include "engine/format/describe.h"
#include "engine/format/drafter_config.h"
#include "engine/format/eagle_file.h"
#include "engine/format/mtp_file.h"
#include "tests/fuzz/drafter_checks.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/scratch.h"

namespace canopy::fuzz {
namespace {

/// Only the parts other than tensors, which most inputs lack.
void read_parts(std::string_view input) {
  const GgufFile file = GgufFile::parse(bytes_of(input));
  for (const TensorView& tensor : file.tensors()) {
    require(!drafter_name_from_gguf(tensor.name).empty() && !drafter_name_from_fork(tensor.name).empty(),
            "every tensor has a canonical name");
  }
  const DrafterConfig config = read_gguf_drafter_config(file);
  touch(config.dialect);
  validate_drafter_config(config);
  check_drafter_config(config);
}

}  // namespace

void run(std::string_view input) {
  static ScratchFile file;
  file.write(input);
  accepted([&] { read_parts(input); });
  const bool opened = accepted([&] { check_drafter(DrafterFile::open(file.path())); });
  require(!opened || DrafterFile::is_drafter(file.path()), "what opens as a drafter is one");
  MtpFile::is_alone(file.path());
  accepted([&] { check_mtp_head(MtpFile::open(file.path())); });
  const bool is_eagle = accepted([&] { check_eagle_head(EagleFile::open(file.path())); });
  require(!is_eagle || EagleFile::is_eagle(file.path()), "what opens as an EAGLE-3 head is one");
  const bool is_assistant = accepted([&] { check_assistant_file(AssistantFile::open(file.path())); });
  require(!is_assistant || AssistantFile::is_assistant(file.path()), "what opens as an assistant is one");
  accepted([&] { touch(describe_text(describe_json(file.path()))); });
}

}  // namespace canopy::fuzz
