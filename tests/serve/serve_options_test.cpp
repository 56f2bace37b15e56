#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/serve/serve_options.h"

namespace canopy {
namespace {

void expect_options_refused(const ServeOptions& options, const std::string& words) {
  try {
    validate(options);
    ADD_FAILURE() << "accepted; expected: " << words;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST(ServeOptions, only_this_machine_is_served_without_a_key) {
  ServeOptions options;
  EXPECT_NO_THROW(validate(options));
  for (const char* host : {"localhost", "127.0.0.1", "127.8.9.10", "::1"}) {
    options.address.host = host;
    EXPECT_NO_THROW(validate(options)) << host;
  }
  for (const char* host : {"0.0.0.0", "::", "192.168.1.2", "127.0.0.1.example", "example.org", ""}) {
    options.address.host = host;
    options.keys.clear();
    expect_options_refused(options, "give a key");
    options.keys = {{"long-enough", ""}};
    EXPECT_NO_THROW(validate(options)) << host;
  }
}

TEST(ServeOptions, keys_origins_and_names_that_could_not_work_are_refused) {
  ServeOptions options;
  options.keys = {{"short", ""}};
  expect_options_refused(options, "The key must have at least 8");
  options.keys = {{"with a blank", ""}};
  expect_options_refused(options, "without blanks");
  options.keys = {{"long-enough", ""}, {"", "the second"}};
  expect_options_refused(options, "Key 2 must have at least 8");
  options.keys = {{"long-enough", "a"}, {"another-one", ""}, {"long-enough", "b"}};
  expect_options_refused(options, "Key 3 is the same as key 1");
  options.keys.assign(kMostKeys + 1, {"long-enough", ""});
  expect_options_refused(options, "at most 1000");
  options.keys = {{"long-enough", ""}, {"another-one", ""}};
  EXPECT_NO_THROW(validate(options));
  options.keys.clear();
  for (const char* origin : {"*", "chat.example", "https://", "https://a/b", "https://*.example"}) {
    options.origins = {origin};
    expect_options_refused(options, "origin");
  }
  options.origins = {"https://chat.example", "http://localhost:3000"};
  EXPECT_NO_THROW(validate(options));
  for (const char* host : {"", "::"}) {
    options.hosts = {"box.lan", host};
    expect_options_refused(options, "is no name of a host");
  }
  options.hosts = {"box.lan", "Box.lan:8737"};
  EXPECT_NO_THROW(validate(options));
}

TEST(ServeOptions, keys_are_compared_whole) {
  EXPECT_TRUE(same_key("abcdefgh", "abcdefgh"));
  for (const char* given : {"", "abcdefg", "abcdefghi", "abcdefgx", "xbcdefgh", "abcdefghabcdefgh"})
    EXPECT_FALSE(same_key("abcdefgh", given)) << given;
  EXPECT_FALSE(same_key("", ""));
}

TEST(ServeOptions, a_file_has_a_key_a_line) {
  EXPECT_TRUE(parse_keys("").empty());
  EXPECT_TRUE(parse_keys("\n \t\r\n# editor secret-key\n").empty());
  const std::vector<ServeKey> keys = parse_keys("\n  first-key\r\nmy editor\t second-key \n#none\nlast-key");
  ASSERT_EQ(keys.size(), 3u);
  EXPECT_EQ(keys[0].key, "first-key");
  EXPECT_EQ(keys[0].name, "");
  EXPECT_EQ(keys[1].key, "second-key");
  EXPECT_EQ(keys[1].name, "my editor");
  EXPECT_EQ(keys[2].key, "last-key");
}

TEST(ServeOptions, a_model_has_the_name_of_its_file) {
  EXPECT_EQ(served_name("Qwen3-4B.gguf"), "Qwen3-4B");
  EXPECT_EQ(served_name("folder"), "folder");
}

}  // namespace
}  // namespace canopy
