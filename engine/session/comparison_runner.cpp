#include "engine/session/comparison_runner.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "engine/base/damage_hash.h"
#include "engine/base/error.h"
#include "engine/comparison/time_left.h"
#include "engine/planning/stage_timer.h"
#include "engine/sensors/energy_meter.h"
#include "engine/session/comparison_texts.h"

namespace canopy {
namespace {

void add_times(RoundTimes& sum, const RoundTimes& ms) {
  sum.draft += ms.draft;
  sum.build += ms.build;
  sum.verify += ms.verify;
  sum.walk += ms.walk;
  sum.commit += ms.commit;
  sum.other += ms.other;
}

void add_rounds(MeasuredRun& run, const Reply& reply) {
  run.rounds = static_cast<uint32_t>(reply.rounds.size());
  for (const RoundRecord& round : reply.rounds) {
    run.rows += round.width;
    run.widest = std::max(run.widest, round.width);
    add_times(run.ms, round.ms);
  }
}

/// A reply whose rounds are metered, and where its tokens lie in its text.
struct Metered {
  Reply reply;
  std::vector<uint32_t> ends;
  SensorReading sensors;  // energy of the rounds
};

class Runner {
 public:
  Runner(Sweep& sweep, const std::vector<ComparisonWriter>& writers, const std::vector<RunnerPrompt>& prompts,
         const RunnerCallbacks& callbacks)
      : sweep_(sweep),
        writers_(writers),
        prompts_(prompts),
        callbacks_(callbacks),
        time_(sweep.counts().contestants),
        texts_(sweep.baseline) {}

  bool run() {
    encode_prompts();
    std::vector<RunKey> done;
    for (const MeasuredRun& run : sweep_.runs) done.push_back(run.key);
    left_ = runs_left(run_order(sweep_.counts(), sweep_.settings.order_seed), done);
    if (left_.empty()) return !stopped();
    if (!restore_references(done) || !warm_up()) return false;
    while (!left_.empty()) {
      if (callbacks_.may_pause) callbacks_.may_pause();
      if (stopped() || !make_run(left_.front())) return false;
    }
    return true;
  }

 private:
  bool stopped() const { return callbacks_.stop.stop_requested(); }
  const SweepContestant& contestant(const RunKey& key) const { return sweep_.contestants[key.contestant]; }
  const ComparisonWriter& writer(const RunKey& key) const { return writers_[contestant(key).subject]; }
  const std::vector<uint32_t>& ids(const RunKey& key) const { return ids_.at(writer(key).engine)[key.prompt]; }

  void encode_prompts() {
    for (const ComparisonWriter& writer : writers_) {
      if (writer.engine == nullptr || ids_.contains(writer.engine)) continue;
      std::vector<std::vector<uint32_t>>& encoded = ids_[writer.engine];
      for (const RunnerPrompt& prompt : prompts_)
        encoded.push_back(prompt.ids.empty() ? writer.engine->prompt_ids(prompt.turns, "") : prompt.ids);
      require_room(*writer.engine, encoded);
    }
  }

  void require_room(const Engine& engine, const std::vector<std::vector<uint32_t>>& encoded) const {
    const uint32_t context = engine.model->limits().context;
    for (const std::vector<uint32_t>& prompt : encoded) {
      const uint64_t needed = prompt.size() + uint64_t{sweep_.settings.max_tokens};
      if (needed <= context) continue;
      throw bad_input("A prompt of " + std::to_string(prompt.size()) + " tokens and a reply of " +
                      std::to_string(sweep_.settings.max_tokens) + " need a context of " + std::to_string(needed) +
                      " positions; this model has " + std::to_string(context) +
                      advice_on_room(context, engine.model->config().max_context));
    }
  }

  /// Runs of an earlier measurement left no text to compare with: the baseline writes it once more.
  bool restore_references(const std::vector<RunKey>& done) {
    std::set<uint32_t> needed;
    for (const RunKey& key : left_) needed.insert(key.prompt);
    for (const RunKey& key : done) {
      if (key.contestant != sweep_.baseline || !needed.erase(key.prompt)) continue;
      if (callbacks_.stage) callbacks_.stage("Writing the text to compare with");
      const std::optional<Metered> again = write(key, sweep_.settings.max_tokens, false);
      if (!again) return false;
      texts_.add(key, text_of(key, *again));
    }
    return true;
  }

  /// Short replies, so that compiling and recording kernels for new widths does not count, and clocks have risen.
  bool warm_up() {
    constexpr int times = 2;
    if (callbacks_.stage) callbacks_.stage("Warming up");
    const uint32_t tokens = std::min(sweep_.settings.warm_up_tokens, sweep_.settings.max_tokens);
    if (tokens == 0) return true;
    for (int i = 0; i < times; ++i) {
      for (uint32_t column = 0; column < sweep_.contestants.size(); ++column) {
        const RunKey key{column, left_.front().prompt, 0};
        const bool needed = std::ranges::any_of(left_, [&](const RunKey& each) { return each.contestant == column; });
        if (needed && (!prepare(key) || !write(key, tokens, false))) return false;
      }
    }
    prepared_.clear();
    return true;
  }

  /// Has the run's engine read its prompt, once for all columns of that engine in this block.
  bool prepare(const RunKey& key) {
    const Engine* engine = writer(key).engine;
    if (engine == nullptr) return true;
    if (callbacks_.working) callbacks_.working(key);
    const std::pair<uint32_t, uint32_t> block{key.prompt, key.repeat};
    const auto known = prepared_.find(engine);
    if (known != prepared_.end() && known->second == block) return true;
    if (!read_ahead(*engine, ids(key), callbacks_.stop)) return false;
    prepared_[engine] = block;
    return true;
  }

  bool make_run(const RunKey key) {
    const auto start = std::chrono::steady_clock::now();
    const uint64_t total = sweep_.counts().total();
    if (callbacks_.begin) callbacks_.begin(key, total - left_.size(), total, time_.estimate(left_).value_or(-1));
    if (!prepare(key)) return false;
    const std::optional<Metered> metered = write(key, sweep_.settings.max_tokens, true);
    if (!metered) return false;
    if (callbacks_.was_disturbed && callbacks_.was_disturbed()) return true;  // and stays among those that are left
    left_.erase(left_.begin());
    time_.add(key.contestant, milliseconds_since(start) / 1000);
    keep(key, *metered);
    return true;
  }

  void keep(const RunKey& key, const Metered& metered) {
    const Reply& reply = metered.reply;
    MeasuredRun run;
    run.key = key;
    for (const MeasuredRun& other : sweep_.runs) run.place = std::max(run.place, other.place + 1);
    run.prompt_tokens = reply.prompt_tokens;
    run.reused_tokens = reply.reused_tokens;
    run.tokens = static_cast<uint32_t>(reply.ids.size());
    if (writer(key).engine == nullptr) run.tokens = server_tokens_;
    run.prefill_ms = reply.prefill_ms;
    run.decode_ms = reply.decode_ms;
    run.reason = reply.reason;
    run.text_hash = damage_hash_text(reply.text);
    run.energy_j = metered.sensors.energy_j;
    run.clock_mhz = metered.sensors.clock_mhz;
    run.temperature_c = metered.sensors.temperature_c;
    add_rounds(run, reply);
    const auto known = texts_.add(key, text_of(key, metered));
    for (const auto& [other, difference] : known)
      if (other == key) run.differs_at = difference;
    sweep_.runs.push_back(std::move(run));
    if (callbacks_.made) callbacks_.made({sweep_.runs.back(), reply});
    for (const auto& [other, difference] : known)
      if (other != key && difference) amend(other, *difference);
    if (key.contestant == sweep_.baseline) measure_others_again(key.prompt, sweep_.runs.back().text_hash);
  }

  /// Runs of an earlier measurement that wrote another text than the baseline does now: where it differs is known only
  /// once they are made again.
  void measure_others_again(uint32_t prompt, const std::string& text_hash) {
    const std::string reference = text_hash;
    std::erase_if(sweep_.runs, [&](const MeasuredRun& run) {
      const bool again = run.key.prompt == prompt && run.key.contestant != sweep_.baseline && !run.differs_at &&
                         run.text_hash != reference;
      if (again) left_.push_back(run.key);
      return again;
    });
  }

  void amend(const RunKey& key, uint32_t difference) {
    const auto run = std::ranges::find(sweep_.runs, key, &MeasuredRun::key);
    if (run == sweep_.runs.end()) return;
    run->differs_at = difference;
    if (callbacks_.amended) callbacks_.amended(*run);
  }

  WrittenText text_of(const RunKey& key, const Metered& metered) const {
    const Engine* engine = writer(key).engine;
    return {metered.reply.text, metered.reply.ids, metered.ends,
            engine != nullptr ? engine->text.tokenizer->identity() : 0};
  }

  /// Nothing when it was stopped.
  std::optional<Metered> write(const RunKey& key, uint32_t max_tokens, bool measured) {
    if (callbacks_.working) callbacks_.working(key);
    try {
      return writer(key).engine != nullptr ? write_here(key, max_tokens, measured)
                                           : write_there(key, max_tokens, measured);
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::cancelled && stopped()) return std::nullopt;
      throw e.within(sweep_.name_of(key.contestant));
    }
  }

  std::optional<Metered> write_here(const RunKey& key, uint32_t max_tokens, bool measured) {
    const Engine& engine = *writer(key).engine;
    ReplySettings settings = reply_settings(contestant(key).way, sweep_.settings);
    settings.max_tokens = max_tokens;
    Metered metered;
    EnergyMeter meter(measured ? writer(key).sensors : nullptr);
    ReplyCallbacks callbacks;
    if (measured && callbacks_.reply) callbacks = callbacks_.reply(key, static_cast<uint32_t>(ids(key).size()));
    callbacks.stop = callbacks_.stop;
    callbacks.started = [&meter, also = std::move(callbacks.started)](const ReplyStart& start) {
      if (also) also(start);
      meter.begin();
    };
    callbacks.token = [&metered, also = std::move(callbacks.token)](const ReplyProgress& progress) {
      if (progress.reply_tokens > metered.ends.size()) metered.ends.push_back(progress.text_end);
      if (also) also(progress);
    };
    metered.reply = engine.reply(ids(key), settings, callbacks);
    metered.sensors = meter.end();
    if (metered.reply.reason == FinishReason::cancelled) return std::nullopt;
    return metered;
  }

  std::optional<Metered> write_there(const RunKey& key, uint32_t max_tokens, bool measured) {
    const ComparisonWriter& there = writer(key);
    EndpointRequest request;
    request.model = there.server_model;
    for (const ChatTurn& turn : prompts_[key.prompt].turns) request.messages.push_back({turn.role, turn.content});
    request.max_tokens = max_tokens;
    request.temperature = sweep_.settings.sampling.temperature;
    request.top_p = sweep_.settings.sampling.top_p;
    request.seed = sweep_.settings.sampling.seed;
    Metered metered;
    const auto text = [&](std::string_view piece) {
      const uint32_t before = metered.ends.empty() ? 0 : metered.ends.back();
      metered.ends.push_back(before + static_cast<uint32_t>(piece.size()));
      if (measured && callbacks_.server_text) callbacks_.server_text(key, piece);
    };
    const EndpointReply answer = there.server->reply(request, text, callbacks_.stop);
    server_tokens_ = answer.tokens;
    metered.reply.text = answer.text;
    metered.reply.prompt_tokens = answer.prompt_tokens;
    metered.reply.prefill_ms = answer.prefill_ms;
    metered.reply.decode_ms = answer.decode_ms;
    metered.reply.reason = answer.ended ? FinishReason::stop_token : FinishReason::max_tokens;
    return metered;
  }

  Sweep& sweep_;
  const std::vector<ComparisonWriter>& writers_;
  const std::vector<RunnerPrompt>& prompts_;
  const RunnerCallbacks& callbacks_;
  std::map<const Engine*, std::vector<std::vector<uint32_t>>> ids_;  // by prompt
  std::map<const Engine*, std::pair<uint32_t, uint32_t>> prepared_;  // prompt and repeat that it read last
  std::vector<RunKey> left_;
  TimeLeft time_;
  ComparisonTexts texts_;
  uint32_t server_tokens_ = 0;  // of a server's last reply
};

}  // namespace

ReplySettings reply_settings(const WayToDecode& way, const SweepSettings& settings) {
  ReplySettings reply;
  reply.mode = way.mode;
  if (way.budget > 0) reply.budget = way.budget;
  reply.policy = settings.policy;
  reply.sampling = settings.sampling;
  reply.max_tokens = settings.max_tokens;
  return reply;
}

bool read_ahead(const Engine& engine, const std::vector<uint32_t>& prompt, const std::stop_token& stop) {
  // The drafter reads the prompt's features with its first draft, and a reply of fewer than three tokens has none.
  ReplySettings settings;
  settings.mode = engine.drafter != nullptr ? DecodeMode::chain : DecodeMode::ar;
  settings.max_tokens = 3;
  ReplyCallbacks callbacks;
  callbacks.stop = stop;
  return engine.reply(prompt, settings, callbacks).reason != FinishReason::cancelled;
}

bool run_comparison(Sweep& sweep, const std::vector<ComparisonWriter>& writers,
                    const std::vector<RunnerPrompt>& prompts, const RunnerCallbacks& callbacks) {
  return Runner(sweep, writers, prompts, callbacks).run();
}

}  // namespace canopy
