#pragma once
// What rounds would have been on other devices: the question, the answers from predicted and measured costs, the thread
// that finds them, their race on one clock, and what the view shows of them.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "app/state/background_answers.h"
#include "app/state/round_log.h"
#include "app/state/rounds.h"
#include "engine/session/engine_client.h"
#include "engine/trace/trace_records.h"
#include "engine/whatif/device_profile.h"
#include "engine/whatif/what_if.h"

namespace canopy::app {

// A question about other devices and its answer, device by device.

/// Asks for a recording as a whole, or for a reply of the engine as far as it is written.
struct WhatIfQuestion {
  uint64_t number = 0;
  std::shared_ptr<const TraceReader> trace;  // null for a reply of the engine, whose rounds are these:
  TraceHeader header;
  std::vector<std::shared_ptr<const RoundRecord>> rounds;
  uint32_t first_token = 0;
  std::shared_ptr<const std::vector<uint32_t>> before;  // ids that it follows; null: not known
  bool ended = false;
  double ar_tokens_per_second = 0;        // by the calibration at that time; 0: not known
  double plain_ms = 0;                    // of a token, measured in the minutes of the replies; 0: it was not
  std::vector<std::string> calibrations;  // files that were measured elsewhere
  std::vector<std::string> devices;       // to predict for: names of profiles, choices of own devices
  std::vector<predict::OwnDevice> own;    // that the user described
  bool brief = false;                     // of these alone, without how the rounds were, and without curves
};

enum class TimesFrom { recorded, measured_elsewhere, predicted };

/// One device. Without a run, `problem` says why.
struct WhatIfThere {
  std::string name;    // "RTX 4090"
  std::string detail;  // "1,008 GB/s"; may be empty
  std::string from;    // a sentence on where its times come from
  std::string choice;  // the profile or the file that was asked for; empty for where the rounds were recorded
  TimesFrom times = TimesFrom::recorded;
  std::string problem;
  WhatIf run;
  WhatIfSummary summary;
  std::vector<WidthRatio> curve;         // of fixed trees, ascending widths
  double ms_of_one = 0, ms_of_many = 0;  // of a pass; 0: not known
};

inline constexpr uint32_t kManyRows = 25;  // of ms_of_many

struct WhatIfAnswer {
  uint64_t number = 0;  // of the question
  std::vector<std::shared_ptr<const WhatIfThere>> there;
  bool whole = false;   // nothing more comes
  std::string problem;  // why nothing can be said of any device; else empty
};

/// Answers a question, calling `tell` with each device that is done. Returns the whole answer; throws cancelled.
using WhatIfMaker = std::function<WhatIfAnswer(
    const WhatIfQuestion& question, const std::function<void(const WhatIfAnswer&)>& tell, const std::stop_token& stop)>;

/// What a device can be chosen from, for menus.
struct WhatIfDevice {
  std::string choice, name, detail;
};

// Answers to "what if it had run elsewhere": re-runs with predicted costs and with those of calibration files.

/// The WhatIfMaker of the application: where the rounds were recorded first, then calibrations, then devices. What
/// cannot be said of one device is its problem, and the others go on.
WhatIfAnswer answer_what_if(const WhatIfQuestion& question, const std::function<void(const WhatIfAnswer&)>& tell,
                            const std::stop_token& stop);

/// The devices that can be predicted for, those that the user described last.
std::vector<WhatIfDevice> predictable_devices(const std::vector<predict::OwnDevice>& own = {});

/// What such a device is chosen by: no profile has such a name.
std::string own_choice(const std::string& name);

/// Whether the file says that it is a calibration, as the window opens files by their contents.
bool looks_like_calibration(const std::filesystem::path& path);

/// Writes what it would be there as a recording into a new file in the folder for temporary files, and returns its
/// path. Throws what write_recording_elsewhere() throws.
std::filesystem::path write_as_if(const TraceReader& trace, const WhatIfThere& there);

// Answers questions about other devices on a thread of its own, the newest first: a long recording may take seconds.

class WhatIfWorker {
 public:
  explicit WhatIfWorker(WhatIfMaker maker);
  /// Stops at the next round of the re-run.
  ~WhatIfWorker();
  WhatIfWorker(const WhatIfWorker&) = delete;
  WhatIfWorker& operator=(const WhatIfWorker&) = delete;

  /// `wake` is called on the worker's thread when take() has something. Call before ask().
  void set_wake(std::function<void()> wake);

  /// Returns at once. A question that is being answered is given up.
  void ask(WhatIfQuestion question);
  /// What is known by now of the last question, each state once.
  std::optional<WhatIfAnswer> take();

 private:
  struct Shared;
  static void work(Shared& shared, const std::stop_token& stop);

  std::shared_ptr<Shared> shared_;
  std::jthread thread_;
};

// Recordings of what another device would have done: written on a thread of their own, as a long one takes a while, to
// be opened by the window; removed with it.

struct AsIfQuestion {
  std::shared_ptr<const TraceLog> recording;
  std::shared_ptr<const WhatIfThere> there;
};

struct AsIfAnswer {
  std::weak_ptr<const TraceLog> recording;  // that it was made of
  std::filesystem::path file;               // empty where something went wrong
  std::string problem;
};

class AsIfFiles {
 public:
  AsIfFiles();
  /// Removes the files.
  ~AsIfFiles();

  void set_wake(std::function<void()> wake) { answers_.set_wake(std::move(wake)); }
  /// Begins to write one. Returns at once.
  void write(AsIfQuestion question) { answers_.ask(std::move(question)); }
  /// What was written since the last call.
  std::vector<AsIfAnswer> take();

 private:
  std::vector<std::filesystem::path> files_;
  BackgroundAnswers<AsIfQuestion, AsIfAnswer> answers_;
};

// The answers on one clock: which device has written how much after so many milliseconds. Pure.

struct RacePass {
  double end_ms = 0;     // since the start
  uint32_t guessed = 0;  // tokens of the text that were guessed
  uint32_t added = 0;    // that the big model added
};

struct RaceLane {
  size_t there = 0;  // in the answer
  std::vector<RacePass> passes;
  double ms = 0;        // of all
  double plain_ms = 0;  // of the same tokens by plain decoding; 0: not known
  uint64_t tokens = 0;  // of all lanes the same

  /// Tokens written after that time; those of a pass come when it ends.
  uint64_t tokens_at(double ms) const;
};

struct Race {
  std::vector<RaceLane> lanes;  // the fastest first
  double axis_ms = 0;           // where the axis ends; a slow lane may go on beyond
  double fastest_ms = 0;
  uint32_t most_tokens = 1;  // of a pass

  bool empty() const { return lanes.empty(); }
};

/// Lanes for the devices that are known. All run over as many tokens: those of the shortest, as not every device could
/// be computed for the whole text.
Race race_of(const WhatIfAnswer& answer);

/// How many seconds of the clock's time pass in one of the viewer's: the fastest lane takes `seconds`.
double race_speed(const Race& race, double seconds);

// What the view "What if" shows: the devices that were chosen, the answer as far as it is there, and when to ask anew.

inline constexpr size_t kMostOwnDevices = 8;
inline constexpr size_t kMostCalibrations = 3;  // from elsewhere; a further one takes the place of the oldest

/// What was asked about the rounds on show, and the answer as far as it is there.
struct WhatIfAsked {
  WhatIfAnswer answer;
  uint64_t asked = 0;  // number of the last question
  // What it was about: the same is not asked again.
  std::weak_ptr<const RoundLog> log;
  size_t first_round = 0, rounds = 0;
  bool ended = false;
  std::vector<std::string> choices;
};

struct WhatIfState : WhatIfAsked {
  std::vector<std::string> devices = {"rx7900xtx", "rtx4090", "h100"};  // by profile
  std::vector<std::string> calibrations;                                // paths
  std::vector<predict::OwnDevice> own;                                  // that the user described
  bool describing = false;                                              // the form for one of these is open
  std::vector<WhatIfDevice> known;                                      // what a device can be, for menus
  WhatIfAsked chip;                                                     // of the one device that Watch speaks of

  bool writing = false;  // a recording of what a device would have done, to be shown
  bool densifying = false;
  DensifyProgress dense_progress;
  std::string dense_trace;  // that got its drafts and is to be opened again; empty: none
};

struct SetWhatIfDevice {  // predicts for another device in this place
  size_t place = 0;
  std::string device;
};
struct AddCalibration {  // that somebody measured elsewhere
  std::string path;
};
struct DropCalibration {
  std::string path;
};
struct DescribeDevice {  // opens the form for a device of the user's own, or closes it
  bool shown = true;
};
/// Keeps a device of the user's own, in place of one of its name, and predicts for it in the last place; nothing where
/// own_device_problem() says why not.
struct KeepOwnDevice {
  predict::OwnDevice device;
};
struct DropOwnDevice {
  std::string name;
};
struct ShowAsIf {  // shows the trees of this device as a recording
  size_t there = 0;
};

struct MakeDense {};  // has the loaded pair draft behind every token of the recording on show

struct StopDense {};  // ends that; what is drafted by then is kept

using WhatIfCommand = std::variant<SetWhatIfDevice, AddCalibration, DropCalibration, DescribeDevice, KeepOwnDevice,
                                   DropOwnDevice, ShowAsIf, MakeDense, StopDense>;

/// Why the device cannot be kept, as a sentence; empty where it can.
std::string own_device_problem(const WhatIfState& state, const predict::OwnDevice& device);

/// ShowAsIf, MakeDense and StopDense need the disk and the engine, and do nothing here.
void update(WhatIfState& state, const WhatIfCommand& command);

/// The question to ask now: about a recording once, about a reply of the engine as it grows. `shown` is the round on
/// show. Nothing while there is nothing to ask, or all of it was asked.
std::optional<WhatIfQuestion> next_question(WhatIfState& state, const RoundsState& rounds);

/// The same for the one device that Watch speaks of; in a growing reply less often.
std::optional<WhatIfQuestion> next_chip_question(WhatIfState& state, const RoundsState& rounds,
                                                 const std::string& device);

/// Takes an answer; one to an earlier question changes nothing.
void take_answer(WhatIfAsked& asked, WhatIfAnswer answer);

}  // namespace canopy::app
