#include "engine/trace/kept_draft_codec.h"

#include <bit>
#include <cmath>

#include "engine/base/error.h"
#include "engine/trace/round_record.h"
#include "engine/trace/trace_bytes.h"

namespace canopy {
namespace {

constexpr uint32_t most_candidates = 1u << 20;   // of a depth: more than any vocabulary
constexpr uint64_t smallest_candidate_size = 2;  // a token, a difference

/// Ascending with the value, so that the differences of a descending list are not negative.
uint32_t ordered_bits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value == 0 ? 0.0f : value);  // -0 is as large as 0
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

float value_of(uint32_t ordered) {
  return std::bit_cast<float>((ordered & 0x80000000u) != 0 ? ordered & 0x7fffffffu : ~ordered);
}

[[noreturn]] void refuse_draft(const std::string& what) {
  throw bad_input("The record of a draft is wrong: " + what);
}

void check_counts(uint32_t depths, uint32_t candidates) {
  if (depths < 1 || depths > max_round_depth) {
    refuse_draft("it has " + std::to_string(depths) + " depths; 1 to " + std::to_string(max_round_depth) +
                 " are allowed.");
  }
  if (candidates < 1 || candidates > most_candidates) {
    refuse_draft("it has " + std::to_string(candidates) + " candidates of a depth; 1 to " +
                 std::to_string(most_candidates) + " are allowed.");
  }
}

void check_more(const BlockDraft& block, uint32_t last, uint32_t depth, size_t count) {
  if (depth <= last || depth > block.depths) {
    refuse_draft("further candidates are of depth " + std::to_string(depth) + " behind depth " + std::to_string(last) +
                 "; ascending depths up to " + std::to_string(block.depths) + " are allowed.");
  }
  if (count <= block.candidates || count > most_candidates) {
    refuse_draft("depth " + std::to_string(depth) + " got " + std::to_string(count) + " candidates; more than " +
                 std::to_string(block.candidates) + " and at most " + std::to_string(most_candidates) +
                 " are allowed.");
  }
}

/// Candidates from `first` on; the one before that, if there is one, was written already.
void write_candidates(ByteWriter& out, std::span<const uint32_t> tokens, std::span<const float> logits, size_t first) {
  for (size_t i = first; i < tokens.size(); ++i) {
    if (!std::isfinite(logits[i])) refuse_draft("a logit is " + std::to_string(logits[i]) + ".");
    const uint32_t here = ordered_bits(logits[i]);
    if (i == 0) {
      out.fixed(here);
    } else if (const uint32_t before = ordered_bits(logits[i - 1]); here <= before) {
      out.whole(before - here);
    } else {
      refuse_draft("its logits are not in descending order.");
    }
    out.whole(tokens[i]);
  }
}

void read_candidates(Reader& reader, size_t count, std::vector<uint32_t>& tokens, std::vector<float>& logits,
                     bool begins) {
  for (; count > 0; --count, begins = false) {
    uint32_t ordered = 0;
    if (begins) {
      ordered = reader.read<uint32_t>("the first logit of a depth");
    } else {
      const uint32_t before = ordered_bits(logits.back());
      const auto step = read_whole(reader, "the step to a logit");
      if (step > before) refuse_draft("a logit lies below all numbers.");
      ordered = before - step;
    }
    const float logit = value_of(ordered);
    if (!std::isfinite(logit)) refuse_draft("a logit is " + std::to_string(logit) + ".");
    logits.push_back(logit);
    tokens.push_back(read_whole(reader, "the token of a candidate"));
  }
}

MoreCandidates read_more(Reader& reader, const BlockDraft& block, uint32_t last) {
  MoreCandidates more;
  more.depth = read_whole(reader, "the depth of further candidates");
  const uint64_t added = read_count(reader, smallest_candidate_size, "the number of further candidates");
  check_more(block, last, more.depth, block.candidates + added);
  const DepthCandidates known = block.at(more.depth);
  more.tokens.assign(known.tokens.begin(), known.tokens.end());
  more.logits.assign(known.logits.begin(), known.logits.end());
  read_candidates(reader, added, more.tokens, more.logits, false);
  return more;
}

}  // namespace

void encode(const KeptDraft& draft, std::string& bytes) {
  const BlockDraft& block = draft.block;
  check_counts(block.depths, block.candidates);
  const size_t all = size_t{block.depths} * block.candidates;
  if (block.tokens.size() != all || block.logits.size() != all || block.log_sum_exp.size() != block.depths) {
    refuse_draft("it has " + std::to_string(block.tokens.size()) + " tokens, " + std::to_string(block.logits.size()) +
                 " logits and " + std::to_string(block.log_sum_exp.size()) + " sums for " +
                 std::to_string(block.depths) + " depths of " + std::to_string(block.candidates) + " candidates.");
  }
  ByteWriter out(bytes);
  out.whole(block.depths);
  out.whole(block.candidates);
  for (uint32_t depth = 1; depth <= block.depths; ++depth) {
    const DepthCandidates here = block.at(depth);
    out.number(block.log_sum_exp[depth - 1]);
    write_candidates(out, here.tokens, here.logits, 0);
  }
  out.whole(draft.more.size());
  uint32_t last = 0;
  for (const MoreCandidates& more : draft.more) {
    check_more(block, last, more.depth, more.tokens.size());
    if (more.logits.size() != more.tokens.size()) refuse_draft("further candidates have no logits.");
    last = more.depth;
    out.whole(more.depth);
    out.whole(more.tokens.size() - block.candidates);
    write_candidates(out, more.tokens, more.logits, block.candidates);
  }
}

KeptDraft decode_kept_draft(Reader& reader) {
  KeptDraft draft;
  BlockDraft& block = draft.block;
  block.depths = read_whole(reader, "the depths of a draft");
  block.candidates = read_whole(reader, "the candidates of a draft");
  check_counts(block.depths, block.candidates);
  const uint64_t all = uint64_t{block.depths} * block.candidates;
  if (all > reader.remaining() / smallest_candidate_size) {
    refuse_draft("it announces " + std::to_string(all) + " candidates; only " + std::to_string(reader.remaining()) +
                 " bytes follow.");
  }
  block.tokens.reserve(all);
  block.logits.reserve(all);
  for (uint32_t depth = 1; depth <= block.depths; ++depth) {
    const auto sum = reader.read<float>("the log-sum-exp of a depth");
    if (!std::isfinite(sum)) refuse_draft("a log-sum-exp is " + std::to_string(sum) + ".");
    block.log_sum_exp.push_back(sum);
    read_candidates(reader, block.candidates, block.tokens, block.logits, true);
  }
  const uint32_t lists = read_count(reader, 2 + smallest_candidate_size, "the number of longer lists");
  uint32_t last = 0;
  for (uint32_t i = 0; i < lists; ++i) {
    draft.more.push_back(read_more(reader, block, last));
    last = draft.more.back().depth;
  }
  return draft;
}

}  // namespace canopy
