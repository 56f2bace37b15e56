#include "engine/serve/api_reply.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace canopy {
namespace {

using nlohmann::json;

const ApiAnswer kAnswer{"chatcmpl-1a", 1700000000, "m"};

/// The JSON of each event, "[DONE]" as a string.
std::vector<json> events_of(const std::string& stream) {
  std::vector<json> events;
  for (size_t at = 0; at < stream.size();) {
    const size_t end = stream.find("\n\n", at);
    EXPECT_NE(end, std::string::npos);
    const std::string event = stream.substr(at, end - at);
    EXPECT_EQ(event.substr(0, 6), "data: ");
    EXPECT_EQ(event.find('\n'), std::string::npos);
    events.push_back(event == "data: [DONE]" ? json("[DONE]") : json::parse(event.substr(6)));
    at = end + 2;
  }
  return events;
}

TEST(ApiReply, a_chat_streams_role_content_reason_usage_and_done) {
  ApiReplyWriter writer(ApiKind::chat, kAnswer, 0, false, true);
  std::string stream = writer.opening();
  stream += writer.part({"hm", "", {}});
  stream += writer.part({"", "Hi \"you\"\n", {}});
  stream += writer.part({});
  stream += writer.ending(FinishReason::stop_token);
  stream += writer.closing({7, 3, 2});
  const std::vector<json> events = events_of(stream);
  ASSERT_EQ(events.size(), 6u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(events[i]["id"], "chatcmpl-1a");
    EXPECT_EQ(events[i]["object"], "chat.completion.chunk");
    EXPECT_EQ(events[i]["created"], 1700000000);
    EXPECT_EQ(events[i]["model"], "m");
  }
  EXPECT_EQ(events[0]["choices"][0]["delta"]["role"], "assistant");
  EXPECT_TRUE(events[0]["choices"][0]["finish_reason"].is_null());
  EXPECT_TRUE(events[0]["usage"].is_null());
  EXPECT_EQ(events[1]["choices"][0]["delta"], json({{"reasoning_content", "hm"}}));
  EXPECT_EQ(events[2]["choices"][0]["delta"], json({{"content", "Hi \"you\"\n"}}));
  EXPECT_EQ(events[3]["choices"][0]["delta"], json::object());
  EXPECT_EQ(events[3]["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(events[4]["choices"], json::array());
  EXPECT_EQ(events[4]["usage"]["prompt_tokens"], 7);
  EXPECT_EQ(events[4]["usage"]["completion_tokens"], 3);
  EXPECT_EQ(events[4]["usage"]["total_tokens"], 10);
  EXPECT_EQ(events[4]["usage"]["prompt_tokens_details"]["cached_tokens"], 2);
  EXPECT_EQ(events[5], "[DONE]");
}

TEST(ApiReply, without_the_wish_there_is_no_usage_in_a_stream) {
  ApiReplyWriter writer(ApiKind::chat, kAnswer, 0, false, false);
  EXPECT_FALSE(events_of(writer.opening())[0].contains("usage"));
  EXPECT_EQ(writer.closing({1, 1, 0}), "data: [DONE]\n\n");
}

TEST(ApiReply, calls_come_by_name_and_then_by_arguments) {
  ApiReplyWriter writer(ApiKind::chat, kAnswer, 0, false, false);
  const std::vector<json> events = events_of(writer.part({"", "", {{"f", "{\"x\":1}"}, {"g", "{}"}}}));
  ASSERT_EQ(events.size(), 4u);
  const json first = events[0]["choices"][0]["delta"]["tool_calls"][0];
  EXPECT_EQ(first["index"], 0);
  EXPECT_EQ(first["type"], "function");
  EXPECT_EQ(first["function"]["name"], "f");
  EXPECT_EQ(first["function"]["arguments"], "");
  EXPECT_EQ(events[1]["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"], "{\"x\":1}");
  const json second = events[2]["choices"][0]["delta"]["tool_calls"][0];
  EXPECT_EQ(second["index"], 1);
  EXPECT_NE(second["id"], first["id"]);
  EXPECT_EQ(events_of(writer.ending(FinishReason::stop_token))[0]["choices"][0]["finish_reason"], "tool_calls");
  const json message = json(writer.choice(FinishReason::stop_token))["message"];
  EXPECT_TRUE(message["content"].is_null());
  EXPECT_EQ(message["tool_calls"].size(), 2u);
  EXPECT_EQ(message["tool_calls"][0]["id"], first["id"]);
}

TEST(ApiReply, one_call_where_more_are_not_wanted) {
  ApiReplyWriter writer(ApiKind::chat, kAnswer, 0, true, false);
  EXPECT_EQ(events_of(writer.part({"", "", {{"f", "{}"}, {"g", "{}"}}})).size(), 2u);
  EXPECT_EQ(json(writer.choice(FinishReason::stop_token))["message"]["tool_calls"].size(), 1u);
}

TEST(ApiReply, a_whole_chat) {
  ApiReplyWriter writer(ApiKind::chat, kAnswer, 0, false, false);
  writer.part({"hm", "Hello", {}});
  const json whole = writer.whole(nlohmann::ordered_json::array({writer.choice(FinishReason::max_tokens)}), {1, 2, 0});
  EXPECT_EQ(whole["object"], "chat.completion");
  const json& choice = whole["choices"][0];
  EXPECT_EQ(choice["message"]["role"], "assistant");
  EXPECT_EQ(choice["message"]["content"], "Hello");
  EXPECT_EQ(choice["message"]["reasoning_content"], "hm");
  EXPECT_FALSE(choice["message"].contains("tool_calls"));
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_EQ(whole["usage"]["total_tokens"], 3);
}

TEST(ApiReply, completions_have_texts_and_an_index) {
  ApiReplyWriter writer(ApiKind::completion, {"cmpl-1", 1, "m"}, 3, false, false);
  EXPECT_EQ(writer.opening(), "");
  const json event = events_of(writer.part({"", "ab", {}}))[0];
  EXPECT_EQ(event["object"], "text_completion");
  EXPECT_EQ(event["choices"][0]["text"], "ab");
  EXPECT_EQ(event["choices"][0]["index"], 3);
  EXPECT_EQ(events_of(writer.ending(FinishReason::context_full))[0]["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(json(writer.choice(FinishReason::stop_token))["text"], "ab");
}

ApiToken token(const std::string& bytes, double logprob, size_t begin, std::vector<ApiTokenLogprob> likeliest = {}) {
  return {{bytes, logprob}, std::move(likeliest), begin};
}

TEST(ApiReply, tokens_of_a_chat_come_with_the_event_of_their_text) {
  ApiReplyWriter writer(ApiKind::chat, kAnswer, 0, false, false);
  EXPECT_TRUE(events_of(writer.opening())[0]["choices"][0]["logprobs"].is_null());
  writer.tokens({token("Hi", -0.5, 0, {{"Hi", -0.5}, {"\xc3", -1e5}})});
  const json first = events_of(writer.part({"", "Hi", {}}))[0]["choices"][0];
  EXPECT_EQ(first["delta"]["content"], "Hi");
  EXPECT_EQ(first["logprobs"], json::parse(R"({"content": [{"token": "Hi", "logprob": -0.5, "bytes": [72, 105],
      "top_logprobs": [{"token": "Hi", "logprob": -0.5, "bytes": [72, 105]},
                       {"token": "\ufffd", "logprob": -9999.0, "bytes": [195]}]}], "refusal": null})"));
  // Without text of their own they wait for the end.
  writer.tokens({token("<|im_end|>", -0.25, 2)});
  EXPECT_EQ(writer.part({}), "");
  const json last = events_of(writer.ending(FinishReason::stop_token))[0]["choices"][0];
  EXPECT_EQ(last["logprobs"]["content"].size(), 1u);
  EXPECT_EQ(last["logprobs"]["content"][0]["token"], "<|im_end|>");
  EXPECT_EQ(last["logprobs"]["content"][0]["top_logprobs"], json::array());
  EXPECT_EQ(json(writer.choice(FinishReason::stop_token))["logprobs"]["content"].size(), 2u);
}

TEST(ApiReply, tokens_of_completions_are_lists_with_their_places_in_the_text) {
  ApiReplyWriter writer(ApiKind::completion, kAnswer, 0, false, false);
  // "aé" as a prompt, and a reply that says one letter in two tokens.
  writer.tokens({token("a", std::numeric_limits<double>::quiet_NaN(), 0), token("\xc3\xa9", -2, 1, {{"b", -1}})});
  const json echoed = events_of(writer.part({"", "a\xc3\xa9", {}}))[0]["choices"][0]["logprobs"];
  EXPECT_EQ(echoed["tokens"], json({"a", "\xc3\xa9"}));
  EXPECT_TRUE(echoed["token_logprobs"][0].is_null());
  EXPECT_EQ(echoed["token_logprobs"][1], -2);
  EXPECT_TRUE(echoed["top_logprobs"][0].is_null());
  EXPECT_EQ(echoed["top_logprobs"][1], json({{"b", -1.0}, {"\xc3\xa9", -2.0}}));
  EXPECT_EQ(echoed["text_offset"], json({0, 1}));
  writer.tokens({token("\xc3", -1, 3, {{"\xc3", -1}}), token("\xa9", -1, 3, {{"x", -0.5}, {"x", -3}})});
  const json reply = events_of(writer.part({"", "\xc3\xa9", {}}))[0]["choices"][0]["logprobs"];
  EXPECT_EQ(reply["tokens"], json({"bytes:\\xc3", "bytes:\\xa9"}));
  EXPECT_EQ(reply["top_logprobs"][0], json({{"bytes:\\xc3", -1.0}}));
  EXPECT_EQ(reply["top_logprobs"][1], json({{"x", -0.5}, {"bytes:\\xa9", -1.0}}));
  EXPECT_EQ(reply["text_offset"], json({2, 2}));
  EXPECT_TRUE(events_of(writer.ending(FinishReason::max_tokens))[0]["choices"][0]["logprobs"].is_null());
  const json whole = json(writer.choice(FinishReason::max_tokens))["logprobs"];
  EXPECT_EQ(whole["text_offset"], json({0, 1, 2, 2}));
  EXPECT_EQ(whole["tokens"].size(), 4u);
}

TEST(ApiReply, without_tokens_there_are_no_log_probabilities) {
  for (const ApiKind kind : {ApiKind::chat, ApiKind::completion}) {
    ApiReplyWriter writer(kind, kAnswer, 0, false, false);
    EXPECT_TRUE(events_of(writer.part({"", "a", {}}))[0]["choices"][0]["logprobs"].is_null());
    EXPECT_TRUE(json(writer.choice(FinishReason::stop_token))["logprobs"].is_null());
  }
}

}  // namespace
}  // namespace canopy
