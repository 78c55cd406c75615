#pragma once
// Files that name hosts, as mpirun and DeepSpeed read them.

#include <filesystem>
#include <string>
#include <vector>

namespace ferry {

/** The hosts of a file, in its order: a line each, whose first word is the name. Empty lines and
 * what follows a '#' are left out. `slots=N` or `NAME:N`, where a line has them, are the GPUs of
 * the host. Throws Error(usage) where the file cannot be read, names no host, says another number
 * of GPUs than `n_gpus`, or has other words. Formats: Open MPI 5 and MPICH 4, manual pages of
 * mpirun; DeepSpeed 0.19, "Resource Configuration". */
std::vector<std::string> read_host_file(const std::filesystem::path& file, int n_gpus);

}  // namespace ferry
