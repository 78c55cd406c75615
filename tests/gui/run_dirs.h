#pragma once
// Run directories for tests of the app: as a trainer leaves them, and one that lives.

#include <gtest/gtest.h>

#include <QCoreApplication>
#include <QElapsedTimer>
#include <QThread>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "src/runs/control.h"
#include "src/runs/directory/run_directory.h"
#include "tests/files/test_files.h"

namespace ferry::gui::test {

namespace fs = std::filesystem;

/** A home of its own: its current directory, index, queue and trash are the test's. */
class Home {
 public:
  Home() : before_(fs::current_path()) {
    fs::create_directories(directory_ / "runs");
    for (const char* name : {"XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"}) {
      const fs::path path = directory_ / name;
      fs::create_directories(path);
      fs::permissions(path, fs::perms::owner_all);
      setenv(name, path.c_str(), 1);
    }
    setenv("HOME", directory_.path().c_str(), 1);
    fs::current_path(directory_.path());
  }
  ~Home() { fs::current_path(before_); }

  fs::path operator/(std::string_view name) const { return directory_ / name; }
  fs::path runs() const { return directory_ / "runs"; }

 private:
  ferry::test::TempDir directory_;
  fs::path before_;
};

struct RunText {
  std::string phase = "finished";
  std::string created = "2026-11-20T10:15:00Z";
  int n_steps = 20, n_done = 20;
  std::string more = {};     ///< further keys of run.json: ", \"a\": 1"
  std::string metrics = {};  ///< instead of the usual lines
};

inline std::string metrics_text(int n_steps) {
  std::string text;
  for (int step = 1; step <= n_steps; ++step)
    text += fmt::format(
        R"({{"step": {}, "loss": {:.4f}, "learning_rate": 1e-5, "step_ms": 500, "train_tokens_per_second": 1234.5}})"
        "\n",
        step, 3.0 / step);
  return text;
}

/** A run as its trainer left it. */
inline fs::path make_run(const fs::path& run, const RunText& text = {}) {
  fs::create_directories(run);
  std::ofstream(run / "config.toml") << "task = \"classification\"\nlearning_rate = 3e-05\n";
  std::ofstream(run / "metrics.jsonl")
      << (text.metrics.empty() ? metrics_text(text.n_done) : text.metrics);
  std::ofstream(run / "run.json") << fmt::format(
      R"({{"format_version": 1, "phase": "{}", "created": "{}", "started": "{}", "model": "/models/MiniLM-L6", "dataset": "/data/reviews.csv", "n_steps": {}{}}})",
      text.phase, text.created, text.created, text.n_steps, text.more);
  return run;
}

/** A run that lives in this process: it has the lock and a socket, and obeys it. */
class LivingRun {
 public:
  explicit LivingRun(const fs::path& run) : run_(run) {
    directory_.emplace(run);
    server_.emplace(run);
    directory_->set("control_socket", server_->path().string());
    directory_->set_phase(runs::Phase::training,
                          {{"model", "/models/a"}, {"dataset", "/data/b.csv"}, {"n_steps", 100}});
    obeys_ = std::jthread([this](std::stop_token stop) {
      while (!stop.stop_requested())
        if (auto request = server_->take(std::chrono::milliseconds(20))) obey(*request);
    });
  }
  ~LivingRun() { end(runs::Phase::stopped); }

  void end(runs::Phase phase) {
    if (!directory_) return;
    obeys_ = {};
    directory_->set("control_socket", nullptr);
    directory_->set_phase(phase, {{"exit_reason", "the user stopped it"}});
    server_.reset();
    directory_.reset();
  }
  /** As SIGKILL does it. */
  void vanish() {
    obeys_ = {};
    server_.reset();
    directory_.reset();
  }
  int n_asked() const { return n_asked_; }
  const fs::path& path() const { return run_; }

 private:
  void obey(runs::ControlRequest& request) {
    ++n_asked_;
    if (request.command() == "pause") directory_->set_phase(runs::Phase::paused);
    if (request.command() == "resume") directory_->set_phase(runs::Phase::training);
    request.answer(true, request.command() + " done");
  }

  fs::path run_;
  std::optional<runs::RunDirectory> directory_;
  std::optional<runs::ControlServer> server_;
  std::atomic<int> n_asked_ = 0;
  std::jthread obeys_;
};

/** Lets the event loop go on until it is so; false: it is not, after a long time. */
inline bool comes(const std::function<bool()>& is_so, int most_ms = 15000) {
  QElapsedTimer timer;
  timer.start();
  while (!is_so()) {
    if (timer.hasExpired(most_ms)) return false;
    QCoreApplication::processEvents(QEventLoop::AllEvents, 20);
    QThread::msleep(2);
  }
  return true;
}

}  // namespace ferry::gui::test
