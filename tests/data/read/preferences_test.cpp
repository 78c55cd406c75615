// Prompts with two answers, in the forms that people have them.

#include <gmock/gmock.h>

#include "src/chat/conversation.h"
#include "src/data/read/reader.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PreferencesTest : public ::testing::Test {
 protected:
  Dataset read(std::string_view text, DatasetOptions options = {}) {
    options.path = dir_.write("pairs.jsonl", text);
    options.rows = RowForm::preferences;
    return read_dataset(options);
  }
  Example one(std::string_view row, DatasetOptions options = {}) {
    return read(row, std::move(options)).examples.at(0);
  }
  std::string error(std::string_view row) {
    return test::error_of([&] { read(row); });
  }

  test::TempDir dir_;
};

/** "user: Hi | assistant: Hello"; an answer that is not learnt has a star. */
std::string said(std::string_view packed) {
  std::string all;
  for (const chat::Turn& turn : chat::unpacked(packed).turns)
    all += (all.empty() ? "" : " | ") + turn.role +
           (turn.is_answer() && !turn.is_trained ? "*" : "") + ": " + turn.text.value();
  return all;
}

TEST_F(PreferencesTest, TextsStandAsTheyAre) {
  const Example pair =
      one(R"({"prompt": "Sky? ", "chosen": "Blue.", "rejected": "Green.", "margin": 0.5})");
  EXPECT_EQ(pair.text, "Sky? ");
  EXPECT_EQ(pair.text_pair, "Blue.");
  EXPECT_EQ(pair.rejected, "Green.");
  EXPECT_EQ(pair.margin, 0.5f);
  EXPECT_FALSE(pair.is_chat);
}

TEST_F(PreferencesTest, APromptInsideBothAnswersIsTakenOut) {
  const Example inside =
      one(R"({"prompt": "Sky? ", "chosen": "Sky? Blue.", "rejected": "Sky? Green."})");
  EXPECT_EQ(inside.text, "Sky? ");
  EXPECT_EQ(inside.text_pair, "Blue.");
  EXPECT_EQ(inside.rejected, "Green.");
  const Example implicit = one(R"({"chosen": "\n\nHuman: Sky?\n\nAssistant: Blue.", )"
                               R"("rejected": "\n\nHuman: Sky?\n\nAssistant: Green."})");
  EXPECT_EQ(implicit.text, "\n\nHuman: Sky?\n\nAssistant:");
  EXPECT_EQ(implicit.text_pair, " Blue.");
  EXPECT_EQ(implicit.rejected, " Green.");
}

TEST_F(PreferencesTest, InstructionsHaveTheirInputBelow) {
  const Example pair =
      one(R"({"instruction": "Add.", "input": "1 2", "chosen": "3", "rejected": "4"})");
  EXPECT_EQ(pair.text, "Add.\n1 2");
  EXPECT_EQ(pair.text_pair, "3");
}

TEST_F(PreferencesTest, ChatsLearnTheLastAnswer) {
  const std::string turns =
      R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"},
      {"role": "user", "content": "Sky?"}])";
  const std::string blue = R"({"role": "assistant", "content": "Blue."})",
                    green = R"({"role": "assistant", "content": "Green."})";
  const std::string prompt = "user: Hi | assistant*: Hello | user: Sky? | assistant: ";
  std::string row =
      R"({"prompt": )" + turns + R"(, "chosen": [)" + blue + R"(], "rejected": [)" + green + "]}";
  std::erase(row, '\n');
  const Example pair = one(row);
  EXPECT_TRUE(pair.is_chat);
  EXPECT_EQ(said(pair.text), prompt + "Blue.");
  EXPECT_EQ(said(pair.rejected.value()), prompt + "Green.");

  // The prompt is a text, and stands in the answers, too.
  const Example feedback =
      one(R"({"prompt": "Sky?", "chosen": [{"role": "user", "content": "Sky?"}, )" + blue +
          R"(], "rejected": [{"role": "user", "content": "Sky?"}, )" + green + "]}");
  EXPECT_EQ(said(feedback.text), "user: Sky? | assistant: Blue.");
  // It stands in the answers alone.
  const Example implicit =
      one(R"({"chosen": [{"role": "user", "content": "Sky?"}, )" + blue +
          R"(], "rejected": [{"role": "user", "content": "Sky?"}, )" + green + "]}");
  EXPECT_EQ(said(implicit.rejected.value()), "user: Sky? | assistant: Green.");
}

TEST_F(PreferencesTest, OpenAIsAndShareGptsFormsAreRead) {
  const Example openai =
      one(R"({"input": {"messages": [{"role": "user", "content": "Sky?"}]}, )"
          R"("preferred_output": [{"role": "assistant", "content": "Blue."}], )"
          R"("non_preferred_output": [{"role": "assistant", "content": "Green."}]})");
  EXPECT_EQ(said(openai.text), "user: Sky? | assistant: Blue.");
  EXPECT_EQ(said(openai.rejected.value()), "user: Sky? | assistant: Green.");
  const Example sharegpt = one(
      R"({"conversations": [{"from": "human", "value": "Sky?"}], "system": "Be short.", )"
      R"("chosen": {"from": "gpt", "value": "Blue."}, "rejected": {"from": "gpt", "value": "Green."}})");
  EXPECT_EQ(said(sharegpt.text), "system: Be short. | user: Sky? | assistant: Blue.");
}

TEST_F(PreferencesTest, TextsAreChatsWhereATemplateIsNamed) {
  DatasetOptions options;
  options.prompts_are_chats = true;
  const Example pair =
      one(R"({"prompt": "Sky?", "chosen": "Blue.", "rejected": "Green."})", options);
  EXPECT_EQ(said(pair.text), "user: Sky? | assistant: Blue.");
}

TEST_F(PreferencesTest, TheSameAnswerTwiceIsPassedOver) {
  const Dataset dataset = read(
      "{\"prompt\": \"a \", \"chosen\": \"b\", \"rejected\": \"b\"}\n"
      "{\"prompt\": \"a \", \"chosen\": \"b\", \"rejected\": \"c\"}\n");
  EXPECT_EQ(dataset.examples.size(), 1u);
  EXPECT_THAT(dataset.notes, ::testing::Contains(HasSubstr("the first is")));
}

/** Each has its answer, the one to another prompt, and 1 where it is good. */
std::vector<std::string> rated(const Dataset& dataset) {
  std::vector<std::string> all;
  for (const Example& example : dataset.examples)
    all.push_back(example.text + *example.text_pair + "/" + *example.rejected + "/" +
                  std::to_string(example.label.class_id));
  return all;
}

TEST_F(PreferencesTest, RatedAnswersComeWithOneToAnotherPrompt) {
  DatasetOptions options;
  options.path = dir_.write("rated.jsonl",
                            "{\"prompt\": \"a \", \"completion\": \"1\", \"label\": true}\n"
                            "{\"prompt\": \"a \", \"completion\": \"2\", \"label\": false}\n"
                            "{\"prompt\": \"b \", \"completion\": \"3\", \"label\": 1}\n"
                            "{\"prompt\": \"b \", \"completion\": \"4\", \"label\": \"bad\"}\n"
                            "{\"prompt\": \"c \", \"completion\": \"5\", \"label\": true}\n");
  options.rows = RowForm::ratings;
  EXPECT_THAT(rated(read_dataset(options)),
              ElementsAre("a 1/3/1", "a 2/3/0", "b 3/2/1", "b 4/2/0", "c 5/4/1"));

  const auto says = [&](std::string_view text) {
    options.path = dir_.write("bad.jsonl", text);
    return test::error_of([&] { read_dataset(options); });
  };
  EXPECT_THAT(says(R"({"prompt": "a", "completion": "b"})"), HasSubstr("'label' is missing"));
  EXPECT_THAT(says(R"({"prompt": "a", "completion": "b", "label": "perhaps"})"),
              HasSubstr("neither good nor bad"));
  EXPECT_THAT(says("{\"prompt\": \"a\", \"completion\": \"b\", \"label\": true}\n"
                   "{\"prompt\": \"a\", \"completion\": \"c\", \"label\": false}\n"),
              HasSubstr("all rows have the same prompt"));
  EXPECT_THAT(says("{\"prompt\": \"a\", \"completion\": \"b\", \"label\": true}\n"
                   "{\"prompt\": \"c\", \"completion\": \"d\", \"label\": true}\n"),
              HasSubstr("all answers are good"));
}

TEST_F(PreferencesTest, RatedChatsLearnTheLastAnswer) {
  DatasetOptions options;
  const auto row = [](const char* asks, const char* answers, bool is_good) {
    return std::string(R"({"messages": [{"role": "user", "content": "Hi"}, )") +
           R"({"role": "assistant", "content": "Hello"}, {"role": "user", "content": ")" + asks +
           R"("}, {"role": "assistant", "content": ")" + answers + R"("}], "label": )" +
           (is_good ? "true" : "false") + "}\n";
  };
  options.path = dir_.write("rated.jsonl", row("Sky?", "Blue.", true) + row("Sea?", "Red.", false));
  options.rows = RowForm::ratings;
  const Example first = read_dataset(options).examples.at(0);
  EXPECT_EQ(said(first.text), "user: Hi | assistant*: Hello | user: Sky? | assistant: Blue.");
  EXPECT_EQ(said(first.rejected.value()),
            "user: Hi | assistant*: Hello | user: Sky? | assistant: Red.");
}

TEST_F(PreferencesTest, RowsThatAreNonePairsAreNamed) {
  EXPECT_THAT(error(R"({"prompt": "a", "completion": "b"})"), HasSubstr("'chosen' is missing"));
  EXPECT_THAT(error(R"({"prompt": "a", "chosen": "b"})"), HasSubstr("'rejected' is missing"));
  EXPECT_THAT(error(R"({"chosen": "b", "rejected": "c"})"), HasSubstr("there is no prompt"));
  EXPECT_THAT(error(R"({"prompt": 1, "chosen": "b", "rejected": "c"})"),
              HasSubstr("pairs.jsonl:1: the prompt is not a text"));
  EXPECT_THAT(error(R"({"prompt": "a", "chosen": "b", "rejected": "c", "margin": "x"})"),
              HasSubstr("'margin' is no number"));
  EXPECT_THAT(
      error(R"({"input": {"text": "a"}, "preferred_output": [], "non_preferred_output": []})"),
      HasSubstr("'input' has no 'messages'"));
}

}  // namespace
}  // namespace ferry
