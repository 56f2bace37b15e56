#pragma once
// A model opened by llama.cpp on one of its backends, with owners for what its C interface hands out.

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
};

/// Starts the library. Its warnings and errors go to standard error, the rest nowhere.
void start_llama();

/// Which rows of a call produce logits.
enum class Outputs { last, all };

/// One sequence of text. Everything but backend, context and threads, one per hardware thread, is as llama.cpp's
/// defaults have it. Errors are std::runtime_error.
class PeerContext {
 public:
  /// Takes the first Vulkan device that llama.cpp sees; GGML_VK_VISIBLE_DEVICES chooses which that is.
  explicit PeerContext(const PeerOptions& options);

  const std::string& device() const { return device_; }
  uint32_t threads() const { return threads_; }
  uint32_t vocab() const { return vocab_; }

  /// Appends tokens at positions first ..., in one call, and waits until their logits are there.
  void append(std::span<const int32_t> tokens, uint32_t first, Outputs outputs);

  /// Forgets positions from `first` on.
  void truncate(uint32_t first);

  /// f32 [vocab] of row `row` of the last call; the row must have been one of its outputs.
  std::span<const float> logits(uint32_t row) const;

  /// The token with the largest logit; of equals the lowest.
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
