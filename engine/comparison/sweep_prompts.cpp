#include "engine/comparison/sweep_prompts.h"

#include <map>
#include <system_error>
#include <utility>

#include "engine/base/atomic_file.h"
#include "engine/base/damage_hash.h"
#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/printable.h"
#include "engine/format/json_text.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMostNamed = 3;

/// "'a', 'b', 'c' and 4 others"
std::string named(const std::vector<std::string>& ids) {
  std::string names;
  const size_t shown = ids.size() > kMostNamed + 1 ? kMostNamed : ids.size();
  for (size_t i = 0; i < shown; ++i) {
    if (i > 0) names += i + 1 == ids.size() ? " and " : ", ";
    names += quoted_name(ids[i]);
  }
  if (shown < ids.size()) names += " and " + std::to_string(ids.size() - shown) + " others";
  return names;
}

}  // namespace

fs::path prompts_path(const fs::path& file) {
  return file_beside(file, ".prompts.jsonl");
}

void keep_prompts(const fs::path& file, const std::vector<MeasuredPrompt>& prompts) {
  std::string lines;
  for (const MeasuredPrompt& prompt : prompts) {
    const nlohmann::ordered_json line = {{"id", prompt.id}, {"category", prompt.category}, {"prompt", prompt.text}};
    lines += line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  }
  write_file_atomically(prompts_path(file), lines);
}

std::vector<MeasuredPrompt> prompts_of(const Sweep& sweep, const fs::path& file,
                                       const std::vector<MeasuredPrompt>& known) {
  std::map<std::string, std::string> texts;  // by hash
  std::string problem;
  const auto add = [&](const std::vector<MeasuredPrompt>& prompts) {
    for (const MeasuredPrompt& prompt : prompts) texts.try_emplace(damage_hash_text(prompt.text), prompt.text);
  };
  std::error_code ignored;
  try {
    if (fs::exists(prompts_path(file), ignored)) add(read_prompts(prompts_path(file)));
  } catch (const Error& e) {
    problem = std::string(" ") + e.what();
  }
  add(known);
  std::vector<MeasuredPrompt> found;
  std::vector<std::string> missing;
  for (const SweepPrompt& prompt : sweep.prompts) {
    const auto text = texts.find(prompt.hash);
    if (text == texts.end())
      missing.push_back(prompt.id);
    else
      found.push_back({prompt.id, prompt.category, text->second});
  }
  if (missing.empty()) return found;
  throw bad_input("The sweep " + shown(file) +
                  " was measured with prompts whose texts are not here: " + named(missing) + "." + problem);
}

}  // namespace canopy
