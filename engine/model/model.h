#pragma once
// A model on a device: rows of tokens in; argmax, drawn tokens or logits and aux hidden states out; K/V kept in
// between.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/compute/device.h"
#include "engine/compute/rows.h"
#include "engine/format/model_file.h"
#include "engine/format/quantize.h"
#include "engine/model/forward.h"
#include "engine/model/forward_io.h"
#include "engine/model/kv_cache.h"
#include "engine/model/load_plan.h"
#include "engine/model/page_table.h"
#include "engine/model/recurrent_memory.h"
#include "engine/model/weights.h"

namespace canopy {

struct ModelOptions {
  CacheType cache_type = CacheType::f16;
  uint32_t context = 0;              // positions; 0 chooses from the model and from memory
  uint32_t max_width = 128;          // rows of one pass
  uint32_t tree_slots = 0;           // K/V slots for rows of a draft tree; 0: as many as max_width
  uint32_t texts = 1;                // whole ones that the K/V cache has pages for
  uint32_t most_texts = 1;           // more of them, where there is ample memory: choose_context()
  uint32_t spare_pages = 0;          // beside those
  std::vector<uint32_t> aux_layers;  // 0-based layers whose outputs a pass can return, ascending
  QuantizeOnLoad quantize = QuantizeOnLoad::none;
  LoadCallbacks callbacks;
  std::function<void(const LoadPlan&)> planned;   // told once, before anything is allocated
  std::function<void(QuantizeOnLoad)> would_fit;  // told before a refusal that this choice would have spared
  ReclaimableMemory* memory = nullptr;            // of a model that this one replaces; null: none
};

/// Not thread-safe; the device and everything made from it belong to one thread. The device must outlive the model.
class Model {
 public:
  /// Plans, checks the device's memory, then copies. The file is not needed afterwards. Throws bad_input,
  /// out_of_memory, cancelled or device_lost.
  static std::unique_ptr<Model> load(Device& device, const ModelFile& file, const ModelOptions& options);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const ModelConfig& config() const { return config_; }
  const ModelLimits& limits() const { return limits_; }
  const MemoryPlan& memory() const { return memory_; }
  std::span<const uint32_t> aux_layers() const { return aux_layers_; }
  /// The inputs of a drafter from its target: aux hidden states of the last pass that kept them, [W, aux layers * H],
  /// null where the model was loaded without aux layers; the table of embeddings and the output head, [V, H] both; the
  /// norm before the head, [H].
  const Buffer* aux_hidden_states() const { return buffers_.aux_hidden_states.get(); }
  const Weight& embedding() const { return *weights_.token_embd; }
  const Weight& head() const { return weights_.head(); }
  const Buffer& output_norm() const { return *weights_.output_norm; }
  const KvCaches& kv_caches() const { return *cache_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// A sentence on the weights that were quantized while loading, and the size after that; empty where none were.
  const std::string& quantization() const { return quantization_; }
  QuantizeOnLoad quantized() const { return quantized_; }
  Device& device() const { return device_; }

  /// Weight elements one row is multiplied with; two operations each.
  uint64_t weight_elements() const { return weight_elements_; }
  /// Bytes of weights one pass reads, at any width; of experts those that one row goes through.
  uint64_t pass_bytes() const { return pass_bytes_; }
  /// The same of a pass whose rows go through so many different experts, on average over the layers that have any.
  double pass_bytes(double distinct_experts) const {
    return static_cast<double>(pass_bytes_) +
           (distinct_experts - config_.experts_used) * static_cast<double>(expert_bytes_);
  }
  /// Operations of a pass: two per weight element and row (the head's only for head_rows rows), and attention's
  /// 4 * Q * positions * layers per row, every row seeing `positions` keys.
  double pass_flops(uint32_t width, uint32_t head_rows, uint32_t positions) const;

  /// Computes the rows and writes their K/V to their slots: one upload, one run and one read of what is wanted.
  /// `stop` is looked at between the ops of a pass that is recorded for the first time, and between the parts of a long
  /// one; once it is requested, the slots of these rows hold nothing of use. Throws bad_input for rows or wishes that
  /// do not fit. Moving K/V afterwards changes nothing of the result.
  ForwardOutput forward(const ForwardInput& input, const std::stop_token& stop = {});

  /// Moves K/V of all layers between slots, as if all moves happened at once; at most kMaxKvMoves.
  void move_kv(std::span<const KvMove> moves);

  /// The pages of the K/V cache; sequences take them from here.
  PagePool& pages() { return pages_; }
  const PagePool& pages() const { return pages_; }

  /// Of recurrent layers; without any it has no places. Sequences take them from here.
  StatePool& states() { return states_; }
  const StatePool& states() const { return states_; }
  /// Applies rows of the last pass, each of which follows the one before and the first use.position tokens, to the
  /// state use.from of all recurrent layers, and puts what comes out to use.to: the bits that the state after a pass
  /// over these rows alone would have. Waits for it.
  void apply_rows(std::span<const uint32_t> rows, const StateUse& use);
  /// A kept state of a recurrent layer, f32 [value_heads, key_dim, value_dim], and behind it the inputs of the rows
  /// before, [taps - 1, channels]: for tests and checks.
  std::vector<float> read_state(uint32_t layer, uint32_t place) const;

  /// Keys (or values) of a layer's slots, f32 [count, kv_heads, head_dim]: for tests and checks. The layer must be one
  /// of attention.
  std::vector<float> read_kv(uint32_t layer, bool values, uint32_t first, uint32_t count) const;

  /// Recordings made since the start: each is paid for once per shape of pass, not per pass.
  uint64_t recordings() const { return recordings_.made(); }
  /// After Device::fall_back(): passes are recorded anew.
  void forget_recordings();

 private:
  friend class ForwardOutput;

  Model(Device& device, const ModelFile& file, const LoadPlan& plan, const ModelLimits& limits,
        const ModelOptions& options);
  /// A recording with the parts of the buffers that it reads and writes.
  struct Recording {
    PassParts parts;
    std::unique_ptr<Commands> commands;
  };
  /// The recording of a pass, made where there is none yet; null where stop was requested.
  Recording* recording_of(const PassShape& shape, const std::stop_token& stop);
  void upload(const ForwardInput& input, const PassShape& shape);
  void put_sampling(const ForwardInput& input, const PassShape& shape);
  void unpack_results(const PassShape& shape, std::span<const std::byte> packed, ForwardOutput& output) const;
  /// The head of rows of the last pass, which had `width` of them; at most limits().head_rows. read_logits() reads them
  /// by their index in `rows` afterwards; the logits that the pass left are overwritten.
  void compute_logits(std::span<const uint32_t> rows, uint32_t width);
  /// Rows of the buffer of logits, by their place in it, to [indices, vocab]; in the same call what `output` waits for.
  void read_logits(std::span<const uint32_t> indices, std::span<float> to, ForwardOutput& output) const;
  ForwardContext context(const PassParts& parts) const;

  Device& device_;
  ModelConfig config_;
  ModelLimits limits_;
  MemoryPlan memory_;
  std::vector<uint32_t> aux_layers_;
  std::vector<std::string> warnings_;
  std::string quantization_;
  QuantizeOnLoad quantized_ = QuantizeOnLoad::none;
  uint64_t weight_elements_ = 0;
  uint64_t pass_bytes_ = 0;
  uint64_t expert_bytes_ = 0;
  std::vector<LayerSpec> layers_;  // what each computes
  Weights weights_;
  std::unique_ptr<KvCaches> cache_;
  PagePool pages_;  // of it
  StatePool states_;
  PassBuffers buffers_;
  std::unique_ptr<RecurrentMemory> recurrent_;  // null without recurrent layers
  std::unique_ptr<KvMover> mover_;
  Recordings<PassShape, Recording> recordings_;
  std::vector<DeltaStep> steps_;     // of recurrent layers, through the rows of the pass that is being begun
  std::vector<std::byte> upload_;    // the packed input of a pass
  std::vector<std::byte> download_;  // its packed results
  uint64_t pass_ = 0;                // number of the last pass that was begun
  uint32_t logits_left_ = 0;         // of that pass's head_rows, how many still have their logits on the device
};

}  // namespace canopy
