#include "src/runs/logs/metrics_log.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/files/mapped_file.h"
#include "src/files/write/disk_full.h"
#include "src/runs/logs/mean_loss.h"

namespace ferry::runs {
namespace {

constexpr const char* kMetricsName = "metrics.jsonl";

/** Seconds since 1970. */
double now_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/** TensorBoard's name for a key of metrics.jsonl; empty for one it does not get. */
std::string tag_of(std::string_view key) {
  constexpr std::string_view kEval = "eval_";
  if (key == "loss" || key == "loss_mean" || key == "learning_rate" || key == "grad_norm")
    return "train/" + std::string(key);
  if (key == "train_tokens_per_second") return "throughput/" + std::string(key);
  if (key.starts_with(kEval)) return "eval/" + std::string(key.substr(kEval.size()));
  return {};
}

int64_t integer_in(const nlohmann::ordered_json& line, const char* key, int64_t otherwise) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number_integer() ? found->get<int64_t>() : otherwise;
}

/** The numbers of a line that TensorBoard gets; a null is one that was not finite. */
std::vector<TensorboardScalar> scalars_of(const nlohmann::ordered_json& line) {
  std::vector<TensorboardScalar> scalars;
  for (const auto& [key, value] : line.items()) {
    std::string tag = tag_of(key);
    if (tag.empty() || !(value.is_number() || value.is_null())) continue;
    const double number =
        value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
    scalars.push_back({std::move(tag), static_cast<float>(number)});
  }
  return scalars;
}

/** Calls `take` for each line of a step up to n_steps, and returns their bytes; a torn last line
 * is none. */
int64_t read_lines(const std::filesystem::path& file,
                   int64_t n_steps,
                   const std::function<void(const nlohmann::ordered_json&)>& take) {
  size_t n_kept_bytes = 0;
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return 0;
  const std::string text = read_text_file(file, std::numeric_limits<size_t>::max());
  for (size_t end; (end = text.find('\n', n_kept_bytes)) != text.npos; n_kept_bytes = end + 1) {
    nlohmann::ordered_json line;
    const std::string_view written =
        std::string_view(text).substr(n_kept_bytes, end - n_kept_bytes);
    if (parse_json(written, line) || !line.is_object() || integer_in(line, "step", 0) > n_steps)
      break;
    take(line);
  }
  return static_cast<int64_t>(n_kept_bytes);
}

std::optional<EvaluationLine> evaluation_in(const nlohmann::ordered_json& line) {
  if (!line.contains("eval_loss")) return std::nullopt;
  EvaluationLine evaluation{.step = integer_in(line, "step", 0)};
  for (const auto& [key, value] : line.items())
    if (key.starts_with("eval_") && (value.is_number() || value.is_null()))
      evaluation.values[key] = value.is_null() ? std::nan("") : value.get<double>();
  return evaluation;
}

}  // namespace

std::vector<EvaluationLine> read_evaluations(const std::filesystem::path& run, int64_t n_steps) {
  std::vector<EvaluationLine> evaluations;
  read_lines(run / kMetricsName, n_steps, [&](const nlohmann::ordered_json& line) {
    if (auto evaluation = evaluation_in(line)) evaluations.push_back(std::move(*evaluation));
  });
  return evaluations;
}

MetricsLog::MetricsLog(const std::filesystem::path& run, int64_t n_steps, bool with_tensorboard)
    : place_(run), file_(run / kMetricsName, read_kept(run / kMetricsName, n_steps)) {
  if (with_tensorboard) tensorboard_.emplace(run / "tensorboard", n_steps, now_s());
}

int64_t MetricsLog::read_kept(const std::filesystem::path& file, int64_t n_steps) {
  return read_lines(file, n_steps, [this](const nlohmann::ordered_json& line) { note(line); });
}

void MetricsLog::append(nlohmann::ordered_json line) {
  bool is_finite = true;
  for (auto& [key, value] : line.items()) {
    if (!value.is_number_float() || std::isfinite(value.get<double>())) continue;
    value = nullptr;
    is_finite = false;
  }
  if (!is_finite) line["nonfinite"] = true;
  line["time"] = now_s();
  if (listener_) listener_(line);
  note(line);
  place_.check();
  std::lock_guard lock(writing_);
  unwritten_ += line.dump() + "\n";
  try {
    write();
  } catch (const Error& error) {
    if (!std::exchange(is_failing_, true))
      failure_ = fmt::format("{}; the lines wait for room", error.what());
  }
  if (!tensorboard_) return;
  const auto scalars = scalars_of(line);
  try {
    if (!scalars.empty()) tensorboard_->add(integer_in(line, "step", 0), now_s(), scalars);
  } catch (const DiskFull&) {  // they wait as the lines do, which have said so
  } catch (const Error& error) {
    failure_ = fmt::format("{}; the rest of its curves goes to metrics.jsonl only", error.what());
    tensorboard_.reset();
  }
}

void MetricsLog::write() {
  if (unwritten_.empty()) return;
  file_.append(unwritten_);
  unwritten_.clear();
  is_failing_ = false;
}

std::optional<std::string> MetricsLog::take_failure() {
  std::lock_guard lock(writing_);
  return std::exchange(failure_, std::nullopt);
}

void MetricsLog::note(const nlohmann::ordered_json& line) {
  if (auto evaluation = evaluation_in(line)) evaluations_.push_back(std::move(*evaluation));
  if (!line.contains("loss")) return;
  losses_.push_back(line["loss"].is_number() ? line["loss"].get<double>() : std::nan(""));
  if (line.contains("loss_mean")) n_losses_in_mean_ = losses_.size();
  n_tokens_ = integer_in(line, "num_input_tokens_seen", n_tokens_);
  if (const auto ms = line.find("step_ms"); ms != line.end() && ms->is_number())
    step_seconds_ += ms->get<double>() * 1e-3;
}

double MetricsLog::mean_loss_with(double loss) const {
  MeanLoss mean;
  for (size_t i = n_losses_in_mean_; i < losses_.size(); ++i)
    mean.add(losses_[i]);
  mean.add(loss);
  return mean.value();
}

void MetricsLog::write_all() {
  sync();
  if (tensorboard_) tensorboard_->flush();
}

void MetricsLog::sync() {
  {
    std::lock_guard lock(writing_);
    write();
  }
  file_.sync();  // without the lock: the disk may take seconds, and steps go on
}

}  // namespace ferry::runs
