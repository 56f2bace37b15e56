#pragma once
// The journal of a sweep that is being measured, which has every run as soon as it is made; whether one that was not
// finished can go on here; and where sweeps are kept unless their user says otherwise.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/bench/prompt_file.h"
#include "engine/bench/sweep.h"

namespace canopy {

// Whether a measurement that was not finished can go on here.

/// The first thing that differs between what was measured and what would be, with both values: "its model is 'a.gguf',
/// and here it would be 'b.gguf'". Empty where one can go on with the other: everything but the date, the program and
/// the runs is equal.
std::string plan_difference(const Sweep& earlier, const Sweep& now);

// The journal of a sweep that is being measured: a line for each run, on the disk when the call that wrote it returns.
// When the sweep ends, its file is written whole and the journal removed.

/// "sweep.json.journal"
std::filesystem::path journal_path(const std::filesystem::path& file);

/// What an earlier measurement left for `file`: its journal, or the file itself where that is not complete. Nothing
/// where there is neither. Throws bad_input where it cannot be read.
std::optional<Sweep> unfinished_sweep(const std::filesystem::path& file);

class SweepJournal {
 public:
  /// Begins the journal of a sweep, with the runs that it has already. The texts of its prompts are kept beside it
  /// (keep_prompts()); empty: they are not. Throws bad_input naming path and reason where that is not possible, or
  /// where another program writes it.
  SweepJournal(const std::filesystem::path& file, const Sweep& sweep, const std::vector<MeasuredPrompt>& prompts = {});
  ~SweepJournal();
  SweepJournal(const SweepJournal&) = delete;
  SweepJournal& operator=(const SweepJournal&) = delete;

  /// Adds a run, or what became known of one later. Throws bad_input where the disk takes no more. All runs before
  /// stay.
  void add(const MeasuredRun& run);

  /// Writes the sweep's file and removes the journal, and the prompts where the sweep is complete. Throws bad_input
  /// where it cannot be written; the journal stays.
  void finish(const Sweep& sweep);

 private:
  void append(const std::string& line);

  std::filesystem::path file_, path_;
  int descriptor_ = -1;
};

// Where sweeps are kept unless their user says otherwise.

/// The folder, inside the user's data; created when missing. Throws bad_input where that is not possible.
std::filesystem::path sweep_folder();

/// A file that is not there yet, named by the device: "nvidia-h200-2026-11-24.json", "nvidia-h200-2026-11-24-2.json".
std::filesystem::path new_sweep_file(const std::filesystem::path& folder, const std::string& device);

/// Files of `folder` that look like sweeps, finished or not, the newest first. Of one that is not finished the path is
/// that of the file it will be.
struct KeptSweep {
  std::filesystem::path file;
  bool finished = false;
};
std::vector<KeptSweep> kept_sweeps(const std::filesystem::path& folder);

}  // namespace canopy
