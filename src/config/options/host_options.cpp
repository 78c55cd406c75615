// Options of one start of a run: the hosts that share it, where they meet, how often it may start
// anew. A run's config.toml has none of them (launch.h), since it may go on with other hosts.

#include "src/config/options/option_groups.h"

namespace ferry::config {
namespace {

constexpr std::string_view kHostsGroup = "Hosts and restarts";
constexpr double kMaxHosts = 1024;

}  // namespace

std::vector<Option> host_options() {
  return {
      {.key = "nnodes",
       .label = "Number of hosts",
       .type = Type::integer,
       .group = kHostsGroup,
       .value = "1",
       .unit = "hosts",
       .range = {1, kMaxHosts},
       .aliases = {{"num_nodes"}, {"num_machines"}},
       .help = "Hosts that share each step, each with as many GPUs as gpus says. The same command "
               "is given on each host, with a node_rank of its own."},
      {.key = "node_rank",
       .label = "Number of this host",
       .type = Type::integer,
       .group = kHostsGroup,
       .value = "auto",
       .unit = "from 0",
       .can_be_auto = true,
       .range = {0, kMaxHosts - 1},
       .aliases = {{"machine_rank"}},
       .help = "Number of this host among nnodes, from 0. Host 0 leads: it reads model and data, "
               "and writes the run. The others need neither."},
      {.key = "master_addr",
       .label = "Address of the first host",
       .type = Type::text,
       .group = kHostsGroup,
       .value = "",
       .aliases = {{"main_process_ip"}},
       .help = "Name or address by which all hosts reach host 0, the same on each."},
      {.key = "master_port",
       .label = "Port of the first host",
       .type = Type::integer,
       .group = kHostsGroup,
       .value = "29500",
       .unit = "TCP port",
       .range = {1, 65535},
       .aliases = {{"main_process_port"}},
       .help = "Port of host 0 at which the hosts meet. Each run has one of its own."},
      {.key = "hosts",
       .label = "Hosts",
       .type = Type::list,
       .group = kHostsGroup,
       .value = "",
       .help = "Hosts of a run, this one first, then those on which this command starts Ferry by "
               "ssh. It needs keys, not passwords. @FILE reads them from a file, a host a line, as "
               "mpirun does."},
      {.key = "hosts_program",
       .label = "Ferry on the other hosts",
       .type = Type::text,
       .group = kHostsGroup,
       .value = "",
       .help = "The program that hosts starts on the other hosts; empty: the path of this one."},
      {.key = "rank_timeout",
       .label = "Wait for hosts",
       .type = Type::duration,
       .group = kHostsGroup,
       .value = "5min",
       .unit = "time",
       .range = {1, 86400},
       .help = "Time in which all processes of a run must have come. After it the run ends and "
               "names those that are missing."},
      {.key = "max_restarts",
       .label = "Restarts",
       .type = Type::integer,
       .group = kHostsGroup,
       .value = "0",
       .unit = "restarts",
       .special = {"0", "none"},
       .range = {0, 1000},
       .help = "How often the run starts anew from its last checkpoint where one of its processes "
               "dies. Faults of settings, data or memory end it at once."},
  };
}

}  // namespace ferry::config
