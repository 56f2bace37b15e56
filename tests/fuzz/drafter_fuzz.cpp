// Drafters in Hugging Face folders: config.json with its nested dflash_config, the weights, the tokenizer beside them;
// heads that predict further tokens, EAGLE-3 heads and assistants.
// The input is an archive of the folder (archived_folder.h); "-- target.json --" is the config.json of a target, and
// "-- target_tokenizer.json --" its tokenizer.

#include <nlohmann/json.hpp>

#include "engine/format/assistant_file.h"
#include "engine/format/config_hf.h"
#include "engine/format/describe.h"
#include "engine/format/drafter_config.h"
#include "engine/format/drafter_file.h"
#include "engine/format/eagle_file.h"
#include "engine/format/mtp_file.h"
#include "tests/fuzz/archive.h"
#include "tests/fuzz/archived_folder.h"
#include "tests/fuzz/drafter_checks.h"
#include "tests/fuzz/harness.h"

namespace canopy::fuzz {
namespace {

TokenizerSource tokenizer_of(std::string_view json) {
  TokenizerSource source;
  if (json.empty()) return source;
  source.kind = TokenizerSource::Kind::hugging_face;
  source.tokenizer_json = std::string(json);
  return source;
}

/// Only the parts other than weights, which few inputs have.
void read_parts(const std::vector<ArchivedFile>& files) {
  const std::string_view json = find_file(files, "config.json");
  accepted([&] {
    const nlohmann::json root = parse_config_json(json, "config.json");
    is_drafter_config(JsonFields(root, "config.json"));
  });
  accepted([&] {
    DrafterConfig config = read_hf_drafter_config(json);
    validate_drafter_config(config);
    check_drafter_config(config);
    const ModelConfig target = read_hf_config(find_file(files, "target.json"), "");
    validate_config(target);
    for (const std::string& warning : check_pair(target, config)) touch(warning);
  });
  const auto difference = tokenizer_difference(tokenizer_of(find_file(files, "target_tokenizer.json")),
                                               tokenizer_of(find_file(files, "tokenizer.json")));
  touch(difference.value_or(""));
}

}  // namespace

void run(std::string_view input) {
  static ScratchFolder folder;
  write_archived_folder(folder, input);
  read_parts(split_archive(input));
  const bool opened = accepted([&] { check_drafter(DrafterFile::open(folder.path())); });
  require(!opened || DrafterFile::is_drafter(folder.path()), "what opens as a drafter is one");
  accepted([&] { check_mtp_head(MtpFile::open(folder.path())); });
  const bool is_eagle = accepted([&] { check_eagle_head(EagleFile::open(folder.path())); });
  require(!is_eagle || EagleFile::is_eagle(folder.path()), "what opens as an EAGLE-3 head is one");
  const bool is_assistant = accepted([&] { check_assistant_file(AssistantFile::open(folder.path())); });
  require(!is_assistant || AssistantFile::is_assistant(folder.path()), "what opens as an assistant is one");
  accepted([&] { touch(describe_text(describe_json(folder.path()))); });
  folder.clear();
}

}  // namespace canopy::fuzz
