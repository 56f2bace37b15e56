#include "app/state/calibration.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <ctime>
#include <filesystem>

#include "app/state/chat.h"
#include "app/state/words.h"

namespace canopy::app {
namespace {

using CalibrationPhase = CalibrationState::Phase;

void end(CalibrationState& state, std::string note) {
  state.phase = CalibrationPhase::idle;
  state.progress = {};
  state.when_idle = false;
  state.note = std::move(note);
}

void on_failure(CalibrationState& state, const Failure& failure) {
  // A failure of a reply does not end a calibration that waits for that reply. No load can fail meanwhile.
  if (!state.busy() || failure.reply_id != 0) return;
  if (failure.kind == ErrorKind::cancelled && state.when_idle)
    end(state, {});  // it will be tried again, and nobody asked for it
  else if (failure.kind == ErrorKind::cancelled)
    end(state, "Cancelled: what was measured before stays in use.");
  else
    end(state, failure.title + ". " + failure.detail);
}

}  // namespace

float CalibrationState::fraction() const {
  if (phase == CalibrationPhase::idle || phase == CalibrationPhase::waiting || progress.total == 0) return -1.0f;
  return std::clamp(static_cast<float>(progress.done) / static_cast<float>(progress.total), 0.0f, 1.0f);
}

void update(CalibrationState& state, const Event& event) {
  if (const auto* ready = std::get_if<ModelReady>(&event)) {
    state = {};
    state.costs = ready->costs;
  } else if (const auto* round = std::get_if<RoundFinished>(&event)) {
    if (state.costs && round->round && round->round->teaches)
      state.drift.add(state.costs->table, round->round->width, round->round->context, round->round->ms.verify);
  } else if (std::holds_alternative<ReplyFinished>(event)) {
    state.drift.end_reply();
  } else if (const auto* progress = std::get_if<CalibrationProgress>(&event)) {
    if (!state.busy()) return;
    state.progress = *progress;
    if (state.phase == CalibrationPhase::waiting) state.phase = CalibrationPhase::running;
  } else if (const auto* done = std::get_if<Calibrated>(&event)) {
    state.costs = done->costs;
    state.drift = {};
    state.dismissed = false;
    end(state, {});
  } else if (const auto* learnt = std::get_if<Learnt>(&event)) {
    state.learnt = learnt->learnt;
  } else if (const auto* failure = std::get_if<Failure>(&event)) {
    on_failure(state, *failure);
  }
}

std::optional<Command> update(CalibrationState& state, const CalibrationCommand& command, bool possible) {
  if (std::holds_alternative<DismissStaleCosts>(command)) state.dismissed = true;
  if (const auto* start = std::get_if<StartCalibration>(&command)) {
    if (state.when_idle) state.when_idle = state.phase == CalibrationPhase::cancelling;  // now it is the user's
    if (!possible || state.busy()) return std::nullopt;
    state.phase = CalibrationPhase::waiting;
    state.progress = {};
    state.note.clear();
    return Calibrate{start->seconds};
  }
  if (!std::holds_alternative<StopCalibration>(command)) return std::nullopt;
  if (!state.busy() || state.phase == CalibrationPhase::cancelling) return std::nullopt;
  state.phase = CalibrationPhase::cancelling;
  return CancelCalibration{};
}

std::string load_words(const CalibrationState& state) {
  if (!state.costs || !state.costs->table.under().under_load()) return "";
  return "Measured while other programs used " + percent(*state.costs->table.under().others, 0) + " of the processor.";
}

/// Whether some widths take longer and others shorter: then their mean says little.
static bool takes_both(const CostDrift& drift) {
  return std::abs(drift.ratio() - 1) < *drift.off() / 2;
}

std::string stale_words(const CalibrationState& state) {
  if (!state.is_stale()) return "";
  std::string words;
  if (state.drift.is_far()) {
    const double mean = state.drift.ratio() - 1;
    if (takes_both(state.drift))
      words = "Passes were off by " + percent(*state.drift.off(), 0) + " from what was measured.";
    else
      words = "Passes took " + percent(std::abs(mean), 0) + (mean > 0 ? " longer" : " shorter") + " than was measured.";
  }
  const std::string load = load_words(state);
  return words + (words.empty() || load.empty() ? "" : " ") + load;
}

std::string brief_stale_words(const CalibrationState& state) {
  if (!state.is_stale()) return "";
  if (!state.drift.is_far()) return "Passes were measured under load.";
  if (takes_both(state.drift)) return "Passes are off what was measured.";
  return state.drift.ratio() > 1 ? "Passes take longer by now." : "Passes are quicker by now.";
}

std::optional<int64_t> remeasure_due_ms(const CalibrationState& state, int64_t quiet_since_ms) {
  if (state.busy() || !state.is_stale()) return std::nullopt;
  int64_t due = quiet_since_ms + kQuietMs;
  if (const int64_t at = state.costs->table.under().at_ms; at > 0) due = std::max(due, at + kMeasuredAgainMs);
  if (state.tried_ms > 0) due = std::max(due, state.tried_ms + kTriedAgainMs);
  return due;
}

Calibrate begin_remeasuring(CalibrationState& state, int64_t now_ms) {
  state.phase = CalibrationPhase::waiting;
  state.progress = {};
  state.note.clear();
  state.when_idle = true;
  state.tried_ms = now_ms;
  return {kCalibrationSeconds, true};
}

std::optional<Command> interrupt_remeasuring(CalibrationState& state) {
  if (!state.busy() || !state.when_idle || state.phase == CalibrationPhase::cancelling) return std::nullopt;
  state.phase = CalibrationPhase::cancelling;
  return CancelCalibration{};
}

namespace {

using ReportPhase = ReportState::Phase;
constexpr size_t kMostNameBytes = 40;

void end(ReportState& state, std::string note) {
  state.phase = ReportPhase::idle;
  state.step = {};
  state.note = std::move(note);
}

/// A failure of a reply does not end a measurement that waits for that reply, but the loss of the device does.
void on_failure(ReportState& state, const Failure& failure) {
  if (!state.busy() || (failure.reply_id != 0 && failure.kind != ErrorKind::device_lost)) return;
  end(state, failure.kind == ErrorKind::cancelled ? "Cancelled." : failure.title + ". " + failure.detail);
}

/// Letters and digits, in small, with single dashes for what lies between; details in brackets are left out.
std::string slug(const std::string& name) {
  std::string words;
  for (const char c : name.substr(0, name.find('('))) {
    if (words.size() >= kMostNameBytes) break;
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte))
      words += static_cast<char>(std::tolower(byte));
    else if (!words.empty() && words.back() != '-')
      words += '-';
  }
  while (words.ends_with('-')) words.pop_back();
  return words;
}

}  // namespace

float ReportState::fraction() const {
  if (phase == ReportPhase::idle || phase == ReportPhase::waiting || step.total == 0) return -1.0f;
  return std::clamp(static_cast<float>(step.done) / static_cast<float>(step.total), 0.0f, 1.0f);
}

void update(ReportState& state, const Event& event) {
  if (const auto* progress = std::get_if<ReportProgress>(&event)) {
    if (!state.busy()) return;
    state.step = progress->step;
    if (state.phase == ReportPhase::waiting) state.phase = ReportPhase::running;
  } else if (const auto* done = std::get_if<DeviceReported>(&event)) {
    state.report = std::make_shared<const DeviceReported>(*done);
    state.saved.clear();
    state.problem.clear();
    end(state, {});
  } else if (const auto* failure = std::get_if<Failure>(&event)) {
    on_failure(state, *failure);
  }
}

ReportWish update(ReportState& state, const ReportCommand& command, const std::string& device, bool possible) {
  if (const auto* show = std::get_if<ShowReport>(&command)) {
    state.box_shown = show->shown;
  } else if (std::holds_alternative<StartReport>(command)) {
    if (!possible || state.busy()) return {};
    state.phase = ReportPhase::waiting;
    state.step = {};
    state.note.clear();
    return {ReportDevice{device, kReportSeconds}, {}};
  } else if (std::holds_alternative<StopReport>(command)) {
    if (!state.busy() || state.phase == ReportPhase::cancelling) return {};
    state.phase = ReportPhase::cancelling;
    return {CancelReport{}, {}};
  } else if (const auto* save = std::get_if<SaveReport>(&command)) {
    if (!state.report || save->path.empty()) return {};
    std::filesystem::path path = typed_path(save->path);
    if (path.extension() != ".json") path += ".json";
    return {{}, ReportFile{path.string(), state.report->json}};
  }
  return {};
}

void end_save(ReportState& state, const std::string& path, const std::string& problem) {
  state.saved = problem.empty() ? path : "";
  state.problem = problem;
}

std::string report_name(const std::string& device, int64_t now_ms) {
  const std::time_t seconds = now_ms / 1000;
  std::tm parts = {};
  char day[16] = "";
  if (::localtime_r(&seconds, &parts)) std::strftime(day, sizeof day, "-%Y-%m-%d", &parts);
  const std::string name = slug(device);
  return "canopy-report" + (name.empty() ? "" : "-" + name) + day + ".json";
}

}  // namespace canopy::app
