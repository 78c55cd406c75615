#pragma once
// `ferry bench disk`: the rates of a drive under the engine of offload/nvme and, where fio is
// installed, what fio gets of the same file in the same minutes, turn by turn.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "offload/nvme/disk_rates.h"

namespace ferry::service {

struct DiskBenchOptions {
  std::vector<std::filesystem::path> directories;  ///< several share the bytes in stripes
  int64_t request_bytes = kMiB;
  int depth = 16;
  int n_turns = 3;      ///< of each pattern
  double seconds = 12;  ///< about what all take together, files being written apart
  int64_t file_bytes = 2 * kGiB;
  int64_t window_bytes = 0;  ///< memory that transfers go through; 0: what is under way
  std::function<void(std::string_view pattern)> on_turn = {};
};

/** Bytes per second, a turn each. */
struct DiskBenchRates {
  DiskPattern pattern = DiskPattern::read;
  std::vector<double> ferry, fio;

  static double median(std::vector<double> rates);
};

struct DiskBench {
  std::string transport;  ///< FileDisk::transport()
  std::string fio;        ///< "fio-3.33"; empty: fio was left out
  std::string why_no_fio;
  std::vector<DiskBenchRates> patterns;
  double flush_s = 0;  ///< after writes, until they are durable
};

/** Throws as open_disk() does. fio is left out, and the reason given, where it is missing, fails,
 * or the files are several: it knows no stripes. */
DiskBench bench_disk(const DiskBenchOptions& options);

}  // namespace ferry::service
