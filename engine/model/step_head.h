#pragma once
// Heads that draft along several paths by one layer with keys and values of its own. What those that predict further
// tokens (mtp_head.h) and EAGLE-3's (eagle_head.h) have in common.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/compute/device.h"
#include "engine/format/architecture.h"
#include "engine/model/beam_head.h"
#include "engine/model/model.h"
#include "engine/model/weights.h"

namespace canopy {

/// Row i is of the token at position i + 1 and a state of position i, and predicts the token at position i + 2. The
/// state is made of the target's feature of that position in rows of text and of the root, and is what the row before
/// gave behind a node that was drafted. Rows of text are kept as keys and values, of committed tokens and of the root
/// that was drafted behind; those of nodes are gone with the next draft.
class StepHead : public BeamHead {
 public:
  ~StepHead() override;

  bool inject(DraftState& text, const std::stop_token& stop = {}) override;
  /// Keys (or values) of a text's first `count` rows, f32 [count, kv_heads, head_dim]: for tests.
  std::vector<float> read_kv(const DraftState& text, bool values, uint32_t count) const;

 protected:
  struct Plan {
    MatrixPlan fc;
    LayerPlan layer;
    std::vector<MatrixPlan> token_embd, output;  // one or none
    uint64_t file_bytes = 0, device_bytes = 0;
  };
  /// What a head has beside its layer.
  struct Parts {
    uint64_t fc_cols = 0;
    uint32_t embedded_tokens = 0;  // rows of an embedding of its own; 0: the target's is used
    uint32_t drafted_tokens = 0;   // rows of an output of its own; likewise
    uint64_t vector_elements = 0;  // of norms and routers
  };
  Plan plan_of(const Parts& parts, const RequireTensor& require) const;

  /// config: of the head's one layer; its vocabulary is the tokens that are drafted. feature_width: floats of a
  /// feature.
  StepHead(Model& target, const ModelConfig& config, const LayerSpec& layer, uint32_t feature_width,
           CacheType cache_type);
  /// Allocates all memory, `further` bytes for the kind's own included. Throws out_of_memory with needed and available
  /// bytes.
  void prepare(const Plan& plan, uint64_t further, ReclaimableMemory* memory);
  /// Loads the planned matrices and the layer; load_norms() the kind's own vectors.
  void load_weights(const Plan& plan, const RequireTensor& require, const std::function<void()>& check_unchanged,
                    const LoadCallbacks& callbacks, const std::function<void(TensorLoader&)>& load_norms);

  /// Records what the rows begin with: x, and what queries, keys and values are made of (qkv_input()). The state of row
  /// i is made of row `from` of `states`, which is moves[i] = {from, i}: features where the rows are of text or of a
  /// root (`of_text`), else what nodes left.
  virtual void record_inputs(Recorder& record, uint32_t width, const Buffer& rows, const Buffer& states,
                             const Buffer& moves, bool of_text) = 0;
  /// Null: rms_norm(x).
  virtual const Activations* qkv_input() const { return nullptr; }
  /// Records what is kept of the layer's output for the nodes behind, and says where it is, [width, H].
  virtual const Buffer& record_states(Recorder& record, uint32_t width);
  /// x = rms_norm(in) * weight, [width, cols], made by adding it to zeros; and in columns offset ... of `joined`, whose
  /// rows have `stride` of them, where that is given. `scratch` has rows of `cols`.
  void record_normed(Recorder& record, uint32_t width, uint32_t cols, const Buffer& in, const Buffer& weight,
                     Activations& scratch, Buffer& x, Buffer* joined = nullptr, uint32_t stride = 0,
                     uint32_t offset = 0);
  /// Rows that one pass has at most, I below.
  uint32_t most_rows() const { return limits_.max_width; }
  std::unique_ptr<Buffer> allocate_rows(uint64_t cols, const char* name);
  const Weight& embedding() const { return body_.token_embd ? *body_.token_embd : target_.embedding(); }
  const Weight& head() const { return body_.output ? *body_.output : target_.head(); }

  std::unique_ptr<Weight> fc_;
  Weights body_;                              // layer, output_norm and, where it has its own, tables
  std::unique_ptr<Buffer> gathered_;          // [I, the wider of feature and H]: states or features as they come
  std::unique_ptr<Buffer> sum_;               // [I, H]: what is wanted of a norm in `joined_` alone
  std::unique_ptr<Buffer> joined_;            // [I, 2H]: two normed halves
  std::unique_ptr<Activations> joined_rows_;  // [I, 2H], likewise

 private:
  /// The key of a recording.
  struct Shape {
    uint32_t injected = 0;  // rows of text, rounded up
    uint32_t width = 0;     // of nodes, rounded up; 0: only inject
    uint32_t max_positions = 0;
    uint32_t store = 0;  // of the rows of text and of a root
    bool root = false;   // the node is a root
    auto operator<=>(const Shape&) const = default;
  };

  void make_parts();
  uint32_t injectable(const DraftState& text) const;
  uint32_t padded_injection(uint32_t count) const;
  bool has_last_state(const DraftState& text) const override;
  bool run(const DraftTree& tree, uint32_t first, BlockDraft& draft, const std::stop_token& stop) override;
  void put_injection(const DraftState& text, uint32_t count, uint32_t padded);
  void put_nodes(const DraftTree& tree, uint32_t first, const Shape& shape);
  /// Null once stop was requested: a recording may compile kernels.
  Commands* commands_for(const Shape& shape, const std::stop_token& stop);
  void record_injection(Recorder& record, const Shape& shape);
  void record_nodes(Recorder& record, const Shape& shape);
  ForwardContext forward_context() const;
  uint64_t made_recordings() const override { return recordings_.made(); }

  std::vector<LayerSpec> layers_;              // the one
  uint32_t widest_ = 0;                        // rows of a pass over nodes, rounded up
  std::unique_ptr<Buffer> kv_bias_;            // [2K]: that of keys and values alone; null where the layer has none
  std::unique_ptr<Buffer> zero_, zero_moves_;  // [1, as gathered_]; uint32 [I, 2]: a row of zeros to each
  std::unique_ptr<Buffer> root_feature_;       // [1, feature]: of the last draft's root
  // Of each pass one upload. What is injected comes last in it.
  std::unique_ptr<Buffer> input_;
  PassParts parts_;                        // of the nodes
  std::unique_ptr<Buffer> moves_, keeps_;  // uint32 [widest_, 2]: states to rows, x to states_of_nodes_
  std::unique_ptr<Buffer> injected_rows_, injected_moves_;  // Row [I]; uint32 [I, 2]
  Recordings<Shape> recordings_;
  uint64_t root_of_ = 0;  // DraftState that root_feature_ is of, at last_position_
};

}  // namespace canopy
