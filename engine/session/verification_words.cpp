#include "engine/session/verification_words.h"

#include <array>
#include <cstdio>
#include <optional>

#include "engine/base/printable.h"

namespace canopy {
namespace {

std::string decimals(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

/// "' the' (token 278, logit 12.5000)"
std::string token_words(const Engine& engine, const TraceReader& trace, std::optional<uint32_t> token,
                        std::optional<float> logit) {
  if (!token) return "the end of the reply";
  std::string words = "#" + std::to_string(*token);
  if (const trace::Piece* piece = trace.piece(*token))
    words = quoted_name(piece->bytes);
  else if (const std::optional<trace::Piece> here = engine.texts->find(*token))
    words = quoted_name(here->bytes);
  words += " (token " + std::to_string(*token);
  if (logit) words += ", logit " + decimals(double{*logit}, 4);
  return words + ")";
}

std::string difference_words(const Engine& engine, const TraceReader& trace, const ReplyVerdict& verdict) {
  const TextDifference& d = *verdict.difference;
  std::string words = "differs at token " + std::to_string(d.token + 1) + " of " + std::to_string(verdict.tokens) +
                      " (position " + std::to_string(d.position) + "): recorded " +
                      token_words(engine, trace, d.recorded, d.recorded_logit) + ", here " +
                      token_words(engine, trace, d.here, d.here_logit);
  if (!d.lead) return words + ".";
  words += "; the one here leads by " + decimals(*d.lead, 6) + " nats";
  return words +
         (d.is_near_tie() ? ": a near tie, which a device that rounds otherwise may break the other way." : ".");
}

}  // namespace

std::string verdict_words(const Engine& engine, const TraceReader& trace, const ReplyVerdict& verdict) {
  switch (verdict.kind) {
    case ReplyVerdict::Kind::same:
      return "same text, " + std::to_string(verdict.tokens) + " of " + std::to_string(verdict.tokens) + " tokens";
    case ReplyVerdict::Kind::not_checked: return "not checked. " + verdict.reason;
    case ReplyVerdict::Kind::different: return difference_words(engine, trace, verdict);
  }
  return "";
}

}  // namespace canopy
