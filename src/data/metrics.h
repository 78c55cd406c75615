#pragma once
// What an evaluation reports, from predictions collected batch by batch. Everything is exact
// counting or fp64.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ferry {

/** The place of the largest value, the first of equals; a NaN is never the largest. */
int32_t argmax(std::span<const float> logits);

/** Counts of (actual, predicted) classes. */
class ConfusionMatrix {
 public:
  explicit ConfusionMatrix(int32_t n_classes);

  void add(int32_t actual, int32_t predicted);
  int64_t at(int32_t actual, int32_t predicted) const { return counts_[place(actual, predicted)]; }
  int64_t total() const { return total_; }
  int32_t n_classes() const { return n_classes_; }
  /** Share of the diagonal; 0 when nothing was added. */
  double accuracy() const;

  /** A table with a row per actual and a column per predicted class, for the terminal. names:
   * (n_classes). */
  std::string to_text(std::span<const std::string> names) const;

 private:
  size_t place(int32_t actual, int32_t predicted) const;

  int32_t n_classes_;
  int64_t total_ = 0;
  std::vector<int64_t> counts_;  // (n_classes, n_classes)
};

/** Of several labels at once, decided label by label. */
class MultiLabelScores {
 public:
  /** One sample: which labels it has, and the logits; a logit above 0 (probability 0.5) predicts
   * the label. */
  void add(std::span<const int32_t> actual, std::span<const float> logits);

  /** Share of samples with every label right; 0 when nothing was added. */
  double exact_match() const;
  /** F1 over all samples and labels together; 0 when there is nothing right. */
  double micro_f1() const;

 private:
  int64_t n_samples_ = 0, n_exact_ = 0;
  int64_t true_positives_ = 0, false_positives_ = 0, false_negatives_ = 0;
};

class RegressionScores {
 public:
  void add(double actual, double predicted);

  int64_t total() const { return n_; }
  double mean_absolute_error() const;
  double mean_squared_error() const;
  /** Pearson's correlation; nullopt when either side does not vary. */
  std::optional<double> pearson() const;

 private:
  int64_t n_ = 0;
  double sum_absolute_ = 0, sum_squared_ = 0;
  // Running means and centred sums (Welford), which do not cancel when the means are large.
  double mean_actual_ = 0, mean_predicted_ = 0;
  double centred_actual_ = 0, centred_predicted_ = 0, centred_both_ = 0;
};

}  // namespace ferry
