#pragma once
// The output of another program, for measurements that are not made in this process.

#include <stop_token>
#include <string>
#include <vector>

namespace ferry::service {

struct ChildOutput {
  std::string text;         ///< its standard output
  std::string trouble;      ///< why that is not all; empty: it ended with 0
  bool is_missing = false;  ///< there is no such program
};

/** Runs a program, by its path or found in PATH, with nothing to read; its talk goes to standard
 * error. Messages call it `name`. Never throws: what goes wrong is the trouble. It is ended after
 * `patience_s`, or when `stop` asks for it. */
ChildOutput run_child(const std::string& name,
                      const std::vector<std::string>& words,
                      double patience_s,
                      const std::stop_token& stop = {});

}  // namespace ferry::service
