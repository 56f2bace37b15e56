#pragma once
// Recordings of what another device would have done: written on a thread of their own, as a long one takes a while, to
// be opened by the window; removed with it.

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/base/background_answers.h"
#include "app/rounds/trace_log.h"
#include "app/whatif/what_if_answer.h"

namespace canopy::app {

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

}  // namespace canopy::app
