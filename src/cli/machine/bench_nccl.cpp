#include "src/cli/machine/bench_nccl.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/print.h"
#include "src/service/machine/measured.h"
#include "src/service/trainer_program.h"
#include "src/term/table.h"

namespace ferry::cli {

const std::string_view kBenchNcclHelp =
    "ferry bench nccl - what the ranks of a run send each other, and how fast\n\n"
    "usage: ferry bench nccl [--gpus N | --gpus 0,2] [--device auto | cuda | cpu]\n"
    "                        [--message-bytes SIZE] [--seconds S] [--json]\n\n"
    "Times all-gather, reduce-scatter, all-reduce, all-to-all and send/recv of 4 KiB to 256 MiB, "
    "and "
    "checks\n"
    "what arrives. Where this machine has two GPUs or more they send by NCCL, otherwise two "
    "processes "
    "of the\n"
    "CPU by Gloo. Bandwidths are those of nccl-tests: the bytes of an operation over its time, and "
    "the "
    "same\n"
    "times the part of them that crosses the link of each rank (bus).\n\n"
    "The rate of large all-to-all and the time of small ones are kept in the machine's profile, if "
    "`ferry\n"
    "doctor` has made one: plans of several GPUs go by them.\n\n"
    "  --gpus N             how many, or which (0,2); by itself all of this machine, or 2 "
    "processes\n"
    "  --device D           cpu: between processes of the CPU, whatever GPUs there are\n"
    "  --message-bytes S    the largest size, 256MiB by itself or what memory has room for\n"
    "  --seconds S          about how long measuring may take (12 by itself)\n";

namespace {

using nlohmann::ordered_json;
using service::ExchangeTime;
using service::Measured;

struct NcclRequest {
  std::vector<std::string> words = {"nccl"};  ///< for the trainer
  bool wants_json = false;
};

[[noreturn]] void refuse_nccl(const std::string& what) {
  throw Error(Fault::usage, "cli.bench", what,
              "usage: ferry bench nccl [--gpus N] [--device auto | cuda | cpu] "
              "[--message-bytes SIZE] [--seconds S] [--json]");
}

std::string message_bytes_of(const std::string& text) {
  constexpr int64_t kLeast_bytes = 4 * kKiB, kMost_bytes = 256 * kMiB;
  const std::optional<int64_t> value = parse_bytes(text);
  if (!value || *value < kLeast_bytes || *value > kMost_bytes)
    refuse_nccl(fmt::format("--message-bytes {}, expected a size from 4 KiB to 256 MiB", text));
  return fmt::format("{}", *value);
}

NcclRequest parse_nccl(Arguments arguments) {
  NcclRequest request;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const auto value = [&]() -> const std::string& {
      if (i + 1 == arguments.size()) refuse_nccl(fmt::format("{} needs a value", word));
      return arguments[++i];
    };
    const auto pass = [&](const std::string& flag, const std::string& text) {
      request.words.insert(request.words.end(), {flag, text});
    };
    if (word == "--json") {
      request.wants_json = true;
    } else if (word == "--gpus") {
      pass(word, value());
    } else if (word == "--device") {
      const std::string& device = value();
      if (device != "auto" && device != "cuda" && device != "cpu")
        refuse_nccl(fmt::format("--device {}, expected auto, cuda or cpu", device));
      pass(word, device);
    } else if (word == "--message-bytes") {
      pass("--bytes", message_bytes_of(value()));
    } else if (word == "--seconds") {
      pass(word, service::checked_seconds(value()));
    } else {
      refuse_nccl(fmt::format("unexpected argument '{}'", word));
    }
  }
  return request;
}

std::string gb(double bytes_per_s) {
  return fmt::format("{:.{}f}", bytes_per_s / 1e9, bytes_per_s < 10e9 ? 3 : 1);
}

void print_table(const Measured& measured) {
  term::Table table({{"operation"},
                     {"size", term::Align::right},
                     {"time", term::Align::right},
                     {"GB/s", term::Align::right},
                     {"bus GB/s", term::Align::right}});
  const std::string* before = nullptr;
  for (const ExchangeTime& time : measured.exchanges) {
    if (before && *before != time.operation) table.add_rule();
    table.add_row({before && *before == time.operation ? "" : time.operation,
                   format_bytes(time.n_bytes), fmt::format("{:.1f} us", 1e6 * time.seconds),
                   gb(time.bytes_per_s), gb(time.bus_bytes_per_s)});
    before = &time.operation;
  }
  fmt::print("{} {} by {}\n{}\n", measured.n_ranks,
             measured.profile->gpu ? "GPUs" : "processes of the CPU", measured.exchange_by,
             table.text(term::detect_terminal(1)));
}

ordered_json exchanges_json(const Measured& measured, bool is_kept) {
  ordered_json out = {{"part", "nccl"},
                      {"seconds", measured.seconds},
                      {"by", measured.exchange_by},
                      {"n_ranks", measured.n_ranks},
                      {"exchanges", ordered_json::array()},
                      {"is_kept", is_kept}};
  for (const ExchangeTime& time : measured.exchanges)
    out["exchanges"].push_back({{"operation", time.operation},
                                {"bytes", time.n_bytes},
                                {"seconds", time.seconds},
                                {"bytes_per_s", time.bytes_per_s},
                                {"bus_bytes_per_s", time.bus_bytes_per_s}});
  out["profile"] = ordered_json::parse(to_json(*measured.profile));
  return out;
}

}  // namespace

int run_bench_nccl(Arguments arguments) {
  const NcclRequest request = parse_nccl(arguments);
  const Measured measured =
      service::run_trainer_bench(service::find_measuring_trainer(), request.words);
  if (!measured.profile)
    throw Error(Fault::machine, "cli.bench", measured.trouble, "see `ferry doctor`");
  const bool is_kept = service::keep_exchange(measured);
  if (request.wants_json)
    fmt::print("{}\n", exchanges_json(measured, is_kept)
                           .dump(2, ' ', false, ordered_json::error_handler_t::replace));
  else
    print_table(measured);
  log_line(is_kept ? fmt::format("kept for plans in {}", machine_profile_path().string())
                   : "not kept for plans: this machine has no profile yet, which `ferry doctor` "
                     "makes");
  return 0;
}

}  // namespace ferry::cli
