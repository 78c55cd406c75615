#include "src/comm/rank_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "src/base/error.h"

namespace ferry {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

std::optional<RankEnvironment> read(const Variables& variables) {
  return read_rank_environment([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

const Variables kTorchrun = {{"RANK", "5"},
                             {"LOCAL_RANK", "1"},
                             {"WORLD_SIZE", "8"},
                             {"GROUP_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "4"},
                             {"MASTER_ADDR", "node0"},
                             {"ROLE_RANK", "5"},
                             {"MASTER_PORT", "29501"},
                             {"TORCHELASTIC_RUN_ID", "mine"},
                             {"OMP_NUM_THREADS", "1"},
                             {"TORCHELASTIC_RESTART_COUNT", "2"},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
const Variables kSrun = {{"SLURM_PROCID", "3"},
                         {"SLURM_LOCALID", "1"},
                         {"SLURM_NODEID", "1"},
                         {"SLURM_NNODES", "3"},
                         {"SLURM_NTASKS", "6"},
                         {"SLURM_STEP_NUM_TASKS", "5"},
                         {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
                         {"SLURM_STEP_NODELIST", "gpu[07-08,11]"},
                         {"SLURM_STEP_ID", "4"},
                         {"SLURM_JOB_ID", "123456"}};
const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                            {"OMPI_COMM_WORLD_SIZE", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
const Variables kMpich = {{"PMI_RANK", "2"},
                          {"PMI_SIZE", "4"},
                          {"MPI_LOCALRANKID", "0"},
                          {"MPI_LOCALNRANKS", "2"},
                          {"MASTER_ADDR", "10.0.0.7"}};

Variables with(Variables variables, const Variables& others) {
  for (const auto& [name, value] : others)
    variables[name] = value;
  return variables;
}

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

TEST(RankEnvironment, OfEachLauncher) {
  const RankEnvironment torchrun = {5, 8, 1, 4, "node0", 29501, true, "mine", 2};
  RankEnvironment launch = torchrun;
  launch.agent_store = false;
  const RankEnvironment srun = {3, 5, 1, 2, "gpu07", 20000 + 123456 % 20000, false, "123456.4", 0};
  RankEnvironment srun_at = srun;
  srun_at.master_address = "node9";
  srun_at.master_port = 4444;
  RankEnvironment srun_again = srun;
  srun_again.restart_count = 1;
  RankEnvironment older_srun = srun;
  older_srun.world = 6;
  RankEnvironment last_of_srun = srun;
  last_of_srun.rank = 4;
  last_of_srun.local_rank = 0;
  last_of_srun.local_world = 1;
  const RankEnvironment open_mpi = {1, 2, 1, 2, "127.0.0.1", 29500, false, "", 0};
  RankEnvironment open_mpi_at = open_mpi;
  open_mpi_at.local_world = 1;
  open_mpi_at.local_rank = 0;
  open_mpi_at.master_address = "a";
  open_mpi_at.master_port = 1;
  const RankEnvironment mpich = {2, 4, 0, 2, "10.0.0.7", 29500, false, "", 0};
  const struct {
    const char* what;
    Variables variables;
    std::optional<RankEnvironment> expected;
  } cases[] = {
      {"nothing", {{"HOME", "/root"}}, std::nullopt},
      {"a script's own variables", {{"MASTER_ADDR", "node0"}, {"MASTER_PORT", "1"}}, std::nullopt},
      {"torchrun", kTorchrun, torchrun},
      {"torchrun, store of rank 0", with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}}),
       launch},
      {"torch.distributed.launch", without(kTorchrun, "TORCHELASTIC_USE_AGENT_STORE"), launch},
      {"torchrun under srun", with(kSrun, kTorchrun), torchrun},
      {"srun", kSrun, srun},
      {"srun with a place", with(kSrun, {{"MASTER_ADDR", "node9"}, {"MASTER_PORT", "4444"}}),
       srun_at},
      {"srun with a script's WORLD_SIZE", with(kSrun, {{"WORLD_SIZE", "5"}}), srun},
      {"srun, requeued", with(kSrun, {{"SLURM_RESTART_COUNT", "1"}}), srun_again},
      {"srun without the step's number", without(kSrun, "SLURM_STEP_NUM_TASKS"), older_srun},
      {"srun, last node",
       with(kSrun, {{"SLURM_PROCID", "4"}, {"SLURM_NODEID", "2"}, {"SLURM_LOCALID", "0"}}),
       last_of_srun},
      {"the script of a Slurm job", without(kSrun, "SLURM_STEP_NODELIST"), std::nullopt},
      {"Open MPI on one host", kOpenMpi, open_mpi},
      {"Open MPI",
       with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
                       {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                       {"MASTER_ADDR", "a"},
                       {"MASTER_PORT", "1"}}),
       open_mpi_at},
      {"Open MPI under Slurm", with(kSrun, kOpenMpi), open_mpi},
      {"MPICH", kMpich, mpich},
      {"MPICH under Slurm", with(kSrun, kMpich), mpich},
      {"srun with PMI", with(kSrun, {{"PMI_RANK", "3"}, {"PMI_SIZE", "5"}}), srun},
  };
  for (const auto& [what, variables, expected] : cases)
    EXPECT_EQ(read(variables), expected) << what;
}

/** What reading them throws; empty where it returns. */
std::string refusal_of(const Variables& variables) {
  try {
    read(variables);
  } catch (const Error& e) {
    EXPECT_EQ(e.fault(), Fault::usage);
    return e.what();
  }
  return {};
}

TEST(RankEnvironment, AMissingVariableIsNamed) {
  for (const char* name :
       {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    EXPECT_THAT(refusal_of(without(kTorchrun, name)),
                HasSubstr("[comm.environment] " + std::string(name) + " is not set"));
    EXPECT_THAT(refusal_of(with(kTorchrun, {{name, ""}})),
                HasSubstr("] " + std::string(name) + " is not set"));
  }
  for (const auto& [name, value] : kOpenMpi)
    EXPECT_THAT(refusal_of(without(kOpenMpi, name)), HasSubstr("] " + name + " is not set"));
  for (const char* name : {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "MASTER_ADDR"})
    EXPECT_THAT(refusal_of(without(kMpich, name)),
                HasSubstr("] " + std::string(name) + " is not set"));
  for (const char* name :
       {"SLURM_LOCALID", "SLURM_NODEID", "SLURM_STEP_TASKS_PER_NODE", "SLURM_JOB_ID"})
    EXPECT_THAT(refusal_of(without(kSrun, name)),
                HasSubstr("] " + std::string(name) + " is not set"));
  EXPECT_THAT(refusal_of(without(without(kSrun, "SLURM_STEP_NUM_TASKS"), "SLURM_NTASKS")),
              HasSubstr("] SLURM_NTASKS is not set"));
}

TEST(RankEnvironment, AWrongVariableIsNamed) {
  const auto refused = [](Variables variables, const std::string& name, const std::string& value) {
    variables[name] = value;
    EXPECT_THAT(refusal_of(variables), HasSubstr("] " + name + " is '" + value + "', a number"));
  };
  refused(kTorchrun, "RANK", "8");
  refused(kTorchrun, "RANK", "-1");
  refused(kTorchrun, "RANK", "1x");
  refused(kTorchrun, "WORLD_SIZE", "0");
  refused(kTorchrun, "LOCAL_WORLD_SIZE", "9");
  refused(kTorchrun, "LOCAL_RANK", "4");
  refused(kTorchrun, "MASTER_PORT", "0");
  refused(kTorchrun, "MASTER_PORT", "65536");
  refused(kTorchrun, "TORCHELASTIC_RESTART_COUNT", "twice");
  refused(kOpenMpi, "MASTER_PORT", "http");
  refused(kSrun, "SLURM_PROCID", "5");
  for (const char* list : {"2(x2)1", "2(x2", "x", "2(x),2", "2"})
    EXPECT_THAT(refusal_of(with(kSrun, {{"SLURM_STEP_TASKS_PER_NODE", list}})),
                HasSubstr("'" + std::string(list) + "' is no list of numbers that has node 1's"));
}

TEST(HostList, IsExpanded) {
  EXPECT_THAT(expand_host_list("n1"), ElementsAre("n1"));
  EXPECT_THAT(expand_host_list("n[01-03,7]"), ElementsAre("n01", "n02", "n03", "n7"));
  EXPECT_THAT(expand_host_list("a,n[9-10],b-c"), ElementsAre("a", "n9", "n10", "b-c"));
  EXPECT_THAT(expand_host_list("r[1-2]n[098-100]x"),
              ElementsAre("r1n098x", "r1n099x", "r1n100x", "r2n098x", "r2n099x", "r2n100x"));
  for (const char* list : {"", "a,,b", "a,", "n[1", "n[]", "n[1-]", "n[2-1]", "n[1,]", "n[a-b]",
                           "n[1-99999999]", "n[1-60000]m[1-60000]"})
    EXPECT_THROW(expand_host_list(list), Error) << list;
}

}  // namespace
}  // namespace ferry
