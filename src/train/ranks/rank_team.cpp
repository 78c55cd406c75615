#include "src/train/ranks/rank_team.h"

#include <fmt/format.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "src/base/error.h"
#include "src/comm/nccl/nccl_link.h"
#include "src/comm/rendezvous.h"
#include "src/engine/torch_setup.h"
#include "src/files/hf/hf_config.h"
#include "src/plan/plan.h"
#include "src/request/param_groups.h"
#include "src/request/run_plan.h"

namespace ferry {
namespace {

/** A rank that is there may be at work for as long as a step, or a pause of the run, lasts: its end
 * is seen at once, whatever the deadline is. */
constexpr std::chrono::hours kDeadline{24};
constexpr std::chrono::minutes kConnect_deadline{5};

/** Values of the same size for all ranks come first, then what they describe. */
void tell_all(Comm& comm, const std::string& text) {
  comm.broadcast_value(static_cast<int64_t>(text.size()), 0);
  std::string bytes = text;
  if (!bytes.empty()) comm.broadcast(std::as_writable_bytes(std::span(bytes)), 0);
}
std::string hear_leader(Comm& comm) {
  std::string text(static_cast<size_t>(comm.broadcast_value(int64_t{0}, 0)), '\0');
  if (!text.empty()) comm.broadcast(std::as_writable_bytes(std::span(text)), 0);
  return text;
}

}  // namespace

RankTeam::RankTeam(const RunRanks& ranks) : ranks_(ranks) {
  ConnectOptions options = {.deadline = kDeadline, .connect_deadline = kConnect_deadline};
  RankEnvironment environment;
  if (ranks.launched) {
    environment = *ranks.launched;
  } else {
    started_ = RankProcesses(ranks.world, {"follow"});
    environment = started_.environment();
    options.listener = started_.take_listener();
  }
  comm_ = connect(environment, std::move(options));
}

RankTeam::~RankTeam() {
  try {
    if (comm_) tell_all(*comm_, "");
  } catch (const std::exception&) {  // a rank is gone, and the others see that, too
  }
}

std::shared_ptr<LeadingLinks> RankTeam::open(const RankSetup& setup, const StepShape& shape) {
  tell_all(*comm_, to_json(setup).dump());
  auto links = std::make_shared<LeadingLinks>();
  links->groups = make_rank_groups(*comm_);
  links->on_host = make_comm_link(*links->groups.exchanges, *links->groups.decisions);
  if (!shape.computes_on_host)
    links->between_gpus =
        make_nccl_link(shape.ranks, *links->on_host, {.device = ranks_.gpu_of(0)});
  links->leader = std::make_unique<RankLeader>(shape, links->groups);
  return links;
}

namespace {

/** One session of the run. */
void follow_session(const RankSetup& setup, const RankEnvironment& its, Comm& comm) {
  const Machine machine = detect_machine(setup.config);
  set_up_torch({.deterministic = setup.config.flag("deterministic"),
                .intra_op_threads = static_cast<int>(
                    setup.config.maybe_integer("intra_op_threads").value_or(machine.n_cores))});
  const HfConfig model = HfConfig::parse(setup.model_config, setup.model_origin);
  ModelTable table =
      make_model_table(setup.config, model, setup.head, setup.n_labels, machine.plan);
  if (setup.facts.trains) apply_param_options(setup.config, table);
  PlanRequest request = {.has_gpu = machine.plan.has_gpu, .trains = setup.facts.trains};
  request.optim = setup.facts.optim;
  request.split_master = choose_split_master(setup.config, table.compute);
  StepShape shape = make_step_shape(table, setup.largest, request, setup.shape.n_micro_max);
  take_choices(setup.shape, shape);
  shape.ranks = {.rank = its.rank, .world = its.world};
  const Layout layout = make_layout(shape);
  RankGroups groups = make_rank_groups(comm);
  const auto on_host = make_comm_link(*groups.exchanges, *groups.decisions);
  std::unique_ptr<RankLink> between_gpus;
  SessionOptions options =
      make_session_options(setup.config, machine, setup.facts, its.local_world);
  if (machine.plan.has_gpu) {
    options.device_index = ranks_of(setup.config).gpu_of(its.local_rank);
    between_gpus = make_nccl_link(shape.ranks, *on_host, {.device = options.device_index});
  }
  options.link = between_gpus ? between_gpus.get() : on_host.get();
  Session session(table, shape, layout, setup.largest, options);
  follow(session, groups);
}

}  // namespace

int rank_of_process() {
  const auto environment = read_rank_environment(std::getenv);
  return environment ? environment->rank : 0;
}

int follow_leader() {
  // The leader says when the run ends; a rank that has lost it has nothing to do.
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGTERM, SIG_IGN);
  const auto environment = read_rank_environment(std::getenv);
  if (!environment || environment->rank == 0)
    throw Error(Fault::usage, "ranks.follow", "this process has no rank to follow with",
                "start the run with `ferry train --gpus N`, or by torchrun");
  end_with_first_rank(*environment);
  const auto comm =
      connect(*environment, {.deadline = kDeadline, .connect_deadline = kConnect_deadline});
  for (std::string text; !(text = hear_leader(*comm)).empty();)
    follow_session(setup_in(nlohmann::ordered_json::parse(text)), *environment, *comm);
  return 0;
}

}  // namespace ferry
