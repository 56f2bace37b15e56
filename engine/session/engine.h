#pragma once
// A loaded model with all that writing replies takes: tokenizer, drafter, costs, the texts in its caches, and the sizes
// that a trace has of it.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/compute/device.h"
#include "engine/format/draft_file.h"
#include "engine/format/model_config.h"
#include "engine/format/model_file.h"
#include "engine/format/quantize.h"
#include "engine/model/feature_drafter.h"
#include "engine/model/model.h"
#include "engine/session/draft_model.h"
#include "engine/session/engine_client.h"
#include "engine/session/reply.h"
#include "engine/session/resident_texts.h"
#include "engine/session/self_test.h"
#include "engine/speculation/calibration.h"
#include "engine/speculation/speculation_state.h"
#include "engine/speculation/suffix_store.h"
#include "engine/speculation/token_recycling.h"
#include "engine/trace/trace_records.h"

namespace canopy {

// What a trace says of the sizes of its models, so that the time of their passes can be predicted elsewhere.

/// quantized: what wide weights became while loading.
TraceSizes sizes_of(const ModelFile& file, QuantizeOnLoad quantized);
/// drafted_tokens: that its head is over.
TraceSizes sizes_of(const DrafterFile& file, uint32_t drafted_tokens);
TraceSizes sizes_of(const MtpFile& file);
TraceSizes sizes_of(const EagleFile& file);
TraceSizes sizes_of(const AssistantFile& file);

struct OpenRequest {
  std::string path;  // a GGUF file or a Hugging Face folder
  /// Likewise, of a DFlash drafter, an EAGLE-3 head or an assistant for that model, of a head of it that predicts
  /// further tokens (or a folder of the same model that has one), or of a smaller model with its vocabulary, which
  /// drafts token by token; empty: drafts come from the text alone, and from the head that the model's own file brings,
  /// where own_head asks for that.
  std::string drafter;
  bool own_head = false;             // goes before `drafter` where that is optional
  bool drafter_is_optional = false;  // one that is not there, or does not fit the model, is left out, not refused
  CacheType cache_type = CacheType::f16;
  uint32_t context = 0;  // 0 chooses from the model and from memory
  QuantizeOnLoad quantize = QuantizeOnLoad::none;
  std::filesystem::path replies;   // folder of earlier replies that drafts may come from; empty: none are kept
  bool replies_read_only = false;  // they are never written to
  bool self_test = true;           // check exactness on this device
  /// Seconds to measure what passes cost in, where no file of an earlier calibration fits; 0: no file is read or
  /// written, costs are guessed and learnt.
  double calibration_s = 0;
  /// What is learnt of drafts is kept in a file and known to the next launch; where costs are kept.
  bool keeps_learnt = false;
  uint32_t max_width = 128;  // rows of one pass: one more than the largest draft tree
  uint32_t texts = 1;        // whole ones that the caches have pages for: ModelOptions::texts
  uint32_t most_texts = 1;   // likewise
};

/// Seconds that a user is made to wait for measurements when a pair is first used; `canopy-cli calibrate` takes longer.
inline constexpr double kFirstCalibration = 4;

/// Names the drafter of a request: `choice`; "mtp", the head that the model's own file brings; or where that is empty
/// that head or the one that comes with Canopy, neither of which may be there or fit.
void choose_drafter(const std::string& choice, OpenRequest& request);

/// Called by any of the threads that load, never by two at a time.
struct OpenCallbacks {
  std::function<void(const LoadProgress&)> progress;
  std::stop_token stop;
  std::function<void(QuantizeOnLoad)> would_fit;  // before a refusal that quantizing like this would have spared
};

class ReplyWriter;

/// What is learnt of some replies, and what drafts come from that they said: of these alone, and in memory alone.
struct DraftMemory {
  uint64_t owner = 0;  // of the resident texts that they share
  std::unique_ptr<SpeculationState> speculation;
  RecyclingTable recycling;
  SuffixStore replies;

  uint64_t memory_bytes() const { return sizeof *this + recycling.memory_bytes() + replies.memory_bytes(); }
};

/// Belongs to one thread. The device must outlive it.
struct Engine {
  std::string file_name;  // last component of the path, safe to show
  TextModel text;
  std::unique_ptr<Model> model;
  std::string drafter_name;                       // last component of its path; empty without one
  std::vector<std::string> drafter_warnings;      // what is unusual about the pair
  std::string drafter_note;                       // why what could draft was left out; empty where nothing was
  std::unique_ptr<FeatureDrafter> drafter;        // null without one
  std::unique_ptr<DraftModel> draft_model;        // likewise; a pair has one of the two at most
  std::unique_ptr<SpeculationState> speculation;  // never null once it is open
  TraceSizes target_sizes;                        // for traces
  std::optional<TraceSizes> drafter_sizes;        // none without a drafter
  bool keeps_calibration = false;                 // in a file: OpenRequest::calibration_s was given
  bool keeps_learnt = false;                      // likewise, what was learnt of drafts
  std::optional<SelfTestReport> self_test;
  bool draws_on_device = false;             // ReplyWriter::Parts::draws_on_device
  std::unique_ptr<ResidentTexts> resident;  // that are in the caches
  std::unique_ptr<SuffixStore> replies;     // earlier ones that drafts may come from; null: none are kept
  std::unique_ptr<RecyclingTable> recycling = std::make_unique<RecyclingTable>();  // what the model said lately
  std::shared_ptr<const TokenTexts> texts;
  std::shared_ptr<const CostSnapshot> costs;  // null where nothing was measured, or no calibration was asked for

  uint64_t device_bytes = 0;  // what the device has less of since it was opened

  /// Rows of the longest draft, the root's included; 0 where no model drafts.
  uint32_t block() const;

  /// `memory` is that of a model on the same device which this one replaces; null: none. Throws bad_input with the path
  /// in front, also for a drafter that does not fit the model, out_of_memory, cancelled or device_lost.
  static std::unique_ptr<Engine> open(Device& device, const OpenRequest& request, const OpenCallbacks& callbacks,
                                      ReclaimableMemory* memory = nullptr);

  /// Writes a reply to a prompt: the same tokens in every mode. What the prompt has in common with a resident text is
  /// not computed again, and the result is the same as if it were. Throws bad_input for an empty prompt, one longer
  /// than the context, ids outside the vocabulary and wrong settings, and device_lost; texts still hold what they say.
  Reply reply(std::span<const uint32_t> prompt, const ReplySettings& settings,
              const ReplyCallbacks& callbacks = {}) const;

  /// A memory that knows nothing yet but what passes cost. The owner 0 is that of reply(). The engine must outlive it.
  std::unique_ptr<DraftMemory> new_memory(uint64_t owner) const;
  /// Begins a reply like reply(), to be written in steps between those of others: with what this memory knows, and
  /// with the texts of its owner. All arguments, the engine too, must outlive the writer. Throws what reply() throws.
  std::unique_ptr<ReplyWriter> begin_reply(std::span<const uint32_t> prompt, const ReplySettings& settings,
                                           const ReplyCallbacks& callbacks, DraftMemory& memory) const;
  /// To be called behind its last step: the memory keeps it for later drafts.
  void end_reply(DraftMemory& memory, const Reply& reply) const;
  /// What front ends are told of a reply that has just been written.
  ReplyFinished finished(uint64_t reply_id, const Reply& reply, DecodeMode mode) const;

  /// Keeps a reply of a chat for later drafts, where any are kept.
  void remember(std::string_view chat, std::span<const uint32_t> reply);

  /// The pair, device and settings that a calibration is valid for.
  CalibrationKey calibration_key() const;

  /// Measures what passes cost, within so many seconds, saves it and uses it from then on. No text stays resident.
  /// Throws bad_input where `seconds` is not positive, and cancelled.
  CostTable calibrate(double seconds, const OpenCallbacks& callbacks);

  /// Saves what real rounds taught about the costs, where that says something new and the model was opened with a
  /// calibration.
  void keep_what_was_learnt();
  /// What an earlier launch learnt of drafts.
  void recall_learnt();

  /// Name, sizes, memory and warnings, for front ends.
  ModelReady describe() const;
  MemoryUse memory_use() const;

  /// Fills `costs` from what is known. Measures the device for a second where that was not done yet.
  void show_costs();

  void keep(const CostTable& table) const;

  /// The ids of a conversation, or of a raw prompt where there are no turns. `tools`: see PromptOptions.
  std::vector<uint32_t> prompt_ids(const std::vector<ChatTurn>& turns, const std::string& raw_prompt,
                                   std::optional<bool> thinking = {}, const std::string& tools = {}) const;
};

}  // namespace canopy
