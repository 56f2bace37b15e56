// The templates of real models: every case of chat.json, tools, and every truncation of a template.

#include <random>

#include "tests/text/golden_text.h"
#include "tests/text/jinja/jinja_test.h"
#include "tests/text/jinja/work.h"

namespace canopy::jinja {
namespace {

const Json& golden_chat() {
  static const Json golden = Json::parse(golden::read_text(golden::folder() / "chat.json"));
  return golden;
}

// The variables that Hugging Face passes for a case.
Json values_of(const Json& entry) {
  const Json& model = golden_chat().at("templates").at(entry.at("template").get<std::string>());
  Json values = {{"messages", golden_chat().at("conversations").at(entry.at("conversation").get<std::string>())},
                 {"add_generation_prompt", entry.at("add_generation_prompt")},
                 {"bos_token", model.at("bos_token")},
                 {"eos_token", model.at("eos_token")}};
  if (entry.contains("enable_thinking")) values["enable_thinking"] = entry.at("enable_thinking");
  return values;
}

std::string template_named(const std::string& name) {
  return golden_chat().at("templates").at(name).at("template").get<std::string>();
}

TEST(JinjaGolden, EveryCase) {
  size_t cases = 0;
  for (const Json& entry : golden_chat().at("cases")) {
    SCOPED_TRACE(entry.at("template").get<std::string>() + ", " + entry.at("conversation").get<std::string>());
    const std::string source = template_named(entry.at("template").get<std::string>());
    if (entry.contains("error")) {
      EXPECT_NE(error_of(source, values_of(entry)), "");
    } else {
      EXPECT_EQ(rendered(source, values_of(entry)), entry.at("text").get<std::string>());
    }
    ++cases;
  }
  EXPECT_GT(cases, 0u);
}

TEST(JinjaGolden, Qwen3WithTools) {
  const Json values = Json::parse(R"j({
    "tools": [{"type": "function", "function": {"name": "add", "description": "Sums <a> & \"b\" — exactly",
               "parameters": {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}}}],
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1+2?"},
      {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "add", "arguments": {"a": 1, "b": 2.0}}},
                                                          {"name": "add", "arguments": "{\"a\": 3}"}]},
      {"role": "tool", "content": "3"}, {"role": "tool", "content": "4"}],
    "add_generation_prompt": true, "enable_thinking": false
  })j");
  EXPECT_EQ(rendered(template_named("qwen3"), values),
            "<|im_start|>system\n"
            "Be brief.\n"
            "\n"
            "# Tools\n"
            "\n"
            "You may call one or more functions to assist with the user query.\n"
            "\n"
            "You are provided with function signatures within <tools></tools> XML tags:\n"
            "<tools>\n"
            "{\"type\": \"function\", \"function\": {\"name\": \"add\", \"description\": \"Sums <a> & \\\"b\\\" — "
            "exactly\", \"parameters\": {\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"number\"}}, "
            "\"required\": [\"a\"]}}}\n"
            "</tools>\n"
            "\n"
            "For each function call, return a json object with function name and arguments within "
            "<tool_call></tool_call> XML tags:\n"
            "<tool_call>\n"
            "{\"name\": <function-name>, \"arguments\": <args-json-object>}\n"
            "</tool_call><|im_end|>\n"
            "<|im_start|>user\n"
            "1+2?<|im_end|>\n"
            "<|im_start|>assistant\n"
            "<tool_call>\n"
            "{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": 2.0}}\n"
            "</tool_call>\n"
            "<tool_call>\n"
            "{\"name\": \"add\", \"arguments\": {\"a\": 3}}\n"
            "</tool_call><|im_end|>\n"
            "<|im_start|>user\n"
            "<tool_response>\n"
            "3\n"
            "</tool_response>\n"
            "<tool_response>\n"
            "4\n"
            "</tool_response><|im_end|>\n"
            "<|im_start|>assistant\n"
            "<think>\n"
            "\n"
            "</think>\n"
            "\n");
}

// Checks that a damaged template ends in an error or a result, without much work.
void expect_survives(const std::string& source) {
  const Work work;
  try {
    rendered(source, values_of(golden_chat().at("cases").front()));
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("test, line "), std::string::npos) << error.what();
  }
  EXPECT_LT(work.of_all_steps(), most_work) << source;
}

TEST(JinjaMalformed, EveryTruncation) {
  size_t truncations = 0;
  for (const auto& [name, model] : golden_chat().at("templates").items()) {
    const std::string source = template_named(name);
    for (size_t size = 0; size < source.size(); ++size, ++truncations) expect_survives(source.substr(0, size));
  }
  EXPECT_GT(truncations, 300u);
}

TEST(JinjaMalformed, DamagedBytesAndMovedPieces) {
  std::mt19937 random(1);
  for (const auto& [name, model] : golden_chat().at("templates").items()) {
    const std::string source = template_named(name);
    for (int i = 0; i < 400; ++i) {
      std::string damaged = source;
      constexpr std::string_view replacements = "{}%#-+|.[]()'\"\\~ \n\x80\xff";
      damaged[random() % damaged.size()] = replacements[random() % replacements.size()];
      const std::string piece = source.substr(random() % source.size(), random() % 40);
      if (i % 2 == 0) damaged.insert(random() % damaged.size(), piece);
      expect_survives(damaged);
    }
  }
}

}  // namespace
}  // namespace canopy::jinja
