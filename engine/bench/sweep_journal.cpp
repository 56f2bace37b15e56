#include "engine/bench/sweep_journal.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <map>
#include <sstream>
#include <system_error>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/files.h"
#include "engine/base/mapped_file.h"
#include "engine/base/posix.h"
#include "engine/base/text.h"
#include "engine/bench/sweep_file.h"

namespace canopy {
namespace {

std::string value_text(const std::string& value) {
  return value.empty() ? "none" : quoted_name(value);
}

template <class Number>
std::string value_text(Number value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

template <class T>
std::string differing(const std::string& what, const T& earlier, const T& now) {
  if (earlier == now) return {};
  return "its " + what + " is " + value_text(earlier) + ", and here it would be " + value_text(now);
}

/// The first of the sentences that says something.
std::string first_said(std::initializer_list<std::string> sentences) {
  for (const std::string& sentence : sentences)
    if (!sentence.empty()) return sentence;
  return {};
}

/// The context may be another one where memory is less; what tells the energy, and what the self-test said, are no part
/// of a plan.
std::string subject_difference(const SweepSubject& a, const SweepSubject& b) {
  return first_said({differing("model", a.model, b.model), differing("drafter", a.drafter, b.drafter),
                     differing("device", a.device, b.device), differing("driver", a.driver, b.driver),
                     differing("quantization", a.quantization, b.quantization),
                     differing("number of parameters", a.parameters, b.parameters),
                     differing("drafter's block", a.block, b.block), differing("type of keys and values", a.kv, b.kv),
                     differing("family of kernels", kernel_family(a.kernels), kernel_family(b.kernels)),
                     differing("type of device", a.device_type, b.device_type),
                     differing("number of earlier replies", a.earlier_replies, b.earlier_replies),
                     differing("tokens of earlier replies", a.earlier_tokens, b.earlier_tokens),
                     a.is_software == b.is_software ? "" : "one of the devices is a software device",
                     a.target == b.target ? "" : "its columns share models in another way"});
}

std::string settings_difference(const SweepSettings& a, const SweepSettings& b) {
  const SamplingSettings &x = a.sampling, &y = b.sampling;
  return first_said(
      {differing("number of repeats", a.repeats, b.repeats), differing("longest reply", a.max_tokens, b.max_tokens),
       differing("policy", std::string(to_string(a.policy)), std::string(to_string(b.policy))),
       differing("order's seed", a.order_seed, b.order_seed), differing("temperature", x.temperature, y.temperature),
       differing("top k", x.top_k, y.top_k), differing("top p", x.top_p, y.top_p), differing("min p", x.min_p, y.min_p),
       differing("seed", x.seed, y.seed), differing("repetition penalty", x.repetition_penalty, y.repetition_penalty)});
}

/// "ar, chain, tree 16"
std::string column_names(const Sweep& sweep) {
  std::string names;
  for (uint32_t i = 0; i < sweep.contestants.size(); ++i) names += (i == 0 ? "" : ", ") + sweep.name_of(i);
  return names;
}

std::string prompts_difference(const Sweep& a, const Sweep& b) {
  if (a.prompts == b.prompts) return {};
  const auto [in_a, in_b] = std::ranges::mismatch(a.prompts, b.prompts);
  if (in_a == a.prompts.end() || in_b == b.prompts.end())
    return differing("number of prompts", a.prompts.size(), b.prompts.size());
  const auto name = [](const SweepPrompt& prompt) { return prompt.category + ", " + prompt.id; };
  if (name(*in_a) == name(*in_b)) return "the text of its prompt " + quoted_name(in_a->id) + " is another one here";
  return differing("prompt", name(*in_a), name(*in_b));
}

}  // namespace

std::string plan_difference(const Sweep& earlier, const Sweep& now) {
  if (earlier.kind != now.kind) return "one is a sweep, the other a comparison";
  const size_t both = std::min(earlier.subjects.size(), now.subjects.size());
  for (size_t i = 0; i < both; ++i)
    if (std::string found = subject_difference(earlier.subjects[i], now.subjects[i]); !found.empty()) return found;
  const std::string columns = column_names(earlier), here = column_names(now);
  if (columns != here)
    return "its columns are " + quoted_name(columns) + ", and here they would be " + quoted_name(here);
  if (earlier.contestants != now.contestants || earlier.subjects.size() != now.subjects.size())
    return "its columns are of other models or devices";
  if (std::string prompts = prompts_difference(earlier, now); !prompts.empty()) return prompts;
  if (earlier.baseline != now.baseline)
    return "its baseline is " + quoted_name(earlier.name_of(earlier.baseline)) + ", and here it would be " +
           quoted_name(now.name_of(now.baseline));
  return settings_difference(earlier.settings, now.settings);
}

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string json_line(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

[[noreturn]] void fail_journal(const fs::path& path, const std::string& why) {
  throw bad_input("The journal " + shown(path) + " cannot be written: " + why + ".");
}

[[noreturn]] void fail_journal(const fs::path& path, int error) {
  throw bad_input("The journal " + shown(path) + " cannot be written: " + std::generic_category().message(error) + "." +
                  std::string(write_advice(error)));
}

/// Throws where another program writes this journal now.
void require_unused(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  const bool unused = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  ::close(descriptor);
  if (!unused) fail_journal(path, "another program writes it");
}

}  // namespace

fs::path journal_path(const fs::path& file) {
  return file_beside(file, ".journal");
}

std::optional<Sweep> unfinished_sweep(const fs::path& file) {
  std::error_code ignored;
  const fs::path journal = journal_path(file);
  // One that was cut off within its first line has no run.
  if (fs::exists(journal, ignored) && fs::file_size(journal, ignored) > 0) {
    const std::string text = read_small_file(journal, kMostSweepBytes);
    if (text.find('\n') != std::string::npos) return with_context(shown(journal), [&] { return parse_sweep(text); });
  }
  if (!fs::exists(file, ignored)) return std::nullopt;
  Sweep sweep = read_sweep(file);
  if (sweep.complete()) return std::nullopt;
  return sweep;
}

SweepJournal::SweepJournal(const fs::path& file, const Sweep& sweep, const std::vector<MeasuredPrompt>& prompts)
    : file_(file), path_(journal_path(file)) {
  require_unused(path_);
  if (!prompts.empty()) keep_prompts(file_, prompts);
  // What an earlier journal has of these runs is replaced in one step, so that a crash here loses none of them.
  std::string text = json_line(sweep_header(sweep));
  for (const MeasuredRun& run : sweep.runs) text += json_line(to_json(run));
  write_file_atomically(path_, text);
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (descriptor_ < 0) fail_journal(path_, errno);
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  ::close(descriptor_);
  descriptor_ = -1;
  fail_journal(path_, "another program writes it");
}

SweepJournal::~SweepJournal() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void SweepJournal::add(const MeasuredRun& run) {
  append(json_line(to_json(run)));
}

void SweepJournal::append(const std::string& line) {
  size_t written = 0;
  while (written < line.size()) {
    const ssize_t count = ::write(descriptor_, line.data() + written, line.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail_journal(path_, errno);
    written += static_cast<size_t>(count);
  }
  if (::fdatasync(descriptor_) != 0 && errno != EINVAL) fail_journal(path_, errno);
}

void SweepJournal::finish(const Sweep& sweep) {
  write_file_atomically(file_, sweep_text(sweep));
  std::error_code ignored;
  fs::remove(path_, ignored);
  if (sweep.complete()) fs::remove(prompts_path(file_), ignored);
}

namespace {

constexpr size_t kMostNamePart = 40;
constexpr const char* kJournalEnding = ".journal";

/// "nvidia-h200": the letters and digits of a device's name, in small, without what is in brackets.
std::string name_part(const std::string& device) {
  std::string words;
  for (const char c : device.substr(0, device.find('('))) {
    if (words.size() >= kMostNamePart) break;
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0)
      words += static_cast<char>(std::tolower(byte));
    else if (!words.empty() && words.back() != '-')
      words += '-';
  }
  while (words.ends_with('-')) words.pop_back();
  return words.empty() ? "sweep" : words;
}

}  // namespace

fs::path sweep_folder() {
  const fs::path folder = data_dir() / "sweeps";
  std::error_code ignored;  // writing says why it is not possible
  fs::create_directories(folder, ignored);
  return folder;
}

fs::path new_sweep_file(const fs::path& folder, const std::string& device) {
  const std::string name = name_part(device) + "-" + utc_time().substr(0, 10);
  std::error_code ignored;
  fs::path file = folder / (name + ".json");
  for (int i = 2; fs::exists(file, ignored) || fs::exists(journal_path(file), ignored); ++i)
    file = folder / (name + "-" + std::to_string(i) + ".json");
  return file;
}

std::vector<KeptSweep> kept_sweeps(const fs::path& folder) {
  std::map<fs::path, std::pair<fs::file_time_type, bool>> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    fs::path path = entry->path();
    const auto time = fs::last_write_time(path, ignored);
    const bool journal = path.extension() == kJournalEnding;
    if (journal) path.replace_extension();
    if (path.extension() != ".json") continue;
    auto& [newest, finished] = found.try_emplace(path, time, !journal).first->second;
    newest = std::max(newest, time);
    finished = finished && !journal;
  }
  std::vector<KeptSweep> kept;
  for (const auto& [file, about] : found) kept.push_back({file, about.second});
  std::ranges::stable_sort(kept, std::greater(), [&](const KeptSweep& each) { return found.at(each.file).first; });
  return kept;
}

}  // namespace canopy
