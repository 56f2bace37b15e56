#pragma once
// The journal of a sweep that is being measured: a line for each run, on the disk when the call that wrote it returns.
// When the sweep ends, its file is written whole and the journal removed.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/comparison/prompt_file.h"
#include "engine/comparison/sweep.h"

namespace canopy {

/// "sweep.json.journal"
std::filesystem::path journal_path(const std::filesystem::path& file);

/// What an earlier measurement left for `file`: its journal, or the file itself where that is not complete. Nothing
/// where there is neither. Throws bad_input where it cannot be read.
std::optional<Sweep> unfinished_sweep(const std::filesystem::path& file);

class SweepJournal {
 public:
  /// Begins the journal of a sweep, with the runs that it has already. The texts of its prompts are kept beside it
  /// (sweep_prompts.h); empty: they are not. Throws bad_input naming path and reason where that is not possible, or
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

}  // namespace canopy
