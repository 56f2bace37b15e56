#include "engine/session/comparison_events.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/bench/sweep_file.h"
#include "engine/bench/sweep_journal.h"

namespace canopy {
namespace {

class ToldComparison {
 public:
  ToldComparison(const ComparisonHost& host, const Compare& command, const std::stop_token& stop)
      : host_(host), command_(command), stop_(stop), sweep_(plan_of(command, host.commit)) {}

  void run() {
    check();
    const SubjectCallbacks callbacks{[this](const std::string& stage) { tell(stage); }, stop_};
    ComparisonSubjects subjects(host_.loaded, host_.open_device, host_.device_uuid, host_.calibration_s,
                                command_.columns, callbacks, sweep_);
    take_earlier_runs(command_.file, command_.resume, sweep_);
    publish_begin();
    if (!command_.file.empty())
      journal_ = std::make_unique<SweepJournal>(command_.file, sweep_, measured_prompts(command_.prompts));
    measure(subjects.writers());
    finish();
  }

 private:
  void publish(Event event) const { host_.publish(std::move(event), true); }

  void check() const {
    if (stop_.stop_requested()) throw cancelled("The comparison was cancelled.");
    if (command_.columns.empty() || command_.prompts.empty() || command_.settings.repeats == 0)
      throw bad_input("A comparison needs at least one column, one prompt and one repeat.");
    require_few_runs({static_cast<uint32_t>(command_.columns.size()), static_cast<uint32_t>(command_.prompts.size()),
                      command_.settings.repeats});
    if (command_.baseline >= command_.columns.size())
      throw bad_input("The comparison's baseline is column " + std::to_string(command_.baseline) + " of " +
                      std::to_string(command_.columns.size()) + ".");
    validate(command_.settings.sampling);
  }

  void publish_begin() {
    ComparisonBegun begun{command_.id, std::make_shared<const Sweep>(sweep_), {}};
    for (uint32_t i = 0; i < sweep_.contestants.size(); ++i)
      begun.must_agree.push_back(sweep_.must_agree(i, sweep_.baseline));
    publish(std::move(begun));
  }

  void tell(const std::string& stage) {
    progress_.id = command_.id;
    progress_.stage = stage;
    progress_.total = uint64_t{command_.columns.size()} * command_.prompts.size() * command_.settings.repeats;
    publish(progress_);
  }

  void measure(const std::vector<ComparisonWriter>& writers) {
    std::vector<RunnerPrompt> prompts;
    for (const ComparisonPrompt& prompt : command_.prompts) prompts.push_back({prompt.turns, {}});
    RunnerCallbacks callbacks;
    callbacks.stop = stop_;
    callbacks.stage = [this](const std::string& stage) { tell(stage); };
    callbacks.begin = [this](const RunKey& key, uint64_t done, uint64_t, double seconds_left) {
      progress_.done = done;
      progress_.seconds_left = seconds_left;
      tell("Measuring");
      begin_run(key);
    };
    callbacks.working = [this](const RunKey& key) { running_ = key; };
    callbacks.reply = [this](const RunKey& key, uint32_t prompt_tokens) { return reply_callbacks(key, prompt_tokens); };
    callbacks.server_text = [this](const RunKey&, std::string_view text) { server_text(text); };
    callbacks.server_event = [this](const RunKey&, Event event) { server_event(std::move(event)); };
    callbacks.made = [this](const RunnerReply& made) { keep(made.run); };
    callbacks.amended = [this](const MeasuredRun& run) { store(run); };
    callbacks.may_pause = [this] { wait_while_paused(); };
    try {
      was_stopped_ = !run_comparison(sweep_, writers, prompts, callbacks);
    } catch (const Error& e) {
      const bool own_lost = e.kind() == ErrorKind::device_lost && is_loaded_device(writers);
      // What was measured stays. Of a device that is lost the journal has it.
      if (own_lost || sweep_.runs.empty())
        throw own_lost || e.kind() != ErrorKind::device_lost ? e : Error(ErrorKind::unavailable, e.what());
      problem_ = e.what();
    }
  }

  /// Whether the run under way is on the device of the loaded model.
  bool is_loaded_device(const std::vector<ComparisonWriter>& writers) const {
    const Engine* engine = writers[sweep_.contestants[running_.contestant].subject].engine;
    return engine != nullptr && host_.loaded.device != nullptr && &engine->model->device() == host_.loaded.device.get();
  }

  bool is_shown(const RunKey& key) const { return command_.first_reply_id != 0 && key.repeat == 0; }

  void begin_run(const RunKey& key) {
    reply_id_ = is_shown(key) ? command_.first_reply_id + replies_++ : 0;
    reply_tokens_ = 0;
    publish(ComparisonRunBegun{command_.id, key, reply_id_});
  }

  ReplyCallbacks reply_callbacks(const RunKey&, uint32_t prompt_tokens) {
    if (reply_id_ == 0) return {};
    publisher_ = std::make_unique<ReplyPublisher>(reply_id_, prompt_tokens, 0, host_.publish);
    return publisher_->callbacks(true, stop_);
  }

  void server_text(std::string_view text) {
    if (reply_id_ == 0) return;
    TextDelta delta;
    delta.reply_id = reply_id_;
    delta.text = text;
    delta.reply_tokens = ++reply_tokens_;
    publish(std::move(delta));
  }

  /// ReplyFinished ends a reply of a chat; of a column ComparisonRun says more.
  void server_event(Event event) {
    if (reply_id_ == 0 || std::holds_alternative<ReplyFinished>(event)) return;
    const auto name = [this](auto& each) {
      if constexpr (requires { each.reply_id; }) each.reply_id = reply_id_;
    };
    std::visit(name, event);
    publish(std::move(event));
  }

  void keep(const MeasuredRun& run) {
    if (publisher_ != nullptr) publisher_->flush();
    publisher_.reset();
    progress_.done = sweep_.runs.size();
    store(run);
  }

  /// On the disk before anybody hears of it.
  void store(const MeasuredRun& run) {
    if (journal_ != nullptr) journal_->add(run);
    publish(ComparisonRun{command_.id, run});
  }

  void wait_while_paused() {
    if (!host_.is_paused()) return;
    progress_.paused = true;
    tell("Paused");
    host_.wait_while_paused();
    progress_.paused = false;
  }

  void finish() {
    ComparisonFinished finished{command_.id, std::make_shared<const Sweep>(sweep_), was_stopped_, {}, problem_};
    try {
      if (journal_ != nullptr) {
        journal_->finish(sweep_);
        finished.file = command_.file;
      }
    } catch (const Error& e) {
      finished.problem += (finished.problem.empty() ? "" : " ") + std::string(e.what());
    }
    finished.problem = printable(finished.problem, 4096, LineBreaks::keep);
    publish(std::move(finished));
  }

  const ComparisonHost& host_;
  const Compare& command_;
  std::stop_token stop_;
  Sweep sweep_;
  std::unique_ptr<SweepJournal> journal_;
  std::unique_ptr<ReplyPublisher> publisher_;  // of the run under way
  ComparisonProgress progress_;
  RunKey running_;
  uint64_t replies_ = 0, reply_id_ = 0;
  uint32_t reply_tokens_ = 0;
  bool was_stopped_ = false;
  std::string problem_;
};

}  // namespace

void compare_and_tell(const ComparisonHost& host, const Compare& command, const std::stop_token& stop) {
  ToldComparison(host, command, stop).run();
}

}  // namespace canopy
