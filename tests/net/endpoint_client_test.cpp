// The client against a small server: replies, refusals, silence, floods, cancelling.

#include "engine/net/endpoint_client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "engine/base/error.h"
#include "tests/net/fake_server.h"

namespace canopy {
namespace {

using test::FakeServer;
using namespace std::chrono_literals;

EndpointRequest hello() {
  EndpointRequest request;
  request.model = "some-model";
  request.messages = {{"user", "Hello \xff"}};
  request.max_tokens = 5;
  request.seed = 9;
  return request;
}

/// Which no machine is so busy as to reach: what would wait for it is ended by the time that a test may take.
EndpointLimits patient() {
  return {3600, 3600, 3600};
}

struct Outcome {
  EndpointReply reply;
  std::string streamed;
  std::string refusal;
  ErrorKind kind = ErrorKind::bad_input;
};

/// Pieces that the client has read. A server that waits for them is not ahead of a client that a busy machine holds up.
class Pieces {
 public:
  void add() {
    ++count_;
    count_.notify_all();
  }
  void wait_for(int count) const {
    for (int now = count_; now < count; now = count_) count_.wait(now);
  }

 private:
  std::atomic<int> count_{0};
};

Outcome ask(const FakeServer& server, const EndpointLimits& limits = patient(), const std::stop_token& stop = {},
            Pieces* pieces = nullptr) {
  Outcome outcome;
  try {
    EndpointClient client(parse_endpoint(server.url()), limits);
    const auto take = [&](std::string_view text) {
      outcome.streamed += text;
      if (pieces != nullptr) pieces->add();
    };
    outcome.reply = client.reply(hello(), take, stop);
  } catch (const Error& e) {
    outcome.refusal = e.what();
    outcome.kind = e.kind();
  }
  return outcome;
}

TEST(EndpointClient, ReadsAReplyAsItComes) {
  std::string request;
  Pieces read;
  const FakeServer server([&](const FakeServer::Connection& to) {
    request = to.request;
    to.begin();
    int sent = 0;
    for (const char* word : {"One", " two", " three"}) {
      std::this_thread::sleep_for(30ms);
      to.text(word);
      read.wait_for(++sent);
    }
    to.finish("length", 5);
  });
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = ask(server, patient(), {}, &read);
  const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(outcome.refusal, "");
  EXPECT_EQ(outcome.reply.text, "One two three");
  EXPECT_EQ(outcome.streamed, outcome.reply.text);
  EXPECT_EQ(outcome.reply.tokens, 5u);
  EXPECT_TRUE(outcome.reply.counted);
  EXPECT_EQ(outcome.reply.prompt_tokens, 12u);
  EXPECT_FALSE(outcome.reply.ended);
  EXPECT_GE(outcome.reply.prefill_ms, 29);
  EXPECT_GE(outcome.reply.decode_ms, 59);
  EXPECT_LE(outcome.reply.prefill_ms + outcome.reply.decode_ms, wall.count());
  EXPECT_TRUE(request.starts_with("POST /v1/chat/completions HTTP/1.1")) << request;
  const auto body = nlohmann::json::parse(request.substr(request.find("\r\n\r\n") + 4));
  EXPECT_EQ(body["model"], "some-model");
  EXPECT_EQ(body["messages"][0]["role"], "user");
  EXPECT_EQ(body["max_tokens"], 5);
  EXPECT_EQ(body["temperature"], 0);
  EXPECT_EQ(body["seed"], 9);
  EXPECT_EQ(body["stream"], true);
}

TEST(EndpointClient, CountsPiecesWhereTheServerDoesNotCount) {
  const FakeServer server([&](const FakeServer::Connection& to) {
    to.begin();
    to.text("One");
    to.text(" two");
    to.send("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n");
  });
  const Outcome outcome = ask(server);
  EXPECT_EQ(outcome.refusal, "");
  EXPECT_EQ(outcome.reply.tokens, 2u);
  EXPECT_FALSE(outcome.reply.counted);
  EXPECT_TRUE(outcome.reply.ended);
}

TEST(EndpointClient, ReadsChunks) {
  const FakeServer server([&](const FakeServer::Connection& to) {
    to.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n");
    const std::string body =
        "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    for (const char c : body) to.send("1\r\n" + std::string(1, c) + "\r\n");
    to.send("0\r\n\r\n");
  });
  EXPECT_EQ(ask(server).reply.text, "Hi");
}

TEST(EndpointClient, ARefusalIsTold) {
  const FakeServer server([](const FakeServer::Connection& to) {
    to.begin(404, "application/json");
    to.send("{\"error\": \"no model \x1b[31mhere\"}");
  });
  const Outcome outcome = ask(server);
  EXPECT_EQ(outcome.kind, ErrorKind::unavailable);
  EXPECT_NE(outcome.refusal.find("answered with status 404: {\"error\": \"no model \\x1b[31mhere\"}"),
            std::string::npos)
      << outcome.refusal;
}

TEST(EndpointClient, ARedirectIsNotFollowed) {
  const FakeServer elsewhere([](const FakeServer::Connection& to) { to.begin(); });
  const FakeServer server([&](const FakeServer::Connection& to) {
    to.send("HTTP/1.1 302 Found\r\nLocation: " + elsewhere.url() + "\r\nContent-Length: 0\r\n\r\n");
  });
  EXPECT_NE(ask(server).refusal.find("status 302"), std::string::npos);
  EXPECT_EQ(elsewhere.connections(), 0);
}

TEST(EndpointClient, WithoutAServerItSaysSo) {
  uint16_t port = 0;
  {
    const FakeServer gone([](const FakeServer::Connection&) {});
    port = gone.port();
  }
  EndpointClient client(parse_endpoint("http://127.0.0.1:" + std::to_string(port)), patient());
  try {
    client.reply(hello(), {}, {});
    FAIL() << "there is no server";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::unavailable);
    EXPECT_NE(std::string(e.what()).find("No server answers there: 127.0.0.1:"), std::string::npos) << e.what();
  }
}

TEST(EndpointClient, AnAnswerThatBreaksOffIsRefused) {
  const FakeServer server([](const FakeServer::Connection& to) {
    to.begin();
    to.text("Half");
  });
  EXPECT_NE(ask(server).refusal.find("ended its answer before the reply's end"), std::string::npos);
}

TEST(EndpointClient, WhatIsNoHttpIsRefused) {
  for (const char* sent : {"", "hello\r\n\r\n", "HTTP/1.1\r\n", "SSH-2.0-OpenSSH\r\n", "\0\0\0\0\n\n"}) {
    const FakeServer server([&](const FakeServer::Connection& to) { to.send(sent); });
    EXPECT_FALSE(ask(server).refusal.empty()) << sent;
  }
}

TEST(EndpointClient, SilenceEnds) {
  const FakeServer server([](const FakeServer::Connection& to) {
    to.begin();
    to.text("One");
    to.wait_until_left();
  });
  const Outcome outcome = ask(server, {1, 1, 3600});
  EXPECT_EQ(outcome.kind, ErrorKind::unavailable);
  EXPECT_NE(outcome.refusal.find("silent"), std::string::npos) << outcome.refusal;
}

TEST(EndpointClient, AReplyThatDripsHasAnEnd) {
  const FakeServer server([&](const FakeServer::Connection& to) {
    to.begin();
    while (to.text(".")) std::this_thread::sleep_for(40ms);
  });
  EndpointLimits limits = patient();
  limits.whole_s = 0.4;
  EXPECT_NE(ask(server, limits).refusal.find("did not end its reply within"), std::string::npos);
}

TEST(EndpointClient, HeadersWithoutEndAreRefused) {
  const FakeServer server([](const FakeServer::Connection& to) {
    to.send("HTTP/1.1 200 OK\r\nX-Long: ");
    const std::string piece(1 << 16, 'a');
    for (int i = 0; i < 4096 && to.send(piece); ++i) {
    }
  });
  const Outcome outcome = ask(server);
  EXPECT_NE(outcome.refusal.find("1.0 MB of headers"), std::string::npos) << outcome.refusal;
}

TEST(EndpointClient, ABodyWithoutEndIsRefused) {
  const FakeServer server([](const FakeServer::Connection& to) {
    to.begin();
    const std::string piece = ": " + std::string(1 << 16, 'a') + "\n";
    for (int i = 0; i < 4096 && to.send(piece); ++i) {
    }
  });
  const Outcome outcome = ask(server);
  EXPECT_NE(outcome.refusal.find("more than 8.4 MB for one reply"), std::string::npos) << outcome.refusal;
}

// Neither the silence nor the reply would end before the test.
TEST(EndpointClient, IsCancelledAtOnce) {
  for (const bool silent : {false, true}) {
    const FakeServer server([&](const FakeServer::Connection& to) {
      to.begin();
      to.text(".");
      if (silent) to.wait_until_left();
      while (to.text(".")) std::this_thread::sleep_for(20ms);
    });
    std::stop_source stop;
    Pieces read;
    std::thread later([&] {
      read.wait_for(1);
      stop.request_stop();
    });
    EXPECT_EQ(ask(server, patient(), stop.get_token(), &read).kind, ErrorKind::cancelled) << silent;
    later.join();
  }
}

TEST(EndpointClient, ThinkingIsTimedAndIsNoText) {
  using namespace std::chrono_literals;
  const FakeServer server([](const FakeServer::Connection& to) {
    to.begin();
    for (const char* field : {"reasoning_content", "reasoning"}) {
      to.send(std::string("data: {\"choices\":[{\"delta\":{\"") + field + "\":\"Hm\"}}]}\n\n");
      std::this_thread::sleep_for(150ms);
    }
    to.text("Yes");
    to.send("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"completion_tokens\":3}}\n\n");
  });
  EndpointClient client(parse_endpoint(server.url()), patient());
  std::string seen;
  const EndpointReply reply = client.reply(EndpointRequest{}, [&](std::string_view text) { seen += text; }, {});
  EXPECT_EQ(reply.text, "Yes");
  EXPECT_EQ(seen, "Yes");
  EXPECT_EQ(reply.tokens, 3u);
  EXPECT_GE(reply.decode_ms, 140) << "three tokens took that long, the last of them alone did not";
}

TEST(EndpointClient, ACountOfMoreTokensThanWereAskedForIsRefused) {
  const FakeServer server([](const FakeServer::Connection& to) {
    to.begin();
    to.text("One");
    to.send(
        "data: "
        "{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"completion_tokens\":4000000000}}\n\n");
  });
  const Outcome outcome = ask(server);
  EXPECT_EQ(outcome.kind, ErrorKind::bad_input);
  EXPECT_NE(outcome.refusal.find("counted 4000000000 tokens"), std::string::npos) << outcome.refusal;
}

}  // namespace
}  // namespace canopy
