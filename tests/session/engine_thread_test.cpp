#include "engine/session/engine_thread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "engine/text/unicode.h"
#include "engine/trace/trace_reader.h"
#include "tests/base/temp_folder.h"
#include "tests/model/golden_data.h"
#include "tests/model/random_model.h"
#include "tests/reference/reference_device.h"
#include "tests/session/engine_thread_rig.h"

namespace canopy::test {
namespace {

using namespace std::chrono_literals;

TEST_F(EngineThreadTest, DraftsInTheModeThatWasAskedForAndTellsOfEachRound) {
  start();
  LoadModel load = tiny();
  load.drafter = golden_folder() / "tiny-qwen3-dflash-b8";
  engine_->post(load);
  const auto ready = await<ModelReady>();
  EXPECT_EQ(ready.drafter, "tiny-qwen3-dflash-b8");
  const std::string plain = [&] {
    Generate generate = question(1);
    generate.mode = DecodeMode::ar;
    engine_->post(generate);
    return text_of(until<ReplyFinished>());
  }();
  for (const auto& mode :
       {std::optional(DecodeMode::chain), std::optional(DecodeMode::tree), std::optional<DecodeMode>()}) {
    Generate generate = question(2);
    generate.mode = mode;
    generate.budget = 5;
    generate.rounds = true;
    engine_->post(generate);
    const std::vector<Event> events = until<ReplyFinished>();
    EXPECT_EQ(text_of(events), plain);
    uint32_t emitted = 1;  // the first token comes from the prompt's last row
    for (const Event& event : events) {
      const auto* finished = std::get_if<RoundFinished>(&event);
      if (finished == nullptr) continue;
      EXPECT_EQ(finished->reply_id, 2u);
      emitted += static_cast<uint32_t>(finished->round->emitted.size());
      if (mode == DecodeMode::tree) {
        EXPECT_LE(finished->round->width, 6u);
      }
    }
    ASSERT_FALSE(events.empty());
    const auto& reply = std::get<ReplyFinished>(events.back());
    EXPECT_EQ(reply.reply_tokens, emitted);
    EXPECT_EQ(reply.mode, mode.value_or(DecodeMode::adaptive));
    if (mode) {
      EXPECT_GT(reply.tau, 1.0);
    }
  }
  // The drafter is not asked where only the text shall be.
  Generate generate = question(4);
  generate.mode = DecodeMode::tree;
  generate.sources = kFromSuffix;
  generate.rounds = true;
  engine_->post(generate);
  const std::vector<Event> events = until<ReplyFinished>();
  EXPECT_EQ(text_of(events), plain);
  for (const Event& event : events) {
    const auto* finished = std::get_if<RoundFinished>(&event);
    if (finished == nullptr) continue;
    for (const RoundNode& row : finished->round->nodes) EXPECT_EQ(row.node.sources & kFromDflash, 0);
  }
  // A drafter that does not fit is refused, and the pair from before stays.
  load.drafter = golden_folder() / "tiny-llama3";
  engine_->post(load);
  EXPECT_NE(await<Failure>().detail.find("tiny-llama3: It has 500 tokens and the model 1010"), std::string::npos);
  EXPECT_EQ(answer(3), plain);
}

TEST_F(EngineThreadTest, LoadsAndAnswers) {
  start();
  EXPECT_EQ(engine_->devices().at(0).name, "Reference");
  std::atomic<int> woken{0};
  engine_->set_wake([&] { ++woken; });
  engine_->post(tiny());
  const std::vector<Event> loading = until<ModelReady>();
  bool reported_bytes = false;
  for (const Event& event : loading) {
    const auto* progress = std::get_if<LoadProgress>(&event);
    reported_bytes = reported_bytes || (progress != nullptr && progress->total > 0 && progress->done > 0);
  }
  EXPECT_TRUE(reported_bytes);
  const auto ready = std::get<ModelReady>(loading.back());
  EXPECT_EQ(ready.file_name, "tiny-qwen3");
  EXPECT_EQ(ready.architecture, "qwen3");
  EXPECT_EQ(ready.context, 512u);
  EXPECT_EQ(ready.model_context, 2048u);
  EXPECT_EQ(ready.device, "Reference");
  EXPECT_EQ(ready.kv_type, "f16");
  EXPECT_TRUE(ready.warnings.empty()) << ready.warnings[0];

  engine_->post(question(7));
  const std::vector<Event> events = until<ReplyFinished>();
  const auto finished = std::get<ReplyFinished>(events.back());
  EXPECT_EQ(finished.reply_id, 7u);
  EXPECT_EQ(finished.reason, FinishReason::max_tokens);
  EXPECT_EQ(finished.reply_tokens, 24u);
  EXPECT_EQ(finished.context_used, finished.prompt_tokens + 23);
  EXPECT_GT(finished.tokens_per_second, 0.0);
  EXPECT_FALSE(text_of(events).empty());
  uint32_t prefilled = 0;
  for (const Event& event : events) {
    if (const auto* progress = std::get_if<PrefillProgress>(&event)) prefilled = progress->done;
  }
  EXPECT_EQ(prefilled, finished.prompt_tokens);
  EXPECT_GT(woken.load(), 3);

  engine_->post(question(8));  // the same prompt: all of it except the last token is in the cache
  const auto second = await<ReplyFinished>();
  EXPECT_EQ(second.reused_tokens, second.prompt_tokens - 1);
}

TEST_F(EngineThreadTest, CountsTokensAndSaysHowLongAPromptIsThatDoesNotFit) {
  start();
  engine_->post(CountTokens{1, "no model, no answer"});
  engine_->post(tiny());
  const auto ready = await<ModelReady>();
  engine_->post(CountTokens{2, "def main():\n"});
  engine_->post(CountTokens{3, "def main():\n<|im_start|>"});
  const auto plain = await<TokensCounted>(), forged = await<TokensCounted>();
  EXPECT_EQ(plain.id, 2u);
  EXPECT_EQ(plain.vocabulary, ready.vocabulary);
  EXPECT_GT(plain.tokens, 0u);
  EXPECT_GT(forged.tokens, plain.tokens + 1) << "text in a question is never one special token";

  Generate longer = question(7);
  for (int i = 0; i < 600; ++i) longer.raw_prompt += "def main():\n";
  engine_->post(longer);
  const auto failure = await<Failure>();
  EXPECT_EQ(failure.reply_id, 7u);
  EXPECT_GT(failure.prompt_tokens, ready.context);
  EXPECT_NE(failure.detail.find("512"), std::string::npos) << failure.detail;
  EXPECT_FALSE(answer(8).empty()) << "the engine goes on";
}

TEST_F(EngineThreadTest, ABrokenFileLeavesTheOldModelAnswering) {
  start();
  engine_->post(tiny());
  await<ModelReady>();
  const std::string before = answer(1);
  TempFolder folder;
  LoadModel broken = tiny();
  broken.path = folder.write("broken.gguf", "GGUF and then nothing of use");
  engine_->post(broken);
  const auto failure = await<Failure>();
  EXPECT_EQ(failure.kind, ErrorKind::bad_input);
  EXPECT_NE(failure.detail.find("broken.gguf"), std::string::npos) << failure.detail;
  EXPECT_EQ(failure.reply_id, 0u);
  EXPECT_EQ(answer(2), before);
}

TEST_F(EngineThreadTest, AnUnknownDeviceLeavesTheOldModelAnswering) {
  start();
  engine_->post(tiny());
  await<ModelReady>();
  LoadModel elsewhere = tiny();
  elsewhere.device = "none";
  engine_->post(elsewhere);
  EXPECT_EQ(await<Failure>().kind, ErrorKind::unavailable);
  EXPECT_FALSE(answer(1).empty());
}

TEST_F(EngineThreadTest, WithoutAModelAReplyFails) {
  start();
  engine_->post(question(3));
  const auto failure = await<Failure>();
  EXPECT_EQ(failure.kind, ErrorKind::unavailable);
  EXPECT_EQ(failure.reply_id, 3u);
}

TEST_F(EngineThreadTest, StopEndsTheReplyUnderWayAndTheWaitingOnesButNoLaterOne) {
  start();
  engine_->post(tiny());
  await<ModelReady>();
  engine_->post(question(1, 450));
  engine_->post(question(2, 450));
  until<TextDelta>();
  engine_->post(StopReply{});
  engine_->post(question(3, 5));
  const auto first = await<ReplyFinished>();
  EXPECT_EQ(first.reply_id, 1u);
  EXPECT_EQ(first.reason, FinishReason::cancelled);
  EXPECT_GT(first.reply_tokens, 0u);
  const auto second = await<ReplyFinished>();
  EXPECT_EQ(second.reply_id, 2u);
  EXPECT_EQ(second.reason, FinishReason::cancelled);
  EXPECT_EQ(second.reply_tokens, 0u);
  EXPECT_EQ(await<ReplyFinished>().reason, FinishReason::max_tokens);
}

TEST_F(EngineThreadTest, CancelledLoadKeepsThePreviousModel) {
  start();
  engine_->post(tiny());
  await<ModelReady>();
  const std::string before = answer(1);
  engine_->post(tiny());
  engine_->post(CancelLoad{});
  EXPECT_EQ(await<Failure>().kind, ErrorKind::cancelled);
  EXPECT_EQ(answer(2), before);
}

TEST_F(EngineThreadTest, AModelThatFitsOnlyAloneReplacesTheOldOne) {
  start(50 << 20);  // each of the two needs about 30 MiB
  engine_->post(tiny());
  await<ModelReady>();
  const std::string before = answer(1);
  LoadModel longer = tiny();
  longer.context = 640;
  engine_->post(longer);
  EXPECT_EQ(await<ModelReady>().context, 640u);
  EXPECT_EQ(answer(2), before);

  // A model that does not fit even alone brings the old one back.
  LoadModel huge = tiny();
  TempFolder folder;
  RandomModel random;
  random.hidden = 512;
  random.ffn = 2048;
  random.layers = 8;
  huge.path = folder.write("huge.gguf", random.build());
  huge.context = 0;
  engine_->post(huge);
  const auto failure = await<Failure>();
  EXPECT_EQ(failure.kind, ErrorKind::out_of_memory) << failure.detail;
  EXPECT_EQ(answer(3), before);
  EXPECT_EQ(devices_opened_.load(), 1);
}

TEST_F(EngineThreadTest, ALostDeviceIsOpenedAnewByTheNextLoad) {
  start();
  engine_->post(tiny());
  await<ModelReady>();
  const std::string before = answer(1);
  lose_ = true;
  engine_->post(question(2));
  const auto failure = await<Failure>();
  EXPECT_EQ(failure.kind, ErrorKind::device_lost);
  EXPECT_EQ(failure.reply_id, 2u);
  engine_->post(question(3));
  EXPECT_EQ(await<Failure>().kind, ErrorKind::unavailable);
  engine_->post(tiny());
  await<ModelReady>();
  EXPECT_EQ(devices_opened_.load(), 2);
  EXPECT_EQ(answer(4), before);
}

// "", "0" and a part of the name select the same device: it is opened only once, and a model that fits only alone is
// loaded.
TEST_F(EngineThreadTest, KnowsADeviceByAnyOfItsSelectors) {
  start();
  for (const char* selector : {"", "0", "refer", "1"}) {
    LoadModel load = tiny();
    load.device = selector;
    engine_->post(load);
    ASSERT_FALSE(until<ModelReady>().empty()) << selector;
    EXPECT_EQ(devices_opened_.load(), std::string(selector) == "1" ? 2 : 1) << selector;
  }
}

// Other threads are another device; the same ones keep it.
TEST_F(EngineThreadTest, OpensTheDeviceWithTheThreadsThatWereAskedFor) {
  start();
  for (const auto& [threads, opened] : {std::pair(3u, 1), {3u, 1}, {0u, 2}}) {
    LoadModel load = tiny();
    load.threads = threads;
    engine_->post(load);
    await<ModelReady>();
    EXPECT_EQ(threads_opened_.load(), threads);
    EXPECT_EQ(devices_opened_.load(), opened);
  }
  EXPECT_NE(answer(1), "");
}

TEST_F(EngineThreadTest, QuittingDoesNotWaitForALongReply) {
  start();
  engine_->post(tiny());
  await<ModelReady>();
  engine_->post(question(1, 450));
  until<TextDelta>();
  const auto start_of_end = std::chrono::steady_clock::now();
  engine_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start_of_end, 1s);
}

/// A reply is found again in another chat, until its own is forgotten; one of no chat is not kept.
TEST_F(EngineThreadTest, EarlierRepliesAreDraftedFromUntilTheyAreForgotten) {
  const TempFolder folder;
  replies_ = folder.path() / "replies";
  start();
  engine_->post(tiny());
  await<ModelReady>();
  const double first = rounds_of(1, ""), again = rounds_of(2, "a");
  EXPECT_DOUBLE_EQ(again, first);
  EXPECT_LT(rounds_of(3, ""), 0.5 * first) << "the reply of chat a says it all";
  engine_->post(ForgetReplies{"another"});
  EXPECT_LT(rounds_of(4, ""), 0.5 * first);
  engine_->post(ForgetReplies{"a"});
  EXPECT_DOUBLE_EQ(rounds_of(5, ""), first);
  rounds_of(6, "b");
  engine_->post(ForgetReplies{});
  EXPECT_DOUBLE_EQ(rounds_of(7, ""), first);
  EXPECT_TRUE(std::filesystem::is_empty(replies_));
}

/// Nor do they get into a recording, nor what is recorded into them.
TEST_F(EngineThreadTest, ARecordingKnowsNoEarlierReplies) {
  const TempFolder folder;
  replies_ = folder.path() / "replies";
  start();
  engine_->post(tiny());
  await<ModelReady>();
  engine_->post(RecordTrace{(folder.path() / "a.canopytrace").string()});
  const double first = rounds_of(1, "a");
  EXPECT_FALSE(std::filesystem::exists(replies_));
  engine_->post(StopRecording{});
  EXPECT_DOUBLE_EQ(rounds_of(2, "a"), first);
  EXPECT_LT(rounds_of(3, "a"), 0.5 * first);
  engine_->post(RecordTrace{(folder.path() / "b.canopytrace").string()});
  EXPECT_DOUBLE_EQ(rounds_of(4, "a"), first);
}

TEST_F(EngineThreadTest, UnpolledTextDoesNotPileUp) {
  start();
  engine_->post(tiny());
  await<ModelReady>();
  engine_->post(question(1, 200));
  std::this_thread::sleep_for(300ms);
  engine_->post(StopReply{});
  std::this_thread::sleep_for(300ms);
  EXPECT_LE(engine_->poll().size(), 6u);  // prefill, started, text, learnt, memory, finished
}

/// The text that each token of the reply wrote, as a chat would mark it by the rule of RoundFinished.
std::vector<std::pair<uint32_t, std::string>> tinted(const std::vector<Event>& events, const std::string& text) {
  std::vector<std::pair<uint32_t, std::string>> tokens;
  const auto cut = [&](uint32_t begin, uint32_t end) {
    begin = std::min<uint32_t>(begin, static_cast<uint32_t>(text.size()));
    return text.substr(begin, end - begin);
  };
  for (const Event& event : events) {
    if (const auto* started = std::get_if<ReplyStarted>(&event)) tokens.emplace_back(started->first_token, "");
    const auto* finished = std::get_if<RoundFinished>(&event);
    if (finished == nullptr) continue;
    if (tokens.size() == 1) tokens.front().second = cut(0, finished->text_begin);
    EXPECT_EQ(finished->first_index, tokens.size());
    EXPECT_EQ(finished->text_ends.size(), finished->round->emitted.size());
    uint32_t begin = finished->text_begin;
    for (size_t i = 0; i < finished->text_ends.size(); ++i) {
      tokens.emplace_back(finished->round->emitted[i], cut(begin, finished->text_ends[i]));
      begin = finished->text_ends[i];
    }
  }
  return tokens;
}

TEST_F(EngineThreadTest, EachTokenOfAReplyHasItsTextItsRoundAndItsBytes) {
  start();
  LoadModel load = tiny();
  load.drafter = golden_folder() / "tiny-qwen3-dflash-b8";
  engine_->post(load);
  const auto ready = await<ModelReady>();
  EXPECT_EQ(ready.block, 8u);
  ASSERT_NE(ready.texts, nullptr);
  EXPECT_FALSE(ready.texts->find(1u << 20).has_value());
  for (const auto mode : {DecodeMode::ar, DecodeMode::tree}) {
    Generate generate = question(5, 60);
    generate.mode = mode;
    generate.rounds = true;
    generate.sampling.temperature = 1.5f;  // so that bytes of all kinds come
    engine_->post(generate);
    const std::vector<Event> events = until<ReplyFinished>();
    const std::string text = text_of(events);
    const auto tokens = tinted(events, text);
    EXPECT_EQ(tokens.size(), std::get<ReplyFinished>(events.back()).reply_tokens);
    std::string joined, spelt;
    for (const auto& [id, bytes] : tokens) {
      joined += bytes;
      const auto piece = ready.texts->find(id);
      ASSERT_TRUE(piece.has_value()) << id;
      if (!piece->control) spelt += piece->bytes;
    }
    EXPECT_FALSE(text.empty());
    EXPECT_TRUE(text.starts_with(joined));  // a character cut off by the limit becomes U+FFFD at the end
    EXPECT_LE(text.size(), joined.size() + 3);
    Utf8Stream whole;
    const std::string reference = whole.push(spelt) + whole.finish();
    EXPECT_EQ(text, reference);
  }
  // The event of a round comes after its text.
  size_t shown = 0;
  Generate generate = question(6, 30);
  generate.rounds = true;
  engine_->post(generate);
  for (const Event& event : until<ReplyFinished>()) {
    if (const auto* delta = std::get_if<TextDelta>(&event)) shown += delta->text.size();
    if (const auto* finished = std::get_if<RoundFinished>(&event)) {
      EXPECT_GE(shown, finished->text_ends.back());
    }
  }
}

TEST_F(EngineThreadTest, TellsWhatTakesMemoryAndWhatIsLeft) {
  start(uint64_t{1} << 30);
  LoadModel load = tiny();
  load.drafter = golden_folder() / "tiny-qwen3-dflash-b8";
  engine_->post(load);
  const MemoryUse with = await<ModelReady>().memory;
  EXPECT_GT(with.weights, 0u);
  EXPECT_GT(with.drafter, 0u);
  EXPECT_GT(with.working, 0u);
  EXPECT_EQ(with.context, 512u);
  EXPECT_EQ(with.cache / with.context, with.tree / (with.rows));  // bytes for each position
  EXPECT_EQ(with.budget, uint64_t{1} << 30);
  EXPECT_LT(with.available, with.budget - with.weights - with.drafter - with.cache - with.tree);
  load.draft = false;
  load.context = 256;
  engine_->post(load);
  const MemoryUse without = await<ModelReady>().memory;
  EXPECT_EQ(without.drafter, 0u);
  EXPECT_EQ(without.cache * 2, with.cache);
  EXPECT_GT(without.available, with.available);
  engine_->post(question(1, 3));
  EXPECT_EQ(await<MemoryUse>().cache, without.cache);
}

TEST_F(EngineThreadTest, CalibratesOnDemandAndGivesUpWhenTold) {
  const TempFolder cache;
  setenv("CANOPY_CACHE_DIR", cache.path().c_str(), 1);  // while there is no other thread
  start();
  Calibrate calibrate;
  calibrate.seconds = 2;
  engine_->post(calibrate);
  EXPECT_EQ(await<Failure>().kind, ErrorKind::unavailable);  // no model
  LoadModel load = tiny();
  load.drafter = golden_folder() / "tiny-qwen3-dflash-b8";
  engine_->post(load);
  EXPECT_EQ(await<ModelReady>().costs, nullptr);
  const std::string before = answer(1);
  engine_->post(calibrate);
  const std::vector<Event> events = until<Calibrated>();
  ASSERT_FALSE(events.empty());
  const auto* progress = std::get_if<CalibrationProgress>(&events[events.size() - 2]);
  ASSERT_NE(progress, nullptr);
  EXPECT_GT(progress->total, 0u);
  const auto costs = std::get<Calibrated>(events.back()).costs;
  ASSERT_NE(costs, nullptr);
  EXPECT_EQ(costs->passes.size(), costs->table.verify_points().size());
  EXPECT_GT(costs->passes.size(), 1u);
  EXPECT_GT(costs->table.draft_points().size(), 0u);
  engine_->post(calibrate);
  engine_->post(CancelCalibration{});
  EXPECT_EQ(await<Failure>().kind, ErrorKind::cancelled);
  calibrate.seconds = -1;
  engine_->post(calibrate);
  EXPECT_EQ(await<Failure>().kind, ErrorKind::bad_input);
  engine_->post(question(2));
  const std::vector<Event> reply = until<ReplyFinished>();
  EXPECT_EQ(text_of(reply), before);
  const auto learnt = std::find_if(reply.begin(), reply.end(),
                                   [](const Event& event) { return std::holds_alternative<Learnt>(event); });
  ASSERT_NE(learnt, reply.end());
  EXPECT_EQ(std::get<Learnt>(*learnt).learnt->depths.size(), 7u);
  EXPECT_GT(std::get<ReplyFinished>(reply.back()).ar_tokens_per_second, 0.0);
  EXPECT_TRUE(std::get<ReplyFinished>(reply.back()).plain.known());
  engine_.reset();
  unsetenv("CANOPY_CACHE_DIR");
}

TEST_F(EngineThreadTest, RecordsRepliesUntilToldToStop) {
  start();
  TempFolder folder;
  const std::filesystem::path path = folder.path() / "talk.canopytrace";
  engine_->post(RecordTrace{path, false});
  EXPECT_EQ(await<Failure>().kind, ErrorKind::unavailable);  // no model
  engine_->post(tiny());
  await<ModelReady>();
  answer(1);
  engine_->post(RecordTrace{path, false});
  const auto begun = await<Recording>();
  EXPECT_TRUE(begun.active);
  EXPECT_EQ(begun.file_name, "talk.canopytrace");
  const std::string text = answer(2);
  answer(3);
  engine_->post(StopRecording{});
  auto ended = await<Recording>();
  EXPECT_FALSE(ended.active);
  EXPECT_TRUE(ended.problem.empty()) << ended.problem;
  answer(4);
  const auto trace = std::make_shared<const TraceReader>(TraceReader::open(path));
  EXPECT_EQ(trace->notice(), "");
  ASSERT_EQ(trace->replies().size(), 2u);
  EXPECT_EQ(trace->replies()[0].end->text, text);
  EXPECT_EQ(trace->rounds(), ended.rounds);
  EXPECT_EQ(trace->whole_bytes(), ended.bytes);
  // The texts from the engine and those in the trace are the same.
  const auto texts = token_texts(trace);
  const auto first = texts->find(*trace->replies()[0].prefill->first_token);
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(texts->find(1u << 20).has_value());

  // A file that is no trace is not overwritten. Loading another model ends a recording.
  engine_->post(RecordTrace{folder.write("notes.txt", "not a trace, and dear to somebody"), false});
  EXPECT_EQ(await<Failure>().kind, ErrorKind::bad_input);
  engine_->post(RecordTrace{path, true});
  EXPECT_TRUE(await<Recording>().active);
  engine_->post(tiny());
  EXPECT_FALSE(await<Recording>().active);
  await<ModelReady>();
  EXPECT_TRUE(TraceReader::open(path).header().redacted);
}

TEST_F(EngineThreadTest, ADenseRecordingGetsItsDraftsWhenItEnds) {
  start();
  TempFolder folder;
  const std::filesystem::path path = folder.path() / "dense.canopytrace";
  LoadModel load = tiny();
  load.drafter = golden_folder() / "tiny-qwen3-dflash-b8";
  engine_->post(load);
  await<ModelReady>();
  RecordTrace record{path, false};
  record.dense = true;
  engine_->post(record);
  EXPECT_TRUE(await<Recording>().active);
  answer(1);
  EXPECT_FALSE(TraceReader::open(path).replies()[0].dense.has_value());
  engine_->post(StopRecording{});
  auto ended = await<Recording>();
  while (ended.active) ended = await<Recording>();
  EXPECT_EQ(ended.problem, "");
  const TraceReader trace = TraceReader::open(path);
  EXPECT_EQ(trace.notice(), "");
  ASSERT_EQ(trace.replies().size(), 1u);
  ASSERT_TRUE(trace.replies()[0].dense.has_value());
  EXPECT_GT(trace.drafts(0), 1u);
  answer(2);  // and the engine goes on
}

TEST_F(EngineThreadTest, ASystemPromptIsATurn) {
  start();
  engine_->post(tiny());
  await<ModelReady>();
  const auto prompt_tokens = [&](std::vector<ChatTurn> turns) {
    Generate generate = question(1, 1);
    generate.turns = std::move(turns);
    engine_->post(generate);
    return await<ReplyFinished>().prompt_tokens;
  };
  const uint32_t terse = prompt_tokens({{"system", "Be terse."}, {"user", "Hello"}});
  EXPECT_GT(prompt_tokens({{"system", "Be terse, and never use the letter e."}, {"user", "Hello"}}), terse);
}

}  // namespace
}  // namespace canopy::test
