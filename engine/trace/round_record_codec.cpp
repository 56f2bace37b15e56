#include "engine/trace/round_record_codec.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "engine/base/checked.h"
#include "engine/base/error.h"
#include "engine/trace/trace_bytes.h"

namespace canopy {
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
  const auto present = reader.read<uint8_t>("the times of a round");
  if (present >= 1u << StageTimes().size()) throw bad_input("The times of a round name a stage that does not exist.");
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
  return read_whole(reader, "the limit of a round") - 1;
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
  choice.reason = read_text(reader, "the reason of a round");
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
    throw bad_input("The mode of a round is " + std::to_string(value) + "; allowed: 0 to 3.");
  }
  return static_cast<DecodeMode>(value);
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
  out.byte(static_cast<uint8_t>((record.teaches ? 0 : round_teaches_nothing) | counts));
  if (counts != 0) out.number(record.distinct_experts);
}

RoundRecord decode_round_record(Reader& reader) {
  RoundRecord record;
  record.round = read_whole(reader, "the number of a round");
  record.context = read_whole(reader, "the context of a round");
  const auto modes = reader.read<uint8_t>("the mode of a round");
  record.mode = mode_of(modes & 0x0f);
  record.shape = mode_of(modes >> 4);
  record.width = read_whole(reader, "the width of a round");
  record.accepted = read_whole(reader, "the number of accepted tokens");
  record.emitted.resize(read_count(reader, 1, "the number of emitted tokens"));
  for (uint32_t& token : record.emitted) token = read_whole(reader, "the emitted token");
  const uint32_t nodes = read_count(reader, smallest_node_bytes, "the number of nodes");
  record.nodes.reserve(nodes);
  while (record.nodes.size() < nodes) record.nodes.push_back(read_node(reader, record));
  for (RoundTimes* times : {&record.ms, &record.device_ms, &record.predicted}) *times = read_times(reader);
  record.choice = read_choice(reader);
  if (reader.remaining() > 0) {  // since version 1.1
    record.backlog = read_whole(reader, "the backlog of a round");
    const auto flags = reader.read<uint8_t>("the flags of a round");
    record.teaches = (flags & round_teaches_nothing) == 0;
    if ((flags & round_counts_experts) != 0) record.distinct_experts = reader.read<float>("the experts of a round");
  }
  validate(record);
  return record;
}

}  // namespace canopy
