#pragma once
// Starts the built ferry as a user would, in a directory of the test's own.

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace ferry::test {

/** `ferry ARGUMENTS` in `root`, where it knows no other runs and no tokens; its output goes to
 * files <prefix>out and <prefix>err there. The process calls `first` before it is ferry. The caller
 * waits for it. */
pid_t start_ferry(const std::filesystem::path& root,
                  std::vector<std::string> arguments,
                  const std::string& prefix = "",
                  const std::function<void()>& first = {});

}  // namespace ferry::test
