// The choice between plans that are promised nearly the same time, with steps whose times are
// planted; and what a machine's profile keeps of it.

#include "src/plan/plan_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "src/base/error.h"
#include "src/plan/search/search.h"
#include "tests/plan/requests.h"
#include "tests/plan/search/even_plans.h"

namespace ferry::test {
namespace {

/** Plans of several micro-batches that are promised nearly the same time. */
class PlanChoosing : public testing::Test {
 protected:
  PlanChoosing() { request_.max_length = 512; }

  /** Steps take these shares of what is promised, by micro-batch; the others as long. */
  std::function<TimedStep(const Plan&)> planted(std::map<int64_t, double> shares) {
    return [this, shares = std::move(shares)](const Plan& plan) {
      timed_.push_back(plan);
      const auto share = shares.find(plan.micro_batch_size);
      return TimedStep{plan.predicted->step_s * (share == shares.end() ? 1 : share->second), 1};
    };
  }
  PlanChoice choose(std::function<TimedStep(const Plan&)> time_step, double run_s = 1e6) {
    return choose_plan(
        model_, request_, make_plan(model_, request_),
        {.run_s = run_s, .time_step = std::move(time_step), .now = "2026-11-27T10:00:00Z"});
  }
  void learn(const PlanChoice& choice) {
    for (const LearntStep& step : choice.learnt)
      put_learnt(*request_.machine, step);
  }
  /** Of the rivals, the micro-batch that is not the planner's own. */
  int64_t another_micro_batch() {
    const std::vector<Plan> rivals = search_rivals(model_, request_, kRival_share);
    for (const Plan& plan : rivals)
      if (plan.micro_batch_size != rivals.front().micro_batch_size) return plan.micro_batch_size;
    ADD_FAILURE() << "all rivals have one micro-batch";
    return 0;
  }

  const ModelTable model_ = bert(1024, 8);
  PlanRequest request_ =
      on_gpu(even_machine({.update_params_per_s = 3e9, .shared = 0.8}), 4 * kGiB);
  std::vector<Plan> timed_;
};

TEST_F(PlanChoosing, RivalsAreTheBestOfOtherMicroBatchesAndChoices) {
  for (const bool clips : {true, false}) {
    request_.clips = clips;
    const std::vector<Plan> rivals = search_rivals(model_, request_, kRival_share);
    ASSERT_GE(rivals.size(), 2u);
    EXPECT_EQ(rivals.front().why, make_plan(model_, request_).why);
    const double first_s = rivals.front().predicted->step_s;
    std::set<std::string> all;
    for (size_t i = 0; i < rivals.size(); ++i) {
      const Plan& plan = rivals[i];
      EXPECT_LE(plan.predicted->step_s, first_s * 1.1);
      EXPECT_GE(plan.predicted->step_s, i > 1 ? rivals[i - 1].predicted->step_s : 0);
      EXPECT_TRUE(all.insert(plan.why).second) << plan.why;
      for (size_t j = 0; j < i; ++j) {  // something has less to do than in each before
        const Plan& other = rivals[j];
        bool has_less = plan.micro_batch_size != other.micro_batch_size ||
                        plan.predicted->step_s < other.predicted->step_s;
        for (size_t q = 0; q < kQueues; ++q)
          has_less = has_less || plan.predicted->alone_s[q] < other.predicted->alone_s[q];
        EXPECT_TRUE(has_less) << plan.why;
      }
      EXPECT_LE(plan.layout.n_bytes[0], request_.gpu_budget_bytes);
      EXPECT_GT(plan.layout.n_bytes[0], 0);
      // It is the best of its micro-batch and choice.
      PlanRequest forced = request_;
      forced.micro_batch_size = plan.micro_batch_size;
      forced.activations = plan.choice.activations;
      forced.order = plan.choice.order;
      forced.layer_inputs = plan.choice.layer_inputs;
      EXPECT_LE(plan.predicted->step_s, find_plan(model_, forced)->predicted->step_s * 1.03)
          << plan.why;
    }
  }
  request_.machine.reset();
  EXPECT_TRUE(search_rivals(model_, request_, kRival_share).empty());
}

/** As long as each was divided in the best way only after the choice, another micro-batch or choice
 * was up to 6 % faster than the planner's own. */
TEST(PlanSearch, NoRivalIsFasterThanThePlannersOwn) {
  const ModelTable model = bert_large(DType::bf16);
  for (const auto& [machine, gib, batch, clips] :
       {std::tuple("h100-80g", 3, 32, false), std::tuple("h100-80g", 6, 32, true),
        std::tuple("2080ti-11g", 9, 64, false), std::tuple("4090-24g", 4, 64, false)}) {
    PlanRequest asked = request(gib * kGiB);
    asked.machine = find_machine_preset(machine);
    asked.train_batch_size = batch;
    asked.max_length = 512;
    asked.clips = clips;
    const double own_s = make_plan(model, asked).predicted->step_s;
    const std::vector<Plan> rivals = search_rivals(model, asked, kRival_share);
    ASSERT_GE(rivals.size(), 2u);
    EXPECT_EQ(rivals.front().predicted->step_s, own_s);
    for (const Plan& rival : rivals)
      EXPECT_GE(rival.predicted->step_s, own_s * (1 - kPrediction_share))
          << machine << ", " << gib << " GiB: " << rival.why;
  }
}

TEST_F(PlanChoosing, TakesThePlanThatWasTimedFastest) {
  const Plan promised = make_plan(model_, request_);
  const int64_t faster = another_micro_batch();
  double most_s = 0;
  ChoosingOptions options = {
      .run_s = 1e6, .time_step = planted({{faster, 0.85}}), .begin = [&](double s) { most_s = s; }};
  const PlanChoice choice = choose_plan(model_, request_, promised, options);
  EXPECT_EQ(most_s, 300);
  EXPECT_EQ(choice.plan.micro_batch_size, faster);
  EXPECT_NE(promised.micro_batch_size, faster);
  ASSERT_EQ(choice.tried.size(), timed_.size());
  EXPECT_GE(choice.tried.size(), 2u);
  EXPECT_NE(choice.tried[0].plan.micro_batch_size, choice.tried[1].plan.micro_batch_size);
  EXPECT_LE(choice.learnt.size(), 4u);
  EXPECT_EQ(choice.tried.front().plan.why, promised.why) << "the planner's own is the first";
  double fastest_s = 1e9;
  for (size_t i = 0; i < choice.tried.size(); ++i) {
    const Rival& rival = choice.tried[i];
    EXPECT_EQ(rival.promised_s, timed_[i].predicted->step_s);
    EXPECT_NEAR(rival.plan.predicted->step_s, *rival.step_s, 1e-9);
    fastest_s = std::min(fastest_s, *rival.step_s);
  }
  EXPECT_NEAR(choice.plan.predicted->step_s, fastest_s, 1e-9);
}

/** The app reads the progress of a run that has no directory yet in the lines that the run says. */
TEST_F(PlanChoosing, SaysHowFarItIs) {
  std::string said = "ferry: reading texts\n";
  EXPECT_FALSE(find_choosing_progress(said));
  std::vector<ChoosingProgress> all;
  ChoosingOptions options = {.run_s = 1e6, .time_step = planted({})};
  options.next = [&](const ChoosingProgress& progress, const Plan& plan) {
    EXPECT_EQ(timed_.size() + 1, static_cast<size_t>(progress.n)) << "before it is timed";
    EXPECT_GE(progress.n_most, progress.n);
    all.push_back(progress);
    said += "ferry: " + words_of(progress);
    EXPECT_EQ(find_choosing_progress(said), progress);
    said += ": " + plan.why + "\n";
    EXPECT_EQ(find_choosing_progress(said), progress);
  };
  const PlanChoice choice = choose_plan(model_, request_, make_plan(model_, request_), options);
  EXPECT_EQ(all.size(), choice.tried.size());
  said += "ferry: " + std::string(kChosen) + ": " + choice.plan.why + "\n";
  EXPECT_FALSE(find_choosing_progress(said)) << "it is over";
  for (const char* cut :
       {"choosing the plan (", "choosing the plan (2", "choosing the plan (2 of at most",
        "choosing the plan (2 of at most 3", "choosing the plan (x of at most 3)"})
    EXPECT_FALSE(find_choosing_progress(cut)) << cut;
}

TEST_F(PlanChoosing, ThePlannersOwnStaysWhereItIsTheFastest) {
  const Plan promised = make_plan(model_, request_);
  const PlanChoice choice = choose([&](const Plan& plan) {
    return TimedStep{plan.predicted->step_s * (plan.why == promised.why ? 1 : 1.05), 1};
  });
  EXPECT_EQ(choice.plan.why, promised.why);
  EXPECT_EQ(choice.plan.micro_batch_size, promised.micro_batch_size);
}

TEST_F(PlanChoosing, AShortRunTimesNothing) {
  const PlanChoice choice = choose(planted({}), /*run_s=*/60);
  EXPECT_TRUE(timed_.empty());
  EXPECT_TRUE(choice.tried.empty());
  EXPECT_TRUE(choice.learnt.empty());
  EXPECT_EQ(choice.plan.why, make_plan(model_, request_).why);
}

TEST_F(PlanChoosing, EndsWhereItsShareOfTheRunIsSpent) {
  const double run_s = 1e3;
  const PlanChoice choice = choose(
      [&](const Plan& plan) {
        timed_.push_back(plan);
        return TimedStep{2 * plan.predicted->step_s, kChoosing_share * run_s};
      },
      run_s);
  EXPECT_EQ(choice.tried.size(), 1u);
}

TEST_F(PlanChoosing, ARivalThatDoesNotFitIsStruck) {
  const int64_t too_large = make_plan(model_, request_).micro_batch_size;
  const auto refused = [](int64_t size, auto time_step) {
    return [=](const Plan& plan) {
      const TimedStep timed = time_step(plan);
      return plan.micro_batch_size == size ? TimedStep{std::nullopt, 1} : timed;
    };
  };
  const PlanChoice choice = choose(refused(too_large, planted({})));
  EXPECT_FALSE(choice.tried.front().step_s);
  EXPECT_NE(choice.plan.micro_batch_size, too_large);
  EXPECT_EQ(std::ssize(choice.learnt), std::ranges::count_if(choice.tried, [](const Rival& rival) {
              return rival.step_s.has_value();
            }));
  // Where none fits the run itself says so.
  const PlanChoice none = choose([](const Plan&) { return TimedStep{std::nullopt, 1}; });
  EXPECT_EQ(none.plan.why, make_plan(model_, request_).why);
  EXPECT_TRUE(none.learnt.empty());
}

TEST_F(PlanChoosing, AnErrorEndsIt) {
  EXPECT_THROW(choose([](const Plan&) -> TimedStep {
                 throw Error(Fault::machine, "cuda", "it is gone", "");
               }),
               Error);
}

TEST_F(PlanChoosing, WhatIsForcedIsNotChosen) {
  request_.micro_batch_size = another_micro_batch();
  for (const Rival& rival : choose(planted({})).tried)
    EXPECT_EQ(rival.plan.micro_batch_size, *request_.micro_batch_size);
  request_.activations = Activations::keep;
  request_.placement = Place::host;
  request_.layer_inputs = Place::device;
  request_.order = AccumulationOrder::horizontal;
  timed_.clear();
  EXPECT_TRUE(choose(planted({})).tried.empty());
  EXPECT_TRUE(timed_.empty());
}

TEST_F(PlanChoosing, PlansOnADriveAreNotTimed) {
  request_.machine = with_drive(*request_.machine);
  request_.has_nvme = true;
  request_.host_budget_bytes = kGiB / 2;
  request_.gpu_budget_bytes = kGiB;
  ASSERT_GT(make_plan(model_, request_).n_on_nvme, 0);
  EXPECT_TRUE(choose(planted({})).tried.empty());
}

TEST_F(PlanChoosing, TheProfileRemembers) {
  const int64_t faster = another_micro_batch();
  const PlanChoice choice = choose(planted({{faster, 0.85}}));
  learn(choice);
  timed_.clear();
  const Plan again = make_plan(model_, request_);
  EXPECT_EQ(again.why, choice.plan.why);
  EXPECT_NEAR(again.predicted->step_s, choice.plan.predicted->step_s, 1e-9);
  EXPECT_EQ(again.timed, "2026-11-27");
  EXPECT_TRUE(choose(planted({})).tried.empty()) << "it has been measured";
  // With a little more memory, too, and for the micro-batch that another plan shares.
  PlanRequest more = request_;
  more.gpu_budget_bytes += 64 * kMiB;
  EXPECT_EQ(make_plan(model_, more).micro_batch_size, faster);

  // Of other texts, types or settings nothing is known.
  for (const auto& change : std::vector<std::function<void(PlanRequest&)>>{
           [](PlanRequest& r) { r.train_batch_size = 64; },
           [](PlanRequest& r) { r.max_length = 384; }, [](PlanRequest& r) { r.clips = false; },
           [](PlanRequest& r) { r.optim = simd::Optim::adamw_8bit; },
           [](PlanRequest& r) { r.pinned_bytes_max = 512 * kMiB; },
           [](PlanRequest& r) { r.timed_with = "deterministic = false"; }}) {
    PlanRequest other = request_;
    change(other);
    EXPECT_EQ(make_plan(model_, other).timed, "");
    EXPECT_FALSE(LearntSteps(model_, other).has_any());
  }
  EXPECT_FALSE(LearntSteps(bert(1024, 7), request_).has_any());
}

/** Times of two days are not mixed: what was timed last of a plan counts alone. */
TEST_F(PlanChoosing, AStepThatIsTimedAgainTakesThePlaceOfTheOlderOne) {
  const Plan plan = search_rivals(model_, request_, kRival_share).front();
  LearntSteps steps(model_, request_);
  steps.add(steps.step_of(plan, 3 * plan.predicted->step_s, "2026-11-26T10:00:00Z"));
  steps.add(steps.step_of(plan, 1.5 * plan.predicted->step_s, "2026-11-27T10:00:00Z"));
  EXPECT_NEAR(steps.ratio_of(plan), 1.5, 1e-9);
  Plan other = plan;  // of the same micro-batch: the mean of what is known counts
  other.choice.activations = Activations::recompute;
  ASSERT_FALSE(steps.knows(other));
  EXPECT_NEAR(steps.ratio_of(other), 1.5, 1e-9);
  other.micro_batch_size += 1;
  EXPECT_NEAR(steps.ratio_of(other), 1.5, 1e-9);
}

TEST_F(PlanChoosing, AProfileKeepsTheNewestSteps) {
  const LearntStep step = choose(planted({})).learnt.front();
  MachineProfile profile = {.name = "this"};
  for (int i = 0; i < 3; ++i) {
    LearntStep newer = step;
    newer.step_s = i + 1;
    put_learnt(profile, newer);
  }
  ASSERT_EQ(profile.learnt.size(), 1u);
  EXPECT_EQ(profile.learnt.front().step_s, 3);
  EXPECT_EQ(to_json(parse_machine_profile(to_json(profile), "test")), to_json(profile));
  for (int64_t i = 1; i <= 200; ++i) {
    LearntStep other = step;
    other.micro_batch_size = i + 1000;
    put_learnt(profile, other);
  }
  EXPECT_EQ(profile.learnt.size(), 100u);
  EXPECT_EQ(profile.learnt.back().micro_batch_size, 1200);
  EXPECT_EQ(to_json(parse_machine_profile(to_json(profile), "test")), to_json(profile));
}

}  // namespace
}  // namespace ferry::test
