#pragma once
// Checks replies of a recording, made here or elsewhere: writes each again on this machine, compares the tokens, and
// says in words what was found.

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/session/engine.h"
#include "engine/trace/trace_reader.h"

namespace canopy {

/// Where the reply written here is another one than that recorded. Logits are after bias and penalties; those of a
/// token that is not there are not either.
struct TextDifference {
  size_t token = 0;                        // of the reply, from 0
  size_t position = 0;                     // in the text, prompt included
  std::optional<uint32_t> recorded, here;  // none where that reply has ended
  std::optional<float> recorded_logit, here_logit;
  /// By how much the token here was preferred: of logits where the likeliest is taken, else of log p + noise, by which
  /// tokens are drawn; in nats.
  std::optional<double> lead;

  /// So small a lead that another device, which rounds otherwise, may prefer the other token.
  bool is_near_tie() const { return lead && *lead < kNearTie; }
  static constexpr double kNearTie = 0.05;
};

struct ReplyVerdict {
  enum class Kind : uint8_t { same, different, not_checked };
  size_t reply = 0;  // of the recording
  DecodeMode mode = DecodeMode::ar;
  Kind kind = Kind::not_checked;
  size_t tokens = 0;   // recorded
  std::string reason;  // why it was not checked, as a sentence
  std::optional<TextDifference> difference;
};

/// How the models of a recording and of this machine compare.
struct RecordedIdentity {
  std::vector<std::string> differences;  // of what decides the text, each as a sentence: such a recording is refused
  std::vector<std::string> notes;        // of what does not, likewise
};

/// Compares models, weights, cache and vocabulary; `drafts`: with the drafter too. Throws bad_input for a recording
/// without texts and tokens, which cannot be checked.
RecordedIdentity compare_identity(const Engine& engine, const TraceReader& trace, bool drafts);

struct VerifyCallbacks {
  std::function<void(size_t done, size_t total)> progress;  // tokens of the reply
  std::stop_token stop;
};

/// Writes one reply of a recording again, in this mode and with its own settings, and compares. A reply that was
/// stopped or cut off is compared as far as it goes. Throws cancelled, what Engine::reply() throws, and bad_input for a
/// record that contradicts itself.
ReplyVerdict verify_reply(const Engine& engine, const TraceReader& trace, size_t reply, DecodeMode mode,
                          const VerifyCallbacks& callbacks = {});

// What a check of a recording found, in words.

/// "same text, 24 of 24 tokens"; or where it differs, in which tokens, and by how much one of them led.
std::string verdict_words(const Engine& engine, const TraceReader& trace, const ReplyVerdict& verdict);

}  // namespace canopy
