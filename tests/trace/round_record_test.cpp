#include "engine/speculation/round_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/trace/trace_format.h"
#include "tests/base/expect_error.h"
#include "tests/trace/trace_builder.h"
#include "tests/trace/trace_compare.h"

namespace canopy {
namespace {

using test::expect_error;
using test::TraceBuilder;

std::span<const std::byte> view_of(const std::string& bytes) {
  return std::as_bytes(std::span(bytes));
}

RoundRecord coded(const RoundRecord& record) {
  std::string bytes;
  encode(record, bytes);
  Reader reader(view_of(bytes));
  const RoundRecord back = decode_round_record(reader);
  EXPECT_EQ(reader.remaining(), 0u);
  return back;
}

TEST(PlainBeside, IsOfPassesAloneAndTheMiddleOne) {
  RoundRecord plain;
  plain.emitted = {7};
  plain.ms.verify = 10;
  EXPECT_TRUE(is_plain(plain));
  RoundRecord other = plain;
  other.ms.draft = 3;  // it looked what a draft would have been worth
  EXPECT_FALSE(is_plain(other));
  other = plain;
  other.teaches = false;  // a kernel was compiled in it
  EXPECT_FALSE(is_plain(other));
  other = plain;
  other.shape = DecodeMode::tree;
  EXPECT_FALSE(is_plain(other));
  const PlainBeside beside = median_pass({10, 500, 11, 9, 12}, true);
  EXPECT_EQ(beside, (PlainBeside{11, 5, true})) << "one slow pass changes nothing";
  EXPECT_NEAR(beside.tokens_per_second(), 1000.0 / 11, 1e-9);
  EXPECT_EQ(PlainBeside().tokens_per_second(), 0);
}

TEST(RoundRecordCodec, KeepsEveryFieldOfRandomRounds) {
  TraceBuilder builder(3);
  builder.begin();
  for (int i = 0; i < 200; ++i) {
    const RoundRecord record = builder.any();
    test::expect_same(record, coded(record));
  }
}

TEST(RoundRecordCodec, KeepsExtremeValues) {
  TraceBuilder builder;
  RoundRecord record = builder.tree(9);
  constexpr uint32_t largest = std::numeric_limits<uint32_t>::max();
  record.round = record.context = largest;
  record.emitted = {largest};
  RoundNode& row = record.nodes[8];
  row.node.token = row.node.rank = largest;
  row.node.log_q = -1e300;  // too large for a float
  row.node.score = -0.0;
  row.target_token = largest - 1;
  row.log_p = -std::numeric_limits<float>::infinity();
  record.nodes[7].target_token = RoundNode::unknown;
  record.nodes[7].node.log_q = -std::numeric_limits<double>::denorm_min();
  record.ms = {0, 1e-300, 1e300, 0.1, 0, 3};
  record.choice.limits = {0, WidthLimits::none, largest - 1, 1, 2};
  record.choice.candidates = {{1, 0, 0}, {max_round_width, 1e300, 5e-324}};
  record.choice.reason = std::string("\0\xff\n", 3);
  record.match = largest;
  record.nodes[3].node.sources = kAllSources;
  record.nodes[4].node.sources = kFromSuffix;
  record.nodes[3].node.went_on = {3, 4};
  record.nodes[4].node.went_on = {largest, largest};
  record.nodes[5].node.sources = 0;
  test::expect_same(record, coded(record));
}

TEST(RoundRecordCodec, KeepsTheShapesOfAllModes) {
  TraceBuilder builder;
  for (const DecodeMode mode : {DecodeMode::ar, DecodeMode::chain, DecodeMode::tree, DecodeMode::adaptive}) {
    builder.begin(mode);
    for (const RoundRecord& record : {builder.plain(), builder.chain(9), builder.tree(40)}) {
      const RoundRecord back = coded(record);
      EXPECT_EQ(back.mode, mode);
      test::expect_same(record, back);
    }
  }
}

/// But the one that version 1.0 wrote whole.
TEST(RoundRecordCodec, RefusesEveryTruncation) {
  constexpr size_t since_1_1 = 4;  // backlog, flags; match and sources, which the flags announce
  TraceBuilder builder;
  std::string bytes;
  encode(builder.tree(20), bytes);
  for (size_t length = 0; length < bytes.size(); ++length) {
    if (length == bytes.size() - since_1_1) continue;
    // A string of exactly this size, so that a sanitizer sees reads after its end.
    const std::string cut = bytes.substr(0, length);
    test::error_of([&] {
      Reader reader(view_of(cut));
      decode_round_record(reader);
    });
  }
}

/// Without a checksum: whatever can be decoded must be a valid record.
TEST(RoundRecordCodec, RefusesFlippedBitsOrGivesAValidRecord) {
  TraceBuilder builder;
  std::string whole;
  encode(builder.tree(20), whole);
  size_t refused = 0;
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    Reader reader(view_of(bytes));
    try {
      validate(decode_round_record(reader));
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::bad_input);
      ++refused;
    }
  }
  EXPECT_GT(refused, 0u);
}

TEST(RoundRecordCodec, LeavesWhatALaterVersionAddsUnread) {
  TraceBuilder builder;
  const RoundRecord record = builder.tree(5);
  std::string bytes;
  encode(record, bytes);
  Reader reader(view_of(bytes += "later"));
  test::expect_same(record, decode_round_record(reader));
  EXPECT_EQ(reader.remaining(), 5u);
}

struct Wrong {
  const char* name;
  const char* message;
  void (*spoil)(RoundRecord&);
};

class InvalidRound : public testing::TestWithParam<Wrong> {};

TEST_P(InvalidRound, IsNamedByItsField) {
  RoundRecord record = TraceBuilder().tree(9);
  ASSERT_NO_THROW(validate(record));
  GetParam().spoil(record);
  expect_error(GetParam().message, [&] { validate(record); });
  std::string bytes;
  encode(record, bytes);
  Reader reader(view_of(bytes));
  test::error_of([&] { decode_round_record(reader); });
}

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

const Wrong wrong[] = {
    {"ShapeAdaptive", "shape is adaptive", [](RoundRecord& r) { r.shape = DecodeMode::adaptive; }},
    {"WidthZero", "width is 0", [](RoundRecord& r) { r.width = 0; }},
    {"WidthHuge", "width is 65537", [](RoundRecord& r) { r.width = max_round_width + 1; }},
    {"NodesMissing", "8 nodes", [](RoundRecord& r) { r.nodes.pop_back(); }},
    {"NoNodes", "0 nodes", [](RoundRecord& r) { r.nodes.clear(); }},
    {"AcceptedAll", "9 drafted tokens", [](RoundRecord& r) { r.accepted = 9; }},
    {"EmittedTooMany", "emitted 10 tokens", [](RoundRecord& r) { r.emitted.assign(10, 1); }},
    {"RootRejected", "root is not accepted", [](RoundRecord& r) { r.nodes[0].state = NodeState::rejected; }},
    {"ParentSelf", "node 4 has the parent 4", [](RoundRecord& r) { r.nodes[4].node.parent = 4; }},
    {"LogQNan", "log q", [](RoundRecord& r) { r.nodes[3].node.log_q = nan; }},
    {"ScoreInfinite", "score", [](RoundRecord& r) { r.nodes[3].node.score = -INFINITY; }},
    {"LogPInfinite", "infinite log p", [](RoundRecord& r) { r.nodes[3].log_p = INFINITY; }},
    {"WentOnTooOften", "node 3 went on 5 times at 4 places",
     [](RoundRecord& r) {
       r.nodes[3].node.sources = kFromSuffix, r.nodes[3].node.went_on = {5, 4};
     }},
    {"TimeNan", "time of a stage", [](RoundRecord& r) { r.ms.walk = nan; }},
    {"TimeNegative", "time of a stage", [](RoundRecord& r) { r.predicted.draft = -1; }},
    {"DeviceTimeInfinite", "time of a stage", [](RoundRecord& r) { r.device_ms.verify = INFINITY; }},
    {"CandidateZero", "candidate's width is 0", [](RoundRecord& r) { r.choice.candidates[0].width = 0; }},
    {"CandidateTwice", "candidate's width is 1 behind one of 1",
     [](RoundRecord& r) { r.choice.candidates[1].width = 1; }},
    {"ExpectedNan", "expected tokens", [](RoundRecord& r) { r.choice.candidates[2].expected = nan; }},
    {"CandidateTime", "predicted time", [](RoundRecord& r) { r.choice.candidates[2].ms = -2; }},
    {"ArRate", "plain decoding", [](RoundRecord& r) { r.choice.ar_tokens_per_second = INFINITY; }},
    {"ReasonLong", "reason has 4097 bytes", [](RoundRecord& r) { r.choice.reason.assign(4097, 'x'); }},
};

INSTANTIATE_TEST_SUITE_P(Cases, InvalidRound, testing::ValuesIn(wrong),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(RoundRecord, DepthsFollowFromParents) {
  RoundRecord record = TraceBuilder().tree(9);
  ++record.nodes[5].node.depth;
  expect_error("node 5 has the depth", [&] { validate(record); });
  record = TraceBuilder().tree(9);
  record.nodes[0].node.parent = 0;
  expect_error("node 0 is not the root", [&] { validate(record); });
}

TEST(RoundRecord, ATreeMayBeDeepButNotEndless) {
  RoundRecord record;
  record.shape = DecodeMode::chain;
  record.nodes.resize(max_round_depth + 2);
  record.nodes[0].state = NodeState::accepted;
  for (uint32_t i = 1; i < record.nodes.size(); ++i) {
    record.nodes[i].node.parent = i - 1;
    record.nodes[i].node.depth = i;
  }
  record.width = max_round_depth + 2;
  record.emitted = {1};
  expect_error("at most 1024", [&] { validate(record); });
  record.nodes.pop_back();
  --record.width;
  EXPECT_NO_THROW(validate(record));
}

TEST(RoundRecord, FindsTheCandidateOfItsWidth) {
  RoundRecord record = TraceBuilder().tree(9);
  ASSERT_NE(chosen_candidate(record), nullptr);
  EXPECT_EQ(chosen_candidate(record)->width, 9u);
  record.choice.candidates.erase(record.choice.candidates.begin() + 8);
  EXPECT_EQ(chosen_candidate(record), nullptr);
}

}  // namespace
}  // namespace canopy
