#include "src/config/named_places.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <set>
#include <string_view>

#include "src/config/config.h"
#include "src/files/plain_file.h"
#include "src/files/user_data.h"
#include "src/files/write/atomic_file.h"
#include "src/files/write/owned_file.h"

namespace ferry::config {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDrives = "nvme_path", kTokens = "token_cache", kNoTokens = "off";

std::string whole(const std::string& path) {
  std::error_code error;
  return fs::absolute(path, error).lexically_normal().string();
}

std::vector<std::string> drives_of(const Config& config) {
  std::vector<std::string> all;
  for (const std::string& directory : config.list(kDrives))
    all.push_back(whole(directory));
  return all;
}

std::vector<std::string> token_directory_of(const Config& config) {
  const auto directory = config.maybe_text(kTokens);
  if (!directory || directory->empty() || *directory == kNoTokens) return {};
  return {whole(*directory)};
}

std::set<std::string> known_places() {
  std::set<std::string> known;
  const fs::path file = named_places_file();
  if (file.empty() || !path_exists(file)) return known;
  const std::string text = read_text_file(file);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    known.insert(text.substr(at, end - at));
    at = end + 1;
  }
  return known;
}

}  // namespace

fs::path named_places_file() {
  return user_data_file("places");
}

void remember_places(const Config& config) noexcept {
  try {
    std::vector<std::string> places = drives_of(config);
    for (std::string& place : token_directory_of(config))
      places.push_back(std::move(place));
    const std::set<std::string> known = known_places();
    std::string lines;
    for (const std::string& place : places)
      if (!known.contains(place) && place.find('\n') == std::string::npos) lines += place + '\n';
    const fs::path file = named_places_file();
    if (lines.empty() || file.empty()) return;
    make_private_directories(file.parent_path());
    // One write at the end of the file: several processes may do so at once.
    const UniqueFd fd = open_owned_file(file, O_WRONLY | O_CREAT | O_APPEND);
    if (::write(fd.get(), lines.data(), lines.size()) < 0) return;
  } catch (const std::exception&) {  // the user names them again
  }
}

bool is_settings_of_run(const fs::path& file) {
  return path_exists(file.parent_path() / "run.json");
}

std::vector<std::string> take_back_places(Config& config) {
  std::vector<std::string> notes;
  if (config.is_set("trace") && !config.is_auto("trace"))
    notes.emplace_back(
        "the run's own trace is left out: --trace FILE makes one of what is to come");
  config.forget("trace");
  const std::vector<std::string> drives = drives_of(config), tokens = token_directory_of(config);
  if (drives.empty() && tokens.empty()) return notes;
  std::set<std::string> known;
  try {
    known = known_places();
  } catch (const std::exception&) {  // then none is
  }
  const auto is_known = [&](const std::string& place) { return known.contains(place); };
  const auto leave_out = [&](std::string_view key, std::string_view flag,
                             const std::vector<std::string>& places) {
    notes.push_back(fmt::format(
        "{} of the run's own settings is left out, for nobody has named '{}' on this machine: if "
        "the run is yours, add {} '{}'",
        key, fmt::join(places, ","), flag, fmt::join(places, ",")));
    config.forget(key);
  };
  if (!std::ranges::all_of(drives, is_known)) {
    leave_out(kDrives, "--nvme-path", drives);
    for (const std::string_view key : {"nvme_memory", "nvme_endurance"})
      config.forget(key);  // of those drives
  }
  if (!std::ranges::all_of(tokens, is_known)) leave_out(kTokens, "--token-cache", tokens);
  return notes;
}

}  // namespace ferry::config
