// Traces that are cut, damaged or forged: each opens up to its last whole record and says so, or is refused with a
// sentence.

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

#include "engine/base/bytes.h"
#include "engine/base/mapped_file.h"
#include "engine/base/text.h"
#include "engine/trace/round_statistics.h"
#include "engine/trace/trace_export.h"
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

/// A small trace with all kinds of records, and the offset where each record ends.
class DamagedTrace : public testing::Test {
 protected:
  DamagedTrace() {
    {
      builder_.keep_drafts(3, 4);
      TraceWriter trace(file(), builder_.header(), builder_.pieces());
      const auto mark = [&](size_t rounds) { ends_.push_back({trace.bytes(), rounds}); };
      mark(0);
      trace.begin(builder_.begin());
      mark(0);
      trace.prefilled(builder_.prefill());
      mark(0);
      trace.drafting(builder_.drafting());
      mark(0);
      for (size_t i = 0; i < 3; ++i) {
        records_.push_back(i == 1 ? builder_.plain() : builder_.tree(6));
        trace.append(records_.back());
        mark(i + 1);
      }
      trace.end(builder_.end());
      mark(3);
      trace.add_draft(0, 1000, *records_.back().draft);
      mark(3);
      trace.add_dense({.reply = 0, .first = 12, .positions = 3, .device = "Example GPU"});
      mark(3);
    }
    whole_ = read_small_file(file(), 1 << 20);
  }

  std::filesystem::path file() const { return folder_.path() / "run.canopytrace"; }

  /// Writes over the file without emptying it first: some file systems then flush it to the disk, which is slow
  /// thousands of times.
  void put(std::string_view bytes) const {
    std::fstream(file(), std::ios::binary | std::ios::in | std::ios::out) << bytes;
    std::filesystem::resize_file(file(), bytes.size());
  }

  /// Number of rounds whose records are within the first `bytes` bytes.
  size_t rounds_within(uint64_t bytes) const {
    size_t rounds = 0;
    for (const End& end : ends_) {
      if (end.bytes <= bytes) rounds = end.rounds;
    }
    return rounds;
  }

  void expect_rounds(const TraceReader& trace, size_t rounds) const {
    ASSERT_EQ(trace.rounds(), rounds);
    for (size_t i = 0; i < rounds; ++i) test::expect_same(records_[i], trace.round(i));
  }

  struct End {
    uint64_t bytes;
    size_t rounds;
  };
  TempFolder folder_;
  TraceBuilder builder_;
  std::vector<RoundRecord> records_;
  std::vector<End> ends_;
  std::string whole_;
};

void expect_clear(const std::string& message, const std::string& name) {
  EXPECT_NE(message.find(name), std::string::npos) << message;
  EXPECT_EQ(printable(message, 4096), message);
  EXPECT_TRUE(message.ends_with('.')) << message;
}

TEST_F(DamagedTrace, CutAtEveryByteItOpensUpToItsLastWholeRecord) {
  size_t opened = 0;
  for (size_t length = 0; length < whole_.size(); ++length) {
    SCOPED_TRACE("cut to " + std::to_string(length) + " bytes");
    put(whole_.substr(0, length));
    if (length < ends_[0].bytes) {
      expect_clear(test::error_of([&] { TraceReader::open(file()); }), "run.canopytrace");
      continue;
    }
    const TraceReader trace = TraceReader::open(file());
    expect_rounds(trace, rounds_within(length));
    if (trace.whole_bytes() == length) {
      EXPECT_EQ(trace.notice(), "");
    } else {
      EXPECT_NE(trace.notice().find("cut off"), std::string::npos);
      const std::string rounds =
          trace.rounds() == 1 ? "1 whole pass, " : std::to_string(trace.rounds()) + " whole passes, ";
      EXPECT_NE(trace.notice().find(rounds), std::string::npos) << trace.notice();
    }
    ++opened;
  }
  EXPECT_EQ(opened, whole_.size() - ends_[0].bytes);
}

TEST_F(DamagedTrace, AnyFlippedBitIsNoticed) {
  for (size_t bit = 0; bit < whole_.size() * 8; ++bit) {
    SCOPED_TRACE("bit " + std::to_string(bit % 8) + " of byte " + std::to_string(bit / 8));
    std::string bytes = whole_;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    put(bytes);
    if (bit / 8 < ends_[0].bytes) {
      expect_clear(test::error_of([&] { TraceReader::open(file()); }), "run.canopytrace");
      continue;
    }
    const TraceReader trace = TraceReader::open(file());
    EXPECT_NE(trace.notice().find("damaged"), std::string::npos);
    expect_rounds(trace, rounds_within(bit / 8));
  }
}

TEST_F(DamagedTrace, ZerosBehindTheLastRecordAreDamage) {
  put(whole_ + std::string(4096, '\0'));  // a power cut may leave zeros
  const TraceReader trace = TraceReader::open(file());
  expect_rounds(trace, 3);
  EXPECT_NE(trace.notice().find("at byte " + std::to_string(whole_.size())), std::string::npos) << trace.notice();
}

/// Reads everything of a trace that a front end reads.
void use(const std::filesystem::path& file) {
  const TraceReader trace = TraceReader::open(file);
  RoundStatistics statistics;
  for (size_t i = 0; i < trace.rounds(); ++i) {
    try {
      statistics.add(trace.round(i));
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::bad_input);
    }
  }
  for (size_t reply = 0; reply < trace.replies().size(); ++reply) {
    for (uint32_t committed = 0; committed < 1024; ++committed) {
      try {
        EXPECT_EQ(trace.draft(reply, committed) != nullptr, trace.has_draft(reply, committed));
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::bad_input);
      }
    }
  }
  std::ostringstream out;
  try {
    export_json(trace, out);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::bad_input);
  }
}

TEST_F(DamagedTrace, RandomBytesAreRefusedOrHaveNoRounds) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 3000; ++i) {
    std::string bytes(random() % 300, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    if (i % 3 != 0) bytes = whole_.substr(0, ends_[0].bytes) + bytes;  // after a good header
    put(bytes);
    try {
      use(file());
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::bad_input);
    }
  }
}

/// Changed bytes with correct checksums, as in a forged file.
TEST_F(DamagedTrace, MadeUpRecordsWithTrueChecksumsDoNoHarm) {
  std::mt19937_64 random(5);
  size_t refused_rounds = 0;
  for (int i = 0; i < 4000; ++i) {
    Reader reader(std::as_bytes(std::span(whole_)));
    std::string bytes(reader.text(trace::prologue_bytes, "prologue"));
    const size_t target = random() % 16;
    for (size_t index = 0; const auto record = trace::next_record(reader); ++index) {
      std::string payload(record->text());
      if (index == target) {
        for (size_t changes = 1 + random() % 3; changes > 0; --changes) {
          payload[random() % payload.size()] = static_cast<char>(random());
        }
        if (random() % 4 == 0) payload.resize(random() % payload.size());
      }
      trace::append_record(bytes, record->kind, payload);
    }
    put(bytes);
    try {
      use(file());
      const TraceReader trace = TraceReader::open(file());
      for (size_t round = 0; round < trace.rounds(); ++round) {
        try {
          validate(trace.round(round));
        } catch (const Error& e) {
          expect_clear(e.what(), "run.canopytrace");
          ++refused_rounds;
        }
      }
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::bad_input);
      EXPECT_NE(std::string(e.what()).find("run.canopytrace"), std::string::npos) << e.what();
    }
  }
  EXPECT_GT(refused_rounds, 0u);
}

class MadeUpTrace : public testing::Test {
 protected:
  /// Appends a record to a whole header.
  void add(trace::Kind kind, std::string_view payload) { trace::append_record(bytes_, kind, payload); }
  void add_reply() { add(trace::Kind::reply_begin, to_json(TraceBuilder().begin()).dump()); }

  TraceReader open() {
    const auto path = folder_.write("made.canopytrace", bytes_);
    return TraceReader::open(path);
  }

  std::string prologue() const {
    std::string bytes;
    trace::append_prologue(bytes);
    return bytes;
  }
  std::string header() const {
    std::string bytes = prologue();
    trace::append_record(bytes, trace::Kind::header, to_json(TraceBuilder().header()).dump());
    return bytes;
  }

  TempFolder folder_;
  std::string bytes_ = header();
};

TEST_F(MadeUpTrace, HeadersOfWrongContentAreRefusedByField) {
  const auto refused = [&](trace::Kind kind, std::string_view payload, const char* message) {
    bytes_ = prologue();
    add(kind, payload);
    expect_error(message, [&] { open(); });
  };
  refused(trace::Kind::header, "", "not valid JSON");
  refused(trace::Kind::header, "[]", "must be a JSON object");
  refused(trace::Kind::header, "{}", "lacks the field 'target'");
  refused(trace::Kind::header, R"({"target": {}, "context": -1})", "'context'");
  refused(trace::Kind::header, R"({"target": {"name": 1}})", "'name'");
  refused(trace::Kind::header, R"({"target": {}, "redacted": "yes"})", "'redacted'");
  refused(trace::Kind::header, std::string(100, '['), "nested");
  refused(trace::Kind::reply_begin, "{}", "header is cut off or damaged");
}

TEST_F(MadeUpTrace, ARecordWithoutItsReplyEndsTheTrace) {
  for (const trace::Kind kind : {trace::Kind::round, trace::Kind::prefill, trace::Kind::reply_end}) {
    bytes_ = header();
    add(kind, to_json(TraceReplyEnd()).dump());
    const TraceReader trace = open();
    EXPECT_TRUE(trace.replies().empty());
    EXPECT_NE(trace.notice().find("belongs to no reply"), std::string::npos) << trace.notice();
  }
}

TEST_F(MadeUpTrace, NothingFollowsTheEndOfAReplyButAnother) {
  add_reply();
  add(trace::Kind::reply_end, to_json(TraceReplyEnd()).dump());
  add(trace::Kind::round, "");
  const TraceReader trace = open();
  EXPECT_EQ(trace.replies().size(), 1u);
  EXPECT_EQ(trace.rounds(), 0u);
  EXPECT_NE(trace.notice(), "");
}

TEST_F(MadeUpTrace, WrongRepliesEndTheTraceWithTheirField) {
  const auto noticed = [&](trace::Kind kind, const nlohmann::ordered_json& json, const char* part) {
    bytes_ = header();
    if (kind != trace::Kind::reply_begin) add_reply();
    add(kind, json.dump());
    const TraceReader trace = open();
    EXPECT_NE(trace.notice().find(part), std::string::npos) << trace.notice();
  };
  const nlohmann::ordered_json good = to_json(TraceBuilder().begin());
  const auto with = [&](const char* pointer, const nlohmann::ordered_json& value) {
    nlohmann::ordered_json json = good;
    json[nlohmann::ordered_json::json_pointer(pointer)] = value;
    return json;
  };
  noticed(trace::Kind::reply_begin, with("/mode", "fast"), "'fast'; allowed: ar, chain, tree, adaptive");
  noticed(trace::Kind::reply_begin, with("/turn", -1), "'turn'");
  noticed(trace::Kind::reply_begin, with("/budget", 1e20), "'budget'");
  noticed(trace::Kind::reply_begin, with("/sampling/temperature", 1e300), "'temperature'");
  noticed(trace::Kind::reply_begin, with("/sampling/top_p", 2), "top");
  noticed(trace::Kind::reply_begin, with("/sampling/logit_bias", {{1, 2, 3}}), "'logit_bias'");
  noticed(trace::Kind::reply_begin, with("/stop_strings", {1}), "'stop_strings'");
  noticed(trace::Kind::reply_begin, with("/prompt_ids", {-4}), "'prompt_ids'");
  noticed(trace::Kind::prefill, {{"reused_tokens", 0}, {"ms", -3}}, "'ms'");
  noticed(trace::Kind::reply_end, {{"finish_reason", "bored"}, {"reply_tokens", 1}, {"decode_ms", 1}, {"text", ""}},
          "'finish_reason'");
}

TEST_F(MadeUpTrace, WrongTextsEndTheTrace) {
  std::string huge;
  ByteWriter(huge).whole(0xffffffffu);
  add(trace::Kind::pieces, huge);
  EXPECT_NE(open().notice().find("the number of texts"), std::string::npos);
  std::string longer_than_the_record;
  ByteWriter out(longer_than_the_record);
  out.whole(1);
  out.whole(5);
  out.byte(0);
  out.whole(1000);
  bytes_ = header();
  add(trace::Kind::pieces, longer_than_the_record);
  EXPECT_NE(open().notice().find("the text of a token"), std::string::npos);
}

TEST_F(MadeUpTrace, CountsBeyondTheirRecordAllocateNothing) {
  add_reply();
  std::string payload;
  ByteWriter out(payload);
  out.whole(0);
  out.whole(0);
  out.byte(0x22);
  out.whole(4);
  out.whole(0);
  out.whole(0xfffffff0u);  // emitted tokens
  add(trace::Kind::round, payload);
  const TraceReader trace = open();
  EXPECT_EQ(trace.rounds(), 1u);
  expect_error("the number of emitted tokens is 4294967280", [&] { trace.round(0); });
}

TEST_F(MadeUpTrace, RecordsTooLongForATraceAreNotWritten) {
  std::string bytes;
  expect_error("too long for a trace", [&] {
    trace::append_record(bytes, trace::Kind::round, std::string(trace::max_payload_bytes + 1, 'x'));
  });
}

TEST(Whole, NumbersAreReadBackAndBounded) {
  for (const uint64_t value : {uint64_t{0}, uint64_t{127}, uint64_t{128}, uint64_t{16384}, ~uint64_t{0}}) {
    std::string bytes;
    ByteWriter(bytes).whole(value);
    Reader reader(std::as_bytes(std::span(bytes)));
    EXPECT_EQ(read_whole<uint64_t>(reader, "the value"), value);
    EXPECT_EQ(reader.remaining(), 0u);
  }
  const auto refused = [](std::string bytes, const char* message) {
    Reader reader(std::as_bytes(std::span(bytes)));
    expect_error(message, [&] { read_whole<uint32_t>(reader, "the value"); });
  };
  refused(std::string(11, '\xff'), "longer than any number of 64 bits");
  refused("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "longer than any number of 64 bits");
  refused("\xff\xff\xff\xff\x1f", "at most 4294967295");
  refused("\x80", "ends inside the value");
}

}  // namespace
}  // namespace canopy
