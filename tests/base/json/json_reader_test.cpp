#include "src/base/json/json_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "src/base/error.h"

namespace ferry {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

JsonReader read(std::string text) {
  return JsonReader::parse(std::move(text), {"dir/a.json", "test.read", "fetch it again"});
}

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::data);
    return error.what();
  }
  return "no error";
}

std::string nested(size_t depth, char open = '[', char close = ']') {
  return std::string(depth, open) + std::string(depth, close);
}

TEST(JsonReader, TakesValuesOut) {
  const JsonReader root = read(R"({"n": 3, "x": 0.5, "name": "é", "on": true, "none": null,
    "list": [{"a": 1}, {"a": 2}], "names": ["a", "b"], "negative": -4})");
  EXPECT_EQ(root.integer("n", 1, 3), 3);
  EXPECT_EQ(root.integer("negative", -4, 3), -4);
  EXPECT_EQ(root.number("x", 0, 1), 0.5);
  EXPECT_EQ(root.number("n", 0, 10), 3);
  EXPECT_EQ(root.text("name"), "é");
  EXPECT_TRUE(root.flag("on"));
  EXPECT_EQ(root.text("none", "fallback"), "fallback");
  EXPECT_EQ(root.at("list").size(), 2u);
  EXPECT_EQ(root.at("list").at(1).integer("a", 0, 9), 2);
  EXPECT_EQ(root.at("list").at(1).path(), "list[1]");
  EXPECT_EQ(root.at("list").at(0).only().first, "a");
  EXPECT_THAT(root.at("names").texts(), ElementsAre("a", "b"));
  EXPECT_FALSE(root.find("none"));
  EXPECT_FALSE(root.find("absent"));
}

TEST(JsonReader, RefusalsNameFileLineAndKey) {
  const JsonReader root = read(
      "{\n\"n\": 7,\n\"a\": {\n\"b\": [1,\n2, \"x\"]}, \"big\": 18446744073709551615,\n"
      "\"huge\": 99999999999999999999999\n, \"empty\": {}}\n");
  const JsonReader list = root.at("a").at("b");
  EXPECT_EQ(error_of([&] { root.integer("n", 8, 9); }),
            "[test.read] 'dir/a.json': line 2: n is 7, expected a whole number from 8 to 9 - fetch "
            "it again");
  EXPECT_THAT(error_of([&] { list.at(2).integer(0, 9); }),
              HasSubstr("line 5: a.b[2] is \"x\", expected a whole number from 0 to 9"));
  EXPECT_THAT(error_of([&] { list.at(1).text(); }), HasSubstr("line 5: a.b[1] is 2, expected a"));
  EXPECT_THAT(error_of([&] { list.at(3); }), HasSubstr("line 4: a.b has 3 items, expected more"));
  EXPECT_THAT(error_of([&] { root.at("a").at("c"); }),
              HasSubstr("line 3: a.c is missing, expected a value"));
  EXPECT_THAT(error_of([&] { root.integer("big", 0, INT64_MAX); }),
              HasSubstr("line 5: big is 18446744073709551615, expected"));
  EXPECT_THAT(error_of([&] { root.integer("huge", 0, INT64_MAX); }),
              HasSubstr("line 6: huge is 9.99"));
  EXPECT_THAT(error_of([&] { root.at("a").flag(); }), HasSubstr("expected true or false"));
  EXPECT_THAT(error_of([&] { root.at("n").find("x"); }), HasSubstr("n is 7, expected an object"));
  EXPECT_THAT(error_of([&] { root.at("a").size(); }), HasSubstr("expected a list"));
  EXPECT_THAT(error_of([&] { root.at("empty").only(); }), HasSubstr("has 0 fields, expected one"));
  EXPECT_THAT(error_of([] { read("[]").find("a"); }),
              HasSubstr("line 1: the whole is [], expected an object"));
  EXPECT_THAT(error_of([] {
                JsonReader::of({{"a", 1}}, {"made", "test", ""}).text("a");
              }),
              HasSubstr("'made': a is 1, expected a text"));
}

TEST(JsonReader, BrokenTextsAreFaultsWithTheirLine) {
  const struct {
    std::string text, expected;
  } broken[] = {
      {"", "line 1: unexpected end of input"},
      {"{\"a\":\n1", "line 2: unexpected end of input"},
      {"{\"a\": 1}\n x", "line 2: "},
      {"{\"a\": 1}" + std::string(1, '\0'), "line 1: has a NUL byte"},
      {"{\"a\n\": 1}", "line 1: "},
      {"\"\xff\"", "ill-formed UTF-8"},
      {"\"\xc0\xaf\"", "ill-formed UTF-8"},
      {"\"\\ud800\"", "surrogate"},
      {"[1e999]", "number overflow"},
      {"[NaN]", "line 1: "},
      {"[01]", "line 1: "},
      {"{\"a\": 1, \"b\": {\"c\": 1,\n\"c\": 2}}", "line 2: has 'c' twice"},
      {"[1,]", "line 1: "},
      {"/* no */ {}", "line 1: "},
      {nested(65), "line 1: nested deeper than 64"},
      {std::string(200'000, '['), "nested deeper than 64"},
      {nested(200'000), "nested deeper than 64"},
      {"{\"unknown\": " + nested(200'000) + "}", "nested deeper than 64"},
  };
  for (const auto& [text, expected] : broken)
    EXPECT_THAT(error_of([&] { read(text); }),
                ::testing::AllOf(HasSubstr("'dir/a.json' is not valid JSON: line "),
                                 HasSubstr(expected), HasSubstr("fetch it again")))
        << text.substr(0, 40);
  std::string deep;
  for (int i = 0; i < 200'000; ++i)
    deep += "{\"a\":";
  EXPECT_THAT(error_of([&] { read(deep); }), HasSubstr("nested deeper than 64"));
  EXPECT_NO_THROW(read(nested(64)));
}

TEST(JsonReader, WideObjectsTakeNoLongerThanTheyAreLong) {
  constexpr int kKeys = 100'000;  // 5e9 comparisons if each key were looked for in all before
  std::string text = "{";
  for (int i = 0; i < kKeys; ++i)
    text += "\"key" + std::to_string(i) + "\":1,";
  text.back() = '}';
  EXPECT_EQ(read(text).value().size(), static_cast<size_t>(kKeys));
  text.back() = ',';
  EXPECT_THAT(error_of([&] { read(text + "\"key7\":2}"); }), HasSubstr("has 'key7' twice"));
}

TEST(JsonReader, MakesTheValueThatNlohmannMakes) {
  for (const char* text :
       {"null", "[]", "{}", " 1 ", "-0", "-0.0", "[1,-2,3.5e-3,1e300,18446744073709551615]",
        R"({"b":[{"c":null},[[]],true],"a":"\u00e9\n","":{"x":{}}})", "\xef\xbb\xbf{\"bom\":1}"}) {
    nlohmann::ordered_json value;
    EXPECT_FALSE(parse_json(text, value)) << text;
    EXPECT_EQ(value.dump(), nlohmann::ordered_json::parse(text).dump());
  }
}

TEST(JsonReader, KnowsWhatNobodyAskedFor) {
  const JsonReader root = read(R"({"a": 1, "hidden_sise": 3, "b": {"c": 1}})");
  root.integer("a", 0, 9);
  root.find("absent");
  root.at("b");
  EXPECT_THAT(root.unread_keys(), ElementsAre("hidden_sise"));
  EXPECT_THAT(root.at("b").unread_keys(), ElementsAre("c"));
}

}  // namespace
}  // namespace ferry
