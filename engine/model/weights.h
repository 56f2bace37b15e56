#pragma once
// The weights of a model on a device, under the names of the papers, and how they get there: read ahead of their use
// and released behind it, converted, with progress and cancellation.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/mapped_file.h"
#include "engine/compute/device.h"
#include "engine/format/architecture.h"
#include "engine/format/model_file.h"
#include "engine/format/tensor.h"
#include "engine/model/weight_plan.h"

namespace canopy {

// Progress and cancellation of a load that several threads work on.

/// Called by any of the threads that load, never by two at a time.
struct LoadCallbacks {
  std::function<void(uint64_t done, uint64_t total)> progress;  // bytes of the file's matrices; some 30 times a second
  std::stop_token stop;  // looked at every few milliseconds; once requested, cancelled is thrown
};

/// Throws cancelled when stop is requested.
void require_going(const LoadCallbacks& callbacks);

class LoadMonitor {
 public:
  /// The callbacks must outlive it.
  LoadMonitor(const LoadCallbacks& callbacks, uint64_t total_bytes) : callbacks_(callbacks), total_(total_bytes) {}

  /// Counts bytes that are about to be read. May be called by any thread. Throws cancelled once stop was requested.
  void advance(uint64_t bytes);

  /// Reports the progress now, even where the last report was a moment ago.
  void report();

 private:
  const LoadCallbacks& callbacks_;
  const uint64_t total_;
  std::atomic<uint64_t> done_{0};
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;  // of the callbacks and of what follows
  std::chrono::steady_clock::time_point reported_ = {};
};

// Lets the pages of a mapped tensor leave memory once they have been used: they would count twice, beside the device's
// copy.

/// Counts what is used and releases chunks of it as a whole: each release interrupts all cores. Rows that are used in
/// order leave a chunk or two in memory, or a few where many threads take them in turn.
class PageRelease {
 public:
  static constexpr uint64_t kChunk = 4ull << 20;

  explicit PageRelease(std::span<const std::byte> tensor)
      : tensor_(tensor), left_((tensor.size() + kChunk - 1) / kChunk) {
    for (size_t i = 0; i < left_.size(); ++i) left_[i] = std::min<uint64_t>(kChunk, tensor.size() - i * kChunk);
  }
  PageRelease(const PageRelease&) = delete;
  PageRelease& operator=(const PageRelease&) = delete;
  ~PageRelease() { MappedFile::forget(tensor_); }

  /// `rows` of the tensor are not needed any more. Called by any thread, once for each row.
  void used(std::span<const std::byte> rows) {
    auto begin = static_cast<uint64_t>(rows.data() - tensor_.data());
    const uint64_t end = begin + rows.size();
    while (begin < end) {
      const uint64_t chunk = begin / kChunk, stop = std::min(end, (chunk + 1) * kChunk);
      if (left_[chunk].fetch_sub(stop - begin) == stop - begin) {
        MappedFile::forget(
            tensor_.subspan(chunk * kChunk, std::min<uint64_t>(kChunk, tensor_.size() - chunk * kChunk)));
      }
      begin = stop;
    }
  }

 private:
  std::span<const std::byte> tensor_;
  std::vector<std::atomic<uint64_t>> left_;  // bytes of each chunk that are not used yet
};

// Has the system read a file's weights before they are asked for, so that the disk works while weights are repacked.

/// Parts of mapped files in the order in which loading the matrices reads them: rows of a paired matrix come from both
/// of its parts in turn. Without matrices that are rows chosen from a tensor.
std::vector<std::span<const std::byte>> in_reading_order(std::span<const MatrixPlan* const> matrices);

class ReadAhead {
 public:
  /// Bytes that are asked for before they are needed.
  static constexpr uint64_t kWindow = 64ull << 20;

  /// Has a part of a mapped file read, without waiting for it; called by the thread of this.
  using Ask = std::function<void(std::span<const std::byte> part)>;

  /// Asks for the first window. The mappings must outlive it.
  explicit ReadAhead(std::vector<std::span<const std::byte>> parts, Ask ask = MappedFile::prefetch);

  /// Counts bytes that are being read; called by any thread.
  void advance(uint64_t bytes);

 private:
  void run(const std::stop_token& stop);

  const std::vector<std::span<const std::byte>> parts_;
  const Ask ask_;
  std::mutex mutex_;
  std::condition_variable_any read_on_;
  uint64_t read_ = 0;
  std::jthread thread_;  // last: it ends before what it uses
};

// Tensors of a file onto a device: what the weights of a target and of a drafter have in common.

class TensorLoader {
 public:
  /// `matrices` are those that will be loaded, in this order. check_unchanged throws when the file is no longer what
  /// was opened; it is asked before each tensor. All references must outlive the loader.
  TensorLoader(Device& device, std::span<const MatrixPlan* const> matrices, LoadMonitor& monitor,
               std::function<void()> check_unchanged);
  ~TensorLoader();
  TensorLoader(const TensorLoader&) = delete;
  TensorLoader& operator=(const TensorLoader&) = delete;

  /// Beside the device's copy only the rows at hand and some megabytes around them are in memory. Throws cancelled when
  /// the monitor's caller wants no more, bad_input for a weight that is not finite or cannot be quantized.
  std::unique_ptr<Weight> matrix(const MatrixPlan& plan);

  /// The decoded values of a vector, or of all rows of a matrix, plus `offset`, times `scale`; element i being that of
  /// order[i] where an order is given. Throws bad_input where one is not finite.
  std::unique_ptr<Buffer> norm(const TensorView& tensor, float offset = 0, std::span<const uint32_t> order = {},
                               float scale = 1);
  /// Rates of decays: its values, which must be negative, or -exp of them where they are `logarithms`.
  std::unique_ptr<Buffer> rates(const TensorView& tensor, bool logarithms);

  /// The decoded values of matrices of the same columns as floats, one below the other. Throws bad_input where one is
  /// not finite.
  std::unique_ptr<Buffer> router(std::span<const TensorView* const> parts);

  /// The decoded values of vectors, one after the other; element i being that of order[i] where an order is given.
  /// Throws bad_input where one is not finite.
  std::unique_ptr<Buffer> bias(std::span<const TensorView* const> parts, std::span<const uint32_t> order = {});
  std::unique_ptr<Buffer> bias(const TensorView& tensor);
  /// Those of a paired weight: elements of gate and up in turn.
  std::unique_ptr<Buffer> paired_bias(const TensorView& gate, const TensorView& up);
  /// Ones, of a norm without weights, times `scale`.
  std::unique_ptr<Buffer> ones(uint32_t count, const std::string& name, float scale = 1);
  /// The only value of a vector. Throws bad_input where it is not finite or is 0, which no layer would be heard behind.
  float scale(const TensorView& tensor);
  /// As bias().
  std::unique_ptr<Buffer> sinks(const TensorView& tensor);

 private:
  std::vector<float> values_of(std::span<const TensorView* const> parts, const char* kind);
  std::unique_ptr<Buffer> vector(std::span<const float> values, const std::string& name);
  void before_reading();

  Device& device_;
  LoadMonitor& monitor_;
  ReadAhead read_ahead_;
  std::function<void()> check_unchanged_;
};

// The weights of a model on a device, under the names of the papers (H hidden, Q heads*D, K kv_heads*D, F ffn, V
// vocab, or the elements of all value heads in a recurrence).

/// A convolution along the rows of a pass (ConvRowsArgs), of a drafter.
struct ConvWeights {
  std::unique_ptr<Buffer> base;     // [2, taps, H]
  std::unique_ptr<Weight> project;  // [2 * taps * H / group, H], which makes a row's kernels
};

/// Of latent attention with latents of R elements, T elements of a key that are turned, D = R + T, E elements of a
/// head's query beside those, and values of V (LatentAttention).
struct LatentWeights {
  std::unique_ptr<Weight> query_latent;  // [G, H], null where queries are made of the rows themselves: G is H then
  std::unique_ptr<Buffer> query_norm;    // [G], likewise
  std::unique_ptr<Weight> query_keys;    // [heads * E, G]
  std::unique_ptr<Weight> query_turned;  // [heads * T, G]
  std::unique_ptr<Weight> latent;        // [R, H]
  std::unique_ptr<Buffer> latent_norm;   // [R]
  std::unique_ptr<Weight> turned;        // [T, H]
  std::unique_ptr<Weight> keys;          // [heads * D, E], of each head a matrix whose last T rows are 0
  std::unique_ptr<Weight> values;        // [heads * V, R], of each head a matrix
};

struct LayerWeights {
  std::unique_ptr<Buffer> attn_norm;         // [H]
  std::vector<std::unique_ptr<Weight>> qkv;  // together [Q + 2K, H]: see LayerPlan
  std::unique_ptr<Buffer> qkv_bias;          // [Q + 2K], null where the architecture has none
  std::unique_ptr<Buffer> q_norm;            // [D], null where the architecture has none
  std::unique_ptr<Buffer> k_norm;            // [D], likewise
  std::unique_ptr<Buffer> v_norm;            // [D], ones where values are normed, else null
  std::unique_ptr<Weight> gate;              // [Q, H] of attention with an output gate, [V, H] of a recurrence; or null
  std::unique_ptr<Weight> attn_output;       // [H, Q]; [H, V] of a recurrence
  std::unique_ptr<Buffer> output_bias;       // [H], null where the architecture has none
  std::unique_ptr<Buffer> sinks;             // [heads], likewise
  std::unique_ptr<LatentWeights> latent;     // in the place of qkv; null but of latent attention
  // Of a recurrence, whose qkv is [2 keys + V + 2 value heads, H]: queries, keys, values, then b and a of each head; of
  // a scan without b. A short convolution, whose qkv is [3 H, H], has the taps [H, taps] alone.
  std::unique_ptr<Buffer> taps;                      // [channels, taps]
  std::unique_ptr<Buffer> decay_bias;                // [value heads]
  std::unique_ptr<Buffer> decay_rate;                // [value heads], negative
  std::unique_ptr<Buffer> state_norm;                // [value head dimension], [V] of a scan
  std::unique_ptr<Buffer> conv_bias;                 // [channels], null where the convolution has none
  std::unique_ptr<Buffer> skip;                      // [value heads] of a scan, else null
  std::unique_ptr<Buffer> ffn_norm;                  // [H], null in layers that are a mixer or a feed-forward alone
  std::unique_ptr<ConvWeights> attn_conv, ffn_conv;  // around attention and feed-forward; null but in some drafters
  // Post norms, times the scale of the residual stream; null where the architecture has none.
  std::unique_ptr<Buffer> attn_post_norm;  // [H]
  std::unique_ptr<Buffer> ffn_post_norm;   // [H]
  std::unique_ptr<Buffer> router;    // [E, H], null but where the layer has E experts; a row more with a shared one
  std::unique_ptr<Weight> gate_up;   // [2F, H], rows of gate and up in turn, or [F, H]; [E * 2F, H] with experts
  std::unique_ptr<Weight> ffn_down;  // [H, F]; [E * H, F] with experts
  std::unique_ptr<Weight> shared_gate_up;  // [2S, H] as gate_up, of the expert that every row goes through; or null
  std::unique_ptr<Weight> shared_down;     // [H, S], likewise
  // Of experts with biases, one for each row of their weights.
  std::unique_ptr<Buffer> router_bias;   // [E]
  std::unique_ptr<Buffer> choice_bias;   // [E], of the scores by which they are chosen; null but in some models
  std::unique_ptr<Buffer> gate_up_bias;  // [E * 2F]
  std::unique_ptr<Buffer> down_bias;     // [E * H]
  float scale = 1;                       // of the residual stream behind the layer
  // Of a layer with experts beside a feed-forward, which is shared_gate_up and shared_down; else null.
  std::unique_ptr<Buffer> router_norm;       // [H], divided by the root of H
  std::unique_ptr<Buffer> expert_scales;     // [E], of the shares
  std::unique_ptr<Buffer> expert_norm;       // [H], of what the experts read
  std::unique_ptr<Buffer> dense_post_norm;   // [H], of what the feed-forward gives
  std::unique_ptr<Buffer> expert_post_norm;  // [H], of what the experts give
  // Of a layer with inputs of width I, else null.
  std::unique_ptr<Weight> input_gate;  // [I, H]
  std::unique_ptr<Weight> input_proj;  // [H, I]
  std::unique_ptr<Buffer> input_norm;  // [H], times the scale of the residual stream
};

/// The weights of layer n. `plan` comes from plan_layer().
LayerWeights load_layer(TensorLoader& tensors, const RequireTensor& require, const ModelConfig& config,
                        const LayerSpec& spec, const LayerPlan& plan, uint32_t n);

struct Weights {
  std::unique_ptr<Weight> token_embd;  // [V, H]
  std::vector<LayerWeights> layers;
  std::unique_ptr<Buffer> output_norm;  // [H]
  std::unique_ptr<Buffer> ones;         // [L * I or H, the larger], where layers have inputs, or experts beside others
  // Of a model whose L layers have inputs of width I, else null.
  std::unique_ptr<Weight> layer_embd;      // [V, L * I]
  std::unique_ptr<Weight> layer_proj;      // [L * I, H]
  std::unique_ptr<Buffer> layer_norm;      // [I], divided by the root of 2
  std::unique_ptr<Buffer> embedding_norm;  // [H], what takes the scales of embedding and residual stream away
  std::unique_ptr<Weight> output;          // [V, H], null where the head is tied

  const Weight& head() const { return output ? *output : *token_embd; }
};

/// The matrices of a plan, in the order in which load_weights() loads them.
std::vector<const MatrixPlan*> in_load_order(const WeightPlan& plan);
/// Appends those of a layer, in the order of load_layer().
void append_in_load_order(const LayerPlan& plan, std::vector<const MatrixPlan*>& matrices);

/// Copies the matrices and norms to the device, in the types of the plan. Beside the device's copy only the rows at
/// hand and some megabytes around them are in memory, of the file and converted. Throws cancelled when stop is
/// requested, bad_input when the file changed under us, a norm holds a value that is not finite or a weight one that
/// cannot be quantized.
Weights load_weights(const ModelFile& file, const WeightPlan& plan, Device& device, const LoadCallbacks& callbacks);

}  // namespace canopy
