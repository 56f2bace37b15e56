// The cases of chat.json through ChatTemplate; tests/text/jinja runs all of them without a tokenizer.

#include <gtest/gtest.h>

#include "engine/text/chat_template.h"
#include "tests/text/golden_text.h"

namespace canopy {
namespace {

using nlohmann::json;

std::vector<ChatTurn> turns_of(const json& conversation) {
  std::vector<ChatTurn> turns;
  for (const json& turn : conversation) turns.push_back({turn.at("role"), turn.at("content")});
  return turns;
}

std::string text_of(const std::vector<PromptPart>& parts) {
  std::string text;
  for (const PromptPart& part : parts) text += part.text;
  return text;
}

// Runs the cases of a template. tokenizer: the one whose ids the golden file has; null: compare texts only.
void expect_template(const std::string& name, const Tokenizer& any, const Tokenizer* tokenizer) {
  const json golden = golden::read_json("chat.json");
  const auto form = ChatTemplate::create(golden.at("templates").at(name).at("template").get<std::string>(), any);
  EXPECT_EQ(form->warning(), "");
  int compared = 0;
  for (const json& entry : golden.at("cases")) {
    if (entry.at("template") != name) continue;
    SCOPED_TRACE(entry.dump());
    const auto turns = turns_of(golden.at("conversations").at(entry.at("conversation").get<std::string>()));
    PromptOptions options{.add_generation_prompt = entry.at("add_generation_prompt")};
    if (entry.contains("enable_thinking")) options.enable_thinking = entry.at("enable_thinking").get<bool>();
    EXPECT_EQ(text_of(form->render(turns, options)), entry.at("text").get<std::string>());
    if (tokenizer != nullptr) {
      EXPECT_EQ(form->render_to_ids(turns, *tokenizer, options), entry.at("ids").get<std::vector<uint32_t>>());
    }
    ++compared;
  }
  EXPECT_GE(compared, 12);
}

TEST(ChatGolden, Tiny) {
  const auto tokenizer = golden::tiny_tokenizer();
  expect_template("tiny", *tokenizer, tokenizer.get());
}

TEST(ChatGolden, TextOfSmolLm2) {
  expect_template("smollm2", *golden::tiny_tokenizer(), nullptr);
}

TEST(ChatGolden, TextOfQwen3) {
  expect_template("qwen3", *golden::tiny_tokenizer(), nullptr);
}

TEST(ChatGolden, Tools) {
  const json golden = nlohmann::json::parse(golden::read_text(golden::folder() / "chat_tools.json"));
  const auto ordered = nlohmann::ordered_json::parse(golden::read_text(golden::folder() / "chat_tools.json"));
  const auto tokenizer = golden::tiny_tokenizer();
  ASSERT_FALSE(golden.at("cases").empty());
  for (const json& entry : golden.at("cases")) {
    SCOPED_TRACE(entry.at("template").get<std::string>());
    const auto form =
        ChatTemplate::create(golden.at("templates").at(entry.at("template")).get<std::string>(), *tokenizer);
    EXPECT_EQ(form->warning(), "");
    const size_t count = entry.at("tools");
    PromptOptions options;
    options.tools =
        (count == 1 ? nlohmann::ordered_json::array({ordered.at("tools").at(1)}) : ordered.at("tools")).dump();
    const auto turns = turns_of(golden.at("conversations").at(entry.at("conversation").get<std::string>()));
    EXPECT_EQ(text_of(form->render(turns, options)), entry.at("text").get<std::string>());
  }
}

// The licences of Llama's tokenizers keep them out of the repository.
class PublishedChatGolden : public testing::TestWithParam<const char*> {};

TEST_P(PublishedChatGolden, Ids) {
  const auto tokenizer = golden::published_tokenizer(GetParam());
  if (tokenizer == nullptr) GTEST_SKIP() << "the tokenizer of " << GetParam() << " is not on this machine";
  expect_template(GetParam(), *tokenizer, tokenizer.get());
}

INSTANTIATE_TEST_SUITE_P(Models, PublishedChatGolden, testing::Values("qwen3", "llama3_1", "llama2"),
                         [](const auto& test) { return std::string(test.param); });

TEST(ChatGolden, IdsOfSmolLm2) {
  const auto path = golden::default_model();
  if (path.empty()) GTEST_SKIP() << "the default model is not on this machine";
  const auto tokenizer = golden::gguf_tokenizer(path);
  expect_template("smollm2", *tokenizer, tokenizer.get());
  const json golden = golden::read_json("chat.json");
  EXPECT_EQ(tokenizer->chat_template(), golden.at("templates").at("smollm2").at("template").get<std::string>());
}

}  // namespace
}  // namespace canopy
