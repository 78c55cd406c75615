#include "src/comm/rank_environment.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <limits>
#include <utility>

#include "src/base/error.h"

namespace ferry {
namespace {

constexpr std::string_view kWhere = "comm.environment";
constexpr int kTorchPort = 29500;

/** The variables of one launcher. */
class Variables {
 public:
  Variables(const LookUpVariable& look_up, std::string_view launcher)
      : look_up_(look_up), launcher_(launcher) {}

  std::optional<std::string> text(const char* name) const {
    const char* value = look_up_(name);
    if (!value || !*value) return std::nullopt;
    return value;
  }
  bool has(const char* name) const { return text(name).has_value(); }

  std::string needed_text(const char* name, std::string_view hint = {}) const {
    if (std::optional<std::string> value = text(name)) return *std::move(value);
    throw Error(Fault::usage, kWhere, fmt::format("{} is not set", name),
                hint.empty()
                    ? fmt::format("{} sets it with the variables that are there; where you set "
                                  "those yourself, set it, too",
                                  launcher_)
                    : hint);
  }
  int needed_number(const char* name, int least, int most) const {
    return number_of(name, needed_text(name), least, most);
  }
  int number(const char* name, int otherwise) const {
    const std::optional<std::string> value = text(name);
    return value ? number_of(name, *value, 0, std::numeric_limits<int>::max()) : otherwise;
  }

 private:
  static int number_of(const char* name, const std::string& value, int least, int most) {
    int number = 0;
    const char* end = value.data() + value.size();
    const auto [stop, status] = std::from_chars(value.data(), end, number);
    if (status != std::errc{} || stop != end || number < least || number > most)
      throw Error(
          Fault::usage, kWhere,
          fmt::format("{} is '{}', a number from {} to {} was expected", name, value, least, most));
    return number;
  }

  const LookUpVariable& look_up_;
  std::string_view launcher_;
};

struct PlaceNames {
  const char *rank, *world, *local_rank, *local_world;
};

RankEnvironment read_place(const Variables& variables, const PlaceNames& names) {
  constexpr int kRanks_max = 1 << 20;
  RankEnvironment environment;
  environment.world = variables.needed_number(names.world, 1, kRanks_max);
  environment.rank = variables.needed_number(names.rank, 0, environment.world - 1);
  environment.local_world = variables.needed_number(names.local_world, 1, environment.world);
  environment.local_rank =
      variables.needed_number(names.local_rank, 0, environment.local_world - 1);
  return environment;
}

int read_port(const Variables& variables) {
  return variables.needed_number("MASTER_PORT", 1, 65535);
}

RankEnvironment read_torch(const LookUpVariable& look_up) {
  const Variables variables(look_up, "torchrun");
  RankEnvironment environment =
      read_place(variables, {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"});
  environment.master_address = variables.needed_text("MASTER_ADDR");
  environment.master_port = read_port(variables);
  environment.agent_store = variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  environment.run_id = variables.text("TORCHELASTIC_RUN_ID").value_or("");
  environment.restart_count = variables.number("TORCHELASTIC_RESTART_COUNT", 0);
  return environment;
}

/** mpirun says nothing of a place to meet: within one host none has to be known. */
RankEnvironment read_mpi(const Variables& variables, const PlaceNames& names) {
  RankEnvironment environment = read_place(variables, names);
  const bool one_host = environment.local_world == environment.world;
  environment.master_address =
      one_host && !variables.has("MASTER_ADDR")
          ? "127.0.0.1"
          : variables.needed_text("MASTER_ADDR",
                                  "name the host of rank 0: `mpirun -x MASTER_ADDR=HOST` of Open "
                                  "MPI, `mpirun -genv MASTER_ADDR HOST` of MPICH and Intel MPI");
  environment.master_port = variables.has("MASTER_PORT") ? read_port(variables) : kTorchPort;
  return environment;
}

[[noreturn]] void refuse_list(std::string_view list, std::string_view what) {
  throw Error(Fault::usage, kWhere, fmt::format("'{}' is no list of {}", list, what));
}

/** Takes a number off the front of a text. */
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto [stop, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc{}) return std::nullopt;
  text.remove_prefix(stop - text.data());
  return number;
}

bool take(std::string_view& text, std::string_view beginning) {
  if (!text.starts_with(beginning)) return false;
  text.remove_prefix(beginning.size());
  return true;
}

/** "2(x3),1" is 2, 2, 2, 1: the number of a node. */
int number_of_node(const std::string& list, int node) {
  const auto refuse = [&] { refuse_list(list, fmt::format("numbers that has node {}'s", node)); };
  std::optional<int> found;
  std::string_view rest = list;
  int64_t n_before = 0;
  do {
    const std::optional<int> number = take_number(rest);
    std::optional<int> n_nodes = 1;
    if (take(rest, "(x")) {
      n_nodes = take_number(rest);
      if (!take(rest, ")")) refuse();
    }
    if (!number || !n_nodes) refuse();
    if (node >= n_before && node - n_before < *n_nodes) found = number;
    n_before += *n_nodes;
  } while (take(rest, ","));
  if (!found || !rest.empty()) refuse();
  return *found;
}

RankEnvironment read_slurm(const LookUpVariable& look_up) {
  const Variables variables(look_up, "srun");
  // A step may have fewer tasks than its job, which older variables tell.
  const char* world =
      variables.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  RankEnvironment environment;
  environment.world = variables.needed_number(world, 1, 1 << 20);
  environment.rank = variables.needed_number("SLURM_PROCID", 0, environment.world - 1);
  const int node = variables.needed_number("SLURM_NODEID", 0, environment.world - 1);
  environment.local_world =
      number_of_node(variables.needed_text("SLURM_STEP_TASKS_PER_NODE"), node);
  environment.local_rank = variables.needed_number("SLURM_LOCALID", 0, environment.local_world - 1);
  const int job = variables.needed_number("SLURM_JOB_ID", 0, std::numeric_limits<int>::max());
  environment.master_address =
      variables.has("MASTER_ADDR")
          ? variables.needed_text("MASTER_ADDR")
          : expand_host_list(variables.needed_text("SLURM_STEP_NODELIST")).front();
  // Each job of a host has a port of its own, mostly.
  environment.master_port =
      variables.has("MASTER_PORT") ? read_port(variables) : 20000 + job % 20000;
  environment.run_id = fmt::format("{}.{}", job, variables.text("SLURM_STEP_ID").value_or("0"));
  environment.restart_count = variables.number("SLURM_RESTART_COUNT", 0);
  return environment;
}

/** Hosts of one entry of a list: each number of its brackets in turn, the last fastest. */
void expand_entry(std::string_view list, std::string_view entry, std::vector<std::string>& hosts) {
  constexpr size_t kHosts_max = 1 << 16;
  std::vector<std::string> names = {""};
  const auto extend_by = [&](const std::vector<std::string>& ends) {
    if (names.size() * ends.size() + hosts.size() > kHosts_max) refuse_list(list, "hosts");
    std::vector<std::string> longer;
    for (const std::string& name : names)
      for (const std::string& end : ends)
        longer.push_back(name + end);
    names = std::move(longer);
  };
  while (!entry.empty()) {
    const size_t bracket = entry.find('[');
    extend_by({std::string(entry.substr(0, bracket))});
    if (bracket == entry.npos) break;
    const size_t end = entry.find(']', bracket);
    if (end == entry.npos) refuse_list(list, "hosts");
    std::vector<std::string> numbers;
    std::string_view ranges = entry.substr(bracket + 1, end - bracket - 1);
    for (bool more = true; more;) {
      const std::string_view range = ranges.substr(0, ranges.find(','));
      more = range.size() < ranges.size();
      ranges.remove_prefix(range.size() + (more ? 1 : 0));
      const std::string_view first = range.substr(0, range.find('-'));
      const std::string_view last =
          first.size() < range.size() ? range.substr(first.size() + 1) : first;
      uint64_t from = 0, to = 0;
      for (const auto& [text, value] : {std::pair(first, &from), std::pair(last, &to)}) {
        const auto parsed = std::from_chars(text.data(), text.data() + text.size(), *value);
        if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size())
          refuse_list(list, "hosts");
      }
      if (to < from || to - from >= kHosts_max) refuse_list(list, "hosts");
      for (uint64_t number = from; number <= to; ++number)
        numbers.push_back(fmt::format("{:0{}}", number, first.size()));
    }
    extend_by(numbers);
    entry.remove_prefix(end + 1);
  }
  hosts.insert(hosts.end(), names.begin(), names.end());
}

}  // namespace

std::optional<RankEnvironment> read_rank_environment(const LookUpVariable& look_up) {
  const Variables variables(look_up, "mpirun");
  if (variables.has("RANK")) return read_torch(look_up);
  // mpirun starts its helpers with srun where there is Slurm: its own variables go first.
  if (variables.has("OMPI_COMM_WORLD_RANK") || variables.has("OMPI_COMM_WORLD_SIZE"))
    return read_mpi(variables, {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"});
  if (variables.has("MPI_LOCALRANKID"))
    return read_mpi(variables, {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"});
  // The script of a batch job has all others, but is no task of a step.
  if (variables.has("SLURM_STEP_NODELIST") && variables.has("SLURM_PROCID"))
    return read_slurm(look_up);
  // Scripts set WORLD_SIZE and MASTER_ADDR for all launchers; without any it says that one is
  // missing.
  if (variables.has("WORLD_SIZE") || variables.has("LOCAL_RANK")) return read_torch(look_up);
  return std::nullopt;
}

std::vector<std::string> expand_host_list(std::string_view list) {
  std::vector<std::string> hosts;
  std::string_view rest = list;
  for (bool more = true; more;) {
    size_t end = 0;
    for (bool inside = false; end < rest.size() && (inside || rest[end] != ','); ++end)
      inside = rest[end] == '[' || (inside && rest[end] != ']');
    if (end == 0) refuse_list(list, "hosts");
    expand_entry(list, rest.substr(0, end), hosts);
    more = end < rest.size();
    rest.remove_prefix(more ? end + 1 : end);
  }
  return hosts;
}

}  // namespace ferry
