#include "engine/net/http_message.h"

#include <gtest/gtest.h>

#include <string>

namespace canopy {
namespace {

int status_of(const std::string& head) {
  try {
    parse_http_head(head);
  } catch (const HttpFault& fault) {
    return fault.status;
  }
  return 200;
}

std::string get(const std::string& headers) {
  return "GET / HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n";
}

TEST(HttpMessage, a_head_is_read) {
  const HttpRequest request = parse_http_head(
      "POST /v1/x?a=b HTTP/1.1\r\nHost: localhost:8737\r\nContent-Length: 12\r\nX-Api-Key:  k \r\n\r\n");
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/v1/x");
  EXPECT_EQ(request.query, "a=b");
  EXPECT_EQ(request.content_length, 12u);
  ASSERT_NE(request.header("x-api-key"), nullptr);
  EXPECT_EQ(*request.header("x-api-key"), "k");
  EXPECT_EQ(request.header("absent"), nullptr);
  EXPECT_TRUE(request.keeps_alive);
  EXPECT_FALSE(parse_http_head(get("Connection: close\r\n")).keeps_alive);
  EXPECT_FALSE(parse_http_head("GET / HTTP/1.0\r\n\r\n").keeps_alive);
}

TEST(HttpMessage, what_two_readers_may_take_differently_is_refused) {
  EXPECT_EQ(status_of(get("")), 200);
  EXPECT_EQ(status_of(get("Content-Length: 1\r\nContent-Length: 1\r\n")), 400);
  EXPECT_EQ(status_of(get("Content-Length: +1\r\n")), 400);
  EXPECT_EQ(status_of(get("Content-Length: 1, 1\r\n")), 400);
  EXPECT_EQ(status_of(get("Content-Length: 0x1\r\n")), 400);
  EXPECT_EQ(status_of(get("Content-Length: \r\n")), 400);
  EXPECT_EQ(status_of(get("Content-Length: 99999999999999999999\r\n")), 400);
  EXPECT_EQ(status_of(get("Transfer-Encoding: chunked\r\n")), 501);
  EXPECT_EQ(status_of(get("Transfer-Encoding: identity\r\n")), 501);
  EXPECT_EQ(status_of(get("Host: b\r\n")), 400);
  EXPECT_EQ(status_of(get("A : b\r\n")), 400);
  EXPECT_EQ(status_of(get(" folded\r\n")), 400);
  EXPECT_EQ(status_of(get("A: b\n")), 400);
  EXPECT_EQ(status_of(get("A: b\rC: d\r\n")), 400);
  EXPECT_EQ(status_of(get(std::string("A: b\0c\r\n", 8))), 400);
  EXPECT_EQ(status_of(get("no colon\r\n")), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400);
}

TEST(HttpMessage, other_first_lines_are_refused) {
  EXPECT_EQ(status_of("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 505);
  for (const char* line : {"", " ", "GET", "GET /", "GET  HTTP/1.1", "GET a HTTP/1.1", "GET http://b/ HTTP/1.1",
                           "G(T / HTTP/1.1", "GET /a b HTTP/1.1", "GET /\x01 HTTP/1.1", "GET / FTP/1.1"}) {
    SCOPED_TRACE(line);
    EXPECT_EQ(status_of(std::string(line) + "\r\nHost: a\r\n\r\n"), 400);
  }
}

TEST(HttpMessage, headers_are_bounded_in_number) {
  std::string many;
  for (size_t i = 0; i < kMostHeaders; ++i) many += "A: b\r\n";
  EXPECT_EQ(status_of(get(many)), 431);
}

TEST(HttpMessage, hosts) {
  EXPECT_EQ(host_of("LocalHost:80"), "localhost");
  EXPECT_EQ(host_of("[::1]:80"), "::1");
  EXPECT_EQ(host_of("a.example."), "a.example");
  EXPECT_EQ(host_of("::1"), "");
  EXPECT_EQ(host_of("[::1]x"), "");
  for (const char* host : {"localhost", "127.0.0.1", "127.255.0.9", "::1"}) EXPECT_TRUE(is_loopback_host(host)) << host;
  for (const char* host : {"", "localhost.example", "127.0.0.1.example", "127.1", "127.0.0.256", "128.0.0.1", "evil"})
    EXPECT_FALSE(is_loopback_host(host)) << host;
}

}  // namespace
}  // namespace canopy
