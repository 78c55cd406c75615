#include "src/service/machine/host.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "src/base/process/threads.h"
#include "src/plan/machine/machine_profile.h"

namespace ferry::service {

namespace fs = std::filesystem;

namespace {

/** "model name : AMD EPYC" -> {"model name", "AMD EPYC"}; quotes around the value fall off. */
std::pair<std::string, std::string> split_line(const std::string& line, char separator) {
  const size_t at = line.find(separator);
  if (at == std::string::npos) return {};
  auto trimmed = [](std::string_view text) {
    constexpr std::string_view kAround = " \t\"\r";
    size_t begin = text.find_first_not_of(kAround);
    if (begin == std::string_view::npos) return std::string();
    return std::string(text.substr(begin, text.find_last_not_of(kAround) - begin + 1));
  };
  return {trimmed(std::string_view(line).substr(0, at)),
          trimmed(std::string_view(line).substr(at + 1))};
}

void read_cpu(const fs::path& root, Host& host) {
  std::ifstream stream(root / "proc/cpuinfo");
  std::set<std::pair<std::string, std::string>> cores;
  std::string package;
  for (std::string line; std::getline(stream, line);) {
    auto [key, value] = split_line(line, ':');
    if (key == "physical id") package = value;
    if (key == "core id") cores.insert({package, value});
  }
  host.cpu = cpu_name(root);
  host.n_cores = static_cast<int>(cores.size());
  host.n_threads = n_usable_threads();
}

void read_swap(const fs::path& root, Host& host) {
  std::ifstream stream(root / "proc/meminfo");
  for (std::string line; std::getline(stream, line);) {
    auto [key, value] = split_line(line, ':');
    const int64_t bytes = std::strtoll(value.c_str(), nullptr, 10) * 1024;  // "123 kB"
    if (key == "SwapTotal") host.swap_total_bytes = bytes;
    if (key == "SwapFree") host.swap_free_bytes = bytes;
  }
}

void read_system(const fs::path& root, Host& host) {
  std::ifstream release(root / "etc/os-release");
  for (std::string line; std::getline(release, line);) {
    auto [key, value] = split_line(line, '=');
    if (key == "PRETTY_NAME") host.distribution = value;
  }
  std::ifstream kernel(root / "proc/sys/kernel/osrelease");
  std::getline(kernel, host.kernel);
  host.is_wsl =
      host.kernel.find("icrosoft") != std::string::npos;  // "Microsoft" in WSL 1, "microsoft" in 2
}

/** The word in brackets of "always [madvise] never". */
void read_huge_pages(const fs::path& root, Host& host) {
  std::ifstream stream(root / "sys/kernel/mm/transparent_hugepage/enabled");
  for (std::string word; stream >> word;)
    if (word.size() > 2 && word.front() == '[' && word.back() == ']')
      host.huge_pages = word.substr(1, word.size() - 2);
}

}  // namespace

Host read_host(const fs::path& root) {
  Host host;
  read_cpu(root, host);
  read_swap(root, host);
  read_system(root, host);
  read_huge_pages(root, host);
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    host.memlock_limit_bytes = static_cast<int64_t>(limit.rlim_cur);
  std::error_code error;
  const fs::space_info space = fs::space(".", error);
  if (!error) {
    host.disk_total_bytes = static_cast<int64_t>(space.capacity);
    host.disk_free_bytes = static_cast<int64_t>(space.available);
  }
  return host;
}

}  // namespace ferry::service
