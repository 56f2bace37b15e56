#include "engine/net/endpoint_client.h"

#include <gtest/gtest.h>

#include "tests/base/expect_error.h"

namespace canopy {
namespace {

// As llama.cpp's server, vLLM and SGLang send them, comments and empty deltas included.
constexpr std::string_view kReply =
    ": ping\r\n"
    "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null},\"finish_reason\":null}]}\r\n\r\n"
    "data: {\"choices\":[{\"delta\":{\"content\":\"Gr\\u00fc\xc3\x9f\"}}],\"usage\":null}\n\n"
    "event: message\n"
    "data:{\"choices\":[{\"delta\":{\"content\":\"e \\ud83d\\ude00\"}}]}\n\n"
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\n"
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":5,\"total_tokens\":12}}\n\n"
    "data: [DONE]\n\n"
    "data: not json, but behind the end\n\n";

TEST(ChatStream, TakesAReplyCutAnywhere) {
  for (size_t cut = 0; cut <= kReply.size(); ++cut) {
    ChatStream stream;
    std::string text = stream.push(kReply.substr(0, cut));
    text += stream.push(kReply.substr(cut));
    EXPECT_EQ(text, "Gr\u00fc\u00dfe \U0001F600");
    EXPECT_EQ(stream.text(), text);
    EXPECT_EQ(stream.pieces(), 2u);
    EXPECT_EQ(stream.tokens(), 5u);
    EXPECT_EQ(stream.prompt_tokens(), 7u);
    EXPECT_EQ(stream.finish_reason(), "length");
    EXPECT_TRUE(stream.done());
  }
}

TEST(ChatStream, RefusesWhatIsNoReply) {
  struct {
    const char* sent;
    const char* says;
  } const cases[] = {
      {"data: {\n", "is not valid JSON"},
      {"data: []\n", "must be a JSON object"},
      {"data: {\"choices\": 3}\n", "'choices'"},
      {"data: {\"choices\": [3]}\n", "The choice of the server's event must be"},
      {"data: {\"choices\": [{\"delta\": {\"content\": 3}}]}\n", "'content'"},
      {"data: {\"choices\": [{\"finish_reason\": 3}]}\n", "'finish_reason'"},
      {"data: {\"usage\": {\"completion_tokens\": -3}}\n", "'completion_tokens'"},
      {"data: {\"error\": {\"message\": \"out of \\u001b[31mmemory\"}}\n",
       "The server says: {\"message\":\"out of \\u001b[31mmemory"},
  };
  for (const auto& [sent, says] : cases) {
    SCOPED_TRACE(sent);
    test::expect_error(says, [&] { ChatStream().push(sent); });
  }
}

TEST(ChatStream, GivesEventsOfACanopyByTheirNames) {
  std::vector<std::pair<std::string, std::string>> seen;
  ChatStream stream([&](std::string_view name, std::string_view data) { seen.emplace_back(name, data); });
  const std::string sent =
      "event: canopy.round\r\ndata: {\"round\": 0}\r\n\r\n"
      "data: {\"choices\":[{\"delta\":{\"content\":\"a\",\"reasoning_content\":\"b\"}}]}\n\n"
      "event:canopy.x\ndata: no JSON\n\nevent: message\ndata: {\"choices\":[{\"delta\":{\"content\":\"c\"}}]}\n\n";
  for (const char each : sent) stream.push(std::string(1, each));
  EXPECT_EQ(stream.text(), "ac");
  EXPECT_EQ(stream.thinking(), "b");
  const std::vector<std::pair<std::string, std::string>> wanted = {{"canopy.round", "{\"round\": 0}"},
                                                                   {"canopy.x", "no JSON"}};
  EXPECT_EQ(seen, wanted);
  EXPECT_EQ(ChatStream().push(sent), "ac") << "who does not ask for them reads the rest";
}

TEST(ChatStream, IsBounded) {
  test::expect_error("a line of more than 1.0 MB", [] {
    ChatStream stream;
    const std::string piece(1 << 16, 'a');
    for (int i = 0; i < 100; ++i) stream.push(piece);
  });
  test::expect_error("more than 8.4 MB for one reply", [] {
    ChatStream stream;
    const std::string comment = ": " + std::string(1 << 16, 'a') + "\n";
    for (int i = 0; i < 200; ++i) stream.push(comment);
  });
  test::expect_error("nested more than", [] { ChatStream().push("data: " + std::string(3000, '[') + "\n"); });
}

TEST(EndpointAddress, IsRead) {
  const EndpointAddress address = parse_endpoint("http://gpu-box.local:8000/v1/");
  EXPECT_EQ(address.host, "gpu-box.local");
  EXPECT_EQ(address.port, 8000);
  EXPECT_EQ(address.path, "/v1");
  EXPECT_EQ(address.shown(), "gpu-box.local:8000");
  EXPECT_EQ(parse_endpoint("http://127.0.0.1").port, 80);
  EXPECT_EQ(parse_endpoint("http://127.0.0.1").path, "/v1");
  EXPECT_EQ(parse_endpoint("http://127.0.0.1:1/api/v2").path, "/api/v2");
  EXPECT_EQ(parse_endpoint("http://[::1]:8080").host, "::1");
  EXPECT_EQ(parse_endpoint("http://[::1]:8080").shown(), "[::1]:8080");
  EXPECT_EQ(parse_endpoint("http://[fe80::1%eth0]:8080").host, "fe80::1%eth0");
  EXPECT_EQ(parse_endpoint("http://my_server:8000/v1").host, "my_server");
  EXPECT_EQ(parse_endpoint("HTTP://Gpu-Box:8000/v1//").shown(), "Gpu-Box:8000");
  EXPECT_EQ(parse_endpoint("HTTP://Gpu-Box:8000/v1//").path, "/v1");
  EXPECT_EQ(parse_endpoint("localhost:8000").shown(), "localhost:8000");
  EXPECT_EQ(parse_endpoint("my_server/v1").port, 80);
}

TEST(EndpointAddress, RefusesWhatIsNone) {
  test::expect_error("https, which is not supported", [] { parse_endpoint("https://host/v1"); });
  for (const char* url : {"",
                          "ftp://host",
                          "://host",
                          "::1",
                          "http://::1:8000",
                          "http://[::1%]",
                          "http://[%a]",
                          "http://",
                          "http:///v1",
                          "http://host:0",
                          "http://host:70000",
                          "http://host:80x",
                          "http://host:",
                          "http://ho st",
                          "http://user@host",
                          "http://[::1",
                          "http://[::1]8080",
                          "http://host/v1?x=\r\nHost: a",
                          "http://host/v1#a",
                          "http://host\r\n/",
                          "http://[host]:1"})
    test::expect_error("Give one like http://127.0.0.1:8000/v1", [&] { parse_endpoint(url); });
}

}  // namespace
}  // namespace canopy
