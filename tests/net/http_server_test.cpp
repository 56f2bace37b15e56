#include "engine/net/http_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/error.h"
#include "tests/net/raw_client.h"

namespace canopy {
namespace {

using test::RawClient;

std::string post(const std::string& body, const std::string& headers = {}) {
  return "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + headers +
         "\r\n" + body;
}

class HttpServerTest : public testing::Test {
 protected:
  void start(HttpLimits limits = {}) {
    server = std::make_unique<HttpServer>(
        HttpServer::Address{}, limits,
        [](const HttpRequest& head, HttpAnswer& answer) {
          if (head.path != "/forbidden") return true;
          answer.send(403, "text/plain", "no");
          return false;
        },
        [this](const HttpRequest& request, HttpAnswer& answer) { handle(request, answer); });
  }

  void handle(const HttpRequest& request, HttpAnswer& answer) {
    if (request.path == "/throw") throw bad_input("of /a/path");
    if (request.path == "/silent") return;
    if (request.path == "/broken") {
      answer.begin(200, "text/event-stream");
      answer.write("one");
      return;
    }
    if (request.path == "/stream") {
      answer.begin(200, "text/event-stream");
      answer.write("one");
      answer.write("two");
      answer.end();
      return;
    }
    if (request.path == "/wait") {
      answer.begin(200, "text/event-stream");
      began = true;
      while (!answer.is_closed()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      left = true;
      return;
    }
    answer.send(200, "text/plain", request.method + " " + request.body, {{"X-Other", "y"}});
  }

  std::string ask(const std::string& text) {
    RawClient client(server->port());
    EXPECT_TRUE(client.write(text));
    return client.read();
  }

  static bool waits_for(const std::atomic<bool>& flag) {
    for (int i = 0; i < 12000 && !flag; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return flag;
  }

  std::unique_ptr<HttpServer> server;
  std::atomic<bool> began{false}, left{false};
};

TEST_F(HttpServerTest, answers_and_keeps_the_connection) {
  start();
  RawClient client(server->port());
  for (const char* body : {"first", "second"}) {
    client.write(post(body));
    const std::string answer = client.read(body);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
    EXPECT_NE(answer.find("X-Other: y\r\n"), std::string::npos);
    EXPECT_EQ(answer.find("Connection: close"), std::string::npos);
    EXPECT_TRUE(answer.ends_with(std::string("\r\n\r\nPOST ") + body)) << answer;
  }
  // Two at once, as they may come in one packet.
  client.write(post("third") + post("fourth", "Connection: close\r\n"));
  const std::string answers = client.read();
  EXPECT_NE(answers.find("POST third"), std::string::npos);
  EXPECT_TRUE(answers.ends_with("POST fourth"));
}

TEST_F(HttpServerTest, heads_and_bodies_may_come_byte_by_byte) {
  start();
  RawClient client(server->port());
  for (const char c : post("slow", "Connection: close\r\n")) client.write(std::string_view(&c, 1));
  EXPECT_TRUE(client.read().ends_with("POST slow"));
}

TEST_F(HttpServerTest, a_head_has_a_time_in_all) {
  HttpLimits limits;
  limits.head_s = 0.3;
  start(limits);
  RawClient client(server->port());
  client.write("GET / HTTP/1.1\r\n");
  // Each byte comes soon enough; all of them do not, and they come until there is an answer.
  while (!client.has_news(std::chrono::milliseconds(20))) client.write("a");
  EXPECT_TRUE(client.read().starts_with("HTTP/1.1 408 ")) << "a slow head is answered";
}

TEST_F(HttpServerTest, a_body_has_a_time_and_a_size) {
  HttpLimits limits;
  limits.body_s = 0.2;
  limits.body_bytes = 10;
  start(limits);
  RawClient slow(server->port());
  slow.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
  EXPECT_TRUE(slow.read().starts_with("HTTP/1.1 408 "));
  const std::string answer = ask(post("12345678901"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 413 ")) << answer;
  EXPECT_NE(answer.find("11 bytes; at most 10"), std::string::npos);
}

TEST_F(HttpServerTest, a_head_that_is_too_long_is_refused) {
  start();
  EXPECT_TRUE(ask("GET / HTTP/1.1\r\nHost: " + std::string(kMostHeadBytes, 'a')).starts_with("HTTP/1.1 431 "));
}

TEST_F(HttpServerTest, who_is_not_admitted_is_answered_before_the_body_is_read) {
  start();
  const std::string answer = ask("POST /forbidden HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 403 ")) << answer;
  EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos);
}

TEST_F(HttpServerTest, streams_are_chunked_and_whole) {
  start();
  const std::string answer = ask("GET /stream HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_NE(answer.find("Transfer-Encoding: chunked\r\n"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")) << answer;
  const std::string old = ask("GET /stream HTTP/1.0\r\n\r\n");
  EXPECT_EQ(old.find("chunked"), std::string::npos);
  EXPECT_TRUE(old.ends_with("\r\n\r\nonetwo")) << old;
}

TEST_F(HttpServerTest, a_stream_that_broke_off_has_no_end) {
  start();
  EXPECT_TRUE(ask("GET /broken HTTP/1.1\r\nHost: a\r\n\r\n").ends_with("3\r\none\r\n"));
}

TEST_F(HttpServerTest, what_a_handler_throws_is_not_told) {
  start();
  for (const char* path : {"/throw", "/silent"}) {
    const std::string answer = ask(std::string("GET ") + path + " HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 500 ")) << answer;
    EXPECT_EQ(answer.find("/a/path"), std::string::npos);
  }
}

TEST_F(HttpServerTest, a_handler_sees_that_its_client_has_gone) {
  start();
  RawClient client(server->port());
  client.write("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(waits_for(began));
  client.close();
  EXPECT_TRUE(waits_for(left));
}

TEST_F(HttpServerTest, the_end_of_the_server_ends_everything) {
  HttpLimits limits;  // what would be waited for does not end before the test
  limits.head_s = limits.body_s = limits.idle_s = 3600;
  start(limits);
  RawClient waits(server->port()), idle(server->port()), half(server->port());
  waits.write("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
  half.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Len");
  ASSERT_TRUE(waits_for(began));
  server.reset();
  EXPECT_TRUE(left);
}

TEST_F(HttpServerTest, connections_are_bounded_and_places_become_free_again) {
  HttpLimits limits;
  limits.connections = 3;
  start(limits);
  std::vector<std::unique_ptr<RawClient>> held;
  for (int i = 0; i < 3; ++i) {
    held.push_back(std::make_unique<RawClient>(server->port()));
    held.back()->write(post("x"));
    held.back()->read("POST x");
  }
  EXPECT_TRUE(RawClient(server->port()).read().starts_with("HTTP/1.1 503 "));
  held.clear();
  std::string answer;
  for (int i = 0; i < 3000 && answer.find("200 OK") == std::string::npos; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    answer = ask(post("x", "Connection: close\r\n"));
  }
  EXPECT_NE(answer.find("200 OK"), std::string::npos);
}

TEST_F(HttpServerTest, many_at_once) {
  start();
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 64; ++i)
    threads.emplace_back([&, i] {
      if (ask(post(std::to_string(i), "Connection: close\r\n")).ends_with("POST " + std::to_string(i))) ++good;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 64);
}

TEST_F(HttpServerTest, heads_are_answered_without_a_body) {
  start();
  const std::string answer = ask("HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
  EXPECT_NE(answer.find("Content-Length: 5\r\n"), std::string::npos);
}

TEST_F(HttpServerTest, a_port_that_is_taken_is_told) {
  start();
  try {
    HttpServer second({"127.0.0.1", server->port()}, {}, nullptr, nullptr);
    ADD_FAILURE() << "two listen at one port";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unavailable);
    EXPECT_NE(std::string(error.what()).find(std::to_string(server->port())), std::string::npos);
  }
}

}  // namespace
}  // namespace canopy
