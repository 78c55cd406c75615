// ferry bench PART: measures one part of the machine, as a run uses it, and prints all figures.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/nearest_name.h"
#include "src/base/print.h"
#include "src/cli/commands.h"
#include "src/cli/machine/bench_disk.h"
#include "src/cli/machine/bench_nccl.h"
#include "src/cli/machine/profile_tables.h"
#include "src/config/options/option.h"
#include "src/files/write/atomic_file.h"
#include "src/service/machine/measured.h"
#include "src/service/trainer_program.h"
#include "src/term/table.h"

namespace ferry::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using service::Measured;

constexpr std::string_view kUsage =
    "usage: ferry bench PART [--seconds S] [--json] [--output FILE.json]";

constexpr std::string_view kBenchHelp =
    "ferry bench - measure one part of this machine, as a run uses it\n\n"
    "usage: ferry bench PART [--seconds S] [--json]\n"
    "       ferry bench card [--output FILE.json]\n"
    "       ferry bench all --output FILE.json\n\n"
    "  memory     what a training process takes beside its plan: LibTorch, kernels, graphs\n"
    "  adamw      AdamW in host memory over threads, alone and beside copies both ways\n"
    "  dram       what host memory gives accesses like AdamW's, and AdamW, and what copies leave "
    "of it\n"
    "  copy       copies of pinned memory to the GPU, back, and both at once, by size\n"
    "  gpu        element-wise kernels, launches and AdamW on the GPU\n"
    "  gemm       products of each type at the sizes of training\n"
    "  attention  forward and backward of each backend by length and head width\n"
    "  disk       what a drive gives, beside fio; `ferry bench disk --help` says more\n"
    "  all        all of these, the disk as checkpoints are written; with --output the machine's\n"
    "             profile is written there\n"
    "  step       training steps of a small model of random weights\n"
    "  nccl       what GPUs, or processes of the CPU, send each other; `ferry bench nccl --help` "
    "says more\n"
    "  card       the GPU's figures as a file that describes the card to others: ferry plan\n"
    "             elsewhere takes it in place of a machine's name\n\n"
    "--seconds is about how long measuring everything may take (12 by itself); a part takes its "
    "share.\n"
    "Nothing is stored else, but nccl's rates; `ferry doctor` measures all and keeps it for ferry "
    "plan.\n";

constexpr std::string_view kParts[] = {"memory",    "adamw", "dram", "copy", "gpu", "gemm",
                                       "attention", "disk",  "step", "nccl", "all", "card"};

struct BenchRequest {
  std::string part;
  std::string seconds;
  fs::path output;
  bool wants_json = false;
};

[[noreturn]] void refuse(const std::string& what, std::string_view hint = kUsage) {
  throw Error(Fault::usage, "cli.bench", what, hint);
}

void check_part(const std::string& part) {
  if (std::find(std::begin(kParts), std::end(kParts), part) != std::end(kParts)) return;
  const std::vector<std::string_view> names(std::begin(kParts), std::end(kParts));
  const std::string nearest = nearest_name(part, names);
  refuse(fmt::format("unknown part '{}'", part),
         fmt::format("{}the parts are {}",
                     nearest.empty() ? "" : fmt::format("did you mean '{}'? ", nearest),
                     fmt::join(names, ", ")));
}

BenchRequest parse_bench(Arguments arguments) {
  BenchRequest request;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const auto value = [&] {
      if (i + 1 == arguments.size()) refuse(fmt::format("{} needs a value", word));
      return arguments[++i];
    };
    if (word == "--json")
      request.wants_json = true;
    else if (word == "--seconds")
      request.seconds = service::checked_seconds(value());
    else if (word == "--output") {
      request.output = value();
      if (request.output.empty()) refuse("--output is empty, expected a file's name");
    } else if (request.part.empty() && !word.starts_with('-'))
      request.part = word;
    else
      refuse(fmt::format("unexpected argument '{}'", word));
  }
  if (request.part.empty()) refuse("no part is named", kUsage);
  check_part(request.part);
  if (!request.output.empty() && request.part != "card" && request.part != "all")
    refuse("--output goes with `ferry bench card` and `ferry bench all` only");
  return request;
}

/** "nvidia-geforce-rtx-3090.json" */
fs::path file_of(const std::string& gpu_name) {
  std::string name;
  for (const char c : gpu_name) {
    const bool is_plain =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (is_plain)
      name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  while (name.ends_with('-'))
    name.pop_back();
  return (name.empty() ? "card" : name) + ".json";
}

/** Before measuring: nothing is overwritten, and no figures are lost on a name that cannot be
 * written. */
void check_can_be_made(const fs::path& file) {
  std::error_code error;
  if (fs::exists(file, error))
    refuse(fmt::format("'{}' is there already", file.string()),
           "give a new name with --output; nothing is overwritten");
  const fs::path directory = file.has_parent_path() ? file.parent_path() : ".";
  if (!fs::is_directory(directory, error))
    refuse(fmt::format("'{}' cannot be written: there is no directory '{}'", file.string(),
                       directory.string()),
           "make it first, or give another name with --output");
  if (::access(directory.c_str(), W_OK | X_OK) != 0)
    refuse(fmt::format("'{}' cannot be written: no file may be made in '{}'", file.string(),
                       directory.string()),
           "give a name in another directory with --output");
  AtomicFile made_and_removed(file);  // a full disk and the like
}

/** The card alone: nothing of the host it was measured in but the link. */
fs::path write_card(const MachineProfile& measured, const fs::path& output) {
  MachineProfile card{.name = measured.gpu->name, .source = measured.source, .gpu = measured.gpu};
  card.gpu->drives_display = false;
  card.assumptions = {"Copies are those of the machine it was measured in."};
  const fs::path file = output.empty() ? file_of(card.name) : output;
  check_can_be_made(file);
  write_text_file(file, to_json(card));
  return file;
}

void print_skipped(const Measured& measured, const std::string& part) {
  for (const std::string& line : measured.skipped)
    log_line(fmt::format("left out: {}", line));
  const bool is_of_gpu = part == "copy" || part == "gpu";
  if (is_of_gpu && !measured.profile->gpu)
    log_line(fmt::format("left out: there is no usable GPU ({})", measured.gpu_trouble));
}

ordered_json json_of(const Measured& measured, const std::string& part) {
  ordered_json out = {{"part", part}, {"seconds", measured.seconds}, {"skipped", measured.skipped}};
  if (part != "step") {
    out["profile"] = ordered_json::parse(to_json(*measured.profile));
    return out;
  }
  for (const service::StepTime& step : measured.steps)
    out["steps"].push_back({{"model", step.model}, {"placement", step.placement}, {"ms", step.ms}});
  return out;
}

void print_steps(const Measured& measured) {
  term::Table table({{"model"}, {"placement"}, {"ms a step", term::Align::right}});
  for (const service::StepTime& step : measured.steps)
    table.add_row({step.model, step.placement, fmt::format("{:.2f}", step.ms)});
  if (!measured.steps.empty()) fmt::print("{}", table.text(term::detect_terminal(1)));
}

[[noreturn]] void refuse_without_gpu(std::string_view why) {
  throw Error(Fault::machine, "cli.bench",
              fmt::format("there is no usable GPU to describe: {}", why), "see `ferry doctor`");
}

/** Before measuring, as far as it is known then: CUDA may work where NVML does not. */
void check_card(const BenchRequest& request, const service::Nvidia& nvidia) {
  if (nvidia.n_pci_devices == 0 && !nvidia.has_library)
    refuse_without_gpu("no NVIDIA GPU is on the PCI bus");
  if (request.output.empty() && !nvidia.gpus.empty())
    check_can_be_made(file_of(nvidia.gpus.front().name));
}

Measured measure(const BenchRequest& request) {
  const fs::path trainer = service::find_measuring_trainer();
  const service::Host host = service::read_host();
  const service::Nvidia nvidia = service::read_nvidia();
  if (request.part == "card") check_card(request, nvidia);
  std::vector<std::string> words = {request.part, "--json"};
  if (!request.seconds.empty()) words.insert(words.end(), {"--seconds", request.seconds});
  Measured measured = service::run_trainer_bench(trainer, words);
  if (!measured.profile)
    throw Error(Fault::machine, "cli.bench", measured.trouble, "see `ferry doctor`");
  service::add_facts(measured, host, nvidia);
  return measured;
}

}  // namespace

std::span<const std::string_view> bench_parts() {
  return kParts;
}

int run_bench(Arguments arguments) {
  const std::string part = arguments.empty() ? "" : arguments.front();
  const auto is_help = [](const std::string& word) { return word == "--help" || word == "-h"; };
  if (std::ranges::any_of(arguments, is_help)) {
    fmt::print("{}", part == "disk"   ? kBenchDiskHelp
                     : part == "nccl" ? kBenchNcclHelp
                                      : kBenchHelp);
    return 0;
  }
  if (part == "disk") return run_bench_disk(arguments.subspan(1));
  if (part == "nccl") return run_bench_nccl(arguments.subspan(1));
  const BenchRequest request = parse_bench(arguments);
  if (!request.output.empty()) check_can_be_made(request.output);
  const Measured measured = measure(request);
  if (request.part == "all" && !request.output.empty())
    write_text_file(request.output, to_json(*measured.profile));
  if (request.part == "card" && !measured.profile->gpu)
    refuse_without_gpu(measured.gpu_trouble.empty()
                           ? fmt::format("{}", fmt::join(measured.skipped, "; "))
                           : measured.gpu_trouble);
  if (request.part == "card") {
    const fs::path file = write_card(*measured.profile, request.output);
    print_skipped(measured, request.part);
    if (request.wants_json)
      fmt::print("{}\n", ordered_json({{"file", file.string()}}).dump());
    else
      ferry::print(fmt::format("{}\n", file.string()));
    return 0;
  }
  if (request.wants_json) {
    fmt::print("{}\n", json_of(measured, request.part)
                           .dump(2, ' ', false, ordered_json::error_handler_t::replace));
    return 0;
  }
  if (request.part == "step")
    print_steps(measured);
  else
    fmt::print("{}", profile_tables(request.part, *measured.profile, term::detect_terminal(1)));
  print_skipped(measured, request.part);
  return 0;
}

}  // namespace ferry::cli
