// ferry doctor: what is there, what it can do, what is wrong, and the cure of each fault. Measuring
// is the trainer's work; its figures are kept as the machine's profile. Exit code 0 when training
// can run, else 5.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/family.h"
#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/print.h"
#include "src/cli/commands.h"
#include "src/cli/machine/profile_tables.h"
#include "src/config/models/models.h"
#include "src/files/hf/hf_config.h"
#include "src/request/nvme.h"
#include "src/runs/store/drive_rates.h"
#include "src/service/machine/facts.h"
#include "src/term/table.h"

namespace ferry::cli {

namespace {

using nlohmann::ordered_json;
using service::Facts;
using service::Finding;
using service::Measured;

constexpr std::string_view kDoctorHelp =
    "ferry doctor - what this machine has and can do, and what is wrong with it\n\n"
    "usage: ferry doctor [--no-measure] [--seconds S] [--nvme-path DIR,...] [--json]\n\n"
    "Looks at processor, memory and its limits, disk, NVIDIA driver and GPUs, and Ferry's own "
    "parts; measures\n"
    "AdamW, copies, products, attention and the disk of the current directory in under 20 "
    "seconds, a GPU of\n"
    "another model in as many more, and the drives of nvme_path; lists the models that it finds; "
    "and says how to\n"
    "mend each fault. The figures are kept as the machine's profile in "
    "$XDG_DATA_HOME/ferry/machine.json\n"
    "(~/.local/share). Exit code 0 when training can run, 5 when something prevents it.\n\n"
    "  --no-measure   look only; figures are those of the last time\n"
    "  --seconds S    about how long measuring may take (12 by itself, and what starting takes)\n"
    "  --nvme-path D  directories on the drives of a run, as `ferry train` has it; by itself those "
    "of\n"
    "                 FERRY_NVME_PATH. Some 6 seconds more\n";

constexpr std::string_view kNvmeFlag = "--nvme-path=";

struct DoctorRequest {
  bool measures = true;
  std::string seconds;
  std::optional<Directories> nvme;
  bool wants_json = false;
  bool wants_help = false;
};

DoctorRequest parse_doctor(Arguments arguments) {
  DoctorRequest request;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--help" || argument == "-h")
      request.wants_help = true;
    else if (argument == "--json")
      request.wants_json = true;
    else if (argument == "--no-measure")
      request.measures = false;
    else if (argument == "--seconds" && i + 1 < arguments.size())
      request.seconds = service::checked_seconds(arguments[++i]);
    else if (argument == "--nvme-path" && i + 1 < arguments.size())
      request.nvme = nvme_directories(arguments[++i], argument);
    else if (argument.starts_with(kNvmeFlag))
      request.nvme = nvme_directories(argument.substr(kNvmeFlag.size()), "--nvme-path");
    else
      throw Error(
          Fault::usage, "cli.argument", fmt::format("unexpected argument '{}'", argument),
          "usage: ferry doctor [--no-measure] [--seconds S] [--nvme-path DIR,...] [--json]");
  }
  return request;
}

struct FoundModel {
  std::string family = "unreadable";  ///< where config.json cannot be read
  bool is_trained = false;            ///< by this version
};

FoundModel look_at(const config::ModelPlace::Model& model) {
  FoundModel found;
  try {
    const HfConfig hf = HfConfig::load(model.directory / "config.json");
    found.family = hf.model_type.empty() ? "no model_type" : hf.model_type;
    family_of(hf.fields());
    found.is_trained = true;
  } catch (const Error&) {
  }
  return found;
}

ordered_json json_of(const std::vector<config::ModelPlace>& places) {
  ordered_json all = ordered_json::array();
  for (const config::ModelPlace& place : places) {
    ordered_json models = ordered_json::array();
    for (const auto& model : place.models) {
      const FoundModel found = look_at(model);
      models.push_back({{"name", model.name},
                        {"directory", model.directory.string()},
                        {"model_type", found.family},
                        {"is_trained", found.is_trained}});
    }
    all.push_back({{"place", place.name}, {"path", place.path.string()}, {"models", models}});
  }
  return all;
}

/** "bert-base-uncased, gpt2 (gpt2: not trained by this version)" */
std::string text_of(const config::ModelPlace& place) {
  constexpr size_t kShown = 20;
  std::vector<std::string> names;
  for (const auto& model : place.models) {
    const FoundModel found = look_at(model);
    names.push_back(
        found.is_trained ? model.name
        : found.family == "unreadable"
            ? fmt::format("{} (unreadable)", model.name)
            : fmt::format("{} ({}: not trained by this version)", model.name, found.family));
  }
  const size_t n_more = names.size() > kShown ? names.size() - kShown : 0;
  names.resize(names.size() - n_more);
  return fmt::format("{}{}", fmt::join(names, ", "),
                     n_more > 0 ? fmt::format(" and {} more", n_more) : "");
}

/** The models that --model takes by name, under each place that was looked at. */
void print_models(const std::vector<config::ModelPlace>& places) {
  fmt::print("\nmodels:\n");
  for (const config::ModelPlace& place : places) {
    const bool is_unset = place.path.empty() && place.name.starts_with('$');
    const bool says_path = !place.path.empty() && place.path != "models";
    ferry::print(fmt::format("  {}{}: {}\n", place.name,
                             says_path ? fmt::format(" ({})", place.path.string()) : "",
                             is_unset               ? "not set"
                             : place.models.empty() ? "none"
                                                    : text_of(place)));
  }
}

void print_facts(const Facts& facts, const term::Terminal& terminal) {
  const service::Host& host = facts.host;
  const HostMemory& memory = facts.memory;
  const service::Nvidia& nvidia = facts.nvidia;
  term::Table table({{""}, {""}});
  table.add_row({"system", fmt::format("{}, Linux {}{}", host.distribution, host.kernel,
                                       host.is_wsl ? " (WSL)" : "")});
  table.add_row({"processor",
                 fmt::format("{}, {} cores, {} threads", host.cpu, host.n_cores, host.n_threads)});
  table.add_row({"CPU kernels", facts.simd_level.empty() ? "-" : facts.simd_level});
  table.add_row(
      {"memory",
       fmt::format("{} available of {}; a run may take {}", format_bytes(memory.available_bytes),
                   format_bytes(memory.total_bytes), format_bytes(memory.budget_bytes()))});
  table.add_row(
      {"memory limits",
       fmt::format("cgroup {}, memlock {}",
                   memory.cgroup_limit_bytes ? format_bytes(*memory.cgroup_limit_bytes) : "none",
                   host.memlock_limit_bytes ? format_bytes(*host.memlock_limit_bytes) : "none")});
  table.add_row({"swap", host.swap_total_bytes == 0
                             ? "none"
                             : fmt::format("{} free of {}", format_bytes(host.swap_free_bytes),
                                           format_bytes(host.swap_total_bytes))});
  table.add_row({"disk here", fmt::format("{} free of {}", format_bytes(host.disk_free_bytes),
                                          format_bytes(host.disk_total_bytes))});
  table.add_row({"NVIDIA driver",
                 nvidia.driver_version.empty()
                     ? "none"
                     : fmt::format("{}, CUDA {}.{}", nvidia.driver_version,
                                   nvidia.cuda_version / 1000, nvidia.cuda_version % 1000 / 10)});
  for (const service::Gpu& gpu : nvidia.gpus)
    table.add_row({"GPU", fmt::format("{}, {} free of {}, sm_{}, PCIe {} x{}{}", gpu.name,
                                      format_bytes(gpu.memory_free_bytes),
                                      format_bytes(gpu.memory_total_bytes), gpu.compute_capability,
                                      gpu.pcie_generation, gpu.pcie_width,
                                      gpu.drives_display ? ", drives the display" : "")});
  if (facts.profile)
    for (const auto& [name, figures] : profile_summary(*facts.profile))
      table.add_row({name, figures});
  for (const auto& [name, health] : facts.wear.drives)
    table.add_row({"drive", health_text(name, health)});
  table.add_row({"trainer", facts.trainer ? facts.trainer->string() : "not found"});
  table.add_row({"presets", fmt::format("{}, {} of them made for no more than this machine: ferry "
                                        "presets ls --here",
                                        facts.presets.size(), facts.presets_here.size())});
  fmt::print("{}", table.text(terminal));
}

/** Where the figures are from, and which are missing. */
void print_measuring(const Facts& facts, const Measured& measured) {
  if (!facts.profile) return;
  ferry::print(fmt::format("\nfigures: {}", facts.profile->source));
  if (measured.profile) {
    fmt::print(" in {:.0f} s", measured.seconds);
    if (facts.store_trouble.empty())
      ferry::print(fmt::format(", kept in {}", machine_profile_path().string()));
  }
  fmt::print("\n");
  for (const std::string& line : measured.skipped)
    ferry::print(fmt::format("left out: {}\n", line));
}

void print_findings(const std::vector<Finding>& findings,
                    bool usable,
                    const term::Terminal& terminal) {
  constexpr term::Style kStyles[] = {term::Style::cyan, term::Style::yellow, term::Style::red};
  fmt::print("\n");
  for (const Finding& finding : findings) {
    std::string severity = fmt::format("{}:", service::name_of(finding.severity));
    fmt::print("{} {}\n",
               term::styled(severity, kStyles[static_cast<int>(finding.severity)], terminal),
               finding.what);
    if (!finding.cure.empty()) ferry::print(fmt::format("    {}\n", finding.cure));
  }
  fmt::print("{}\n", usable ? "Ferry can train here."
                            : "Ferry cannot train here until the errors are mended.");
}

}  // namespace

int run_doctor(Arguments arguments) {
  const DoctorRequest request = parse_doctor(arguments);
  if (request.wants_help) {
    fmt::print("{}", kDoctorHelp);
    return 0;
  }
  Facts facts = service::read_facts();
  if (request.nvme) service::look_at_drives(facts, *request.nvme);
  Measured measured;
  if (request.measures)
    measured = service::measure_and_store(facts, request.seconds);
  else
    service::load_profile(facts);
  const std::vector<Finding> findings = service::diagnose(facts);
  const bool usable = service::is_usable(findings);
  const term::Terminal terminal = term::detect_terminal(1);
  if (request.wants_json) {
    ordered_json report = service::to_json(facts, findings, measured);
    report["models"] = json_of(config::list_model_places());
    fmt::print("{}\n", report.dump(2, ' ', false, ordered_json::error_handler_t::replace));
  } else {
    print_facts(facts, terminal);
    print_measuring(facts, measured);
    print_models(config::list_model_places());
    print_findings(findings, usable, terminal);
  }
  return usable ? 0 : static_cast<int>(Fault::machine);
}

}  // namespace ferry::cli
