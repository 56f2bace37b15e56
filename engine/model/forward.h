#pragma once
// The forward pass: records the ops of a pass of a given width, layer by layer as the model's LayerSpecs say, and
// keeps the recordings to replay them. Targets of all architectures and drafters go through it.

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/compute/device.h"
#include "engine/format/architecture.h"
#include "engine/format/model_config.h"
#include "engine/model/kv_cache.h"
#include "engine/model/pass_buffers.h"
#include "engine/model/recurrent_memory.h"
#include "engine/model/weights.h"

namespace canopy {

// Recorded passes by the shape of what they compute, to be replayed.

/// Keeps the most recently used ones. Shape is ordered; Recorded is the commands, or what has them.
template <class Shape, class Recorded = Commands>
class Recordings {
 public:
  /// Recordings are small, but each pins descriptors; a conversation uses a dozen shapes, a benchmark a few more.
  static constexpr size_t kMost = 96;

  /// Null where there is none of that shape, or none any more.
  Recorded* find(const Shape& shape) {
    const auto found = by_shape_.find(shape);
    if (found == by_shape_.end()) return nullptr;
    uses_.splice(uses_.begin(), uses_, found->second);
    return found->second->commands.get();
  }

  /// Takes a recording of a shape that has none; the one used longest ago goes where there are too many. The result is
  /// valid until the next call.
  Recorded& keep(const Shape& shape, std::unique_ptr<Recorded> commands) {
    if (by_shape_.size() >= kMost) {
      by_shape_.erase(uses_.back().shape);
      uses_.pop_back();
    }
    uses_.push_front({shape, std::move(commands)});
    by_shape_.emplace(shape, uses_.begin());
    ++made_;
    return *uses_.front().commands;
  }

  /// Forgets all.
  void clear() {
    by_shape_.clear();
    uses_.clear();
  }

  /// Since the start, those that are gone included.
  uint64_t made() const { return made_; }

 private:
  struct Use {
    Shape shape;
    std::unique_ptr<Recorded> commands;
  };
  std::list<Use> uses_;  // most recent first
  std::map<Shape, typename std::list<Use>::iterator> by_shape_;
  uint64_t made_ = 0;
};

/// What convolutions along rows work in (LayerWeights::attn_conv).
struct ConvBuffers {
  uint32_t taps = 0, group = 0;
  std::unique_ptr<Buffer> zero, zero_moves;  // [1, H]; uint32 [W, 2]: that row to each
  std::unique_ptr<Buffer> normed;            // [W, H] rms_norm(x)
  std::unique_ptr<Buffer> kernels;           // [W, 2, taps, H / group] of the rows
  std::unique_ptr<Buffer> mixed;             // [W, H] what goes into the matrices
  std::unique_ptr<Buffer> branch;            // [W, H] what comes out of them
  std::unique_ptr<Activations> rows;         // [W, H] mixed
  std::unique_ptr<Activations> spare;        // [W, H]
};

/// The model, buffers and caches that a pass is recorded over. References must outlive the recording's commands.
struct ForwardContext {
  const ModelConfig& config;
  std::span<const LayerSpec> layers;  // what each computes
  const Weights& weights;             // of the layers and the norms
  const Weight& embedding;            // [V, H], not always the weights' own: a drafter borrows its target's
  const Weight& head;                 // [V, H], likewise
  const PassBuffers& buffers;
  const PassParts& parts;  // of this recording
  const KvCaches& cache;
  std::span<const uint32_t> aux_layers;
  float embedding_scale = 1;
  const RecurrentMemory* recurrent = nullptr;  // where some layers are recurrences
  const Activations* qkv_input = nullptr;      // of queries, keys and values in the place of rms_norm(x); null: none
  const ConvBuffers* conv = nullptr;           // where layers have convolutions along the rows
  const Buffer* seen_rows = nullptr;  // Row [W]: what attention sees, where `rows` do not say it; null: they do
};

/// The whole pass; with pass.head_only its head alone, over what the pass before left.
void record_forward(Recorder& record, const ForwardContext& model, const PassShape& pass);

// Its parts, for a drafter whose rows begin with more than embeddings.

/// From x and normed = x * the first layer's attn_norm through all layers; normed = x * output_norm then.
void record_layers(Recorder& record, const ForwardContext& model, const PassShape& pass);
/// What pass.head names, of these.
void record_head(Recorder& record, const ForwardContext& model, const PassShape& pass);

}  // namespace canopy
