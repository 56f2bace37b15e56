#include "engine/serve/anthropic_api.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace canopy {
namespace {

using nlohmann::json;
using Ordered = nlohmann::ordered_json;

constexpr const char* kHi = R"("messages": [{"role": "user", "content": "Hi"}])";

ApiLimits message_limits() {
  ApiLimits limits;
  limits.vocabulary = 1000;
  return limits;
}

ApiRequest message(const std::string& fields) {
  return parse_messages_request(std::string("{\"max_tokens\": 8") + (fields.empty() ? "" : ", ") + fields + "}",
                                message_limits());
}

void expect_message_refused(const std::string& fields, const std::string& param, const std::string& words) {
  SCOPED_TRACE(fields);
  try {
    message(fields);
    ADD_FAILURE() << "nothing was refused";
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status, 400);
    EXPECT_EQ(error.param, param);
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    EXPECT_EQ(anthropic_error(error)["error"]["type"], "invalid_request_error");
  }
}

/// Name and data of each event.
std::vector<std::pair<std::string, json>> message_events(const std::string& stream) {
  std::vector<std::pair<std::string, json>> events;
  for (size_t at = 0; at < stream.size();) {
    const size_t end = stream.find("\n\n", at);
    EXPECT_NE(end, std::string::npos);
    const std::string event = stream.substr(at, end - at);
    const size_t line = event.find("\ndata: ");
    EXPECT_TRUE(event.starts_with("event: ") && line != std::string::npos) << event;
    events.emplace_back(event.substr(7, line - 7), json::parse(event.substr(line + 7)));
    EXPECT_EQ(events.back().first, events.back().second.value("type", ""));
    at = end + 2;
  }
  return events;
}

std::vector<std::string> message_event_names(const std::vector<std::pair<std::string, json>>& events) {
  std::vector<std::string> names;
  for (const auto& [name, data] : events)
    names.push_back(name == "content_block_delta" ? data["delta"]["type"].get<std::string>() : name);
  return names;
}

TEST(AnthropicRequest, every_field_that_is_done_arrives) {
  const ApiRequest request = message(std::string(kHi) + R"(,
      "model": "m", "system": "Be brief.", "temperature": 0.5, "top_p": 0.25, "top_k": 3, "stop_sequences": ["a", "b"],
      "stream": true, "thinking": {"type": "enabled", "budget_tokens": 1024, "display": "omitted"},
      "metadata": {"user_id": "u"}, "service_tier": "auto", "anything": [1], "seed": 5,
      "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object", "z": 1, "a": 2}}],
      "tool_choice": {"type": "auto", "disable_parallel_tool_use": true},
      "speculation": {"mode": "tree"}, "canopy": {"rounds": true})");
  EXPECT_EQ(request.dialect, ApiDialect::anthropic);
  EXPECT_EQ(request.kind, ApiKind::chat);
  EXPECT_EQ(request.model, "m");
  ASSERT_EQ(request.turns.size(), 2u);
  EXPECT_EQ(request.turns[0].role, "system");
  EXPECT_EQ(request.turns[0].content, "Be brief.");
  EXPECT_EQ(request.turns[1].role, "user");
  EXPECT_EQ(request.turns[1].content, "Hi");
  EXPECT_EQ(request.max_tokens, 8u);
  EXPECT_EQ(request.sampling.temperature, 0.5f);
  EXPECT_EQ(request.sampling.top_p, 0.25f);
  EXPECT_EQ(request.sampling.top_k, 3u);
  EXPECT_TRUE(request.seed_given);
  EXPECT_EQ(request.stops, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(request.thinking, true);
  EXPECT_TRUE(request.stream && request.rounds && request.one_call && request.omits_thinking);
  EXPECT_EQ(request.mode, DecodeMode::tree);
  EXPECT_EQ(request.tool_names, std::vector<std::string>{"f"});
  EXPECT_EQ(request.tools, R"([{"type":"function","function":{"name":"f","description":"d",)"
                           R"("parameters":{"type":"object","z":1,"a":2}}}])");
  EXPECT_FALSE(request.store);
}

TEST(AnthropicRequest, thinking_is_switched_or_left_to_the_template) {
  EXPECT_FALSE(message(kHi).thinking);
  EXPECT_EQ(message(std::string(kHi) + R"(, "thinking": {"type": "disabled"})").thinking, false);
  EXPECT_EQ(message(std::string(kHi) + R"(, "thinking": {"type": "adaptive"})").thinking, true);
}

TEST(AnthropicRequest, blocks_become_turns_with_calls_and_results) {
  const ApiRequest request = message(R"("system": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
      "messages": [
        {"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]},
        {"role": "user", "content": "y"},
        {"role": "assistant", "content": [
          {"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "redacted_thinking", "data": "?"},
          {"type": "text", "text": "Well."},
          {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"x": 1}},
          {"type": "tool_use", "id": "toolu_2", "name": "g", "input": {}}]},
        {"role": "user", "content": [
          {"type": "tool_result", "tool_use_id": "toolu_1", "content": "one"},
          {"type": "tool_result", "tool_use_id": "toolu_2", "is_error": true,
           "content": [{"type": "text", "text": "two"}]},
          {"type": "tool_result", "tool_use_id": "toolu_3"},
          {"type": "text", "text": "Go on."}]}])");
  ASSERT_EQ(request.turns.size(), 7u);
  EXPECT_EQ(request.turns[0].content, "a\nb");
  EXPECT_EQ(request.turns[1].role, "user");
  EXPECT_EQ(request.turns[1].parts, (std::vector<std::string>{"x", "y"}));
  const ChatTurn& reply = request.turns[2];
  EXPECT_EQ(reply.role, "assistant");
  EXPECT_EQ(reply.content, "Well.");
  const json fields = json::parse(reply.fields);
  EXPECT_EQ(fields["reasoning_content"], "hm");
  ASSERT_EQ(fields["tool_calls"].size(), 2u);
  EXPECT_EQ(fields["tool_calls"][0]["id"], "toolu_1");
  EXPECT_EQ(fields["tool_calls"][0]["function"], json({{"name", "f"}, {"arguments", {{"x", 1}}}}));
  EXPECT_EQ(request.turns[3].role, "tool");
  EXPECT_EQ(request.turns[3].content, "one");
  EXPECT_EQ(json::parse(request.turns[3].fields), json({{"tool_call_id", "toolu_1"}, {"name", "f"}}));
  EXPECT_EQ(request.turns[4].content, "two");
  EXPECT_EQ(request.turns[5].content, "");
  EXPECT_EQ(json::parse(request.turns[5].fields), json({{"tool_call_id", "toolu_3"}}));
  EXPECT_EQ(request.turns[6].role, "user");
  EXPECT_EQ(request.turns[6].content, "Go on.");
}

TEST(AnthropicRequest, a_call_is_asked_for_of_any_tool_or_of_one) {
  const std::string tools = std::string(kHi) + R"(, "tools": [{"name": "f", "input_schema": {}},
                                                               {"name": "g", "input_schema": {}}], )";
  const ApiRequest any = message(tools + R"("tool_choice": {"type": "any"})");
  EXPECT_EQ(any.tool_choice, ToolChoice::required);
  EXPECT_EQ(any.tool_names, (std::vector<std::string>{"f", "g"}));
  EXPECT_FALSE(any.one_call);
  EXPECT_TRUE(message(tools + R"("tool_choice": {"type": "any", "disable_parallel_tool_use": true})").one_call);
  const ApiRequest named = message(tools + R"("tool_choice": {"type": "tool", "name": "g"})");
  EXPECT_EQ(named.tool_choice, ToolChoice::named);
  EXPECT_EQ(named.tool_named, "g");
  EXPECT_EQ(named.tool_names, (std::vector<std::string>{"f", "g"}));
  EXPECT_TRUE(named.one_call);
  EXPECT_EQ(message(tools + R"("tool_choice": {"type": "auto"})").tool_choice, ToolChoice::automatic);
}

TEST(AnthropicRequest, what_is_not_done_is_refused_by_name) {
  const std::string hi = std::string(kHi) + ", ";
  expect_message_refused(R"("messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}])",
                         "messages[0].content[0].type", "'image'");
  expect_message_refused(R"("messages": [{"role": "user", "content": [{"type": "text", "text": "a"},
                                          {"type": "document", "source": {}}]}])",
                         "messages[0].content[1].type", "'document'");
  expect_message_refused(R"("messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t",
                                          "content": [{"type": "image", "source": {}}]}]}])",
                         "messages[0].content[0].content[0].type", "'image'");
  expect_message_refused(R"("messages": [{"role": "user", "content": [{"type": "tool_use", "id": "t", "name": "f"}]}])",
                         "messages[0].content[0].type", "'tool_use'");
  expect_message_refused(R"("messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "{"}])",
                         "messages[1].role", "the last message must be the user's");
  expect_message_refused(hi + R"("tools": [{"type": "web_search_20250305", "name": "web_search"}])", "tools[0].type",
                         "'web_search_20250305'");
  expect_message_refused(hi + R"("tool_choice": {"type": "any"})", "tool_choice", "\"tools\" names none");
  expect_message_refused(
      hi + R"("tools": [{"name": "f", "input_schema": {}}], "tool_choice": {"type": "tool", "name": "g"})",
      "tool_choice.name", "\"g\"");
  expect_message_refused(hi + R"("output_config": {"format": {"type": "json_schema", "schema": {}}})",
                         "output_config.format", "does not do");
  expect_message_refused(hi + R"("mcp_servers": [{"url": "x"}])", "mcp_servers", "does not do");
  expect_message_refused(hi + R"("container": "c")", "container", "does not do");
  expect_message_refused(hi + R"("context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]})",
                         "context_management.edits[0].type", "clear_tool_uses_20250919");
  expect_message_refused(hi + R"("grammar": "root ::= x")", "grammar", "does not do");
  EXPECT_TRUE(message(hi + R"("mcp_servers": [], "context_management": {"edits": [{"type": "clear_thinking_20251015",
                                "keep": "all"}]}, "tools": [{"name": "f", "input_schema": {}}],
                                "tool_choice": {"type": "none"})")
                  .tools.empty());
}

TEST(AnthropicRequest, wrong_values_are_named_with_what_is_allowed) {
  const std::string hi = std::string(kHi) + ", ";
  expect_message_refused("\"x\": 1", "messages", "missing");
  expect_message_refused("\"messages\": []", "messages", "at least one message");
  expect_message_refused("\"messages\": [5]", "messages[0]", "is 5; an object");
  expect_message_refused(R"("messages": [{"content": "a"}])", "messages[0].role", "missing");
  expect_message_refused(R"("messages": [{"role": "tool", "content": "a"}])", "messages[0].role",
                         "user, assistant or system");
  expect_message_refused(R"("messages": [{"role": "user"}])", "messages[0].content", "missing");
  expect_message_refused(R"("messages": [{"role": "user", "content": 5}])", "messages[0].content", "is 5");
  expect_message_refused(R"("messages": [{"role": "user", "content": [{"text": "a"}]}])", "messages[0].content[0].type",
                         "missing");
  expect_message_refused(R"("messages": [{"role": "user", "content": [{"type": "text", "text": 1}]}])",
                         "messages[0].content[0].text", "a string is allowed");
  expect_message_refused(hi + R"("system": {})", "system", "a string or a list of blocks");
  expect_message_refused(hi + R"("temperature": -1)", "temperature", "from 0 to 100");
  expect_message_refused(hi + R"("stop_sequences": [""])", "stop_sequences", "1 to 1024 bytes");
  expect_message_refused(hi + R"("thinking": {"type": "enabled"})", "thinking.budget_tokens", "missing");
  expect_message_refused(hi + R"("thinking": {"type": "on"})", "thinking.type", "enabled, disabled or adaptive");
  expect_message_refused(hi + R"("thinking": {"type": "enabled", "budget_tokens": 0})", "thinking.budget_tokens",
                         "is 0");
  expect_message_refused(hi + R"("tools": {})", "tools", "a list");
  expect_message_refused(hi + R"("tools": [{"name": "f"}])", "tools[0].input_schema", "missing");
  expect_message_refused(hi + R"("tools": [{"name": "", "input_schema": {}}])", "tools[0].name", "a name is needed");
  expect_message_refused(hi + R"("tool_choice": "auto")", "tool_choice", "an object");
  expect_message_refused(hi + R"("tool_choice": {"type": "some"})", "tool_choice.type", "auto, any, none or tool");
  for (const char* wrong : {"{}", R"({"max_tokens": 0})", R"({"max_tokens": 1.5})"}) {
    SCOPED_TRACE(wrong);
    try {
      parse_messages_request(wrong, message_limits());
      ADD_FAILURE() << "nothing was refused";
    } catch (const ApiError& error) {
      EXPECT_EQ(error.param, "max_tokens");
    }
  }
  EXPECT_EQ(parse_messages_request(std::string("{") + kHi + "}", message_limits(), true).turns.size(), 1u);
}

TEST(AnthropicAnswer, a_stream_has_the_published_events_in_their_order) {
  MessagesWriter writer({"msg_1a", 1700000000, "m"}, 7, false, false);
  std::string stream = writer.opening();
  stream += writer.part({"h", "", {}});
  stream += writer.part({"m", "", {}});
  stream += writer.part({"", "Hi \"you\"\n", {}});
  stream += writer.part({});
  stream += writer.waiting();
  stream += writer.part({"", "", {{"f", "{\"x\": 1}"}, {"g", ""}}});
  stream += writer.ending(FinishReason::stop_token);
  ApiUsage usage{7, 9, 4};
  usage.thinking = 2;
  stream += writer.closing(usage);
  const auto events = message_events(stream);
  EXPECT_EQ(message_event_names(events),
            (std::vector<std::string>{"message_start", "content_block_start", "thinking_delta", "thinking_delta",
                                      "signature_delta", "content_block_stop", "content_block_start", "text_delta",
                                      "ping", "content_block_stop", "content_block_start", "input_json_delta",
                                      "content_block_stop", "content_block_start", "input_json_delta",
                                      "content_block_stop", "message_delta", "message_stop"}));
  const json start = events[0].second["message"];
  EXPECT_EQ(start["id"], "msg_1a");
  EXPECT_EQ(start["type"], "message");
  EXPECT_EQ(start["role"], "assistant");
  EXPECT_EQ(start["model"], "m");
  EXPECT_EQ(start["content"], json::array());
  EXPECT_TRUE(start["stop_reason"].is_null() && start["stop_sequence"].is_null());
  EXPECT_EQ(start["usage"]["input_tokens"], 7);
  EXPECT_EQ(events[1].second["index"], 0);
  EXPECT_EQ(events[1].second["content_block"], json({{"type", "thinking"}, {"thinking", ""}, {"signature", ""}}));
  EXPECT_EQ(events[6].second["index"], 1);
  EXPECT_EQ(events[7].second["delta"], json({{"type", "text_delta"}, {"text", "Hi \"you\"\n"}}));
  EXPECT_EQ(events[10].second["index"], 2);
  EXPECT_EQ(events[10].second["content_block"]["name"], "f");
  EXPECT_EQ(events[10].second["content_block"]["input"], json::object());
  EXPECT_EQ(events[11].second["delta"]["partial_json"], "{\"x\":1}");
  EXPECT_EQ(events[14].second["delta"]["partial_json"], "{}");
  EXPECT_NE(events[10].second["content_block"]["id"], events[13].second["content_block"]["id"]);
  EXPECT_EQ(events[16].second["delta"], json({{"stop_reason", "tool_use"}, {"stop_sequence", nullptr}}));
  EXPECT_EQ(events[16].second["usage"], json({{"input_tokens", 3},
                                              {"cache_creation_input_tokens", 0},
                                              {"cache_read_input_tokens", 4},
                                              {"output_tokens", 9},
                                              {"output_tokens_details", {{"thinking_tokens", 2}}}}));
  const json whole = json(writer.whole(Ordered::array({writer.choice(FinishReason::stop_token)}), usage));
  ASSERT_EQ(whole["content"].size(), 4u);
  EXPECT_EQ(whole["content"][0]["thinking"], "hm");
  EXPECT_FALSE(whole["content"][0]["signature"].get<std::string>().empty());
  EXPECT_EQ(whole["content"][1], json({{"type", "text"}, {"text", "Hi \"you\"\n"}}));
  EXPECT_EQ(whole["content"][2]["input"], json({{"x", 1}}));
  EXPECT_EQ(whole["content"][2]["id"], events[10].second["content_block"]["id"]);
  EXPECT_EQ(whole["stop_reason"], "tool_use");
  EXPECT_EQ(whole["usage"], events[16].second["usage"]);
}

TEST(AnthropicAnswer, reasons_are_those_of_the_interface) {
  const auto reason_of = [](FinishReason reason, const std::string& stop) {
    MessagesWriter writer({"msg_1", 1, "m"}, 1, false, false);
    writer.part({"", "a", {}});
    if (!stop.empty()) writer.stopped_at(stop);
    writer.ending(reason);
    return json(writer.choice(reason));
  };
  EXPECT_EQ(reason_of(FinishReason::stop_token, "")["stop_reason"], "end_turn");
  EXPECT_EQ(reason_of(FinishReason::max_tokens, "")["stop_reason"], "max_tokens");
  EXPECT_EQ(reason_of(FinishReason::context_full, "")["stop_reason"], "model_context_window_exceeded");
  const json stopped = reason_of(FinishReason::stop_token, "END");
  EXPECT_EQ(stopped["stop_reason"], "stop_sequence");
  EXPECT_EQ(stopped["stop_sequence"], "END");
}

TEST(AnthropicAnswer, an_empty_reply_is_an_empty_text) {
  MessagesWriter writer({"msg_1", 1, "m"}, 1, false, false);
  EXPECT_EQ(message_event_names(message_events(writer.ending(FinishReason::stop_token))),
            (std::vector<std::string>{"content_block_start", "content_block_stop"}));
  EXPECT_EQ(json(writer.choice(FinishReason::stop_token))["content"], json::array({{{"type", "text"}, {"text", ""}}}));
}

TEST(AnthropicAnswer, one_call_where_more_are_not_wanted_and_thinking_that_is_not_told) {
  MessagesWriter writer({"msg_1", 1, "m"}, 1, true, true);
  const auto events = message_events(writer.part({"hm", "", {{"f", "no JSON"}, {"g", "{}"}}}));
  EXPECT_EQ(message_event_names(events),
            (std::vector<std::string>{"content_block_start", "signature_delta", "content_block_stop",
                                      "content_block_start", "input_json_delta", "content_block_stop"}));
  const json content = json(writer.choice(FinishReason::stop_token))["content"];
  ASSERT_EQ(content.size(), 2u);
  EXPECT_EQ(content[0]["thinking"], "");
  // Clients take nothing but an object.
  EXPECT_EQ(content[1]["input"], json({{"arguments", "no JSON"}}));
}

TEST(AnthropicAnswer, errors_have_the_type_of_their_status) {
  const auto type_of = [](int status) {
    return json(anthropic_error(ApiError(status, "t", "Sentence.", "model", "c")))["error"]["type"];
  };
  EXPECT_EQ(json(anthropic_error(ApiError(404, "t", "Sentence.", "model", "c"))),
            json({{"type", "error"}, {"error", {{"type", "not_found_error"}, {"message", "Sentence."}}}}));
  for (const auto& [status, type] : std::vector<std::pair<int, std::string>>{{400, "invalid_request_error"},
                                                                             {401, "authentication_error"},
                                                                             {403, "permission_error"},
                                                                             {405, "invalid_request_error"},
                                                                             {413, "request_too_large"},
                                                                             {429, "rate_limit_error"},
                                                                             {500, "api_error"},
                                                                             {503, "overloaded_error"}})
    EXPECT_EQ(type_of(status), type) << status;
  MessagesWriter writer({"msg_1", 1, "m"}, 1, false, false);
  EXPECT_EQ(message_events(writer.failure(ApiError(503, "t", "Busy.")))[0].second["error"]["type"], "overloaded_error");
}

TEST(AnthropicAnswer, a_round_is_an_event_with_its_own_type) {
  MessagesWriter writer({"msg_1", 1, "m"}, 1, false, false);
  const auto events = message_events(writer.engine_event("canopy.round", {{"round", 3}, {"width", 5}}));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].second, json({{"type", "canopy.round"}, {"round", 3}, {"width", 5}}));
}

}  // namespace
}  // namespace canopy
