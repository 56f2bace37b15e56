#include "engine/serve/reply_parts.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "engine/text/chat_template.h"
#include "tests/text/golden_text.h"

namespace canopy {
namespace {

/// The parts of a text that comes in pieces of `size` bytes.
ReplyPart parts_of(const std::string& text, std::vector<std::string> tools = {}, bool begins_thinking = false,
                   size_t size = 1) {
  ReplyParts parts(std::move(tools), begins_thinking);
  ReplyPart whole;
  const auto add = [&](const ReplyPart& part) {
    whole.thinking += part.thinking;
    whole.answer += part.answer;
    whole.calls.insert(whole.calls.end(), part.calls.begin(), part.calls.end());
  };
  for (size_t at = 0; at < text.size(); at += size) add(parts.push(std::string_view(text).substr(at, size)));
  add(parts.finish());
  return whole;
}

/// The same whatever pieces the text comes in.
void expect_parts(const std::string& text, const std::string& thinking, const std::string& answer,
                  const std::vector<std::string>& tools = {}, bool begins_thinking = false) {
  for (const size_t size : {size_t{1}, size_t{2}, size_t{5}, text.size() + 1}) {
    SCOPED_TRACE(text + " in pieces of " + std::to_string(size));
    const ReplyPart parts = parts_of(text, tools, begins_thinking, size);
    EXPECT_EQ(parts.thinking, thinking);
    EXPECT_EQ(parts.answer, answer);
    EXPECT_TRUE(parts.calls.empty());
  }
}

void expect_call(const std::string& text, const std::string& name, const std::string& arguments,
                 const std::string& answer = "", size_t count = 1) {
  for (const size_t size : {size_t{1}, size_t{3}, text.size() + 1}) {
    SCOPED_TRACE(text + " in pieces of " + std::to_string(size));
    const ReplyPart parts = parts_of(text, {"f", "g"}, false, size);
    ASSERT_EQ(parts.calls.size(), count);
    EXPECT_EQ(parts.calls[0].name, name);
    EXPECT_EQ(parts.calls[0].arguments, arguments);
    EXPECT_EQ(parts.answer, answer);
  }
}

TEST(ReplyParts, a_plain_reply_is_all_answer_to_the_byte) {
  expect_parts("Hello, <b>world</b>.\n", "", "Hello, <b>world</b>.\n");
  expect_parts(" a", "", " a");
  expect_parts("<thin air>", "", "<thin air>");
  expect_parts("", "", "");
  expect_parts("a <think> b </think>", "", "a <think> b </think>");
}

TEST(ReplyParts, thinking_in_front_is_told_apart) {
  expect_parts("<think>\nhm\n\nso\n</think>\n\nYes.\n", "hm\n\nso", "Yes.\n");
  expect_parts("hm\n</think>\n\nYes.", "hm", "Yes.", {}, true);
  expect_parts("<think>\n\n</think>\n\nYes.", "", "Yes.");
  expect_parts("<think>never ends </thin", "never ends </thin", "");
}

TEST(ReplyParts, thinking_comes_as_it_is_written) {
  ReplyParts parts({}, true);
  EXPECT_EQ(parts.push("one two").thinking, "one two");
  EXPECT_EQ(parts.push(" </th").thinking, "");
  EXPECT_EQ(parts.push("an").thinking, " </than");
  EXPECT_EQ(parts.push("</think>\n\n").thinking, "");
  EXPECT_EQ(parts.push("Yes").answer, "Yes");
}

TEST(ReplyParts, channels_are_told_apart_already) {
  ReplyParts parts({}, false);
  EXPECT_EQ(parts.push_apart("hm", "").thinking, "hm");
  EXPECT_EQ(parts.push_apart("\n\n", "").thinking, "");
  const ReplyPart last = parts.push_apart("", "Yes <think>");
  EXPECT_EQ(last.thinking, "");
  EXPECT_EQ(last.answer, "Yes <think>");
}

TEST(ReplyParts, calls_behind_a_channel_are_read_in_the_answer) {
  ReplyParts parts({"f"}, false);
  EXPECT_EQ(parts.push_apart("hm", "").thinking, "hm");
  EXPECT_TRUE(parts.push_apart("", "{\"name\": \"f\", ").empty());
  EXPECT_TRUE(parts.push_apart("", "\"arguments\": {}}").empty());
  const ReplyPart last = parts.finish();
  ASSERT_EQ(last.calls.size(), 1u);
  EXPECT_EQ(last.calls[0].name, "f");
}

TEST(ReplyParts, calls_of_hermes_and_qwen) {
  expect_call("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>", "f", R"({"x":1})");
  expect_call("Let me look.\n\n<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", "f", "{}", "Let me look.");
  expect_call("<tool_call>{\"name\": \"f\"}</tool_call>\n<tool_call>{\"name\": \"g\"}</tool_call>", "f", "{}", "", 2);
  // The end is missing where a stop token came first.
  expect_call("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n", "f", R"({"x":1})");
  expect_call(
      "<tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n<parameter=y>\na b\n</parameter>\n</function>\n"
      "</tool_call>",
      "f", R"({"x":1,"y":"a b"})");
}

TEST(ReplyParts, calls_behind_thinking) {
  const ReplyPart parts = parts_of("<think>hm</think>\n\n<tool_call>{\"name\": \"f\"}</tool_call>", {"f"});
  EXPECT_EQ(parts.thinking, "hm");
  EXPECT_EQ(parts.answer, "");
  EXPECT_EQ(parts.calls.size(), 1u);
}

TEST(ReplyParts, calls_of_llama_mistral_phi_and_gemma) {
  expect_call(R"({"name": "f", "parameters": {"x": "a"}})", "f", R"({"x":"a"})");
  expect_call(R"({"name": "f", "parameters": {}}; {"name": "g", "parameters": {}})", "f", "{}", "", 2);
  expect_call(R"(<|python_tag|>{"name": "f", "parameters": {}})", "f", "{}");
  expect_call(R"([TOOL_CALLS] [{"name": "f", "arguments": {"x": [1, "]"]}}])", "f", R"({"x":[1,"]"]})");
  expect_call(R"(functools[{"name": "f", "arguments": {}}])", "f", "{}");
  expect_call(R"(<|tool_call|>[{"name": "f", "arguments": {}}]<|/tool_call|>)", "f", "{}");
  expect_call("```json\n{\"name\": \"f\", \"parameters\": {\"x\": 1}}\n```", "f", R"({"x":1})");
}

TEST(ReplyParts, calls_of_gemma_4) {
  expect_call("<|tool_call>call:f{x:1}<tool_call|>", "f", R"({"x":1})");
  expect_call("<|tool_call>call:f{}<tool_call|>", "f", "{}");
  expect_call("I look.\n<|tool_call>call:f{x:<|\"|>a \"b\", {c}<tool_call|><|\"|>}<tool_call|>", "f",
              R"({"x":"a \"b\", {c}<tool_call|>"})", "I look.");
  expect_call("<|tool_call>call:f{x:true}<tool_call|><|tool_call>call:g{}<tool_call|>", "f", R"({"x":true})", "", 2);
  // The end is missing where a stop token came first.
  expect_call("<|tool_call>call:f{x:[<|\"|><|\"|>,{y:None,<|\"|>k z<|\"|>:-2.5}]}", "f",
              R"({"x":["",{"y":null,"k z":-2.5}]})");
  // What the model was not taught, and writes now and then.
  expect_call("<|tool_call> call:f{ \"x\": \"a\\\"}\" , y : Oslo }<tool_call|>", "f", R"({"x":"a\"}","y":"Oslo"})");
}

TEST(ReplyParts, calls_of_gemma_4_are_read_as_a_template_of_that_form_writes_them) {
  const auto tokenizer = golden::tiny_tokenizer();
  const auto form = ChatTemplate::create(
      "{% macro as_written(value) %}{% if value is string %}<|\"|>{{ value }}<|\"|>{% elif value is boolean %}"
      "{{ value | tojson }}{% elif value is mapping %}{{ '{' }}{% for k in value %}{{ k }}:{{ as_written(value[k]) }}"
      "{{ ',' if not loop.last }}{% endfor %}{{ '}' }}{% elif value is iterable %}[{% for each in value %}"
      "{{ as_written(each) }}{{ ',' if not loop.last }}{% endfor %}]{% else %}{{ value }}{% endif %}{% endmacro %}"
      "{% for m in messages %}{{ m.content }}{% for t in m.tool_calls or [] %}<|tool_call>call:{{ t.function.name }}"
      "{{ as_written(t.function.arguments) }}<tool_call|>{% endfor %}{% endfor %}",
      *tokenizer);
  ASSERT_EQ(form->warning(), "");
  for (const char* arguments : {
           R"({})",
           R"({"city":"Zürich \"a\" {b}: c, [d] <tool_call|>","days":3,"detail":0.25,"now":true,"unit":null})",
           R"({"nested":{"empty":{},"list":[1,"two",[],[false,{"x":"1"}]],"text":"line\n\tand line"}})",
           R"({"a":"","b":" ","c":"true","d":"12","e":"None","f":-1e300})",
       }) {
    ChatTurn turn{"assistant", "I look."};
    turn.fields = R"({"tool_calls":[{"function":{"name":"f","arguments":)" + std::string(arguments) +
                  R"(}},{"function":{"name":"g","arguments":{"z":1}}}]})";
    std::string text;
    for (const PromptPart& part : form->render(std::span(&turn, 1))) text += part.text;
    ASSERT_TRUE(text.starts_with("I look.<|tool_call>call:f{")) << text;
    const auto wanted = nlohmann::ordered_json::parse(arguments);
    for (const size_t size : {size_t{1}, size_t{4}, text.size()}) {
      SCOPED_TRACE(text);
      const ReplyPart parts = parts_of(text, {"f", "g"}, false, size);
      EXPECT_EQ(parts.answer, "I look.");
      ASSERT_EQ(parts.calls.size(), 2u);
      EXPECT_EQ(parts.calls[0].name, "f");
      EXPECT_EQ(nlohmann::ordered_json::parse(parts.calls[0].arguments), wanted);
      EXPECT_EQ(parts.calls[1].arguments, R"({"z":1})");
    }
  }
}

TEST(ReplyParts, a_call_of_gemma_4_is_told_when_it_is_whole) {
  ReplyParts parts({"f"}, false);
  EXPECT_EQ(parts.push_apart("hm", "").thinking, "hm");
  EXPECT_TRUE(parts.push_apart("", "<|tool_call>call:f{x:<|\"|>a<tool_call|>").empty());
  const ReplyPart whole = parts.push_apart("", "<|\"|>}<tool_call|>");
  ASSERT_EQ(whole.calls.size(), 1u);
  EXPECT_EQ(whole.calls[0].arguments, R"({"x":"a<tool_call|>"})");
  EXPECT_TRUE(parts.finish().empty());
}

TEST(ReplyParts, arguments_may_be_a_text_of_json) {
  expect_call(R"({"name": "f", "arguments": "{\"x\": 1}"})", "f", R"({"x": 1})");
}

TEST(ReplyParts, what_only_looks_like_a_call_is_answer) {
  const std::vector<std::string> tools = {"f"};
  expect_parts(R"({"name": "other", "parameters": {}})", "", R"({"name": "other", "parameters": {}})", tools);
  expect_parts(R"({"a": 1} is JSON)", "", R"({"a": 1} is JSON)", tools);
  expect_parts("[1, 2]", "", "[1, 2]", tools);
  expect_parts("<tool_call>not json</tool_call>!", "", "<tool_call>not json</tool_call>!", tools);
  expect_parts("function f", "", "function f", tools);
  for (const char* text :
       {"<|tool_call>call:f{x:<|\"|>a}<tool_call|>", "<|tool_call>call:f{x:1", "<|tool_call>call:f{x}<tool_call|>",
        "<|tool_call>call:{}<tool_call|>", "<|tool_call>f{}<tool_call|>", "<|tool_call>call:f{x:[1}<tool_call|>",
        "<|tool_call>call:f{} more<tool_call|>", "<|tool_call>call:f{x:\"a}<tool_call|>", "a <|tool_c"})
    expect_parts(text, "", text, tools);
  expect_parts("a < b and <tool", "", "a < b and <tool", tools);
  expect_parts("two\n\nparagraphs \n", "", "two\n\nparagraphs \n", tools);
  // Without tools nothing is a call.
  expect_parts("<tool_call>{\"name\": \"f\"}</tool_call>", "", "<tool_call>{\"name\": \"f\"}</tool_call>");
}

TEST(ReplyParts, a_call_that_the_prompt_began_is_one_and_else_is_answer) {
  const auto begun = [](const std::string& opening, const std::string& reply) {
    ReplyParts parts({"f"}, false);
    EXPECT_TRUE(parts.push(opening).empty());
    EXPECT_EQ(parts.held(), opening.size());
    ReplyPart whole = parts.push(reply);
    const ReplyPart rest = parts.finish();
    EXPECT_EQ(parts.held(), 0u);
    whole.answer += rest.answer;
    whole.calls.insert(whole.calls.end(), rest.calls.begin(), rest.calls.end());
    return whole;
  };
  for (const auto& [opening, reply] :
       {std::pair{"<tool_call>\n{\"name\": \"", "f\", \"arguments\": {\"x\": 1}}\n</tool_call>"},
        {"<tool_call>\n{\"name\": \"f\", \"arguments\":", " {\"x\": 1}}\n</tool_call>"},
        {"{\"name\": \"f\", \"parameters\":", " {\"x\": 1}}"},
        {"<|tool_call>call:", "f{x:1}<tool_call|>"},
        {"<|tool_call>call:f", "{x:1}<tool_call|>"}}) {
    SCOPED_TRACE(opening);
    const ReplyPart parts = begun(opening, reply);
    ASSERT_EQ(parts.calls.size(), 1u);
    EXPECT_EQ(parts.calls[0].name, "f");
    EXPECT_EQ(parts.calls[0].arguments, R"({"x":1})");
    EXPECT_EQ(parts.answer, "");
    const ReplyPart broken = begun(opening, "cut");
    EXPECT_TRUE(broken.calls.empty());
    EXPECT_EQ(broken.answer, std::string(opening) + "cut");
  }
}

TEST(ReplyParts, an_answer_is_not_held_back_without_need) {
  ReplyParts parts({"f"}, false);
  EXPECT_EQ(parts.push("Hello").answer, "Hello");
  EXPECT_EQ(parts.push(" you").answer, " you");
}

TEST(ReplyParts, what_never_ends_costs_no_more_than_its_length) {
  for (std::string deep : {"{\"name\": ", "<|tool_call>call:f{x:"}) {
    for (int i = 0; i < 20000; ++i) deep += '[';
    EXPECT_EQ(parts_of(deep, {"f"}, false, 4096).answer, deep);
  }
}

}  // namespace
}  // namespace canopy
