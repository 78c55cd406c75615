#include "src/cli/machine/bench_disk.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <string>

#include "offload/nvme/stripes.h"
#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/print.h"
#include "src/request/nvme.h"
#include "src/service/machine/disk_bench.h"
#include "src/service/machine/measured.h"
#include "src/term/progress.h"
#include "src/term/table.h"

namespace ferry::cli {

const std::string_view kBenchDiskHelp =
    "ferry bench disk - what a drive gives the engine that keeps states on NVMe\n\n"
    "usage: ferry bench disk [--directory DIR]... [--request-bytes SIZE] [--depth N]\n"
    "                        [--file-bytes SIZE] [--window-bytes SIZE] [--turns N] [--seconds S]\n"
    "                        [--json]\n\n"
    "Three patterns: reads and writes at rising offsets, and the optimizer's, which reads one half "
    "of\na file while it writes the other. Where fio is installed it runs the same patterns on the "
    "same\nfile by io_uring, in turns with Ferry; figures are medians of the turns.\n\n"
    "  --directory DIR       whose drive is measured (by itself those of FERRY_NVME_PATH, or this\n"
    "                        directory); several share the bytes in stripes, without fio. Nothing "
    "is\n"
    "                        left there\n"
    "  --request-bytes SIZE  a request to the drive, a multiple of 4 KiB (1MiB)\n"
    "  --depth N             requests under way at once on each drive (16)\n"
    "  --file-bytes SIZE     the file, at most a quarter of what is free (2GiB)\n"
    "  --window-bytes SIZE   memory that Ferry's transfers go through in turns, as a run's slots "
    "are\n"
    "                        (16MiB, which is fio's, too): a virtual disk copies faster to memory\n"
    "                        that stays in the processor's caches\n"
    "  --turns N             turns of each pattern (3)\n"
    "  --seconds S           about how long all turns take together (12)\n"
    "  --json                all figures, turn by turn\n";

namespace {

using nlohmann::ordered_json;
using service::DiskBench;
using service::DiskBenchOptions;
using service::DiskBenchRates;

constexpr int64_t kRequest_bytes_max = 64 * kMiB, kFile_bytes_max = 1024 * kGiB,
                  kUnderWay_bytes_max = kGiB, kWindow_bytes_max = 16 * kGiB;

[[noreturn]] void refuse_arguments(const std::string& what) {
  throw Error(Fault::usage, "cli.bench", what, "see `ferry bench disk --help`");
}

int checked_count(const std::string& word, const std::string& text, int most) {
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || stop != end || value < 1 || value > most)
    refuse_arguments(fmt::format("{} {}, expected a whole number from 1 to {}", word, text, most));
  return value;
}

int64_t checked_size(const std::string& word, const std::string& text, int64_t most) {
  const std::optional<int64_t> value = parse_bytes(text);
  if (!value || *value <= 0 || *value > most || *value % kDiskAlignment_bytes != 0)
    refuse_arguments(fmt::format("{} {}, expected a multiple of 4 KiB up to {}", word, text,
                                 format_bytes(most)));
  return *value;
}

struct Request {
  DiskBenchOptions options;
  bool wants_json = false;
};

Request parse(Arguments arguments) {
  Request request;
  DiskBenchOptions& options = request.options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const auto value = [&]() -> const std::string& {
      if (i + 1 == arguments.size()) refuse_arguments(fmt::format("{} needs a value", word));
      return arguments[++i];
    };
    if (word == "--json")
      request.wants_json = true;
    else if (word == "--directory")
      options.directories.emplace_back(value());
    else if (word == "--request-bytes")
      options.request_bytes = checked_size(word, value(), kRequest_bytes_max);
    else if (word == "--file-bytes")
      options.file_bytes = checked_size(word, value(), kFile_bytes_max);
    else if (word == "--window-bytes")
      options.window_bytes = checked_size(word, value(), kWindow_bytes_max);
    else if (word == "--depth")
      options.depth = checked_count(word, value(), 256);
    else if (word == "--turns")
      options.n_turns = checked_count(word, value(), 1000);
    else if (word == "--seconds")
      options.seconds = std::stod(service::checked_seconds(value()));
    else
      refuse_arguments(fmt::format("unexpected argument '{}'", word));
  }
  if (options.directories.empty()) options.directories = nvme_directories_of_environment();
  if (options.directories.empty()) options.directories.emplace_back(".");
  if (options.directories.size() > kDiskFiles_max)
    refuse_arguments(fmt::format("{} directories, expected at most {}", options.directories.size(),
                                 kDiskFiles_max));
  const int64_t n_bytes = options.request_bytes * options.depth * std::ssize(options.directories);
  if (n_bytes > kUnderWay_bytes_max)
    refuse_arguments(fmt::format("{} would be under way at once, expected at most {}",
                                 format_bytes(n_bytes), format_bytes(kUnderWay_bytes_max)));
  return request;
}

std::string directories_of(const DiskBenchOptions& options) {
  std::string text;
  for (const auto& directory : options.directories)
    text += (text.empty() ? "" : ", ") +
            std::filesystem::absolute(directory).lexically_normal().string();
  return text;
}

ordered_json json_of(const DiskBench& bench, const DiskBenchOptions& options) {
  ordered_json out = {{"part", "disk"},
                      {"directories", ordered_json::array()},
                      {"transport", bench.transport},
                      {"request_bytes", options.request_bytes},
                      {"depth", options.depth},
                      {"window_bytes", options.window_bytes},
                      {"fio", bench.fio},
                      {"why_no_fio", bench.why_no_fio},
                      {"flush_s", bench.flush_s},
                      {"patterns", ordered_json::array()}};
  for (const auto& directory : options.directories)
    out["directories"].push_back(directory.string());
  for (const DiskBenchRates& rates : bench.patterns) {
    const double ferry = DiskBenchRates::median(rates.ferry);
    ordered_json row = {{"pattern", name_of(rates.pattern)},
                        {"bytes_per_s", ferry},
                        {"turns_bytes_per_s", rates.ferry}};
    if (!rates.fio.empty()) {
      const double fio = DiskBenchRates::median(rates.fio);
      row["fio_bytes_per_s"] = fio;
      row["fio_turns_bytes_per_s"] = rates.fio;
      row["share_of_fio"] = ferry / fio;
    }
    out["patterns"].push_back(std::move(row));
  }
  return out;
}

void print_table(const DiskBench& bench, const DiskBenchOptions& options) {
  using term::Align;
  ferry::print(fmt::format("{}\n{} in a request, {} under way, by {}\n", directories_of(options),
                           format_bytes(options.request_bytes), options.depth, bench.transport));
  term::Table table({{"pattern"},
                     {"GB/s", Align::right},
                     {"of turns", Align::right},
                     {bench.fio.empty() ? "fio" : bench.fio, Align::right},
                     {"share of fio", Align::right}});
  const auto range = [](const std::vector<double>& rates) {
    const auto [least, most] = std::ranges::minmax(rates);
    return fmt::format("{:.2f} to {:.2f}", least / 1e9, most / 1e9);
  };
  for (const DiskBenchRates& rates : bench.patterns) {
    const double ferry = DiskBenchRates::median(rates.ferry);
    const double fio = DiskBenchRates::median(rates.fio);
    table.add_row({std::string(name_of(rates.pattern)), fmt::format("{:.2f}", ferry / 1e9),
                   range(rates.ferry), fio > 0 ? fmt::format("{:.2f}", fio / 1e9) : "",
                   fio > 0 ? fmt::format("{:.2f}", ferry / fio) : ""});
  }
  fmt::print("{}a flush after writes takes {:.1f} ms\n", table.text(term::detect_terminal(1)),
             bench.flush_s * 1e3);
  if (!bench.why_no_fio.empty())
    log_line(fmt::format("without a comparison: {}", bench.why_no_fio));
}

}  // namespace

int run_bench_disk(Arguments arguments) {
  Request request = parse(arguments);
  DiskBench bench;
  {
    const auto n_turns = static_cast<int64_t>(kDiskPatterns.size()) * request.options.n_turns;
    term::Progress progress(stderr, term::detect_terminal(2), "measuring", n_turns + 1, "turn");
    int64_t n_begun = 0;
    request.options.on_turn = [&](std::string_view what) { progress.update(n_begun++, what); };
    bench = service::bench_disk(request.options);
  }
  if (request.wants_json)
    fmt::print("{}\n", json_of(bench, request.options)
                           .dump(2, ' ', false, ordered_json::error_handler_t::replace));
  else
    print_table(bench, request.options);
  return 0;
}

}  // namespace ferry::cli
