#include "src/service/machine/disk_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/base/median.h"
#include "src/service/machine/child_output.h"

namespace ferry::service {
namespace {

namespace fs = std::filesystem;

constexpr double kFioPatience_s = 60;

/** fio's words for a pattern over the file of `scratch`: the same engine, memory and depth. */
std::vector<std::string> fio_words(DiskPattern pattern,
                                   const ScratchDisk& scratch,
                                   const DiskBenchOptions& options,
                                   double seconds) {
  const bool is_mixed = pattern == DiskPattern::mixed;
  // The two halves of a mixed pattern are jobs at once: each has half of what is under way.
  const int depth = is_mixed ? std::max(1, options.depth / 2) : options.depth;
  const int64_t n_bytes = scratch.n_filled_bytes() / (is_mixed ? 2 : 1);
  std::vector<std::string> words = {"fio",
                                    "--output-format=json",
                                    "--ioengine=io_uring",
                                    "--direct=1",
                                    "--thread",
                                    "--time_based",
                                    "--group_reporting",
                                    "--allow_file_create=0",
                                    "--registerfiles",
                                    fmt::format("--bs={}", options.request_bytes),
                                    fmt::format("--iodepth={}", depth),
                                    fmt::format("--runtime={:.0f}ms", std::max(1.0, seconds * 1e3)),
                                    fmt::format("--filename={}", scratch.files().front().string()),
                                    fmt::format("--size={}", n_bytes)};
  if (scratch.disk().transport().ends_with("registered buffers")) words.push_back("--fixedbufs");
  const auto add_job = [&](std::string_view name, int64_t offset) {
    for (std::string word : {fmt::format("--name={}", name), fmt::format("--rw={}", name),
                             fmt::format("--offset={}", offset)})
      words.push_back(std::move(word));
  };
  if (pattern != DiskPattern::write) add_job("read", 0);
  if (pattern != DiskPattern::read) add_job("write", is_mixed ? n_bytes : 0);
  return words;
}

/** Bytes per second of all jobs. */
double parse_fio(const std::string& text) {
  const size_t begin = text.find('{');  // remarks may come before
  const auto out = JsonReader::parse(begin == std::string::npos ? text : text.substr(begin),
                                     {"fio's figures", "bench.disk", "install another fio"});
  const JsonReader jobs = out.at("jobs");
  double rate = 0;
  for (size_t i = 0; i < jobs.size(); ++i)
    for (const char* const way : {"read", "write"})
      rate += jobs.at(i).at(way).number("bw_bytes", 0, 1e15);
  return rate;
}

/** Runs one turn of fio; false, and it is left out from then on, where it fails. */
bool add_fio_turn(DiskBenchRates& rates,
                  const ScratchDisk& scratch,
                  const DiskBenchOptions& options,
                  double seconds,
                  std::string& why_not) {
  const ChildOutput output = run_child("fio", fio_words(rates.pattern, scratch, options, seconds),
                                       seconds + kFioPatience_s);
  why_not = output.trouble;
  if (why_not.empty()) try {
      rates.fio.push_back(parse_fio(output.text));
    } catch (const Error& error) {
      why_not = error.what();
    }
  return why_not.empty();
}

/** "fio-3.33", or empty and the reason. */
std::string find_fio(const DiskBenchOptions& options, std::string& why_not) {
  if (options.directories.size() > 1) {
    why_not = "fio has no stripes over several directories";
    return {};
  }
  ChildOutput output = run_child("fio", {"fio", "--version"}, kFioPatience_s);
  why_not = output.is_missing ? "fio is not installed" : output.trouble;
  if (!why_not.empty()) return {};
  while (output.text.ends_with('\n'))
    output.text.pop_back();
  return output.text;
}

}  // namespace

double DiskBenchRates::median(std::vector<double> rates) {
  return rates.empty() ? 0 : ferry::median(std::move(rates));
}

DiskBench bench_disk(const DiskBenchOptions& options) {
  DiskBench bench;
  bench.fio = find_fio(options, bench.why_no_fio);
  const double n_turns =
      static_cast<double>(kDiskPatterns.size()) * options.n_turns * (bench.fio.empty() ? 1 : 2);
  const double seconds = options.seconds / n_turns;
  if (options.on_turn) options.on_turn("files");
  ScratchDisk scratch(options.directories, options.file_bytes,
                      {.request_bytes = options.request_bytes, .depth = options.depth},
                      ScratchDisk::kFill_s_max, options.window_bytes);
  bench.transport = scratch.disk().transport();
  for (const DiskPattern pattern : kDiskPatterns) {
    DiskBenchRates rates{.pattern = pattern};
    for (int turn = 0; turn < options.n_turns; ++turn) {
      if (options.on_turn) options.on_turn(name_of(pattern));
      rates.ferry.push_back(scratch.rate_of(pattern, seconds));
      if (!bench.fio.empty() && !add_fio_turn(rates, scratch, options, seconds, bench.why_no_fio))
        bench.fio.clear();
    }
    bench.patterns.push_back(std::move(rates));
  }
  constexpr int kFlushes = 5;
  bench.flush_s = scratch.flush_s(kFlushes);
  return bench;
}

}  // namespace ferry::service
