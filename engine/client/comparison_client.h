#pragma once
// Comparisons and sweeps at the seam of the engine: what a front end asks for, and what it hears of it.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/comparison/sweep.h"
#include "engine/text/chat_turn.h"

namespace canopy {

/// A column: a way to decode, with the loaded model or with another one, another drafter, another device or a server.
struct ComparisonColumn {
  WayToDecode way;
  std::string model;    // path; empty: the loaded one. Of a server, its name there
  std::string drafter;  // path; empty: the loaded model's own, or for another model the one that fits
  std::string device;   // selector; empty: that of the loaded model
  std::string server;   // "http://127.0.0.1:8000/v1"; empty: none. Its speed and text alone are compared

  /// Whether it is written with what is loaded.
  bool is_loaded() const { return model.empty() && drafter.empty() && device.empty() && server.empty(); }
  bool operator==(const ComparisonColumn&) const = default;
};

struct ComparisonPrompt {
  std::string id, category;
  std::vector<ChatTurn> turns;  // the last one is the user's
};

/// Has every column write every prompt `settings.repeats` times, in an order that is drawn anew for each prompt. Each
/// prompt is read once a device and model and forked for each reply. Ends in one ComparisonFinished, also where it was
/// cancelled, or in one Failure where it could not begin, or what failed left nothing to go on with. Models beside the
/// loaded one are opened for it, and closed at its end.
struct Compare {
  uint64_t id = 0;  // comes back in the answers
  SweepKind kind = SweepKind::comparison;
  std::vector<ComparisonColumn> columns;
  std::vector<ComparisonPrompt> prompts;
  SweepSettings settings;
  uint32_t baseline = 0;  // index of a column
  /// Where the sweep is written. Its journal beside it has every run as soon as it is made. Empty: nowhere.
  std::string file;
  /// Goes on with what the file's journal, or the file, has of the same plan; else one that is there is an error.
  bool resume = false;
  /// Not 0: replies of the first repeat are published as the events of a reply, whose id is this and one more for each
  /// run (ComparisonRunBegun names it).
  uint64_t first_reply_id = 0;
};

/// Ends a running or waiting comparison within a pass. All whole runs are kept.
struct CancelComparison {};

/// Holds a running comparison before its next reply, or lets it go on.
struct PauseComparison {
  bool paused = true;
};

/// The comparison is ready to begin: who takes part, and the runs that an earlier measurement made.
struct ComparisonBegun {
  uint64_t id = 0;
  std::shared_ptr<const Sweep> sweep;
  std::vector<bool> must_agree;  // by column: its text is the baseline's unless something is wrong
};

struct ComparisonProgress {
  uint64_t id = 0;
  std::string stage;  // "Opening Qwen3-4B", "Warming up", "Measuring", "Paused"
  uint64_t done = 0;  // runs; never falls
  uint64_t total = 0;
  double seconds_left = -1;  // negative when unknown
  bool paused = false;
};

struct ComparisonRunBegun {
  uint64_t id = 0;
  RunKey key;
  uint64_t reply_id = 0;  // of the reply's events; 0: they are not published
};

/// A run was made, or more became known of an earlier one: whether its text is the baseline's.
struct ComparisonRun {
  uint64_t id = 0;
  MeasuredRun run;
};

struct ComparisonFinished {
  uint64_t id = 0;
  std::shared_ptr<const Sweep> sweep;
  bool cancelled = false;
  std::string file;     // that it was written to; empty: nowhere
  std::string problem;  // why it ended early, or was not written, as a sentence; else empty
};

}  // namespace canopy
