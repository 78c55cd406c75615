#include "src/request/ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <numeric>
#include <span>
#include <string>
#include <string_view>

#include "src/base/error.h"
#include "src/config/launch.h"
#include "src/request/host_file.h"

namespace ferry {
namespace {

constexpr int kRanks_max = 1024;

std::optional<int> number_in(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

/** True where somebody has asked for it; files of settings may name all options as they are. */
bool is_given(const config::Config& config, std::string_view key) {
  const config::Source source = config.origin(key).source;
  return source == config::Source::command_line || source == config::Source::environment ||
         config.value(key) != config::Config().value(key);
}

/** "2" is two of them, "0,2" are these: the ranks of one host. */
RunRanks asked_ranks(const config::Config& config) {
  const std::vector<std::string> items = config.list("gpus");
  RunRanks ranks;
  if (items.empty()) return ranks;
  std::vector<int> numbers;
  for (const std::string& item : items) {
    const auto number = number_in(item);
    if (!number || *number > kRanks_max)
      throw Error(Fault::usage, "config.gpus", fmt::format("'{}' is no number of a GPU", item),
                  "write how many GPUs the run takes (--gpus 2), or which ones (--gpus 0,2)");
    numbers.push_back(*number);
  }
  if (numbers.size() == 1) {
    if (numbers.front() == 0)
      throw Error(Fault::usage, "config.gpus", "a run takes at least one GPU",
                  "write --gpus 1, or use device = cpu");
    ranks.world = ranks.local_world = numbers.front();
    return ranks;
  }
  ranks.world = ranks.local_world = static_cast<int>(numbers.size());
  ranks.gpus = std::move(numbers);
  std::vector<int> sorted = ranks.gpus;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end())
    throw Error(Fault::usage, "config.gpus", "a GPU is named twice", "name each GPU once");
  return ranks;
}

/** A launcher says what these options do. */
void refuse_beside_launcher(const config::Config& config) {
  for (const config::Option& option : config::option_table())
    if (config::is_of_launch(option) && is_given(config, option.key) &&
        option.key != "rank_timeout")
      throw Error(Fault::usage, fmt::format("config.{}", option.key),
                  fmt::format("{} is given, and the variables of torchrun, srun or mpirun (RANK, "
                              "WORLD_SIZE, ...) say it, too",
                              config.origin(option.key).where),
                  "give it to the launcher instead, or unset those variables");
}

void take_launcher(const config::Config& config, RunRanks& ranks) {
  refuse_beside_launcher(config);
  const int world = ranks.place->world, local_world = ranks.place->local_world;
  if (is_given(config, "gpus") && ranks.local_world != world && ranks.local_world != local_world)
    throw Error(Fault::usage, "config.gpus",
                fmt::format("gpus names {} GPUs, and the launcher has started {} processes",
                            ranks.local_world, world),
                "leave gpus out: a launcher says how many there are");
  ranks.is_launched = true;
  ranks.world = world;
  ranks.local_world = local_world;
  ranks.n_hosts = (world + local_world - 1) / local_world;
  ranks.host = ranks.place->rank / local_world;
}

/** Option hosts: names, or a file of them. */
std::vector<std::string> named_hosts(const config::Config& config, int n_gpus) {
  std::vector<std::string> hosts = config.list("hosts");
  if (hosts.size() == 1 && hosts.front().starts_with('@'))
    hosts = read_host_file(hosts.front().substr(1), n_gpus);
  if (hosts.empty()) {
    if (is_given(config, "hosts_program"))
      throw Error(Fault::usage, "config.hosts_program",
                  fmt::format("{} is given without hosts", config.origin("hosts_program").where),
                  "name the hosts, too: --hosts THIS,OTHER");
    return hosts;
  }
  const std::string& where = config.origin("hosts").where;
  if (is_given(config, "node_rank"))
    throw Error(Fault::usage, "config.hosts",
                fmt::format("{} and {} are both given", where, config.origin("node_rank").where),
                "with hosts, start the run on the first one alone; with node_rank, on each one");
  if (is_given(config, "nnodes") && config.integer("nnodes") != std::ssize(hosts))
    throw Error(Fault::usage, "config.hosts",
                fmt::format("{} names {} hosts, and nnodes is {}", where, hosts.size(),
                            config.integer("nnodes")),
                "leave nnodes out");
  std::vector<std::string> sorted = hosts;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end())
    throw Error(Fault::usage, "config.hosts", "a host is named twice",
                "name each host once; --gpus says how many GPUs each has");
  for (const std::string& host : hosts)
    if (host.starts_with('-'))
      throw Error(Fault::usage, "config.hosts", fmt::format("'{}' is no name of a host", host),
                  "write --hosts THIS,OTHER");
  return hosts;
}

/** The ranks of a run whose hosts are told of each other by options. */
void take_hosts(const config::Config& config, RunRanks& ranks) {
  auto node = config.maybe_integer("node_rank");
  ranks.n_hosts = static_cast<int>(config.integer("nnodes"));
  ranks.hosts = named_hosts(config, ranks.local_world);
  if (!ranks.hosts.empty()) {
    ranks.n_hosts = static_cast<int>(ranks.hosts.size());
    node = 0;
  }
  if (node && *node >= ranks.n_hosts)
    throw Error(Fault::usage, "config.node_rank",
                fmt::format("node_rank is {}, and a run of {} host{} counts them from 0 to {}",
                            *node, ranks.n_hosts, ranks.n_hosts == 1 ? "" : "s", ranks.n_hosts - 1),
                "see that nnodes is the same on all hosts, and node_rank another one on each");
  if (ranks.n_hosts == 1) {
    for (const char* key : {"node_rank", "master_addr", "master_port"})
      if (!is_given(config, "nnodes") && ranks.hosts.empty() && is_given(config, key))
        throw Error(Fault::usage, fmt::format("config.{}", key),
                    fmt::format("{} is given without nnodes: the run has one host",
                                config.origin(key).where),
                    "give --nnodes N, too, or leave it out");
    return;
  }
  if (static_cast<int64_t>(ranks.local_world) * ranks.n_hosts > kRanks_max)
    throw Error(Fault::usage, "config.nnodes",
                fmt::format("{} hosts with {} GPUs each are more than {} ranks", ranks.n_hosts,
                            ranks.local_world, kRanks_max),
                "use fewer");
  ranks.world = ranks.local_world * ranks.n_hosts;
  if (!node) return;
  ranks.host = static_cast<int>(*node);
  ranks.place = {.rank = ranks.host * ranks.local_world,
                 .world = ranks.world,
                 .local_world = ranks.local_world,
                 .master_address = config.text("master_addr"),
                 .master_port = static_cast<int>(config.integer("master_port")),
                 .run_id = "nnodes",
                 .is_by_host = true};
  if (ranks.hosts.empty()) return;
  if (ranks.place->master_address.empty()) ranks.place->master_address = ranks.hosts.front();
  if (!is_given(config, "master_port")) ranks.place->master_port = 0;  // any that is free
}

/** True of an option that a run has kept, which others were chosen for. */
bool is_kept(const config::Config& config, std::string_view key) {
  return config.origin(key).source == config::Source::file &&
         !config.text("resume_from_checkpoint").empty();
}

/** The word of the option gpu_shares for shares that Ferry measures. Those that it has measured
 * follow it: a run keeps "auto,2,1". */
constexpr std::string_view kMeasured = "auto";

/** The numbers of the option gpu_shares. */
std::vector<int> numbers_of_shares(std::span<const std::string> items) {
  constexpr int kShare_max = 1000;
  std::vector<int> shares;
  for (const std::string& item : items) {
    const auto share = number_in(item);
    if (!share || *share == 0 || *share > kShare_max)
      throw Error(
          Fault::usage, "config.gpu_shares", fmt::format("'{}' is no share of a GPU", item),
          fmt::format("write a whole number from 1 to {} for each GPU: --gpu-shares 2,1; or "
                      "--gpu-shares {}, and Ferry measures the GPUs",
                      kShare_max, kMeasured));
    shares.push_back(*share);
  }
  return shares;
}

/** Option gpu_shares. A run goes on with other GPUs, and then without the shares it has kept. */
void take_shares(const config::Config& config, RunRanks& ranks) {
  const std::vector<std::string> items = config.list("gpu_shares");
  const bool measures = !items.empty() && items.front() == kMeasured;
  std::vector<int> shares = numbers_of_shares(std::span(items).subspan(measures ? 1 : 0));
  if (measures) ranks.shares_by = SharesBy::to_be_measured;
  if (measures && ranks.world == 1) ranks.shares_by = SharesBy::settings;  // nobody to share with
  if (shares.empty() || (measures && ranks.world == 1)) return;
  if (std::ssize(shares) != ranks.world) {
    if (measures || is_kept(config, "gpu_shares")) return;
    throw Error(
        Fault::usage, "config.gpu_shares",
        fmt::format("gpu_shares names {} GPUs, and the run has {}", shares.size(), ranks.world),
        "give as many shares as there are GPUs on all hosts, in their order");
  }
  ranks.shares_by = measures ? SharesBy::measured : SharesBy::settings;
  const int common = std::accumulate(shares.begin(), shares.end(), 0, std::gcd<int, int>);
  for (int& share : shares)
    share /= common;
  if (!std::ranges::all_of(shares, [](int share) { return share == 1; }))
    ranks.shares = std::move(shares);
}

}  // namespace

RunRanks ranks_of(const config::Config& config) {
  RunRanks ranks = asked_ranks(config);
  ranks.place = read_rank_environment(std::getenv);
  if (ranks.place)
    take_launcher(config, ranks);
  else
    take_hosts(config, ranks);
  take_shares(config, ranks);
  return ranks;
}

std::optional<int> n_stages_of(const config::Config& config, const RunRanks& ranks) {
  const std::string& split = config.text("gpu_split");
  std::optional<int64_t> asked = config.maybe_integer("pipe_size");
  const bool splits = split != "auto";
  const auto stages_of_split = [&] { return split == "blocks" ? ranks.world : 1; };
  // A run goes on with other GPUs, or with the other option, and drops the value that it kept.
  const bool is_old = asked && is_kept(config, "pipe_size");
  if (is_old && (ranks.world % *asked != 0 || (splits && !is_kept(config, "gpu_split"))))
    asked.reset();
  if (!asked) return splits ? std::optional(stages_of_split()) : std::nullopt;
  const auto refuse = [&](const std::string& why, const std::string& hint) {
    throw Error(Fault::usage, "config.pipe_size", why, hint);
  };
  if (ranks.world % *asked != 0)
    refuse(fmt::format("pipe_size is {}, and the run has {} GPUs", *asked, ranks.world),
           "pipe_size is a divisor of the number of GPUs");
  if (splits && *asked != stages_of_split() && !is_kept(config, "gpu_split"))
    refuse(fmt::format("pipe_size is {}, and gpu_split is {}", *asked, split),
           "leave gpu_split out: pipe_size says how many GPUs have the blocks of each replica");
  if (*asked > 1 && *asked < ranks.world && ranks.may_be_unlike())
    refuse("gpu_shares are for GPUs that all split the samples, or all the blocks",
           "leave gpu_shares out, or choose another pipe_size");
  return static_cast<int>(*asked);
}

Sharing sharing_of(const config::Config& config, const RunRanks& ranks) {
  Sharing sharing;
  const int n_replicas = ranks.world / n_stages_of(config, ranks).value_or(1);
  for (const auto& [key, size] :
       {std::pair("sp_size", &Sharing::sp_size), std::pair("tp_size", &Sharing::tp_size)}) {
    const auto asked = static_cast<int>(config.integer(key));
    if (asked == 1) continue;
    const auto refuse = [&, key = key](const std::string& why, const std::string& hint) {
      throw Error(Fault::usage, fmt::format("config.{}", key), why, hint);
    };
    if (n_replicas % asked != 0) {
      if (is_kept(config, key)) continue;  // a run goes on with other GPUs
      refuse(fmt::format("{} is {}, and the run has {} GPU{} for each block", key, asked,
                         n_replicas, n_replicas == 1 ? "" : "s"),
             fmt::format("{} is a divisor of gpus / pipe_size, and gpu_split = blocks leaves one "
                         "GPU for each block",
                         key));
    }
    if (ranks.may_be_unlike())
      refuse("gpu_shares are for GPUs that have micro-batches of their own",
             fmt::format("leave one of them out; a run that has kept them takes --gpu-shares '' or "
                         "--{}-size 1",
                         std::string_view(key).substr(0, 2)));
    sharing.*size = asked;
  }
  if (sharing.sp_size > 1 && sharing.tp_size > 1) {
    // A run goes on with the other one, and drops the size that it kept.
    if (is_kept(config, "sp_size") && !is_kept(config, "tp_size")) sharing.sp_size = 1;
    if (is_kept(config, "tp_size") && !is_kept(config, "sp_size")) sharing.tp_size = 1;
  }
  if (sharing.sp_size > 1 && sharing.tp_size > 1)
    throw Error(Fault::usage, "config.sp_size", "GPUs share the tokens or the layers, not both",
                "leave sp_size or tp_size out");
  const std::string& attention = config.text("sp_attention");
  if (sharing.sp_size > 1 && attention != "auto")
    sharing.sp_attention = attention == "ring" ? SpAttention::ring : SpAttention::heads;
  if (sharing.sp_size == 1 && attention != "auto" && !is_kept(config, "sp_attention"))
    throw Error(Fault::usage, "config.sp_attention",
                fmt::format("sp_attention is {} ({}), and no GPUs share texts", attention,
                            config.origin("sp_attention").where),
                "give --sp-size, too, or leave it out");
  if (sharing.sp_size > 1 && !config.text("sample_prompts").empty())
    throw Error(
        Fault::usage, "config.sp_size", "samples are generated on GPUs that have whole texts",
        "leave sample_prompts out (a run that has kept them takes --sample-prompts ''), and "
        "use `ferry generate` on a checkpoint");
  return sharing;
}

int n_chunks_of(const config::Config& config, std::optional<int> n_stages) {
  const auto n_chunks = static_cast<int>(config.integer("pipe_chunks"));
  if (n_chunks == 1 || n_stages.value_or(1) > 1) return n_chunks;
  if (is_kept(config, "pipe_chunks")) return 1;
  throw Error(Fault::usage, "config.pipe_chunks",
              fmt::format("pipe_chunks is {}, and there are no stages", n_chunks),
              "give pipe_size or gpu_split = blocks, too");
}

void keep_shares(config::Config& config, const RunRanks& ranks, const std::vector<int>& shares) {
  std::string text = fmt::format("{}", fmt::join(shares, ","));
  if (ranks.shares_by == SharesBy::to_be_measured) text = fmt::format("{},{}", kMeasured, text);
  config.choose("gpu_shares", text, "measured");
}

int gpu_of_rank(const config::Config& config, int local_rank) {
  return asked_ranks(config).gpu_of(local_rank);
}

RunRanks ranks_to_start(const config::Config& config) {
  RunRanks ranks = ranks_of(config);
  if (ranks.is_launched || ranks.n_hosts == 1) return ranks;
  if (!ranks.place)
    throw Error(Fault::usage, "config.node_rank",
                fmt::format("a run of {} hosts needs the number of this one", ranks.n_hosts),
                fmt::format("give --node-rank 0 on the host that leads, 1 to {} on the others",
                            ranks.n_hosts - 1));
  if (ranks.place->master_address.empty())
    throw Error(Fault::usage, "config.master_addr",
                fmt::format("a run of {} hosts needs the address of host 0", ranks.n_hosts),
                "give each host the same --master-addr: host 0's name or address, as the others "
                "reach it");
  return ranks;
}

}  // namespace ferry
