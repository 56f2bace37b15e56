#include "engine/trace/trace_format.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/numbers.h"
#include "engine/text/tokenizer.h"
#include "engine/trace/trace_reader.h"

namespace canopy {
namespace {

constexpr uint32_t reflected_polynomial = 0x82f63b78;
constexpr size_t slices = 8;

/// tables[k][b]: contribution of byte value b to the CRC when k more bytes follow it in the same step.
constexpr auto tables = [] {
  std::array<std::array<uint32_t, 256>, slices> made = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? reflected_polynomial : 0);
    made[0][byte] = crc;
  }
  for (size_t k = 1; k < slices; ++k) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      made[k][byte] = (made[k - 1][byte] >> 8) ^ made[0][made[k - 1][byte] & 0xff];
    }
  }
  return made;
}();

}  // namespace

uint32_t crc32c(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  uint32_t crc = ~0u;
  // Eight bytes in each step, each byte with its own table, so that the lookups are independent of each other.
  while (reader.remaining() >= slices) {
    const uint64_t step = reader.read<uint64_t>("eight bytes") ^ crc;
    crc = 0;
    for (size_t k = 0; k < slices; ++k) crc ^= tables[slices - 1 - k][(step >> (8 * k)) & 0xff];
  }
  while (reader.remaining() > 0) crc = (crc >> 8) ^ tables[0][(crc ^ reader.read<uint8_t>("a byte")) & 0xff];
  return ~crc;
}

}  // namespace canopy

namespace canopy::trace {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

void append_prologue(std::string& bytes) {
  const size_t start = bytes.size();
  bytes += magic;
  ByteWriter out(bytes);
  out.fixed(major_version);
  out.fixed(minor_version);
  out.fixed(crc32c(bytes_of(std::string_view(bytes).substr(start))));
}

void check_prologue(Reader& reader) {
  if (reader.remaining() < magic.size()) throw bad_input("It is no trace: it is too short.");
  const std::string_view begin = reader.text(magic.size(), "the magic");
  if (begin.starts_with('{'))
    throw bad_input(
        "It is no trace but JSON: canopy-cli sweep --show reads sweeps, trace what-if --costs calibrations.");
  if (begin != magic) throw bad_input("It is no trace: it does not begin like one.");
  if (reader.remaining() < prologue_bytes - magic.size()) throw bad_input("It ends before the header of a trace.");
  const auto versions = reader.bytes(4, "the version");
  std::string checked(magic);
  checked.append(reinterpret_cast<const char*>(versions.data()), versions.size());
  if (reader.read<uint32_t>("the checksum of the version") != crc32c(bytes_of(checked))) {
    throw bad_input("Its version is damaged: the checksum behind it does not match.");
  }
  Reader fields(versions);
  const auto major = fields.read<uint16_t>("the major version");
  const auto minor = fields.read<uint16_t>("the minor version");
  if (major == major_version) return;
  throw bad_input("It is a trace of format " + std::to_string(major) + "." + std::to_string(minor) +
                  "; this version of Canopy reads format " + std::to_string(major_version) + "." +
                  (major > major_version ? " Use a newer Canopy." : ""));
}

void append_record(std::string& bytes, Kind kind, std::string_view payload) {
  if (payload.size() > max_payload_bytes) {
    throw bad_input("A record of " + std::to_string(payload.size()) + " bytes is too long for a trace; at most " +
                    std::to_string(max_payload_bytes) + " are allowed.");
  }
  std::string checked;
  checked.reserve(payload.size() + frame_bytes);
  ByteWriter out(checked);
  out.fixed(static_cast<uint32_t>(payload.size()));
  out.byte(static_cast<uint8_t>(kind));
  checked += payload;
  ByteWriter(bytes).fixed(crc32c(bytes_of(checked)));
  bytes += checked;
}

std::optional<Record> next_record(Reader& reader) {
  if (reader.remaining() < frame_bytes) return std::nullopt;
  Reader ahead = reader;
  const auto checksum = ahead.read<uint32_t>("the checksum of a record");
  Reader checked = ahead;
  const auto length = ahead.read<uint32_t>("the length of a record");
  const auto kind = static_cast<Kind>(ahead.read<uint8_t>("the kind of a record"));
  if (length > max_payload_bytes || length > ahead.remaining()) return std::nullopt;
  const auto payload = ahead.bytes(length, "a record");
  if (crc32c(checked.bytes(frame_bytes - sizeof checksum + length, "a record")) != checksum) return std::nullopt;
  reader = ahead;
  return Record{kind, payload};
}

}  // namespace canopy::trace

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

void check_counts(uint32_t lists, uint32_t candidates) {
  if (lists < 1 || lists > max_round_depth) {
    refuse_draft("it has " + std::to_string(lists) + " depths; 1 to " + std::to_string(max_round_depth) +
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

/// How a draft was made whose lists stand behind paths; a version that knows only the first reads all others like it.
constexpr uint8_t kMadeByToken = 1, kMadeInOnePass = 2;

/// Checks where the lists of a draft made token by token stand, and returns the depth of the deepest.
uint32_t deepest_of(const BlockDraft& block) {
  uint32_t deepest = 0;
  std::vector<uint32_t> lengths(block.behind.size(), 0);
  for (uint32_t i = 1; i < block.behind.size(); ++i) {
    if (block.behind[i] >= i * block.candidates) {
      refuse_draft("list " + std::to_string(i) + " stands behind candidate " + std::to_string(block.behind[i]) +
                   "; allowed: those of lists before it, below " + std::to_string(i * block.candidates) + ".");
    }
    lengths[i] = lengths[block.behind[i] / block.candidates] + 1;
    deepest = std::max(deepest, lengths[i]);
  }
  return deepest + 1;
}

}  // namespace

void encode(const KeptDraft& draft, std::string& bytes) {
  const BlockDraft& block = draft.block;
  const uint32_t lists = block.is_by_token() ? block.lists() : block.depths;
  check_counts(lists, block.candidates);
  const size_t all = size_t{lists} * block.candidates;
  if (block.tokens.size() != all || block.logits.size() != all || block.log_sum_exp.size() != lists) {
    refuse_draft("it has " + std::to_string(block.tokens.size()) + " tokens, " + std::to_string(block.logits.size()) +
                 " logits and " + std::to_string(block.log_sum_exp.size()) + " sums for " + std::to_string(lists) +
                 " depths of " + std::to_string(block.candidates) + " candidates.");
  }
  if (block.is_by_token() && (block.behind.size() != lists || deepest_of(block) != block.depths)) {
    refuse_draft("it has " + std::to_string(block.behind.size()) + " places of " + std::to_string(lists) +
                 " lists, or another depth than these.");
  }
  ByteWriter out(bytes);
  out.whole(lists);
  out.whole(block.candidates);
  for (uint32_t i = 0; i < lists; ++i) {
    const DepthCandidates here = block.list(i);
    out.number(block.log_sum_exp[i]);
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
  if (!block.is_by_token()) return;
  out.byte(block.in_one_pass ? kMadeInOnePass : kMadeByToken);
  for (uint32_t i = 1; i < lists; ++i) out.whole(block.behind[i]);
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
  // A block, or of a version before 1.3; whoever adds to what blocks have writes 0 first.
  const uint8_t made = reader.remaining() == 0 ? uint8_t{0} : reader.read<uint8_t>("how a draft was made");
  if (made == 0) return draft;
  block.in_one_pass = made == kMadeInOnePass;
  block.behind.assign(1, BlockDraft::none);
  while (block.behind.size() < block.lists()) {
    block.behind.push_back(read_whole(reader, "the place of a list"));
  }
  block.depths = deepest_of(block);
  return draft;
}

namespace {

// Bits of a node's first byte: its state, and which fields are left out because they can be derived or are stored as
// f32 because that is exact.
constexpr uint8_t node_state = 0x03;
constexpr uint8_t node_has_target = 0x04;
constexpr uint8_t node_has_log_p = 0x08;
constexpr uint8_t node_log_q_is_float = 0x10;
constexpr uint8_t node_score_is_sum = 0x20;  // the parent's score + log q
constexpr uint8_t node_flags = 0x3f;

constexpr uint8_t round_teaches_nothing = 0x01;
constexpr uint8_t round_counts_experts = 0x02;
constexpr uint8_t round_names_sources = 0x04;
constexpr uint8_t round_counts_places = 0x08;

constexpr uint64_t smallest_node_bytes = 7;        // flags, token, rank, log q as a float
constexpr uint64_t smallest_candidate_bytes = 17;  // width, two doubles

using StageTimes = std::array<double, 6>;

StageTimes stages_of(const RoundTimes& times) {
  return {times.draft, times.build, times.verify, times.walk, times.commit, times.other};
}

bool is_float(double value) {
  return std::abs(value) <= std::numeric_limits<float>::max() &&
         static_cast<double>(static_cast<float>(value)) == value;
}

double sum_score(const RoundRecord& record, const TreeNode& node) {
  return node.parent == TreeNode::none ? node.log_q : record.nodes[node.parent].node.score + node.log_q;
}

/// Equal bits: -0.0 is not 0.0.
bool same(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

void write_node(ByteWriter& out, const RoundRecord& record, size_t index) {
  const RoundNode& row = record.nodes[index];
  const TreeNode& node = row.node;
  const bool sums = same(node.score, sum_score(record, node));
  uint8_t flags = static_cast<uint8_t>(row.state);
  if (row.target_token != RoundNode::unknown) flags |= node_has_target;
  if (!std::isnan(row.log_p)) flags |= node_has_log_p;
  if (is_float(node.log_q)) flags |= node_log_q_is_float;
  if (sums) flags |= node_score_is_sum;
  out.byte(flags);
  out.whole(node.token);
  if (index > 0) out.whole(index - node.parent);
  out.whole(node.rank);
  if ((flags & node_log_q_is_float) != 0) {
    out.number(static_cast<float>(node.log_q));
  } else {
    out.number(node.log_q);
  }
  if (!sums) out.number(node.score);
  if ((flags & node_has_target) != 0) out.whole(row.target_token);
  if ((flags & node_has_log_p) != 0) out.number(row.log_p);
}

NodeState state_of(uint8_t value) {
  if (value > static_cast<uint8_t>(NodeState::not_reached)) {
    throw bad_input("The state of a node is " + std::to_string(value) + "; allowed: 0 to 2.");
  }
  return static_cast<NodeState>(value);
}

RoundNode read_node(Reader& reader, const RoundRecord& record) {
  const auto index = static_cast<uint32_t>(record.nodes.size());
  const auto flags = reader.read<uint8_t>("the flags of a node");
  if ((flags & ~node_flags) != 0) throw bad_input("The flags of a node have bits that mean nothing.");
  RoundNode row;
  TreeNode& node = row.node;
  row.state = state_of(flags & node_state);
  node.token = read_whole(reader, "the token of a node");
  if (index > 0) {
    const auto back = read_whole(reader, "the parent of a node");
    if (back == 0 || back > index) {
      throw bad_input("The parent of node " + std::to_string(index) + " lies " + std::to_string(back) +
                      " nodes before it; allowed: 1 to " + std::to_string(index) + ".");
    }
    node.parent = index - back;
    node.depth = record.nodes[node.parent].node.depth + 1;
  }
  node.rank = read_whole(reader, "the rank of a node");
  node.log_q = (flags & node_log_q_is_float) != 0 ? double{reader.read<float>("the log q of a node")}
                                                  : reader.read<double>("the log q of a node");
  node.score = (flags & node_score_is_sum) != 0 ? sum_score(record, node) : reader.read<double>("the score of a node");
  if ((flags & node_has_target) != 0) row.target_token = read_whole(reader, "the target's token of a node");
  if ((flags & node_has_log_p) != 0) row.log_p = reader.read<float>("the log p of a node");
  return row;
}

/// A bit for each stage that took time, then those times.
void write_times(ByteWriter& out, const RoundTimes& times) {
  const StageTimes stages = stages_of(times);
  uint8_t present = 0;
  for (size_t i = 0; i < stages.size(); ++i) present |= static_cast<uint8_t>(stages[i] != 0 ? 1u << i : 0u);
  out.byte(present);
  for (const double ms : stages) {
    if (ms != 0) out.number(ms);
  }
}

RoundTimes read_times(Reader& reader) {
  const auto present = reader.read<uint8_t>("the times of a pass");
  if (present >= 1u << StageTimes().size()) throw bad_input("The times of a pass name a stage that does not exist.");
  StageTimes stages = {};
  for (size_t i = 0; i < stages.size(); ++i) {
    if ((present >> i & 1) != 0) stages[i] = reader.read<double>("the time of a stage");
  }
  return {stages[0], stages[1], stages[2], stages[3], stages[4], stages[5]};
}

/// Writes limit + 1, so that `none` (the largest uint32) wraps around to 0.
void write_limit(ByteWriter& out, uint32_t limit) {
  out.whole(static_cast<uint32_t>(limit + 1));
}

uint32_t read_limit(Reader& reader) {
  return read_whole(reader, "the limit of a pass") - 1;
}

void write_choice(ByteWriter& out, const RoundChoice& choice) {
  out.number(choice.ar_tokens_per_second);
  out.text(choice.reason);
  const WidthLimits& limits = choice.limits;
  for (const uint32_t limit : {limits.budget, limits.depth, limits.tokens_left, limits.context_left, limits.rows}) {
    write_limit(out, limit);
  }
  out.whole(choice.candidates.size());
  uint32_t last = 0;
  for (const WidthForecast& candidate : choice.candidates) {
    out.whole(candidate.width - last);
    out.number(candidate.expected);
    out.number(candidate.ms);
    last = candidate.width;
  }
}

RoundChoice read_choice(Reader& reader) {
  RoundChoice choice;
  choice.ar_tokens_per_second = reader.read<double>("the rate of plain decoding");
  choice.reason = read_text(reader, "the reason of a pass");
  WidthLimits& limits = choice.limits;
  for (uint32_t* limit : {&limits.budget, &limits.depth, &limits.tokens_left, &limits.context_left, &limits.rows}) {
    *limit = read_limit(reader);
  }
  const uint32_t count = read_count(reader, smallest_candidate_bytes, "the number of candidates");
  choice.candidates.reserve(count);
  uint32_t width = 0;
  for (uint32_t i = 0; i < count; ++i) {
    width = checked_add(width, read_whole(reader, "the width of a candidate"), "width of a candidate");
    const auto expected = reader.read<double>("the expected tokens of a candidate");
    choice.candidates.push_back({width, expected, reader.read<double>("the predicted time of a candidate")});
  }
  return choice;
}

DecodeMode mode_of(unsigned value) {
  if (value > static_cast<unsigned>(DecodeMode::adaptive)) {
    throw bad_input("The mode of a pass is " + std::to_string(value) + "; allowed: 0 to 3.");
  }
  return static_cast<DecodeMode>(value);
}

}  // namespace

namespace {

/// The sources of all nodes but the root where they are the same; 0 where they differ.
DraftSources common_sources(const RoundRecord& record) {
  if (record.nodes.size() < 2) return 0;
  const DraftSources first = record.nodes[1].node.sources;
  const auto same = [&](const RoundNode& row) { return row.node.sources == first; };
  return std::all_of(record.nodes.begin() + 1, record.nodes.end(), same) ? first : 0;
}

void read_sources(Reader& reader, RoundRecord& record) {
  record.match = read_whole(reader, "the match of a pass");
  const auto common = reader.read<uint8_t>("the sources of a pass");
  for (size_t i = 1; i < record.nodes.size(); ++i) {
    const DraftSources sources = common != 0 ? common : reader.read<uint8_t>("the sources of a node");
    record.nodes[i].node.sources = sources;
  }
}

bool is_from_a_text(const RoundNode& row) {
  return (row.node.sources & (kFromSuffix | kFromEarlier)) != 0;
}

void read_places(Reader& reader, RoundRecord& record) {
  for (RoundNode& row : record.nodes) {
    if (!is_from_a_text(row)) continue;
    row.node.went_on.places = read_whole(reader, "the places of a node");
    row.node.went_on.times = read_whole(reader, "the times of a node");
  }
}

}  // namespace

void encode(const RoundRecord& record, std::string& bytes) {
  ByteWriter out(bytes);
  out.whole(record.round);
  out.whole(record.context);
  out.byte(static_cast<uint8_t>(static_cast<unsigned>(record.mode) | static_cast<unsigned>(record.shape) << 4));
  out.whole(record.width);
  out.whole(record.accepted);
  out.whole(record.emitted.size());
  for (const uint32_t token : record.emitted) out.whole(token);
  out.whole(record.nodes.size());
  for (size_t i = 0; i < record.nodes.size(); ++i) write_node(out, record, i);
  for (const RoundTimes* times : {&record.ms, &record.device_ms, &record.predicted}) write_times(out, *times);
  write_choice(out, record.choice);
  out.whole(record.backlog);
  const uint8_t counts = record.distinct_experts != 0 ? round_counts_experts : 0;
  const auto has_sources = [](const RoundNode& row) { return row.node.sources != 0; };
  const bool named = record.match > 0 || std::ranges::any_of(record.nodes, has_sources);
  const uint8_t names = named ? round_names_sources : 0;
  const bool counted =
      std::ranges::any_of(record.nodes, [](const RoundNode& row) { return row.node.went_on.places > 0; });
  const uint8_t places = counted ? round_counts_places : 0;
  out.byte(static_cast<uint8_t>((record.teaches ? 0 : round_teaches_nothing) | counts | names | places));
  if (counts != 0) out.number(record.distinct_experts);
  if (!named) return;
  out.whole(record.match);
  const DraftSources common = common_sources(record);
  out.byte(common);
  for (size_t i = 1; common == 0 && i < record.nodes.size(); ++i) out.byte(record.nodes[i].node.sources);
  if (!counted) return;
  for (const RoundNode& row : record.nodes) {
    if (!is_from_a_text(row)) continue;
    out.whole(row.node.went_on.places);
    out.whole(row.node.went_on.times);
  }
}

RoundRecord decode_round_record(Reader& reader) {
  RoundRecord record;
  record.round = read_whole(reader, "the number of a pass");
  record.context = read_whole(reader, "the context of a pass");
  const auto modes = reader.read<uint8_t>("the mode of a pass");
  record.mode = mode_of(modes & 0x0f);
  record.shape = mode_of(modes >> 4);
  record.width = read_whole(reader, "the width of a pass");
  record.accepted = read_whole(reader, "the number of accepted tokens");
  record.emitted.resize(read_count(reader, 1, "the number of emitted tokens"));
  for (uint32_t& token : record.emitted) token = read_whole(reader, "the emitted token");
  const uint32_t nodes = read_count(reader, smallest_node_bytes, "the number of nodes");
  record.nodes.reserve(nodes);
  while (record.nodes.size() < nodes) record.nodes.push_back(read_node(reader, record));
  for (RoundTimes* times : {&record.ms, &record.device_ms, &record.predicted}) *times = read_times(reader);
  record.choice = read_choice(reader);
  if (reader.remaining() > 0) {  // since version 1.1
    record.backlog = read_whole(reader, "the backlog of a pass");
    const auto flags = reader.read<uint8_t>("the flags of a pass");
    record.teaches = (flags & round_teaches_nothing) == 0;
    if ((flags & round_counts_experts) != 0) record.distinct_experts = reader.read<float>("the experts of a pass");
    if ((flags & round_names_sources) != 0) read_sources(reader, record);  // since 1.2
    if ((flags & round_counts_places) != 0) read_places(reader, record);   // since 1.3
  }
  validate(record);
  return record;
}

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
