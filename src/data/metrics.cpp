#include "src/data/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

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

/** 2 TP / (2 TP + FP + FN) of a label, from how often it occurs, is predicted, and both at once. */
double f1_of(int64_t n_actual, int64_t n_predicted, int64_t n_right) {
  return ratio(static_cast<double>(2 * n_right), static_cast<double>(n_actual + n_predicted));
}

std::optional<double> correlation(std::span<const double> x, std::span<const double> y) {
  // Running means and centred sums (Welford): they do not cancel when the means are large, and are
  // exactly 0 for a side that does not vary.
  double mean_x = 0, mean_y = 0, centred_x = 0, centred_y = 0, centred_both = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const auto n = static_cast<double>(i + 1);
    const double delta_x = x[i] - mean_x, delta_y = y[i] - mean_y;
    mean_x += delta_x / n;
    mean_y += delta_y / n;
    centred_x += delta_x * (x[i] - mean_x);
    centred_y += delta_y * (y[i] - mean_y);
    centred_both += delta_x * (y[i] - mean_y);
  }
  const double scale = std::sqrt(centred_x) * std::sqrt(centred_y);
  if (!(scale > 0)) return std::nullopt;
  return std::clamp(centred_both / scale, -1.0, 1.0);
}

/** 1 for the smallest; equal values share the mean of their ranks. No NaN: it has no rank. */
std::vector<double> ranks_of(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]])
      ++end;
    for (size_t i = begin; i < end; ++i)
      ranks[order[i]] = static_cast<double>(begin + 1 + end) / 2;
  }
  return ranks;
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

std::vector<std::pair<int64_t, int64_t>> ConfusionMatrix::totals() const {
  std::vector<std::pair<int64_t, int64_t>> totals(static_cast<size_t>(n_classes_));
  for (int32_t actual = 0; actual < n_classes_; ++actual)
    for (int32_t predicted = 0; predicted < n_classes_; ++predicted) {
      totals[static_cast<size_t>(actual)].first += at(actual, predicted);
      totals[static_cast<size_t>(predicted)].second += at(actual, predicted);
    }
  return totals;
}

double ConfusionMatrix::f1(int32_t positive) const {
  const auto [n_actual, n_predicted] = totals()[static_cast<size_t>(positive)];
  return f1_of(n_actual, n_predicted, at(positive, positive));
}

double ConfusionMatrix::macro_f1() const {
  const auto of_class = totals();
  double sum = 0;
  int32_t n_present = 0;
  for (int32_t c = 0; c < n_classes_; ++c) {
    const auto [n_actual, n_predicted] = of_class[static_cast<size_t>(c)];
    sum += f1_of(n_actual, n_predicted, at(c, c));
    n_present += n_actual + n_predicted > 0;
  }
  return ratio(sum, n_present);
}

double ConfusionMatrix::matthews_correlation() const {
  double n_right = 0, both = 0, actual_squares = 0, predicted_squares = 0;
  const auto of_class = totals();
  for (int32_t c = 0; c < n_classes_; ++c) {
    const auto n_actual = static_cast<double>(of_class[static_cast<size_t>(c)].first),
               n_predicted = static_cast<double>(of_class[static_cast<size_t>(c)].second);
    n_right += static_cast<double>(at(c, c));
    both += n_actual * n_predicted;
    actual_squares += n_actual * n_actual;
    predicted_squares += n_predicted * n_predicted;
  }
  const auto n = static_cast<double>(total_);
  return ratio(n_right * n - both,
               std::sqrt((n * n - actual_squares) * (n * n - predicted_squares)));
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

double MultiLabelScores::Counts::f1() const {
  return f1_of(n_actual, n_predicted, n_right);
}

MultiLabelScores::MultiLabelScores(int32_t n_labels) : counts_(static_cast<size_t>(n_labels)) {}

void MultiLabelScores::add(std::span<const int32_t> actual, std::span<const float> logits) {
  FERRY_CHECK(logits.size() == counts_.size(), "{} logits for {} labels", logits.size(),
              counts_.size());
  int64_t n_wrong = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const bool has =
        std::find(actual.begin(), actual.end(), static_cast<int32_t>(i)) != actual.end();
    const bool says = logits[i] > 0;
    counts_[i].n_actual += has;
    counts_[i].n_predicted += says;
    counts_[i].n_right += has && says;
    n_wrong += has != says;
  }
  ++n_samples_;
  n_exact_ += n_wrong == 0;
}

double MultiLabelScores::exact_match() const {
  return ratio(static_cast<double>(n_exact_), static_cast<double>(n_samples_));
}

double MultiLabelScores::micro_f1() const {
  Counts all;
  for (const Counts& label : counts_) {
    all.n_actual += label.n_actual;
    all.n_predicted += label.n_predicted;
    all.n_right += label.n_right;
  }
  return all.f1();
}

double MultiLabelScores::macro_f1() const {
  double sum = 0;
  for (const Counts& label : counts_)
    sum += label.f1();
  return ratio(sum, static_cast<double>(counts_.size()));
}

void RegressionScores::add(double actual, double predicted) {
  actual_.push_back(actual);
  predicted_.push_back(predicted);
}

double RegressionScores::mean_absolute_error() const {
  double sum = 0;
  for (size_t i = 0; i < actual_.size(); ++i)
    sum += std::fabs(actual_[i] - predicted_[i]);
  return ratio(sum, static_cast<double>(actual_.size()));
}

double RegressionScores::mean_squared_error() const {
  double sum = 0;
  for (size_t i = 0; i < actual_.size(); ++i)
    sum += (actual_[i] - predicted_[i]) * (actual_[i] - predicted_[i]);
  return ratio(sum, static_cast<double>(actual_.size()));
}

std::optional<double> RegressionScores::pearson() const {
  return correlation(actual_, predicted_);
}

std::optional<double> RegressionScores::spearman() const {
  const auto is_nan = [](double x) { return std::isnan(x); };
  if (std::ranges::any_of(actual_, is_nan) || std::ranges::any_of(predicted_, is_nan))
    return std::nullopt;
  return correlation(ranks_of(actual_), ranks_of(predicted_));
}

}  // namespace ferry
