#pragma once
// The metrics that an evaluation reports, from predictions collected sample by sample. Everything
// is exact counting or fp64, and agrees with scikit-learn (metrics) and SciPy (stats), edges
// included: a ratio of nothing is 0. A correlation that is undefined is nullopt, where SciPy has
// NaN.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
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
  /** F1 of one class against all others; 0 when it neither occurs nor is predicted. */
  double f1(int32_t positive) const;
  /** Mean F1 of the classes that occur or are predicted; the others do not count. */
  double macro_f1() const;
  /** Matthews' correlation coefficient in -1..1, for several classes Gorodkin's R_K (2004); 0 when
   * all samples are of one class, or all predictions. */
  double matthews_correlation() const;

  /** A table with a row per actual and a column per predicted class, for the terminal. names:
   * (n_classes). */
  std::string to_text(std::span<const std::string> names) const;

 private:
  size_t place(int32_t actual, int32_t predicted) const;
  /** How often each class occurs and is predicted: the sums of its row and of its column. */
  std::vector<std::pair<int64_t, int64_t>> totals() const;

  int32_t n_classes_;
  int64_t total_ = 0;
  std::vector<int64_t> counts_;  // (n_classes, n_classes)
};

/** Scores of several labels at once, decided label by label. */
class MultiLabelScores {
 public:
  explicit MultiLabelScores(int32_t n_labels);

  /** One sample: which labels it has, and the logits (n_labels); a logit above 0 (probability 0.5)
   * predicts the label. */
  void add(std::span<const int32_t> actual, std::span<const float> logits);

  /** Share of samples with every label right; 0 when nothing was added. */
  double exact_match() const;
  /** F1 over all samples and labels together; 0 when there is nothing right. */
  double micro_f1() const;
  /** Mean F1 of all labels; one that neither occurs nor is predicted counts as 0. */
  double macro_f1() const;

 private:
  struct Counts {
    int64_t n_actual = 0, n_predicted = 0, n_right = 0;  // right: both at once
    double f1() const;
  };

  int64_t n_samples_ = 0, n_exact_ = 0;
  std::vector<Counts> counts_;  // (n_labels)
};

class RegressionScores {
 public:
  void add(double actual, double predicted);

  int64_t total() const { return static_cast<int64_t>(actual_.size()); }
  double mean_absolute_error() const;
  double mean_squared_error() const;
  /** Pearson's correlation; nullopt when either side does not vary or has a NaN. */
  std::optional<double> pearson() const;
  /** Spearman's correlation: Pearson's of the ranks, equal values sharing the mean of theirs;
   * nullopt when either side does not vary or has a NaN. */
  std::optional<double> spearman() const;

 private:
  std::vector<double> actual_, predicted_;  // (total)
};

}  // namespace ferry
