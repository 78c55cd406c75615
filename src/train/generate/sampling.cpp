#include "src/train/generate/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/print.h"
#include "src/files/write/atomic_file.h"
#include "src/files/write/disk_full.h"
#include "src/runs/directory/sample_files.h"
#include "src/train/generate/generation.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSteps = "sample_steps";

/** The rule as the options have it. */
nlohmann::ordered_json settings_of(const GenerationRule& rule) {
  return {{"max_new_tokens", rule.n_new_max},
          {"temperature", rule.sampling.temperature},
          {"top_k", rule.sampling.top_k},
          {"top_p", rule.sampling.top_p},
          {"stop", rule.stops},
          {"seed", rule.seed}};
}

/** A text on one line, the ends of its own as " / ". */
std::string on_one_line(std::string text) {
  for (size_t at = 0; (at = text.find('\n', at)) != text.npos;)
    text.replace(at, 1, " / ");
  return text;
}

}  // namespace

Sampling::Sampling(Session& session,
                   const Job& job,
                   runs::RunDirectory& run,
                   term::Progress& progress)
    : session_(session),
      job_(job),
      run_(run),
      progress_(progress),
      directory_(run.path() / "samples"),
      every_(job.config, kSteps, job.steps.total) {
  run_.set(runs::kSamplesOnRequest, job.generation.prompts.empty() ? nlohmann::ordered_json()
                                                                   : nlohmann::ordered_json(true));
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory_, error)) {
    const std::string name = entry.path().filename().string();
    const auto step = runs::step_of_samples(name);
    if (is_temporary_file(name) || (step && *step > session.n_steps()))
      fs::remove(entry.path(), error);
    if (step == session.n_steps()) done_step_ = *step;
  }
}

bool Sampling::is_due(bool is_last_step) const {
  const int64_t step = session_.n_steps();
  if (job_.generation.prompts.empty()) return false;
  return step == 0 || is_last_step || every_.is_over(step, last_end_);
}

bool Sampling::is_done(bool is_last_step) const {
  return done_step_ == session_.n_steps() || !is_due(is_last_step);
}

void Sampling::after_step(Control& control, bool is_last_step) {
  if (!is_done(is_last_step)) make_all(control);
}

void Sampling::when_asked(Control& control) {
  if (!control.wants_samples()) return;
  if (job_.generation.prompts.empty())
    return control.tell_sampled(false,
                                "the run has no prompts: it was started without sample_prompts");
  const int64_t step = session_.n_steps();
  if (done_step_ != step) make_all(control);
  if (done_step_ != step) return;
  if (trouble_.empty())
    control.tell_sampled(true,
                         fmt::format("samples after step {}: {}", step, file_of(step).string()));
  else
    control.tell_sampled(false, trouble_);
}

void Sampling::make_all(Control& control) {
  const auto start = std::chrono::steady_clock::now();
  run_.set_phase(runs::Phase::sampling);
  while (!make(control) && !control.leaves()) {
    do {
      control.attend();
    } while (control.is_paused());
  }
  run_.set_phase(runs::Phase::training);
  last_end_ = std::chrono::steady_clock::now();
  const double took_s = std::chrono::duration<double>(last_end_ - start).count();
  seconds_ += took_s;
  // The texts themselves are no business of a log, which may be sent along.
  log_only(fmt::format("samples after step {} took {:.1f} s", session_.n_steps(), took_s));
}

/** False where somebody wants the run to pause or to leave: nothing of it stays then. */
bool Sampling::make(Control& control) {
  constexpr int kShown = 4;
  const int64_t step = session_.n_steps();
  trouble_.clear();
  const term::Terminal terminal = term::detect_terminal(2);
  std::string lines, shown = fmt::format("samples after step {}:", step);
  int n_shown = 0;
  const auto take = [&](const Prompt& prompt, const Generated& generated) {
    nlohmann::ordered_json row = {{"step", step}};
    row.update(*to_json(prompt, generated));
    row["settings"] = settings_of(job_.generation.rule);
    lines += JsonValue(std::move(row)).line();
    if (n_shown++ == kShown) shown += "\n  ...";
    if (n_shown > kShown) return;
    const std::string text = on_one_line(prompt.text + generated.text);
    shown += "\n  " + term::fitted(text, terminal.width - 3, terminal);
  };
  try {
    if (!generate_unless(
            session_, job_, [&] { return !control.interrupts(); }, {}, take))
      return false;
    progress_.show(shown);
    write(std::move(lines));
  } catch (const Error& error) {
    if (error.fault() != Fault::diverged) throw;
    trouble_ = fmt::format("no samples after step {}: {}", step, error.what());
    progress_.log_line(trouble_);
  }
  done_step_ = step;
  return true;
}

fs::path Sampling::file_of(int64_t step) const {
  return directory_ / runs::sample_file_of(step);
}

void Sampling::write(std::string lines) {
  unwritten_[session_.n_steps()] = std::move(lines);
  try {
    write_unwritten();
  } catch (const DiskFull& full) {
    run_.check();
    trouble_ = full.what();
    progress_.log_line(fmt::format("{}; the samples wait for room", full.what()));
  } catch (const Error& error) {
    run_.check();
    unwritten_.clear();
    trouble_ = error.what();
    progress_.log_line(fmt::format("{}; training goes on", error.what()));
  }
}

void Sampling::write_unwritten() {
  if (unwritten_.empty()) return;
  // Not its parents: a run whose directory was moved away does not come back as samples alone.
  std::error_code error;
  if (fs::create_directory(directory_, error)) sync_directory(run_.path());
  if (error == std::errc::no_space_on_device)
    throw DiskFull(
        Fault::machine, "samples.write",
        fmt::format("'{}' could not be created: {}", directory_.string(), error.message()),
        "free some space");
  if (error)
    throw Error(Fault::machine, "samples.write",
                fmt::format("'{}' could not be created: {}", directory_.string(), error.message()),
                "is the run's directory there, and may it be written to?");
  while (!unwritten_.empty()) {
    write_text_file(file_of(unwritten_.begin()->first), unwritten_.begin()->second);
    unwritten_.erase(unwritten_.begin());
  }
}

void Sampling::write_all() {
  try {
    write_unwritten();
  } catch (const DiskFull&) {
    throw;
  } catch (const Error& error) {
    run_.check();
    unwritten_.clear();
    progress_.log_line(error.what());
  }
}

int64_t n_samplings(const Job& job, int64_t n_done, double step_s) {
  if (job.generation.prompts.empty()) return 0;
  const int64_t n_steps = std::max<int64_t>(0, job.steps.total - n_done);
  const int64_t at_start = n_done == 0 ? 1 : 0;
  if (const auto time = job.config.maybe_time(kSteps))
    return at_start + 1 +
           static_cast<int64_t>(static_cast<double>(n_steps) * step_s /
                                static_cast<double>(time->count));
  const int64_t every = std::max<int64_t>(1, job.config.steps(kSteps, job.steps.total));
  // The last one is due whether it is a multiple or not.
  return at_start + 1 + std::max<int64_t>(0, job.steps.total - 1) / every - n_done / every;
}

}  // namespace ferry
