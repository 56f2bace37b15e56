#pragma once
// A model on disk as the engine sees it: configuration, tensors and the raw material of the tokenizer, with what the
// names of tokens say of them.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/format/model_config.h"
#include "engine/format/tensor.h"
#include "engine/format/tensor_file.h"

namespace canopy {

// What the spelling of a token says of it, whatever a file says: converters often type the tokens that end a reply as
// text, or name only one of them. The names are those that llama.cpp knows.

struct NamedTokens {
  std::vector<uint32_t> ends;       // end a reply; ascending
  std::vector<uint32_t> file_ends;  // of these the ones that end a file which is filled in; chats have none; ascending
  std::vector<uint32_t> controls;   // are control tokens, those of `ends` included; ascending
  /// "<|end|>" where the vocabulary has other tokens that end a reply (harmony's "<|return|>" and "<|call|>"): it ends
  /// one message of several in a reply, even where a file names it among the ends.
  std::vector<uint32_t> message_ends;
};

/// `types` are the numbers of TokenType by id; a token without one is a normal one.
NamedTokens named_tokens(std::span<const std::string_view> tokens, std::span<const int32_t> types);

// A model on disk as the engine sees it: one validated config, tensors under canonical names, and the raw material of
// the tokenizer, from a GGUF file or a Hugging Face folder alike. The bytes stay in the mapped file; nothing is copied.
//
// Canonical names are GGUF's without ".weight" (H hidden, V vocab, F ffn, D head_dim, Q heads*D, K kv_heads*D):
//   token_embd [V, H]   output_norm [H]   output [V, H] (absent when the head is tied)   rope_freqs [D/2] (optional)
//   blk.N.attn_norm [H]   blk.N.attn_q [Q, H]   blk.N.attn_k [K, H]   blk.N.attn_v [K, H]   blk.N.attn_output [H, Q]
//   blk.N.attn_q.bias [Q]   blk.N.attn_k.bias [K]   blk.N.attn_v.bias [K] (all where config.has_qkv_bias)
//   blk.N.attn_q_norm [D]   blk.N.attn_k_norm [D] (both where config.has_qk_norm)
//   blk.N.ffn_norm [H]   blk.N.ffn_gate [F, H]   blk.N.ffn_up [F, H]   blk.N.ffn_down [H, F]
// and where layer N has E experts of width X, in the place of the last three:
//   blk.N.ffn_gate_inp [E, H]   blk.N.ffn_gate.M [X, H]   blk.N.ffn_up.M [X, H]   blk.N.ffn_down.M [H, X] of expert M

/// The data in a file that a tokenizer is built from. Views point into the mapped file. One of the two halves is
/// filled.
struct TokenizerSource {
  enum class Kind { none, gguf, hugging_face };
  Kind kind = Kind::none;

  // GGUF: tokenizer.ggml.*
  std::string model;                     // "gpt2" (byte-level BPE), "llama" (SentencePiece), ...
  std::string pre;                       // name of the pre-tokenizer, e.g. "smollm", "qwen2"
  std::vector<std::string_view> tokens;  // by id
  std::vector<std::string_view> merges;  // "left right", by rank
  std::vector<int32_t> types;            // by id: 1 normal, 2 unknown, 3 control, 4 user, 5 unused, 6 byte
  std::vector<float> scores;             // by id; SentencePiece
  std::optional<uint32_t> bos, eos, unknown, padding, mask;
  std::optional<bool> add_bos, add_eos, add_space_prefix;
  bool control_strips_right = false;  // white space behind a control token is none of the text, which GGUF cannot say

  // Hugging Face: the files' bytes, empty where a file is absent.
  std::string tokenizer_json;
  std::string tokenizer_model;  // SentencePiece; read only where there is no tokenizer.json
  std::string tokenizer_config_json;

  // Jinja, empty where the model brings none. The second is for chats with tools, where it has one of its own for them.
  std::string chat_template, tool_template;
};

class ModelFile {
 public:
  /// Opens a .gguf file (or all parts of a split one by any of them), a folder with config.json and safetensors, a
  /// .safetensors file in one, or a model in the cache of Hugging Face (model_paths.h), and validates all of it. Throws
  /// Error(bad_input) with the path in front.
  static ModelFile open(const std::filesystem::path& path);

  /// A model of that configuration with random weights and no tokenizer, for measurements: no file is read or written.
  /// Throws bad_input for a configuration that validate_config() refuses, and what RandomTensors throws.
  static ModelFile of_random_weights(const ModelConfig& config, const TypeOfTensor& type_of);

  ModelFile(ModelFile&&) noexcept;
  ModelFile& operator=(ModelFile&&) noexcept;
  ~ModelFile();

  /// Empty where there is no file.
  const std::filesystem::path& path() const;
  /// The files that hold the weights; see TensorFile::files().
  std::vector<std::filesystem::path> files() const;
  const ModelConfig& config() const;
  const TokenizerSource& tokenizer() const;

  /// All tensors in file order.
  std::span<const TensorView> tensors() const;
  /// Null when there is none of that name.
  const TensorView* find(std::string_view name) const;
  /// The tensor of that name and shape; a vector has rows = 1. Throws with expected and actual shape.
  const TensorView& require(std::string_view name, uint64_t rows, uint64_t cols) const;

  /// Every tensor the architecture needs is there, has its shape and a type we can decode, and no tensor is there that
  /// the architecture does not know (ignoring it would change the text). open() has called it already.
  void validate_tensors() const;

  /// Throws when a file was shrunk or rewritten since it was opened: reading lost pages would end the process. Cheap
  /// (one fstat a file): call it before each large copy.
  void check_unchanged() const;

 private:
  struct State;
  explicit ModelFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace canopy
