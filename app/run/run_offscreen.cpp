#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "app/run/autopilot.h"
#include "app/run/headless.h"
#include "app/run/run.h"
#include "app/state/view_model.h"

namespace canopy::app {
namespace {

/// On this the loop without a window system sleeps until the engine has news.
class WakeSignal {
 public:
  void raise() {
    {
      const std::lock_guard lock(mutex_);
      raised_ = true;
    }
    condition_.notify_one();
  }
  /// Returns when raise() was called since the last wait, or after the time.
  void wait_for(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    condition_.wait_for(lock, time, [&] { return raised_; });
    raised_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  bool raised_ = false;
};

/// The pass that says most about guessing: of those whose guesses brought most, the one with the largest tree. None
/// where nothing was guessed.
std::optional<size_t> most_telling(const RoundLog& log) {
  std::optional<size_t> best;
  const auto worth = [&](size_t round) { return std::pair(log.summary(round).accepted, log.summary(round).width); };
  for (size_t round = 0; round < log.rounds(); ++round) {
    if (log.summary(round).width > 1 && (!best || worth(round) > worth(*best))) best = round;
  }
  return best;
}

/// What guessing brought, as a sentence.
std::string guesses(const RoundLog& log) {
  uint64_t guessed = 0, accepted = 0, emitted = 0;
  for (size_t round = 0; round < log.rounds(); ++round) {
    const RoundSummary& pass = log.summary(round);
    if (pass.shape != DecodeMode::ar) guessed += pass.width - 1;
    accepted += pass.accepted;
    emitted += pass.emitted;
  }
  if (guessed == 0) return "Nothing was guessed: one token from each pass.";
  char line[200];
  std::snprintf(line, sizeof line, "%llu of %llu guesses became text: %.2f tokens from each pass.",
                static_cast<unsigned long long>(accepted), static_cast<unsigned long long>(guessed),
                static_cast<double>(emitted) / static_cast<double>(log.rounds()));
  return line;
}

constexpr const char* kBuiltInPrompt = "Explain in two sentences why the sky is blue.";
constexpr const char* kReplyShot = "out/canopy.png";
constexpr auto kPatience = std::chrono::milliseconds(200);

/// Prints what the window would show: progress on err, the growing reply on out.
class Narrator {
 public:
  Narrator(std::ostream& out, std::ostream& err) : out_(out), err_(err) {}

  void tell(const ViewModel& view) {
    if (view.model_state == ModelState::loading && view.loading.stage != stage_) {
      stage_ = view.loading.stage;
      err_ << stage_ << "\n" << std::flush;
    }
    const Message* reply = view.last_reply();
    if (!reply || reply->text.size() <= told_) return;
    out_ << std::string_view(reply->text).substr(told_) << std::flush;
    told_ = reply->text.size();
  }

  void statistics(const ViewModel& view) {
    const Message* reply = view.last_reply();
    if (told_ > 0) out_ << "\n";
    if (!reply || !reply->result || !view.model) return;
    const ReplyFinished& r = *reply->result;
    char line[256];
    std::snprintf(
        line, sizeof line,
        "\n%u prompt tokens in %.0f ms (%u reused), %u reply tokens in %.0f ms, %.1f tok/s, context %u of %u\n",
        r.prompt_tokens, r.prefill_ms, r.reused_tokens, r.reply_tokens, r.decode_ms, r.tokens_per_second,
        r.context_used, view.model->context);
    out_ << line;
    out_ << guesses(*view.rounds.log) << "\n";
    out_ << model_title(*view.model) << " on " << view.model->device << " (" << view.model->driver << ")\n";
  }

 private:
  std::ostream& out_;
  std::ostream& err_;
  std::string stage_;
  size_t told_ = 0;
};

int answer(EngineClient& engine, const AppOptions& options, std::ostream& out, std::ostream& err) {
  WakeSignal news;
  engine.set_wake([&] { news.raise(); });
  struct Unhook {
    EngineClient& engine;
    ~Unhook() { engine.set_wake({}); }
  } unhook{engine};
  Headless headless(engine, settings_from(options), options.width, options.height, options.validate);
  Autopilot pilot(headless.app(), options.model, options.prompt.empty() ? kBuiltInPrompt : options.prompt);
  Narrator narrator(out, err);
  if (options.model.empty()) throw bad_input("There is no model to load: give one with --model.");
  while (true) {
    headless.app().pump();
    pilot.step();
    narrator.tell(headless.app().view());
    if (pilot.done()) break;
    news.wait_for(kPatience);
  }
  narrator.statistics(headless.app().view());
  const RoundLog& log = *headless.app().view().rounds.log;
  if (const std::optional<size_t> round = most_telling(log)) headless.app().run(RoundsCommand(ShowRound{*round}));
  const std::string shot = options.shot.empty() ? kReplyShot : options.shot;
  write_png(headless.settled_frame(), shot);
  for (const std::string& message : headless.device().validation_messages()) err << message << "\n";
  if (pilot.state() == Autopilot::State::succeeded && headless.device().validation_messages().empty()) {
    out << "Picture: " << shot << "\n";
    return 0;
  }
  err << pilot.failure() << "\n";
  return 1;
}

}  // namespace

int run_offscreen(EngineClient& engine, const AppOptions& options, std::ostream& out, std::ostream& err) {
  try {
    return answer(engine, options, out, err);
  } catch (const Error& e) {
    err << e.what() << "\n";
    return 1;
  }
}

}  // namespace canopy::app
