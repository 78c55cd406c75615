#include "src/runs/metrics_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "src/base/error.h"
#include "src/files/mapped_file.h"

namespace ferry::runs {
namespace {

[[noreturn]] void fail(const std::filesystem::path& file, std::string_view doing) {
  throw Error(Fault::machine, "runs.metrics",
              fmt::format("'{}' cannot be {}: {}", file.string(), doing,
                          std::generic_category().message(errno)),
              "is the disk full, or the run directory gone?");
}

}  // namespace

MetricsLog::MetricsLog(const std::filesystem::path& run, int64_t n_steps)
    : file_(run / "metrics.jsonl") {
  size_t n_kept_bytes = 0;
  std::error_code error;
  if (std::filesystem::exists(file_, error)) {
    const std::string text = read_text_file(file_, std::numeric_limits<size_t>::max());
    for (size_t end; (end = text.find('\n', n_kept_bytes)) != text.npos; n_kept_bytes = end + 1) {
      const auto line =
          nlohmann::ordered_json::parse(text.begin() + static_cast<long>(n_kept_bytes),
                                        text.begin() + static_cast<long>(end), nullptr,
                                        /*allow_exceptions=*/false);
      if (!line.is_object() || line.value("step", int64_t{0}) > n_steps) break;
      note(line);
    }
  }
  fd_ = UniqueFd(::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!fd_) fail(file_, "opened");
  if (::ftruncate(fd_.get(), static_cast<off_t>(n_kept_bytes)) != 0) fail(file_, "shortened");
}

void MetricsLog::append(nlohmann::ordered_json line) {
  bool is_finite = true;
  for (auto& [key, value] : line.items()) {
    if (!value.is_number_float() || std::isfinite(value.get<double>())) continue;
    value = nullptr;
    is_finite = false;
  }
  if (!is_finite) line["nonfinite"] = true;
  note(line);
  const std::string text = line.dump() + "\n";
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(fd_.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(file_, "written");
    done += static_cast<size_t>(n);
  }
}

void MetricsLog::note(const nlohmann::ordered_json& line) {
  if (line.contains("eval_loss")) last_evaluation_step_ = line.value("step", last_evaluation_step_);
  if (!line.contains("loss")) return;
  losses_.push_back(line["loss"].is_number() ? line["loss"].get<double>() : std::nan(""));
  n_tokens_ = line.value("num_input_tokens_seen", n_tokens_);
}

void MetricsLog::sync() {
  if (::fsync(fd_.get()) != 0) fail(file_, "synced");
}

}  // namespace ferry::runs
