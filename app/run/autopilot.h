#pragma once
// What the command line asks of the application: how it begins, the trace it shows, the prompt it sends.

#include <string>

#include "app/run/app.h"
#include "app/settings/options.h"

namespace canopy::app {

/// Opens the trace that the command line names, on the round that it names.
void show_replay(App& app, const AppOptions& options);

/// How the command line wants the application to begin.
AppSettings settings_from(const AppOptions& options);

/// Does what the command line asked for, through the same commands a user's clicks would post: opens the model, sends
/// the prompt, and notices the end.
class Autopilot {
 public:
  enum class State { loading, waiting_to_send, replying, succeeded, failed };

  /// model empty: waits for the user's. prompt empty: done as soon as the model is there.
  Autopilot(App& app, const std::string& model, const std::string& prompt);

  /// Call after every App::pump().
  void step();
  State state() const { return state_; }
  bool done() const { return state_ == State::succeeded || state_ == State::failed; }
  /// What failed, for stderr; empty otherwise.
  std::string failure() const;

 private:
  App& app_;
  std::string prompt_;
  bool loads_;  // whether it was given a model
  State state_ = State::loading;
};

}  // namespace canopy::app
