// Drafts and what else a re-run needs: as bytes, in a file, in a redacted one, added behind a finished one.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/base/bytes.h"
#include "engine/base/mapped_file.h"
#include "engine/trace/trace_format.h"
#include "engine/trace/trace_reader.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/trace/trace_builder.h"
#include "tests/trace/trace_compare.h"

namespace canopy {
namespace {

using test::expect_error;
using test::TempFolder;
using test::TraceBuilder;

KeptDraft some_draft() {
  TraceBuilder builder(3);
  builder.keep_drafts();
  return *builder.tree(20).draft;
}

KeptDraft read_back(const std::string& bytes) {
  Reader reader(std::as_bytes(std::span(bytes)));
  KeptDraft draft = decode_kept_draft(reader);
  EXPECT_EQ(reader.remaining(), 0u);
  return draft;
}

TEST(KeptDraftCodec, KeepsEveryBit) {
  TraceBuilder builder(2);
  builder.keep_drafts();
  for (int i = 0; i < 20; ++i) {
    const RoundRecord record = builder.tree(30);
    std::string bytes;
    encode(*record.draft, bytes);
    test::expect_same(read_back(bytes), *record.draft);
  }
}

TEST(KeptDraftCodec, KeepsExtremeLogits) {
  constexpr float most = std::numeric_limits<float>::max(), least = std::numeric_limits<float>::denorm_min();
  KeptDraft draft;
  draft.block.depths = 1;
  draft.block.candidates = 8;
  draft.block.tokens = {4, 0xfffffffeu, 1, 2, 3, 7, 9, 8};
  draft.block.logits = {most, 1.5f, least, 0, 0, -least, -1.5f, -most};
  draft.block.log_sum_exp = {most};
  std::string bytes;
  encode(draft, bytes);
  test::expect_same(read_back(bytes), draft);
}

KeptDraft draft_along_paths() {
  KeptDraft draft;
  BlockDraft& block = draft.block;
  block.depths = 3;
  block.candidates = 2;
  for (uint32_t list = 0; list < 4; ++list) {
    block.tokens.insert(block.tokens.end(), {list, list + 10});
    block.logits.insert(block.logits.end(), {2.0f - static_cast<float>(list), -1.0f - static_cast<float>(list)});
    block.log_sum_exp.push_back(3);
  }
  block.behind = {BlockDraft::none, 0, 1, 5};
  return draft;
}

TEST(KeptDraftCodec, KeepsTheListsOfADraftMadeTokenByToken) {
  KeptDraft draft = draft_along_paths();
  std::string bytes;
  encode(draft, bytes);
  test::expect_same(read_back(bytes), draft);
  // One list alone is still known to stand behind the root.
  draft.block.depths = 1;
  draft.block.tokens.resize(2);
  draft.block.logits.resize(2);
  draft.block.log_sum_exp.resize(1);
  draft.block.behind.resize(1);
  bytes.clear();
  encode(draft, bytes);
  EXPECT_TRUE(read_back(bytes).block.is_by_token());
  test::expect_same(read_back(bytes), draft);
}

TEST(KeptDraftCodec, KeepsWhetherListsCostPassesOfTheirOwn) {
  for (const bool in_one_pass : {false, true}) {
    KeptDraft draft = draft_along_paths();
    draft.block.in_one_pass = in_one_pass;
    std::string bytes;
    encode(draft, bytes);
    const KeptDraft read = read_back(bytes);
    test::expect_same(read, draft);
    EXPECT_EQ(read.block.in_one_pass, in_one_pass);
    EXPECT_EQ(read.block.beams().empty(), in_one_pass);
  }
}

TEST(KeptDraftCodec, RefusesListsBehindWhatIsNotThere) {
  std::string bytes;
  KeptDraft draft = draft_along_paths();
  draft.block.behind[3] = 6;
  expect_error("list 3 stands behind candidate 6", [&] { encode(draft, bytes); });
  draft = draft_along_paths();
  draft.block.depths = 4;
  expect_error("another depth", [&] { encode(draft, bytes); });
  draft = draft_along_paths();
  draft.block.behind.pop_back();
  expect_error("3 places of 4 lists", [&] { encode(draft, bytes); });
  bytes.clear();
  encode(draft_along_paths(), bytes);
  bytes.back() = 100;  // where the last list stands
  expect_error("list 3 stands behind candidate 100", [&] { read_back(bytes); });
}

TEST(KeptDraftCodec, TwoZerosAreEqual) {
  KeptDraft draft;
  draft.block = {1, 2, {3, 4}, {-0.0f, 0.0f}, {1}};
  std::string bytes;
  encode(draft, bytes);
  EXPECT_EQ(read_back(bytes).block.logits, (std::vector<float>{0, 0}));
}

TEST(KeptDraftCodec, RefusesWhatNoTreeCouldBeBuiltOf) {
  const auto refused = [](const char* message, const auto& change) {
    KeptDraft draft = some_draft();
    change(draft);
    std::string bytes;
    expect_error(message, [&] { encode(draft, bytes); });
  };
  refused("0 depths", [](KeptDraft& draft) { draft.block.depths = 0; });
  refused("tokens, ", [](KeptDraft& draft) { draft.block.tokens.pop_back(); });
  refused("descending", [](KeptDraft& draft) { draft.block.logits[1] = draft.block.logits[0] + 1; });
  refused("a logit is", [](KeptDraft& draft) { draft.block.logits[3] = NAN; });
  refused("of depth 2 behind depth 2", [](KeptDraft& draft) { draft.more.push_back(draft.more[0]); });
  refused("more than 64", [](KeptDraft& draft) { draft.more[0].tokens.resize(64); });
}

TEST(KeptDraftCodec, RefusesEveryTruncationAndSurvivesEveryFlippedBit) {
  std::string whole;
  encode(some_draft(), whole);
  for (size_t length = 0; length < whole.size(); ++length) {
    const std::string cut = whole.substr(0, length);
    test::error_of([&] {
      Reader reader(std::as_bytes(std::span(cut)));
      decode_kept_draft(reader);
    });
  }
  for (size_t bit = 0; bit < whole.size() * 8; bit += 3) {
    std::string bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    try {
      Reader reader(std::as_bytes(std::span(bytes)));
      const KeptDraft draft = decode_kept_draft(reader);
      std::string again;
      encode(draft, again);  // whatever can be read can be written
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::bad_input);
    }
  }
}

class DraftsInTraces : public testing::Test {
 protected:
  DraftsInTraces() { builder_.keep_drafts(); }
  std::filesystem::path file() const { return folder_.path() / "run.canopytrace"; }

  /// A reply of four rounds, the second without a draft.
  void write(bool redact = false) {
    TraceWriter trace(file(), builder_.header(), builder_.pieces(), redact);
    trace.begin(builder_.begin());
    trace.prefilled(builder_.prefill());
    drafting_ = builder_.drafting();
    trace.drafting(drafting_);
    for (int i = 0; i < 4; ++i) {
      rounds_.push_back(i == 1 ? builder_.plain() : builder_.tree(12));
      rounds_.back().teaches = i != 2;
      rounds_.back().distinct_experts = 10.5f * static_cast<float>(i);
      trace.append(rounds_.back());
    }
    trace.end(builder_.end());
  }

  TempFolder folder_;
  TraceBuilder builder_;
  TraceDrafting drafting_;
  std::vector<RoundRecord> rounds_;
};

TEST_F(DraftsInTraces, AreReadBackWithTheirRounds) {
  write();
  const TraceReader trace = TraceReader::open(file());
  ASSERT_EQ(trace.rounds(), 4u);
  EXPECT_EQ(trace.drafts(0), 3u);
  EXPECT_EQ(trace.unknown_records(), 0u);
  for (size_t i = 0; i < 4; ++i) {
    test::expect_same(rounds_[i], trace.round(i));
    EXPECT_EQ(trace.round(i).draft, nullptr);
    const std::shared_ptr<const KeptDraft> draft = trace.draft(0, rounds_[i].context);
    ASSERT_EQ(draft != nullptr, rounds_[i].draft != nullptr) << i;
    if (draft) test::expect_same(*draft, *rounds_[i].draft);
  }
  EXPECT_EQ(trace.draft(1, rounds_[0].context), nullptr);
}

TEST_F(DraftsInTraces, WhatDraftingStoodOnIsReadBack) {
  write();
  const TraceReader trace = TraceReader::open(file());
  const TraceDrafting& read = trace.replies()[0].drafting.value();
  EXPECT_EQ(to_json(read), to_json(drafting_));
  EXPECT_EQ(read.state, drafting_.state);
  EXPECT_EQ(read.roofline->seconds(3, 100), drafting_.roofline->seconds(3, 100));
  EXPECT_EQ(read.costs->tile(), drafting_.costs->tile());
  EXPECT_EQ(read.costs->verify_points(), drafting_.costs->verify_points());
  EXPECT_EQ(read.costs->draft_points(), drafting_.costs->draft_points());
  EXPECT_EQ(read.costs->other_points(), drafting_.costs->other_points());
}

TEST_F(DraftsInTraces, TheFirstOfVersionOneOneDidNotSayWhatWasReadOfThePrompt) {
  const TraceDrafting drafting = builder_.drafting();
  std::string bytes, fields, old;
  encode(drafting, false, bytes);
  ByteWriter(fields).text(to_json(drafting).dump());
  ASSERT_EQ(bytes.substr(0, fields.size()), fields);
  nlohmann::ordered_json object = to_json(drafting);
  ASSERT_EQ(object.erase("prompt_read"), 1u);
  object.erase("goes_on");
  ByteWriter(old).text(object.dump());
  const TraceDrafting read = decode_trace_drafting(old + bytes.substr(fields.size()), nullptr);
  EXPECT_EQ(read.prompt_read, 0u);
  EXPECT_FALSE(read.goes_on);
  EXPECT_EQ(read.committed, drafting.committed);
  EXPECT_EQ(read.state, drafting.state);
}

TEST_F(DraftsInTraces, CostsThatStayAreWrittenOnce) {
  {
    TraceWriter trace(file(), builder_.header(), builder_.pieces());
    TraceDrafting drafting = builder_.drafting();
    uint64_t first = 0;
    for (int i = 0; i < 3; ++i) {
      trace.begin(builder_.begin());
      const uint64_t before = trace.bytes();
      if (i == 2) drafting.costs = nullptr;
      trace.drafting(drafting);
      if (i == 0) first = trace.bytes() - before;
      if (i > 0) {
        EXPECT_LT(trace.bytes() - before, first - 50);
      }
      trace.end(builder_.end());
    }
  }
  const TraceReader trace = TraceReader::open(file());
  ASSERT_EQ(trace.replies().size(), 3u);
  EXPECT_EQ(trace.replies()[1].drafting->costs, trace.replies()[0].drafting->costs);
  EXPECT_EQ(trace.replies()[2].drafting->costs, nullptr);
}

TEST_F(DraftsInTraces, ARedactedTraceHasNone) {
  write(true);
  const TraceReader trace = TraceReader::open(file());
  EXPECT_EQ(trace.rounds(), 4u);
  EXPECT_EQ(trace.drafts(0), 0u);
  EXPECT_TRUE(trace.replies()[0].drafting.has_value());
}

TEST_F(DraftsInTraces, AreAddedBehindAFinishedTrace) {
  write();
  const std::string before = read_small_file(file(), 1 << 20);
  const KeptDraft added = some_draft();
  {
    const TraceReader trace = TraceReader::open(file());
    TraceWriter writer(trace, builder_.pieces());
    writer.add_draft(0, rounds_[1].context, added);
    writer.add_draft(0, rounds_[0].context, added);  // the round's own stands
    writer.add_dense({.reply = 0, .first = 12, .positions = 9, .device = "/usr/lib/other"});
    EXPECT_EQ(writer.problem(), "");
    expect_error("of 1", [&] { writer.add_draft(1, 0, added); });
  }
  EXPECT_TRUE(read_small_file(file(), 1 << 20).starts_with(before));
  const TraceReader trace = TraceReader::open(file());
  EXPECT_EQ(trace.notice(), "");
  EXPECT_EQ(trace.rounds(), 4u);
  EXPECT_EQ(trace.drafts(0), 4u);
  test::expect_same(*trace.draft(0, rounds_[1].context), added);
  test::expect_same(*trace.draft(0, rounds_[0].context), *rounds_[0].draft);
  EXPECT_EQ(trace.replies()[0].dense->positions, 9u);
  EXPECT_EQ(trace.replies()[0].dense->device, "other");
}

TEST_F(DraftsInTraces, NothingIsAddedBehindADamagedEnd) {
  write();
  const std::string bytes = read_small_file(file(), 1 << 20);
  const std::filesystem::path cut = folder_.write("cut.canopytrace", bytes.substr(0, bytes.size() - 3));
  const TraceReader trace = TraceReader::open(cut);
  expect_error("its end is damaged", [&] { TraceWriter(trace, builder_.pieces()); });
}

TEST_F(DraftsInTraces, SizesOfModelsAreReadBack) {
  TraceHeader header = builder_.header();
  TraceSizes sizes;
  sizes.layers = 30;
  sizes.hidden = 576;
  sizes.heads = 9;
  sizes.kv_heads = 3;
  sizes.head_dim = 64;
  sizes.ffn = 1536;
  sizes.vocab = 49152;
  sizes.tied_head = true;
  sizes.parameters = 134'515'008;
  sizes.types = {{"attn_q", "Q4_1"}, {"output", "Q6_K"}};
  header.target.sizes = sizes;
  header.target.sizes->expert_layers = 29;
  header.target.sizes->experts = 64;
  header.target.sizes->experts_used = 6;
  header.target.sizes->expert_ffn = 384;
  header.target.sizes->shared_ffn = 768;
  header.target.sizes->recurrent_layers = 22;
  header.target.sizes->value_heads = 48;
  header.target.sizes->output_gate = true;
  header.target.sizes->latent_rank = 512;
  header.target.sizes->latent_value_dim = 128;
  sizes.block = 8;
  sizes.taps = 5;
  sizes.drafted_tokens = 8192;
  sizes.markov_rank = 256;
  sizes.row_conv_taps = 2;
  sizes.row_conv_group = 16;
  header.drafter->sizes = sizes;
  const TraceHeader read = parse_trace_header(to_json(header).dump());
  EXPECT_EQ(to_json(read), to_json(header));
  EXPECT_EQ(read.drafter->sizes->taps, 5u);
  EXPECT_EQ(read.drafter->sizes->markov_rank, 256u);
  EXPECT_EQ(read.drafter->sizes->row_conv_taps, 2u);
  EXPECT_EQ(read.drafter->sizes->row_conv_group, 16u);
  EXPECT_EQ(read.target.sizes->expert_layers, 29u);
  EXPECT_EQ(read.target.sizes->experts, 64u);
  EXPECT_EQ(read.target.sizes->experts_used, 6u);
  EXPECT_EQ(read.target.sizes->expert_ffn, 384u);
  EXPECT_EQ(read.target.sizes->shared_ffn, 768u);
  EXPECT_EQ(read.target.sizes->recurrent_layers, 22u);
  EXPECT_EQ(read.target.sizes->value_heads, 48u);
  EXPECT_TRUE(read.target.sizes->output_gate);
  EXPECT_EQ(read.target.sizes->latent_rank, 512u);
  EXPECT_EQ(read.target.sizes->latent_value_dim, 128u);
  EXPECT_FALSE(parse_trace_header(to_json(builder_.header()).dump()).target.sizes.has_value());
}

}  // namespace
}  // namespace canopy
