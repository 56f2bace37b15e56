#include "engine/comparison/sweep_overlay.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <utility>

namespace canopy {
namespace {

/// The sweep with the prompts of these hashes alone.
Sweep with_prompts(const Sweep& sweep, const std::set<std::string>& hashes) {
  Sweep part = sweep;
  part.prompts.clear();
  part.runs.clear();
  std::map<uint32_t, uint32_t> indices;
  for (uint32_t i = 0; i < sweep.prompts.size(); ++i) {
    if (!hashes.contains(sweep.prompts[i].hash)) continue;
    indices[i] = static_cast<uint32_t>(part.prompts.size());
    part.prompts.push_back(sweep.prompts[i]);
    part.prompts.back().category = kAllCategories;  // one set of cells
  }
  for (MeasuredRun run : sweep.runs) {
    const auto index = indices.find(run.key.prompt);
    if (index == indices.end()) continue;
    run.key.prompt = index->second;
    part.runs.push_back(std::move(run));
  }
  return part;
}

std::set<std::string> hashes_of(const Sweep& sweep) {
  std::set<std::string> hashes;
  for (const SweepPrompt& prompt : sweep.prompts) hashes.insert(prompt.hash);
  return hashes;
}

/// By prompt's hash: of a column's text in the first repeat.
std::map<std::string, std::string> texts_of(const Sweep& sweep, uint32_t contestant) {
  std::map<std::string, std::string> texts;
  for (const MeasuredRun& run : sweep.runs)
    if (run.key.contestant == contestant && run.key.repeat == 0)
      texts[sweep.prompts[run.key.prompt].hash] = run.text_hash;
  return texts;
}

Ratio ratio_of_means(const Spread& a, const Spread& b) {
  if (a.mean <= 0 || b.mean <= 0) return {};
  Ratio ratio{a.mean / b.mean, 0, std::min(a.count, b.count)};
  if (ratio.has_error()) ratio.error = ratio.value * std::hypot(a.error() / a.mean, b.error() / b.mean);
  return ratio;
}

std::string sampling_of(const Sweep& sweep) {
  const SamplingSettings& s = sweep.settings.sampling;
  if (s.temperature <= 0) return "the likeliest token";
  std::ostringstream temperature;
  temperature << s.temperature;
  return "temperature " + temperature.str() + ", seed " + std::to_string(s.seed);
}

void note_differences(const Sweep& ours, const Sweep& theirs, std::vector<std::string>& notes) {
  const auto note = [&](const std::string& what, const std::string& here, const std::string& there) {
    if (here != there) notes.push_back("The " + what + " differ: " + here + " here, " + there + " there.");
  };
  note("longest replies", std::to_string(ours.settings.max_tokens) + " tokens",
       std::to_string(theirs.settings.max_tokens) + " tokens");
  note("ways to choose tokens", sampling_of(ours), sampling_of(theirs));
  if (ours.subjects.empty() || theirs.subjects.empty()) return;
  const SweepSubject &a = ours.subjects.front(), &b = theirs.subjects.front();
  note("models", a.model + " " + a.quantization, b.model + " " + b.quantization);
  note("drafters", a.drafter.empty() ? "none" : a.drafter, b.drafter.empty() ? "none" : b.drafter);
  note("types of keys and values", a.kv, b.kv);
  note("contexts", std::to_string(a.context) + " positions", std::to_string(b.context) + " positions");
  const std::string family_a = kernel_family(a.kernels), family_b = kernel_family(b.kernels);
  note("kernels", family_a.empty() ? "not said" : family_a, family_b.empty() ? "not said" : family_b);
  if (family_a == family_b && a.kernels != b.kernels)
    notes.push_back("Of the same kernels, timing chose other variants on the two devices.");
  note("versions of Canopy", ours.version + " at " + ours.commit, theirs.version + " at " + theirs.commit);
}

}  // namespace

OverlayResult overlay(const Sweep& ours, const Sweep& theirs) {
  OverlayResult result;
  std::set<std::string> both;
  const std::set<std::string> own = hashes_of(ours), other = hashes_of(theirs);
  std::ranges::set_intersection(own, other, std::inserter(both, both.end()));
  result.prompts = both.size();
  note_differences(ours, theirs, result.notes);
  if (both.size() < own.size() || both.size() < other.size())
    result.notes.push_back(std::to_string(both.size()) + " prompts are in both; the others are left out.");
  if (both.empty()) return result;
  const Sweep a = with_prompts(ours, both), b = with_prompts(theirs, both);
  // Replies of other lengths, or drawn otherwise, are other texts whatever wrote them.
  const bool same_replies =
      ours.settings.max_tokens == theirs.settings.max_tokens && sampling_of(ours) == sampling_of(theirs);
  if (!same_replies)
    result.notes.push_back("The replies end elsewhere or are drawn otherwise, so their texts are not compared.");
  const std::vector<SweepCell> cells_a = summarize(a, a.baseline), cells_b = summarize(b, b.baseline);
  for (uint32_t i = 0; i < a.contestants.size(); ++i) {
    const WayToDecode way = a.contestants[i].way;
    const auto is_way = [&](const SweepContestant& column) { return column.way == way; };
    if (std::ranges::find_if(a.contestants, is_way) - a.contestants.begin() != static_cast<std::ptrdiff_t>(i)) continue;
    const auto match = std::ranges::find_if(b.contestants, is_way);
    if (match == b.contestants.end()) continue;
    const auto k = static_cast<uint32_t>(match - b.contestants.begin());
    OverlayRow row{way, cells_a[i], cells_b[k], {}, 0, 0};
    row.times_theirs = ratio_of_means(row.ours.tokens_per_second, row.theirs.tokens_per_second);
    const auto texts = same_replies ? texts_of(b, k) : std::map<std::string, std::string>();
    for (const auto& [hash, text] : texts_of(a, i)) {
      const auto found = texts.find(hash);
      if (found == texts.end() || text.empty()) continue;
      ++row.texts;
      row.same_texts += found->second == text ? 1 : 0;
    }
    result.rows.push_back(std::move(row));
  }
  return result;
}

std::string overlay_name(const Sweep& other, const Sweep& beside) {
  if (other.subjects.empty()) return "another sweep";
  const SweepSubject& subject = other.subjects.front();
  const bool same_device = !beside.subjects.empty() && beside.subjects.front().device == subject.device;
  const bool same_model = !beside.subjects.empty() && beside.subjects.front().model == subject.model;
  std::string name = subject.device;
  if (!same_model) name += ", " + subject.model;
  if (same_device && same_model) name += ", " + other.created.substr(0, 10);
  return name;
}

}  // namespace canopy
