#pragma once
// The interface between a front end (window, command line) and the engine: the front end posts commands and polls
// immutable events, which wait in a bounded queue. A front end never uses device, model or session directly; the engine
// never waits for a front end.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/numbers.h"
#include "engine/bench/sweep.h"
#include "engine/compute/types.h"
#include "engine/format/quantize.h"
#include "engine/speculation/calibration.h"
#include "engine/speculation/controller.h"
#include "engine/speculation/ddtree.h"
#include "engine/speculation/pass_cost.h"
#include "engine/speculation/roofline.h"
#include "engine/speculation/round_record.h"
#include "engine/speculation/sampler.h"
#include "engine/text/chat_template.h"
#include "engine/text/chat_turn.h"
#include "engine/trace/trace_format.h"

namespace canopy {

// Comparisons and sweeps at the seam of the engine: what a front end asks for, and what it hears of it.

/// A column: a way to decode, with the loaded model or with another one, another drafter, another device or a server.
struct ComparisonColumn {
  WayToDecode way;
  std::string model;    // path; empty: the loaded one. Of a server, its name there
  std::string drafter;  // path; empty: the loaded model's own, or for another model the one that fits
  std::string device;   // selector; empty: that of the loaded model
  /// "http://127.0.0.1:8000/v1"; empty: none. Of another server than a Canopy its speed and text alone are compared.
  std::string server;
  std::string key = {};  // that the server asks for; empty: none

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

// The measured costs of passes for a front end, with the roofline's predictions beside them.

/// A measured pass of the target with its predicted time, in milliseconds.
struct MeasuredPass {
  uint32_t width = 0;    // rows
  uint32_t context = 0;  // committed positions before it
  double ms = 0;
  double fitted_ms = 0;  // by the roofline fitted to these very passes

  /// Relative error of the fit: positive where the pass took longer than predicted.
  double residual() const { return fitted_ms > 0 ? ms / fitted_ms - 1 : 0; }
};

/// Immutable once published.
struct CostSnapshot {
  CostTable table;                   // answers for any width and context, between its points and beyond
  Roofline fitted;                   // its bare form is fitted.bare()
  std::vector<MeasuredPass> passes;  // by context, then width
  double fit_error = 0;              // mean of |residual()| over the passes
};

/// Fits the roofline to the table, which must hold at least one pass. Throws the errors of Roofline.
CostSnapshot cost_snapshot(const CostTable& table, const Roofline& bare);

// What the adaptive mode has learnt about a drafter, for a front end.

/// Calibration and reliability of the drafter at one depth.
struct DepthLearnt {
  DepthCalibration calibration;             // log q~ = min(0, scale * log q + shift)
  std::vector<ReliabilityBin> reliability;  // ascending q: how often the target agreed
};

/// Immutable once published.
struct LearntSnapshot {
  uint64_t drafts = 0;                       // number of drafts that the calibration was learnt from, in all replies
  std::vector<DepthLearnt> depths;           // [block - 1], depth 1 first
  std::vector<ReliabilityBin> reliability;   // of all depths together
  PromiseRecord promises;                    // promised against accepted tokens, in all replies
  std::vector<HindsightCurve::Point> tree;   // mean tokens emitted by width, in hindsight, in this reply
  std::vector<HindsightCurve::Point> chain;  // likewise chains, width = tokens + 1
};

LearntSnapshot learnt_snapshot(const Controller& controller, uint32_t block);

// ---- commands -------------------------------------------------------------------------------------------------------

/// Opens a model on a device; replaces the current one only when everything succeeded. Context and weight types are
/// planned as if the current model's memory were free. When the device cannot hold both, the current model is closed
/// after the new one's files are checked and its memory is planned. If loading then fails or is cancelled, the current
/// model is opened again and computes its whole next prompt; if that fails too, the Failure says so.
///
/// A path that is_server_address() is an engine elsewhere: replies are then written there, by a Canopy that serves or
/// by another OpenAI-compatible server, and what is measured or checked with a model of this machine is refused. Only
/// `key` counts beside it.
struct LoadModel {
  std::string path;     // a GGUF file, a Hugging Face folder, or a model in its cache (engine/format/model_paths.h)
  std::string device;   // as choose_device() takes it: "cuda:0", a part of a name; empty chooses the best
  std::string drafter;  // as choose_drafter() takes it: a path, "mtp"; empty: what there is for the model
  bool draft = true;    // false: none at all
  CacheType kv = CacheType::f16;
  uint32_t context = 0;  // positions of the K/V cache; 0 chooses from the model and from memory
  QuantizeOnLoad quantize = QuantizeOnLoad::none;
  uint32_t threads = 0;  // of a device on the processor, at most as many as it has; 0: as the program was started
  std::string key = {};  // that a server asks for; empty: none
};

/// Whether the path of a model is the address of a server: "http://gpu-box:8737".
bool is_server_address(std::string_view path);

/// Answers a conversation. reply_id comes back in every event of this reply.
struct Generate {
  uint64_t reply_id = 0;
  std::vector<ChatTurn> turns;  // a system prompt is a turn of its own, the first
  std::string raw_prompt;       // used as it is, without a chat template, when turns is empty
  SamplingSettings sampling;
  uint32_t max_tokens = 512;             // of new ones
  std::optional<DecodeMode> mode;        // none: adaptive
  uint32_t budget = 16;                  // of mode tree
  DraftSources sources = kUsualSources;  // of modes that draft: those that are asked, where they are there
  std::string chat = {};      // that the reply is kept under for later drafts (ForgetReplies); empty: it is not kept
  bool rounds = false;        // publish a RoundFinished for each
  bool probabilities = true;  // with rounds: fill RoundNode::log_p too, which makes each round slightly slower
  std::optional<bool> thinking = {};  // none: as the template does by itself (ThinkingForm)
  bool stop_loops = false;            // end a reply that repeats itself (LoopGuard), with the reason `repeats`
  /// Goes on with a reply that a limit or the user ended: all its tokens, `ids` and then `ending`. The whole reply is
  /// the one that a larger limit would have given, at any temperature. Counts and text of the reply's events include
  /// what was begun; rounds and speeds are those of the new tokens. Empty: a new reply.
  TurnTokens begun = {};
};

/// Counts the tokens of a text as it stands in a question, in the vocabulary of the loaded model. Answered by one
/// TokensCounted, between two replies; without a model there is no answer.
struct CountTokens {
  uint64_t id = 0;  // comes back in the answer
  std::string text;
};

/// Forgets the replies of a chat that later drafts may come from, of all models; those of all chats where `chat` is
/// empty. Answered by nothing, or by one Failure.
struct ForgetReplies {
  std::string chat;
};

/// Ends the reply under way; its text so far stays.
struct StopReply {};

/// Cancels a load in progress; the previous model stays, or is opened again if it was closed (LoadModel).
struct CancelLoad {};

/// Measures the cost of passes of the loaded target and its drafter, if any, saves it in the cache folder and uses it.
/// Ends in one Calibrated or one Failure. The next reply computes its whole prompt, since the calibration overwrites
/// the K/V cache.
struct Calibrate {
  double seconds = 90;  // at most; positive
  /// Nobody asked for it: where other programs use the processor, or the machine runs on its battery, it is refused as
  /// if it had been cancelled.
  bool when_idle = false;
};

/// Cancels a running or queued calibration, which ends in a Failure of kind cancelled; the costs known before stay in
/// use.
struct CancelCalibration {};

/// Measures the device with the loaded model or, without one, with a model of random weights on the device named: what
/// it is, whether it is exact and what passes take. Ends in one DeviceReported or one Failure. The next reply computes
/// its whole prompt, since the measurement overwrites the K/V cache.
struct ReportDevice {
  std::string device;   // as LoadModel::device; not used where a model is loaded
  double seconds = 60;  // for the passes; positive. Their first round may take longer
};

/// Cancels a running or queued ReportDevice, which ends in a Failure of kind cancelled.
struct CancelReport {};

/// Records the replies posted after it into a new file, until StopRecording or another RecordTrace, or until another
/// model is loaded. An existing trace at that path is replaced; another file there is refused.
struct RecordTrace {
  std::string path;
  bool redact = false;  // write no text and no token ids (engine/trace/trace_records.h)
  bool dense = false;   // StopRecording adds the draft behind every token (engine/session/reply_trace.h); not redacted
};

struct StopRecording {};

/// Adds the draft behind every token to a trace that was recorded with the loaded pair. Ends in one TraceDensified.
struct DensifyTrace {
  std::string path;
};

/// Cancels drafts behind every token, of a DensifyTrace or of a recording that ends; running or waiting. What is
/// drafted by then stays in the file, and a later DensifyTrace goes on from there.
struct CancelDensify {};

/// Gives back the memory of the model in use and closes its device, after all that was posted before it: replies and
/// loads end by themselves first. A recording ends. Answered by one ModelReleased, also where there is no model.
struct ReleaseModel {};

/// Checks a recording, made here or elsewhere: writes its replies again with the model in use, plainly, and compares
/// the tokens. VerifyProgress follows, then RecordingVerified; or a Failure where it cannot be checked, as with another
/// model.
struct VerifyRecording {
  std::string path;
};

/// Cancels a running or waiting check, which ends in a Failure of kind cancelled.
struct CancelVerification {};

inline constexpr uint16_t kServePort = 8737;

/// Serves the loaded model, and each one that is loaded later, to clients of OpenAI's interface until StopServing. A
/// Serving tells when that begins, or why it cannot. Its replies wait while the engine does anything else.
struct Serve {
  std::string host = "127.0.0.1";    // address to listen at; another than this machine's own needs a key
  uint16_t port = kServePort;        // 0 takes one that is free
  std::string key;                   // that clients must name; empty: none
  std::vector<std::string> hosts;    // names by which clients call this machine, beside those of its loopback
  std::vector<std::string> origins;  // "https://chat.example": pages that may ask
};

/// Ends all connections, and the replies of clients.
struct StopServing {};

/// Ends a served reply within a pass. Does nothing where it is over.
struct StopServed {
  uint64_t reply_id = 0;
};

/// A served reply that is paused gets no passes until it goes on.
struct PauseServed {
  uint64_t reply_id = 0;
  bool paused = true;
};

/// Records a served reply into a new file, whole: at once where it is over, and as long as it is kept, else at its end.
/// Answered by one ServedRecorded. An existing trace at that path is replaced; another file there is refused.
struct RecordServed {
  uint64_t reply_id = 0;
  std::string path;
};

using Command =
    std::variant<LoadModel, Generate, StopReply, CancelLoad, Calibrate, CancelCalibration, ReportDevice, CancelReport,
                 RecordTrace, StopRecording, DensifyTrace, CancelDensify, CountTokens, ReleaseModel, Compare,
                 CancelComparison, PauseComparison, VerifyRecording, CancelVerification, ForgetReplies, Serve,
                 StopServing, StopServed, PauseServed, RecordServed>;

// ---- events ---------------------------------------------------------------------------------------------------------

struct LoadProgress {
  std::string stage;  // e.g. "Loading weights"
  uint64_t done = 0;
  uint64_t total = 0;        // bytes or steps; 0 when unknown
  bool in_bytes = false;     // what done and total count
  double seconds_left = -1;  // negative when unknown
};

/// The pages of a model's K/V cache, which all resident texts share.
struct CacheUse {
  uint32_t pages = 0;           // in all
  uint32_t used = 0;            // by any text
  uint32_t shared = 0;          // of these, by more than one
  uint32_t texts = 0;           // resident ones that hold something
  uint32_t page_positions = 0;  // tokens that a page has room for
};

/// Bytes on the device, for the memory bar. Published with ModelReady and after each reply.
struct MemoryUse {
  uint64_t weights = 0;    // of the target
  uint64_t drafter = 0;    // all of it: weights, cache, working memory; 0 without one
  uint64_t cache = 0;      // keys and values of the committed text
  uint64_t states = 0;     // kept of recurrent layers, however long the text is
  uint64_t tree = 0;       // those of the draft tree's rows
  uint64_t working = 0;    // activations and logits
  uint64_t reserve = 0;    // set aside for pipelines, staging and partial results
  uint64_t context = 0;    // positions that `cache` holds: it grows in proportion
  uint64_t rows = 0;       // of a pass and of the largest tree: `tree` grows in proportion
  uint64_t budget = 0;     // all that the device may hold
  uint64_t available = 0;  // that it may still allocate now, beside what is listed here and what others use
  CacheUse pages = {};     // of `cache`

  uint64_t total() const { return weights + drafter + cache + states + tree + working + reserve; }
};

/// Whether a device keeps the numeric contract with a model (self_test.h).
enum class SelfTest { not_run, passed, failed };

struct ModelReady {
  std::string name;          // e.g. "Smollm2 135M 8k Lc100K Mix1 Ep2"
  std::string file_name;     // last component only
  std::string architecture;  // e.g. "llama"
  std::string quantization;  // of the file, e.g. "Q4_1"
  std::string quantized_to;  // on load, e.g. "Q8_0"; empty where the file's types were kept
  std::string weights_note;  // what was quantized, as a sentence; likewise
  std::string kernels_note;  // that products round activations to 8 bits, as a sentence; empty where they do not
  uint64_t parameters = 0;
  uint64_t weight_bytes = 0;
  uint32_t context = 0;        // positions of the K/V cache
  uint32_t model_context = 0;  // what the model was trained for
  std::string device;
  std::string device_type;  // "discrete", "integrated", "cpu", "software", ...
  std::string driver;
  std::string backend;          // Backend::name
  std::string kv_type;          // "f16" or "f32"
  std::string drafter;          // last component of its path, or "MTP head" of the model's own; empty without one
  DraftSources drafted_by = 0;  // of kFromModels, what that is; 0 without one
  std::string drafter_kind;     // of a block drafter: "DFlash", "DSpark", ...; empty for others
  std::string drafter_note;     // a sentence: why what could draft was left out; empty where nothing was
  /// What else the processor does then takes time from the device.
  bool on_processor() const { return server.empty() && is_on_processor(device_type); }
  std::vector<std::string> warnings;
  MemoryUse memory;
  uint32_t block = 0;                         // rows of a drafter's pass: the tree is at most block - 1 deep; 0 without
  std::shared_ptr<const TokenTexts> texts;    // of all tokens; never null
  std::shared_ptr<const CostSnapshot> costs;  // null where nothing was measured
  SelfTest self_test = SelfTest::not_run;     // of this device with this model
  std::string self_test_note;                 // what was compared, or what differed first, as a sentence
  uint64_t vocabulary = 0;                    // Tokenizer::identity(): TurnTokens hold ids of this vocabulary
  ThinkingForm thinking = {};                 // what its chat template knows of thinking
  std::string server = {};   // host and port of the machine that writes: "gpu-box:8737"; empty: this one
  bool tells_rounds = true;  // false: a server that is no Canopy
};

struct PrefillProgress {
  uint64_t reply_id = 0;
  uint32_t done = 0;
  uint32_t total = 0;  // tokens
};

/// The prompt is read and the reply has its first (new) token, which is the root of the first round.
struct ReplyStarted {
  uint64_t reply_id = 0;
  uint32_t prompt_tokens = 0;
  uint32_t reused_tokens = 0;  // of the prompt, already in the cache
  double prefill_ms = 0;
  uint32_t first_token = 0;
  /// Of a reply that goes on: bytes of its text that stand. The text deltas follow them; what was shown behind them, a
  /// character cut in two or the beginning of a stop string, comes again as it reads now.
  uint32_t begun_bytes = 0;
  /// The ids that first_token follows: of the prompt, and of what a reply that goes on had.
  std::shared_ptr<const std::vector<uint32_t>> before = nullptr;
};

/// New text of a reply. text is whole UTF-8 characters and may be empty.
struct TextDelta {
  uint64_t reply_id = 0;
  std::string text;
  uint32_t reply_tokens = 0;     // so far
  uint32_t context_used = 0;     // positions
  double tokens_per_second = 0;  // decoding only
  ThoughtPart thought = {};      // of the reply's text so far, this included
};

/// A committed round of a reply; published after the TextDelta with its text.
///
/// Which text a token wrote: token i of the round wrote bytes [text_ends[i - 1], text_ends[i]) of the reply's text, the
/// first of the round from text_begin on. A character that several tokens spell belongs to the one that completes it,
/// the others and control tokens have none. The ranges of a reply follow each other without a gap; the first token of
/// all (ReplyStarted) has what lies before the first text_begin. Text that may begin a stop string is held back and one
/// that does is never shown, so clamp the ranges to the text there is; bytes behind the last range belong to the last
/// token.
///
/// Which node a token is: emitted[i] with i < accepted is the accepted node of depth i + 1, the last is the target's
/// own (the bonus), and the next round's root.
struct RoundFinished {
  uint64_t reply_id = 0;
  std::shared_ptr<const RoundRecord> round;
  uint32_t first_index = 0;  // of emitted[0] in the whole reply, whose first token has 0
  uint32_t text_begin = 0;
  std::vector<uint32_t> text_ends;  // [emitted]
  /// True when too many events were waiting to be polled (EventQueue): nodes and candidate widths were dropped, the
  /// other fields are complete.
  bool abridged = false;
};

struct ReplyFinished {
  uint64_t reply_id = 0;
  FinishReason reason = FinishReason::stop_token;
  uint32_t prompt_tokens = 0;
  uint32_t reused_tokens = 0;  // of the prompt, already in the cache
  uint32_t reply_tokens = 0;
  uint32_t context_used = 0;
  double prefill_ms = 0;
  double decode_ms = 0;
  double tokens_per_second = 0;
  DecodeMode mode = DecodeMode::ar;
  double tau = 0;                   // tokens a round
  double ar_tokens_per_second = 0;  // what autoregressive decoding was measured to reach here; 0 where it was not
  TurnTokens tokens = {};  // tokens of its text, for ChatTurn::tokens; empty when they do not spell the text exactly
  PlainBeside plain = {};  // not known of a reply that was stopped before enough of it was plain
};

/// The costs that are in use from now on.
struct Calibrated {
  std::shared_ptr<const CostSnapshot> costs;
};

/// What a ReportDevice is doing.
struct ReportProgress {
  LoadProgress step;
};

/// The report that a ReportDevice asked for, and the part of it that is worth showing.
struct DeviceReported {
  std::shared_ptr<const std::string> json;  // the file to send (docs/measurements.md); never null
  std::string device;
  std::string shape;                                // of the model: "llama-30x576-q4_1"
  std::string kernels;                              // their family: "matrix"
  std::string self_test;                            // what it found, as a sentence; empty where it did not run
  std::string problem;                              // why no passes were measured, as a sentence; else empty
  std::vector<std::pair<uint32_t, double>> passes;  // rows and milliseconds, at the shortest context, ascending
  double weights_gb_s = 0;                          // that a pass of one row reads; 0 where it was not measured
  double peak_gb_s = 0;                             // that the device was measured to read
  std::string backend = {};                         // "vulkan" or "cuda"
};

/// The controller's statistics at the end of a reply that drafted; published before its ReplyFinished.
struct Learnt {
  uint64_t reply_id = 0;
  std::shared_ptr<const LearntSnapshot> learnt;
};

/// The state of the recording; published when it begins, after each reply and when it ends.
struct Recording {
  bool active = false;
  std::string file_name;  // last component of the path
  uint64_t bytes = 0;
  uint64_t rounds = 0;
  std::string problem;  // why it ended by itself, as a sentence; else empty
};

/// How far a DensifyTrace is, or a StopRecording that adds drafts; in tokens.
struct DensifyProgress {
  uint64_t done = 0, total = 0;
};

struct TraceDensified {
  std::string path;
  uint64_t added = 0;      // drafts; 0 where not all are there
  std::string problem;     // why they are not all there, as a sentence; else empty
  bool cancelled = false;  // they are not all there, as CancelDensify asked; without a problem
};

/// A failed command, to be shown to the user. The engine stays usable.
struct Failure {
  ErrorKind kind = ErrorKind::bad_input;
  std::string title;                 // what failed, e.g. "The model could not be opened"
  std::string detail;                // actual and allowed values, and what to do
  uint64_t reply_id = 0;             // 0 when no reply was under way
  bool would_fit_quantized = false;  // for a load: it would succeed with LoadModel::quantize = automatic
  uint32_t prompt_tokens = 0;        // of a prompt that the context cannot hold; else 0
};

/// The answer to ReleaseModel: the engine holds no model and no device now.
struct ModelReleased {
  LoadModel opened;  // what had opened the model: posted again, it brings it back. Its path is empty if there was none
};

/// The answer to CountTokens.
struct TokensCounted {
  uint64_t id = 0;
  uint64_t vocabulary = 0;  // that they were counted in
  uint32_t tokens = 0;      // 0: they could not be counted
};

struct VerifyProgress {
  uint64_t reply = 0, replies = 0;  // from 0
  uint64_t done = 0, total = 0;     // tokens of that reply
};

/// What a check of a recording found.
struct RecordingVerified {
  std::string path;
  std::string recorded_on;  // device; foreign text
  uint64_t replies = 0;     // that were compared, the one that differs included
  uint64_t tokens = 0;      // recorded ones of them
  uint64_t skipped = 0;     // replies without a prompt or a first token
  std::string difference;   // the first, as a sentence; empty: the text is the same
};

/// Whether the model is served. Published when that changes, and with the number of clients that wait.
struct Serving {
  bool active = false;
  std::string url;       // "http://127.0.0.1:8737/v1"; empty where it is not
  std::string model;     // its name for clients; likewise
  uint32_t waiting = 0;  // replies whose turn has not come
  std::string problem;   // why it cannot be served, as a sentence; else empty
};

/// Ids of served replies, from here on; those of a front end are smaller.
inline constexpr uint64_t kFirstServedReply = uint64_t{1} << 62;

/// The turn of a client's request has come: the events of its reply follow, which ends in one ReplyFinished or Failure.
struct ServedBegun {
  Generate asked;      // as if the front end had asked for it; `raw_prompt` of a completion is its prompt's text
  std::string client;  // where it asks from, for people: "127.0.0.1"
  std::string path;    // that it asked for: "/v1/chat/completions"
};

/// The answer to RecordServed.
struct ServedRecorded {
  uint64_t reply_id = 0;
  std::string path;
  std::string problem;  // why it was not recorded, as a sentence; else empty
};

using Event = std::variant<LoadProgress, ModelReady, PrefillProgress, ReplyStarted, TextDelta, RoundFinished, Learnt,
                           ReplyFinished, CalibrationProgress, Calibrated, ReportProgress, DeviceReported, MemoryUse,
                           Recording, DensifyProgress, TraceDensified, Failure, TokensCounted, ModelReleased,
                           ComparisonBegun, ComparisonProgress, ComparisonRunBegun, ComparisonRun, ComparisonFinished,
                           VerifyProgress, RecordingVerified, Serving, ServedBegun, ServedRecorded>;

/// A device in the list of a front end.
struct DeviceChoice {
  std::string selector;  // pass this as LoadModel::device
  std::string name;
  std::string type;
  bool usable = false;
  std::string reason;              // why not, when not usable
  uint64_t memory_bytes = 0;       // its own heaps together; an integrated or software device shares them with the CPU
  std::string driver = {};         // as ModelReady names it
  std::string words = {};          // driver and version for a line of a list: "Vulkan 1.3, radv Mesa 25.2"
  std::string details = {};        // the same with nothing left out, a property on each line
  std::string backend = {};        // Backend::name: "cuda"
  std::string backend_title = {};  // "CUDA"
  std::string same_gpu = {};       // the selector of the same GPU in another backend, if it has one
  bool preferred = false;          // what an empty LoadModel::device chooses
};

/// Thread-safe handle of an engine. Implementations: the real engine thread, a scripted one in tests.
class EngineClient {
 public:
  virtual ~EngineClient() = default;

  /// Queues a command; never blocks.
  virtual void post(Command command) = 0;

  /// Takes the events published since the last call, oldest first; never blocks.
  virtual std::vector<Event> poll() = 0;

  /// Called from the engine's thread after each published event, e.g. to wake the window. Must not block.
  virtual void set_wake(std::function<void()> wake) = 0;

  /// The devices of this machine, listed when the engine was made.
  virtual std::vector<DeviceChoice> devices() const = 0;
};

// The queue of events from the engine to a front end. It is bounded in size, since the front end may not poll for a
// while and the engine never waits for it.

/// Thread-safe.
class EventQueue {
 public:
  /// Bytes of nodes and candidate widths that may wait: some thousand rounds of large trees.
  static constexpr size_t kMostWaiting = size_t{64} << 20;

  explicit EventQueue(size_t most_waiting = kMostWaiting) : most_waiting_(most_waiting) {}

  /// Appends an event, or merges it into the last one: progress replaces progress, text is appended to text. When more
  /// than kMostWaiting bytes wait, the oldest rounds lose their nodes and candidate widths (RoundFinished::abridged); a
  /// few hundred bytes of each round remain.
  void push(Event event);

  /// Removes and returns all waiting events, oldest first.
  std::vector<Event> take();

 private:
  void abridge_oldest();

  const size_t most_waiting_;
  std::mutex mutex_;
  std::vector<Event> events_;
  size_t waiting_ = 0;  // bytes of what abridge_oldest() could drop
  size_t whole_ = 0;    // index in events_ before which every round is abridged
};

/// Bytes of the parts of a record that abridging removes (nodes and candidate widths).
size_t bulk_of(const RoundRecord& record);

}  // namespace canopy
