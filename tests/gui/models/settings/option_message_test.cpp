// Messages of the service, as the app says them: with the names of fields and pages, and without
// the words of a command line.

#include <gtest/gtest.h>

#include <QRegularExpression>

#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#include "src/service/preview.h"
#include "tests/files/test_files.h"
#include "tests/train/tiny_model.h"

namespace ferry::gui {
namespace {

std::string told(const char* what) {
  return message_of(what).text.toStdString();
}

TEST(OptionMessage, AnOptionWithItsValueIsAField) {
  EXPECT_EQ(
      told("[data.read] a.csv:3: a quote opens a field here - several rows: dataset_quoting "
           "= none; one text: dataset_quoting = double"),
      "A.csv:3: a quote opens a field here - several rows: “Quotes in tables: none”; one text: "
      "“Quotes in tables: double”");
  EXPECT_EQ(told("[data.columns] x - name it with text_column = NAME"),
            "X - choose it as “Text column”");
  EXPECT_EQ(told("[plan] x - use dtype = bf16 or fp32"), "X - use “Number type: bf16” or fp32");
  EXPECT_EQ(told("[plan] it fits with optim = adamw_8bit and at least gpu_memory = 877MiB"),
            "It fits with “Optimizer: adamw_8bit” and at least “GPU memory: 877MiB”");
  EXPECT_EQ(told("a class: label_names = -1,0,1; no label: remove such rows"),
            "A class: “Names of labels: -1,0,1”; no label: remove such rows");
  EXPECT_EQ(told("give max_steps = -1."), "Give “Maximum steps: by epochs”.");
}

TEST(OptionMessage, AFlagWithItsValueIsAField) {
  EXPECT_EQ(told("train a language model: --task causal-lm (a decoder) or mlm (an encoder)"),
            "Train a language model: “Task: causal-lm” (a decoder) or mlm (an encoder)");
  EXPECT_EQ(told("no evaluation (--eval-fraction 0.2 or --eval-dataset FILE makes one)"),
            "No evaluation (“Held-out share: 0.2” or “Evaluation data” makes one)");
  EXPECT_EQ(told("start a new run from its model: --model '/a b/max_steps'"),
            "Start a new run from its model: “Model: /a b/max_steps”");
  EXPECT_EQ(told("give --gpu-memory=11GiB"), "Give “GPU memory: 11GiB”");
  EXPECT_EQ(told("--model takes a directory or a name"), "“Model” takes a directory or a name");
}

TEST(OptionMessage, ACommandIsAPage) {
  EXPECT_EQ(told("it stands still - see `ferry doctor`"), "It stands still - see the Doctor page");
  EXPECT_EQ(told("use device = cpu, or see `ferry doctor`"),
            "Use “Device: cpu”, or see the Doctor page");
  EXPECT_EQ(told("x - continue with: ferry train --resume '/runs/a'"),
            "X - choose Resume on the Runs page");
  EXPECT_EQ(told("it has ended; `ferry runs show RUN` says how"),
            "It has ended; the Runs page says how");
}

/** What the user wrote is nobody else's to change. */
TEST(OptionMessage, NamesOfTheUserStay) {
  EXPECT_EQ(told("[data.open] no such file or directory: '/data/max_length.csv' (dataset from "
                 "--dataset) - paths count from the current directory"),
            "No such file or directory: '/data/max_length.csv'");
  EXPECT_EQ(told("column 'eval_fraction = 3' of /tmp/text_column.tsv"),
            "Column 'eval_fraction = 3' of /tmp/text_column.tsv");
  EXPECT_EQ(told("the drive's task is done: a device for each"),
            "The drive's task is done: a device for each");
}

/** Words of a command line, but for names of the user and values of fields. */
std::string leftover(QString text) {
  text.remove(QRegularExpression("(?<!\\w)'[^'\n]*'(?!\\w)|“[^”]*”"));
  static const QRegularExpression foreign("--[a-z]|[a-z]+_[a-z]+|\\w = |`ferry|NAME|current dir");
  return foreign.match(text).captured().toStdString();
}

TEST(OptionMessage, FaultsOfDataAndSettingsAreSaidInTheAppsWords) {
  const ferry::test::TempDir directory;
  ferry::test::write_tiny_model(directory / "model");
  const struct {
    const char *name, *text;
    std::vector<std::pair<const char*, const char*>> more;
  } faults[] = {
      {"odd.csv", "complaint,department,day\na b,c,1\nd e,f,2\n", {}},
      {"one.csv", "text\nred bird\nblue car\n", {}},
      {"quote.csv", "text,label\n\"red bird,a\nblue,b\nthe \"car\",a\n", {}},
      {"broken.csv", "text,label\n\"red bird\" x,a\nblue,b\n", {}},
      {"split.tsv", "text,label\nred,a\nblue,b\n", {}},
      {"semicolon.csv", "text|label\nred|a\nblue|b\n", {}},
      {"plain.txt", "red bird\nblue car\n", {}},
      {"format.xyz", "red bird\nblue car\n", {}},
      {"latin.csv",
       "text,label\nr\xe9"
       "d,a\nblue,b\n",
       {}},
      {"words.jsonl", "{\"a\": [\"x\"], \"b\": [\"O\"]}\n", {{"task", "ner"}}},
      {"count.conll", "1 red O\n2 bird B\n\n1 car O\n", {{"task", "ner"}}},
      {"asked.csv", "text,label\nred,a\nblue,b\n", {{"text_column", "body"}}},
      {"same.csv", "text,label\nred,a\nblue,b\n", {{"text_column", "label"}}},
      {"none.csv", nullptr, {}},
      {"empty.csv", "", {}},
      {"number.csv", "text,label\nred,-1\nblue,0\ncar,1\n", {}},
  };
  int n_refused = 0;
  for (const auto& fault : faults) {
    if (fault.text) directory.write(fault.name, fault.text);
    config::Config config;
    const auto set = [&](const char* key, const std::string& value) {
      config.set(key, value, {config::Source::command_line, "the app"});
    };
    set("model", (directory / "model").string());
    set("dataset", (directory / fault.name).string());
    for (const auto& [key, value] : fault.more)
      set(key, value);
    const auto said = words_of_trouble([&] { service::preview(config); });
    if (!said) continue;
    ++n_refused;
    EXPECT_EQ(leftover(*said), "") << said->toStdString();
  }
  EXPECT_GT(n_refused, 8);
}

}  // namespace
}  // namespace ferry::gui
