#include "engine/format/json_text.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/base/expect_error.h"

namespace canopy {
namespace {

using test::expect_error;

std::string nested(int depth) {
  return std::string(static_cast<size_t>(depth), '[') + std::string(static_cast<size_t>(depth), ']');
}

TEST(JsonText, BoundsTheDepth) {
  EXPECT_NO_THROW(parse_json(nested(max_json_depth), "f"));
  expect_error("f is nested more than 64 levels deep.", [] { parse_json(nested(max_json_depth + 1), "f"); });
  expect_error("nested more than 64", [] { parse_json(nested(1'000'000), "f"); });
  expect_error("nested more than 64", [] { parse_json(std::string(1'000'000, '['), "f"); });
  std::string objects;
  for (int i = 0; i < 3000; ++i) objects += R"({"a":)";
  expect_error("nested more than 64", [&] { parse_json(objects, "f"); });
}

TEST(JsonText, RefusesWhatIsNoJson) {
  const auto refused = [](const std::string& text, const std::string& why) {
    const std::string message = test::error_of([&] { parse_json(text, "f"); });
    EXPECT_EQ(message, "f is not valid JSON: " + why + ".");
  };
  refused("", "it ends too early, at line 1, column 1");
  refused("{\"a\":\n 1", "it ends too early, at line 2, column 3");
  refused("{\"a\":\n1,}", "at line 2, column 3 it has '}', which cannot stand there");
  refused("{} trailing", "at line 1, column 6 it has 'a', which cannot stand there");
  refused("[\"\xff\"]", "at line 1, column 3 it has '\xEF\xBF\xBD', which cannot stand there");
  refused("[\"a\nb\"]", "at line 1, column 4 it has '\\n', which cannot stand there");
  refused("[NaN]", "at line 1, column 2 it has 'N', which cannot stand there");
  refused("[1e999]", "a number in it is too large");
}

TEST(JsonText, TakesInfinitiesOfPythonInConfigurationsAlone) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto json = parse_config_json(
      R"({"limit":[0.0, Infinity,-Infinity],"Infinity":"\"Infinity\\","x":Infinity,"n":9.8e307,"m":-3})", "f");
  EXPECT_EQ(json["limit"], (nlohmann::json{0.0, infinity, -infinity}));
  EXPECT_EQ(json["Infinity"], "\"Infinity\\");
  EXPECT_EQ(json["x"], infinity);
  EXPECT_EQ(json["n"], 9.8e307);
  EXPECT_EQ(json["m"], -3);
  EXPECT_EQ(parse_config_json(R"(["Infinity"])", "f")[0], "Infinity");
  expect_error("f is not valid JSON: at line 1, column 3", [] { parse_json("[ Infinity]", "f"); });
  const auto refused = [](const std::string& text, const std::string& place) {
    expect_error("f is not valid JSON: at line 1, column " + place, [&] { parse_config_json(text, "f"); });
  };
  refused("[Infinity, NaN]", "12 it has 'N'");
  refused("[Infinityx]", "10 it has 'x'");
  refused("[1Infinity]", "3 it has 'I'");
  refused("[+Infinity]", "2 it has '+'");
  refused("{Infinity:1}", "2");
  expect_error("f is nested more than 64 levels deep.",
               [] { parse_config_json(nested(max_json_depth + 1) + "Infinity", "f"); });
}

TEST(JsonText, FindsDuplicateKeysPerObject) {
  EXPECT_EQ(parse_json(R"({"a":1,"a":2})", "f")["a"], 2);
  expect_error("f has the key 'a' twice.", [] { parse_json(R"({"a":1,"a":2})", "f", DuplicateKeys::refuse); });
  EXPECT_NO_THROW(parse_json(R"({"a":{"a":1},"b":{"a":[{"a":1},{"a":2}]}})", "f", DuplicateKeys::refuse));
}

TEST(JsonFields, NameTheFieldAndItsValue) {
  const auto json = parse_json(R"({"n":-1,"t":"x","f":1.5,"z":null,"big":4294967296,"l":[1,"a"],"o":{}})", "f");
  const JsonFields fields(json, "config.json");
  expect_error("The field 'n' of config.json is -1; a whole number from 0 to 4294967295 is expected.",
               [&] { fields.u32("n"); });
  expect_error("The field 'f' of config.json is 1.5; a whole number", [&] { fields.u32("f"); });
  expect_error("'big' of config.json is 4294967296", [&] { fields.u32("big"); });
  expect_error("'t' of config.json is \"x\"; a number", [&] { fields.number("t"); });
  expect_error("'n' of config.json is -1; true or false", [&] { fields.boolean_or("n", false); });
  expect_error("'n' of config.json is -1; a string", [&] { fields.text_or("n", ""); });
  expect_error("'o' of config.json is an object; a whole number", [&] { fields.u32("o"); });
  expect_error("'t' of config.json is \"x\"; an object", [&] { fields.object("t"); });
  expect_error("'l' of config.json is \"a\"; a whole number", [&] { fields.ids("l"); });
  expect_error("config.json lacks the field 'z'.", [&] { fields.u32("z"); });
  EXPECT_EQ(fields.u32_or("z", 7), 7u);
  const auto infinite = parse_config_json(R"({"f":Infinity,"n":-Infinity})", "f");
  const JsonFields beyond(infinite, "config.json");
  expect_error("The field 'f' of config.json is Infinity; a number is expected.", [&] { beyond.number("f"); });
  expect_error("The field 'n' of config.json is -Infinity; a whole number", [&] { beyond.u32("n"); });
  expect_error("x must be a JSON object, but is an array.", [] { JsonFields(nlohmann::json::array(), "x"); });
}

}  // namespace
}  // namespace canopy
