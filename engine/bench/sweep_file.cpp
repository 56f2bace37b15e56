#include "engine/bench/sweep_file.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/text.h"
#include "engine/bench/sweep_summary.h"
#include "engine/format/json_text.h"
#include "engine/trace/trace_export.h"

namespace canopy {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kFormat = "canopy-sweep";
/// Raised by every change of a field's meaning. Fields that are not known are ignored.
constexpr uint32_t kSweepVersion = 1;

constexpr size_t kMostSweepSubjects = 64;
constexpr size_t kMostSweepContestants = 256;
constexpr size_t kMostSweepPrompts = 10'000;
constexpr size_t kMostSweepCategories = 100;
constexpr size_t kMostSweepRuns = 80'000;  // that were made or are planned: of some 800 bytes in a file each
constexpr size_t kMostNameBytes = 256;
constexpr size_t kMostLongBytes = 1 << 15;  // kernels that timing chose
constexpr double kMostMs = 1e9, kMostJoules = 1e9, kMostReading = 1e6;
constexpr uint64_t kMostCount = uint64_t{1} << 40;
constexpr uint64_t kMostExact = uint64_t{1} << 53;  // whole numbers that every reader of JSON keeps

const char* kind_name(SweepKind kind) {
  return kind == SweepKind::sweep ? "sweep" : "comparison";
}

// ---- writing --------------------------------------------------------------------------------------------------------

ordered_json subject_json(const SweepSubject& subject) {
  ordered_json json = {{"target", subject.target},
                       {"model", printable(subject.model, kMostNameBytes)},
                       {"quantization", printable(subject.quantization, kMostNameBytes)},
                       {"parameters", subject.parameters},
                       {"drafter", printable(subject.drafter, kMostNameBytes)},
                       {"block", subject.block},
                       {"kv", subject.kv},
                       {"context", subject.context},
                       {"device", printable(subject.device, kMostNameBytes)},
                       {"device_type", subject.device_type},
                       {"driver", printable(subject.driver, kMostNameBytes)},
                       {"kernels", printable(subject.kernels, kMostLongBytes)},
                       {"is_software", subject.is_software},
                       {"self_test", printable(subject.self_test, kMostLongBytes)},
                       {"energy", printable(subject.energy, kMostNameBytes)}};
  if (subject.earlier_replies > 0) {
    json["earlier_replies"] = {{"replies", subject.earlier_replies}, {"tokens", subject.earlier_tokens}};
  }
  return json;
}

ordered_json settings_json(const SweepSettings& settings) {
  const SamplingSettings& sampling = settings.sampling;
  return {{"repeats", settings.repeats},
          {"max_tokens", settings.max_tokens},
          {"temperature", sampling.temperature},
          {"top_k", sampling.top_k},
          {"top_p", sampling.top_p},
          {"min_p", sampling.min_p},
          {"repetition_penalty", sampling.repetition_penalty},
          {"seed", sampling.seed},
          {"policy", std::string(to_string(settings.policy))},
          {"order_seed", settings.order_seed},
          {"warm_up_tokens", settings.warm_up_tokens}};
}

template <class T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

// ---- reading --------------------------------------------------------------------------------------------------------

[[noreturn]] void refuse(const JsonFields& fields, const char* field, const std::string& value,
                         const std::string& allowed) {
  throw bad_input("The field '" + std::string(field) + "' of " + fields.what() + " is " + value +
                  "; allowed: " + allowed + ".");
}

uint64_t read_count(const JsonFields& fields, const char* field, uint64_t most, std::optional<uint64_t> absent = {}) {
  const json* value = fields.find(field);
  if (value == nullptr && absent) return *absent;
  const json& number = fields.at(field);
  const bool whole = number.is_number_unsigned() && number.get<uint64_t>() <= most;
  if (!whole)
    refuse(fields, field, printable(number.dump(-1, ' ', false, json::error_handler_t::replace), 64),
           "whole numbers from 0 to " + std::to_string(most));
  return number.get<uint64_t>();
}

uint32_t read_small(const JsonFields& fields, const char* field, uint64_t most, std::optional<uint64_t> absent = {}) {
  return static_cast<uint32_t>(read_count(fields, field, most, absent));
}

std::string figure(double value) {
  return json(value).dump();
}

double read_number(const JsonFields& fields, const char* field, double least, double most,
                   std::optional<double> absent = {}) {
  if (absent && !fields.has(field)) return *absent;
  const double value = fields.number(field);
  if (!std::isfinite(value) || value < least || value > most)
    refuse(fields, field, figure(value), figure(least) + " to " + figure(most));
  return value;
}

std::optional<double> read_reading(const JsonFields& fields, const char* field, double least, double most) {
  if (!fields.has(field)) return std::nullopt;
  return read_number(fields, field, least, most);
}

std::string read_name(const JsonFields& fields, const char* field, size_t most = kMostNameBytes) {
  const std::string value = fields.text_or(field, "");
  if (value.size() > most)
    refuse(fields, field, std::to_string(value.size()) + " bytes long", "at most " + std::to_string(most));
  return printable(value, most);
}

SweepSubject read_subject(const json& object, const std::string& what) {
  const JsonFields fields(object, what);
  SweepSubject subject;
  subject.target = read_small(fields, "target", kMostSweepSubjects, 0);
  subject.model = read_name(fields, "model");
  subject.quantization = read_name(fields, "quantization");
  subject.parameters = read_count(fields, "parameters", kMostExact, 0);
  subject.drafter = read_name(fields, "drafter");
  subject.block = read_small(fields, "block", max_round_width, 0);
  subject.kv = read_name(fields, "kv");
  subject.context = read_small(fields, "context", UINT32_MAX, 0);
  subject.device = read_name(fields, "device");
  subject.device_type = read_name(fields, "device_type");
  subject.driver = read_name(fields, "driver");
  subject.kernels = read_name(fields, "kernels", kMostLongBytes);
  subject.is_software = fields.boolean_or("is_software", false);
  subject.self_test = read_name(fields, "self_test", kMostLongBytes);
  subject.energy = read_name(fields, "energy");
  if (const json* earlier = fields.object("earlier_replies")) {
    const JsonFields counts(*earlier, "the earlier replies of " + what);
    subject.earlier_replies = read_small(counts, "replies", UINT32_MAX);
    subject.earlier_tokens = read_small(counts, "tokens", UINT32_MAX);
  }
  return subject;
}

SweepContestant read_contestant(const json& object, const std::string& what) {
  const JsonFields fields(object, what);
  SweepContestant contestant;
  const std::string mode = fields.text("mode");
  const auto known = decode_mode_of(mode);
  if (!known) refuse(fields, "mode", quoted_name(mode), "ar, chain, tree and adaptive");
  contestant.way.mode = *known;
  contestant.way.budget = read_small(fields, "budget", kMostBudget, 0);
  if ((*known == DecodeMode::tree) != (contestant.way.budget > 0))
    refuse(fields, "budget", std::to_string(contestant.way.budget), "1 to 1024 for mode tree, else none");
  // Files of before there was a choice lack it: then the drafter alone was asked.
  if (*known != DecodeMode::ar) contestant.way.sources = parse_sources(fields.text_or("sources", "dflash"));
  contestant.subject = read_small(fields, "subject", kMostSweepSubjects);
  return contestant;
}

SweepPrompt read_prompt_entry(const json& object, const std::string& what) {
  const JsonFields fields(object, what);
  return {read_name(fields, "id"), read_name(fields, "category"), read_name(fields, "hash")};
}

SweepSettings read_sweep_settings(const json& object) {
  const JsonFields fields(object, "the settings");
  SweepSettings settings;
  settings.repeats = read_small(fields, "repeats", kMostSweepRepeats);
  settings.max_tokens = read_small(fields, "max_tokens", 1u << 24);
  SamplingSettings& sampling = settings.sampling;
  sampling.temperature = static_cast<float>(read_number(fields, "temperature", 0, 100, 0));
  sampling.top_k = read_small(fields, "top_k", UINT32_MAX, 0);
  sampling.top_p = static_cast<float>(read_number(fields, "top_p", 0, 1, 1));
  sampling.min_p = static_cast<float>(read_number(fields, "min_p", 0, 1, 0));
  sampling.repetition_penalty = static_cast<float>(read_number(fields, "repetition_penalty", 0, 100, 1));
  sampling.seed = read_count(fields, "seed", UINT64_MAX, 0);
  const std::string policy = fields.text_or("policy", to_string(CostPolicy::measured));
  const auto known = cost_policy_of(policy);
  if (!known) refuse(fields, "policy", quoted_name(policy), "measured, static, ema, ema+calib and paper");
  settings.policy = *known;
  settings.order_seed = read_count(fields, "order_seed", UINT64_MAX, 0);
  settings.warm_up_tokens = read_small(fields, "warm_up_tokens", 1u << 24, 0);
  return settings;
}

RoundTimes read_times(const JsonFields& run) {
  RoundTimes ms;
  const json* object = run.object("stage_ms");
  if (object == nullptr) return ms;
  const JsonFields fields(*object, "stage_ms of " + run.what());
  const std::pair<const char*, double*> stages[] = {{"draft", &ms.draft},   {"build", &ms.build},
                                                    {"verify", &ms.verify}, {"walk", &ms.walk},
                                                    {"commit", &ms.commit}, {"other", &ms.other}};
  for (const auto& [field, value] : stages) *value = read_number(fields, field, 0, kMostMs, 0);
  return ms;
}

FinishReason read_reason(const JsonFields& fields) {
  const std::string name = fields.text_or("reason", to_string(FinishReason::max_tokens));
  for (const FinishReason each : {FinishReason::stop_token, FinishReason::max_tokens, FinishReason::context_full})
    if (name == to_string(each)) return each;
  refuse(fields, "reason", quoted_name(name), "stop token, token limit and context full");
}

MeasuredRun read_run(const json& object, const std::string& what) {
  const JsonFields fields(object, what);
  MeasuredRun run;
  run.key.contestant = read_small(fields, "contestant", kMostSweepContestants);
  run.key.prompt = read_small(fields, "prompt", kMostSweepPrompts);
  run.key.repeat = read_small(fields, "repeat", kMostSweepRepeats);
  run.place = read_small(fields, "place", UINT32_MAX, 0);
  run.prompt_tokens = read_small(fields, "prompt_tokens", UINT32_MAX, 0);
  run.reused_tokens = read_small(fields, "reused_tokens", UINT32_MAX, 0);
  run.tokens = read_small(fields, "tokens", 1u << 24);
  run.rounds = read_small(fields, "rounds", 1u << 24, 0);
  run.rows = read_count(fields, "rows", kMostCount, 0);
  run.widest = read_small(fields, "widest", max_round_width, 0);
  run.prefill_ms = read_number(fields, "prefill_ms", 0, kMostMs, 0);
  run.decode_ms = read_number(fields, "decode_ms", 0, kMostMs);
  run.ms = read_times(fields);
  run.reason = read_reason(fields);
  run.text_hash = read_name(fields, "text_hash", 64);
  if (fields.has("differs_at")) run.differs_at = read_small(fields, "differs_at", UINT32_MAX);
  run.energy_j = read_reading(fields, "energy_j", 0, kMostJoules);
  run.clock_mhz = read_reading(fields, "clock_mhz", 0, kMostReading);
  run.temperature_c = read_reading(fields, "temperature_c", -300, kMostReading);
  return run;
}

template <class Read>
auto read_each(const JsonFields& fields, const char* field, size_t most, const char* one, Read&& read) {
  const json& list = fields.list(field);
  if (list.size() > most)
    refuse(fields, field, std::to_string(list.size()) + " entries long", "at most " + std::to_string(most));
  std::vector<decltype(read(list, std::string()))> result;
  for (size_t i = 0; i < list.size(); ++i) result.push_back(read(list[i], one + (" " + std::to_string(i))));
  return result;
}

Sweep read_header(const JsonFields& fields) {
  if (const std::string format = fields.text("format"); format != kFormat)
    refuse(fields, "format", quoted_name(format), kFormat);
  if (const uint32_t version = fields.u32("version"); version != kSweepVersion)
    refuse(fields, "version", std::to_string(version),
           std::to_string(kSweepVersion) + ", which this program reads; a newer Canopy may read the other");
  Sweep sweep;
  const std::string kind = fields.text_or("kind", "sweep");
  if (kind != "sweep" && kind != "comparison") refuse(fields, "kind", quoted_name(kind), "sweep and comparison");
  sweep.kind = kind == "sweep" ? SweepKind::sweep : SweepKind::comparison;
  if (const json* canopy = fields.object("canopy")) {
    const JsonFields program(*canopy, "'canopy'");
    sweep.version = read_name(program, "version");
    sweep.commit = read_name(program, "commit");
  }
  sweep.created = read_name(fields, "created");
  sweep.cores = read_small(fields, "cores", UINT32_MAX, 0);
  sweep.subjects = read_each(fields, "subjects", kMostSweepSubjects, "subject", read_subject);
  sweep.contestants = read_each(fields, "contestants", kMostSweepContestants, "contestant", read_contestant);
  sweep.prompts = read_each(fields, "prompts", kMostSweepPrompts, "prompt", read_prompt_entry);
  sweep.settings = read_sweep_settings(fields.at("settings"));
  sweep.baseline = read_small(fields, "baseline", kMostSweepContestants, 0);
  return sweep;
}

/// The lines of a journal behind the first. Only the last one may be torn, by a crash while it was written. A run that
/// is there again is what became known of it later.
void read_journal(std::string_view lines, Sweep& sweep) {
  std::map<RunKey, size_t> known;
  while (!lines.empty()) {
    const size_t end = lines.find('\n');
    if (end == std::string_view::npos) return;
    const std::string what = "run " + std::to_string(sweep.runs.size());
    if (sweep.runs.size() >= kMostSweepRuns)
      throw bad_input("The journal has more than " + std::to_string(kMostSweepRuns) + " runs.");
    MeasuredRun run = read_run(parse_json(lines.substr(0, end), what), what);
    const auto [at, is_new] = known.try_emplace(run.key, sweep.runs.size());
    if (is_new) sweep.runs.emplace_back();
    sweep.runs[at->second] = std::move(run);
    lines.remove_prefix(end + 1);
  }
}

void require_index(uint64_t index, size_t size, const std::string& what, const char* list) {
  if (index < size) return;
  throw bad_input(what + " is " + std::to_string(index) + "; the sweep has " + std::to_string(size) + " " + list + ".");
}

}  // namespace

ordered_json sweep_header(const Sweep& sweep) {
  ordered_json subjects = ordered_json::array(), contestants = subjects, prompts = subjects;
  for (const SweepSubject& subject : sweep.subjects) subjects.push_back(subject_json(subject));
  for (size_t i = 0; i < sweep.contestants.size(); ++i) {
    const WayToDecode& way = sweep.contestants[i].way;
    contestants.push_back({{"name", sweep.name_of(static_cast<uint32_t>(i))},
                           {"mode", std::string(to_string(way.mode))},
                           {"budget", way.budget > 0 ? ordered_json(way.budget) : ordered_json(nullptr)},
                           {"sources", list_of(way.sources)},
                           {"subject", sweep.contestants[i].subject}});
  }
  for (const SweepPrompt& prompt : sweep.prompts)
    prompts.push_back({{"id", printable(prompt.id, kMostNameBytes)},
                       {"category", printable(prompt.category, kMostNameBytes)},
                       {"hash", prompt.hash}});
  return {{"format", kFormat},
          {"version", kSweepVersion},
          {"kind", kind_name(sweep.kind)},
          {"canopy", {{"version", sweep.version}, {"commit", sweep.commit}}},
          {"created", sweep.created},
          {"cores", sweep.cores},
          {"subjects", subjects},
          {"contestants", contestants},
          {"prompts", prompts},
          {"settings", settings_json(sweep.settings)},
          {"baseline", sweep.baseline}};
}

ordered_json to_json(const MeasuredRun& run) {
  return {{"contestant", run.key.contestant},
          {"prompt", run.key.prompt},
          {"repeat", run.key.repeat},
          {"place", run.place},
          {"prompt_tokens", run.prompt_tokens},
          {"reused_tokens", run.reused_tokens},
          {"tokens", run.tokens},
          {"rounds", run.rounds},
          {"rows", run.rows},
          {"widest", run.widest},
          {"prefill_ms", run.prefill_ms},
          {"decode_ms", run.decode_ms},
          {"stage_ms", to_json(run.ms)},
          {"reason", to_string(run.reason)},
          {"text_hash", run.text_hash},
          {"differs_at", or_null(run.differs_at)},
          {"energy_j", or_null(run.energy_j)},
          {"clock_mhz", or_null(run.clock_mhz)},
          {"temperature_c", or_null(run.temperature_c)}};
}

ordered_json to_json(const Sweep& sweep) {
  ordered_json json = sweep_header(sweep);
  json["complete"] = sweep.complete();
  ordered_json runs = ordered_json::array();
  for (const MeasuredRun& run : sweep.runs) runs.push_back(to_json(run));
  json["summary"] = summary_json(sweep, sweep.baseline);
  json["runs"] = std::move(runs);
  return json;
}

std::string sweep_text(const Sweep& sweep) {
  return to_json(sweep).dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Sweep parse_sweep(std::string_view text) {
  // What else is sent along with a sweep is named, not called a broken one.
  if (text.starts_with("CanopyTr")) throw bad_input("This is a recording (canopy-cli trace reads it), not a sweep.");
  // A journal's first line is an object by itself, and so is a file that was written without line breaks.
  const size_t line = std::min(text.find('\n'), text.size());
  const bool one_line = json::accept(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(line));
  const json object = parse_json(one_line ? text.substr(0, line) : text, "The sweep");
  const JsonFields fields(object, "the sweep");
  Sweep sweep = read_header(fields);
  if (fields.has("runs"))
    sweep.runs = read_each(fields, "runs", kMostSweepRuns, "run", read_run);
  else if (one_line)
    read_journal(text.substr(std::min(line + 1, text.size())), sweep);
  else
    fields.at("runs");
  validate(sweep);
  return sweep;
}

Sweep read_sweep(const std::filesystem::path& path) {
  return with_context(shown(path), [&] { return parse_sweep(read_text_input(path, kMostSweepBytes)); });
}

void require_few_runs(const RunCounts& counts) {
  if (counts.total() <= kMostSweepRuns) return;
  throw bad_input(std::to_string(counts.contestants) + " columns, " + std::to_string(counts.prompts) + " prompts and " +
                  std::to_string(counts.repeats) + " repeats are " + std::to_string(counts.total()) +
                  " runs; at most " + std::to_string(kMostSweepRuns) + " are allowed.");
}

void validate(const Sweep& sweep) {
  if (sweep.contestants.empty())
    throw bad_input("The field 'contestants' of the sweep is empty; it needs one or more.");
  if (sweep.prompts.empty()) throw bad_input("The field 'prompts' of the sweep is empty; it needs one or more.");
  std::set<std::string> categories;
  for (const SweepPrompt& prompt : sweep.prompts) categories.insert(prompt.category);
  if (categories.size() > kMostSweepCategories)
    throw bad_input("The prompts of the sweep are of " + std::to_string(categories.size()) +
                    " categories; allowed: at most " + std::to_string(kMostSweepCategories) + ".");
  require_few_runs(sweep.counts());
  if (sweep.settings.repeats == 0) throw bad_input("The field 'repeats' of the settings is 0; allowed: 1 or more.");
  for (const SweepContestant& contestant : sweep.contestants)
    require_index(contestant.subject, sweep.subjects.size(), "The field 'subject' of a contestant", "subjects");
  require_index(sweep.baseline, sweep.contestants.size(), "The field 'baseline'", "contestants");
  std::set<RunKey> seen;
  for (size_t i = 0; i < sweep.runs.size(); ++i) {
    const MeasuredRun& run = sweep.runs[i];
    const std::string of_run = " of run " + std::to_string(i);
    require_index(run.key.contestant, sweep.contestants.size(), "The field 'contestant'" + of_run, "contestants");
    require_index(run.key.prompt, sweep.prompts.size(), "The field 'prompt'" + of_run, "prompts");
    require_index(run.key.repeat, sweep.settings.repeats, "The field 'repeat'" + of_run, "repeats");
    if (run.rounds >= std::max(1u, run.tokens) && run.rounds > 0)
      throw bad_input("The field 'rounds'" + of_run + " is " + std::to_string(run.rounds) + "; its " +
                      std::to_string(run.tokens) + " tokens allow fewer: every pass emits one.");
    if (run.rows < run.rounds)
      throw bad_input("The field 'rows'" + of_run + " is " + std::to_string(run.rows) + "; its " +
                      std::to_string(run.rounds) + " passes have one or more each.");
    if (!seen.insert(run.key).second)
      throw bad_input("Run " + std::to_string(i) + " is there twice: contestant " + std::to_string(run.key.contestant) +
                      ", prompt " + std::to_string(run.key.prompt) + ", repeat " + std::to_string(run.key.repeat) +
                      ".");
  }
}

}  // namespace canopy
