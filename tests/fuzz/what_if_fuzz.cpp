// Re-runs of recordings and calibrations that somebody sent. The input is a trace, or an archive of its records
// (trace_archive.h); a file "costs" of the archive is a calibration, whose hash is made right.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "engine/speculation/calibration.h"
#include "engine/whatif/what_if.h"
#include "tests/fuzz/archive.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/sealed_calibration.h"
#include "tests/fuzz/trace_archive.h"

namespace canopy::fuzz {
namespace {

constexpr uint64_t kMostTokens = 512;  // of a re-run; then it is stopped, as its user may
constexpr uint32_t kWidest = 129;      // rows of a pass, likewise

bool finite(double value) {
  return std::isfinite(value) && value >= 0;
}

void check_rounds(const std::vector<RecordedReply>& replies, const WhatIf& run, uint32_t widest) {
  uint64_t tokens = 0;
  double ms = 0;
  for (const WhatIfRound& round : run.rounds) {
    require(round.reply < replies.size(), "a round is of a reply");
    const RecordedReply& reply = replies[round.reply];
    require(!round.record.emitted.empty(), "every round brings a token");
    require(round.record.width >= 1 && round.record.width <= widest, "no pass is wider than was allowed");
    require(round.record.context >= reply.drafting.committed, "rounds begin behind the prompt");
    const size_t first = round.record.context - reply.drafting.committed + 1;
    require(first + round.record.emitted.size() <= reply.text.size() &&
                std::equal(round.record.emitted.begin(), round.record.emitted.end(),
                           reply.text.begin() + static_cast<std::ptrdiff_t>(first)),
            "a re-run writes the recorded text");
    require(finite(round.record.ms.total()) && finite(round.ar_ms), "times are finite and not negative");
    tokens += round.record.emitted.size();
    ms += round.record.ms.total();
  }
  require(tokens == run.tokens, "tokens are those of the rounds");
  require(finite(run.ms) && std::abs(ms - run.ms) <= 1e-9 * std::max(1.0, ms), "the time is that of the rounds");
}

void check(const std::vector<RecordedReply>& replies, const WhatIf& run, const WhatIfWish& wish) {
  check_rounds(replies, run, wish.widest);
  require(finite(run.ar_ms) && finite(run.tokens_per_second()) && finite(run.ar_tokens_per_second()) &&
              finite(run.tokens_a_round()),
          "totals are finite and not negative");
  require(run.exact == run.why_not.empty(), "what is not exact says why");
  if (wish.costs && run.tokens > 0) require(run.ms > 0 && run.ar_ms > 0, "with costs, every total is positive");
  const WhatIfSummary summary = summarize(run);
  require(finite(summary.ratio), "a ratio is finite");
  touch(summary.verdict);
}

bool same(const WhatIf& a, const WhatIf& b) {
  return a.exact == b.exact && a.ms == b.ms && a.ar_ms == b.ar_ms &&
         std::equal(a.rounds.begin(), a.rounds.end(), b.rounds.begin(), b.rounds.end(),
                    [](const WhatIfRound& x, const WhatIfRound& y) {
                      return x.record.width == y.record.width && x.record.emitted == y.record.emitted &&
                             x.record.shape == y.record.shape && x.record.context == y.record.context;
                    });
}

/// The replies as if the re-run had been recorded: their drafts and what was known stay.
std::vector<RecordedReply> recorded_as(std::vector<RecordedReply> replies, const WhatIf& run, DecodeMode mode) {
  for (size_t i = 0; i < replies.size(); ++i) {
    auto records = std::make_shared<std::vector<RoundRecord>>();
    for (const WhatIfRound& round : run.rounds)
      if (round.reply == i) records->push_back(round.record);
    replies[i].mode = mode;
    replies[i].rounds = records->size();
    replies[i].round = [records](size_t round) { return records->at(round); };
  }
  return replies;
}

/// Nothing where it was refused or stopped.
std::optional<WhatIf> rerun(const std::vector<RecordedReply>& replies, const WhatIfWish& wish) {
  std::stop_source enough;
  WhatIfCallbacks callbacks;
  callbacks.stop = enough.get_token();
  callbacks.progress = [&](uint64_t done, uint64_t) {
    if (done >= kMostTokens) enough.request_stop();
  };
  try {
    return what_if(replies, wish, callbacks);
  } catch (const Error& refusal) {
    if (refusal.kind() != ErrorKind::cancelled) require_clear(refusal);
    return std::nullopt;
  }
}

void check_wish(const std::vector<RecordedReply>& replies, const WhatIfWish& wish) {
  const std::optional<WhatIf> run = rerun(replies, wish);
  if (!run) return;
  check(replies, *run, wish);
  const std::optional<WhatIf> again = rerun(replies, wish);
  require(again && same(*run, *again), "a re-run is the same each time");
  // With costs of another device, decisions are made of drafts, text and costs alone; so they are its own.
  if (!wish.costs || !run->exact || run->rounds.empty() || !wish.mode) return;
  const std::optional<WhatIf> own = rerun(recorded_as(replies, *run, *wish.mode), wish);
  require(own && same(*run, *own), "a re-run of a re-run gives its own decisions");
  require(own->as_recorded == own->rounds.size(), "and finds every pass as it was recorded");
}

void check_all(const std::shared_ptr<const TraceReader>& trace, std::string_view costs) {
  const std::vector<RecordedReply> replies = recorded_replies(trace);
  if (replies.empty()) {
    require(!rerun(replies, {}), "nothing is made of nothing");
    return;
  }
  check_wish(replies, {});  // as it was: nothing is to be other, so costs need not be known
  WhatIfWish wish;
  wish.budget = 8;
  wish.widest = kWidest;
  if (!costs.empty()) {
    accepted([&] { wish.costs = WhatIfCosts{parse_foreign_calibration(sealed_calibration(costs)).table, nullptr}; });
  }
  // With the costs of the recording, and with those of the input where it has some.
  for (const DecodeMode mode : {DecodeMode::ar, DecodeMode::chain, DecodeMode::tree, DecodeMode::adaptive}) {
    wish.mode = mode;
    check_wish(replies, wish);
  }
}

}  // namespace

void run(std::string_view input) {
  static ScratchFile file;
  file.write(trace_of(input));
  const std::string_view costs = find_file(split_archive(input), "costs");
  accepted([&] { check_all(std::make_shared<const TraceReader>(TraceReader::open(file.path())), costs); });
}

}  // namespace canopy::fuzz
