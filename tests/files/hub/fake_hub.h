#pragma once
// Starts fake_hub.py for a test, tells it how to misbehave, and reads what it was asked.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/files/test_files.h"

namespace ferry::test {

/** Variables of the environment as they were, when it goes. */
class Environment {
 public:
  explicit Environment(std::vector<std::pair<std::string, std::string>> values) {
    for (const auto& [name, value] : values) {
      const char* const before = std::getenv(name.c_str());
      before_.emplace_back(name, before ? std::optional<std::string>(before) : std::nullopt);
      value.empty() ? unsetenv(name.c_str()) : setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ~Environment() {
    for (const auto& [name, value] : before_)
      value ? setenv(name.c_str(), value->c_str(), 1) : unsetenv(name.c_str());
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

class FakeHub {
 public:
  /** One for all tests of a program, empty for each. */
  static FakeHub& fresh() {
    static FakeHub hub;
    hub.clear();
    return hub;
  }

  FakeHub() {
    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // it ends with a test that is killed
      ::dup2(pipe[1], STDOUT_FILENO);
      const std::string script = std::string(FERRY_SOURCE_ROOT) + "/tests/files/hub/fake_hub.py";
      ::execlp("python3", "python3", script.c_str(), root_.path().c_str(), nullptr);
      ::_exit(127);
    }
    ::close(pipe[1]);
    std::string line;
    for (char c = 0; ::read(pipe[0], &c, 1) == 1 && c != '\n';)
      line += c;
    std::istringstream(line) >> url_ >> cdn_url_;
    out_ = pipe[0];
  }
  ~FakeHub() {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
    ::close(out_);
  }
  FakeHub(const FakeHub&) = delete;
  FakeHub& operator=(const FakeHub&) = delete;

  const std::string& url() const { return url_; }
  const std::string& cdn_url() const { return cdn_url_; }
  /** Without repositories, faults and requests, as at its start. */
  void clear() const {
    for (const auto& entry : std::filesystem::directory_iterator(root_.path()))
      std::filesystem::remove_all(entry.path());
  }
  /** "models/org/name/main/config.json" */
  void put(std::string_view path, std::string_view text) const { root_.write(path, text); }
  /** In place of those of before. */
  void set_rules(const nlohmann::json& rules) const {
    root_.write("rules.new", rules.dump());
    std::filesystem::rename(root_ / "rules.new", root_ / "rules.json");
  }
  /** What was asked so far. */
  std::vector<nlohmann::json> requests() const {
    std::vector<nlohmann::json> all;
    std::ifstream lines(root_ / "log.jsonl");
    for (std::string line; std::getline(lines, line);)
      all.push_back(nlohmann::json::parse(line));
    return all;
  }
  void forget_requests() const { std::filesystem::remove(root_ / "log.jsonl"); }
  const std::filesystem::path& root() const { return root_.path(); }

 private:
  TempDir root_;
  std::string url_, cdn_url_;
  pid_t pid_ = -1;
  int out_ = -1;
};

/** What the Error says that `run` throws, of whatever kind; empty where it throws none. */
template <typename Run>
std::string message_of(Run run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

/** Bytes that look like nothing else, the same for the same seed. */
inline std::string bytes_of(size_t n, uint32_t seed) {
  std::string text(n, '\0');
  uint32_t state = seed * 2654435761U + 1;
  for (char& c : text) {
    state = state * 1664525U + 1013904223U;
    c = static_cast<char>(state >> 24);
  }
  return text;
}

}  // namespace ferry::test
