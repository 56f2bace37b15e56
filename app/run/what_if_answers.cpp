#include "app/run/what_if_answers.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <optional>
#include <utility>

#include "app/base/figures.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/elsewhere/recording_elsewhere.h"
#include "engine/predict/device_profile.h"
#include "engine/predict/prediction.h"

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
  guess_drafting(reply, rounds.front()->context);
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
      add(name, [&] { return costs_of_device(predict::device_profile(name), question_.header, replies_); });
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
    there.name = question_.trace != nullptr ? "As recorded" : "This machine";
    there.detail = question_.header.device.substr(0, question_.header.device.find(" ("));
    if (there.choice.empty()) return;
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
    if (costs.costs) {
      wish.mode = mode_elsewhere(replies_);
      there.run = what_if(replies_, wish, {{}, stop_});
      const uint32_t context = replies_.front().drafting.committed;
      there.ms_of_one = costs.costs->table.verify_ms(1, context);
      there.ms_of_many = costs.costs->table.verify_ms(kManyRows, context);
    } else {
      run_as_recorded(there);
    }
    there.summary = summarize(there.run);
    if (!question_.brief) add_curve(there, wish);
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

std::vector<WhatIfDevice> predictable_devices() {
  std::vector<WhatIfDevice> devices;
  for (const predict::DeviceProfile& profile : predict::device_profiles()) {
    devices.push_back({std::string(profile.name), short_name(profile.gpu), detail_of(profile)});
  }
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

}  // namespace canopy::app
