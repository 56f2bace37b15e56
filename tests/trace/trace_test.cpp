#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/base/mapped_file.h"
#include "engine/trace/round_statistics.h"
#include "engine/trace/trace_export.h"
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

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// The check values of RFC 3720, appendix B.4, and the usual one.
TEST(Crc32c, AgreesWithPublishedValues) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\0'))), 0x8a9136aau);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\xff'))), 0x62a8ab43u);
  std::string ascending;
  for (char c = 0; c < 32; ++c) ascending.push_back(c);
  EXPECT_EQ(crc32c(bytes_of(ascending)), 0x46dd794eu);
  EXPECT_EQ(crc32c({}), 0u);
}

class Trace : public testing::Test {
 protected:
  std::filesystem::path file() const { return folder_.path() / "run.canopytrace"; }
  std::string content() const { return read_small_file(file(), 1u << 30); }

  TempFolder folder_;
  TraceBuilder builder_;
};

TEST_F(Trace, KeepsHeaderRepliesAndRounds) {
  const TraceReplyBegin begin = builder_.begin(DecodeMode::tree, 12);
  const TracePrefill prefill = builder_.prefill();
  std::vector<RoundRecord> rounds;
  {
    TraceWriter trace(file(), builder_.header(), builder_.pieces());
    trace.begin(begin);
    trace.prefilled(prefill);
    for (int i = 0; i < 20; ++i) rounds.push_back(builder_.any());
    for (const RoundRecord& record : rounds) trace.append(record);
    trace.end({FinishReason::context_full, 77, 12.5, "a reply\n\xe2\x82\xac"});
    trace.begin(builder_.begin(DecodeMode::ar, 3));
    rounds.push_back(builder_.plain());
    trace.append(rounds.back());
    EXPECT_EQ(trace.problem(), "");
    EXPECT_EQ(trace.rounds(), 21u);
  }
  const TraceReader trace = TraceReader::open(file());
  EXPECT_EQ(trace.notice(), "");
  EXPECT_EQ(trace.unknown_records(), 0u);
  EXPECT_EQ(to_json(trace.header()).dump(), [&] {
    TraceHeader header = builder_.header();
    header.canopy_version = CANOPY_VERSION;
    return to_json(header).dump();
  }());
  ASSERT_EQ(trace.replies().size(), 2u);
  const TraceReply& first = trace.replies()[0];
  TraceReplyBegin expected = begin;
  expected.prompt_tokens = 12;
  EXPECT_EQ(to_json(first.begin).dump(), to_json(expected).dump());
  EXPECT_EQ(first.begin.sampling.seed, 18446744073709551615u);
  EXPECT_EQ(first.prefill->first_token, prefill.first_token);
  EXPECT_EQ(first.prefill->reused_tokens, 3u);
  EXPECT_EQ(first.prefill->ms, 41.5);
  EXPECT_EQ(first.end->reason, FinishReason::context_full);
  EXPECT_EQ(first.end->reply_tokens, 77u);
  EXPECT_EQ(first.end->text, "a reply\n\xe2\x82\xac");
  EXPECT_EQ(first.rounds, 20u);
  const TraceReply& second = trace.replies()[1];
  EXPECT_EQ(second.first_round, 20u);
  EXPECT_EQ(second.rounds, 1u);
  EXPECT_FALSE(second.prefill || second.end);
  ASSERT_EQ(trace.rounds(), rounds.size());
  EXPECT_EQ(trace.reply_of(19), 0u);
  EXPECT_EQ(trace.reply_of(20), 1u);
  for (size_t i = rounds.size(); i-- > 0;) test::expect_same(rounds[i], trace.round(i));  // in any order
}

TEST_F(Trace, AllFinishReasonsHaveNames) {
  for (const FinishReason reason : {FinishReason::stop_token, FinishReason::max_tokens, FinishReason::context_full,
                                    FinishReason::cancelled, FinishReason::failed}) {
    EXPECT_EQ(parse_trace_reply_end(to_json(TraceReplyEnd{reason, 1, 2, "x"}).dump()).reason, reason);
  }
}

TEST_F(Trace, EveryTokenHasItsText) {
  builder_.write(file(), 30);
  const TraceReader trace = TraceReader::open(file());
  const TracePieces pieces = builder_.pieces();
  const auto check = [&](uint32_t token) {
    ASSERT_NE(trace.piece(token), nullptr) << token;
    EXPECT_EQ(trace.piece(token)->bytes, pieces(token).bytes);
    EXPECT_EQ(trace.piece(token)->control, token == 0);
  };
  for (const uint32_t token : trace.replies()[0].begin.prompt) check(token);
  check(*trace.replies()[0].prefill->first_token);
  for (size_t i = 0; i < trace.rounds(); ++i) {
    const RoundRecord record = trace.round(i);
    for (const uint32_t token : record.emitted) check(token);
    for (const RoundNode& row : record.nodes) {
      check(row.node.token);
      check(row.target_token);
    }
  }
  EXPECT_EQ(trace.piece(TraceBuilder::vocab + 1), nullptr);
}

TEST_F(Trace, HasNoPathsOfTheMachine) {
  TraceHeader header = builder_.header();
  header.target.name = "/srv/training/run7";
  header.target.file_name = "/srv/models/example.gguf";
  header.drafter->name = "someone/example-drafter";
  header.drafter->file_name = "../drafters/example-drafter/";
  header.drafter->quantization = "./q8";
  header.variants = "/var/cache/variants";
  header.calibration = "~/calibrations/table.json";
  header.driver = "/usr/lib/driver.so";
  header.device = "C:\\devices\\gpu";
  TraceWriter writer(file(), header, builder_.pieces());
  writer.begin(builder_.begin());
  for (int i = 0; i < 3; ++i) writer.append(builder_.any());
  writer.end(builder_.end());
  writer.finish();
  // Searched for as words, since a byte of a number may look like "/". In the JSON of the header there may be none.
  const std::string whole = content();
  for (const char* part : {"someone", "/srv", "/var", "/usr", "~/", "..", "\\\\"}) {
    EXPECT_EQ(whole.find(part), std::string::npos) << part;
  }
  const TraceReader trace = TraceReader::open(file());
  const std::string json = to_json(trace.header()).dump();
  EXPECT_EQ(json.find('/'), std::string::npos) << json;
  EXPECT_EQ(trace.header().target.name, "run7");
  EXPECT_EQ(trace.header().target.file_name, "example.gguf");
  EXPECT_EQ(trace.header().drafter->file_name, "example-drafter");
  EXPECT_EQ(trace.header().device, "gpu");
}

TEST_F(Trace, KeepsASlashInTheNameOfADevice) {
  TraceHeader header = builder_.header();
  header.device = "Example RX 7900 XT/7900 XTX";
  TraceWriter(file(), header, builder_.pieces()).finish();
  EXPECT_EQ(TraceReader::open(file()).header().device, header.device);
}

TEST_F(Trace, RedactedKeepsStructureAndTimesButNoText) {
  TraceBuilder same;
  same.write(folder_.path() / "open.canopytrace", 40);
  builder_.write(file(), 40, true);
  const TraceReader open = TraceReader::open(folder_.path() / "open.canopytrace");
  const TraceReader trace = TraceReader::open(file());
  EXPECT_TRUE(trace.header().redacted);
  EXPECT_FALSE(open.header().redacted);
  const TraceReply& reply = trace.replies()[0];
  EXPECT_TRUE(reply.begin.prompt.empty() && reply.begin.stop_strings.empty() &&
              reply.begin.sampling.logit_bias.empty());
  EXPECT_EQ(reply.begin.prompt_tokens, 12u);
  EXPECT_EQ(reply.prefill->first_token, std::nullopt);
  EXPECT_EQ(reply.end->text, "");
  const std::string whole = content();
  for (const char* word : {"word", "<|end|>", "END", "the text"}) EXPECT_EQ(whole.find(word), std::string::npos);
  for (size_t i = 0; i < 40; ++i) {
    RoundRecord hidden = trace.round(i);
    RoundRecord shown = open.round(i);
    EXPECT_EQ(drafted_part(hidden).tokens, drafted_part(shown).tokens);
    for (const uint32_t token : hidden.emitted) EXPECT_LT(token, 3 * hidden.width + 1);
    // Everything except tokens is the same.
    ASSERT_EQ(hidden.emitted.size(), shown.emitted.size());
    shown.emitted = hidden.emitted;
    for (size_t n = 0; n < hidden.nodes.size(); ++n) {
      shown.nodes[n].node.token = hidden.nodes[n].node.token;
      shown.nodes[n].target_token = hidden.nodes[n].target_token;
    }
    test::expect_same(shown, hidden);
  }
}

TEST_F(Trace, RedactedTokensOfDifferentRoundsCannotBeCompared) {
  TraceWriter writer(file(), builder_.header(), builder_.pieces(), true);
  writer.begin(builder_.begin());
  RoundRecord record = builder_.tree(8);
  writer.append(record);
  for (RoundNode& row : record.nodes) row.node.token += 1000;
  for (RoundNode& row : record.nodes) row.target_token += 1000;
  for (uint32_t& token : record.emitted) token += 1000;
  writer.append(record);
  writer.finish();
  const TraceReader trace = TraceReader::open(file());
  test::expect_same(trace.round(0), trace.round(1));
}

TEST_F(Trace, RefusesWhatIsNone) {
  const auto refused = [&](std::string_view content, const char* message) {
    const auto path = folder_.write("none.canopytrace", content);
    expect_error(message, [&] { TraceReader::open(path); });
    expect_error("none.canopytrace", [&] { TraceReader::open(path); });
  };
  refused("", "is empty");
  refused("GGUF", "too short");
  refused("GGUF and then some", "does not begin like one");
  refused("{\"format\": \"canopy-sweep\"}", "no trace but JSON: canopy-cli sweep --show reads sweeps");
  refused("CanopyTr", "ends before the header");
  expect_error("does not exist", [&] { TraceReader::open(folder_.path() / "missing"); });
}

std::string with_version(std::string bytes, uint8_t major, uint8_t minor) {
  bytes[8] = static_cast<char>(major);
  bytes[10] = static_cast<char>(minor);
  const uint32_t crc = crc32c(bytes_of(bytes).first(12));
  for (int i = 0; i < 4; ++i) bytes[12 + static_cast<size_t>(i)] = static_cast<char>(crc >> 8 * i);
  return bytes;
}

TEST_F(Trace, RefusesANewerMajorVersionByName) {
  builder_.write(file(), 3);
  const auto newer = folder_.write("newer.canopytrace", with_version(content(), 2, 7));
  expect_error("a trace of format 2.7; this version of Canopy reads format 1. Use a newer Canopy.",
               [&] { TraceReader::open(newer); });
  const auto older = folder_.write("older.canopytrace", with_version(content(), 0, 1));
  expect_error("a trace of format 0.1", [&] { TraceReader::open(older); });
  const auto minor = folder_.write("minor.canopytrace", with_version(content(), 1, 9));
  EXPECT_EQ(TraceReader::open(minor).rounds(), 3u);
}

/// A file written by version 1.0, which later versions must be able to read.
TEST(TraceVersions, OpensTheFirstVersion) {
  const TraceReader trace = TraceReader::open(CANOPY_SOURCE_DIR "/tests/trace/trace_v1.canopytrace");
  EXPECT_EQ(trace.notice(), "");
  EXPECT_EQ(trace.header().target.name, "Example 135M Instruct");
  EXPECT_EQ(trace.header().drafter->architecture, "dflash");
  ASSERT_EQ(trace.replies().size(), 1u);
  EXPECT_EQ(trace.replies()[0].begin.policy, "measured");
  EXPECT_EQ(trace.replies()[0].prefill->ms, 41.5);
  EXPECT_EQ(trace.replies()[0].end->text, "the text of the reply");
  ASSERT_EQ(trace.rounds(), 6u);
  RoundStatistics statistics;
  for (size_t i = 0; i < 6; ++i) statistics.add(trace.round(i));
  EXPECT_EQ(statistics.emitted(), 12u);
  EXPECT_EQ(statistics.accepted(), 6u);
  EXPECT_EQ(statistics.drafted(), 38u);
  EXPECT_NEAR(statistics.ms().total(), 62.064, 0.01);
  const RoundRecord tree = trace.round(2);
  EXPECT_EQ(tree.shape, DecodeMode::tree);
  EXPECT_EQ(tree.width, 11u);
  EXPECT_EQ(tree.context, 17u);
  EXPECT_EQ(trace.piece(tree.emitted.back())->bytes, " word473");
  EXPECT_EQ(tree.choice.limits.budget, 64u);
  EXPECT_EQ(chosen_candidate(tree)->width, 11u);
}

TEST_F(Trace, SkipsRecordsThatALaterVersionAdds) {
  builder_.write(file(), 3);
  std::string bytes = content();
  trace::append_record(bytes, static_cast<trace::Kind>(99), "something new");
  trace::append_record(bytes, trace::Kind::reply_begin, to_json(builder_.begin()).dump());
  const TraceReader trace = TraceReader::open(folder_.write("later.canopytrace", bytes));
  EXPECT_EQ(trace.notice(), "");
  EXPECT_EQ(trace.unknown_records(), 1u);
  EXPECT_EQ(trace.replies().size(), 2u);
}

TEST_F(Trace, ARoundBeyondTheLastIsRefused) {
  builder_.write(file(), 3);
  const TraceReader trace = TraceReader::open(file());
  expect_error("has no pass 3; it has 3, counted from 0", [&] { trace.round(3); });
}

TEST_F(Trace, OpensWhileItIsBeingRecorded) {
  TraceWriter writer(file(), builder_.header(), builder_.pieces());
  writer.begin(builder_.begin());
  writer.append(builder_.tree(5));
  const TraceReader trace = TraceReader::open(file());
  writer.append(builder_.tree(5));
  EXPECT_EQ(trace.rounds(), 1u);
  EXPECT_EQ(trace.notice(), "");
  EXPECT_NO_THROW(trace.round(0));
  EXPECT_EQ(TraceReader::open(file()).rounds(), 2u);
}

TEST_F(Trace, JsonExportHasEveryRound) {
  builder_.write(file(), 7);
  const TraceReader trace = TraceReader::open(file());
  std::ostringstream out;
  export_json(trace, out);
  const auto json = nlohmann::json::parse(out.str());
  EXPECT_EQ(json["header"]["device"], "Example GPU");
  EXPECT_EQ(json["replies"].size(), 1u);
  const auto& rounds = json["replies"][0]["rounds"];
  ASSERT_EQ(rounds.size(), 7u);
  for (size_t i = 0; i < 7; ++i) {
    const RoundRecord record = trace.round(i);
    EXPECT_EQ(rounds[i]["width"], record.width);
    EXPECT_EQ(rounds[i]["emitted"], nlohmann::json(record.emitted));
    EXPECT_EQ(rounds[i]["nodes"].size(), record.nodes.size());
    EXPECT_EQ(rounds[i]["ms"]["verify"].get<double>(), record.ms.verify);
    EXPECT_EQ(rounds[i]["choice"]["limits"]["rows"], nullptr);
    EXPECT_EQ(rounds[i]["choice"]["limits"]["budget"], 64);
    EXPECT_EQ(rounds[i]["choice"]["candidates"].size(), record.choice.candidates.size());
  }
}

TEST_F(Trace, ARoundOfNoTraceIsWrittenAsThoseOfATrace) {
  builder_.write(file(), 3);
  const auto trace = std::make_shared<const TraceReader>(TraceReader::open(file()));
  const auto written = [](const nlohmann::ordered_json& json) {
    return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  };
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(written(round_to_json(trace->round(i), *token_texts(trace))),
              written(round_to_json(trace->round(i), *trace)));
}

TEST_F(Trace, ARoundComesBackFromItsJson) {
  builder_.write(file(), 40);
  const TraceReader trace = TraceReader::open(file());
  for (size_t i = 0; i < trace.rounds(); ++i) {
    const RoundRecord record = trace.round(i);
    test::expect_same(
        round_from_json(nlohmann::json::parse(
            round_to_json(record, trace).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace))),
        record);
  }
}

TEST_F(Trace, JsonThatIsNoRoundIsRefused) {
  builder_.begin();
  builder_.write(file(), 1);
  const RoundRecord record = builder_.tree(6);
  const auto refused = [&](std::string_view says, const std::function<void(nlohmann::json&)>& change) {
    const auto trace = TraceReader::open(file());
    auto json = nlohmann::json::parse(
        round_to_json(record, trace).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    change(json);
    expect_error(says, [&] { round_from_json(json); });
  };
  refused("lacks the field 'width'", [](auto& json) { json.erase("width"); });
  refused("'shape'", [](auto& json) { json["shape"] = "bush"; });
  refused("'state'", [](auto& json) { json["nodes"][1]["state"] = "lost"; });
  refused("'emitted'", [](auto& json) { json["emitted"] = {-1}; });
  refused("'log_q'", [](auto& json) { json["nodes"][2]["log_q"] = nullptr; });
  refused("has the parent 5", [](auto& json) { json["nodes"][2]["parent"] = 5u; });
  refused("'sources'", [](auto& json) { json["nodes"][1]["sources"] = {7}; });
  refused("must be a JSON object", [](auto& json) { json = 3; });
}

TEST_F(Trace, CsvExportHasALineForEveryRound) {
  TraceWriter writer(file(), builder_.header(), builder_.pieces());
  writer.begin(builder_.begin());
  RoundRecord record = builder_.tree(5);
  record.choice.reason = "a \"reason\", quoted";
  writer.append(record);
  writer.append(builder_.plain());
  writer.finish();
  std::ostringstream out;
  export_csv(TraceReader::open(file()), out);
  std::istringstream lines(out.str());
  std::string names, first, second, rest;
  std::getline(lines, names);
  std::getline(lines, first);
  std::getline(lines, second);
  EXPECT_FALSE(std::getline(lines, rest));
  EXPECT_TRUE(names.starts_with("reply,round,context,mode,shape,width,accepted,emitted,ms_draft")) << names;
  EXPECT_TRUE(first.starts_with("0,0,12,adaptive,tree,5,")) << first;
  EXPECT_TRUE(first.ends_with(",\"a \"\"reason\"\", quoted\"\r")) << first;
  EXPECT_EQ(std::ranges::count(names, ','), std::ranges::count(second, ','));
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Prints times only; no check depends on them.
TEST_F(Trace, TenThousandRounds) {
  constexpr size_t rounds = 10'000;

  builder_.begin();
  std::vector<RoundRecord> records;
  for (int i = 0; i < 100; ++i) records.push_back(builder_.any());
  auto start = std::chrono::steady_clock::now();
  TraceWriter writer(file(), builder_.header(), builder_.pieces());
  writer.begin(builder_.begin());
  for (size_t i = 0; i < rounds; ++i) writer.append(records[i % records.size()]);
  writer.finish();
  const double written = seconds_since(start);
  start = std::chrono::steady_clock::now();
  const TraceReader trace = TraceReader::open(file());
  const double opened = seconds_since(start);
  start = std::chrono::steady_clock::now();
  RoundStatistics statistics;
  for (size_t i = 0; i < trace.rounds(); ++i) statistics.add(trace.round(i));
  const double read = seconds_since(start);
  EXPECT_EQ(trace.rounds(), rounds);
  EXPECT_EQ(statistics.rounds(), rounds);
  const double rows = static_cast<double>(statistics.rows()) / rounds;
  std::printf(
      "%zu rounds of %.1f rows: %.1f MB, %.0f bytes a round; written in %.2f s (%.1f us a round), opened in "
      "%.3f s, read with statistics in %.2f s\n",
      rounds, rows, static_cast<double>(writer.bytes()) / 1e6, static_cast<double>(writer.bytes()) / rounds, written,
      1e6 * written / rounds, opened, read);
}

}  // namespace
}  // namespace canopy
