#pragma once
// Helpers for tests of the app: a home of the test's own, a program that plays ferry, files.

#include <gtest/gtest.h>

#include <QFile>
#include <filesystem>
#include <string_view>

#include "tests/files/test_files.h"
#include "tests/gui/waiting.h"

namespace ferry::gui {

/** Sets a variable of the environment while it lives. */
class WithVariable {
 public:
  WithVariable(const char* name, const QByteArray& value)
      : name_(name), before_(qgetenv(name)), was_set_(qEnvironmentVariableIsSet(name)) {
    qputenv(name, value);
  }
  ~WithVariable() {
    if (was_set_)
      qputenv(name_, before_);
    else
      qunsetenv(name_);
  }
  WithVariable(const WithVariable&) = delete;
  WithVariable& operator=(const WithVariable&) = delete;

 private:
  const char* name_;
  QByteArray before_;
  bool was_set_;
};

/** A home of the test's own, with the current directory in it: the user's runs, presets, caches and
 * sockets are not touched. */
class TestHome {
 public:
  TestHome() {
    std::filesystem::create_directories(runs());
    std::filesystem::create_directories(*this / "config");
    std::filesystem::create_directories(*this / "run");
    std::filesystem::permissions(*this / "run", std::filesystem::perms::owner_all);
    std::filesystem::current_path(path());
  }
  ~TestHome() { std::filesystem::current_path(before_); }

  const std::filesystem::path& path() const { return directory_.path(); }
  std::filesystem::path operator/(std::string_view name) const { return directory_ / name; }
  QString file(const QString& name) const { return QFile::decodeName(path().c_str()) + '/' + name; }
  std::filesystem::path runs() const { return directory_ / "runs"; }

 private:
  ferry::test::TempDir directory_;
  std::filesystem::path before_ = std::filesystem::current_path();
  WithVariable home_{"HOME", path().c_str()};
  WithVariable data_{"XDG_DATA_HOME", (*this / "data").c_str()};
  WithVariable config_{"XDG_CONFIG_HOME", (*this / "config").c_str()};
  WithVariable cache_{"XDG_CACHE_HOME", (*this / "cache").c_str()};
  WithVariable sockets_{"XDG_RUNTIME_DIR", (*this / "run").c_str()};
};

inline void write_file(const std::filesystem::path& path, const QByteArray& text) {
  std::filesystem::create_directories(path.parent_path());
  QFile file(QFile::decodeName(path.c_str()));
  ASSERT_TRUE(file.open(QIODevice::WriteOnly | QIODevice::Truncate)) << path;
  file.write(text);
}

/** A shell script that is started in ferry's place while it lives. */
class PlayedFerry {
 public:
  PlayedFerry(const TestHome& home, const QByteArray& script)
      : path_(home / "played-ferry"), set_("FERRY", path_.c_str()) {
    write_file(path_, "#!/bin/sh\n" + script);
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  }

 private:
  std::filesystem::path path_;
  WithVariable set_;
};

/** config.json of a classifier whose labels are words of two languages. */
inline void write_classifier_config(const std::filesystem::path& model) {
  write_file(model / "config.json",
             R"({"architectures": ["BertForSequenceClassification"], "model_type": "bert",
                 "problem_type": "single_label_classification",
                 "id2label": {"0": "good", "1": "schlecht \u00fc"},
                 "label2id": {"good": 0, "schlecht \u00fc": 1}})");
}

/** A line of RUN/samples/step-N.jsonl. */
inline QByteArray sample_line(int step, const QByteArray& prompt, const QByteArray& text) {
  return "{\"step\":" + QByteArray::number(step) + ",\"prompt\":\"" + prompt + "\",\"text\":\"" +
         text +
         "\",\"ids\":[1,2,3],\"n_prompt_tokens\":2,\"ended\":\"length\",\"settings\":{\"max_new_"
         "tokens\":3,\"temperature\":0.8,\"top_k\":0,\"top_p\":0.95,\"stop\":[],\"seed\":42}}\n";
}

/** ferry-trainer of the program that $FERRY names; empty: that build has none. */
inline QByteArray real_trainer() {
  if (qEnvironmentVariableIsSet("FERRY_TRAINER")) return qgetenv("FERRY_TRAINER");
  const std::filesystem::path ferry = qgetenv("FERRY").toStdString();
  const auto beside = (ferry.parent_path() / "../train/ferry-trainer").lexically_normal();
  std::error_code error;
  return !ferry.empty() && std::filesystem::exists(beside, error) ? beside.c_str() : "";
}
#define NEEDS_TRAINER() \
  if (real_trainer().isEmpty()) GTEST_SKIP() << "no ferry with a trainer: set FERRY to one"

}  // namespace ferry::gui
