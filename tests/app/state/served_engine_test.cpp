// The window's state with a real engine thread whose model is served: what a client gets over a loopback connection,
// and what the window sees of it, pauses, records and stops.

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <thread>

#include "app/state/view_model.h"
#include "engine/net/endpoint_client.h"
#include "engine/net/http_server.h"
#include "engine/serve/model_service.h"
#include "engine/trace/trace_reader.h"
#include "tests/base/temp_folder.h"
#include "tests/net/raw_client.h"
#include "tests/session/engine_thread_rig.h"

namespace canopy::test {
namespace {

using std::chrono::milliseconds;

/// A reply of a client, or what it was told instead.
using ClientReply = std::future<EndpointReply>;

class ServedEngine : public EngineThreadTest {
 protected:
  /// With which a reply of 400 tokens takes many seconds: it ends by what the test does, however busy the machine is.
  static constexpr int kSlowRun = 50;

  const app::ServedState& served() const { return view_.served; }
  const app::ServedReply& newest() const { return served().replies.front(); }

  void open() {
    serve_ = make_model_service;
    start();
    LoadModel load = tiny();
    load.drafter = golden_folder() / "tiny-qwen3-dflash-b8";
    view_.model_state = app::ModelState::loading;
    view_.sampling.temperature = 0;
    view_.max_tokens = 24;
    view_.stop_loops = false;
    engine_->post(load);
    pump_until([&] { return view_.model_state == app::ModelState::ready; });
  }

  void serve(app::ServeSettings settings = {}, const std::string& key = "") {
    run(app::ServedCommand(app::ChangeServing{std::move(settings), key}));
    run(app::ServedCommand(app::SwitchServing{true}));
    pump_until([&] { return served().told.active || !served().told.problem.empty(); });
  }
  /// At a port that is free.
  void serve_anywhere() {
    app::ServeSettings settings;
    settings.port = 0;
    serve(settings);
    ASSERT_EQ(served().told.problem, "");
    ASSERT_TRUE(served().told.active);
  }

  void run(const app::UiCommand& command) {
    for (Command& each : update(view_, command).engine) engine_->post(std::move(each));
  }
  void pump() {
    view_.chat.now_ms += 1;
    for (const Event& event : engine_->poll()) update(view_, event);
    std::this_thread::sleep_for(milliseconds(1));
  }
  void pump_for(milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) pump();
  }
  /// Until the engine has done what it was told before, and the window has what came of it.
  void settle() {
    engine_->post(CountTokens{1, "a"});
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (bool done = false; !done;) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      for (const Event& event : engine_->poll()) {
        update(view_, event);
        done |= std::holds_alternative<TokensCounted>(event);
      }
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
  template <class F>
  void pump_until(F&& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      pump();
    }
  }

  /// Asks as a client would, on a thread of its own.
  ClientReply ask(const std::string& content, uint32_t max_tokens = 24) const {
    return std::async(std::launch::async, [url = served().told.url, content, max_tokens] {
      EndpointLimits limits;
      limits.whole_s = 60;
      EndpointClient client(parse_endpoint(url), limits);
      EndpointRequest request;
      request.messages = {{"user", content}};
      request.max_tokens = max_tokens;
      return client.reply(request, [](std::string_view) {}, {});
    });
  }
  static bool is_there(const ClientReply& reply) {
    return reply.wait_for(milliseconds(0)) == std::future_status::ready;
  }
  /// What a client was told in place of a whole reply.
  static std::string refusal_of(ClientReply& reply) {
    try {
      reply.get();
      return "";
    } catch (const Error& e) {
      return e.what();
    }
  }
  uint32_t tokens() const { return served().replies.empty() ? 0 : newest().reply().tokens; }

  app::ViewModel view_;
  TempFolder folder_;
};

TEST_F(ServedEngine, AClientGetsTheTextOfAnOwnReplyAndTheWindowSeesItsPasses) {
  open();
  serve_anywhere();
  ClientReply reply = ask("def main():");
  pump_until([&] { return is_there(reply) && !served().replies.empty() && newest().over; });
  const EndpointReply got = reply.get();
  EXPECT_EQ(got.tokens, 24u);
  ASSERT_EQ(served().replies.size(), 1u);
  EXPECT_EQ(served_title(newest()), "def main():");
  EXPECT_EQ(newest().client, "127.0.0.1");
  EXPECT_EQ(newest().path, "/v1/chat/completions");
  EXPECT_EQ(newest().reply().text, got.text);
  ASSERT_TRUE(newest().reply().result);
  EXPECT_EQ(newest().reply().result->reply_tokens, 24u);
  ASSERT_GT(newest().log->rounds(), 0u);
  EXPECT_NE(newest().log->round(0), nullptr);
  EXPECT_EQ(newest().reply().spans.back().end, got.text.size()) << "every token of it is known";
  run(app::SendMessage{"def main():"});
  pump_until([&] { return !view_.busy(); });
  EXPECT_EQ(view_.messages.back().text, got.text);
  EXPECT_EQ(served().replies.size(), 1u);
  EXPECT_TRUE(view_.cards.empty());
}

TEST_F(ServedEngine, ARequestIsPausedGoesOnAndIsStopped) {
  open();
  serve_anywhere();
  book_.run_ms = kSlowRun;
  ClientReply reply = ask("def main():", 400);
  pump_until([&] { return tokens() > 2; });
  const uint64_t id = newest().id();
  run(app::ServedCommand(app::HoldServed{id, true}));
  settle();
  const uint32_t held = tokens();
  pump_for(milliseconds(300));
  EXPECT_EQ(tokens(), held);
  EXPECT_FALSE(is_there(reply));
  run(app::ServedCommand(app::HoldServed{id, false}));
  pump_until([&] { return tokens() > held; });
  run(app::ServedCommand(app::EndServed{id}));
  pump_until([&] { return newest().over && is_there(reply); });
  EXPECT_NE(refusal_of(reply), "");
  EXPECT_TRUE(served_words(newest()).starts_with("ended after")) << served_words(newest());
  EXPECT_LT(tokens(), 400u);
}

// A pass over the prompt takes longer than the silence after which a client is told that it is not forgotten.
TEST_F(ServedEngine, AStreamBeginsAtOnceAndIsKeptAliveWhileItsPromptIsRead) {
  open();
  serve_anywhere();
  book_.run_ms = 1500;
  const std::string body =
      R"({"messages": [{"role": "user", "content": "def main():"}], "max_tokens": 4, "stream": true})";
  RawClient client(parse_endpoint(served().told.url).port);
  client.write(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body);
  const std::string told = client.read(": waiting\n\n");
  book_.run_ms = 0;
  EXPECT_TRUE(told.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream")) << told;
  EXPECT_NE(told.find(R"("delta":{"role":"assistant","content":""})"), std::string::npos) << told;
  EXPECT_NE(told.find(": waiting\n\n"), std::string::npos) << told;
  EXPECT_EQ(told.find("data: ", told.find("data: ") + 1), std::string::npos) << "before the first word: " << told;
  EXPECT_NE(client.read("data: [DONE]").find(R"("finish_reason":"length")"), std::string::npos);
}

TEST_F(ServedEngine, TheOwnChatGoesFirst) {
  open();
  serve_anywhere();
  book_.run_ms = 4;
  ClientReply reply = ask("def main():", 200);
  pump_until([&] { return tokens() > 2; });
  run(app::SendMessage{"import os"});
  std::optional<uint32_t> before;  // tokens of the client's reply when the own one begins
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (view_.busy()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    for (const Event& event : engine_->poll()) {
      update(view_, event);
      if (!view_.busy() || view_.reply_state != app::ReplyState::writing) continue;
      if (!before) before = tokens();
      EXPECT_EQ(tokens(), before);
    }
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_TRUE(before.has_value());
  pump_until([&] { return is_there(reply); });
  EXPECT_EQ(reply.get().tokens, 200u);
  EXPECT_EQ(view_.messages.back().tokens, 24u);
}

// A measurement takes the caches; what clients wait for is read again, to the same text.
TEST_F(ServedEngine, WhatIsMeasuredMeanwhileChangesNoText) {
  open();
  serve_anywhere();
  view_.max_tokens = 60;
  run(app::SendMessage{"def main():"});
  pump_until([&] { return !view_.busy(); });
  const std::string text = view_.messages.back().text;
  book_.run_ms = 2;
  ClientReply reply = ask("def main():", 60);
  pump_until([&] { return tokens() > 2; });
  engine_->post(ReportDevice{"", 0.05});
  pump_until([&] { return is_there(reply); });
  EXPECT_EQ(reply.get().text, text);
}

TEST_F(ServedEngine, IsRecordedWholeWhileItIsWrittenAndBehindItsEnd) {
  open();
  serve_anywhere();
  view_.recording.suggested = (folder_.path() / "run.canopytrace").string();
  book_.run_ms = 4;
  ClientReply first = ask("def main():", 40);
  pump_until([&] { return tokens() > 2; });
  const uint64_t during = newest().id();
  run(app::ServedCommand(app::TapeServed{during}));
  pump_until([&] { return is_there(first) && served().find(during)->recorded; });
  book_.run_ms = 0;
  ClientReply second = ask("import os", 12);
  pump_until([&] { return is_there(second) && newest().over; });
  const uint64_t behind = newest().id();
  run(app::ServedCommand(app::TapeServed{behind}));
  pump_until([&] { return served().find(behind)->recorded; });
  for (const uint64_t id : {during, behind}) {
    const app::ServedReply& reply = *served().find(id);
    const TraceReader trace = TraceReader::open(reply.recording);
    EXPECT_EQ(trace.notice(), "");
    ASSERT_EQ(trace.replies().size(), 1u);
    EXPECT_EQ(trace.replies()[0].rounds, reply.log->rounds()) << "from the first pass on";
    ASSERT_TRUE(trace.replies()[0].end);
    EXPECT_EQ(trace.replies()[0].end->text, reply.reply().text);
    EXPECT_EQ(trace.replies()[0].begin.prompt.size(), reply.reply().result->prompt_tokens);
    EXPECT_NE(trace.replies()[0].prefill->first_token, std::nullopt);
  }
  EXPECT_TRUE(view_.cards.empty());
}

TEST_F(ServedEngine, ARecordingThatCannotBeWrittenIsSaidAndTheReplyGoesOn) {
  open();
  serve_anywhere();
  view_.recording.suggested = (folder_.path() / "no-folder" / "run.canopytrace").string();
  ClientReply reply = ask("def main():", 12);
  pump_until([&] { return is_there(reply) && newest().over; });
  EXPECT_EQ(reply.get().tokens, 12u);
  run(app::ServedCommand(app::TapeServed{newest().id()}));
  pump_until([&] { return !view_.cards.empty(); });
  EXPECT_NE(view_.cards[0].detail.find("no-folder"), std::string::npos) << view_.cards[0].detail;
  EXPECT_FALSE(newest().recorded);
}

TEST_F(ServedEngine, AnotherModelEndsTheRequestsAndIsServedItself) {
  open();
  serve_anywhere();
  book_.run_ms = kSlowRun;
  ClientReply reply = ask("def main():", 400);
  pump_until([&] { return tokens() > 2; });
  LoadModel load = tiny();
  load.draft = false;
  view_.model_state = app::ModelState::loading;
  engine_->post(load);
  pump_until([&] { return view_.model_state == app::ModelState::ready && served().told.active; });
  book_.run_ms = 0;
  pump_until([&] { return is_there(reply); });
  EXPECT_NE(refusal_of(reply), "");
  EXPECT_TRUE(newest().over);
  ClientReply again = ask("def main():");
  pump_until([&] { return is_there(again) && newest().over; });
  EXPECT_EQ(again.get().tokens, 24u);
  EXPECT_EQ(served().replies.size(), 2u) << "their ids are not the same";
  // Switched off, nobody listens any more.
  const std::string url = served().told.url;
  run(app::ServedCommand(app::SwitchServing{false}));
  pump_until([&] { return !served().told.active; });
  EndpointClient client(parse_endpoint(url));
  EXPECT_THROW(client.reply({}, [](std::string_view) {}, {}), Error);
}

TEST_F(ServedEngine, AModelThatIsLoadedLaterIsServedThen) {
  serve_ = make_model_service;
  start();
  app::ServeSettings settings;
  settings.port = 0;
  run(app::ServedCommand(app::ChangeServing{settings, ""}));
  run(app::ServedCommand(app::SwitchServing{true}));
  pump_for(milliseconds(50));
  EXPECT_FALSE(served().told.active);
  EXPECT_EQ(serving_words(view_), "Begins when a model is loaded");
  view_.model_state = app::ModelState::loading;
  engine_->post(tiny());
  pump_until([&] { return served().told.active; });
  EXPECT_TRUE(served_address(served()).starts_with("127.0.0.1:"));
}

TEST_F(ServedEngine, RefusalsAreSentencesAndTheNextAttemptMayDo) {
  open();
  const auto admits = [](const HttpRequest&, HttpAnswer&) { return true; };
  const auto answers = [](const HttpRequest&, HttpAnswer&) {};
  const HttpServer other({"127.0.0.1", 0}, {}, admits, answers);
  app::ServeSettings settings;
  settings.port = other.port();
  serve(settings);
  EXPECT_FALSE(served().told.active);
  EXPECT_NE(served().told.problem.find(std::to_string(other.port())), std::string::npos) << served().told.problem;
  settings.port = 0;
  settings.host = "0.0.0.0";
  serve(settings);
  EXPECT_NE(served().told.problem.find("can be reached from other machines"), std::string::npos)
      << served().told.problem;
  serve(settings, "short");
  EXPECT_NE(served().told.problem.find("at least 8 signs"), std::string::npos) << served().told.problem;
  settings.host = "127.0.0.1";
  settings.hosts = {"::"};
  serve(settings);
  EXPECT_NE(served().told.problem.find("is no name of a host"), std::string::npos) << served().told.problem;
  settings.hosts.clear();
  serve(settings);
  EXPECT_TRUE(served().told.active) << served().told.problem;
}

TEST_F(ServedEngine, ALostDeviceEndsTheRequestsAndIsToldOnce) {
  open();
  serve_anywhere();
  book_.run_ms = kSlowRun;
  ClientReply reply = ask("def main():", 400);
  pump_until([&] { return tokens() > 2; });
  lose_ = true;
  pump_until([&] { return view_.model_state == app::ModelState::none; });
  EXPECT_FALSE(served().told.active);
  EXPECT_TRUE(newest().over);
  pump_until([&] { return is_there(reply); });
  EXPECT_NE(refusal_of(reply), "");
  EXPECT_EQ(view_.cards.size(), 1u);
}

TEST_F(ServedEngine, ClosingTheWindowEndsTheRequests) {
  open();
  serve_anywhere();
  book_.run_ms = kSlowRun;
  ClientReply reply = ask("def main():", 400);
  pump_until([&] { return tokens() > 2; });
  engine_.reset();
  EXPECT_NE(refusal_of(reply), "");
}

}  // namespace
}  // namespace canopy::test
