#include "engine/session/comparison_plan.h"

#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "engine/base/damage_hash.h"
#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/utc_time.h"
#include "engine/comparison/plan_difference.h"
#include "engine/comparison/sweep_file.h"
#include "engine/comparison/sweep_journal.h"

namespace canopy {
namespace {

/// Runs whose text was not yet compared with the baseline's when the measurement ended, and is another: they are made
/// again, since what they wrote is not known any more.
void drop_runs_not_compared(Sweep& sweep) {
  std::map<uint32_t, std::string> references;  // by prompt
  for (const MeasuredRun& run : sweep.runs) {
    if (run.key.contestant == sweep.baseline) references.try_emplace(run.key.prompt, run.text_hash);
  }
  std::erase_if(sweep.runs, [&](const MeasuredRun& run) {
    if (run.key.contestant == sweep.baseline || run.differs_at) return false;
    const auto reference = references.find(run.key.prompt);
    return reference != references.end() && reference->second != run.text_hash;
  });
}

}  // namespace

Sweep plan_of(const Compare& command, const std::string& commit) {
  Sweep sweep;
  sweep.kind = command.kind;
  sweep.version = CANOPY_VERSION;
  sweep.commit = commit;
  sweep.created = utc_time();
  sweep.cores = std::thread::hardware_concurrency();
  sweep.settings = command.settings;
  sweep.baseline = command.baseline;
  for (const ComparisonPrompt& prompt : command.prompts) sweep.prompts.push_back(sweep_prompt(prompt));
  return sweep;
}

SweepPrompt sweep_prompt(const ComparisonPrompt& prompt) {
  const std::string text = prompt.turns.empty() ? std::string() : prompt.turns.back().content;
  return {prompt.id, prompt.category, damage_hash_text(text)};
}

std::vector<MeasuredPrompt> measured_prompts(const std::vector<ComparisonPrompt>& prompts) {
  std::vector<MeasuredPrompt> measured;
  for (const ComparisonPrompt& prompt : prompts) {
    if (prompt.turns.size() != 1) return {};
    measured.push_back({prompt.id, prompt.category, prompt.turns[0].content});
  }
  return measured;
}

void take_earlier_runs(const std::string& file, bool resume, Sweep& sweep) {
  if (file.empty()) return;
  std::error_code ignored;
  const bool exists = std::filesystem::exists(file, ignored);
  std::optional<Sweep> earlier = unfinished_sweep(file);
  if (!earlier && exists && resume) earlier = read_sweep(file);
  if (!earlier && !exists) return;
  if (!resume)
    throw bad_input(
        "There is a measurement in " + shown(file) +
        (earlier ? " that is not finished. Go on with it, or choose another file." : " already. Choose another file."));
  if (!earlier) return;
  if (const std::string difference = plan_difference(*earlier, sweep); !difference.empty())
    throw bad_input("The file " + shown(file) + " has another measurement: " + difference + ".");
  sweep.created = earlier->created;
  sweep.runs = std::move(earlier->runs);
  drop_runs_not_compared(sweep);
}

}  // namespace canopy
