#pragma once
// The texts of tokens by id, from a loaded model's tokenizer or from a trace.

#include <cstdint>
#include <memory>
#include <optional>

#include "engine/trace/trace_format.h"

namespace canopy {

class Tokenizer;
class TraceReader;

/// Immutable: any thread may ask at any time. Views stay valid as long as this lives.
class TokenTexts {
 public:
  virtual ~TokenTexts() = default;

  /// Bytes of a token, which are not always whole characters, and whether it is a control token. Nothing for a token
  /// outside the vocabulary or without a text in the trace (a redacted trace has no texts).
  virtual std::optional<trace::Piece> find(uint32_t token) const = 0;
};

/// The texts of a tokenizer or of a trace. The result shares ownership of its source; nothing is copied.
std::shared_ptr<const TokenTexts> token_texts(std::shared_ptr<const Tokenizer> tokenizer);
std::shared_ptr<const TokenTexts> token_texts(std::shared_ptr<const TraceReader> trace);

}  // namespace canopy
