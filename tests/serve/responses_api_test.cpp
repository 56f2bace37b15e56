#include "engine/serve/responses_api.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "engine/serve/response_store.h"

namespace canopy {
namespace {

using nlohmann::json;
using Ordered = nlohmann::ordered_json;

std::vector<ChatTurn> no_turns(const std::string& id) {
  throw ApiError(400, "invalid_request_error", "There is no " + id + ".", "previous_response_id");
}

ApiRequest response(const std::string& body, const EarlierTurns& earlier = no_turns) {
  ApiLimits limits;
  limits.vocabulary = 1000;
  return parse_responses_request("{" + body + "}", limits, earlier);
}

void expect_response_refused(const std::string& fields, const std::string& param, const std::string& words) {
  SCOPED_TRACE(fields);
  try {
    response(fields);
    ADD_FAILURE() << "nothing was refused";
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status, 400);
    EXPECT_EQ(error.param, param);
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

/// The data of each event, all of which have their name as type and follow each other by number.
std::vector<json> response_events(const std::string& stream, int first = 0) {
  std::vector<json> events;
  for (size_t at = 0; at < stream.size();) {
    const size_t end = stream.find("\n\n", at);
    EXPECT_NE(end, std::string::npos);
    const std::string event = stream.substr(at, end - at);
    at = end + 2;
    if (event == "data: [DONE]") {
      EXPECT_EQ(at, stream.size());
      break;
    }
    const size_t line = event.find("\ndata: ");
    EXPECT_TRUE(event.starts_with("event: ") && line != std::string::npos) << event;
    events.push_back(json::parse(event.substr(line + 7)));
    EXPECT_EQ(event.substr(7, line - 7), events.back().value("type", ""));
    EXPECT_EQ(events.back().value("sequence_number", -1), first++);
  }
  return events;
}

std::vector<std::string> response_event_types(const std::vector<json>& events) {
  std::vector<std::string> types;
  for (const json& event : events) types.push_back(event["type"].get<std::string>());
  return types;
}

ResponsesWriter writer_of(const std::string& fields, bool one_call = false) {
  return ResponsesWriter({"resp_1a", 1700000000, "m"}, response(fields).repeated, one_call);
}

TEST(ResponsesRequest, every_field_that_is_done_arrives_and_is_repeated) {
  const ApiRequest request = response(R"("model": "m", "input": "Hi", "instructions": "Be brief.",
      "max_output_tokens": 9, "temperature": 0.5, "top_p": 0.25, "stream": true, "metadata": {"a": "b"},
      "tools": [{"type": "function", "name": "f", "description": "d", "parameters": {"z": 1, "a": 2}, "strict": false}],
      "tool_choice": "auto", "parallel_tool_calls": false, "reasoning": {"effort": "high", "summary": "auto"},
      "text": {"format": {"type": "text"}}, "store": false, "truncation": "disabled", "background": false,
      "include": ["reasoning.encrypted_content"], "user": "u", "prompt_cache_key": "k", "anything": 1,
      "speculation": {"mode": "chain"}, "canopy": {"rounds": true})");
  EXPECT_EQ(request.dialect, ApiDialect::responses);
  EXPECT_EQ(request.kind, ApiKind::chat);
  ASSERT_EQ(request.turns.size(), 2u);
  EXPECT_EQ(request.turns[0].role, "system");
  EXPECT_EQ(request.turns[0].content, "Be brief.");
  EXPECT_EQ(request.turns[1].content, "Hi");
  EXPECT_EQ(request.max_tokens, 9u);
  EXPECT_EQ(request.sampling.temperature, 0.5f);
  EXPECT_EQ(request.sampling.top_p, 0.25f);
  EXPECT_EQ(request.thinking, true);
  EXPECT_TRUE(request.stream && request.rounds && request.one_call);
  EXPECT_FALSE(request.store);
  EXPECT_TRUE(request.kept.empty());
  EXPECT_EQ(request.mode, DecodeMode::chain);
  EXPECT_EQ(request.tools,
            R"([{"type":"function","function":{"name":"f","description":"d","parameters":{"z":1,"a":2}}}])");
  const json repeated = request.repeated;
  EXPECT_EQ(repeated["instructions"], "Be brief.");
  EXPECT_EQ(repeated["max_output_tokens"], 9);
  EXPECT_EQ(repeated["metadata"], json({{"a", "b"}}));
  EXPECT_EQ(repeated["parallel_tool_calls"], false);
  EXPECT_EQ(repeated["temperature"], 0.5);
  EXPECT_EQ(repeated["reasoning"], json({{"effort", "high"}, {"summary", nullptr}}));
  EXPECT_EQ(repeated["tools"][0], json({{"type", "function"},
                                        {"name", "f"},
                                        {"description", "d"},
                                        {"parameters", {{"z", 1}, {"a", 2}}},
                                        {"strict", false}}));
  EXPECT_EQ(repeated["tool_choice"], "auto");
  EXPECT_EQ(repeated["prompt_cache_key"], "k");
}

TEST(ResponsesRequest, defaults_are_those_of_the_interface) {
  const ApiRequest request = response(R"("input": "Hi")");
  EXPECT_TRUE(request.store);
  ASSERT_EQ(request.kept.size(), 1u);
  EXPECT_EQ(request.kept[0].content, "Hi");
  EXPECT_FALSE(request.max_tokens);
  EXPECT_FALSE(request.thinking);
  const json repeated = request.repeated;
  EXPECT_EQ(repeated["temperature"], 1.0);
  EXPECT_EQ(repeated["top_p"], 1.0);
  EXPECT_EQ(repeated["tools"], json::array());
  EXPECT_EQ(repeated["tool_choice"], "auto");
  EXPECT_EQ(repeated["parallel_tool_calls"], true);
  EXPECT_TRUE(repeated["previous_response_id"].is_null() && repeated["max_output_tokens"].is_null());
  EXPECT_EQ(response(R"("input": "Hi", "reasoning": {"effort": "none"})").thinking, false);
}

TEST(ResponsesRequest, items_become_turns_with_calls_and_results) {
  const ApiRequest request = response(R"("instructions": "i", "input": [
      {"role": "developer", "content": "d"},
      {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"},
                                                      {"type": "input_text", "text": "y"}]},
      {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
      {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
       "content": [{"type": "output_text", "text": "Well.", "annotations": []}]},
      {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{\"x\": 1}"},
      {"type": "function_call", "call_id": "call_2", "name": "g", "arguments": ""},
      {"type": "function_call_output", "call_id": "call_1", "output": "one"},
      {"type": "function_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "two"}]},
      {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "?"}])");
  ASSERT_EQ(request.turns.size(), 5u);
  EXPECT_EQ(request.turns[0].role, "system");
  EXPECT_EQ(request.turns[0].content, "i\nd");
  EXPECT_EQ(request.turns[0].parts, (std::vector<std::string>{"i", "d"}));
  EXPECT_EQ(request.turns[1].content, "x\ny");
  EXPECT_EQ(request.turns[2].role, "assistant");
  EXPECT_EQ(request.turns[2].content, "Well.");
  const json fields = json::parse(request.turns[2].fields);
  EXPECT_EQ(fields["reasoning_content"], "hm");
  ASSERT_EQ(fields["tool_calls"].size(), 2u);
  EXPECT_EQ(fields["tool_calls"][0]["function"], json({{"name", "f"}, {"arguments", {{"x", 1}}}}));
  EXPECT_EQ(fields["tool_calls"][1]["function"]["arguments"], json::object());
  EXPECT_EQ(request.turns[3].content, "one");
  EXPECT_EQ(json::parse(request.turns[4].fields), json({{"tool_call_id", "call_2"}, {"name", "g"}}));
  // A request that goes on from this one has instructions of its own.
  ASSERT_EQ(request.kept.size(), 5u);
  EXPECT_EQ(request.kept[0].content, "d");
}

TEST(ResponsesRequest, an_earlier_response_stands_in_front) {
  const std::vector<ChatTurn> first = {{"user", "a"},
                                       turns_of_output(Ordered::parse(
                                                           R"([{"type": "function_call", "call_id": "call_1",
                                                               "name": "f", "arguments": "{}"}])"))
                                           .at(0)};
  const ApiRequest request = response(R"("previous_response_id": "resp_1", "instructions": "i",
                  "input": [{"type": "function_call_output", "call_id": "call_1", "output": "b"}])",
                                      [&](const std::string& id) {
                                        EXPECT_EQ(id, "resp_1");
                                        return first;
                                      });
  ASSERT_EQ(request.turns.size(), 4u);
  EXPECT_EQ(request.turns[0].content, "i");
  EXPECT_EQ(request.turns[1].content, "a");
  EXPECT_EQ(json::parse(request.turns[3].fields)["name"], "f");
  EXPECT_EQ(request.kept.size(), 3u);
  EXPECT_EQ(json(request.repeated)["previous_response_id"], "resp_1");
  expect_response_refused(R"("previous_response_id": "resp_2", "input": "a")", "previous_response_id", "resp_2");
}

TEST(ResponsesRequest, a_call_is_asked_for_of_any_tool_or_of_one) {
  const std::string tools = R"("input": "Hi", "tools": [{"type": "function", "name": "f"},
                                                        {"type": "function", "name": "g"}], )";
  const ApiRequest required = response(tools + R"("tool_choice": "required")");
  EXPECT_EQ(required.tool_choice, ToolChoice::required);
  EXPECT_EQ(required.tool_names, (std::vector<std::string>{"f", "g"}));
  EXPECT_FALSE(required.one_call);
  EXPECT_EQ(required.repeated["tool_choice"], "required");
  const ApiRequest named = response(tools + R"("tool_choice": {"type": "function", "name": "g"})");
  EXPECT_EQ(named.tool_choice, ToolChoice::named);
  EXPECT_EQ(named.tool_named, "g");
  EXPECT_TRUE(named.one_call);
  EXPECT_EQ(named.repeated["tool_choice"], (Ordered{{"type", "function"}, {"name", "g"}}));
  EXPECT_EQ(named.repeated["parallel_tool_calls"], true);
}

TEST(ResponsesRequest, what_is_not_done_is_refused_by_name) {
  const std::string hi = R"("input": "Hi", )";
  expect_response_refused(R"("input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}])",
                          "input[0].content[0].type", "'input_image'");
  expect_response_refused(R"("input": [{"role": "user", "content": [{"type": "input_file", "file_id": "x"}]}])",
                          "input[0].content[0].type", "'input_file'");
  expect_response_refused(R"("input": [{"type": "item_reference", "id": "x"}])", "input[0].type", "'item_reference'");
  expect_response_refused(hi + R"("tools": [{"type": "web_search"}])", "tools[0].type", "'web_search'");
  expect_response_refused(hi + R"("tool_choice": "required")", "tool_choice", "\"tools\" names none");
  expect_response_refused(
      hi + R"("tools": [{"type": "function", "name": "f"}], "tool_choice": {"type": "function", "name": "g"})",
      "tool_choice.name", "\"g\"");
  expect_response_refused(hi + R"("text": {"format": {"type": "json_schema", "name": "n", "schema": {}}})",
                          "text.format.type", "'json_schema'");
  expect_response_refused(hi + R"("text": {"verbosity": "low"})", "text.verbosity", "\"medium\"");
  expect_response_refused(hi + R"("background": true)", "background", "false is allowed");
  expect_response_refused(hi + R"("conversation": "c")", "conversation", "previous_response_id");
  expect_response_refused(hi + R"("prompt": {"id": "p"})", "prompt", "does not do");
  expect_response_refused(hi + R"("truncation": "auto")", "truncation", "\"disabled\"");
  expect_response_refused(hi + R"("top_logprobs": 2)", "top_logprobs", "is 2");
  expect_response_refused(hi + R"("include": ["message.output_text.logprobs"])", "include", "logprobs");
  expect_response_refused(hi + R"("grammar": "root ::= x")", "grammar", "does not do");
  EXPECT_TRUE(response(hi + R"("tools": [{"type": "function", "name": "f"}], "tool_choice": "none",
                               "top_logprobs": 0, "context_management": [])")
                  .tools.empty());
}

TEST(ResponsesRequest, wrong_values_are_named_with_what_is_allowed) {
  const std::string hi = R"("input": "Hi", )";
  expect_response_refused(R"("model": "m")", "input", "missing");
  expect_response_refused(R"("input": 5)", "input", "is 5");
  expect_response_refused(R"("input": [])", "input", "at least one item");
  expect_response_refused(R"("input": [5])", "input[0]", "an object");
  expect_response_refused(R"("input": [{"type": "reasoning", "id": "r", "summary": []}])", "input",
                          "at least one message");
  expect_response_refused(R"("input": [{"role": "tool", "content": "a"}])", "input[0].role",
                          "user, assistant, system or developer");
  expect_response_refused(R"("input": [{"role": "user"}])", "input[0].content", "missing");
  expect_response_refused(R"("input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{"}])",
                          "input[0].arguments", "input[0].arguments");
  expect_response_refused(R"("input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "[]"}])",
                          "input[0].arguments", "an object");
  expect_response_refused(R"("input": [{"type": "function_call_output", "call_id": "c"}])", "input[0].output",
                          "missing");
  expect_response_refused(hi + R"("instructions": ["a"])", "instructions", "a string");
  expect_response_refused(hi + R"("max_output_tokens": 0)", "max_output_tokens", "is 0");
  expect_response_refused(hi + R"("temperature": 101)", "temperature", "from 0 to 100");
  expect_response_refused(hi + R"("store": 1)", "store", "true or false");
  expect_response_refused(hi + R"("metadata": {"a": 1})", "metadata.a", "strings");
  expect_response_refused(hi + R"("reasoning": {"effort": "much"})", "reasoning.effort", "none, minimal, low");
  expect_response_refused(hi + R"("truncation": "some")", "truncation", "disabled or auto");
  expect_response_refused(hi + R"("tools": [{"name": "f"}])", "tools[0].type", "missing");
  expect_response_refused(hi + R"("tools": [{"type": "function", "name": "f", "parameters": 1}])",
                          "tools[0].parameters", "an object");
  expect_response_refused(hi + R"("tool_choice": 5)", "tool_choice", "\"auto\"");
}

TEST(ResponsesAnswer, a_stream_has_the_published_events_in_their_order) {
  ResponsesWriter writer = writer_of(R"("input": "Hi", "metadata": {"a": "b"})");
  std::string stream = writer.opening();
  stream += writer.part({"h", "", {}});
  stream += writer.part({"m", "", {}});
  stream += writer.part({"", "Hi \"you\"\n", {}});
  stream += writer.part({});
  stream += writer.part({"", "", {{"f", "{\"x\": 1}"}}});
  stream += writer.ending(FinishReason::stop_token);
  ApiUsage usage{7, 9, 4};
  usage.thinking = 2;
  stream += writer.closing(usage);
  EXPECT_TRUE(stream.ends_with("data: [DONE]\n\n"));
  const std::vector<json> events = response_events(stream);
  EXPECT_EQ(response_event_types(events), (std::vector<std::string>{"response.created",
                                                                    "response.in_progress",
                                                                    "response.output_item.added",
                                                                    "response.content_part.added",
                                                                    "response.reasoning_text.delta",
                                                                    "response.reasoning_text.delta",
                                                                    "response.reasoning_text.done",
                                                                    "response.content_part.done",
                                                                    "response.output_item.done",
                                                                    "response.output_item.added",
                                                                    "response.content_part.added",
                                                                    "response.output_text.delta",
                                                                    "response.output_text.done",
                                                                    "response.content_part.done",
                                                                    "response.output_item.done",
                                                                    "response.output_item.added",
                                                                    "response.function_call_arguments.delta",
                                                                    "response.function_call_arguments.done",
                                                                    "response.output_item.done",
                                                                    "response.completed"}));
  EXPECT_EQ(events[0]["response"]["status"], "in_progress");
  EXPECT_EQ(events[0]["response"]["output"], json::array());
  EXPECT_TRUE(events[0]["response"]["usage"].is_null());
  const json whole = events.back()["response"];
  EXPECT_EQ(whole["id"], "resp_1a");
  EXPECT_EQ(whole["object"], "response");
  EXPECT_EQ(whole["created_at"], 1700000000);
  EXPECT_EQ(whole["status"], "completed");
  EXPECT_EQ(whole["model"], "m");
  EXPECT_EQ(whole["metadata"], json({{"a", "b"}}));
  EXPECT_TRUE(whole["error"].is_null() && whole["incomplete_details"].is_null());
  EXPECT_EQ(whole["usage"], json({{"input_tokens", 7},
                                  {"input_tokens_details", {{"cached_tokens", 4}, {"cache_write_tokens", 0}}},
                                  {"output_tokens", 9},
                                  {"output_tokens_details", {{"reasoning_tokens", 2}}},
                                  {"total_tokens", 16}}));
  ASSERT_EQ(whole["output"].size(), 3u);
  // What is added is done under the same id, and stands so in the whole.
  for (const auto& [added, done, index] : {std::array{2, 8, 0}, std::array{9, 14, 1}, std::array{15, 18, 2}}) {
    const auto at = static_cast<size_t>(added), end = static_cast<size_t>(done), item = static_cast<size_t>(index);
    EXPECT_EQ(events[at]["output_index"], index);
    EXPECT_EQ(events[at]["item"]["status"], "in_progress");
    EXPECT_EQ(events[end]["output_index"], index);
    EXPECT_EQ(events[end]["item"], whole["output"][item]);
    EXPECT_EQ(events[at]["item"]["id"], whole["output"][item]["id"]);
    for (size_t i = at + 1; i < end; ++i) {
      EXPECT_EQ(events[i]["item_id"], whole["output"][item]["id"]);
      EXPECT_EQ(events[i]["output_index"], index);
      EXPECT_EQ(events[i].value("content_index", 0), 0);
    }
  }
  EXPECT_EQ(whole["output"][0]["type"], "reasoning");
  EXPECT_EQ(whole["output"][0]["content"], json::array({{{"type", "reasoning_text"}, {"text", "hm"}}}));
  EXPECT_EQ(whole["output"][1]["type"], "message");
  EXPECT_EQ(whole["output"][1]["content"][0]["text"], "Hi \"you\"\n");
  EXPECT_EQ(events[12]["text"], "Hi \"you\"\n");
  EXPECT_EQ(whole["output"][2]["type"], "function_call");
  EXPECT_EQ(whole["output"][2]["arguments"], "{\"x\": 1}");
  EXPECT_NE(whole["output"][2]["call_id"], whole["output"][2]["id"]);
  json given = json(writer.whole(Ordered::array({writer.choice(FinishReason::stop_token)}), usage));
  EXPECT_EQ(given, whole);

  const std::vector<ChatTurn> turns = turns_of_output(Ordered::parse(whole["output"].dump()));
  ASSERT_EQ(turns.size(), 1u);
  EXPECT_EQ(turns[0].role, "assistant");
  EXPECT_EQ(turns[0].content, "Hi \"you\"\n");
  EXPECT_EQ(json::parse(turns[0].fields)["reasoning_content"], "hm");
  EXPECT_EQ(json::parse(turns[0].fields)["tool_calls"][0]["id"], whole["output"][2]["call_id"]);
}

TEST(ResponsesAnswer, a_reply_that_is_cut_is_incomplete) {
  for (const FinishReason reason : {FinishReason::max_tokens, FinishReason::context_full}) {
    ResponsesWriter writer = writer_of(R"("input": "Hi")");
    writer.opening();
    writer.part({"", "a", {}});
    writer.ending(reason);
    const json answer = json(writer.choice(reason));
    EXPECT_EQ(answer["status"], "incomplete");
    EXPECT_EQ(answer["incomplete_details"], json({{"reason", "max_output_tokens"}}));
    EXPECT_EQ(answer["output"][0]["status"], "incomplete");
    const std::string closing = writer.closing({1, 1, 0});
    EXPECT_TRUE(closing.starts_with("event: response.incomplete\n"));
  }
}

TEST(ResponsesAnswer, an_empty_reply_is_an_empty_message) {
  ResponsesWriter writer = writer_of(R"("input": "Hi")");
  writer.opening();
  EXPECT_EQ(response_event_types(response_events(writer.ending(FinishReason::stop_token), 2)),
            (std::vector<std::string>{"response.output_item.added", "response.content_part.added",
                                      "response.output_text.done", "response.content_part.done",
                                      "response.output_item.done"}));
  EXPECT_EQ(json(writer.choice(FinishReason::stop_token))["output"][0]["content"][0]["text"], "");
}

TEST(ResponsesAnswer, one_call_where_more_are_not_wanted) {
  ResponsesWriter writer = writer_of(R"("input": "Hi")", true);
  EXPECT_EQ(response_events(writer.part({"", "", {{"f", "{}"}, {"g", "{}"}}})).size(), 4u);
  EXPECT_EQ(json(writer.choice(FinishReason::stop_token))["output"].size(), 1u);
}

TEST(ResponsesAnswer, a_failure_is_the_last_event_and_rounds_count_among_the_others) {
  ResponsesWriter writer = writer_of(R"("input": "Hi")");
  writer.opening();
  const json round = response_events(writer.engine_event("canopy.round", {{"round", 3}, {"width", 5}}), 2).at(0);
  EXPECT_EQ(round, json({{"type", "canopy.round"}, {"sequence_number", 2}, {"round", 3}, {"width", 5}}));
  const json failed = response_events(writer.failure(ApiError(500, "server_error", "Sentence.")), 3).at(0);
  EXPECT_EQ(failed["type"], "response.failed");
  EXPECT_EQ(failed["response"]["status"], "failed");
  EXPECT_EQ(failed["response"]["error"], json({{"code", "server_error"}, {"message", "Sentence."}}));
}

TEST(ResponseStore, gives_back_what_was_kept_for_the_same_key_alone) {
  ResponseStore store(8, 1 << 20);
  store.put(0, "resp_1", {{{"user", "a"}}, "{}"});
  ASSERT_NE(store.find(0, "resp_1"), nullptr);
  EXPECT_EQ(store.find(0, "resp_1")->turns.at(0).content, "a");
  EXPECT_EQ(store.find(1, "resp_1"), nullptr);
  EXPECT_FALSE(store.erase(1, "resp_1"));
  EXPECT_TRUE(store.erase(0, "resp_1"));
  EXPECT_FALSE(store.erase(0, "resp_1"));
  EXPECT_EQ(store.find(0, "resp_1"), nullptr);
}

TEST(ResponseStore, those_used_longest_ago_give_way) {
  ResponseStore few(2, 1 << 20);
  for (const char* id : {"a", "b"}) few.put(0, id, {});
  few.find(0, "a");
  few.put(0, "c", {});
  EXPECT_NE(few.find(0, "a"), nullptr);
  EXPECT_EQ(few.find(0, "b"), nullptr);
  EXPECT_NE(few.find(0, "c"), nullptr);

  ResponseStore small(100, 20000);
  for (const char* id : {"a", "b", "c"}) small.put(0, id, {{}, std::string(8000, 'x')});
  EXPECT_EQ(small.find(0, "a"), nullptr);
  EXPECT_NE(small.find(0, "b"), nullptr);
  EXPECT_NE(small.find(0, "c"), nullptr);
  small.put(0, "d", {{{"user", std::string(20001, 'x')}}, {}});
  EXPECT_EQ(small.find(0, "d"), nullptr);
  EXPECT_NE(small.find(0, "c"), nullptr);
  // The same again takes the place of the one before.
  for (int i = 0; i < 10; ++i) small.put(0, "b", {{}, std::string(8000, 'y')});
  EXPECT_EQ(small.find(0, "b")->json.front(), 'y');
  EXPECT_NE(small.find(0, "c"), nullptr);
}

}  // namespace
}  // namespace canopy
