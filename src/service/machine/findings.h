#pragma once
// The list that diagnose() makes. Private to src/service/machine.

#include <string>
#include <vector>

#include "src/service/machine/diagnosis.h"

namespace ferry::service {

class Findings {
 public:
  void add(Severity severity, std::string what, std::string cure = {}, Mend mend = Mend::none) {
    list.push_back({severity, std::move(what), std::move(cure), mend});
  }
  std::vector<Finding> list;
};

/** Finds what the figures say: pinning, links, memory, disk. */
void diagnose_measured(const Facts& facts, Findings& findings);

}  // namespace ferry::service
