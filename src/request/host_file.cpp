#include "src/request/host_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include "src/base/error.h"

namespace ferry {
namespace {

constexpr const char* kForm = "write a host a line, this one first: NAME, or NAME slots=GPUS";

[[noreturn]] void refuse(const std::filesystem::path& file, int line, const std::string& what) {
  throw Error(Fault::usage, "config.hosts", fmt::format("{}:{}: {}", file.string(), line, what),
              kForm);
}

}  // namespace

std::vector<std::string> read_host_file(const std::filesystem::path& file, int n_gpus) {
  std::ifstream in(file);
  if (!in)
    throw Error(Fault::usage, "config.hosts",
                fmt::format("{} cannot be read: {}", file.string(), std::strerror(errno)), kForm);
  std::vector<std::string> hosts;
  std::string text;
  for (int line = 1; std::getline(in, text); ++line) {
    std::istringstream words(text.substr(0, text.find('#')));
    std::string name, word;
    std::optional<std::string> n_said;
    if (!(words >> name)) continue;
    // An address of IPv6 has several colons.
    if (const size_t colon = name.find(':');
        colon != std::string::npos && colon == name.rfind(':')) {
      n_said = name.substr(colon + 1);
      name.resize(colon);
    }
    for (constexpr std::string_view kSlots = "slots="; words >> word;) {
      if (!word.starts_with(kSlots)) refuse(file, line, fmt::format("'{}' is not known", word));
      n_said = word.substr(kSlots.size());
    }
    if (n_said && *n_said != std::to_string(n_gpus))
      refuse(file, line,
             fmt::format("'{}' has '{}' GPUs, and each host of the run has {} (--gpus)", name,
                         *n_said, n_gpus));
    hosts.push_back(name);
  }
  if (hosts.empty())
    throw Error(Fault::usage, "config.hosts", fmt::format("{} names no host", file.string()),
                kForm);
  return hosts;
}

}  // namespace ferry
