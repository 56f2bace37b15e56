#include "app/rounds/ar_reference.h"

#include <algorithm>

#include "app/base/figures.h"

namespace canopy::app {
namespace {

constexpr uint64_t kFewestDrafts = 4;  // rounds with a draft
constexpr uint64_t kDraftShare = 10;   // one of so many rounds at least has a draft

std::string measured_by(const ArReference& reference) {
  switch (reference.source) {
    case ArSource::same_text:
      return "measured when this reply was written once more without drafts, " +
             counted(reference.rounds, "round", "rounds");
    case ArSource::plain_rounds: return "measured over " + counted(reference.rounds, "plain round", "plain rounds");
    case ArSource::calibration: return "measured by the calibration";
    case ArSource::forecast: return "predicted for this round, nothing was measured";
    case ArSource::none: break;
  }
  return "";
}

/// When it was measured; empty where that is not known and for a forecast.
std::string when_words(const ArReference& reference, int64_t now_ms) {
  if (reference.recorded) return "in the recording";
  const std::string age = age_words(reference.at_ms, now_ms);
  return age.empty() && reference.source == ArSource::calibration ? "earlier" : age;
}

}  // namespace

const char* badge_of(const ArReference& reference) {
  return !reference.known() ? "" : reference.measured() ? "measured" : "predicted";
}

std::string age_words(int64_t at_ms, int64_t now_ms) {
  if (at_ms <= 0 || now_ms <= 0) return "";
  const int64_t minutes = std::max<int64_t>(0, now_ms - at_ms) / 60'000;
  if (minutes < 1) return "just now";
  if (minutes < 60) return std::to_string(minutes) + " min ago";
  if (minutes < 48 * 60) return std::to_string(minutes / 60) + " h ago";
  return grouped(static_cast<uint64_t>(minutes / (24 * 60))) + " days ago";
}

std::string ar_origin(const ArReference& reference, int64_t now_ms) {
  if (!reference.known()) return "";
  std::string words = measured_by(reference);
  if (const std::string when = when_words(reference, now_ms); !when.empty()) words += ", " + when;
  return reference.where.empty() ? words : words + "; " + reference.where;
}

std::string ar_age(const ArReference& reference, int64_t now_ms) {
  const std::string badge = badge_of(reference), when = when_words(reference, now_ms);
  return badge.empty() || when.empty() ? badge : badge + " " + when;
}

bool enough_drafted(const RoundStatistics& rounds) {
  const uint64_t drafted = rounds.of(DecodeMode::chain).rounds + rounds.of(DecodeMode::tree).rounds;
  return drafted >= kFewestDrafts && drafted * kDraftShare >= rounds.rounds();
}

}  // namespace canopy::app
