#include "src/plan/learnt_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <span>

#include "src/base/crc32c.h"
#include "src/base/version.h"
#include "src/plan/search/candidates.h"
#include "src/plan/search/search.h"

namespace ferry {
namespace {

constexpr size_t kKept = 100;

/** Everything that the cost model sees of a block. */
std::string work_key_of(const BlockTable& block, const BatchShape& batch) {
  std::string words = fmt::format("{} {} {}", static_cast<int>(block.kind),
                                  block.n_segment_elements, block.n_trained_elements);
  for (const bool backward : {false, true}) {
    const BlockWork work = block.work(batch, backward);
    for (const BlockWork::Product& product : work.products)
      words += fmt::format(" {}x{}x{}", product.rows, product.inner, product.columns);
    words += fmt::format(" {} {} {} {}", work.attention_tokens, work.attention_length,
                         work.attention_width, work.memory_bytes);
  }
  return words + "\n";
}

/** All that decides a step's time but the plan: "bert 1a2b3c4d, bf16, flash, 32 samples, ...". */
std::string run_of(const ModelTable& model, const PlanRequest& request) {
  const int64_t most = kTokens_max / std::max<int64_t>(1, request.max_length);
  const BatchShape whole =
      shapes_of(request, std::clamp<int64_t>(most, 1, request.train_batch_size), model.sharing)
          .typical;
  std::string blocks;
  for (const BlockTable& block : model.blocks)
    blocks += work_key_of(block, whole);
  const uint32_t shape = crc32c(std::as_bytes(std::span(blocks)));
  const bool has_driver = request.has_gpu && request.machine->gpu;
  std::string driver = has_driver ? ", driver " + request.machine->gpu->driver : "";
  if (has_driver)
    for (const GpuProfile& other : request.machine->other_gpus)
      driver += ", beside a " + other.name;
  const std::string pinned = request.pinned_bytes_max < INT64_MAX
                                 ? fmt::format(", {} bytes pinned", request.pinned_bytes_max)
                                 : "";
  return fmt::format(
      "{} {:08x}, {}, {} attention, {} samples, {} tokens, length {}, states {}{}{}{}{}{}, ferry "
      "{}",
      model.family, shape, name_of(model.compute), name_of(model.attention),
      request.train_batch_size, whole.tokens, whole.max_length, static_cast<int>(request.optim),
      request.split_master ? ", split master" : "", request.clips ? ", clipped" : "", pinned,
      driver, request.timed_with.empty() ? "" : ", " + request.timed_with, ferry_version());
}

std::string choice_key_of(const Choice& choice) {
  constexpr const char* kActivations[] = {"keep", "selective", "recompute", "host"};
  return fmt::format("{}, activations {}, {}, layer inputs {}", name_of(choice.place),
                     kActivations[static_cast<size_t>(choice.activations)],
                     choice.order == AccumulationOrder::vertical ? "vertical" : "horizontal",
                     name_of(choice.layer_inputs));
}

int64_t n_on_gpu(const Plan& plan) {
  return plan.n_resident + plan.n_weights + plan.n_states;
}

double ratio_of(const LearntStep& step) {
  return step.step_s / step.predicted_s;
}

/** Adds a step, in place of an older one of the same plan. */
void put(std::vector<LearntStep>& steps, LearntStep step) {
  std::erase_if(steps, [&](const LearntStep& old) {
    return old.run == step.run && old.plan == step.plan &&
           old.micro_batch_size == step.micro_batch_size && old.n_on_gpu == step.n_on_gpu;
  });
  steps.push_back(std::move(step));
}

/** The day of "2026-11-22T10:00:00Z". */
std::string day_of(const std::string& time) {
  return time.substr(0, time.find('T'));
}

}  // namespace

LearntSteps::LearntSteps(const ModelTable& model, const PlanRequest& request)
    : run_(request.machine ? run_of(model, request) : std::string()) {
  if (!request.machine) return;
  for (const LearntStep& step : request.machine->learnt)
    if (step.run == run_) steps_.push_back(step);
}

const LearntStep* LearntSteps::find(const Plan& plan) const {
  const std::string choice = choice_key_of(plan.choice);
  const int64_t near = std::max<int64_t>(1, plan.shape.n_blocks() / 10);
  const LearntStep* nearest = nullptr;
  const auto distance = [&](const LearntStep& step) {
    return std::abs(step.n_on_gpu - n_on_gpu(plan));
  };
  for (const LearntStep& step : steps_)
    if (step.micro_batch_size == plan.micro_batch_size && step.plan == choice &&
        distance(step) <= near && (!nearest || distance(step) <= distance(*nearest)))
      nearest = &step;
  return nearest;
}

double LearntSteps::ratio_of(const Plan& plan) const {
  if (const LearntStep* step = find(plan)) return ferry::ratio_of(*step);
  double sum = 0, sum_of_same = 0, n_same = 0;
  for (const LearntStep& step : steps_) {
    const double ratio = ferry::ratio_of(step);
    sum += ratio;
    if (step.micro_batch_size != plan.micro_batch_size) continue;
    sum_of_same += ratio;
    ++n_same;
  }
  if (n_same > 0) return sum_of_same / n_same;
  return steps_.empty() ? 1 : sum / static_cast<double>(steps_.size());
}

void LearntSteps::correct(Plan& plan) const {
  if (!plan.predicted || !has_any()) return;
  Simulation& predicted = *plan.predicted;
  predicted.step_s *= ratio_of(plan);
  const auto cut = [&](PerQueue<double>& all) {  // no queue works for longer than the step
    for (double& busy_s : all)
      busy_s = std::min(busy_s, predicted.step_s);
  };
  cut(predicted.busy_s);
  for (RankBusy& its : predicted.ranks)
    cut(its.busy_s);
  if (const LearntStep* step = find(plan)) plan.timed = day_of(step->measured);
}

LearntStep LearntSteps::step_of(const Plan& plan, double step_s, std::string measured) const {
  return {.run = run_,
          .plan = choice_key_of(plan.choice),
          .micro_batch_size = plan.micro_batch_size,
          .n_on_gpu = n_on_gpu(plan),
          .predicted_s = plan.predicted->step_s,
          .step_s = step_s,
          .measured = std::move(measured)};
}

void LearntSteps::add(LearntStep step) {
  put(steps_, std::move(step));
}

std::optional<Plan> find_learnt_plan(const ModelTable& model, const PlanRequest& request) {
  if (!request.machine || request.machine->learnt.empty()) return std::nullopt;
  const LearntSteps learnt(model, request);
  if (!learnt.has_any()) return std::nullopt;
  std::vector<Plan> rivals = search_rivals(model, request, kRival_share);
  const auto n_known =
      std::ranges::count_if(rivals, [&](const Plan& plan) { return learnt.knows(plan); });
  std::optional<Plan> fastest;
  double fastest_s = 0;
  for (Plan& plan : rivals) {
    const bool is_known = learnt.knows(plan);
    if (!is_known && n_known > 1) continue;  // the choice was made between those
    learnt.correct(plan);
    // A time that nobody saw has to be better by more than predictions tell apart.
    const double seconds = plan.predicted->step_s * (is_known ? 1 : 1 + kPrediction_share);
    if (fastest && seconds >= fastest_s) continue;
    fastest_s = seconds;
    fastest = std::move(plan);
  }
  return fastest;
}

void put_learnt(MachineProfile& profile, LearntStep step) {
  put(profile.learnt, std::move(step));
  if (profile.learnt.size() > kKept)
    profile.learnt.erase(profile.learnt.begin(), profile.learnt.end() - kKept);
}

}  // namespace ferry
