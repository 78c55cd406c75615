#pragma once
// Starts the built ferry as a user would, in a directory of the test's own.

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace ferry::test {

/** `ferry ARGUMENTS` in `root`, where it knows no other runs and no tokens; its output goes to
 * files <prefix>out and <prefix>err there. The caller waits for the process. */
pid_t start_ferry(const std::filesystem::path& root,
                  std::vector<std::string> arguments,
                  const std::string& prefix = "");

}  // namespace ferry::test
