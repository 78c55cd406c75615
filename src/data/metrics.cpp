#include "src/data/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/base/error.h"

namespace ferry {
namespace {

/** A name cut to a column's width, in characters rather than bytes so that a cut never splits one.
 */
std::string shortened(std::string_view name, size_t n_characters) {
  std::string text;
  size_t count = 0;
  for (char c : name) {
    const bool starts_character = (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    if (starts_character && count++ == n_characters) break;
    text.push_back(c);
  }
  return text;
}

double ratio(double part, double whole) {
  return whole == 0 ? 0 : part / whole;
}

}  // namespace

int32_t argmax(std::span<const float> logits) {
  FERRY_CHECK(!logits.empty(), "argmax of nothing");
  size_t best = 0;
  for (size_t i = 1; i < logits.size(); ++i)
    if (logits[i] > logits[best] || (std::isnan(logits[best]) && !std::isnan(logits[i]))) best = i;
  return static_cast<int32_t>(best);
}

ConfusionMatrix::ConfusionMatrix(int32_t n_classes)
    : n_classes_(n_classes),
      counts_(static_cast<size_t>(n_classes) * static_cast<size_t>(n_classes)) {}

size_t ConfusionMatrix::place(int32_t actual, int32_t predicted) const {
  FERRY_CHECK(actual >= 0 && actual < n_classes_ && predicted >= 0 && predicted < n_classes_,
              "({}, {}) of {} classes", actual, predicted, n_classes_);
  return static_cast<size_t>(actual) * static_cast<size_t>(n_classes_) +
         static_cast<size_t>(predicted);
}

void ConfusionMatrix::add(int32_t actual, int32_t predicted) {
  ++counts_[place(actual, predicted)];
  ++total_;
}

double ConfusionMatrix::accuracy() const {
  int64_t n_right = 0;
  for (int32_t c = 0; c < n_classes_; ++c)
    n_right += at(c, c);
  return ratio(static_cast<double>(n_right), static_cast<double>(total_));
}

std::string ConfusionMatrix::to_text(std::span<const std::string> names) const {
  FERRY_CHECK(names.size() == static_cast<size_t>(n_classes_), "{} names for {} classes",
              names.size(), n_classes_);
  size_t widest = std::to_string(total_).size();
  std::vector<std::string> labels;
  for (const std::string& name : names) {
    labels.push_back(shortened(name, 14));
    widest = std::max(widest, std::min<size_t>(name.size(), 14));
  }
  std::string text = fmt::format("{:>{}}", "actual \\ predicted", std::max<size_t>(widest, 18));
  const size_t first = std::max<size_t>(widest, 18);
  for (const std::string& label : labels)
    text += fmt::format("  {:>{}}", label, widest);
  text += '\n';
  for (int32_t actual = 0; actual < n_classes_; ++actual) {
    text += fmt::format("{:>{}}", labels[static_cast<size_t>(actual)], first);
    for (int32_t predicted = 0; predicted < n_classes_; ++predicted)
      text += fmt::format("  {:>{}}", at(actual, predicted), widest);
    text += '\n';
  }
  return text;
}

void MultiLabelScores::add(std::span<const int32_t> actual, std::span<const float> logits) {
  int64_t n_wrong = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const bool has =
        std::find(actual.begin(), actual.end(), static_cast<int32_t>(i)) != actual.end();
    const bool says = logits[i] > 0;
    true_positives_ += has && says;
    false_positives_ += !has && says;
    false_negatives_ += has && !says;
    n_wrong += has != says;
  }
  ++n_samples_;
  n_exact_ += n_wrong == 0;
}

double MultiLabelScores::exact_match() const {
  return ratio(static_cast<double>(n_exact_), static_cast<double>(n_samples_));
}

double MultiLabelScores::micro_f1() const {
  const auto right = static_cast<double>(2 * true_positives_);
  return ratio(right, right + static_cast<double>(false_positives_ + false_negatives_));
}

void RegressionScores::add(double actual, double predicted) {
  ++n_;
  const double n = static_cast<double>(n_);
  sum_absolute_ += std::fabs(actual - predicted);
  sum_squared_ += (actual - predicted) * (actual - predicted);
  const double delta_actual = actual - mean_actual_, delta_predicted = predicted - mean_predicted_;
  mean_actual_ += delta_actual / n;
  mean_predicted_ += delta_predicted / n;
  centred_actual_ += delta_actual * (actual - mean_actual_);
  centred_predicted_ += delta_predicted * (predicted - mean_predicted_);
  centred_both_ += delta_actual * (predicted - mean_predicted_);
}

double RegressionScores::mean_absolute_error() const {
  return ratio(sum_absolute_, static_cast<double>(n_));
}
double RegressionScores::mean_squared_error() const {
  return ratio(sum_squared_, static_cast<double>(n_));
}

std::optional<double> RegressionScores::pearson() const {
  const double scale = std::sqrt(centred_actual_) * std::sqrt(centred_predicted_);
  if (!(scale > 0)) return std::nullopt;
  return centred_both_ / scale;
}

}  // namespace ferry
