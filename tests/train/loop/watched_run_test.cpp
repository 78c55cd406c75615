// A real training as the app has it: watched, steered and planned from another process, by several
// clients, and found again after each end.

#include <poll.h>

#include "src/config/command_line/command_line.h"
#include "src/runs/directory/run_directory.h"
#include "src/service/plan/plan_answer.h"
#include "src/service/runs/metrics_reader.h"
#include "src/service/runs/run_client.h"
#include "src/service/runs/run_watch.h"
#include "src/service/runs/trainer_process.h"
#include "tests/train/run_test.h"

namespace ferry::test {
namespace {

using service::RunAction;
using service::RunReply;

class WatchedTraining : public RunTest {
 protected:
  static RunReply reply_to(service::RunClient& client, int64_t id) {
    for (;;) {
      pollfd watched = {client.descriptor(), POLLIN, 0};
      if (::poll(&watched, 1, 120'000) != 1) throw std::runtime_error("the run does not answer");
      for (const RunReply& reply : client.take())
        if (reply.id == id) return reply;
    }
  }
  static void wait_for_phase(service::RunWatch& watch, const std::string& phase) {
    wait_until([&] { return watch.look().phase == phase; });
  }
  static bool allows(service::RunWatch& watch, RunAction action) {
    return service::allowed_actions(watch.look()).allows(action);
  }
};

TEST_F(WatchedTraining, IsPausedSavedStoppedAndResumedBySeveralClients) {
  using Outcome = RunReply::Outcome;
  const fs::path run = root_ / "steered";
  const pid_t child = start(new_run("steered", {"--epochs=1000", "--save-strategy=no"}));
  service::RunWatch watch(run);
  service::MetricsReader metrics(run);
  wait_for_phase(watch, "training");
  wait_until([&] { return metrics.poll(), metrics.n_steps() >= 3; });
  EXPECT_EQ(watch.facts().trainer, service::Trainer::here);
  ASSERT_TRUE(allows(watch, RunAction::pause));
  EXPECT_FALSE(allows(watch, RunAction::delete_run));
  service::RunClient client(run), other(run);
  EXPECT_EQ(reply_to(client, client.pause()).outcome, Outcome::done);
  EXPECT_EQ(watch.look().phase, "paused");
  EXPECT_FALSE(allows(watch, RunAction::pause));
  metrics.poll();
  const int64_t n_steps = metrics.n_steps();
  const RunReply refused = reply_to(client, client.set("seed", "3"));
  EXPECT_EQ(refused.outcome, Outcome::refused);
  EXPECT_EQ(reply_to(client, client.set("learning_rate", "1e-3")).outcome, Outcome::done);
  EXPECT_EQ(reply_to(other, other.save()).outcome, Outcome::done);
  EXPECT_FALSE(metrics.poll().is_anew);
  EXPECT_EQ(metrics.n_steps(), n_steps) << "a paused run takes no steps";
  ASSERT_TRUE(allows(watch, RunAction::resume));
  EXPECT_EQ(reply_to(other, other.resume()).outcome, Outcome::done);
  wait_until([&] { return metrics.poll(), metrics.n_steps() > n_steps + 3; });
  EXPECT_EQ(reply_to(client, client.stop(true)).outcome, Outcome::done);
  EXPECT_EQ(wait_for(child).code(), 130);
  EXPECT_EQ(watch.look().phase, "stopped");
  EXPECT_TRUE(watch.facts().has_checkpoint);
  EXPECT_TRUE(allows(watch, RunAction::resume_run));
  EXPECT_EQ(reply_to(client, client.pause()).outcome, Outcome::unheard);

  // Killed, it is lost; what it did since its checkpoint is void.
  const pid_t again = start(go_on("steered"));
  wait_for_phase(watch, "training");
  const int64_t n_saved = metrics.n_steps();
  wait_until([&] { return metrics.poll(), metrics.n_steps() > n_saved + 3; });
  service::kill_trainer(run);
  EXPECT_TRUE(wait_for(again).was_killed());
  EXPECT_EQ(watch.look().phase, "lost");
  const pid_t last = start(go_on("steered", {"--max-steps=" + std::to_string(n_saved + 1)}));
  bool was_anew = false;
  wait_until([&] {
    was_anew = metrics.poll().is_anew || was_anew;
    return watch.look().phase == "finished";
  });
  EXPECT_EQ(wait_for(last).code(), 0);
  while (metrics.poll().is_behind) {
  }
  EXPECT_TRUE(was_anew);
  EXPECT_EQ(metrics.n_steps(), n_saved + 1);
  EXPECT_EQ(metrics.n_bad_lines(), 0);
  EXPECT_EQ(metrics.find("loss")->n_values(), n_saved + 1);
  EXPECT_TRUE(allows(watch, RunAction::extend_run));
  EXPECT_TRUE(allows(watch, RunAction::delete_run));
}

TEST_F(WatchedTraining, IsInterruptedBeforeItTakesRequests) {
  const fs::path run = root_ / "early";
  const pid_t child = start(new_run("early"));
  service::RunWatch watch(run);
  wait_until([&] { return watch.look().trainer == service::Trainer::here; });
  if (service::stops_by_signal(watch.facts())) {
    EXPECT_TRUE(allows(watch, RunAction::stop_without_saving));
    EXPECT_FALSE(allows(watch, RunAction::pause));
  }
  service::interrupt_trainer(run);
  EXPECT_EQ(wait_for(child).code(), 130) << text_of(root_ / "err");
  EXPECT_NE(watch.look().phase, "training");
  EXPECT_TRUE(allows(watch, RunAction::resume_run));
}

TEST_F(WatchedTraining, MakesThePlanThatWasAnswered) {
  const std::vector<std::vector<std::string>> runs = {
      {"--max-steps=1"}, {"--max-steps=1", "--task=mlm", "--packing=true"}};
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::string run = "planned" + std::to_string(i);
    const std::vector<std::string> words = new_run(run, runs[i]);
    const fs::path here = fs::current_path();
    fs::current_path(root_);
    const config::CommandLine command =
        config::parse_command_line("train", std::span(words).subspan(1), {});
    const service::PlanAnswer answer = service::Planner().answer(command.config);
    fs::current_path(here);
    ASSERT_EQ(ferry(words).code(), 0) << text_of(root_ / "err");
    const auto record = runs::read_record(root_ / run);
    const auto& planned = record.at("plan");
    EXPECT_EQ(planned.at("why"), answer.plan->why);
    EXPECT_EQ(planned.at("micro_batch_size"), answer.plan->micro_batch_size);
    auto rows = nlohmann::ordered_json::array();
    for (const PlanRow& row : rows_of(*answer.plan, answer.request.has_gpu))
      rows.push_back({{"tag", row.name}, {"place", name_of(row.place)}, {"bytes", row.n_bytes}});
    EXPECT_EQ(planned.at("rows"), rows);
  }
}

}  // namespace
}  // namespace ferry::test
