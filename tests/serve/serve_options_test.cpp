#include <gtest/gtest.h>

#include <string>

#include "engine/base/error.h"
#include "engine/serve/model_server.h"

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
    options.key.clear();
    expect_options_refused(options, "give a key");
    options.key = "long-enough";
    EXPECT_NO_THROW(validate(options)) << host;
  }
}

TEST(ServeOptions, keys_and_origins_that_could_not_work_are_refused) {
  ServeOptions options;
  options.key = "short";
  expect_options_refused(options, "at least 8");
  options.key = "with a blank";
  expect_options_refused(options, "without blanks");
  options.key.clear();
  for (const char* origin : {"*", "chat.example", "https://", "https://a/b", "https://*.example"}) {
    options.origins = {origin};
    expect_options_refused(options, "origin");
  }
  options.origins = {"https://chat.example", "http://localhost:3000"};
  EXPECT_NO_THROW(validate(options));
}

TEST(ServeOptions, keys_are_compared_whole) {
  EXPECT_TRUE(same_key("abcdefgh", "abcdefgh"));
  for (const char* given : {"", "abcdefg", "abcdefghi", "abcdefgx", "xbcdefgh", "abcdefghabcdefgh"})
    EXPECT_FALSE(same_key("abcdefgh", given)) << given;
  EXPECT_FALSE(same_key("", ""));
}

TEST(ServeOptions, a_model_has_the_name_of_its_file) {
  EXPECT_EQ(served_name("Qwen3-4B.gguf"), "Qwen3-4B");
  EXPECT_EQ(served_name("folder"), "folder");
}

}  // namespace
}  // namespace canopy
