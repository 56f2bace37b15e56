// MeasuredPrompt files: those in assets can be read, and damaged ones are refused with the number of the line.

#include "engine/bench/prompt_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <thread>

#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"

namespace canopy {
namespace {

using test::TempFolder;

std::vector<MeasuredPrompt> shipped(const std::string& name) {
  return read_prompts(std::filesystem::path(CANOPY_SOURCE_DIR) / "assets" / "prompts" / name);
}

TEST(PromptFile, ReadsTheShippedFiles) {
  for (const auto& [name, category] : std::map<std::string, std::string>{
           {"bench_gsm.jsonl", "gsm"}, {"bench_he.jsonl", "he"}, {"bench_math.jsonl", "math"}}) {
    const std::vector<MeasuredPrompt> prompts = shipped(name);
    ASSERT_EQ(prompts.size(), 10u) << name;
    EXPECT_EQ(prompts.front().id, category + "_01");
    EXPECT_EQ(prompts.back().id, category + "_10");
    for (const MeasuredPrompt& prompt : prompts) {
      EXPECT_EQ(prompt.category, category);
      EXPECT_GT(prompt.text.size(), 20u) << prompt.id;
    }
  }
  const std::vector<MeasuredPrompt> talk = shipped("mt_bench.jsonl");
  ASSERT_EQ(talk.size(), 80u);
  EXPECT_EQ(talk.front().id, "81");
  EXPECT_EQ(talk.front().text.find("Compose an engaging travel blog post"), 0u);
  std::map<std::string, int> categories;
  for (const MeasuredPrompt& prompt : talk) ++categories[prompt.category];
  ASSERT_EQ(categories.size(), 8u);
  for (const auto& [category, count] : categories) EXPECT_EQ(count, 10) << category;
}

TEST(PromptFile, ReadsEveryFormOfLine) {
  const TempFolder folder;
  const auto path = folder.write("mine.jsonl",
                                 "{\"id\":7,\"prompt\":\"one\"}\r\n\n"
                                 R"({"id":"b","suite":"s","messages":[{"role":"system","content":"be kind"},)"
                                 R"({"role":"user","content":"two\nlines"}]})"
                                 "\n"
                                 R"({"id":"c","category":"k","suite":"s","turns":["three","four"]})"
                                 "\n"
                                 R"({"id":"d","messages":[{"role":"user","content":)"
                                 R"([{"type":"text","text":"five"},{"text":"six"}]}]})");
  const std::vector<MeasuredPrompt> prompts = read_prompts(path);
  ASSERT_EQ(prompts.size(), 4u);
  EXPECT_EQ(prompts[3].text, "five\nsix");
  EXPECT_EQ(prompts[0].id, "7");
  EXPECT_EQ(prompts[0].category, "mine");
  EXPECT_EQ(prompts[0].text, "one");
  EXPECT_EQ(prompts[1].category, "s");
  EXPECT_EQ(prompts[1].text, "two\nlines");
  EXPECT_EQ(prompts[2].category, "k");
  EXPECT_EQ(prompts[2].text, "three");
}

TEST(PromptFile, ReadsPipesAndTextsWithAMark) {
  const TempFolder folder;
  const std::string line = "{\"id\":7,\"prompt\":\"one\"}\n";
  EXPECT_EQ(read_prompts(folder.write("mark.jsonl", "\xEF\xBB\xBF" + line)).at(0).text, "one");
  const auto pipe = folder.path() / "pipe.jsonl";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  // Named it is read; in a folder, where nobody asked for it, it would wait for ever.
  EXPECT_EQ(read_all_prompts({folder.path()}).size(), 1u);
  std::jthread writer([&] { std::ofstream(pipe) << line << std::flush; });
  EXPECT_EQ(read_prompts(pipe).at(0).text, "one");
  test::expect_error("latin.jsonl is not in UTF-8: byte 20",
                     [&] { read_prompts(folder.write("latin.jsonl", "{\"id\":7,\"prompt\":\"on\xE9\"}")); });
}

TEST(PromptFile, SaysWhatIsWrongAndWhere) {
  const TempFolder folder;
  const auto refused = [&](const std::string& content, const std::string& words) {
    const auto path = folder.write("p.jsonl", content);
    test::expect_error(words, [&] { read_prompts(path); });
  };
  const std::string good = "{\"id\":\"a\",\"prompt\":\"x\"}\n";
  refused("", "has no prompts.");
  refused("\n \n", "has no prompts.");
  refused(good + "{", "p.jsonl, line 2: The line is not valid JSON");
  refused(good + "[]", "line 2: The line must be a JSON object");
  refused(good + "\n" + good, "line 3: The id 'a' is there twice.");
  refused("{\"prompt\":\"x\"}", "The line lacks the field 'id'");
  refused("{\"id\":[],\"prompt\":\"x\"}", "The field 'id' of the line is an array; a string is expected.");
  refused("{\"id\":\"\",\"prompt\":\"x\"}", "The field 'id' is empty.");
  refused("{\"id\":1}", "has none of the fields 'messages', 'turns' and 'prompt'.");
  refused("{\"id\":1,\"prompt\":\"\"}", "The prompt '1' is empty.");
  refused("{\"id\":1,\"prompt\":2}", "The field 'prompt' of the line is 2; a string is expected.");
  refused("{\"id\":1,\"turns\":[]}", "'turns' must be a list that begins with a string.");
  refused("{\"id\":1,\"turns\":[1]}", "'turns' must be a list that begins with a string.");
  refused("{\"id\":1,\"messages\":[]}", "has no message of the role 'user'.");
  refused("{\"id\":1,\"messages\":[1]}", "must be a JSON object");
  refused("{\"id\":1,\"messages\":[{\"role\":\"user\"}]}", "lacks the field 'content'");
  refused(R"({"id":1,"messages":[{"role":"user","content":[{"type":"image_url"}]}]})",
          "The field 'content' has a part of the type 'image_url'; only text is allowed.");
  refused("{\"id\":1,\"prompt\":\"x\",\"category\":3}", "The field 'category' of the line is 3; a string is expected.");
  test::expect_error("does not exist", [&] { read_prompts(folder.path() / "none.jsonl"); });
}

}  // namespace
}  // namespace canopy
