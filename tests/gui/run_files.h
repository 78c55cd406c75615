#pragma once
// Runs for tests of the app: as a trainer leaves them, while their metrics grow, and one that lives
// in this process.

#include <fmt/format.h>
#include <time.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

#include "src/runs/control.h"
#include "src/runs/directory/run_directory.h"
#include "tests/gui/gui_test.h"

namespace ferry::gui {

namespace fs = std::filesystem;

/** A run's files, written by the test. */
class RunFiles {
 public:
  explicit RunFiles(std::filesystem::path run) : run_(std::move(run)) {
    std::filesystem::create_directories(run_);
    record(nlohmann::ordered_json::object());
    std::ofstream(run_ / "config.toml") << "learning_rate = 3e-05\nmax_grad_norm = 1.0\n";
    std::ofstream(run_ / "train.log") << "2026-11-21T10:15:00Z ferry train --learning-rate=3e-5\n"
                                         "2026-11-21T10:15:01Z begins\n";
  }

  const std::filesystem::path& path() const { return run_; }

  /** run.json of a finished run, with these keys instead. */
  void record(const nlohmann::ordered_json& more) {
    nlohmann::ordered_json record = {{"format_version", 1},
                                     {"phase", "finished"},
                                     {"created", "2026-11-21T10:15:00Z"},
                                     {"started", "2026-11-21T10:15:00Z"},
                                     {"model", "/models/MiniLM-L6"},
                                     {"dataset", "/data/reviews.csv"},
                                     {"n_steps", 2000}};
    record.update(more);
    std::ofstream(run_ / "run.json") << record.dump(2) << '\n';
  }

  static double loss_at(int64_t step) {
    return 0.4 + 3.0 / std::sqrt(static_cast<double>(step)) +
           0.15 * std::sin(static_cast<double>(step) * 1.7) *
               std::cos(static_cast<double>(step) * 0.31);
  }

  /** Lines of these steps, with an evaluation every hundredth; losses `by` as high. */
  void add_steps(int64_t first, int64_t last, double by = 1) {
    std::string text;
    for (int64_t step = first; step <= last; ++step) {
      const auto at = static_cast<double>(step);
      text += fmt::format(
          R"({{"step":{},"epoch":{},"loss":{:.6f},"grad_norm":{:.5f},"learning_rate":{:.4g},"num_input_tokens_seen":{},"train_tokens_per_second":{:.1f},"step_ms":{:.2f},"host_bytes":{},"gpu_bytes_peak":{},"gpu_busy_pct":{:.1f},"overlap_pct":{:.1f},"time":{}}})"
          "\n",
          step, at * 0.0015, by * loss_at(step), 1.2 + 0.8 * std::sin(at * 0.9) + 20 / (at + 5),
          5e-5 * std::min(1.0, at / 100) * (1 - at / 4000), step * 2048,
          8200 + 300 * std::sin(at * 2.1), 250 + 9 * std::sin(at * 2.1),
          3'200'000'000 + step * 1000, 5'100'000'000 + step % 7 * 1'000'000, 91 + 3 * std::sin(at),
          83 + 5 * std::cos(at), began_ + step);
      if (step % 100 == 0)
        text += fmt::format(
            R"({{"step":{},"epoch":{},"eval_loss":{:.5f},"eval_accuracy":{:.4f},"eval_f1_macro":{:.4f},"time":{}}})"
            "\n",
            step, at * 0.0015, by * (0.5 + 3.0 / std::sqrt(at)), 0.95 - by * 2.0 / std::sqrt(at),
            0.92 - 2.2 / std::sqrt(at), began_ + step);
    }
    add(text);
  }
  void add(const std::string& text) {
    std::ofstream(run_ / "metrics.jsonl", std::ios::app | std::ios::binary) << text;
  }
  void add_log(const std::string& text) {
    std::ofstream(run_ / "train.log", std::ios::app) << text;
  }

 private:
  std::filesystem::path run_;
  const int64_t began_ = static_cast<int64_t>(time(nullptr));
};

struct RunText {
  std::string phase = "finished";
  std::string created = "2026-11-20T10:15:00Z";
  int n_steps = 20, n_done = 20;
  nlohmann::ordered_json more = nlohmann::ordered_json::object();  ///< further keys of run.json
  std::string metrics = {};                                        ///< instead of the usual lines
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
  RunFiles files(run);
  nlohmann::ordered_json record = {{"phase", text.phase},
                                   {"created", text.created},
                                   {"started", text.created},
                                   {"n_steps", text.n_steps}};
  record.update(text.more);
  files.record(record);
  std::ofstream(run / "config.toml") << "task = \"classification\"\nlearning_rate = 3e-05\n";
  std::ofstream(run / "metrics.jsonl")
      << (text.metrics.empty() ? metrics_text(text.n_done) : text.metrics);
  return run;
}

/** A run that lives in this process: it has the lock and a socket, and obeys. */
class LivingRun {
 public:
  explicit LivingRun(const fs::path& run, int n_steps = 100) : run_(run) {
    directory_.emplace(run);
    server_.emplace(run);
    directory_->set("control_socket", server_->path().string());
    directory_->set_phase(runs::Phase::training, {{"n_steps", n_steps},
                                                  {"model", "/models/MiniLM-L6"},
                                                  {"dataset", "/data/reviews.csv"},
                                                  {"promised", {{"host_bytes_peak", 4.0e9}}}});
    obeys_ = std::jthread([this](std::stop_token stop) {
      while (!stop.stop_requested())
        if (auto request = server_->take(std::chrono::milliseconds(20))) obey(*request);
    });
  }
  ~LivingRun() { vanish(); }

  const fs::path& path() const { return run_; }
  runs::RunDirectory& directory() { return *directory_; }
  void end(runs::Phase phase,
           const nlohmann::ordered_json& more = {{"exit_reason", "the user stopped it"}}) {
    obeys_ = {};
    directory_->set("control_socket", nullptr);
    directory_->set_phase(phase, more);
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
  /** The last request, as "set learning_rate 1e-5". */
  std::string asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  void obey(runs::ControlRequest& request) {
    {
      const std::lock_guard lock(mutex_);
      asked_ = request.command();
      for (const char* name : {"save", "key", "value"})
        if (const std::string value = request.argument(name); !value.empty()) asked_ += " " + value;
    }
    ++n_asked_;
    if (request.command() == "pause") directory_->set_phase(runs::Phase::paused);
    if (request.command() == "resume") directory_->set_phase(runs::Phase::training);
    request.answer(request.argument("value") != "refused",
                   request.command() == "pause" ? "paused; the GPU's memory is free after step 7"
                                                : request.command() + " done");
  }

  fs::path run_;
  std::optional<runs::RunDirectory> directory_;
  std::optional<runs::ControlServer> server_;
  std::atomic<int> n_asked_ = 0;
  std::mutex mutex_;
  std::string asked_;
  std::jthread obeys_;
};

}  // namespace ferry::gui
