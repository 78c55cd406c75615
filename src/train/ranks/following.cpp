#include "src/train/ranks/following.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string_view>
#include <thread>

#include "src/base/error.h"
#include "src/base/print.h"
#include "src/base/process/supervision.h"
#include "src/comm/names.h"
#include "src/comm/rank_processes.h"
#include "src/comm/rendezvous.h"
#include "src/engine/torch_setup.h"
#include "src/files/hf/hf_config.h"
#include "src/plan/plan.h"
#include "src/request/param_groups.h"
#include "src/request/run_plan.h"
#include "src/train/control/interrupt.h"
#include "src/train/prepare/run_store.h"
#include "src/train/ranks/rank_links.h"
#include "src/train/ranks/rank_messages.h"
#include "src/train/ranks/rank_pulse.h"
#include "src/train/ranks/rank_setup.h"
#include "src/train/ranks/rank_team.h"
#include "src/train/ranks/rank_timing.h"

namespace ferry {
namespace {

int rank_here = 0;

/** One session of the run. */
void follow_session(const RankSetup& setup,
                    const RankEnvironment& its,
                    std::optional<int> device,
                    Comm& comm) {
  const int gpu = device.value_or(gpu_of_rank(setup.config, its.local_rank));
  const Machine machine = detect_machine(setup.config, {gpu});
  set_up_torch({.deterministic = setup.config.flag("deterministic"),
                .intra_op_threads = static_cast<int>(
                    setup.config.maybe_integer("intra_op_threads").value_or(machine.n_cores))});
  const HfConfig model = HfConfig::parse(setup.model_config, setup.model_origin);
  ModelTable table = make_model_table(setup.config, model, setup.head, setup.n_labels, machine.plan,
                                      setup.shape.ranks.sharing);
  if (setup.facts.trains) apply_param_options(setup.config, table);
  PlanRequest request = {.has_gpu = machine.plan.has_gpu, .trains = setup.facts.trains};
  request.optim = setup.facts.optim;
  request.split_master = choose_split_master(setup.config, table.compute);
  StepShape shape = make_step_shape(table, setup.largest, request, setup.shape.n_micro_max);
  take_choices(setup.shape, shape);
  shape.ranks.rank = its.rank;
  const Layout layout = make_layout(shape);
  RankLinks links = make_rank_links(comm, shape, gpu);
  SessionOptions options =
      make_session_options(setup.config, machine, setup.facts, its.local_world);
  if (machine.plan.has_gpu) options.device_index = gpu;
  PassingStore store;
  options.drive = store.options(setup.config, machine, layout, setup.run_id,
                                {.number = its.local_rank, .n_processes = its.local_world});
  options.link = links.link();
  options.sharing_link = links.sharing_link();
  Session session(table, shape, layout, setup.largest, options);
  follow(session, links.groups);
}

/** Until the leader ends. `device`: index of the GPU; nothing: as the leader's options say. */
RankEnd follow_leader(const RankEnvironment& its, std::optional<int> device, Comm& comm) {
  const auto pulse = start_pulse(comm);
  for (;;) {
    const auto message = nlohmann::ordered_json::parse(hear_leader(comm));
    if (auto end = end_in(message)) return *std::move(end);
    if (const auto timing = timing_in(message))
      time_ranks(comm, *timing, device.value_or(timing->gpu_of(its.local_rank)));
    else
      follow_session(setup_in(message), its, device, comm);
  }
}

/** The leader says when the run ends; a rank that has lost it has nothing to do. */
void leave_interrupts_to_leader() {
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
}

volatile std::sig_atomic_t n_interrupts = 0;

void answer_interrupt(int) {
  n_interrupts = n_interrupts + 1;
  constexpr std::string_view kFirst =
      "\nferry: this host follows; stop the run on host 0. Once more leaves at once, and ends the "
      "run\n";
  if (n_interrupts > 1) ::_exit(kInterruptedExit);
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, kFirst.data(), kFirst.size());
}

/** A person who presses Ctrl-C here is told where to do so. */
void explain_interrupts() {
  struct sigaction action {};
  action.sa_handler = answer_interrupt;
  action.sa_flags = SA_RESTART;
  for (int signal : {SIGINT, SIGTERM})
    ::sigaction(signal, &action, nullptr);
}

RankEnvironment place_of_process() {
  const auto place = read_rank_environment(std::getenv);
  if (!place || place->rank == 0)
    throw Error(Fault::usage, "ranks.follow", "this process has no rank to follow with",
                "start the run with `ferry train --gpus N`, or by torchrun");
  rank_here = place->rank;
  return *place;
}

/** One of several processes of this host: another one, or a launcher, says what becomes of it. */
int follow_in_silence(std::optional<int> device, std::chrono::seconds patience) {
  const RankEnvironment place = place_of_process();
  leave_interrupts_to_leader();
  const auto comm = connect(place, {.deadline = kRankDeadline, .connect_deadline = patience});
  return follow_leader(place, device, *comm).exit_code;
}

/** The first rank of a host, and the processes of the others. */
struct Host {
  std::unique_ptr<RankProcesses> processes;
  std::unique_ptr<Comm> comm;  // first to end: the other processes see it
};

Host connect_host(const RunRanks& ranks, std::chrono::seconds patience) {
  Host host{std::make_unique<RankProcesses>(), nullptr};
  host.processes->start(*ranks.place, words_of_child(ranks, patience));
  host.comm =
      connect(*ranks.place, {.deadline = kRankDeadline,
                             .connect_deadline = patience,
                             .while_waiting = [all = host.processes.get()] { all->check(); }});
  host.processes->note_meeting();
  return host;
}

/** A host that is started anew may come before the leader that it has lost is quite gone, and then
 * tries again. */
Host meet_leader(const RunRanks& ranks, std::chrono::seconds patience) {
  using namespace std::chrono_literals;
  const auto end = std::chrono::steady_clock::now() + patience;
  for (;;) {
    try {
      return connect_host(ranks, patience);
    } catch (const Error&) {
      if (!restart_of_this_process() || std::chrono::steady_clock::now() > end) throw;
    }
    std::this_thread::sleep_for(500ms);
  }
}

}  // namespace

int rank_of_process() {
  return rank_here;
}

int follow_as_launched() {
  return follow_in_silence(std::nullopt, kConnectDeadline);
}

RankProcesses::Words words_of_child(const RunRanks& ranks, std::chrono::seconds patience) {
  return [&ranks, patience](int local_rank) -> std::vector<std::string> {
    return {"rank", fmt::format("{}", ::getpid()), fmt::format("{}", ranks.gpu_of(local_rank)),
            fmt::format("{}", patience.count())};
  };
}

int follow_as_child(const std::vector<std::string>& words) {
  FERRY_CHECK(words.size() == 3, "{} words of a rank", words.size());
  end_with_parent(std::atoi(words[0].c_str()));
  return follow_in_silence(std::atoi(words[1].c_str()),
                           std::chrono::seconds(std::atoi(words[2].c_str())));
}

int follow_as_host(const config::Config& config) {
  const RunRanks ranks = ranks_to_start(config);
  FERRY_CHECK(ranks.place && ranks.follows(), "host {} of {} leads", ranks.host, ranks.n_hosts);
  const RankEnvironment& place = *ranks.place;
  rank_here = place.rank;
  std::vector<int> own(static_cast<size_t>(place.local_world));
  std::iota(own.begin(), own.end(), place.rank);
  const std::string name = fmt::format("ferry: host {}", ranks.host);
  log_line(fmt::format("{} of {} (from 0) has {}; it waits for host 0, which leads, at {}:{}", name,
                       ranks.n_hosts, name_ranks(own), place.master_address, place.master_port));
  Host host = meet_leader(ranks, patience_for_ranks(config));
  explain_interrupts();
  log_line(fmt::format("{}: all {} ranks are there, and the run begins", name, place.world));
  const RankEnd end = follow_leader(place, ranks.gpu_of(0), *host.comm);
  if (end.exit_code == 0)
    log_line(fmt::format("{}: the run is finished", name));
  else
    log_line(fmt::format("{}: the run has ended on host 0 with exit code {}: {}", name,
                         end.exit_code, end.reason));
  return end.exit_code;
}

}  // namespace ferry
