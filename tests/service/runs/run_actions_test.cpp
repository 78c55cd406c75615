// The actions that a run allows in each of its states.

#include "src/service/runs/run_actions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "src/runs/directory/run_directory.h"

namespace ferry::service {

void PrintTo(RunAction action, std::ostream* out) {
  *out << name_of(action);
}

namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using enum RunAction;

constexpr RunAction kAll[] = {
    pause,      resume,          save_now,   sample_now, stop,      stop_without_saving,
    force_quit, change_settings, resume_run, extend_run, delete_run};
static_assert(std::size(kAll) == kRunActions);

std::set<RunAction> allowed(const RunFacts& facts) {
  std::set<RunAction> all;
  const AllowedActions actions = allowed_actions(facts);
  for (const RunAction action : kAll)
    if (actions.allows(action)) all.insert(action);
  return all;
}

RunFacts living(const char* phase) {
  return {.phase = phase, .trainer = Trainer::here, .has_socket = true};
}

TEST(RunActions, OfARunThatTrains) {
  for (const char* phase :
       {"training", "evaluating", "sampling", "preparing", "a phase of a newer Ferry"})
    EXPECT_THAT(allowed(living(phase)),
                UnorderedElementsAre(pause, save_now, stop, stop_without_saving, change_settings))
        << phase;
  RunFacts elsewhere = living("training");
  elsewhere.trainer = Trainer::elsewhere;  // in a container that shares the socket
  EXPECT_EQ(allowed(elsewhere), allowed(living("training")));
}

TEST(RunActions, ARunWithPromptsMakesSamplesWhileItIsNotPaused) {
  RunFacts facts = living("training");
  EXPECT_EQ(allowed_actions(facts).why_not(sample_now), "it has no prompts to go on with");
  facts.has_prompts = true;
  for (const char* phase : {"training", "evaluating", "sampling", "preparing"}) {
    facts.phase = phase;
    EXPECT_TRUE(allowed(facts).contains(sample_now)) << phase;
  }
  for (const char* phase : {"paused", "saving"}) {
    facts.phase = phase;
    EXPECT_FALSE(allowed(facts).contains(sample_now)) << phase;
  }
  EXPECT_FALSE(allowed({.phase = "finished", .has_prompts = true}).contains(sample_now));
}

TEST(RunActions, OfARunThatIsPaused) {
  EXPECT_THAT(allowed(living("paused")),
              UnorderedElementsAre(resume, save_now, stop, stop_without_saving, change_settings));
}

TEST(RunActions, BeforeItTakesRequestsItCanOnlyBeEnded) {
  RunFacts facts = living("preparing");
  facts.has_socket = false;
  EXPECT_THAT(allowed(facts), UnorderedElementsAre(stop_without_saving));
  EXPECT_TRUE(stops_by_signal(facts));
  facts.trainer = Trainer::elsewhere;
  EXPECT_THAT(allowed(facts), IsEmpty());
  EXPECT_FALSE(stops_by_signal(living("training")));
}

TEST(RunActions, AtItsEndItIsLeftAloneUnlessItWaitsForRoom) {
  RunFacts facts = living("saving");
  EXPECT_THAT(allowed(facts), IsEmpty());
  facts.has_socket = false;
  EXPECT_THAT(allowed(facts), IsEmpty());
  facts.waits_for_room = true;
  EXPECT_THAT(allowed(facts), UnorderedElementsAre(stop_without_saving));
  EXPECT_TRUE(stops_by_signal(facts));
}

TEST(RunActions, OnceItIsOver) {
  for (const char* phase : {"stopped", "failed", "lost", "unstarted"})
    EXPECT_THAT(allowed({.phase = phase}), UnorderedElementsAre(resume_run, delete_run)) << phase;
  EXPECT_THAT(allowed({.phase = "finished"}), UnorderedElementsAre(delete_run));
  EXPECT_THAT(allowed({.phase = "finished", .has_checkpoint = true}),
              UnorderedElementsAre(extend_run, delete_run));
  EXPECT_THAT(allowed({.phase = "unreadable"}), UnorderedElementsAre(delete_run));
  EXPECT_THAT(allowed({.phase = "stopped", .is_writable = false, .is_removable = false}),
              IsEmpty());
}

TEST(RunActions, OfARunOfAnotherMachineWaitUntilItIsHeardOf) {
  EXPECT_THAT(allowed({.phase = "training", .trainer = Trainer::unknown, .has_socket = true}),
              IsEmpty());
}

TEST(RunActions, ForceComesAfterAStopThatIsOverdue) {
  RunFacts facts = living("training");
  facts.is_stop_overdue = true;
  EXPECT_TRUE(allowed(facts).contains(force_quit));
  facts.trainer = Trainer::elsewhere;
  EXPECT_FALSE(allowed(facts).contains(force_quit));
  facts = {.phase = "stopped", .is_stop_overdue = true};
  EXPECT_FALSE(allowed(facts).contains(force_quit));
}

/** Every combination of facts. */
std::vector<RunFacts> all_facts() {
  std::vector<RunFacts> all;
  std::vector<std::string> phases = {"unreadable", "", "unheard of"};
  for (int phase = 0; phase <= static_cast<int>(runs::Phase::sampling); ++phase)
    phases.emplace_back(name_of(static_cast<runs::Phase>(phase)));
  for (const std::string& phase : phases)
    for (const Trainer trainer :
         {Trainer::none, Trainer::here, Trainer::elsewhere, Trainer::unknown})
      for (unsigned bits = 0; bits < 128; ++bits)
        all.push_back({.phase = phase,
                       .trainer = trainer,
                       .has_socket = (bits & 1) != 0,
                       .has_prompts = (bits & 64) != 0,
                       .waits_for_room = (bits & 2) != 0,
                       .has_checkpoint = (bits & 4) != 0,
                       .is_writable = (bits & 8) != 0,
                       .is_removable = (bits & 16) != 0,
                       .is_stop_overdue = (bits & 32) != 0});
  return all;
}

TEST(RunActions, AreNeverAtOddsWithEachOther) {
  for (const RunFacts& facts : all_facts()) {
    const auto actions = allowed(facts);
    const bool has_process = facts.trainer != Trainer::none;
    SCOPED_TRACE(testing::Message()
                 << facts.phase << ", trainer " << static_cast<int>(facts.trainer));
    for (const RunAction action : {pause, resume, save_now, sample_now, stop, change_settings})
      if (actions.contains(action)) {
        EXPECT_TRUE(has_process && facts.has_socket) << name_of(action);
      }
    for (const RunAction action : {resume_run, extend_run, delete_run})
      if (actions.contains(action)) {
        EXPECT_FALSE(has_process) << name_of(action);
      }
    for (const RunAction action : {stop_without_saving, force_quit})
      if (actions.contains(action)) {
        EXPECT_TRUE(has_process) << name_of(action);
      }
    EXPECT_FALSE(actions.contains(pause) && actions.contains(resume));
    EXPECT_FALSE(actions.contains(resume_run) && actions.contains(extend_run));
    if (facts.trainer == Trainer::unknown) {
      EXPECT_THAT(actions, IsEmpty());
    }
  }
}

TEST(RunActions, SayWhyNot) {
  for (const RunFacts& facts : all_facts()) {
    const AllowedActions actions = allowed_actions(facts);
    for (const RunAction action : kAll)
      EXPECT_EQ(actions.allows(action), actions.why_not(action).empty());
  }
  EXPECT_EQ(allowed_actions(living("paused")).why_not(pause), "it is paused already");
  EXPECT_EQ(allowed_actions(living("training")).why_not(delete_run),
            "its process runs: stop it first");
  EXPECT_EQ(allowed_actions({.phase = "finished"}).why_not(resume_run),
            "it is finished; it can be given more steps");
}

TEST(Phases, AreFoundByTheirNames) {
  for (int phase = 0; phase <= static_cast<int>(runs::Phase::sampling); ++phase)
    EXPECT_EQ(runs::phase_named(name_of(static_cast<runs::Phase>(phase))),
              static_cast<runs::Phase>(phase));
  EXPECT_EQ(runs::phase_named("dreaming"), std::nullopt);
}

}  // namespace
}  // namespace ferry::service
