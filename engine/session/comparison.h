#pragma once
// Makes a comparison (engine/bench): its plan, who takes part, the runs by the protocol of docs/comparing-gpus.md, and
// whether the columns wrote the same text. For the engine's thread and for the command line.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/bench/device_sensors.h"
#include "engine/bench/prompt_file.h"
#include "engine/bench/sweep.h"
#include "engine/net/endpoint_client.h"
#include "engine/session/engine.h"
#include "engine/session/engine_client.h"
#include "engine/speculation/acceptance.h"
#include "engine/speculation/token_recycling.h"

namespace canopy {

// A comparison that was asked for as the sweep that it begins, without who takes part and without runs.

/// `commit` is the program's.
Sweep plan_of(const Compare& command, const std::string& commit);

/// The prompts as a file holds them; empty where one has more than the user's first turn.
std::vector<MeasuredPrompt> measured_prompts(const std::vector<ComparisonPrompt>& prompts);

/// Takes what an earlier measurement left in `file` into a sweep whose subjects and contestants are there. Throws
/// bad_input where the file has another plan, naming the first difference with both values; or, without `resume`, where
/// it is there at all.
void take_earlier_runs(const std::string& file, bool resume, Sweep& sweep);

// Whether the columns of a comparison wrote the same text, and where they first differ.

/// A reply's text and its tokens, as far as they are known.
struct WrittenText {
  std::string text;
  std::vector<uint32_t> ids;   // empty of a server
  std::vector<uint32_t> ends;  // by token, of a server by piece: bytes of the text that those so far completed
  uint64_t vocabulary = 0;     // Tokenizer::identity(); 0 of a server
};

/// The first token of `written` at which it differs from `reference`; nothing where they are the same. Token ids are
/// compared where both are of one vocabulary, else texts: then the token is the one that has the first differing byte,
/// by `written`'s own tokens, else by those of `reference`. Of two servers it is the piece, which mostly is a token.
std::optional<uint32_t> difference_of(const WrittenText& written, const WrittenText& reference);

/// The texts of a comparison's first repeat, each compared as soon as that is possible.
class ComparisonTexts {
 public:
  explicit ComparisonTexts(uint32_t baseline) : baseline_(baseline) {}

  /// Takes a run's text. Returns what became known by it: runs, this one or earlier ones, and where each differs.
  std::vector<std::pair<RunKey, std::optional<uint32_t>>> add(const RunKey& key, WrittenText text);

 private:
  uint32_t baseline_;
  std::map<uint32_t, WrittenText> references_;                               // by prompt
  std::map<uint32_t, std::vector<std::pair<RunKey, WrittenText>>> waiting_;  // for their prompt's reference
};

// Makes the runs of a comparison (engine/bench/sweep.h): the protocol of docs/comparing-gpus.md, for the engine's
// thread and for the command line.

/// Who writes the runs of a subject: an engine, or a server.
struct ComparisonWriter {
  const Engine* engine = nullptr;
  DeviceSensors* sensors = nullptr;  // of its device; null: nothing tells its energy
  EndpointClient* server = nullptr;
  std::string server_model;  // its name there
  bool is_canopy = false;    // the server tells its rounds
};

/// A prompt as it is read: the turns of a chat or, for measurements of one engine, its tokens.
struct RunnerPrompt {
  std::vector<ChatTurn> turns;
  std::vector<uint32_t> ids;
};

/// A reply as it was made; of a server that is no Canopy without rounds and ids.
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
  /// What a reply is written with beside its way's and the sweep's settings.
  std::function<void(ReplySettings&)> settings;
  /// New text of a server that is no Canopy.
  std::function<void(const RunKey&, std::string_view text)> server_text;
  /// An event of a reply of a Canopy elsewhere, without the reply's id.
  std::function<void(const RunKey&, Event event)> server_event;
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

/// Has replies of an engine begin with nothing learnt, and gives back at its end what was: the table of recycled tokens
/// and what is known of drafts that cost no pass. Neither a measurement nor what came before it teaches the other. The
/// engine must outlive it.
class EmptySources {
 public:
  explicit EmptySources(const Engine& engine);
  ~EmptySources();
  EmptySources(const EmptySources&) = delete;
  EmptySources& operator=(const EmptySources&) = delete;

  /// Forgets what was learnt since.
  void empty();

 private:
  const Engine& engine_;
  RecyclingTable recycled_;
  DepthCalibrator known_;  // of drafts that cost no pass
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

// Who takes part in a comparison: the loaded model, and what is opened beside it for as long as that takes.

/// The model that is loaded.
struct LoadedSubject {
  const Engine* engine = nullptr;  // null: none
  std::shared_ptr<Device> device;
  LoadModel opened;  // what had opened it
};

struct SubjectCallbacks {
  std::function<void(const std::string& stage)> stage;
  std::stop_token stop;
};

class ComparisonSubjects {
 public:
  using OpenDevice = std::function<std::unique_ptr<Device>(const std::string& selector)>;
  using NameDevice = std::function<std::string(const std::string& selector)>;

  /// Adds the subjects and contestants of these columns to `sweep`, and opens what is not there yet. Throws unavailable
  /// where a column needs the loaded model and there is none; bad_input where a way needs a drafter and the subject has
  /// none; cancelled; and what Engine::open() throws, with the column's name in front.
  ComparisonSubjects(const LoadedSubject& loaded, const OpenDevice& open_device, const NameDevice& device_uuid,
                     double calibration_s, const std::vector<ComparisonColumn>& columns,
                     const SubjectCallbacks& callbacks, Sweep& sweep);

  /// By subject of the sweep.
  const std::vector<ComparisonWriter>& writers() const { return writers_; }

 private:
  /// What a subject was asked for as, to find it again.
  struct Wanted {
    std::string model, drafter, device, server;
    bool operator==(const Wanted&) const = default;
  };
  struct Opened {
    std::string selector;
    std::shared_ptr<Device> device;
    std::unique_ptr<Engine> engine;
    std::unique_ptr<EndpointClient> server;
  };

  uint32_t subject_for(const ComparisonColumn& column, const SubjectCallbacks& callbacks, Sweep& sweep);
  SweepSubject open_server(const ComparisonColumn& column, const SubjectCallbacks& callbacks, ComparisonWriter& writer);
  SweepSubject open_engine(const Wanted& wanted, const SubjectCallbacks& callbacks, ComparisonWriter& writer);
  std::shared_ptr<Device> device_for(const std::string& selector);
  DeviceSensors* sensors_of(const Device& device);
  uint32_t target_of(const std::string& model);

  const LoadedSubject& loaded_;
  const OpenDevice& open_device_;
  const NameDevice& device_uuid_;
  double calibration_s_;
  uint32_t widest_;                  // rows of the widest pass of a column
  std::vector<Wanted> wanted_;       // by subject
  std::vector<std::string> models_;  // paths, by target
  std::vector<Opened> opened_;
  std::vector<std::pair<const Device*, std::unique_ptr<DeviceSensors>>> sensors_;
  std::vector<ComparisonWriter> writers_;  // by subject
};

/// What a sweep's file says of an engine.
SweepSubject describe_subject(const Engine& engine, const DeviceSensors* sensors);

}  // namespace canopy
