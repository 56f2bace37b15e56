#include "engine/serve/api_request.h"

#include <gtest/gtest.h>

#include <string>

namespace canopy {
namespace {

constexpr const char* kHello = R"("messages": [{"role": "user", "content": "Hello"}])";

ApiLimits limits() {
  ApiLimits limits;
  limits.vocabulary = 1000;
  return limits;
}

ApiRequest chat(const std::string& fields) {
  return parse_chat_request(std::string("{") + kHello + (fields.empty() ? "" : ", ") + fields + "}", limits());
}

ApiRequest completion(const std::string& body) {
  return parse_completion_request(body, limits());
}

template <class F>
ApiError refusal_of(F&& parse) {
  try {
    parse();
  } catch (const ApiError& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was refused";
  return ApiError(0, "", "");
}

/// A field is refused by name, with its value.
void expect_refused(const std::string& fields, const std::string& param, const std::string& words) {
  SCOPED_TRACE(fields);
  const ApiError error = refusal_of([&] { chat(fields); });
  EXPECT_EQ(error.status, 400);
  EXPECT_EQ(error.type, "invalid_request_error");
  EXPECT_EQ(error.param, param);
  EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
}

TEST(ApiRequest, defaults_are_those_of_the_interface) {
  const ApiRequest request = chat("");
  EXPECT_EQ(request.kind, ApiKind::chat);
  ASSERT_EQ(request.turns.size(), 1u);
  EXPECT_EQ(request.turns[0].content, "Hello");
  EXPECT_EQ(request.sampling.temperature, 1.0f);
  EXPECT_FALSE(request.max_tokens);
  EXPECT_FALSE(request.seed_given);
  EXPECT_FALSE(request.stream);
  EXPECT_EQ(completion(R"({"prompt": "a"})").max_tokens, 16u);
}

TEST(ApiRequest, every_field_that_is_done_arrives) {
  const ApiRequest request = chat(R"(
      "model": "m", "temperature": 0, "top_p": 0.5, "min_p": 0.25, "top_k": 7, "seed": 9, "stop": ["a", "b"],
      "max_completion_tokens": 12, "presence_penalty": 1, "frequency_penalty": -1, "repetition_penalty": 1.5,
      "logit_bias": {"3": -100, "2": 1}, "stream": true, "stream_options": {"include_usage": true},
      "speculation": {"mode": "tree", "budget": 4, "sources": ["suffix"]}, "canopy": {"rounds": true})");
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(request.sampling.temperature, 0.0f);
  EXPECT_EQ(request.sampling.top_p, 0.5f);
  EXPECT_EQ(request.sampling.min_p, 0.25f);
  EXPECT_EQ(request.sampling.top_k, 7u);
  EXPECT_TRUE(request.seed_given);
  EXPECT_EQ(request.sampling.seed, 9u);
  EXPECT_EQ(request.stops, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(request.max_tokens, 12u);
  EXPECT_EQ(request.sampling.presence_penalty, 1.0f);
  EXPECT_EQ(request.sampling.frequency_penalty, -1.0f);
  EXPECT_EQ(request.sampling.repetition_penalty, 1.5f);
  EXPECT_EQ(request.sampling.logit_bias, (std::vector<std::pair<uint32_t, float>>{{2, 1.0f}, {3, -100.0f}}));
  EXPECT_TRUE(request.stream && request.include_usage && request.rounds);
  EXPECT_EQ(request.mode, DecodeMode::tree);
  EXPECT_EQ(request.budget, 4u);
  EXPECT_EQ(request.sources, kFromSuffix);
}

TEST(ApiRequest, sources_may_include_earlier_replies_which_are_the_keys_own) {
  EXPECT_EQ(chat(R"("speculation": {"sources": "suffix,earlier"})").sources, kFromSuffix | kFromEarlier);
}

TEST(ApiRequest, a_window_elsewhere_names_ids_of_the_models_own_vocabulary) {
  const auto window = [](const std::string& fields) {
    ApiLimits own = limits();
    own.identity = 77;
    return parse_chat_request(std::string("{") + kHello + ", \"canopy\": {" + fields + "}}", own);
  };
  const ApiRequest request = window(
      R"("rounds": true, "prompt_ids": true, "stop_loops": true, "vocabulary": 77, "begun": [1, 999], "turn_ids": [[5]])");
  EXPECT_TRUE(request.rounds && request.prompt_ids && request.stop_loops);
  EXPECT_EQ(request.begun, (std::vector<uint32_t>{1, 999}));
  EXPECT_EQ(request.turns[0].tokens, (TurnTokens{{5}, {}, 77}));
  EXPECT_TRUE(window(R"("vocabulary": 77, "turn_ids": [null])").turns[0].tokens.ids.empty());
  const auto refused = [&](const std::string& fields, const std::string& param) {
    SCOPED_TRACE(fields);
    EXPECT_EQ(refusal_of([&] { window(fields); }).param, param);
  };
  refused(R"("begun": [1])", "canopy.vocabulary");
  refused(R"("begun": [1], "vocabulary": 78)", "canopy.vocabulary");
  refused(R"("begun": [1000], "vocabulary": 77)", "canopy.begun");
  refused(R"("begun": 3, "vocabulary": 77)", "canopy.begun");
  refused(R"("turn_ids": [], "vocabulary": 77)", "canopy.turn_ids");
  refused(R"("turn_ids": [[-1]], "vocabulary": 77)", "canopy.turn_ids[0]");
  refused(R"("rounds": 1)", "canopy.rounds");
  const std::string echoed = R"({"prompt": "a", "echo": true, "canopy": {"begun": [1], "vocabulary": 0}})";
  EXPECT_EQ(refusal_of([&] { parse_completion_request(echoed, limits()); }).param, "canopy.begun");
}

TEST(ApiRequest, null_and_unknown_fields_are_as_if_they_were_absent) {
  const ApiRequest request = chat(R"("temperature": null, "stop": null, "tools": null, "user": "u", "metadata": {},
                                     "store": false, "n": 1, "logprobs": false, "response_format": {"type": "text"},
                                     "anything": [1, 2])");
  EXPECT_EQ(request.sampling.temperature, 1.0f);
  EXPECT_TRUE(request.stops.empty() && request.tools.empty());
}

TEST(ApiRequest, what_is_not_done_is_refused_by_name) {
  expect_refused(R"("n": 2, "best_of": 3)", "best_of", "as many as \"n\"");
  expect_refused(R"("best_of": 2)", "best_of", "2");
  expect_refused(R"("response_format": {"type": "json_object"})", "response_format", "json_object");
  expect_refused(R"("grammar": "root ::= x")", "grammar", "does not do");
  expect_refused(R"("prompt_logprobs": 0)", "prompt_logprobs", "\"echo\"");
  expect_refused(R"("audio": {"voice": "x"})", "audio", "only text");
  expect_refused(R"("modalities": ["text", "audio"])", "modalities", "does not do");
  expect_refused(R"("functions": [{"name": "f"}])", "functions", "\"tools\"");
  expect_refused(R"("chat_template_kwargs": {"other": 1})", "chat_template_kwargs.other", "enable_thinking");
}

TEST(ApiRequest, wrong_values_are_named_with_what_is_allowed) {
  expect_refused(R"("temperature": -1)", "temperature", "is -1; a number from 0 to 100 is allowed");
  expect_refused(R"("temperature": "warm")", "temperature", "\"warm\"");
  expect_refused(R"("top_p": 0)", "top_p", "above 0");
  expect_refused(R"("min_p": 1)", "min_p", "to below 1");
  expect_refused(R"("presence_penalty": 2.5)", "presence_penalty", "from -2 to 2");
  expect_refused(R"("max_tokens": 0)", "max_tokens", "is 0");
  expect_refused(R"("n": 0)", "n", "from 1 to 8");
  expect_refused(R"("n": 9)", "n", "from 1 to 8");
  expect_refused(R"("logprobs": 3)", "logprobs", "true or false");
  expect_refused(R"("logprobs": true, "top_logprobs": 21)", "top_logprobs", "from 0 to 20");
  expect_refused(R"("logprobs": true, "top_logprobs": -1)", "top_logprobs", "from 0 to 20");
  expect_refused(R"("top_logprobs": 3)", "top_logprobs", "is 3; without \"logprobs\": true, 0 is allowed");
  expect_refused(R"("tool_choice": "required")", "tool_choice", "\"tools\" names none");
  expect_refused(R"("tool_choice": "any")", "tool_choice", "\"any\"");
  expect_refused(R"("tool_choice": 1)", "tool_choice", "an object");
  expect_refused(R"("tool_choice": {"type": "custom"})", "tool_choice", "an object; \"auto\"");
  expect_refused(R"("tool_choice": {"type": "function"})", "tool_choice", "lacks \"function\"");
  expect_refused(R"("tool_choice": {"type": "function", "function": {"name": "f"}})", "tool_choice", "'f'");
  expect_refused(R"("max_tokens": 1.5)", "max_tokens", "1.5");
  expect_refused(R"("stop": "")", "stop", "1 to 1024 bytes");
  expect_refused(R"("stop": [1])", "stop", "a string or a list");
  expect_refused(R"("stream": "yes")", "stream", "true or false");
  expect_refused(R"("stream_options": [])", "stream_options", "an object");
  expect_refused(R"("logit_bias": {"1000": 1})", "logit_bias", "'1000'");
  expect_refused(R"("logit_bias": {"1": 101})", "logit_bias.1", "101");
  expect_refused(R"("logit_bias": {"1": 1, "01": 2})", "logit_bias", "twice");
  expect_refused(R"("speculation": {"mode": "magic"})", "speculation.mode", "ar, chain, tree or adaptive");
  expect_refused(R"("speculation": {"budget": 128})", "speculation.budget", "from 1 to 127");
  expect_refused(R"("tools": [{"type": "web_search"}])", "tools[0].type", "'web_search'");
  expect_refused(R"("tools": [{"function": {}}])", "tools[0]", "\"name\"");
}

TEST(ApiRequest, messages_are_read_strictly) {
  const auto refused = [](const std::string& messages, const std::string& words) {
    SCOPED_TRACE(messages);
    const ApiError error = refusal_of([&] { parse_chat_request("{\"messages\": " + messages + "}", limits()); });
    EXPECT_EQ(error.param, "messages");
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  };
  refused("[]", "no turns");
  refused("5", "a JSON array");
  refused(R"([{"role": "user"}])", "content");
  refused(R"([{"role": "wizard", "content": "a"}])", "wizard");
  refused(R"([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}])", "image_url");
  EXPECT_EQ(refusal_of([] { parse_chat_request("{}", limits()); }).param, "messages");
}

TEST(ApiRequest, a_developer_is_the_system) {
  const ApiRequest request = parse_chat_request(
      R"({"messages": [{"role": "developer", "content": "a"}, {"role": "user", "content": "b"}]})", limits());
  EXPECT_EQ(request.turns[0].role, "system");
}

TEST(ApiRequest, tools_are_kept_as_they_were_written) {
  const ApiRequest request = chat(
      R"("tools": [{"type": "function", "function": {"name": "f", "parameters": {"z": 1, "a": 2}}}],
         "parallel_tool_calls": false)");
  EXPECT_EQ(request.tool_names, std::vector<std::string>{"f"});
  EXPECT_LT(request.tools.find("\"z\""), request.tools.find("\"a\""));
  EXPECT_TRUE(request.one_call);
  EXPECT_TRUE(chat(R"("tools": [{"function": {"name": "f"}}], "tool_choice": "none")").tools.empty());
  EXPECT_TRUE(chat(R"("tools": [])").tools.empty());
}

TEST(ApiRequest, a_reply_may_have_to_be_a_call) {
  const std::string tools = R"("tools": [{"function": {"name": "f"}}, {"function": {"name": "g"}}])";
  EXPECT_EQ(chat(tools).tool_choice, ToolChoice::automatic);
  EXPECT_EQ(chat(tools + R"(, "tool_choice": "auto")").tool_choice, ToolChoice::automatic);
  EXPECT_EQ(chat(tools + R"(, "tool_choice": "none")").tool_choice, ToolChoice::none);
  const ApiRequest required = chat(tools + R"(, "tool_choice": "required")");
  EXPECT_EQ(required.tool_choice, ToolChoice::required);
  EXPECT_FALSE(required.one_call);
  const ApiRequest named = chat(tools + R"(, "tool_choice": {"type": "function", "function": {"name": "g"}})");
  EXPECT_EQ(named.tool_choice, ToolChoice::named);
  EXPECT_EQ(named.tool_named, "g");
  EXPECT_TRUE(named.one_call);
  EXPECT_EQ(named.tool_names.size(), 2u);
}

TEST(ApiRequest, log_probabilities_are_a_switch_in_chats_and_a_number_in_completions) {
  EXPECT_FALSE(chat("").logprobs);
  EXPECT_FALSE(chat(R"("logprobs": false, "top_logprobs": 0)").logprobs);
  EXPECT_EQ(chat(R"("logprobs": true)").logprobs, 0u);
  EXPECT_EQ(chat(R"("logprobs": true, "top_logprobs": 20)").logprobs, 20u);
  EXPECT_FALSE(completion(R"({"prompt": "a"})").logprobs);
  EXPECT_FALSE(completion(R"({"prompt": "a", "logprobs": null})").logprobs);
  EXPECT_EQ(completion(R"({"prompt": "a", "logprobs": 0})").logprobs, 0u);
  EXPECT_EQ(completion(R"({"prompt": "a", "logprobs": 20})").logprobs, 20u);
  for (const char* wrong : {"21", "-1", "1.5", "true", "\"1\""}) {
    SCOPED_TRACE(wrong);
    const ApiError error =
        refusal_of([&] { completion(std::string(R"({"prompt": "a", "logprobs": )") + wrong + "}"); });
    EXPECT_EQ(error.param, "logprobs");
    EXPECT_NE(std::string(error.what()).find("from 0 to 20"), std::string::npos) << error.what();
  }
  EXPECT_EQ(refusal_of([] { completion(R"({"prompt": "a", "top_logprobs": 2})"); }).param, "top_logprobs");
}

TEST(ApiRequest, several_replies_to_a_prompt) {
  EXPECT_EQ(chat("").replies, 1u);
  EXPECT_EQ(chat(R"("n": 8, "best_of": 8)").replies, 8u);
  EXPECT_EQ(completion(R"({"prompt": ["a", "b"], "n": 2})").replies, 2u);
}

TEST(ApiRequest, a_prompt_that_is_echoed_needs_no_reply) {
  EXPECT_EQ(completion(R"({"prompt": "a", "echo": true, "max_tokens": 0})").max_tokens, 0u);
  const ApiError error = refusal_of([] { completion(R"({"prompt": "a", "max_tokens": 0})"); });
  EXPECT_EQ(error.param, "max_tokens");
  EXPECT_NE(std::string(error.what()).find("from 1"), std::string::npos);
}

TEST(ApiRequest, thinking_is_switched_by_either_name) {
  EXPECT_FALSE(chat("").thinking);
  EXPECT_EQ(chat(R"("reasoning_effort": "none")").thinking, false);
  EXPECT_EQ(chat(R"("reasoning_effort": "high")").thinking, true);
  EXPECT_EQ(chat(R"("chat_template_kwargs": {"enable_thinking": false})").thinking, false);
}

TEST(ApiRequest, seeds_may_be_negative_and_minus_one_draws_one) {
  EXPECT_TRUE(chat(R"("seed": -2)").seed_given);
  EXPECT_FALSE(chat(R"("seed": -1)").seed_given);
  EXPECT_EQ(chat(R"("top_k": -1)").sampling.top_k, 0u);
}

TEST(ApiRequest, a_prompt_is_a_text_ids_or_a_list_of_either) {
  EXPECT_EQ(std::get<std::string>(completion(R"({"prompt": "a"})").prompts.at(0)), "a");
  EXPECT_EQ(std::get<1>(completion(R"({"prompt": [1, 2]})").prompts.at(0)), (std::vector<uint32_t>{1, 2}));
  const ApiRequest several = completion(R"({"prompt": ["a", [3]], "echo": true})");
  ASSERT_EQ(several.prompts.size(), 2u);
  EXPECT_EQ(std::get<1>(several.prompts[1]), std::vector<uint32_t>{3});
  EXPECT_TRUE(several.echo);
  for (const char* wrong : {"{}", R"({"prompt": ""})", R"({"prompt": []})", R"({"prompt": [1000]})",
                            R"({"prompt": [-1]})", R"({"prompt": [1, "a"]})", R"({"prompt": {"a": 1}})"}) {
    SCOPED_TRACE(wrong);
    EXPECT_EQ(refusal_of([&] { completion(wrong); }).param, "prompt");
  }
  EXPECT_EQ(refusal_of([] { completion(R"({"prompt": "a", "suffix": "b"})"); }).param, "suffix");
  EXPECT_EQ(refusal_of([] { completion(R"({"prompt": "a", "messages": []})"); }).param, "messages");
}

TEST(ApiRequest, what_is_no_json_is_refused_and_depth_is_bounded) {
  std::string deep = "{\"messages\": ";
  for (int i = 0; i < 100000; ++i) deep += '[';
  for (const std::string& body :
       {std::string(), std::string("{"), std::string("[]"), std::string("{\"messages\": \"\xff\"}"),
        std::string("{\"stop\": \"\\ud800\"}"), std::string("{\"n\": 1, \"n\": 1}"), deep}) {
    const ApiError error = refusal_of([&] { parse_chat_request(body, limits()); });
    EXPECT_EQ(error.status, 400);
    EXPECT_EQ(error.type, "invalid_request_error");
  }
}

TEST(ApiRequest, an_error_is_an_object_with_all_four_fields) {
  EXPECT_EQ(to_json(ApiError(404, "t", "Sentence.", "model", "c")).dump(),
            R"({"error":{"message":"Sentence.","type":"t","param":"model","code":"c"}})");
  EXPECT_EQ(to_json(ApiError(404, "t", "S.")).dump(),
            R"({"error":{"message":"S.","type":"t","param":null,"code":null}})");
}

}  // namespace
}  // namespace canopy
