#pragma once
// An assistant of Gemma 4 on a device: a head that has queries alone and attends over the keys and values of its
// target.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/format/assistant_file.h"
#include "engine/model/beam_head.h"
#include "engine/model/model.h"

namespace canopy {

/// A row (W: weights of AssistantFile, E: the target's embedding of the token, R: the position of the draft's root) is
///
///   x = pre_projection [sqrt(T) E; h]
///   x goes through the layers, whose queries stand at R and see the target's keys of positions below R, in layers with
///   a window of w those above R - w;   y = rms_norm(x) * output_norm;   logits = y times its own embedding
///
/// h of the root is rms_norm of the output of the target's last layer at R - 1, times the target's last norm; of a node
/// it is post_projection y of its parent. So the rows of a draft differ in token and h alone, see the same keys, and
/// nothing is kept of them. Of a text the last feature is read, and no other.
class AssistantHead final : public BeamHead {
 public:
  /// The target must have been loaded with mtp_aux_layers() (mtp_head.h); check_pair() has passed. Throws
  /// bad_input, out_of_memory, cancelled or device_lost.
  static std::unique_ptr<AssistantHead> load(const AssistantFile& file, Model& target, const HeadOptions& options);
  ~AssistantHead() override;

  DraftSources source() const override { return kFromAssistant; }
  bool reads_all_features() const override { return false; }
  std::string identity() const override;
  /// Forgets all features that wait but the last.
  bool inject(DraftState& text, const std::stop_token& stop = {}) override;

 private:
  /// The key of a recording.
  struct Shape {
    uint32_t width = 0;          // of nodes, rounded up
    uint32_t max_positions = 0;  // that the target's keys are of
    uint32_t store = 0;          // of the text's features where the node is a root, else none
    auto operator<=>(const Shape&) const = default;
  };

  AssistantHead(const AssistantFile& file, Model& target, const HeadOptions& options);
  void allocate_rows();
  void load_weights(const AssistantFile& file, const LoadCallbacks& callbacks);
  bool has_last_state(const DraftState& text) const override;
  bool run(const DraftTree& tree, uint32_t first, BlockDraft& draft, const std::stop_token& stop) override;
  void put_nodes(const DraftTree& tree, uint32_t first, const Shape& shape);
  Commands* commands_for(const Shape& shape, const std::stop_token& stop);
  void record_nodes(Recorder& record, const Shape& shape);
  /// joined_ = x + 0 in columns `offset` ... of the rows: a norm of zeros adds nothing.
  void record_half(Recorder& record, uint32_t width, Buffer& x, uint32_t offset);
  uint64_t made_recordings() const override { return recordings_.made(); }

  struct Plan {
    MatrixPlan pre, post, token_embd;
    std::vector<LayerPlan> layers;
    uint64_t file_bytes = 0, device_bytes = 0;
  };
  Plan plan_of(const AssistantFile& file) const;

  const uint32_t wide_;            // T
  const uint32_t widest_;          // W: rows of a pass, rounded up
  std::vector<LayerSpec> layers_;  // their windows as attention counts them from R - 1
  KvCaches target_cache_;          // the target's layers that these read
  Plan plan_;                      // empty once loaded
  Weights body_;
  std::unique_ptr<Weight> pre_, post_;
  std::unique_ptr<Buffer> zeros_;                       // [W, the wider of T and H]
  std::unique_ptr<Buffer> from_zeros_;                  // uint32 [W, 2]: its first row to each
  std::unique_ptr<Buffer> embedded_;                    // [W, T]
  std::unique_ptr<Buffer> states_, state_;              // [W, T]: as they come, and h of the rows
  std::unique_ptr<Buffer> joined_;                      // [W, 2T]
  std::unique_ptr<Activations> joined_rows_, scratch_;  // [W, 2T], [W, T]
  std::unique_ptr<Buffer> next_;                        // [W, T]
  std::unique_ptr<Buffer> input_;                       // of each pass one upload
  PassParts parts_;
  std::vector<float> rotation_, local_rotation_;  // of the position of the draft's root
  std::unique_ptr<Buffer> seen_rows_;      // Row [W]: what the rows see; their own position is 0, the one of the tables
  std::unique_ptr<Buffer> moves_, keeps_;  // uint32 [W, 2]: states to rows, next_ to states_of_nodes_
  Recordings<Shape> recordings_;
};

}  // namespace canopy
