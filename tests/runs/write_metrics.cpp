// write_metrics RUN N_STEPS: the metrics log for read_tensorboard.py. Goes on in the run after
// N_STEPS with the lines on stdin, a JSON object each. An Error ends it: its message on stderr, its
// exit code.

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "src/base/error.h"
#include "src/runs/logs/metrics_log.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: write_metrics RUN N_STEPS < lines.jsonl\n");
    return 2;
  }
  try {
    ferry::runs::MetricsLog log(argv[1], std::atoll(argv[2]), /*with_tensorboard=*/true);
    std::string line;
    while (std::getline(std::cin, line))
      log.append(nlohmann::ordered_json::parse(line));
    log.sync();
  } catch (const ferry::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.exit_code();
  }
  return 0;
}
