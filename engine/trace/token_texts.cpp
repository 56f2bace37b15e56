#include "engine/trace/token_texts.h"

#include <utility>

#include "engine/text/tokenizer.h"
#include "engine/trace/trace_reader.h"

namespace canopy {
namespace {

class TokenizerTexts final : public TokenTexts {
 public:
  explicit TokenizerTexts(std::shared_ptr<const Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}

  std::optional<trace::Piece> find(uint32_t token) const override {
    if (token >= tokenizer_->vocab_size()) return std::nullopt;
    return trace::Piece{tokenizer_->token_bytes(token), tokenizer_->is_special(token)};
  }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
};

class TraceTexts final : public TokenTexts {
 public:
  explicit TraceTexts(std::shared_ptr<const TraceReader> trace) : trace_(std::move(trace)) {}

  std::optional<trace::Piece> find(uint32_t token) const override {
    const trace::Piece* piece = trace_->piece(token);
    return piece == nullptr ? std::nullopt : std::optional(*piece);
  }

 private:
  std::shared_ptr<const TraceReader> trace_;
};

}  // namespace

std::shared_ptr<const TokenTexts> token_texts(std::shared_ptr<const Tokenizer> tokenizer) {
  return std::make_shared<TokenizerTexts>(std::move(tokenizer));
}

std::shared_ptr<const TokenTexts> token_texts(std::shared_ptr<const TraceReader> trace) {
  return std::make_shared<TraceTexts>(std::move(trace));
}

}  // namespace canopy
