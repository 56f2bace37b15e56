#pragma once
// The commands of llamacpp_probe and their options. Measurements are printed as JSON on standard output.

#include <cstdint>
#include <string>
#include <vector>

#include "peer_context.h"

namespace canopy::peer {

struct BenchOptions {
  PeerOptions peer;
  std::vector<uint32_t> widths = {1, 2, 4, 8, 16};
  uint32_t at = 128;  // committed positions before a pass and before decoding
  uint32_t decode_tokens = 8;
  std::vector<uint32_t> prefill_tokens = {128};  // lengths of prompts
  uint32_t repeats = 1;                          // measurements of each pass and prompt, of which the median counts
};

/// Warms up and prints a line {backend, device, threads}. Then, for each line read from standard input, it measures
/// and prints {prefill_ms: {length: ms}, pass_ms: {width: ms}, decode_ms: [ms of each token]}, so that a caller can
/// alternate measurements of two programs without starting them each time.
void run_bench(const BenchOptions& options);

struct LogitsOptions {
  PeerOptions peer;
  std::string ids_file;  // output of `canopy-cli logits`, of which "ids" and "window" are used
  uint32_t top = 20;
  uint32_t chunk = 128;   // rows of one call
  std::string rows_file;  // gets the whole rows, f32, one position after the other; none where it is empty
};

/// Prints {backend, device, threads, top: [[[id, logit], ...] of each position]}.
void run_logits(const LogitsOptions& options);

/// DFlash and its relatives; heads of the model; assistants of Gemma 4.
enum class DrafterKind { block, eagle3, head, assistant };

struct DraftsOptions {
  PeerOptions peer;     // of the target, with a cache in f32 whatever it says
  std::string drafter;  // path of a GGUF file; of a head the target's own, too
  DrafterKind kind = DrafterKind::block;
  uint32_t depth = 1;       // tokens to draft
  uint32_t first_slot = 1;  // of a block: the row that predicts the token behind the root
  std::string ids_file;     // {"texts": [[id, ...], ...]}; a text's last token is the root
};

/// Prints {drafts: [{tokens: [id, ...], log_p: [...]} of each text]}: the likeliest token of each depth and its log
/// probability behind those before it.
void run_drafts(const DraftsOptions& options);

/// Writes the GGUF file `source` to `target` with all its matrices as F32. The values are the same, but llama.cpp does
/// not round the activations that it multiplies them with.
void run_widen(const std::string& source, const std::string& target);

}  // namespace canopy::peer
