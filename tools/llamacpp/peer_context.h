#pragma once
// A model opened by llama.cpp on one of its backends, with owners for the objects of its C interface.

#include <llama.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace canopy::peer {

enum class Backend { cpu, vulkan };

struct PeerOptions {
  std::string model;  // path of a GGUF file
  Backend backend = Backend::vulkan;
  uint32_t context = 512;  // positions of the K/V cache, and the most rows of one call
  uint32_t threads = 0;    // 0: one for each hardware thread
  bool f32_cache = false;  // K/V in f32, and attention step by step: with weights in F32 nothing is rounded below f32
  bool heads = false;      // loads heads for further tokens that the file may bring
  /// Of what drafts: the context of its target, which must outlive it, and whether it is a head that reads a state with
  /// each token, rather than features.
  llama_context* target = nullptr;
  bool reads_states = false;
};

/// Starts the library. Its warnings and errors go to standard error; other messages are dropped.
void start_llama();

/// Which rows of a call produce logits.
enum class Outputs { last, all };

/// One sequence of text. What PeerOptions does not name is llama.cpp's default. Throws std::runtime_error.
class PeerContext {
 public:
  /// Uses the first Vulkan device that llama.cpp finds; GGML_VK_VISIBLE_DEVICES can choose another.
  explicit PeerContext(const PeerOptions& options);

  llama_context* get() const { return context_.get(); }
  const llama_model* model() const { return model_.get(); }
  const std::string& device() const { return device_; }
  uint32_t threads() const { return threads_; }
  uint32_t vocab() const { return vocab_; }

  /// Appends tokens at positions first, first + 1, ... in one call, and waits until their logits are computed.
  void append(std::span<const int32_t> tokens, uint32_t first, Outputs outputs);

  /// Removes the positions from `first` on.
  void truncate(uint32_t first);

  /// The logits, f32 [vocab], of row `row` of the last call, which must have been one of its outputs.
  std::span<const float> logits(uint32_t row) const;

  /// The token with the largest logit; of equal ones that with the lowest id.
  int32_t best(uint32_t row) const;

 private:
  struct FreeModel {
    void operator()(llama_model* model) const { llama_model_free(model); }
  };
  struct FreeContext {
    void operator()(llama_context* context) const { llama_free(context); }
  };

  std::string device_;
  uint32_t threads_ = 0;
  uint32_t vocab_ = 0;
  std::unique_ptr<llama_model, FreeModel> model_;
  std::unique_ptr<llama_context, FreeContext> context_;
};

}  // namespace canopy::peer
