#pragma once
// Carries out what the command line asks for: settings at the start, a trace to show, a prompt to send.

#include <string>

#include "app/run/app.h"
#include "app/settings/options.h"

namespace canopy::app {

/// Opens the trace given on the command line, at the given round.
void show_replay(App& app, const AppOptions& options);

/// The settings of the application for these options.
AppSettings settings_from(const AppOptions& options);

/// Carries out the command line by posting commands as a user would: opens the model, sends the prompt, and detects the
/// end of the reply.
class Autopilot {
 public:
  enum class State { loading, waiting_to_send, replying, succeeded, failed };

  /// model: empty: waits until the user opens one. prompt: empty: is done as soon as the model is loaded.
  Autopilot(App& app, const std::string& model, const std::string& prompt);

  /// Call after every App::pump().
  void step();
  State state() const { return state_; }
  bool done() const { return state_ == State::succeeded || state_ == State::failed; }
  /// The failure as a sentence for standard error; empty if there was none.
  std::string failure() const;

 private:
  App& app_;
  std::string prompt_;
  bool loads_;  // a model was given
  State state_ = State::loading;
};

}  // namespace canopy::app
