#include "src/train/control/control.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/process/host_memory.h"
#include "src/base/process/movement.h"
#include "src/train/control/interrupt.h"

namespace ferry {
namespace {

using namespace std::chrono_literals;

constexpr const char *kChanges = "changes", *kEvalSteps = "eval_steps";
const config::Origin kSetOrigin = {config::Source::command_line, "ferry runs set"};

/** Settings that may change in the middle of a run: numbers of the optimizer, which no memory
 * depends on, and the time of evaluations. */
bool is_changeable(const std::string& key) {
  return key == "learning_rate" || key == "weight_decay" || key == "max_grad_norm" ||
         key == kEvalSteps;
}

std::string value_in_words(const config::Config& config, const std::string& key) {
  return to_toml(*config::find_option(key).option, config.value(key));
}

}  // namespace

Control::Control(Session& session,
                 const config::Config& config,
                 int64_t total_steps,
                 runs::RunDirectory& run,
                 term::Progress& progress)
    : session_(session),
      config_(config),
      total_steps_(total_steps),
      run_(run),
      progress_(progress) {
  try {
    server_ = std::make_unique<runs::ControlServer>(run.path());
    run_.set("control_socket", server_->path().string());
  } catch (const Error& error) {
    progress_.log_line(fmt::format("this run obeys signals only: {}", error.what()));
    run_.set("control_socket", nullptr);
  }
  read_changes();
}

Control::~Control() {
  for (auto* requests : {&waiting_, &waiting_for_samples_})
    for (runs::ControlRequest& request : *requests)
      request.answer(false, "the run has ended");
  for (runs::ControlRequest& request : arrived_)
    request.answer(false, "the run has ended");
  try {
    if (server_) run_.set("control_socket", nullptr);
  } catch (const std::exception&) {  // the directory has gone, which others tell
  }
}

void Control::attend() {
  apply_due_changes();
  if (!server_) return;
  while (auto request = next(0ms))
    act(std::move(*request));
  while (is_paused_ && !leaves()) {  // a signal is looked for now and then
    note_movement();                 // nobody waits for it
    if (auto request = next(100ms)) act(std::move(*request));
    if (saves_) return;  // the loop saves, and comes back
  }
}

void Control::return_to_gpu() {
  if (has_left_gpu_) session_.return_to_gpu();
  has_left_gpu_ = is_paused_ = false;
}

bool Control::interrupts() {
  while (server_) {
    auto request = server_->take();
    if (!request) break;
    arrived_.push_back(std::move(*request));
  }
  return leaves() || std::ranges::any_of(arrived_, [](const runs::ControlRequest& request) {
           return request.command() == "pause" || request.command() == "stop";
         });
}

std::optional<runs::ControlRequest> Control::next(std::chrono::milliseconds patience) {
  if (arrived_.empty()) return server_->take(patience);
  std::optional request = std::move(arrived_.front());
  arrived_.pop_front();
  return request;
}

bool Control::leaves() const {
  return is_interrupted() || stops_;
}

bool Control::saves() const {
  return saves_ || (leaves() && !stops_unsaved_);
}

void Control::tell_saved(bool is_done, const std::string& text) {
  saves_ = false;
  for (runs::ControlRequest& request : waiting_)
    request.answer(is_done, text);
  waiting_.clear();
}

void Control::tell_sampled(bool is_done, const std::string& text) {
  for (runs::ControlRequest& request : waiting_for_samples_)
    request.answer(is_done, text);
  waiting_for_samples_.clear();
}

void Control::act(runs::ControlRequest request) {
  const std::string command = request.command();
  if (command == "pause") return pause(std::move(request));
  if (command == "resume") return go_on(std::move(request));
  if (command == "set") return change(std::move(request));
  if (command == "sample") {
    // A paused run has left the GPU, which a forward pass needs.
    if (is_paused_) return request.answer(false, "the run is paused: resume it first");
    waiting_for_samples_.push_back(std::move(request));
    return;
  }
  if (command == "save" || command == "stop") {
    stops_ |= command == "stop";
    stops_unsaved_ = command == "stop" && request.argument("save") == "no";
    saves_ = !stops_unsaved_;
    if (stops_unsaved_)
      request.answer(true, fmt::format("stops after step {}, unsaved", session_.n_steps()));
    else
      waiting_.push_back(std::move(request));
    return;
  }
  request.answer(false, fmt::format("'{}' is nothing that a run does", command));
}

void Control::pause(runs::ControlRequest request) {
  if (is_paused_) return request.answer(true, "the run is paused already");
  std::string what = "paused";
  if (session_.device().is_cuda()) {
    // The GPU's content goes to host memory that was not planned for.
    const int64_t needed = session_.lasting_gpu_bytes(), free = read_host_memory().budget_bytes();
    if (needed > free)
      return request.answer(
          false,
          fmt::format("{} of the GPU would have to go to host memory, and {} are free; `ferry "
                      "runs stop` saves and leaves",
                      format_bytes(needed), format_bytes(free)));
    try {
      has_left_gpu_ = session_.leave_gpu();
    } catch (const Error& error) {
      if (error.fault() != Fault::does_not_fit) throw;
      return request.answer(false, fmt::format("the run continues: {}", error.what()));
    }
    what = has_left_gpu_ ? "paused; the GPU's memory is free"
                         : "paused; this driver cannot give the GPU's memory back before the end";
  }
  is_paused_ = true;
  run_.set_phase(runs::Phase::paused);
  progress_.log_line(fmt::format("{} after step {}", what, session_.n_steps()));
  request.answer(true, fmt::format("{} after step {}", what, session_.n_steps()));
}

void Control::go_on(runs::ControlRequest request) {
  if (!is_paused_) return request.answer(true, "the run is not paused");
  try {
    return_to_gpu();
  } catch (const Error& error) {
    if (error.fault() != Fault::does_not_fit) throw;
    return request.answer(false, fmt::format("it stays paused: {}", error.what()));
  }
  run_.set_phase(runs::Phase::training);
  request.answer(true, fmt::format("resumed after step {}", session_.n_steps()));
}

void Control::change(runs::ControlRequest request) {
  const std::string value = request.argument("value");
  try {
    config::Config checked = config_;
    checked.set(request.argument("key"), value, kSetOrigin);
    const config::Option* const option = config::find_option(request.argument("key")).option;
    if (!option)  // a flag of another trainer, which changes nothing
      return request.answer(false, fmt::format("there is no {}", request.argument("key")));
    const std::string key(option->key);
    if (!is_changeable(key))
      return request.answer(
          false,
          fmt::format("{} stays as it is while the run goes on; learning_rate, weight_decay, "
                      "max_grad_norm and eval_steps can change",
                      key));
    // Changes that an earlier process made after this step are superseded.
    const int64_t step = session_.n_steps();
    std::erase_if(changes_, [&](const Change& c) { return c.key == key && c.step >= step; });
    changes_.push_back(
        {.step = step, .key = key, .value = value, .instead_of = value_in_words(config_, key)});
    write_changes();
    apply_due_changes();
    request.answer(true, fmt::format("{} = {} from step {} on", key, value, step + 1));
  } catch (const Error& error) {
    request.answer(false, error.what());
  }
}

void Control::read_changes() {
  for (const auto& change : run_.get(kChanges)) {
    const auto key = change.value("key", "");
    // A user who resumes with another value than the run began with wants that one.
    const auto source = config_.origin(key).source;
    const bool is_given =
        source == config::Source::command_line || source == config::Source::environment;
    if (is_given && value_in_words(config_, key) != change.value("instead_of", "")) continue;
    changes_.push_back({.step = change.value("step", int64_t{0}),
                        .key = key,
                        .value = change.value("value", ""),
                        .instead_of = change.value("instead_of", "")});
  }
  if (changes_.size() != run_.get(kChanges).size()) write_changes();
}

void Control::write_changes() {
  auto all = nlohmann::ordered_json::array();
  for (const Change& c : changes_)
    all.push_back(
        {{"step", c.step}, {"key", c.key}, {"value", c.value}, {"instead_of", c.instead_of}});
  run_.set(kChanges, std::move(all));
}

void Control::apply_due_changes() {
  for (Change& change : changes_) {
    if (change.is_applied || change.step > session_.n_steps()) continue;
    config::Config typed;
    typed.set(change.key, change.value, kSetOrigin);
    if (change.key == kEvalSteps)
      eval_interval_.emplace(typed, kEvalSteps, total_steps_);
    else
      session_.change_optimizer(change.key, typed.number(change.key));
    change.is_applied = true;
    progress_.log_line(
        fmt::format("{} = {} from step {} on", change.key, change.value, session_.n_steps() + 1));
  }
}

}  // namespace ferry
