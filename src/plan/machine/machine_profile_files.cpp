// The places of machine profiles: the measured one in the user's data, presets beside the program
// or in the source tree.

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <numeric>

#include "src/base/error.h"
#include "src/base/nearest_name.h"
#include "src/files/mapped_file.h"
#include "src/files/paths.h"
#include "src/files/user_data.h"
#include "src/files/write/atomic_file.h"
#include "src/files/write/file_lock.h"
#include "src/plan/machine/machine_profile.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;

/** name -> file; an installed preset hides the source tree's. */
std::map<std::string, fs::path> preset_files() {
  std::map<std::string, fs::path> files;
  for (const fs::path& presets : own_preset_directories()) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(presets / "machines", error))
      if (entry.path().extension() == ".json")
        files.try_emplace(entry.path().stem().string(), entry.path());
  }
  return files;
}

/** "NVIDIA GeForce RTX 2080 Ti" and "rtx2080ti" are both "2080ti". */
std::string plain_card_name(std::string_view name) {
  std::string plain;
  for (const char c : normalized_name(name))
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) plain += c;
  for (const std::string_view maker : {"nvidia", "geforce", "tesla", "quadro", "rtx", "gtx"})
    if (plain.starts_with(maker)) plain.erase(0, maker.size());
  return plain;
}

/** The preset of a card that is called by its own name; empty where there is none. */
std::string card_named(std::string_view typed, const std::vector<std::string_view>& names) {
  const std::string wanted = plain_card_name(typed);
  for (const std::string_view name : names)
    if (!wanted.empty() && plain_card_name(name).starts_with(wanted)) return std::string(name);
  return {};
}

MachineProfile read(const fs::path& file) {
  return parse_machine_profile(read_text_file(file), file.string());
}

}  // namespace

std::string cpu_name(const fs::path& root) {
  constexpr std::string_view kKey = "model name", kSpace = " \t\r";
  std::ifstream stream(root / "proc/cpuinfo");
  for (std::string line; std::getline(stream, line);) {
    const size_t colon = line.find(':');
    if (!line.starts_with(kKey) || colon == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(kSpace, colon + 1);
    if (begin == std::string::npos) continue;
    return line.substr(begin, line.find_last_not_of(kSpace) - begin + 1);
  }
  return {};
}

fs::path machine_profile_path() {
  return user_data_file("machine.json");
}

std::optional<MachineProfile> load_machine_profile() {
  const fs::path file = machine_profile_path();
  std::error_code error;
  if (file.empty() || !fs::exists(file, error)) return std::nullopt;
  return read(file);
}

void change_machine_profile(const std::function<std::optional<MachineProfile>()>& make) {
  const fs::path file = machine_profile_path();
  if (file.empty())
    throw Error(Fault::machine, "machine.store", "there is no home directory to keep a profile in",
                "set XDG_DATA_HOME to a directory");
  make_directories(file.parent_path());
  FileLock lock(file.string() + ".lock");
  lock.lock();  // a file system without locks is gone on with
  if (const std::optional<MachineProfile> profile = make())
    write_text_file(file, to_json(*profile));
}

void store_machine_profile(const MachineProfile& profile) {
  change_machine_profile([&] { return std::optional(profile); });
}

MachineProfile find_machine_preset(std::string_view name) {
  const auto files = preset_files();
  if (const auto found = files.find(std::string(name)); found != files.end())
    return read(found->second);
  std::error_code error;
  if (name.ends_with(".json") && fs::exists(name, error)) return read(name);
  std::vector<std::string_view> names;
  for (const auto& [known, file] : files)
    names.push_back(known);
  std::string nearest = card_named(name, names);
  if (nearest.empty()) nearest = nearest_name(name, names);
  throw Error(Fault::usage, "machine.preset", fmt::format("no machine '{}'", name),
              nearest.empty() ? fmt::format("there are {}; or a profile's file, FILE.json",
                                            fmt::join(names, ", "))
                              : fmt::format("did you mean '{}'?", nearest));
}

MachineProfile find_machines(std::string_view names) {
  std::vector<MachineProfile> profiles;
  for (size_t begin = 0; begin <= names.size();) {
    const size_t comma = std::min(names.find(',', begin), names.size());
    profiles.push_back(find_machine_preset(names.substr(begin, comma - begin)));
    begin = comma + 1;
  }
  MachineProfile machine = profiles.front();
  if (profiles.size() == 1) return machine;
  std::vector<GpuProfile> gpus;
  for (const MachineProfile& profile : profiles) {
    if (!profile.gpu)
      throw Error(Fault::usage, "machine.preset",
                  fmt::format("the machine '{}' has no GPU", profile.name),
                  "several machines with commas between them stand for the GPUs of one host: name "
                  "one with a GPU for each");
    const int n_alike = profile.has_unlike_gpus() ? 1 : std::max(1, profile.gpu->n_of_host);
    for (int n = 0; n < n_alike; ++n)
      for (int i = 0; i < profile.n_gpus(); ++i)
        gpus.push_back(profile.gpu_at(i));
  }
  machine.name.clear();
  for (const MachineProfile& profile : profiles) {
    machine.name += (machine.name.empty() ? "" : ",") + profile.name;
    for (const std::string& assumption : profile.assumptions)
      if (std::ranges::find(machine.assumptions, assumption) == machine.assumptions.end())
        machine.assumptions.push_back(assumption);
  }
  machine.gpu = gpus.front();
  machine.other_gpus.assign(gpus.begin() + 1, gpus.end());
  std::vector<int> all(gpus.size());
  std::iota(all.begin(), all.end(), 0);
  return with_gpus(machine, all);
}

MachineProfile with_gpus(const MachineProfile& profile, std::span<const int> gpus) {
  MachineProfile machine = profile;
  machine.other_gpus.clear();
  for (const int index : gpus) {
    FERRY_CHECK(index >= 0 && (index < profile.n_gpus() || !profile.has_unlike_gpus()),
                "GPU {} of {}", index, profile.n_gpus());
    GpuProfile gpu = profile.gpu_at(index);
    gpu.n_of_host = static_cast<int>(gpus.size());
    machine.other_gpus.push_back(std::move(gpu));
  }
  machine.gpu = machine.other_gpus.front();
  const bool are_alike = std::ranges::all_of(
      machine.other_gpus, [&](const GpuProfile& gpu) { return gpu == *machine.gpu; });
  if (are_alike)
    machine.other_gpus.clear();
  else
    machine.other_gpus.erase(machine.other_gpus.begin());
  return machine;
}

std::vector<std::string> list_machine_presets() {
  std::vector<std::string> names;
  for (const auto& [name, file] : preset_files())
    names.push_back(name);
  return names;
}

}  // namespace ferry
