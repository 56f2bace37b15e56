#pragma once
// The bound on the time that a user may lose by speculation (design.md, section 3).

#include <cstdint>

#include "engine/speculation/state_archive.h"

namespace canopy {

struct BoundSettings {
  double slack = 0.02;         // share of autoregressive decoding's time that may be lost
  double rounds = 2;           // and as many rounds
  double trial_share = 0.01;   // share of the time that trial drafts may lose, within the slack
  uint32_t shortest_wait = 8;  // tokens between trial drafts, at first
  uint32_t longest_wait = 256;
};

/// Throws Error(bad_input) naming the field unless all are finite, not negative and in order.
void validate(const BoundSettings& settings);

/// Keeps the account of a reply: elapsed <= (1 + slack) * (time of its tokens in autoregressive decoding) + `rounds`
/// rounds, including the worst case of the next round. The measured time of an AR round counts as autoregressive
/// decoding itself, so that only the time of speculated tokens is estimated.
class SpeculationBound {
 public:
  explicit SpeculationBound(const BoundSettings& settings);

  /// Begins a reply. Time that the reply before gained may not be lost in this one; time that it lost beyond the bound
  /// still counts.
  void begin_reply();

  /// An AR round took `ms`.
  void decoded(double ms);
  /// A round with a draft took `ms` and emitted `tokens`, which take `ar_ms` each autoregressively. trial: it was
  /// allowed by may_try().
  void speculated(double ms, uint32_t tokens, double ar_ms, bool trial);

  /// Whether a round that may take `worst_ms` and emits one token keeps the bound. `round_ms` is the length of each of
  /// the `rounds` rounds; the cheapest one is the safe choice.
  bool allows(double worst_ms, double ar_ms, double round_ms) const {
    return worst_ms <= longest_allowed(ar_ms, round_ms);
  }
  double longest_allowed(double ar_ms, double round_ms) const;

  /// While drafting does not pay: whether a trial that may lose `cost_ms` is due and within `part` of the trials'
  /// share.
  bool may_try(double cost_ms, double part = 1) const;
  /// Milliseconds of the trials' share of all replies so far that are not used up.
  double trials_left_ms() const { return settings_.trial_share * elapsed_ - trials_lost_; }
  /// Tokens until the next trial is due by its interval alone.
  uint32_t wait() const { return since_draft_ < interval_ ? interval_ - since_draft_ : 0; }

  /// Milliseconds that may be lost before only the `rounds` rounds are left; negative when those are in use.
  double balance_ms() const { return balance_; }

  /// The account, not the settings.
  void archive(StateArchive& archive);

 private:
  void adapt_interval(double gain_ms);

  BoundSettings settings_;
  double balance_ = 0;
  double elapsed_ = 0;      // of all replies
  double trials_lost_ = 0;  // in those that lost, less what others gained; not below 0
  uint32_t interval_;
  uint32_t since_draft_ = 0;  // tokens emitted since the last draft
};

}  // namespace canopy
