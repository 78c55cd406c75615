#include "gui/models/process/launcher.h"

#include <gtest/gtest.h>

#include <QEventLoop>
#include <QTemporaryDir>
#include <QTimer>
#include <cstdlib>
#include <fstream>

#include "gui/models/process/ferry_command.h"
#include "gui/models/text.h"

namespace ferry::gui {
namespace {

config::Config with(std::initializer_list<std::pair<const char*, const char*>> values) {
  config::Config config;
  for (const auto& [key, value] : values)
    config.set(key, value, {config::Source::command_line, "test"});
  return config;
}

TEST(FerryCommand, HasWhatWasChangedAndNothingElse) {
  const QStringList words = arguments_of(with({{"learning_rate", "3e-5"},
                                               {"gpu_memory", "8GiB"},
                                               {"model", "a model"},
                                               {"bf16", "true"}}),
                                         config::kTrain);
  EXPECT_EQ(words.join('|').toStdString(),
            "--model-name-or-path=a model|--learning-rate=3e-05|--dtype=bf16|--gpu-memory=8GiB");
}

TEST(FerryCommand, ARunHasADirectoryOfItsOwn) {
  QTemporaryDir directory;
  const auto runs = to_path(directory.path());
  const config::Config config =
      with({{"model", "/models/MiniLM L6"}, {"dataset", "/d/my reviews.csv"}});
  const auto first = new_run_directory(runs, config);
  EXPECT_TRUE(first.filename().string().ends_with("_MiniLM-L6_my-reviews")) << first;
  std::filesystem::create_directory(first);
  EXPECT_NE(new_run_directory(runs, config), first);
}

TEST(Launcher, AStartThatFailsSaysWhy) {
  QTemporaryDir directory;
  Launcher launcher;
  QString said, command;
  QEventLoop loop;
  QObject::connect(&launcher, &Launcher::failed, &loop,
                   [&](const std::filesystem::path&, const QString& message, const QString& line) {
                     said = message;
                     command = line;
                     loop.quit();
                   });
  QTimer::singleShot(20000, &loop, &QEventLoop::quit);
  const auto config = with({{"model", "/no/such/model"}, {"dataset", "/no/such.csv"}});
  const auto run = launcher.start(config, to_path(directory.path()));
  EXPECT_TRUE(launcher.is_starting(run));
  EXPECT_EQ(launcher.start(config, to_path(directory.path())), run);  // a double click
  loop.exec();
  EXPECT_TRUE(said.contains("/no/such/model")) << said.toStdString();
  EXPECT_TRUE(command.contains("train --model-name-or-path=/no/such/model"))
      << command.toStdString();
  EXPECT_FALSE(launcher.is_starting(run));
}

/** A program that says what a run says while it times plans, and ends after that. */
TEST(Launcher, AStartThatTimesPlansSaysSo) {
  QTemporaryDir directory;
  const auto root = to_path(directory.path());
  const auto program = root / "slow_ferry", goes_on = root / "goes_on";
  std::ofstream(program) << "#!/bin/sh\n"
                         << "echo 'ferry: " << words_of(ChoosingProgress{2, 3}) << ": a plan' >&2\n"
                         << "while [ ! -e '" << goes_on.string() << "' ]; do sleep 0.05; done\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const char* const before = std::getenv("FERRY");
  const std::string kept = before ? before : "";
  ::setenv("FERRY", program.c_str(), 1);
  Launcher launcher;
  QEventLoop loop;
  std::filesystem::path changed;
  QObject::connect(&launcher, &Launcher::doing_changed, &loop,
                   [&](const std::filesystem::path& run) {
                     changed = run;
                     loop.quit();
                   });
  QObject::connect(&launcher, &Launcher::failed, &loop, &QEventLoop::quit);
  QTimer::singleShot(20000, &loop, &QEventLoop::quit);
  const auto run = launcher.start(with({{"model", "m"}, {"dataset", "d.csv"}}), root);
  EXPECT_EQ(launcher.doing(run), QString());
  loop.exec();
  EXPECT_EQ(changed, run);
  EXPECT_TRUE(launcher.doing(run).contains("2 of at most 3")) << launcher.doing(run).toStdString();
  std::ofstream(goes_on) << "";
  loop.exec();  // until it fails: it made no run
  EXPECT_EQ(launcher.doing(run), QString());
  if (before)
    ::setenv("FERRY", kept.c_str(), 1);
  else
    ::unsetenv("FERRY");
}

}  // namespace
}  // namespace ferry::gui
