#include "src/measure/ranks/exchange_verb.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "offload/device/device.h"
#include "src/base/error.h"
#include "src/base/print.h"
#include "src/base/process/host_memory.h"
#include "src/base/version.h"
#include "src/comm/addresses.h"
#include "src/comm/nccl/nccl_collectives.h"
#include "src/comm/rank_processes.h"
#include "src/comm/rendezvous.h"
#include "src/measure/bench_words.h"
#include "src/measure/ranks/exchanges.h"
#include "src/measure/timing.h"
#include "src/request/ranks.h"
#include "src/runs/logs/wall_time.h"

namespace ferry::measure {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kExchangeUsage =
    "usage: ferry-trainer bench nccl [--gpus N | --gpus 0,2] [--device auto | cuda | cpu] "
    "[--bytes B] [--seconds S] [--json]";
constexpr int kRanks_default = 2;  // of the CPU
/** Begins the name of a bench whose ranks this program has started; its process follows. */
constexpr const char* kRunPrefix = "ferry-bench-";

struct ExchangeRequest {
  std::string gpus, device = "auto";
  ExchangeOptions options;
};

[[noreturn]] void refuse_exchange(const std::string& what, std::string_view hint = kExchangeUsage) {
  throw Error(Fault::usage, "bench.nccl", what, hint);
}

ExchangeRequest parse_exchange(const std::vector<std::string>& words) {
  ExchangeRequest request;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--json") continue;
    if (i + 1 == words.size()) refuse_exchange(fmt::format("unexpected '{}'", word));
    const std::string& value = words[++i];
    if (word == "--gpus")
      request.gpus = value;
    else if (word == "--device" && (value == "auto" || value == "cuda" || value == "cpu"))
      request.device = value;
    else if (word == "--bytes")
      request.options.bytes_max = number_of<int64_t>(word, value, kMessage_bytes_least,
                                                     kMessage_bytes_most, kExchangeUsage);
    else if (word == "--seconds")
      request.options.seconds = number_of(word, value, 0.01, 600.0, kExchangeUsage);
    else
      refuse_exchange(fmt::format("unexpected '{} {}'", word, value));
  }
  return request;
}

/** The ranks, and whether they are GPUs. */
struct ChosenRanks {
  RunRanks ranks;
  bool uses_gpus = false;
};

ChosenRanks choose_ranks(const ExchangeRequest& request) {
  config::Config config;
  if (!request.gpus.empty())
    config.set("gpus", request.gpus, {config::Source::command_line, "--gpus", true});
  ChosenRanks chosen = {.ranks = ranks_of(config)};
  const int n_gpus = request.device == "cpu" ? 0 : n_gpus_for_nccl();
  chosen.uses_gpus = request.device == "cuda" || n_gpus > 1;
  RunRanks& ranks = chosen.ranks;
  if (request.gpus.empty() && !ranks.place)
    ranks.world = ranks.local_world = chosen.uses_gpus ? n_gpus : kRanks_default;
  if (ranks.world < 2)
    refuse_exchange(
        chosen.uses_gpus ? fmt::format("a rank alone sends nothing: there {} {} GPU{} here",
                                       n_gpus == 1 ? "is" : "are", n_gpus, n_gpus == 1 ? "" : "s")
                         : "a rank alone sends nothing",
        "ask for two at least: --gpus 2; --device cpu measures between processes of the CPU");
  for (int local = 0; chosen.uses_gpus && local < ranks.local_world; ++local)
    if (ranks.gpu_of(local) >= n_gpus)
      refuse_exchange(
          fmt::format("there is no GPU {}: this machine has {}", ranks.gpu_of(local), n_gpus),
          "name fewer with --gpus, or measure between processes of the CPU with --device cpu");
  return chosen;
}

std::vector<int> gpus_of(const RunRanks& ranks) {
  std::vector<int> gpus;
  for (int local = 0; local < ranks.local_world; ++local)
    gpus.push_back(ranks.gpu_of(local));
  return gpus;
}

/** The words that start the other ranks, with the choices of the first one. */
std::vector<std::string> words_of(const ExchangeRequest& request, const ChosenRanks& chosen) {
  const std::string gpus = chosen.ranks.gpus.empty()
                               ? fmt::format("{}", chosen.ranks.world)
                               : fmt::format("{}", fmt::join(chosen.ranks.gpus, ","));
  return {"bench",     "nccl",
          "--gpus",    gpus,
          "--device",  chosen.uses_gpus ? "cuda" : "cpu",
          "--bytes",   fmt::format("{}", request.options.bytes_max),
          "--seconds", fmt::format("{}", request.options.seconds)};
}

/** An operation's bytes that fit into what is free, for all ranks. */
int64_t bytes_that_fit(const ExchangeRequest& request,
                       const ChosenRanks& chosen,
                       int gpu,
                       Comm& comm) {
  constexpr int64_t kBuffers = 6;  // both ends, values, results, parts of sums, and room
  int64_t n_bytes = read_host_memory().budget_bytes() / kBuffers / chosen.ranks.local_world;
  if (chosen.uses_gpus) n_bytes = std::min(n_bytes, probe_cuda(gpu).free_bytes / kBuffers);
  n_bytes = std::clamp(n_bytes, kMessage_bytes_least, request.options.bytes_max);
  return std::ranges::min(comm.gather_values(n_bytes));
}

MachineProfile profile_of(const ExchangeBench& bench, const ChosenRanks& chosen, int gpu) {
  MachineProfile profile = {.name = "exchanges"};
  profile.source = fmt::format("measured {} by ferry {}", runs::now_in_words(), ferry_version());
  ExchangeProfile exchange = bench.profile;
  exchange.source =
      fmt::format("measured {} between {} {}", runs::now_in_words(), chosen.ranks.world,
                  chosen.uses_gpus ? "GPUs by NCCL" : "processes by Gloo");
  const bool is_of_one_host = chosen.ranks.local_world == chosen.ranks.world;
  if (chosen.uses_gpus) {
    const CudaProbe probe = probe_cuda(gpu);
    exchange.has_peer_access = have_peer_access(gpus_of(chosen.ranks));
    profile.gpu = GpuProfile{.name = probe.gpu_name,
                             .compute_capability = probe.compute_capability,
                             .memory_bytes = probe.total_bytes};
  }
  if (is_of_one_host) (chosen.uses_gpus ? profile.gpu->exchange : profile.host.exchange) = exchange;
  return profile;
}

void print_bench(const ExchangeBench& bench, const ChosenRanks& chosen, int gpu, double seconds) {
  ordered_json times = ordered_json::array();
  for (const ExchangeTime& time : bench.times)
    times.push_back({{"operation", time.operation},
                     {"bytes", time.n_bytes},
                     {"seconds", time.seconds},
                     {"bytes_per_s", time.bytes_per_s},
                     {"bus_bytes_per_s", time.bus_bytes_per_s}});
  const ordered_json out = {
      {"part", "nccl"},
      {"seconds", rounded(seconds)},
      {"skipped", ordered_json::array()},
      {"gpu_trouble", ""},
      {"gpu_free_bytes", 0},
      {"steps", ordered_json::array()},
      {"by", chosen.uses_gpus ? "NCCL" : "Gloo"},
      {"n_ranks", chosen.ranks.world},
      {"exchanges", times},
      {"profile", ordered_json::parse(to_json(profile_of(bench, chosen, gpu)))}};
  fmt::print("{}\n", out.dump(2, ' ', false, ordered_json::error_handler_t::replace));
}

}  // namespace

int run_exchange_verb(const std::vector<std::string>& words) {
  const auto start = Clock::now();
  const ExchangeRequest request = parse_exchange(words);
  const ChosenRanks chosen = choose_ranks(request);
  ConnectOptions connecting = {.deadline = std::chrono::seconds(120),
                               .connect_deadline = std::chrono::seconds(120)};
  RankProcesses others;  // ends last: when this rank leaves, they do
  RankEnvironment environment;
  if (chosen.ranks.place) {
    environment = *chosen.ranks.place;
    if (environment.run_id.starts_with(kRunPrefix))
      end_with_parent(std::atoi(environment.run_id.c_str() + std::strlen(kRunPrefix)));
  } else {
    constexpr const char* kHost = "127.0.0.1";
    StoreSocket store = listen_for_ranks(kHost, 0);
    environment = {.world = chosen.ranks.world,
                   .local_world = chosen.ranks.world,
                   .master_address = kHost,
                   .master_port = store.port,
                   .run_id = fmt::format("{}{}", kRunPrefix, ::getpid())};
    connecting.listener = std::move(store.fd);
    others.start(environment, [&](int) { return words_of(request, chosen); });
    connecting.while_waiting = [&] { others.check(); };
  }
  const auto comm = connect(environment, std::move(connecting));
  others.note_meeting();
  const int gpu = chosen.ranks.gpu_of(environment.local_rank);
  ExchangeOptions options = request.options;
  options.bytes_max = bytes_that_fit(request, chosen, gpu, *comm);
  const auto collectives =
      chosen.uses_gpus ? make_nccl_collectives(*comm, gpu) : make_host_collectives(*comm);
  const ExchangeBench bench = measure_exchanges(*comm, *collectives, options);
  if (environment.rank == 0) print_bench(bench, chosen, gpu, seconds_since(start));
  comm->barrier();
  return 0;
}

}  // namespace ferry::measure
