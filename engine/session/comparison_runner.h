#pragma once
// Makes the runs of a comparison (engine/comparison/sweep.h): the protocol of docs/comparing-gpus.md, for the engine's
// thread and for the command line.

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/comparison/sweep.h"
#include "engine/endpoint/endpoint_client.h"
#include "engine/sensors/device_sensors.h"
#include "engine/session/engine.h"

namespace canopy {

/// Who writes the runs of a subject: an engine, or a server.
struct ComparisonWriter {
  const Engine* engine = nullptr;
  DeviceSensors* sensors = nullptr;  // of its device; null: nothing tells its energy
  EndpointClient* server = nullptr;
  std::string server_model;  // its name there
};

/// A prompt as it is read: the turns of a chat or, for measurements of one engine, its tokens.
struct RunnerPrompt {
  std::vector<ChatTurn> turns;
  std::vector<uint32_t> ids;
};

/// A reply as it was made; of a server without rounds and ids.
struct RunnerReply {
  const MeasuredRun& run;
  const Reply& reply;
};

struct RunnerCallbacks {
  /// What is done before the first run.
  std::function<void(const std::string& stage)> stage;
  /// A run begins; done and total count runs, and seconds_left is negative while it is not known.
  std::function<void(const RunKey&, uint64_t done, uint64_t total, double seconds_left)> begin;
  /// What is done now concerns this run: its prompt is read or its reply written, measured or not.
  std::function<void(const RunKey&)> working;
  /// What a run's reply reports beside. Its stop token is not used.
  std::function<ReplyCallbacks(const RunKey&, uint32_t prompt_tokens)> reply;
  /// New text of a server.
  std::function<void(const RunKey&, std::string_view text)> server_text;
  /// A run was made and is in the sweep.
  std::function<void(const RunnerReply&)> made;
  /// More became known of a run of the sweep: whether its text is the baseline's.
  std::function<void(const MeasuredRun&)> amended;
  /// Called before each run; may wait. What was disturbed meanwhile is no part of a run.
  std::function<void()> may_pause;
  /// Whether the run that just ended is to be made again, as something held it up.
  std::function<bool()> was_disturbed;
  std::stop_token stop;
};

/// The settings of a run's reply.
ReplySettings reply_settings(const WayToDecode& way, const SweepSettings& settings);

/// Makes the runs that `sweep` does not have yet and adds them. `writers` are by subject, `prompts` as in the sweep.
/// First each contestant writes a short reply twice, which compiles its kernels and wakes the device. Then, prompt by
/// prompt, each engine reads the prompt once, with what drafts need of it, and every reply begins as a fork of that.
/// Returns false when `stop` ended it; the run under way does not count. Throws bad_input for a prompt and reply that a
/// context has no room for, and what Engine::reply() and EndpointClient::reply() throw; the sweep then has the runs
/// made so far.
bool run_comparison(Sweep& sweep, const std::vector<ComparisonWriter>& writers,
                    const std::vector<RunnerPrompt>& prompts, const RunnerCallbacks& callbacks);

/// Reads a prompt into the caches, so that a reply to it starts with its first round. False once stop was requested.
bool read_ahead(const Engine& engine, const std::vector<uint32_t>& prompt, const std::stop_token& stop);

}  // namespace canopy
