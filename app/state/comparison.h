#pragma once
// Comparisons and sweeps: what is to be measured, what is being measured, what was, and the files of sweeps.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "app/state/background_answers.h"
#include "app/state/conversation.h"
#include "engine/bench/sweep_journal.h"
#include "engine/session/engine_client.h"

namespace canopy::app {

// Sweeps on the disk as the window sees them: those that are kept, one that is opened, those of others that lie over
// it. They are read on a thread of their own, as a file may be large and a folder may be far away.

/// A sweep of others, beside the shown one.
struct SweepLayer {
  std::string path;
  std::shared_ptr<const Sweep> sweep;
};

struct SweepFiles {
  std::vector<KeptSweep> kept;      // the newest first
  std::vector<KeptSweep> recorded;  // those that come with Canopy, of software devices
  std::vector<SweepLayer> layers;
  bool reading = false;
  std::string problem;  // why the last file could not be read, as a sentence
};

struct SweepFileRequest {
  enum class What { list, open, overlay };
  What what = What::list;
  std::string path;  // of the file; not of a list
};

struct SweepFileResult {
  SweepFileRequest request;
  std::vector<KeptSweep> kept, recorded;  // always
  std::vector<ComparisonPrompt> bundled;  // the prompts that come with Canopy; of a list
  std::string prompts_problem;
  std::shared_ptr<const Sweep> sweep;     // of a file
  std::string problem;                    // why there is none
  std::vector<ComparisonPrompt> prompts;  // with their texts, of an opened sweep that is not whole
  std::string prompts_missing;            // why they are not known
};

/// Where sweeps are kept, where prompts are; empty folders are left out.
struct SweepPlaces {
  std::string folder;    // of kept sweeps
  std::string prompts;   // a folder of prompts
  std::string recorded;  // of sweeps that come with Canopy
};

/// The folder of the user's sweeps; empty where there can be none.
std::string user_sweep_folder();

/// Reads what is asked for. Never throws: problems are in the result.
SweepFileResult read_for(const SweepFileRequest& request, const SweepPlaces& places);

/// Reads on a thread of its own, one request after the other; every request is answered.
using SweepReader = BackgroundAnswers<SweepFileRequest, SweepFileResult>;
SweepReader sweep_reader(SweepPlaces places);

// What is to be measured, what is being measured, and what was. Pure: no clock, no engine, no disk.

inline constexpr size_t kMostColumns = 4;
inline constexpr size_t kLeastColumns = 2;
inline constexpr uint32_t kMostRepeats = 50;
inline constexpr uint32_t kMostReplyTokens = 4096;

/// What the next comparison measures.
struct CompareSetup {
  std::vector<ComparisonColumn> columns = {{{DecodeMode::ar, 0}, "", "", "", ""},
                                           {{DecodeMode::chain, 0}, "", "", "", ""},
                                           {{DecodeMode::tree, 16}, "", "", "", ""},
                                           {{DecodeMode::adaptive, 0}, "", "", "", ""}};
  std::string prompt = "Write a function that merges two sorted lists, in linear time.";
  bool bundled = false;  // the prompts that come with Canopy, one of each category, in place of `prompt`
  uint32_t repeats = 3;
  uint32_t max_tokens = 128;
};

/// What the next sweep measures.
struct SweepSetup {
  bool ar = true, chain = true, adaptive = true;
  std::vector<uint32_t> budgets = {4, 8, 16, 32, 64};  // of trees, ascending
  uint32_t prompts = 1;                                // of each category; 0: all
  uint32_t repeats = 3;
  uint32_t max_tokens = 128;
};

/// A round on the clock of its reply.
struct RaceRound {
  double begin_ms = 0, end_ms = 0;  // since the reply's first round began
  uint32_t emitted = 0, accepted = 0, width = 1;
  uint32_t text_end = 0;  // bytes of the text that stand after it
};

/// What a column wrote of a prompt, in its first repeat.
struct ComparedReply {
  Message message;                // its text, with who wrote each token
  std::vector<RaceRound> rounds;  // none of a server
  RoundTimes ms;                  // of all rounds
  double prefill_ms = 0;
  double decode_ms = 0;  // so far; of a server known at its end
  bool ended = false;

  /// Bytes of the text that stand at that time of the reply's clock.
  uint32_t text_at(double ms) const;
  /// Tokens that were out by then.
  uint32_t tokens_at(double ms) const;
};

/// The clock that all columns share.
struct RaceClock {
  std::optional<double> at_ms;  // none: the end of what there is
  bool playing = false;
};

struct MeasuredPlan {
  uint64_t id = 0;  // Compare::id; 0: read from a file
  Sweep sweep;
  uint64_t changes = 0;          // counts changes of `sweep`, so that what is made of it can be kept
  std::vector<bool> must_agree;  // by column
  std::string file;              // that it is in; empty: in none
  std::string problem;           // why it ended early, or was not written, as a sentence
  bool cancelled = false;
  // Of one that is not whole:
  std::vector<ComparisonPrompt> prompts;  // with their texts; none where they are not here
  std::string prompts_missing;            // why not, as a sentence
};

/// Why the window cannot go on with a sweep that is not whole, as a sentence; empty where it can, once the same model
/// is loaded.
std::string go_on_obstacle(const MeasuredPlan& plan);

struct ComparisonState {
  enum class Phase { idle, waiting, running, cancelling };  // waiting: for the engine to begin
  Phase phase = Phase::idle;
  SweepKind kind = SweepKind::comparison;  // of the measurement under way
  ComparisonProgress progress;
  std::string file;                     // of it; empty: it is kept nowhere
  std::vector<ComparisonPrompt> asked;  // its prompts
  std::string note;                     // why the last one could not begin, as a sentence; else empty

  CompareSetup compare_setup;
  SweepSetup sweep_setup;
  std::vector<ComparisonPrompt> bundled;  // the prompts that come with Canopy; empty until they were read
  std::string prompts_problem;            // why they could not be read

  // The last comparison, and what its columns wrote.
  std::optional<MeasuredPlan> comparison;
  std::vector<ComparisonPrompt> prompts;                                 // of it
  std::map<std::pair<uint32_t, uint32_t>, ComparedReply> replies;        // by prompt and column
  std::optional<RunKey> writing;                                         // the run under way, where it is shown
  uint64_t first_reply_id = 0, last_reply_id = 0, writing_reply_id = 0;  // ids of its replies; 0: none
  uint32_t shown_prompt = 0;
  bool follows = true;  // the shown prompt is the one that is being written
  RaceClock race;

  // The sweep that is shown: measured here, or read.
  std::optional<MeasuredPlan> sweep;
  uint32_t baseline = 0;  // of the shown sweep; a column
  SweepFiles files;       // kept sweeps and overlays

  bool busy() const { return phase != Phase::idle; }
  bool measures(SweepKind which) const { return busy() && kind == which; }
  const ComparedReply* reply(uint32_t prompt, uint32_t column) const;
  /// The end of the longest reply to the shown prompt; 0 where there is none.
  double race_end() const;
  /// Whether there is a race to play: replies, all of them whole.
  bool can_race() const { return race_end() > 0 && !writing; }
  /// The present time of the shared clock: while a column writes, that of its reply.
  double race_now() const;
};

struct SetCompareSetup {
  CompareSetup setup;
};
struct SetSweepSetup {
  SweepSetup setup;
};
struct StartComparison {};
struct StartSweep {};
/// Makes the runs that the shown sweep, which is not whole, does not have: by its own ways, prompts and settings,
/// whatever is chosen for the next one.
struct GoOnWithSweep {};
struct StopMeasuring {};
struct PauseMeasuring {
  bool paused = true;
};
struct ShowComparedPrompt {
  uint32_t prompt = 0;
};
struct SeekRace {
  std::optional<double> ms;  // none: the end
};
struct PlayRace {
  bool playing = true;
};
struct SetBaseline {  // of the shown sweep
  uint32_t column = 0;
};
struct OpenSweep {
  std::string path;
};
struct AddOverlay {
  std::string path;
};
struct DropOverlay {
  size_t index = 0;
};
using ComparisonCommand = std::variant<SetCompareSetup, SetSweepSetup, StartComparison, StartSweep, GoOnWithSweep,
                                       StopMeasuring, PauseMeasuring, ShowComparedPrompt, SeekRace, PlayRace,
                                       SetBaseline, OpenSweep, AddOverlay, DropOverlay>;

/// Applies an event of the engine. True for one that is about a comparison alone: no other part of the state must take
/// it, as its rounds may be those of another model or device.
bool update(ComparisonState& state, const Event& event);

/// What a command asks of the engine and the disk.
struct ComparisonWish {
  std::vector<Command> engine = {};
  std::optional<SweepFileRequest> read = {};
};
/// What is known outside: `obstacle` says why nothing can be measured now, else it is empty; `next_id` is the last id
/// that was given away, and is counted on.
struct ComparisonRoom {
  std::string obstacle;
  std::string file;  // for a new measurement; empty: it is kept nowhere
  uint64_t* next_id = nullptr;
};
ComparisonWish update(ComparisonState& state, const ComparisonCommand& command, const ComparisonRoom& room);

/// Takes what was read from the disk.
void end_read(ComparisonState& state, SweepFileResult result);

/// Lets the shared clock go on while it plays; it stops at the end.
void advance(ComparisonState& state, double ms);
inline bool moves(const ComparisonState& state) {
  return state.race.playing;
}
/// How many times slower than it was measured a race is played: so that it takes some ten seconds.
double race_slowdown(double end_ms);

/// The plan of a sweep: its columns and prompts.
std::vector<ComparisonColumn> columns_of(const SweepSetup& setup);
std::vector<ComparisonPrompt> prompts_of(const SweepSetup& setup, const std::vector<ComparisonPrompt>& bundled);

}  // namespace canopy::app
