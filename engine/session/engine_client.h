#pragma once
// The seam between a front end (window, command line) and the engine: commands go down, immutable events come up.
// A front end never touches device, model or session; the engine never waits for a front end.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/error.h"
#include "engine/format/quantize_on_load.h"
#include "engine/session/round_record.h"
#include "engine/speculation/sampling_settings.h"
#include "engine/text/chat_turn.h"

namespace canopy {

// ---- commands -------------------------------------------------------------------------------------------------------

/// Opens a model on a device; replaces the current one only when everything succeeded.
struct LoadModel {
  std::string path;     // a GGUF file or a Hugging Face folder
  std::string device;   // index, part of a name, or a type; empty chooses the best
  std::string drafter;  // a DFlash drafter for it; empty: the one that comes with Canopy, where it fits the model
  bool draft = true;    // false: none at all
  bool f32_kv = false;
  uint32_t context = 0;  // positions of the K/V cache; 0 chooses from the model and from memory
  QuantizeOnLoad quantize = QuantizeOnLoad::none;
};

/// Answers a conversation. reply_id comes back in every event of this reply.
struct Generate {
  uint64_t reply_id = 0;
  std::vector<ChatTurn> turns;
  std::string raw_prompt;  // used as it is, without a chat template, when turns is empty
  SamplingSettings sampling;
  uint32_t max_tokens = 512;
  std::optional<DecodeMode> mode;  // none: adaptive where there is a drafter; without one always plain decoding
  uint32_t budget = 16;            // of mode tree
  bool rounds = false;             // publish a RoundFinished for each; who asks for them must poll
};

/// Ends the reply under way; its text so far stays.
struct StopReply {};

/// Abandons a load under way; the previous model stays.
struct CancelLoad {};

using Command = std::variant<LoadModel, Generate, StopReply, CancelLoad>;

// ---- events ---------------------------------------------------------------------------------------------------------

struct LoadProgress {
  std::string stage;  // e.g. "Loading weights"
  uint64_t done = 0;
  uint64_t total = 0;        // bytes or steps; 0 when unknown
  bool in_bytes = false;     // what done and total count
  double seconds_left = -1;  // negative when unknown
};

struct ModelReady {
  std::string name;          // e.g. "Smollm2 135M 8k Lc100K Mix1 Ep2"
  std::string file_name;     // last component only
  std::string architecture;  // e.g. "llama"
  std::string quantization;  // of the file, e.g. "Q4_1"
  std::string quantized_to;  // on load, e.g. "Q8_0"; empty where the file's types were kept
  std::string weights_note;  // what was quantized, as a sentence; likewise
  uint64_t parameters = 0;
  uint64_t weight_bytes = 0;
  uint32_t context = 0;        // positions of the K/V cache
  uint32_t model_context = 0;  // what the model was trained for
  std::string device;
  std::string device_type;  // "discrete", "integrated", "cpu", ...
  std::string driver;
  std::string kv_type;       // "f16" or "f32"
  std::string drafter;       // last component of its path; empty without one
  bool is_software = false;  // a device that computes on the CPU: there plain decoding is usually fastest
  std::vector<std::string> warnings;
};

struct PrefillProgress {
  uint64_t reply_id = 0;
  uint32_t done = 0;
  uint32_t total = 0;  // tokens
};

/// New text of a reply. text is whole UTF-8 characters and may be empty.
struct TextDelta {
  uint64_t reply_id = 0;
  std::string text;
  uint32_t reply_tokens = 0;     // so far
  uint32_t context_used = 0;     // positions
  double tokens_per_second = 0;  // decoding only
};

/// A round of a reply, when it was committed: after the text that it wrote.
struct RoundFinished {
  uint64_t reply_id = 0;
  std::shared_ptr<const RoundRecord> round;
};

enum class FinishReason { stop_token, max_tokens, context_full, cancelled, failed };

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
  double tau = 0;                      // tokens a round
  double plain_tokens_per_second = 0;  // what plain decoding was measured to reach here; 0 where it was not
};

/// Something the user must know. The engine lives on.
struct Failure {
  ErrorKind kind = ErrorKind::bad_input;
  std::string title;                 // what failed, e.g. "The model could not be opened"
  std::string detail;                // actual and allowed values, and what to do
  uint64_t reply_id = 0;             // 0 when no reply was under way
  bool would_fit_quantized = false;  // of a load: LoadModel::quantize = automatic would go through
};

using Event = std::variant<LoadProgress, ModelReady, PrefillProgress, TextDelta, RoundFinished, ReplyFinished, Failure>;

/// What the device picker of a front end lists.
struct DeviceChoice {
  std::string selector;  // pass this as LoadModel::device
  std::string name;
  std::string type;
  bool usable = false;
  std::string reason;  // why not, when not usable
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

/// "stop token", "token limit", ...
const char* to_string(FinishReason reason);

}  // namespace canopy
