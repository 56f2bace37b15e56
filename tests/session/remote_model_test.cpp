// A model on another machine against made-up servers: a Canopy, another server, and what goes wrong with both.

#include "engine/session/remote_model.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/session/event_json.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/net/fake_server.h"
#include "tests/session/engine_thread_rig.h"

namespace canopy::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using To = FakeServer::Connection;

constexpr uint64_t kMadeUpVocabulary = 18'446'744'073'709'551'615u;

ModelReady made_up_model() {
  ModelReady model;
  model.name = "Made up";
  model.file_name = "made-up.gguf";
  model.architecture = "llama";
  model.quantization = "Q4_1";
  model.parameters = 1000;
  model.context = model.model_context = 64;
  model.device = "Example GPU";
  model.device_type = "discrete";
  model.backend = "cuda";
  model.kv_type = "f16";
  model.drafter = "made-up-eagle.gguf";
  model.drafted_by = kFromEagle;
  model.drafter_kind = "EAGLE-3";
  model.block = 8;
  model.vocabulary = kMadeUpVocabulary;
  model.self_test = SelfTest::passed;
  model.thinking.switchable = true;
  return model;
}

class MadeUpTexts final : public TokenTexts {
 public:
  std::optional<trace::Piece> find(uint32_t token) const override {
    static constexpr trace::Piece pieces[] = {{"<end>", true}, {"A", false}, {"B", false}, {"\xe2\x82", false}};
    return token < std::size(pieces) ? std::optional(pieces[token]) : std::nullopt;
  }
};

json made_up_about() {
  TraceHeader header;
  header.target = {"Made up", "made-up.gguf", "llama", "Q4_1"};
  header.device = "Example GPU";
  header.context = 64;
  return {{"schema", kEventSchema},
          {"id", "made-up"},
          {"model", json::parse(model_to_json(made_up_model()).dump())},
          {"header", json::parse(to_json(header).dump())}};
}

void send_json(const To& to, const json& object, int status = 200) {
  to.begin(status, "application/json");
  to.send(object.dump());
}

void send_event(const To& to, const Event& event) {
  to.send("event: " + std::string(event_name(event)) + "\ndata: " + event_to_json(event, MadeUpTexts()).dump() +
          "\n\n");
}

ReplyStarted made_up_start() {
  return {0, 3, 1, 12.5, 1, 0};
}

TextDelta made_up_text(const char* text) {
  TextDelta delta;
  delta.text = text;
  delta.reply_tokens = 1;
  delta.context_used = 4;
  return delta;
}

RoundFinished made_up_round(uint32_t number, uint32_t first_index) {
  RoundRecord record;
  record.round = number;
  record.context = 3 + number;
  record.emitted = {2};
  record.ms.verify = 2;
  RoundFinished round;
  round.round = std::make_shared<const RoundRecord>(record);
  round.first_index = first_index;
  round.text_begin = 1 + number;
  round.text_ends = {2 + number};
  return round;
}

ReplyFinished made_up_finish() {
  ReplyFinished reply;
  reply.reason = FinishReason::max_tokens;
  reply.prompt_tokens = 3;
  reply.reply_tokens = 2;
  reply.context_used = 4;
  reply.decode_ms = 2;
  reply.tau = 1;
  reply.tokens = {{1, 2}, {}, kMadeUpVocabulary};
  reply.plain = {2.5, 4, true};
  return reply;
}

/// A server that says it is a Canopy and answers requests for replies as a test says.
class MadeUpCanopy {
 public:
  explicit MadeUpCanopy(FakeServer::Answer reply, json about = made_up_about())
      : server_([reply = std::move(reply), about = std::move(about)](const To& to) {
          if (to.request.starts_with("GET /v1/canopy/tokens ")) {
            send_json(to, json::parse(texts_to_json(MadeUpTexts(), 4).dump()));
          } else if (to.request.starts_with("GET /v1/canopy ")) {
            send_json(to, about);
          } else {
            reply(to);
          }
        }) {}

  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_.port()); }

 private:
  FakeServer server_;
};

class RemoteModelTest : public EngineThreadTest {
 protected:
  void SetUp() override { start(); }

  ModelReady open(const std::string& url, const std::string& key = "") {
    LoadModel load;
    load.path = url;
    load.key = key;
    engine_->post(load);
    return await<ModelReady>();
  }

  static Generate hello(uint64_t id) {
    Generate generate;
    generate.reply_id = id;
    generate.turns = {{"user", "Hello"}};
    generate.rounds = true;
    generate.mode = DecodeMode::tree;
    generate.budget = 5;
    generate.sampling.temperature = 0.5f;
    generate.sampling.min_p = 0.25f;
    return generate;
  }

  /// The failure of opening what is there.
  Failure refusal(const std::string& url) {
    LoadModel load;
    load.path = url;
    engine_->post(load);
    return await<Failure>();
  }
};

TEST_F(RemoteModelTest, ACanopyIsOpenedAndTellsAReplyAsAnEngineHere) {
  std::string asked;
  const MadeUpCanopy canopy([&](const To& to) {
    asked = to.request;
    to.begin();
    to.send(": waiting\n\nevent: canopy.of_a_newer_version\ndata: {}\n\n");
    send_event(to, PrefillProgress{0, 2, 3});
    send_event(to, made_up_start());
    send_event(to, made_up_text("A"));
    to.text("what other clients read, which is not looked at");
    send_event(to, made_up_round(0, 1));
    send_event(to, made_up_finish());
    to.finish("length", 2);
  });
  const ModelReady ready = open(canopy.url(), "a-key-for-tests");
  const std::string place = canopy.url().substr(7);
  EXPECT_EQ(ready.name, "Made up");
  EXPECT_EQ(ready.server, place);
  EXPECT_EQ(ready.device, "Example GPU at " + place);
  EXPECT_EQ(ready.drafter, "made-up-eagle.gguf");
  EXPECT_EQ(ready.drafted_by, kFromEagle);
  EXPECT_EQ(ready.drafter_kind, "EAGLE-3");
  EXPECT_EQ(ready.vocabulary, kMadeUpVocabulary);
  EXPECT_TRUE(ready.tells_rounds && ready.warnings.empty());
  EXPECT_EQ(ready.self_test, SelfTest::passed);
  EXPECT_TRUE(ready.thinking.switchable);
  ASSERT_NE(ready.texts, nullptr);
  EXPECT_EQ(ready.texts->find(3)->bytes, "\xe2\x82");
  EXPECT_TRUE(ready.texts->find(0)->control);
  EXPECT_FALSE(ready.texts->find(4));

  Generate question = hello(7);
  question.turns = {{"user", "Hello"}, {"assistant", "AB", {{1, 2}, {}, kMadeUpVocabulary}}, {"user", "Again"}};
  engine_->post(question);
  const std::vector<Event> events = until<ReplyFinished>();
  EXPECT_EQ(text_of(events), "A");
  int rounds = 0;
  for (const Event& event : events) {
    if (const auto* started = std::get_if<ReplyStarted>(&event)) {
      EXPECT_EQ(started->reply_id, 7u);
      EXPECT_EQ(started->prefill_ms, 12.5);
    }
    if (const auto* round = std::get_if<RoundFinished>(&event)) {
      EXPECT_EQ(round->reply_id, 7u);
      EXPECT_EQ(round->round->emitted, std::vector<uint32_t>{2});
      EXPECT_EQ(round->text_ends, std::vector<uint32_t>{2});
      ++rounds;
    }
  }
  EXPECT_EQ(rounds, 1);
  const auto& finished = std::get<ReplyFinished>(events.back());
  EXPECT_EQ(finished.reply_id, 7u);
  EXPECT_EQ(finished.tokens, (TurnTokens{{1, 2}, {}, kMadeUpVocabulary}));
  EXPECT_EQ(finished.plain, (PlainBeside{2.5, 4, true}));

  EXPECT_TRUE(asked.starts_with("POST /v1/chat/completions HTTP/1.1"));
  EXPECT_NE(asked.find("Authorization: Bearer a-key-for-tests"), std::string::npos);
  const json body = json::parse(asked.substr(asked.find("\r\n\r\n") + 4));
  EXPECT_EQ(body["model"], "made-up");
  EXPECT_EQ(body["speculation"], (json{{"mode", "tree"}, {"budget", 5}, {"sources", {"dflash", "suffix"}}}));
  EXPECT_EQ(body["min_p"], 0.25);
  EXPECT_EQ(body["canopy"]["rounds"], true);
  EXPECT_EQ(body["canopy"]["turn_ids"], (json{nullptr, {1, 2}, nullptr}));
  EXPECT_EQ(body["messages"][1], (json{{"role", "assistant"}, {"content", "AB"}}));
}

TEST_F(RemoteModelTest, WhatCannotBeOpenedSaysWhyAndWhatWasThereStays) {
  engine_->post(tiny());
  await<ModelReady>();
  uint16_t nobody = 0;
  {
    const FakeServer gone([](const To&) {});
    nobody = gone.port();
  }
  EXPECT_NE(refusal("http://127.0.0.1:" + std::to_string(nobody)).detail.find("No server answers there"),
            std::string::npos);
  EXPECT_NE(refusal("https://127.0.0.1:1").detail.find("https, which is not supported"), std::string::npos);

  const auto refused_by = [&](const FakeServer::Answer& answer) {
    const FakeServer server(answer);
    return refusal(server.url()).detail;
  };
  const std::string key = refused_by([](const To& to) {
    send_json(to, {{"error", {{"message", "The key is missing or wrong."}}}}, 401);
  });
  EXPECT_NE(key.find("wants a key, or another one than it was given: The key is missing or wrong."), std::string::npos)
      << key;
  const std::string neither = refused_by([](const To& to) {
    to.begin(200, "text/html");
    to.send("<html>");
  });
  EXPECT_NE(neither.find("is no Canopy and no OpenAI-compatible server"), std::string::npos) << neither;
  const std::string empty = refused_by([](const To& to) {
    send_json(to, {{"object", "list"}, {"data", json::array()}}, to.request.starts_with("GET /v1/models ") ? 200 : 404);
  });
  EXPECT_NE(empty.find("has no model loaded"), std::string::npos) << empty;
  const std::string flood = refused_by([](const To& to) {
    to.begin(200, "application/json");
    const std::string piece(1 << 16, ' ');
    for (int i = 0; i < 256 && to.send(piece); ++i) {
    }
  });
  EXPECT_NE(flood.find("more than 1.0 MB at /canopy"), std::string::npos) << flood;

  const auto refused_about = [&](const std::function<void(json&)>& change) {
    json about = made_up_about();
    change(about);
    const MadeUpCanopy canopy([](const To&) {}, about);
    return refusal(canopy.url()).detail;
  };
  EXPECT_NE(refused_about([](json& about) { about["schema"] = kEventSchema + 1; }).find("Update the older of the two"),
            std::string::npos);
  EXPECT_NE(refused_about([](json& about) { about["model"].erase("device"); }).find("lacks the field 'device'"),
            std::string::npos);
  EXPECT_NE(refused_about([](json& about) { about["model"]["drafted_by"] = "suffix"; }).find("'drafted_by'"),
            std::string::npos);
  EXPECT_NE(refused_about([](json& about) { about["model"]["context"] = 0; }).find("'context'"), std::string::npos);
  EXPECT_NE(refused_about([](json& about) { about["header"] = 3; }).find("header"), std::string::npos);

  EXPECT_FALSE(answer(3).empty()) << "the model of this machine is still there";
}

TEST_F(RemoteModelTest, AReplyThatIsLostInTheMiddleKeepsItsText) {
  struct Case {
    const char* says;
    FakeServer::Answer rest;
  };
  const Case cases[] = {
      {"ended its answer before the reply's end", [](const To&) {}},
      {"is not valid JSON", [](const To& to) { to.send("event: canopy.round\ndata: {\n\n"); }},
      {"lacks the field 'round'", [](const To& to) { to.send("event: canopy.round\ndata: {}\n\n"); }},
      {"sent pass 5", [](const To& to) { send_event(to, made_up_round(5, 2)); }},
      {"pass 1 with token 2 is next", [](const To& to) { send_event(to, made_up_round(1, 9)); }},
      {"of which 3 are thinking",
       [](const To& to) {
         TextDelta past = made_up_text("");
         past.thought = {true, true, 3};
         send_event(to, past);
       }},
      {"'tokens_per_second'",
       [](const To& to) {
         TextDelta slow = made_up_text("");
         slow.tokens_per_second = -1;
         send_event(to, slow);
       }},
      {"began the reply twice", [](const To& to) { send_event(to, made_up_start()); }},
      {"The server says: ", [](const To& to) { to.send("data: {\"error\": {\"message\": \"gone\"}}\n\n"); }},
      {"a line of more than 16.8 MB",
       [](const To& to) {
         to.send("event: canopy.round\ndata: ");
         const std::string piece(1 << 20, ' ');
         for (int i = 0; i < 64 && to.send(piece); ++i) {
         }
       }},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.says);
    const MadeUpCanopy canopy([&](const To& to) {
      to.begin();
      send_event(to, made_up_start());
      send_event(to, made_up_text("A"));
      send_event(to, made_up_round(0, 1));
      each.rest(to);
    });
    open(canopy.url());
    engine_->post(hello(9));
    const std::vector<Event> events = until<ReplyFinished>();
    ASSERT_FALSE(events.empty());
    EXPECT_EQ(text_of(events), "A");
    const auto& finished = std::get<ReplyFinished>(events.back());
    EXPECT_EQ(finished.reason, FinishReason::cancelled);
    EXPECT_EQ(finished.tokens, (TurnTokens{{1, 2}, {}, kMadeUpVocabulary})) << "so that it can go on";
    EXPECT_EQ(finished.reply_tokens, 2u);
    EXPECT_EQ(finished.tau, 1);
    const auto failure = await<Failure>();
    EXPECT_EQ(failure.reply_id, 0u);
    EXPECT_EQ(failure.title, "The connection to the engine elsewhere was lost");
    EXPECT_NE(failure.detail.find(each.says), std::string::npos) << failure.detail;
    EXPECT_NE(failure.detail.find("Continue goes on"), std::string::npos);
  }
}

TEST_F(RemoteModelTest, AReplyThatDoesNotBeginIsAFailure) {
  struct Case {
    const char *title, *says;
    FakeServer::Answer answer;
  };
  const Case cases[] = {
      {"The engine elsewhere did not answer", "has another model by now: The model 'made-up' is not loaded",
       [](const To& to) {
         send_json(to, {{"error", {{"message", "The model 'made-up' is not loaded."}}}}, 404);
       }},
      {"The engine elsewhere did not answer", "status 503: As many requests wait as may",
       [](const To& to) {
         send_json(to, {{"error", {{"message", "As many requests wait as may."}}}}, 503);
       }},
      {"The engine elsewhere did not answer", "broke off", [](const To&) {}},
      {"The reply could not be read", "text before the reply's beginning",
       [](const To& to) {
         to.begin();
         send_event(to, made_up_text("A"));
       }},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.says);
    const MadeUpCanopy canopy(each.answer);
    open(canopy.url());
    engine_->post(hello(9));
    const auto failure = await<Failure>();
    EXPECT_EQ(failure.reply_id, 9u);
    EXPECT_EQ(failure.title, each.title);
    EXPECT_NE(failure.detail.find(each.says), std::string::npos) << failure.detail;
  }
  const MadeUpCanopy full([](const To& to) {
    send_json(to,
              {{"error",
                {{"message", "The prompt has 70 tokens; the context holds 64, the reply included."},
                 {"code", "context_length_exceeded"}}}},
              400);
  });
  open(full.url());
  engine_->post(hello(10));
  EXPECT_EQ(await<Failure>().prompt_tokens, 70u);
}

TEST_F(RemoteModelTest, AReplyGoesOnWithItsOwnTokensAlone) {
  std::string asked;
  const MadeUpCanopy canopy([&](const To& to) {
    asked = to.request;
    to.begin();
    ReplyStarted start = made_up_start();
    start.begun_bytes = 2;
    send_event(to, start);
    send_event(to, made_up_round(0, 3));
    send_event(to, made_up_finish());
  });
  open(canopy.url());
  Generate on = hello(5);
  on.begun = {{1}, {2}, kMadeUpVocabulary};
  engine_->post(on);
  await<ReplyFinished>();
  EXPECT_EQ(json::parse(asked.substr(asked.find("\r\n\r\n") + 4))["canopy"]["begun"], (json{1, 2}));
  on.begun.vocabulary = 5;
  engine_->post(on);
  EXPECT_NE(await<Failure>().detail.find("another vocabulary"), std::string::npos);
}

TEST_F(RemoteModelTest, StoppingClosesTheConnectionAndKeepsTheText) {
  std::atomic<bool> left{false};
  const MadeUpCanopy canopy([&](const To& to) {
    to.begin();
    send_event(to, made_up_start());
    send_event(to, made_up_text("A"));
    to.wait_until_left();
    left = true;
  });
  open(canopy.url());
  engine_->post(hello(4));
  until<TextDelta>();
  engine_->post(StopReply{});
  const auto finished = await<ReplyFinished>();
  EXPECT_EQ(finished.reason, FinishReason::cancelled);
  EXPECT_EQ(finished.tokens.ids, std::vector<uint32_t>{1});
  for (int i = 0; i < 5000 && !left; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(left);
}

TEST(RemoteModel, CommentsKeepAReplyAliveAndSilenceEndsIt) {
  std::atomic<bool> silent{false};
  const MadeUpCanopy canopy([&](const To& to) {
    to.begin();
    send_event(to, made_up_start());
    send_event(to, made_up_text("A"));
    if (silent) return to.wait_until_left();
    for (int i = 0; i < 15; ++i) {
      to.send(": waiting\n\n");
      std::this_thread::sleep_for(100ms);
    }
    send_event(to, made_up_round(0, 1));
    send_event(to, made_up_finish());
  });
  LoadModel load;
  load.path = canopy.url();
  RemoteModel remote(
      load, [](const LoadProgress&) {}, {}, 1);
  Generate question;
  question.reply_id = 1;
  question.turns = {{"user", "Hello"}};
  std::vector<Event> events;
  const auto publish = [&](Event event, bool) { events.push_back(std::move(event)); };
  remote.reply(question, publish, {});
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(std::get<ReplyFinished>(events.back()).reason, FinishReason::max_tokens);
  for (const Event& event : events) EXPECT_FALSE(std::holds_alternative<RoundFinished>(event)) << "nobody asked";
  silent = true;
  events.clear();
  remote.reply(question, publish, {});
  ASSERT_GE(events.size(), 2u);
  EXPECT_EQ(std::get<ReplyFinished>(events[events.size() - 2]).reason, FinishReason::cancelled);
  EXPECT_NE(std::get<Failure>(events.back()).detail.find("silent"), std::string::npos);
}

FakeServer::Answer other_server(std::string& asked) {
  return [&asked](const To& to) {
    if (to.request.starts_with("GET /v1/models ")) {
      return send_json(
          to, {{"object", "list"}, {"data", json::array({json{{"id", "org/its-model"}, {"max_model_len", 4096}}})}});
    }
    if (to.request.starts_with("GET ")) return send_json(to, {{"detail", "Not Found"}}, 404);
    asked = to.request;
    to.begin();
    to.send("data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"Hm\"}}]}\n\n");
    to.text("One");
    std::this_thread::sleep_for(200ms);
    to.text(" two");
    to.finish("length", 3);
  };
}

TEST_F(RemoteModelTest, AnotherServerIsChattedWithByTextAndCounts) {
  std::string asked;
  const FakeServer server(other_server(asked));
  const ModelReady ready = open(server.url());
  EXPECT_EQ(ready.name, "org/its-model");
  EXPECT_EQ(ready.context, 4096u);
  EXPECT_FALSE(ready.tells_rounds);
  ASSERT_EQ(ready.warnings.size(), 1u);
  EXPECT_NE(ready.warnings[0].find("its passes cannot be seen"), std::string::npos);
  engine_->post(hello(3));
  const std::vector<Event> events = until<ReplyFinished>();
  EXPECT_EQ(text_of(events), "Hm\n\nOne two");
  ThoughtPart thought;
  for (const Event& event : events) {
    if (const auto* delta = std::get_if<TextDelta>(&event)) thought = delta->thought;
    EXPECT_FALSE(std::holds_alternative<RoundFinished>(event));
  }
  EXPECT_EQ(thought, (ThoughtPart{true, false, 4}));
  const auto& finished = std::get<ReplyFinished>(events.back());
  EXPECT_EQ(finished.reason, FinishReason::max_tokens);
  EXPECT_EQ(finished.reply_tokens, 3u);
  EXPECT_EQ(finished.prompt_tokens, 12u);
  EXPECT_GT(finished.tokens_per_second, 0);
  EXPECT_TRUE(finished.tokens.ids.empty());
  const json body = json::parse(asked.substr(asked.find("\r\n\r\n") + 4));
  EXPECT_FALSE(body.contains("canopy") || body.contains("speculation")) << "it need not know these";
  EXPECT_EQ(body["model"], "org/its-model");
  EXPECT_EQ(body["min_p"], 0.25);

  Generate on = hello(4);
  on.begun = {{1}, {}, 0};
  engine_->post(on);
  EXPECT_NE(await<Failure>().detail.find("cannot go on with a reply"), std::string::npos);
  const TempFolder folder;
  engine_->post(RecordTrace{(folder.path() / "a.canopytrace").string()});
  EXPECT_NE(await<Failure>().detail.find("does not tell its passes"), std::string::npos);
}

TEST_F(RemoteModelTest, WhatNeedsAnEngineHereSaysWhereTheModelIs) {
  const MadeUpCanopy canopy([](const To&) {});
  open(canopy.url());
  engine_->post(Calibrate{1});
  EXPECT_NE(await<Failure>().detail.find("on another machine, 127.0.0.1:"), std::string::npos);
  engine_->post(VerifyRecording{"/no/recording"});
  EXPECT_NE(await<Failure>().detail.find("on another machine"), std::string::npos);
  engine_->post(DensifyTrace{"/no/recording"});
  EXPECT_NE(await<TraceDensified>().problem.find("on another machine"), std::string::npos);
  engine_->post(CountTokens{8, "Hello"});
  EXPECT_EQ(await<TokensCounted>().tokens, 0u);
  engine_->post(ReleaseModel{});
  EXPECT_EQ(await<ModelReleased>().opened.path, canopy.url());
  engine_->post(tiny());
  EXPECT_EQ(await<ModelReady>().server, "");
  EXPECT_FALSE(answer(2).empty());
}

TEST(EventJson, WhatDoesNotFitIsRefused) {
  const auto read = [](const char* name, const char* text) { event_from_json(name, json::parse(text), 1); };
  const auto round = [](const std::function<void(json&)>& change) {
    json object = json::parse(event_to_json(made_up_round(0, 1), MadeUpTexts()).dump());
    change(object);
    event_from_json("canopy.round", object, 1);
  };
  expect_error("'text_ends'", [&] { round([](json& object) { object["text_ends"] = {3, 4}; }); });
  expect_error("'text_ends'", [&] { round([](json& object) { object["text_ends"] = {0}; }); });
  expect_error("'mode'", [&] { round([](json& object) { object["mode"] = "fast"; }); });
  expect_error("'verify'", [&] { round([](json& object) { object["ms"]["verify"] = "soon"; }); });
  expect_error("must be a JSON object", [&] { read("canopy.text", "[]"); });
  expect_error("'reply_tokens'", [&] { read("canopy.text", R"({"text": "a", "reply_tokens": -1})"); });
  expect_error("'first_token'",
               [&] { read("canopy.started", R"({"prompt_tokens": 1, "reused_tokens": 0, "prefill_ms": 1})"); });
  expect_error("'done'", [&] { read("canopy.prefill", R"({"done": 4, "total": 3})"); });
  for (const char* prefill : {"-1", "1e300"})
    expect_error("'prefill_ms'", [&] {
      read("canopy.started",
           (R"({"prompt_tokens": 1, "reused_tokens": 0, "first_token": 1, "begun_bytes": 0, "prefill_ms": )" +
            std::string(prefill) + "}")
               .c_str());
    });
  EXPECT_FALSE(event_from_json("canopy.newer", json::object(), 1));
  const auto model = [](const char* field, uint32_t value) {
    json object = json::parse(model_to_json(made_up_model()).dump());
    object[field] = value;
    model_from_json(object);
  };
  model("block", 128);
  expect_error("'block' of the model is 129", [&] { model("block", 129); });
  expect_error("'block'", [&] { model("block", UINT32_MAX); });
  expect_error("'context'", [&] { model("context", UINT32_MAX); });
  expect_error("'model_context'", [&] { model("model_context", UINT32_MAX); });
  expect_error("no Base64", [] { texts_from_json(json::parse(R"({"texts": [{"base64": "!"}]})")); });
  expect_error("token 4", [] { texts_from_json(json::parse(R"({"texts": ["a"], "control": [4]})")); });
}

}  // namespace
}  // namespace canopy::test
