#include "engine/session/comparison.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/mapped_file.h"
#include "engine/bench/sweep_file.h"
#include "engine/bench/sweep_journal.h"
#include "engine/format/json_text.h"
#include "engine/format/model_paths.h"
#include "engine/session/event_json.h"
#include "engine/session/remote_model.h"
#include "engine/speculation/round_record.h"

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

/// Its id, category and the hash of its last turn.
SweepPrompt sweep_prompt(const ComparisonPrompt& prompt) {
  const std::string text = prompt.turns.empty() ? std::string() : prompt.turns.back().content;
  return {prompt.id, prompt.category, damage_hash_text(text)};
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

namespace {

/// The token that completes byte `at`; behind all tokens, their number.
uint32_t token_of_byte(const std::vector<uint32_t>& ends, size_t at) {
  const auto found = std::ranges::find_if(ends, [&](uint32_t end) { return end > at; });
  return static_cast<uint32_t>(found - ends.begin());
}

}  // namespace

std::optional<uint32_t> difference_of(const WrittenText& written, const WrittenText& reference) {
  const bool same_tokens = written.vocabulary == reference.vocabulary && !written.ids.empty() && !reference.ids.empty();
  if (same_tokens) return first_difference(written.ids, reference.ids);
  if (written.text == reference.text) return std::nullopt;
  const auto [in_written, in_reference] = std::ranges::mismatch(written.text, reference.text);
  const auto at = static_cast<size_t>(in_written - written.text.begin());
  const bool by_reference = written.ids.empty() && !reference.ids.empty();
  return token_of_byte(by_reference ? reference.ends : written.ends, at);
}

std::vector<std::pair<RunKey, std::optional<uint32_t>>> ComparisonTexts::add(const RunKey& key, WrittenText text) {
  std::vector<std::pair<RunKey, std::optional<uint32_t>>> known;
  const bool is_reference = key.contestant == baseline_ && !references_.contains(key.prompt);
  if (is_reference) {
    const WrittenText& reference = references_[key.prompt] = std::move(text);
    known.emplace_back(key, std::nullopt);
    for (const auto& [other, written] : waiting_[key.prompt])
      known.emplace_back(other, difference_of(written, reference));
    waiting_.erase(key.prompt);
  } else if (const auto reference = references_.find(key.prompt); reference != references_.end()) {
    known.emplace_back(key, difference_of(text, reference->second));
  } else {
    waiting_[key.prompt].emplace_back(key, std::move(text));
  }
  return known;
}

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
  SensorReading sensors;    // energy of the rounds
  uint64_t vocabulary = 0;  // of a Canopy elsewhere
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
    for (const auto& [engine, ids] : ids_) sources_.try_emplace(engine, *engine);
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
            engine != nullptr ? engine->text.tokenizer->identity() : metered.vocabulary};
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
    if (callbacks_.settings) callbacks_.settings(settings);
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
    sources_.at(&engine).empty();  // every run begins with nothing known
    // Replies of chats are none of a measurement's, unless it named them.
    const bool named = engine.replies != nullptr && engine.replies->read_only();
    if (!named) settings.sources &= static_cast<DraftSources>(~kFromEarlier);
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
      if (there.is_canopy) return;
      const uint32_t before = metered.ends.empty() ? 0 : metered.ends.back();
      metered.ends.push_back(before + static_cast<uint32_t>(piece.size()));
      if (measured && callbacks_.server_text) callbacks_.server_text(key, piece);
    };
    if (there.is_canopy) {
      const WayToDecode& way = contestant(key).way;
      nlohmann::json more =
          drafting_fields(way.mode, way.budget, static_cast<DraftSources>(way.sources & ~kFromEarlier));
      // What the interface has no field for beside those that every server is sent.
      const SamplingSettings& sampling = sweep_.settings.sampling;
      more.update({{"top_k", sampling.top_k}, {"min_p", sampling.min_p}});
      request.more = more.dump();
    }
    std::optional<ReplyFinished> finished;
    const auto named = [&](std::string_view name, std::string_view data) {
      const auto event = event_from_json(name, parse_json(data, "The server's event"), 0);
      if (!event) return;
      if (const auto* start = std::get_if<ReplyStarted>(&*event)) metered.reply.ids = {start->first_token};
      if (const auto* delta = std::get_if<TextDelta>(&*event)) metered.reply.text += delta->text;
      if (const auto* round = std::get_if<RoundFinished>(&*event)) {
        if (metered.ends.empty()) metered.ends.push_back(round->text_begin);
        metered.ends.insert(metered.ends.end(), round->text_ends.begin(), round->text_ends.end());
        metered.reply.ids.insert(metered.reply.ids.end(), round->round->emitted.begin(), round->round->emitted.end());
        metered.reply.rounds.push_back(*round->round);
      }
      if (const auto* reply = std::get_if<ReplyFinished>(&*event)) finished = *reply;
      if (measured && callbacks_.server_event) callbacks_.server_event(key, *event);
    };
    ChatStream::Named events;
    if (there.is_canopy) events = named;
    const EndpointReply answer =
        there.server->reply(request, text, callbacks_.stop, events, there.is_canopy ? kRoundsLimits : StreamLimits());
    if (there.is_canopy) {
      if (!finished) throw bad_input("The server at " + there.server->address().shown() + " did not tell its passes.");
      server_tokens_ = finished->reply_tokens;
      metered.reply.prompt_tokens = finished->prompt_tokens;
      metered.reply.reused_tokens = finished->reused_tokens;
      metered.reply.prefill_ms = finished->prefill_ms;
      metered.reply.decode_ms = finished->decode_ms;
      metered.reply.reason = finished->reason;
      metered.vocabulary = finished->tokens.vocabulary;
      return metered;
    }
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
  std::map<const Engine*, EmptySources> sources_;                    // of all engines
  std::vector<RunKey> left_;
  TimeLeft time_;
  ComparisonTexts texts_;
  uint32_t server_tokens_ = 0;  // of a server's last reply
};

}  // namespace

EmptySources::EmptySources(const Engine& engine)
    : engine_(engine),
      recycled_(std::move(*engine.recycling)),
      known_(engine.speculation->controller().free_calibrator()) {
  empty();
}

EmptySources::~EmptySources() {
  *engine_.recycling = std::move(recycled_);
  engine_.speculation->controller().judge_free_by(std::move(known_));
}

void EmptySources::empty() {
  *engine_.recycling = RecyclingTable(recycled_.k());
  engine_.speculation->controller().judge_free_by(DepthCalibrator(kAssumedFree));
}

ReplySettings reply_settings(const WayToDecode& way, const SweepSettings& settings) {
  ReplySettings reply;
  reply.mode = way.mode;
  if (way.budget > 0) reply.budget = way.budget;
  reply.policy = settings.policy;
  reply.sources = way.sources;
  reply.sampling = settings.sampling;
  reply.max_tokens = settings.max_tokens;
  return reply;
}

bool read_ahead(const Engine& engine, const std::vector<uint32_t>& prompt, const std::stop_token& stop) {
  // The drafter reads the prompt's features with its first draft, and a reply of fewer than three tokens has none.
  ReplySettings settings;
  settings.mode = engine.block() > 0 ? DecodeMode::chain : DecodeMode::ar;
  settings.max_tokens = 3;
  ReplyCallbacks callbacks;
  callbacks.stop = stop;
  return engine.reply(prompt, settings, callbacks).reason != FinishReason::cancelled;
}

bool run_comparison(Sweep& sweep, const std::vector<ComparisonWriter>& writers,
                    const std::vector<RunnerPrompt>& prompts, const RunnerCallbacks& callbacks) {
  return Runner(sweep, writers, prompts, callbacks).run();
}

namespace {

uint32_t widest_pass(const std::vector<ComparisonColumn>& columns) {
  uint32_t widest = 1;
  for (const ComparisonColumn& column : columns) widest = std::max(widest, column.way.budget + 1);
  return widest;
}

/// A device that is lost here is not that of the model that is loaded.
std::unique_ptr<Engine> open_beside(Device& device, const OpenRequest& request, const OpenCallbacks& callbacks) {
  try {
    return Engine::open(device, request, callbacks);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::device_lost) throw;
    throw Error(ErrorKind::unavailable, e.what());
  }
}

/// Drafted nodes of the widest tree that a pass of this engine holds.
uint32_t most_nodes(const Engine& engine) {
  const ModelLimits& limits = engine.model->limits();
  return std::min(limits.tree_slots, limits.max_width - 1);
}

/// A wider tree would be cut to what fits without a word.
void require_room_for(const WayToDecode& way, const Engine& engine) {
  const uint32_t most = most_nodes(engine);
  if (way.budget <= most) return;
  throw bad_input("The column '" + way.name() + "' needs a tree of " + std::to_string(way.budget) + " nodes; " +
                  engine.file_name + " is open for 1 to " + std::to_string(most) + " here.");
}

}  // namespace

SweepSubject describe_subject(const Engine& engine, const DeviceSensors* sensors) {
  const ModelReady ready = engine.describe();
  SweepSubject subject;
  subject.model = ready.file_name;
  subject.quantization = ready.quantization;
  if (!ready.quantized_to.empty()) subject.quantization += " as " + ready.quantized_to;
  subject.parameters = ready.parameters;
  subject.drafter = ready.drafter;
  subject.block = ready.block;
  subject.kv = ready.kv_type;
  subject.context = ready.context;
  subject.device = ready.device;
  subject.device_type = ready.device_type;
  subject.driver = ready.driver;
  subject.kernels = engine.model->device().info().kernels;
  subject.is_software = ready.device_type == "software";
  subject.self_test = ready.self_test_note;
  if (sensors != nullptr) subject.energy = sensors->name();
  if (engine.replies != nullptr && engine.replies->read_only()) {
    subject.earlier_replies = static_cast<uint32_t>(engine.replies->replies());
    subject.earlier_tokens = static_cast<uint32_t>(engine.replies->tokens());
  }
  return subject;
}

ComparisonSubjects::ComparisonSubjects(const LoadedSubject& loaded, const OpenDevice& open_device,
                                       const NameDevice& device_uuid, double calibration_s,
                                       const std::vector<ComparisonColumn>& columns, const SubjectCallbacks& callbacks,
                                       Sweep& sweep)
    : loaded_(loaded),
      open_device_(open_device),
      device_uuid_(device_uuid),
      calibration_s_(calibration_s),
      widest_(widest_pass(columns)) {
  for (const ComparisonColumn& column : columns) {
    if (callbacks.stop.stop_requested()) throw cancelled("The comparison was cancelled.");
    const uint32_t subject = subject_for(column, callbacks, sweep);
    sweep.contestants.push_back({column.way, subject});
    const ComparisonWriter& writer = writers_[subject];
    const bool drafts = column.way.mode != DecodeMode::ar && writer.engine != nullptr;
    if (drafts && column.way.sources != 0 && column.way.sources != 0 && (column.way.sources & ~kFromModels) == 0 &&
        writer.engine->block() == 0)
      throw bad_input("The column '" + column.way.name() + "' needs a drafter, and " + writer.engine->file_name +
                      " has none here: name one, or let it guess from the text.");
    if (drafts) require_room_for(column.way, *writer.engine);
  }
}

uint32_t ComparisonSubjects::subject_for(const ComparisonColumn& column, const SubjectCallbacks& callbacks,
                                         Sweep& sweep) {
  Wanted wanted{column.model, column.drafter, column.device, column.server};
  if (column.server.empty() && wanted.model.empty()) wanted.model = loaded_.opened.path;
  const auto known = std::ranges::find(wanted_, wanted);
  if (known != wanted_.end()) return static_cast<uint32_t>(known - wanted_.begin());
  ComparisonWriter writer;
  SweepSubject subject = with_context(column.way.name(), [&] {
    return column.server.empty() ? open_engine(wanted, callbacks, writer) : open_server(column, callbacks, writer);
  });
  wanted_.push_back(std::move(wanted));
  writers_.push_back(std::move(writer));
  sweep.subjects.push_back(std::move(subject));
  return static_cast<uint32_t>(writers_.size() - 1);
}

namespace {

/// What a sweep's file says of a Canopy elsewhere: the model and the device there.
SweepSubject subject_of(const ModelReady& model, const std::string& server) {
  SweepSubject subject;
  subject.model = model.file_name;
  subject.quantization = model.quantization + (model.quantized_to.empty() ? "" : " as " + model.quantized_to);
  subject.parameters = model.parameters;
  subject.drafter = model.drafter;
  subject.block = model.block;
  subject.kv = model.kv_type;
  subject.context = model.context;
  subject.device = model.device + " at " + server;
  subject.device_type = model.device_type;
  subject.driver = model.driver;
  subject.is_software = model.device_type == "software";
  subject.self_test = model.self_test_note;
  return subject;
}

}  // namespace

SweepSubject ComparisonSubjects::open_server(const ComparisonColumn& column, const SubjectCallbacks& callbacks,
                                             ComparisonWriter& writer) {
  Opened& opened = opened_.emplace_back();
  opened.server = std::make_unique<EndpointClient>(parse_endpoint(column.server), EndpointLimits(), column.key);
  writer.server = opened.server.get();
  writer.server_model = column.model;
  const std::string server = opened.server->address().shown();
  if (callbacks.stage) callbacks.stage("Asking " + server);
  SweepSubject subject;
  std::optional<nlohmann::json> about;
  try {
    EndpointClient asking(opened.server->address(), {3, 10, 15}, column.key);
    about = ask_canopy(asking, callbacks.stop);
  } catch (const Error& e) {
    // Another server may not know the question; whether it is there shows when it is asked to write.
    if (e.kind() != ErrorKind::unavailable || !column.key.empty()) throw;
  }
  if (about) {
    writer.is_canopy = true;
    subject = subject_of(model_from_json(JsonFields(*about, "what the server says of itself").at("model")), server);
  } else {
    subject.model = column.model.empty() ? "the server's model" : column.model;
    subject.device = server;
    subject.device_type = "server";
  }
  subject.target = target_of(column.server + "\n" + column.model);
  return subject;
}

SweepSubject ComparisonSubjects::open_engine(const Wanted& wanted, const SubjectCallbacks& callbacks,
                                             ComparisonWriter& writer) {
  const bool is_loaded = wanted.model == loaded_.opened.path && wanted.drafter.empty() && wanted.device.empty();
  // Beside one that was opened for narrower trees it is opened once more.
  if (is_loaded && (loaded_.engine == nullptr || most_nodes(*loaded_.engine) + 1 >= widest_)) {
    if (loaded_.engine == nullptr) throw Error(ErrorKind::unavailable, "No model is loaded: open a model first.");
    writer.engine = loaded_.engine;
    writer.sensors = sensors_of(*loaded_.device);
  } else {
    if (callbacks.stage) callbacks.stage("Opening " + model_path_name(wanted.model));
    Opened opened;
    opened.selector = wanted.device;
    opened.device = device_for(wanted.device);
    OpenRequest request;
    request.path = wanted.model;
    request.cache_type = loaded_.opened.kv;
    request.context = loaded_.opened.context;
    request.quantize = loaded_.opened.quantize;
    request.calibration_s = calibration_s_;
    request.max_width = std::max(request.max_width, widest_);
    if (loaded_.engine != nullptr && loaded_.engine->replies != nullptr && loaded_.engine->replies->read_only()) {
      request.replies = loaded_.engine->replies->path().parent_path();
      request.replies_read_only = true;
    }
    const bool same_model = wanted.model == loaded_.opened.path;
    choose_drafter(wanted.drafter.empty() && same_model ? loaded_.opened.drafter : wanted.drafter, request);
    OpenCallbacks opening;
    opening.stop = callbacks.stop;
    opened.engine = opened.device == loaded_.device ? Engine::open(*opened.device, request, opening)
                                                    : open_beside(*opened.device, request, opening);
    writer.engine = opened.engine.get();
    writer.sensors = sensors_of(*opened.device);
    opened_.push_back(std::move(opened));
  }
  SweepSubject subject = describe_subject(*writer.engine, writer.sensors);
  subject.target = target_of(wanted.model);
  return subject;
}

/// One that is open already, wherever a selector names it: two of one would not know of each other's memory.
std::shared_ptr<Device> ComparisonSubjects::device_for(const std::string& selector) {
  if (selector.empty() && loaded_.device != nullptr) return loaded_.device;
  const auto is = [&](const std::string& other_selector, const Device& device) {
    return device_uuid_ ? device_uuid_(selector) == device.info().uuid : selector == other_selector;
  };
  if (loaded_.device != nullptr && is(loaded_.opened.device, *loaded_.device)) return loaded_.device;
  for (const Opened& opened : opened_)
    if (opened.device != nullptr && is(opened.selector, *opened.device)) return opened.device;
  return open_device_(selector);
}

DeviceSensors* ComparisonSubjects::sensors_of(const Device& device) {
  for (const auto& [known, sensors] : sensors_)
    if (known == &device) return sensors.get();
  sensors_.emplace_back(&device, open_device_sensors(device.info().pci_address));
  return sensors_.back().second.get();
}

uint32_t ComparisonSubjects::target_of(const std::string& model) {
  const auto known = std::ranges::find(models_, model);
  const auto index = static_cast<uint32_t>(known - models_.begin());
  if (known == models_.end()) models_.push_back(model);
  return index;
}

}  // namespace canopy
