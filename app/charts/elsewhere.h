#pragma once
// What recorded passes would have cost on another GPU: each cut at the size that this GPU would choose, its time by the
// roofline of what is published of it. A prediction: nothing was measured there. Pure.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>

#include "app/models/device_profiles.h"
#include "app/rounds/round_log.h"
#include "engine/speculation/roofline.h"

namespace canopy::app {

/// What a pass of the target takes of any device.
struct PassNeeds {
  // The bytes and operations of the model; without it those of its weights alone, which is nearly all for short texts.
  std::optional<PassWork> work;
  double bytes_per_weight = 0;  // as kept on the device; 0: not known
  bool known() const { return work || bytes_per_weight > 0; }
};

/// Bytes of a weight by the name of its type, which may be a part of a longer text: 0.625 for "SmolLM2 135M Q4_1". 0
/// where no known name is in it.
double bytes_per_weight(std::string_view text);

/// Time of a pass of so many rows behind a context, in seconds; with bytes_per_weight alone, for one weight.
double pass_seconds(const DeviceProfile& device, const PassNeeds& needs, uint32_t rows, uint32_t context);

/// A recorded round on another device.
struct ElsewhereRound {
  uint32_t budget = 0;      // drafted nodes that would be verified
  uint32_t tokens = 0;      // that the text would have taken of this tree
  double plain_tokens = 0;  // time of the round, draft included, in times of a plain pass there
  double draft_tokens = 0;  // of the draft alone
};

/// The round cut at the size with the most expected tokens for its time, never larger than it was. nullopt for a round
/// without a draft. plain_ms: of a plain token where the round was recorded; 0 where it is not known.
std::optional<ElsewhereRound> elsewhere_round(const RoundRecord& record, const DeviceProfile& device,
                                              const PassNeeds& needs, double plain_ms);

/// Some rounds together. A mean: with a shorter acceptance the next draft would have begun elsewhere.
struct Elsewhere {
  const DeviceProfile* device = nullptr;
  uint64_t rounds = 0;
  double tokens = 0;                     // of a round
  double plain_tokens = 0;               // time of a round
  double ratio = 0;                      // speed over plain decoding on the same device; 0 without rounds
  uint32_t least = 0, most = 0;          // budgets
  std::optional<ElsewhereRound> newest;  // the last of the rounds
};

/// The newest rounds with a draft of the shown reply, read once each.
class ElsewhereTrail {
 public:
  static constexpr size_t kRounds = 64;

  /// Of the rounds of the reply up to `round`, at most kRounds of them.
  Elsewhere up_to(const std::shared_ptr<RoundLog>& log, size_t round, const DeviceProfile& device,
                  const PassNeeds& needs, double plain_ms);

 private:
  void read(size_t round, const DeviceProfile& device, const PassNeeds& needs, double plain_ms);

  struct Read {
    size_t round = 0;
    ElsewhereRound there;
  };
  std::shared_ptr<RoundLog> log_;
  const DeviceProfile* device_ = nullptr;
  double weight_ = 0, plain_ms_ = 0;
  size_t first_ = 0, next_ = 0;  // of the reply; the next round to read
  std::deque<Read> read_;
};

}  // namespace canopy::app
