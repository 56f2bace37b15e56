#include "app/state/what_if.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <fstream>
#include <mutex>
#include <system_error>

#include "app/state/words.h"
#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/base/posix.h"
#include "engine/whatif/device_profile.h"
#include "engine/whatif/elsewhere.h"
#include "engine/whatif/prediction.h"

namespace canopy::app {
namespace {

constexpr uint32_t kCurveWidths[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128};

/// "RTX 4090" of "GeForce RTX 4090, 24 GB GDDR6X".
std::string short_name(std::string_view gpu) {
  std::string name(gpu.substr(0, gpu.find(',')));
  for (const std::string_view brand : {"GeForce ", "Radeon "}) {
    if (name.starts_with(brand)) name.erase(0, brand.size());
  }
  return name;
}

std::string detail_of(const predict::DeviceProfile& profile) {
  return grouped(static_cast<uint64_t>(profile.memory_gb_s)) + " GB/s";
}

std::string detail_of(const predict::OwnDevice& own) {
  return grouped(static_cast<uint64_t>(std::lround(own.gb_s))) + " GB/s, your own";
}

/// The device that is chosen so; null where none is.
const predict::OwnDevice* own_named(const std::vector<predict::OwnDevice>& own, const std::string& choice) {
  const auto found =
      std::ranges::find_if(own, [&](const predict::OwnDevice& each) { return own_choice(each.name) == choice; });
  return found == own.end() ? nullptr : &*found;
}

TimesFrom times_from(CostSource source) {
  switch (source) {
    case CostSource::recorded: return TimesFrom::recorded;
    case CostSource::measured: return TimesFrom::measured_elsewhere;
    case CostSource::predicted: break;
  }
  return TimesFrom::predicted;
}

/// A reply of the engine, of which only trees are known.
RecordedReply reply_of(const WhatIfQuestion& question) {
  const auto& rounds = question.rounds;
  RecordedReply reply;
  reply.mode = rounds.front()->mode;
  reply.context = question.header.context;
  reply.text.push_back(question.first_token);
  for (const auto& record : rounds) {
    reply.text.insert(reply.text.end(), record->emitted.begin(), record->emitted.end());
    reply.budget = std::max(reply.budget, record->width - 1);
  }
  reply.ended = question.ended;
  reply.rounds = rounds.size();
  reply.round = [rounds](size_t round) { return *rounds[round]; };
  reply.draft = [](uint32_t) { return std::shared_ptr<const KeptDraft>(); };
  if (question.before != nullptr && question.before->size() == rounds.front()->context) reply.prompt = *question.before;
  guess_drafting(reply, rounds.front()->context);
  if (!question.header.drafter) reply.drafting.block = 0;
  return reply;
}

/// The rounds as they were, for a reply whose own costs were not recorded.
WhatIf as_it_was(std::span<const RecordedReply> replies, double ar_tokens_per_second) {
  WhatIf run;
  for (size_t i = 0; i < replies.size(); ++i) {
    for (size_t n = 0; n < replies[i].rounds; ++n) {
      WhatIfRound round;
      round.record = replies[i].round(n);
      round.reply = i;
      round.chosen = round.record.mode == DecodeMode::adaptive;
      round.as_recorded = true;
      const double plain = ar_tokens_per_second > 0 ? ar_tokens_per_second : round.record.choice.ar_tokens_per_second;
      if (plain > 0) round.ar_ms = 1000 * static_cast<double>(round.record.emitted.size()) / plain;
      run.add(std::move(round));
    }
  }
  return run;
}

class Answering {
 public:
  Answering(const WhatIfQuestion& question, const std::function<void(const WhatIfAnswer&)>& tell, std::stop_token stop)
      : question_(question), tell_(tell), stop_(std::move(stop)) {
    answer_.number = question.number;
  }

  WhatIfAnswer all() {
    if (question_.trace != nullptr) {
      replies_ = recorded_replies(question_.trace);
    } else {
      replies_.push_back(reply_of(question_));
    }
    if (replies_.empty() || (question_.trace == nullptr && replies_[0].text.size() < 2)) {
      answer_.problem = "Nothing can be re-run: there is no reply with a text here; a redacted recording has none.";
      answer_.whole = true;
      return answer_;
    }
    if (!question_.brief) add({}, [&] { return costs_as_recorded(question_.header); });
    for (const std::string& path : question_.calibrations) {
      add(path, [&] { return costs_of_file(path, question_.header, replies_); });
    }
    for (const std::string& name : question_.devices) {
      add(name, [&] {
        const predict::OwnDevice* const own = own_named(question_.own, name);
        return costs_of_device(own != nullptr ? profile_of(*own) : predict::device_profile(name), question_.header,
                               replies_);
      });
    }
    answer_.whole = true;
    return std::move(answer_);
  }

 private:
  template <class Costs>
  void add(const std::string& choice, Costs&& costs) {
    auto there = std::make_shared<WhatIfThere>();
    there->choice = choice;
    name(*there);
    try {
      run(*there, costs());
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::cancelled) throw;
      there->problem = e.what();
    }
    answer_.there.push_back(std::move(there));
    tell_(answer_);
  }

  /// As it is called also where nothing can be said of it.
  void name(WhatIfThere& there) const {
    there.times = TimesFrom::recorded;
    const bool processor = question_.header.backend == "cpu";
    there.name = question_.trace != nullptr ? "As recorded" : processor ? "This processor" : "This machine";
    there.detail = question_.header.device.substr(0, question_.header.device.find(" ("));
    if (there.choice.empty()) return;
    if (const predict::OwnDevice* const own = own_named(question_.own, there.choice)) {
      there.times = TimesFrom::predicted;
      there.name = own->name;
      there.detail = detail_of(*own);
      return;
    }
    for (const predict::DeviceProfile& profile : predict::device_profiles()) {
      if (profile.name != there.choice) continue;
      there.times = TimesFrom::predicted;
      there.name = short_name(profile.gpu);
      there.detail = detail_of(profile);
      return;
    }
    there.times = TimesFrom::measured_elsewhere;
    there.name = std::filesystem::path(there.choice).stem().string();
    there.detail = "a calibration";
  }

  void run(WhatIfThere& there, const CostsElsewhere& costs) {
    there.times = times_from(costs.source);
    there.from = costs.from;
    WhatIfWish wish;
    wish.costs = costs.costs;
    bool guesses_known = true;
    if (costs.costs) {
      wish.mode = mode_elsewhere(replies_);
      there.run = what_if(replies_, wish, {{}, stop_});
      // Of most words nothing may be known that could have been guessed behind them; without a guess among the others
      // they say nothing of guesses.
      guesses_known = there.run.rounds.size() >= there.run.left_out ||
                      std::ranges::any_of(there.run.rounds, [](const WhatIfRound& r) { return r.record.width > 1; });
      if (!guesses_known) {
        wish.mode = DecodeMode::ar;
        there.run = what_if(replies_, wish, {{}, stop_});
      }
      const uint32_t context = replies_.front().drafting.committed;
      there.ms_of_one = costs.costs->table.verify_ms(1, context);
      there.ms_of_many = costs.costs->table.verify_ms(kManyRows, context);
    } else {
      run_as_recorded(there);
    }
    there.summary = summarize(there.run);
    if (!guesses_known) {
      there.summary.ratio = 0;
      there.summary.payoff = Payoff::unknown;
      there.summary.verdict = "Too little was guessed here to say what guesses would bring there: plain decoding.";
    }
    if (!question_.brief && guesses_known) add_curve(there, wish);
  }

  void run_as_recorded(WhatIfThere& there) {
    try {
      there.run = what_if(replies_, {}, {{}, stop_});
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::cancelled) throw;
      there.run = as_it_was(replies_, question_.ar_tokens_per_second);
    }
    if (!there.run.plain_known && question_.ar_tokens_per_second > 0) {
      there.run.ar_ms = 1000 * static_cast<double>(there.run.tokens) / question_.ar_tokens_per_second;
    }
    // Beside passes of these minutes nothing of another day, whatever the costs say that the rounds were planned by.
    if (question_.plain_ms > 0) there.run.ar_ms = static_cast<double>(there.run.tokens) * question_.plain_ms;
    const TraceDrafting& drafting = replies_.front().drafting;
    if (!drafting.costs || drafting.costs->verify_points().empty()) return;
    there.ms_of_one = drafting.costs->verify_ms(1, drafting.committed);
    there.ms_of_many = drafting.costs->verify_ms(kManyRows, drafting.committed);
  }

  /// Where its own costs were not recorded there is no curve.
  void add_curve(WhatIfThere& there, const WhatIfWish& wish) {
    try {
      there.curve = ratios_by_width(replies_, wish, kCurveWidths, stop_);
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::cancelled) throw;
    }
    std::erase_if(there.curve, [](const WidthRatio& each) { return each.ratio <= 0; });
  }

  const WhatIfQuestion& question_;
  const std::function<void(const WhatIfAnswer&)>& tell_;
  std::stop_token stop_;
  WhatIfAnswer answer_;
  std::vector<RecordedReply> replies_;
};

}  // namespace

WhatIfAnswer answer_what_if(const WhatIfQuestion& question, const std::function<void(const WhatIfAnswer&)>& tell,
                            const std::stop_token& stop) {
  return Answering(question, tell, stop).all();
}

std::string own_choice(const std::string& name) {
  return "own:" + name;
}

std::vector<WhatIfDevice> predictable_devices(const std::vector<predict::OwnDevice>& own) {
  std::vector<WhatIfDevice> devices;
  for (const predict::DeviceProfile& profile : predict::device_profiles()) {
    devices.push_back({std::string(profile.name), short_name(profile.gpu), detail_of(profile)});
  }
  for (const predict::OwnDevice& each : own) devices.push_back({own_choice(each.name), each.name, detail_of(each)});
  return devices;
}

bool looks_like_calibration(const std::filesystem::path& path) {
  std::error_code ignored;
  if (path.extension() != ".json" || !std::filesystem::is_regular_file(path, ignored)) return false;
  constexpr size_t start_bytes = 1 << 16;  // where its key can be expected
  std::ifstream file(path, std::ios::binary);
  std::string start(start_bytes, '\0');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<size_t>(std::max<std::streamsize>(0, file.gcount())));
  return start.find("\"canopy-calibration\"") != std::string::npos;
}

std::filesystem::path write_as_if(const TraceReader& trace, const WhatIfThere& there) {
  static std::atomic<uint64_t> written = 0;
  // The reader's trace is shared by the window, which keeps it: an alias without ownership is enough here.
  const std::shared_ptr<const TraceReader> alias(std::shared_ptr<const TraceReader>(), &trace);
  const std::vector<RecordedReply> replies = recorded_replies(alias);
  CostsElsewhere costs;
  costs.source = there.times == TimesFrom::predicted  ? CostSource::predicted
                 : there.times == TimesFrom::recorded ? CostSource::recorded
                                                      : CostSource::measured;
  costs.name = there.name;
  const std::filesystem::path folder = cache_dir() / "as-if";
  std::filesystem::create_directories(folder);
  std::string name = there.name;
  std::ranges::replace_if(
      name, [](char c) { return c == '/' || c == '\\' || c == ' '; }, '-');
  const std::filesystem::path path =
      folder / (name + "-" + std::to_string(getpid()) + "-" + std::to_string(written++) + ".canopytrace");
  write_recording_elsewhere(path, trace, replies, there.run, {}, costs);
  return path;
}

struct WhatIfWorker::Shared {
  WhatIfMaker maker;
  std::mutex mutex;
  std::condition_variable_any asked;
  std::function<void()> wake;
  std::optional<WhatIfQuestion> question;
  std::stop_source current;  // of the question being answered
  std::optional<WhatIfAnswer> answer;
  uint64_t newest = 0;
};

WhatIfWorker::WhatIfWorker(WhatIfMaker maker) : shared_(std::make_shared<Shared>()) {
  shared_->maker = std::move(maker);
}

WhatIfWorker::~WhatIfWorker() {
  if (!thread_.joinable()) return;
  thread_.request_stop();  // first: no other question may be begun between the two
  const std::lock_guard lock(shared_->mutex);
  shared_->wake = {};
  shared_->current.request_stop();
}

void WhatIfWorker::set_wake(std::function<void()> wake) {
  const std::lock_guard lock(shared_->mutex);
  shared_->wake = std::move(wake);
}

void WhatIfWorker::ask(WhatIfQuestion question) {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->newest = question.number;
    shared_->question = std::move(question);
    shared_->answer.reset();
    shared_->current.request_stop();
    if (!thread_.joinable())
      thread_ = std::jthread([shared = shared_](const std::stop_token& stop) { work(*shared, stop); });
  }
  shared_->asked.notify_one();
}

std::optional<WhatIfAnswer> WhatIfWorker::take() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->answer, std::nullopt);
}

void WhatIfWorker::work(Shared& shared, const std::stop_token& stop) {
  std::unique_lock lock(shared.mutex);
  while (shared.asked.wait(lock, stop, [&] { return shared.question.has_value(); })) {
    const WhatIfQuestion question = *std::exchange(shared.question, std::nullopt);
    shared.current = std::stop_source();
    if (stop.stop_requested()) return;
    const std::stop_token current = shared.current.get_token();
    const auto tell = [&](const WhatIfAnswer& answer) {
      const std::lock_guard told(shared.mutex);
      if (shared.newest != question.number) return;
      shared.answer = answer;
      if (shared.wake) shared.wake();
    };
    lock.unlock();
    try {
      tell(shared.maker(question, tell, current));
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::cancelled) tell({question.number, {}, true, e.what()});
    } catch (...) {
      tell({question.number, {}, true, as_error(std::current_exception()).what()});
    }
    lock.lock();
  }
}

namespace {

AsIfAnswer read_and_answer(const AsIfQuestion& question, const std::stop_token& stop) {
  AsIfAnswer answer{question.recording, {}, {}};
  try {
    answer.file = write_as_if(question.recording->reader(), *question.there);
  } catch (...) {
    answer.problem = as_error(std::current_exception()).what();
  }
  std::error_code ignored;
  if (stop.stop_requested()) std::filesystem::remove(answer.file, ignored);  // nobody takes it any more
  return answer;
}

}  // namespace

AsIfFiles::AsIfFiles() : answers_(read_and_answer, Waiting::is_answered) {}

AsIfFiles::~AsIfFiles() {
  take();
  std::error_code ignored;
  for (const std::filesystem::path& file : files_) std::filesystem::remove(file, ignored);
}

std::vector<AsIfAnswer> AsIfFiles::take() {
  std::vector<AsIfAnswer> answers = answers_.take();
  for (const AsIfAnswer& answer : answers) {
    if (!answer.file.empty()) files_.push_back(answer.file);
  }
  return answers;
}

namespace {

constexpr double kAxisOfFastest = 6;  // of the axis, at most, so that the fastest is still seen

RaceLane lane_of(const WhatIf& run, size_t there) {
  RaceLane lane;
  lane.there = there;
  lane.plain_ms = run.ar_ms;
  for (const WhatIfRound& round : run.rounds) {
    lane.ms += round.record.ms.total();
    const auto emitted = static_cast<uint32_t>(round.record.emitted.size());
    const uint32_t guessed = std::min(round.record.accepted, emitted);
    lane.tokens += emitted;
    lane.passes.push_back({lane.ms, guessed, emitted - guessed});
  }
  return lane;
}

/// Ends the lane with so many tokens. What is left out of its last pass comes last in that: what the big model added.
void end_after(RaceLane& lane, uint64_t tokens) {
  uint64_t left = tokens;
  size_t passes = 0;
  for (; passes < lane.passes.size() && left > 0; ++passes) {
    RacePass& pass = lane.passes[passes];
    const auto kept = static_cast<uint32_t>(std::min<uint64_t>(left, pass.guessed + pass.added));
    pass.guessed = std::min(pass.guessed, kept);
    pass.added = kept - pass.guessed;
    left -= kept;
  }
  lane.passes.resize(passes);
  if (lane.tokens > 0) lane.plain_ms *= static_cast<double>(tokens) / static_cast<double>(lane.tokens);
  lane.tokens = tokens;
  lane.ms = lane.passes.empty() ? 0 : lane.passes.back().end_ms;
}

/// The next of 1, 2 and 5 times a power of ten.
double round_up(double value) {
  if (!(value > 0)) return 1;
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (value <= step * power * (1 + 1e-9)) return step * power;
  }
  return 10 * power;
}

}  // namespace

uint64_t RaceLane::tokens_at(double now) const {
  uint64_t count = 0;
  for (const RacePass& pass : passes) {
    if (pass.end_ms > now) break;
    count += pass.guessed + pass.added;
  }
  return count;
}

Race race_of(const WhatIfAnswer& answer) {
  Race race;
  uint64_t tokens = UINT64_MAX;
  for (size_t i = 0; i < answer.there.size(); ++i) {
    const WhatIfThere& there = *answer.there[i];
    if (there.run.rounds.empty() || there.run.ms <= 0 || there.run.tokens == 0) continue;
    race.lanes.push_back(lane_of(there.run, i));
    tokens = std::min(tokens, race.lanes.back().tokens);
  }
  double last = 0;
  for (RaceLane& lane : race.lanes) {
    end_after(lane, tokens);
    last = std::max({last, lane.ms, lane.plain_ms});
    race.fastest_ms = race.fastest_ms > 0 ? std::min(race.fastest_ms, lane.ms) : lane.ms;
    for (const RacePass& pass : lane.passes) race.most_tokens = std::max(race.most_tokens, pass.guessed + pass.added);
  }
  std::ranges::stable_sort(race.lanes, {}, &RaceLane::ms);
  race.axis_ms = round_up(std::min(last, kAxisOfFastest * race.fastest_ms));
  return race;
}

double race_speed(const Race& race, double seconds) {
  return race.fastest_ms > 0 ? race.fastest_ms / 1000 / seconds : 1;
}

namespace {

// Rounds of a growing reply before it is worth asking again.
constexpr size_t kLeastNews = 16, kLeastChipNews = 64;
constexpr const char* kInItsPlace = "rtx4090";  // of a device that is described no longer

void change(WhatIfState& state, const SetWhatIfDevice& c) {
  if (c.place < state.devices.size()) state.devices[c.place] = c.device;
}

void change(WhatIfState& state, const AddCalibration& c) {
  std::erase(state.calibrations, c.path);
  state.calibrations.push_back(c.path);
  if (state.calibrations.size() > kMostCalibrations) state.calibrations.erase(state.calibrations.begin());
}

void change(WhatIfState& state, const DropCalibration& c) {
  std::erase(state.calibrations, c.path);
}

void change(WhatIfState& state, const DescribeDevice& c) {
  state.describing = c.shown;
}

void change(WhatIfState& state, const KeepOwnDevice& c) {
  if (!own_device_problem(state, c.device).empty()) return;
  const auto known = std::ranges::find(state.own, c.device.name, &predict::OwnDevice::name);
  if (known != state.own.end())
    *known = c.device;
  else
    state.own.push_back(c.device);
  state.known = predictable_devices(state.own);
  const std::string choice = own_choice(c.device.name);
  if (std::ranges::find(state.devices, choice) == state.devices.end()) state.devices.back() = choice;
  // What was asked about its former figures is asked anew.
  state.choices.clear();
  state.chip.choices.clear();
}

void change(WhatIfState& state, const DropOwnDevice& c) {
  std::erase_if(state.own, [&](const predict::OwnDevice& each) { return each.name == c.name; });
  state.known = predictable_devices(state.own);
  std::ranges::replace(state.devices, own_choice(c.name), std::string(kInItsPlace));
}

void change(WhatIfState&, const ShowAsIf&) {}
void change(WhatIfState&, const MakeDense&) {}
void change(WhatIfState&, const StopDense&) {}

std::vector<std::string> choices_of(const WhatIfState& state) {
  std::vector<std::string> choices = state.calibrations;
  choices.insert(choices.end(), state.devices.begin(), state.devices.end());
  return choices;
}

/// What plain decoding took for a token while these replies were written, by their tokens; 0 where it was not measured
/// for one of them.
double plain_ms_of(std::span<const ReplySummary> replies, const RoundLog& log) {
  double ms = 0, tokens = 0;
  for (const ReplySummary& reply : replies) {
    if (!reply.plain.known() || reply.rounds == 0) return 0;
    uint64_t emitted = 0;
    for (size_t i = reply.first_round; i < reply.first_round + reply.rounds; ++i) emitted += log.summary(i).emitted;
    const double written = static_cast<double>(emitted);
    ms += written * reply.plain.ms;
    tokens += written;
  }
  return tokens > 0 ? ms / tokens : 0;
}

/// The reply on show, as far as it is written; false where a tree of it has left memory. It has a first token.
bool add_live_rounds(const LiveLog& log, const ReplySummary& reply, WhatIfQuestion& question) {
  question.header = log.header();
  question.ended = reply.reason.has_value();
  question.ar_tokens_per_second = reply.ar_tokens_per_second;
  question.first_token = *reply.first_token;
  question.before = reply.before;
  for (size_t i = reply.first_round; i < reply.first_round + reply.rounds; ++i) {
    std::shared_ptr<const RoundRecord> record = log.round(i);
    if (record == nullptr) return false;
    question.rounds.push_back(std::move(record));
  }
  return true;
}

/// A question about these devices where the last one was about something else.
std::optional<WhatIfQuestion> ask(WhatIfAsked& asked, const RoundsState& rounds,
                                  const std::vector<std::string>& choices, size_t least_news) {
  const std::shared_ptr<RoundLog>& log = rounds.log;
  if (log->rounds() == 0) return std::nullopt;
  const ReplySummary& reply = log->replies()[log->summary(std::min(rounds.playback.shown, log->rounds() - 1)).reply];
  const auto recording = std::dynamic_pointer_cast<const TraceLog>(log);
  const size_t count = recording != nullptr ? log->rounds() : reply.first_round + reply.rounds;
  const bool ended = recording != nullptr || reply.reason.has_value();
  const size_t first = recording != nullptr ? 0 : reply.first_round;
  const bool same_text = asked.log.lock() == log && asked.first_round == first;
  const bool same = same_text && asked.choices == choices;
  const bool news =
      count < asked.rounds || (ended && (!asked.ended || count != asked.rounds)) || count >= asked.rounds + least_news;
  if (same && !news) return std::nullopt;
  WhatIfQuestion question;
  bool is_whole = true;
  if (recording != nullptr) {
    question.trace = std::shared_ptr<const TraceReader>(recording, &recording->reader());
    question.header = recording->reader().header();
    question.plain_ms = plain_ms_of(log->replies(), *log);
  } else {
    const auto live = std::dynamic_pointer_cast<const LiveLog>(log);
    if (live == nullptr || !reply.first_token || reply.rounds == 0) return std::nullopt;
    is_whole = add_live_rounds(*live, reply, question);
    question.plain_ms = plain_ms_of({&reply, 1}, *log);
  }
  // Another recording or reply: what is there is about something else.
  if (!same_text) asked.answer = {};
  asked.log = log;
  asked.first_round = first;
  asked.rounds = count;
  asked.ended = ended;
  asked.choices = choices;
  question.number = ++asked.asked;  // answers to earlier ones are not taken any more
  if (is_whole) return question;
  asked.answer = {};
  asked.answer.problem = "The trees of this reply are no longer in memory. Record replies to keep them whole.";
  return std::nullopt;
}

}  // namespace

std::string own_device_problem(const WhatIfState& state, const predict::OwnDevice& device) {
  if (std::string problem = problem_of(device); !problem.empty()) return problem;
  const bool known = std::ranges::find(state.own, device.name, &predict::OwnDevice::name) != state.own.end();
  if (known || state.own.size() < kMostOwnDevices) return {};
  return "There are " + grouped(kMostOwnDevices) + " devices of your own already; remove one first.";
}

void update(WhatIfState& state, const WhatIfCommand& command) {
  std::visit([&](const auto& c) { change(state, c); }, command);
}

std::optional<WhatIfQuestion> next_question(WhatIfState& state, const RoundsState& rounds) {
  std::optional<WhatIfQuestion> question = ask(state, rounds, choices_of(state), kLeastNews);
  if (!question) return question;
  question->calibrations = state.calibrations;
  question->devices = state.devices;
  question->own = state.own;
  return question;
}

std::optional<WhatIfQuestion> next_chip_question(WhatIfState& state, const RoundsState& rounds,
                                                 const std::string& device) {
  // What is predicted already is not predicted from.
  if (!rounds.log->times().empty()) return std::nullopt;
  std::optional<WhatIfQuestion> question = ask(state.chip, rounds, {device}, kLeastChipNews);
  if (!question) return question;
  question->devices = {device};
  question->own = state.own;
  question->brief = true;
  return question;
}

void take_answer(WhatIfAsked& asked, WhatIfAnswer answer) {
  if (answer.number != asked.asked) return;
  // A growing reply: until the new answer is whole, the earlier one is shown where it has more.
  if (!answer.whole && answer.there.size() < asked.answer.there.size()) return;
  asked.answer = std::move(answer);
}

}  // namespace canopy::app
