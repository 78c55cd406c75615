#pragma once
// A job is all that `ferry train`, `eval` or `predict` needs before its first step, in the parts
// that it is made of. prepare() opens and checks them in the order that finds mistakes soonest:
// model directory, texts, tensor table, tokens, plan.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/config/config.h"
#include "src/engine/session.h"
#include "src/engine/state/weights.h"
#include "src/files/hf/hf_directory.h"
#include "src/inputs/counts.h"
#include "src/inputs/prompts.h"
#include "src/inputs/tokens.h"
#include "src/plan/plan_choice.h"
#include "src/runs/directory/checkpoints.h"
#include "src/runs/store/store_place.h"
#include "src/text/tokenizer.h"
#include "src/train/prepare/identity.h"
#include "src/train/prepare/machine.h"

namespace ferry {

class RankTeam;
class RunStore;

/** The model: where it comes from, and its tensors with the task's head. Weights that its directory
 * lacks are drawn. */
struct Model {
  HfDirectory directory;
  Tokenizer tokenizer;
  ModelTable table;
  bool has_checkpoint = false;  ///< its weights are a checkpoint's, loaded by who resumes
};

/** The model's configuration with the run's head and labels, as it is written beside weights of
 * that type. */
HfConfig config_of_result(const Model& model, const Task& task, DType dtype = DType::f32);

/** What the planner was asked, while the plan may yet be another. */
struct OpenPlan {
  PlanRequest request;
  CountedTexts counted;
};

struct Job {
  config::Config config;
  Machine machine;
  Model model;
  Data data;
  Steps steps;
  Plan plan;                          ///< the place of every byte, src/plan/plan.h
  std::optional<OpenPlan> open_plan;  ///< of a new training, until settle_plan()
  std::vector<Rival> tried;           ///< the plans of which a step was timed, to choose one
  runs::StorePlace store;             ///< of states on drives, where the plan has some
  std::shared_ptr<RankTeam> team;     ///< of a training with several ranks; null: there is one
  /** By rank, where the ranks were timed: seconds of the same passes. */
  std::vector<double> rank_seconds;
  /** Of the step that a run goes on from, where it may have ended before its line was written. */
  std::optional<StepReport> last_report;
  Identity identity;                    ///< of a training
  TextGeneration generation;            ///< the prompts of `ferry generate`, a training's samples
  std::vector<std::string> notes;       ///< notes for the user: what was taken for what
  std::vector<std::string> rank_notes;  ///< how the ranks share a step; they quote no data
};

enum class Purpose : uint8_t { training, evaluation, prediction };

struct JobRequest {
  Purpose purpose = Purpose::training;
  /** The training goes on from it: the model's config and tokenizer are taken from there, so that
   * the model that the run began with may be gone. */
  std::optional<runs::Checkpoint> checkpoint;
  std::vector<std::string> words;  ///< texts to predict in place of a dataset
  std::shared_ptr<RankTeam> team;  ///< of a training whose ranks have met already
};

/** Throws Error for everything that is wrong with settings, model or data. Paths among the settings
 * of a training are absolute afterwards. The plan of a new training is open, and it has no
 * identity: settle_plan() (settle_plan.h) comes next. A resumed one keeps its micro-batch. */
Job prepare(config::Config config, const JobRequest& request);

/** Gives the job this plan, of those that its open plan allows. */
void take_plan(Job& job, Plan plan);
/** The plan stays as it is: it fixes the identity of a training. */
void close_plan(Job& job);

/** Copies need pinned host memory: on a GPU, and where one is simulated. Nothing is pinned where
 * the CPU computes. */
bool pins_memory(const Job& job);

/** The engine of a job: memory, device and weights as the plan says; weights not where a
 * checkpoint's come later. The job and the store outlive it. */
std::unique_ptr<Session> open_session(const Job& job,
                                      RunStore& store,
                                      LoadReport* report = nullptr);

}  // namespace ferry
