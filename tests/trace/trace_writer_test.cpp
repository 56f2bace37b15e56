#include "engine/trace/trace_writer.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/trace/trace_export.h"
#include "engine/trace/trace_reader.h"
#include "engine/trace/trace_records.h"
#include "tests/base/expect_error.h"
#include "tests/base/full_disk.h"
#include "tests/base/temp_folder.h"
#include "tests/base/unprivileged.h"
#include "tests/trace/trace_builder.h"

namespace canopy {
namespace {

using test::expect_error;
using test::TempFolder;
using test::TraceBuilder;

class TraceWriting : public testing::Test {
 protected:
  TraceWriting() {
    set_log_sink([this](LogLevel level, std::string_view message) {
      if (level == LogLevel::warning) warnings_.emplace_back(message);
    });
  }
  ~TraceWriting() override { set_log_sink({}); }

  std::filesystem::path file() const { return folder_.path() / "run.canopytrace"; }

  TempFolder folder_;
  TraceBuilder builder_;
  std::vector<std::string> warnings_;
};

/// In a child process: records without end and reports each round, until it is killed.
void record_until_killed(const std::filesystem::path& file, int pipe) {
  TraceBuilder builder(9);
  TraceWriter trace(file, builder.header(), builder.pieces());
  trace.begin(builder.begin());
  for (;;) {
    trace.append(builder.any());
    if (::write(pipe, "r", 1) != 1) ::_exit(1);
  }
}

TEST_F(TraceWriting, LosesNoWholeRoundWhenKilled) {
  for (const int wanted : {1, 7, 40, 153}) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::close(ends[0]);
      record_until_killed(file(), ends[1]);
    }
    ::close(ends[1]);
    size_t told = 0;
    char byte = 0;
    while (told < static_cast<size_t>(wanted) && ::read(ends[0], &byte, 1) == 1) ++told;
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    while (::read(ends[0], &byte, 1) == 1) ++told;
    ::close(ends[0]);
    const TraceReader trace = TraceReader::open(file());
    EXPECT_GE(trace.rounds(), told);
    EXPECT_LE(trace.rounds(), told + 1);
    for (size_t i = 0; i < trace.rounds(); ++i) EXPECT_EQ(trace.round(i).round, i);
    EXPECT_FALSE(trace.replies()[0].end);
  }
}

TEST_F(TraceWriting, AFullDiskStopsRecordingOnceAndKeepsWhatThereIs) {
  TraceWriter trace(file(), builder_.header(), builder_.pieces());
  trace.begin(builder_.begin());
  for (int i = 0; i < 5; ++i) trace.append(builder_.any());
  const auto before = std::filesystem::file_size(file());
  {
    const test::FullDisk full;
    for (int i = 0; i < 3; ++i) EXPECT_NO_THROW(trace.append(builder_.any()));
    EXPECT_NO_THROW(trace.end(builder_.end()));
  }
  EXPECT_NE(trace.problem().find("Recording stopped after 5 passes"), std::string::npos) << trace.problem();
  EXPECT_NE(trace.problem().find("File too large"), std::string::npos) << trace.problem();
  EXPECT_EQ(warnings_.size(), 1u);
  trace.append(builder_.any());  // there is room again, but earlier rounds are missing
  trace.finish();
  EXPECT_EQ(std::filesystem::file_size(file()), before);
  const TraceReader reader = TraceReader::open(file());
  EXPECT_EQ(reader.rounds(), 5u);
  EXPECT_EQ(reader.notice(), "");
}

TEST_F(TraceWriting, ADiskThatFillsInsideARecordLeavesNoPartOfIt) {
  TraceWriter trace(file(), builder_.header(), builder_.pieces());
  trace.begin(builder_.begin());
  trace.append(builder_.any());
  const auto before = std::filesystem::file_size(file());
  {
    const test::FullDisk full;  // ignores the signal, and restores the limit
    rlimit limit = {};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = before + 10;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    trace.append(builder_.tree(20));
  }
  EXPECT_NE(trace.problem(), "");
  EXPECT_EQ(std::filesystem::file_size(file()), before);
}

TEST_F(TraceWriting, ARecordThatContradictsItselfStopsRecording) {
  TraceWriter trace(file(), builder_.header(), builder_.pieces());
  trace.begin(builder_.begin());
  RoundRecord record = builder_.tree(5);
  record.ms.verify = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NO_THROW(trace.append(record));
  EXPECT_NE(trace.problem().find("time of a stage"), std::string::npos) << trace.problem();
  EXPECT_EQ(trace.rounds(), 0u);
  EXPECT_EQ(warnings_.size(), 1u);
}

TEST_F(TraceWriting, ReplacesAnEarlierTraceAndNothingElse) {
  builder_.write(file(), 20);
  builder_.write(file(), 2);
  EXPECT_EQ(TraceReader::open(file()).rounds(), 2u);
  EXPECT_EQ(TraceReader::open(file()).notice(), "");
  const auto model = folder_.write("model.gguf", "GGUF and gigabytes of weights");
  expect_error("the file exists and is no trace", [&] { TraceWriter(model, builder_.header(), builder_.pieces()); });
  EXPECT_EQ(read_small_file(model, 100), "GGUF and gigabytes of weights");
  EXPECT_NO_THROW(TraceWriter(folder_.write("empty", ""), builder_.header(), builder_.pieces()));
}

TEST_F(TraceWriting, RefusesAFileThatIsBeingRecordedInto) {
  TraceWriter first(file(), builder_.header(), builder_.pieces());
  first.begin(builder_.begin());
  first.append(builder_.any());
  expect_error("recorded into already", [&] { TraceWriter(file(), builder_.header(), builder_.pieces()); });
  first.append(builder_.any());
  EXPECT_EQ(TraceReader::open(file()).rounds(), 2u);
}

TEST_F(TraceWriting, SaysWhyAFileCannotBeWritten) {
  const auto refused = [&](const std::filesystem::path& path, const char* why) {
    expect_error(why, [&] { TraceWriter(path, builder_.header(), builder_.pieces()); });
    expect_error(path.string(), [&] { TraceWriter(path, builder_.header(), builder_.pieces()); });
  };
  refused(folder_.path() / "no" / "folder.canopytrace", "No such file or directory");
  refused(folder_.path(), "Is a directory");
  const auto pipe = folder_.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  refused(pipe, "no ordinary file");
  {
    const test::FullDisk full;
    refused(folder_.path() / "full.canopytrace", "File too large");
  }
  const auto locked = folder_.write("locked.canopytrace", "");
  std::filesystem::permissions(locked, std::filesystem::perms::none);
  if (const test::Unprivileged user; user) refused(locked, "Permission denied");
}

TEST_F(TraceWriting, WhatFollowsFinishIsDropped) {
  TraceWriter trace(file(), builder_.header(), builder_.pieces());
  trace.begin(builder_.begin());
  trace.append(builder_.any());
  trace.finish();
  trace.append(builder_.any());
  trace.finish();
  EXPECT_EQ(trace.problem(), "");
  EXPECT_EQ(TraceReader::open(file()).rounds(), 1u);
}

TEST_F(TraceWriting, WritesATextOnceForEachToken) {
  TraceWriter trace(file(), builder_.header(), builder_.pieces());
  trace.begin(builder_.begin());
  const RoundRecord record = builder_.tree(30);
  trace.append(record);
  const uint64_t first = trace.bytes();
  trace.append(record);
  const uint64_t second = trace.bytes() - first;
  trace.append(record);
  EXPECT_EQ(trace.bytes() - first, 2 * second);
  EXPECT_GT(first, second + 30 * 5);  // " wordN" at least thirty times
}

TEST_F(TraceWriting, NeedsNoTexts) {
  TraceWriter trace(file(), builder_.header(), {});
  trace.begin(builder_.begin());
  const RoundRecord record = builder_.tree(4);
  trace.append(record);
  trace.finish();
  const TraceReader reader = TraceReader::open(file());
  EXPECT_EQ(reader.round(0).emitted, record.emitted);
  EXPECT_EQ(reader.piece(record.emitted[0]), nullptr);
}

TEST_F(TraceWriting, HasNoWrongGuessOfAnotherChat) {
  RoundRecord round;
  while (round.accepted == 0 || round.nodes.size() < 6) {
    builder_.begin();
    round = builder_.tree(12);
  }
  for (RoundNode& row : round.nodes) row.node.sources = kFromEarlier;
  round.nodes[0].node.sources = 0;
  uint32_t both = 0;  // a wrong guess that the text made as well
  for (uint32_t i = 1; i < round.nodes.size(); ++i)
    if (round.nodes[i].state != NodeState::accepted) both = i;
  ASSERT_GT(both, 0u);
  round.nodes[both].node.sources = kFromEarlier | kFromSuffix;
  round.match = 3;
  {
    TraceWriter trace(file(), builder_.header(), builder_.pieces());
    trace.begin(builder_.begin());
    trace.append(round);
  }
  const TraceReader trace = TraceReader::open(file());
  const RoundRecord kept = trace.round(0);
  ASSERT_EQ(kept.nodes.size(), round.nodes.size());
  EXPECT_EQ(kept.emitted, round.emitted);
  EXPECT_EQ(kept.accepted, round.accepted);
  for (uint32_t i = 0; i < kept.nodes.size(); ++i) {
    const RoundNode &now = kept.nodes[i], &then = round.nodes[i];
    EXPECT_EQ(now.node.parent, then.node.parent);
    EXPECT_EQ(now.node.sources, then.node.sources);
    EXPECT_EQ(now.node.log_q, then.node.log_q);
    EXPECT_TRUE(now.log_p == then.log_p || (std::isnan(now.log_p) && std::isnan(then.log_p)));
    EXPECT_EQ(now.state, then.state);
    if (then.state == NodeState::accepted || i == both) {
      EXPECT_EQ(now.node.token, then.node.token) << i;
      EXPECT_EQ(now.target_token, then.target_token) << i;
    } else {
      EXPECT_EQ(now.node.token, trace::other_chats_token) << i;
      EXPECT_EQ(now.target_token, RoundNode::unknown) << "it would tell what stood before it";
    }
  }
  ASSERT_TRUE(trace.piece(trace::other_chats_token));
  EXPECT_EQ(trace.piece(trace::other_chats_token)->bytes, trace::other_chats_words);
  EXPECT_FALSE(has_other_chats(kept));
  EXPECT_TRUE(has_other_chats(round));
  const auto json = round_to_json(kept, trace);
  EXPECT_EQ(json["nodes"][both]["token"], round.nodes[both].node.token);
  const auto hidden = std::ranges::find_if(
      json["nodes"], [](const auto& node) { return node["text"] == std::string(trace::other_chats_words); });
  ASSERT_NE(hidden, json["nodes"].end());
  EXPECT_TRUE((*hidden)["token"].is_null());
}

}  // namespace
}  // namespace canopy
