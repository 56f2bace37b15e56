#pragma once
// Sweeps on the disk as the window sees them: those that are kept, one that is opened, those of others that lie over
// it. They are read on a thread of their own, as a file may be large and a folder may be far away.

#include <memory>
#include <string>
#include <vector>

#include "app/base/background_answers.h"
#include "engine/client/comparison_client.h"
#include "engine/comparison/sweep_name.h"

namespace canopy::app {

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

}  // namespace canopy::app
