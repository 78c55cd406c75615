#pragma once
// Helpers for tests of the app: waiting in the event loop, a home of the test's own, a program
// that plays ferry, runs written by hand.

#include <gtest/gtest.h>

#include <QCoreApplication>
#include <QElapsedTimer>
#include <QEventLoop>
#include <QFile>
#include <QTemporaryDir>
#include <QThread>
#include <filesystem>
#include <functional>

namespace ferry::gui {

/** Runs the event loop until it is so; false after `patience_ms`. */
inline bool wait_until(const std::function<bool()>& is_so, int patience_ms = 20000) {
  QElapsedTimer clock;
  clock.start();
  while (!is_so()) {
    if (clock.elapsed() > patience_ms) return false;
    QCoreApplication::processEvents(QEventLoop::AllEvents, 20);
    QThread::msleep(2);  // leaves the core to who is waited for
  }
  return true;
}

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

/** A home of the test's own: the user's runs, presets and caches are not touched. */
class TestHome {
 public:
  std::filesystem::path path() const { return directory_.path().toStdString(); }
  std::filesystem::path operator/(const std::string& name) const { return path() / name; }

 private:
  QTemporaryDir directory_;
  WithVariable data_{"XDG_DATA_HOME", (directory_.path() + "/data").toUtf8()};
  WithVariable config_{"XDG_CONFIG_HOME", (directory_.path() + "/config").toUtf8()};
  WithVariable cache_{"XDG_CACHE_HOME", (directory_.path() + "/cache").toUtf8()};
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

/** A run as its trainer leaves it, without weights. */
inline void write_run(const std::filesystem::path& run, const QByteArray& phase = "finished") {
  write_file(run / "run.json",
             "{\"format_version\": 1, \"id\": \"r\", \"phase\": \"" + phase +
                 "\", \"pid\": 1, \"host\": \"elsewhere\", \"created\": \"2026-11-25T10:00:00Z\", "
                 "\"model\": \"tiny\", \"n_steps\": 4}");
}

/** Of a classifier in two languages' words. */
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
