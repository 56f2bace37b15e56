// Recordings of the engine re-run: with their own costs they give their own decisions; a dense one made under costs A,
// re-timed to B, equals one made under B.

#include <gtest/gtest.h>

#include <cmath>

#include "engine/session/reply_trace.h"
#include "engine/whatif/what_if.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/model/device_under_test.h"
#include "tests/model/golden_data.h"
#include "tests/trace/trace_compare.h"

namespace canopy::test {
namespace {

constexpr CostPolicy kPolicies[] = {CostPolicy::measured, CostPolicy::static_roofline, CostPolicy::ema,
                                    CostPolicy::ema_calib, CostPolicy::paper};

/// A made-up device: passes of so many milliseconds, with an edge behind every tile of 8 rows.
CostTable made_up(double fixed, double each_row, double draft) {
  CostTable table;
  for (const uint32_t context : {16u, 600u}) {
    for (uint32_t width = 1; width <= 128; ++width) {
      const double tile = std::ceil(width / 8.0);
      table.set_verify(width, context, fixed + each_row * width + 0.4 * tile + 1e-4 * context * width);
    }
    for (const uint32_t backlog : {0u, 8u, 128u}) table.set_draft(backlog, context, draft + 0.004 * backlog);
  }
  table.set_other(1, 0.05);
  table.set_other(128, 0.2);
  return table;
}

const CostTable kMemoryBound = made_up(10, 0.02, 1.5);
const CostTable kComputeBound = made_up(2, 2.5, 4);
const CostTable kBetween = made_up(6, 0.6, 1);

class WhatIfEngine : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { open("tiny-qwen3-dflash-b8"); }
  static void open(const char* drafter, const char* model = "tiny-qwen3") {
    delete loaded_;
    OpenRequest request;
    request.path = golden_folder() / model;
    request.drafter = golden_folder() / drafter;
    request.cache_type = cache_under_test();
    request.context = 512;
    request.self_test = false;
    loaded_ = Engine::open(device_under_test(), request, {}).release();
  }
  static void TearDownTestSuite() {
    delete loaded_;
    loaded_ = nullptr;
  }

  std::filesystem::path file(const std::string& name) const { return folder_.path() / (name + ".canopytrace"); }

  /// Nothing was learnt, and passes cost this; with `made_up_times`, rounds take it too.
  void begin_anew(const CostTable& costs, bool made_up_times) {
    loaded_->resident->clear();
    const Roofline roofline = loaded_->speculation->roofline();
    PairFacts pair;
    pair.block_size = loaded_->block();
    pair.by_token = loaded_->draft_model != nullptr || loaded_->drafter->by_token();
    pair.roofline = [roofline] { return roofline; };
    loaded_->speculation = std::make_unique<SpeculationState>(std::move(pair), costs);
    times_ = costs;
    times_.set_roofline(calibrated_roofline(roofline, costs));
    if (made_up_times) loaded_->speculation->run_on(&times_);
  }

  ReplySettings settings(DecodeMode mode, CostPolicy policy = CostPolicy::measured, float temperature = 0) const {
    ReplySettings settings;
    settings.mode = mode;
    settings.policy = policy;
    settings.budget = 12;
    settings.max_tokens = 60;
    settings.sampling.temperature = temperature;
    return settings;
  }

  std::vector<uint32_t> prompt(int turn) const {
    const char* const texts[] = {"def read_file(path, mode='r'):\n    \"\"\"Return the", "1 2 3 4 5 6 7 8 9 10 11 12"};
    return loaded_->text.encode_raw(texts[turn % 2]);
  }

  /// Three replies: two of their own, and one that goes on with the text of the second.
  std::vector<Reply> record(const std::string& name, ReplySettings settings) {
    ReplyTrace trace(file(name), *loaded_);
    std::vector<Reply> replies;
    for (int turn = 0; turn < 2; ++turn) replies.push_back(trace.record(prompt(turn), settings, {}));
    std::vector<uint32_t> longer = prompt(1);
    longer.insert(longer.end(), replies[1].ids.begin(), replies[1].ids.end());
    longer.push_back(longer[2]);
    settings.max_tokens = 30;
    replies.push_back(trace.record(longer, settings, {}));
    trace.finish();
    EXPECT_EQ(trace.problem(), "");
    return replies;
  }

  std::vector<RecordedReply> read(const std::string& name) const {
    return recorded_replies(std::make_shared<const TraceReader>(TraceReader::open(file(name))));
  }

  TempFolder folder_;
  static Engine* loaded_;
  static CostTable times_;
};

Engine* WhatIfEngine::loaded_ = nullptr;
CostTable WhatIfEngine::times_;

/// Everything but the target's tokens beside the path and its probabilities, which a re-run does not have, and the time
/// by the device's clock.
void expect_same_round(const RoundRecord& made, const RoundRecord& recorded) {
  EXPECT_EQ(made.context, recorded.context);
  EXPECT_EQ(made.mode, recorded.mode);
  EXPECT_EQ(made.shape, recorded.shape);
  EXPECT_EQ(made.width, recorded.width);
  EXPECT_EQ(made.accepted, recorded.accepted);
  EXPECT_EQ(made.emitted, recorded.emitted);
  ASSERT_EQ(made.nodes.size(), recorded.nodes.size());
  for (size_t i = 0; i < made.nodes.size(); ++i) {
    RoundNode node = recorded.nodes[i];
    node.log_p = made.nodes[i].log_p;
    if (node.state != NodeState::accepted) node.target_token = RoundNode::unknown;
    expect_same(made.nodes[i], node);
  }
  EXPECT_EQ(made.ms, recorded.ms);
  EXPECT_EQ(made.predicted, recorded.predicted);
  EXPECT_EQ(made.backlog, recorded.backlog);
  EXPECT_EQ(made.teaches, recorded.teaches);
  expect_same(made.choice, recorded.choice);
}

void expect_same_rounds(const WhatIf& run, const std::vector<RecordedReply>& replies) {
  size_t next = 0;
  for (size_t reply = 0; reply < replies.size(); ++reply) {
    for (size_t i = 0; i < replies[reply].rounds; ++i, ++next) {
      SCOPED_TRACE("reply " + std::to_string(reply) + ", round " + std::to_string(i));
      ASSERT_LT(next, run.rounds.size());
      ASSERT_EQ(run.rounds[next].reply, reply);
      expect_same_round(run.rounds[next].record, replies[reply].round(i));
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_EQ(next, run.rounds.size());
}

TEST_F(WhatIfEngine, WithItsOwnCostsARecordingGivesItsOwnDecisionsUnderAllPolicies) {
  for (const CostPolicy policy : kPolicies) {
    for (const float temperature : {0.0f, 0.8f}) {
      SCOPED_TRACE(std::string(to_string(policy)) + " at " + std::to_string(temperature));
      begin_anew(kBetween, false);  // rounds take what the clock says
      record("run", settings(DecodeMode::adaptive, policy, temperature));
      const std::vector<RecordedReply> replies = read("run");
      ASSERT_EQ(replies.size(), 3u);
      const WhatIf run = what_if(replies, {});
      EXPECT_TRUE(run.exact) << run.why_not;
      expect_same_rounds(run, replies);
      EXPECT_EQ(run.as_recorded, run.rounds.size());
      EXPECT_EQ(run.chosen, run.rounds.size());
      EXPECT_GT(run.tokens_per_second(), 0);
      EXPECT_GT(run.ar_tokens_per_second(), 0);
    }
  }
}

/// A recording needs no drafts of what its text suggests: they are found again. Nor does it to say what a reply that
/// was written plainly would have gained.
TEST_F(WhatIfEngine, DraftsFromTheTextAreFoundAgain) {
  for (const DecodeMode mode : {DecodeMode::adaptive, DecodeMode::tree, DecodeMode::chain}) {
    SCOPED_TRACE(to_string(mode));
    begin_anew(kBetween, false);
    ReplySettings wanted = settings(mode);
    wanted.sources = kFromSuffix;
    record("run", wanted);
    const std::vector<RecordedReply> replies = read("run");
    ASSERT_EQ(replies.size(), 3u);
    const WhatIf run = what_if(replies, {});
    EXPECT_TRUE(run.exact) << run.why_not;
    expect_same_rounds(run, replies);
    EXPECT_TRUE(std::ranges::any_of(run.rounds, [](const WhatIfRound& each) { return each.record.accepted > 0; }));
  }
  begin_anew(kBetween, false);
  ReplySettings plain = settings(DecodeMode::ar);
  plain.sources = kFromSuffix;
  record("plain", plain);
  WhatIfWish wish;
  wish.mode = DecodeMode::tree;
  wish.budget = 12;
  wish.costs = WhatIfCosts{kMemoryBound, nullptr};
  const WhatIf run = what_if(read("plain"), wish);
  EXPECT_TRUE(run.exact) << run.why_not;
  EXPECT_GT(run.ar_ms, run.ms);
}

/// As long as each draft of a smaller model was, or of a head of the model itself, token by token.
TEST_F(WhatIfEngine, DraftsMadeTokenByTokenAreThoseRecorded) {
  CostTable cheap;
  for (const uint32_t width : {1u, 2u, 16u, 64u}) cheap.set_verify(width, 16, 10 + 0.05 * width);
  for (const uint32_t unread : {1u, 16u}) cheap.set_draft(unread, 16, 1 + 0.01 * unread);
  for (const DraftSources source : {kFromDraft, kFromMtp, kFromEagle, kFromAssistant}) {
    SCOPED_TRACE(list_of(source));
    if (source == kFromMtp) {
      open("tiny-qwen3_5-mtp", "tiny-qwen3_5-mtp");
    } else if (source == kFromAssistant) {
      open("tiny-gemma4-assistant", "tiny-gemma4-f16.gguf");
    } else {
      open(source == kFromDraft ? "tiny-qwen3-q8_0.gguf" : "tiny-qwen3-eagle3");
    }
    for (const DecodeMode mode : {DecodeMode::adaptive, DecodeMode::tree, DecodeMode::chain}) {
      SCOPED_TRACE(to_string(mode));
      begin_anew(cheap, mode == DecodeMode::adaptive);
      record("run", settings(mode));
      const std::vector<RecordedReply> replies = read("run");
      const WhatIf run = what_if(replies, {});
      EXPECT_TRUE(run.exact) << run.why_not;
      expect_same_rounds(run, replies);
      const auto by_model = [source](const WhatIfRound& each) {
        return std::ranges::any_of(each.record.nodes,
                                   [source](const RoundNode& row) { return row.node.sources == source; });
      };
      if (source == kFromAssistant && mode == DecodeMode::adaptive) continue;  // random weights, which do not pay
      EXPECT_GT(std::ranges::count_if(run.rounds, by_model), 5);
    }
  }
  open("tiny-qwen3-dflash-b8");
}

TEST_F(WhatIfEngine, RecordingsOfFixedModesGiveTheirOwnTrees) {
  for (const DecodeMode mode : {DecodeMode::ar, DecodeMode::chain, DecodeMode::tree}) {
    for (const bool measured : {true, false}) {
      SCOPED_TRACE(std::string(to_string(mode)) + (measured ? ", costs known" : ""));
      begin_anew(measured ? kBetween : CostTable(), false);
      record("run", settings(mode));
      const std::vector<RecordedReply> replies = read("run");
      const WhatIf run = what_if(replies, {});
      EXPECT_TRUE(run.exact) << run.why_not;
      expect_same_rounds(run, replies);
      EXPECT_EQ(run.as_recorded, run.rounds.size());
      EXPECT_EQ(run.chosen, 0u);
    }
  }
}

/// A state that replies before the recording have taught is part of it.
TEST_F(WhatIfEngine, ARecordingThatBeginsInTheMiddleGivesItsOwnDecisions) {
  begin_anew(kBetween, false);
  for (int i = 0; i < 3; ++i) loaded_->reply(prompt(i), settings(DecodeMode::adaptive));
  loaded_->reply(prompt(1), settings(DecodeMode::tree));
  record("run", settings(DecodeMode::adaptive));
  const std::vector<RecordedReply> replies = read("run");
  expect_same_rounds(what_if(replies, {}), replies);
}

TEST_F(WhatIfEngine, DraftsBehindEveryRootAreThoseOfRounds) {
  begin_anew(kBetween, false);
  record("run", settings(DecodeMode::tree));
  uint64_t told = 0, all = 0;
  DenseCallbacks callbacks;
  callbacks.progress = [&](uint64_t done, uint64_t total) {
    EXPECT_GE(done, told);
    EXPECT_LE(done, total);
    told = done;
    all = total;
  };
  EXPECT_FALSE(read("run")[0].dense);
  const DenseReport report = densify(*loaded_, file("run"), callbacks);
  EXPECT_EQ(report.replies, 3u);
  EXPECT_GT(report.compared, 20u);
  EXPECT_EQ(report.same, report.compared);  // bit for bit
  EXPECT_GT(report.added, 50u);
  EXPECT_GT(told, all - 10);
  for (const RecordedReply& reply : read("run")) EXPECT_TRUE(reply.dense);
  const TraceReader trace = TraceReader::open(file("run"));
  EXPECT_EQ(trace.notice(), "");
  EXPECT_TRUE(trace.replies()[2].dense.has_value());
  const DenseReport again = densify(*loaded_, file("run"));
  EXPECT_EQ(again.dense_before, 3u);
  EXPECT_EQ(again.bytes, 0u);
}

/// Lists behind paths go as far as the tree that they were recorded for: a wider one is not called exact. Where no
/// round has drafted, those that a dense recording adds tell of trees of any width.
TEST_F(WhatIfEngine, DraftsBehindPathsTellOfTreesAsFarAsTheyGo) {
  for (const char* const drafter : {"tiny-qwen3-dspark", "tiny-qwen3-dflash2"}) {
    SCOPED_TRACE(drafter);
    open(drafter);
    begin_anew(kMemoryBound, true);
    ReplySettings tree = settings(DecodeMode::tree);
    tree.sources = kFromDflash;
    tree.budget = 3;
    record("narrow", tree);
    const DenseReport report = densify(*loaded_, file("narrow"));
    EXPECT_GT(report.compared, 20u);
    EXPECT_EQ(report.same, report.compared);
    expect_same_rounds(what_if(read("narrow"), {}), read("narrow"));
    WhatIfWish wish;
    wish.budget = 24;
    const WhatIf wider = what_if(read("narrow"), wish);
    EXPECT_EQ(wider.why_not, "Some guesses were recorded with fewer tokens than this would have made.");

    begin_anew(kMemoryBound, true);
    ReplySettings plain = settings(DecodeMode::ar);
    plain.sources = kFromDflash;
    record("plain", plain);
    densify(*loaded_, file("plain"));
    wish.mode = DecodeMode::tree;
    wish.costs = WhatIfCosts{kMemoryBound, nullptr};
    const WhatIf run = what_if(read("plain"), wish);
    EXPECT_TRUE(run.exact) << run.why_not;
    begin_anew(kMemoryBound, true);
    tree.budget = 24;
    record("tree", tree);
    const RecordedReply made = read("tree")[0];
    for (size_t i = 0; i < made.rounds; ++i) {
      SCOPED_TRACE(i);
      const RoundRecord expected = made.round(i), &found = run.rounds.at(i).record;
      EXPECT_EQ(found.emitted, expected.emitted);
      ASSERT_EQ(found.nodes.size(), expected.nodes.size());
      for (size_t n = 0; n < expected.nodes.size(); ++n) {
        EXPECT_EQ(found.nodes[n].node.token, expected.nodes[n].node.token) << n;
        EXPECT_EQ(found.nodes[n].node.parent, expected.nodes[n].node.parent) << n;
      }
    }
  }
  open("tiny-qwen3-dflash-b8");
}

TEST_F(WhatIfEngine, ADenseRecordingUnderOtherCostsEqualsOneMadeUnderThem) {
  struct Case {
    const char* name;
    const CostTable& from;
    const CostTable& to;
  };
  const Case cases[] = {{"memory to compute", kMemoryBound, kComputeBound},
                        {"compute to memory", kComputeBound, kMemoryBound},
                        {"memory to between", kMemoryBound, kBetween}};
  uint64_t as_recorded = 0, rounds = 0;
  for (const Case& each : cases) {
    for (const CostPolicy policy : kPolicies) {
      if (&each == &cases[2] && policy != CostPolicy::measured) continue;
      SCOPED_TRACE(std::string(each.name) + ", " + std::string(to_string(policy)));
      begin_anew(each.from, true);
      record("a", settings(DecodeMode::adaptive, policy));
      densify(*loaded_, file("a"));
      begin_anew(each.to, true);
      record("b", settings(DecodeMode::adaptive, policy));
      WhatIfWish wish;
      wish.costs = WhatIfCosts{each.to, nullptr};
      const std::vector<RecordedReply> a = read("a"), b = read("b");
      const WhatIf run = what_if(a, wish);
      EXPECT_TRUE(run.exact) << run.why_not;
      expect_same_rounds(run, b);
      if (HasFailure()) return;
      as_recorded += run.as_recorded;
      rounds += run.rounds.size();
    }
  }
  EXPECT_LT(as_recorded, rounds / 2);  // they are other rounds than were recorded
}

/// A recording without a single draft becomes one with all of them; then it tells what trees would have taken.
TEST_F(WhatIfEngine, ADenseRecordingOfPlainDecodingTellsOfTrees) {
  begin_anew(kMemoryBound, true);
  record("plain", settings(DecodeMode::ar));
  densify(*loaded_, file("plain"));
  begin_anew(kMemoryBound, true);
  record("tree", settings(DecodeMode::tree));
  WhatIfWish wish;
  wish.costs = WhatIfCosts{kMemoryBound, nullptr};
  wish.mode = DecodeMode::tree;
  wish.budget = 12;
  const WhatIf run = what_if(read("plain"), wish);
  EXPECT_TRUE(run.exact) << run.why_not;
  const std::vector<RecordedReply> tree = read("tree");
  ASSERT_EQ(run.rounds.size(), tree[0].rounds + tree[1].rounds + tree[2].rounds);
  for (size_t i = 0; i < tree[0].rounds; ++i) {
    const RoundRecord recorded = tree[0].round(i);
    EXPECT_EQ(run.rounds[i].record.emitted, recorded.emitted);
    EXPECT_EQ(run.rounds[i].record.width, recorded.width);
  }
}

TEST_F(WhatIfEngine, ACancelledDensificationLeavesAReadableTraceAndGoesOn) {
  begin_anew(kBetween, false);
  record("run", settings(DecodeMode::tree));
  std::stop_source stop;
  DenseCallbacks callbacks;
  callbacks.stop = stop.get_token();
  callbacks.progress = [&](uint64_t done, uint64_t) {
    if (done > 60) stop.request_stop();
  };
  try {
    densify(*loaded_, file("run"), callbacks);
    FAIL() << "went on";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::cancelled);
  }
  {
    const TraceReader trace = TraceReader::open(file("run"));
    EXPECT_EQ(trace.notice(), "");
    EXPECT_GT(trace.drafts(0), trace.replies()[0].rounds);
    EXPECT_FALSE(trace.replies()[2].dense.has_value());
  }
  densify(*loaded_, file("run"));
  for (const RecordedReply& reply : read("run")) EXPECT_TRUE(reply.dense);
}

TEST_F(WhatIfEngine, ATraceOfAnotherModelIsRefused) {
  begin_anew(kBetween, false);
  record("run", settings(DecodeMode::tree));
  const auto changed = [&](const std::string& name, const auto& change) {
    const TraceReader trace = TraceReader::open(file("run"));
    TraceHeader header = trace.header();
    change(header);
    TraceWriter writer(file(name), header, trace_pieces(*loaded_->text.tokenizer), header.redacted);
    writer.begin(trace.replies()[0].begin);
    writer.prefilled(*trace.replies()[0].prefill);
    writer.end(*trace.replies()[0].end);
    writer.finish();
    return file(name);
  };
  const auto refuse = [&](const char* message, const auto& change) {
    const std::filesystem::path path = changed("other", change);
    expect_error(message, [&] { densify(*loaded_, path); });
  };
  refuse("architecture \"llama\"", [](TraceHeader& header) { header.target.architecture = "llama"; });
  refuse("weights of the type", [](TraceHeader& header) { header.target.quantization = "Q4_K"; });
  refuse("parameters", [](TraceHeader& header) { header.target.sizes->parameters += 1; });
  refuse("drafter's block", [](TraceHeader& header) { header.drafter->sizes->block = 16; });
  refuse("redacted", [](TraceHeader& header) { header.redacted = true; });
}

}  // namespace
}  // namespace canopy::test
