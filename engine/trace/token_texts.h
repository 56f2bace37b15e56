#pragma once
// The texts of tokens for display, from a loaded model or from a trace.

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

  /// Bytes of a token, which are not always whole characters, and whether it is a control token. Nothing where it is
  /// not known: outside the vocabulary, or in no record of the trace (a redacted one knows none).
  virtual std::optional<trace::Piece> find(uint32_t token) const = 0;
};

/// Those of a tokenizer or of a trace, which they keep alive. Nothing is copied.
std::shared_ptr<const TokenTexts> token_texts(std::shared_ptr<const Tokenizer> tokenizer);
std::shared_ptr<const TokenTexts> token_texts(std::shared_ptr<const TraceReader> trace);

}  // namespace canopy
