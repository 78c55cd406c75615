#pragma once
// The loss of a pair of answers and its gradient, for CPU and GPU (formulas of the papers that
// models/core/preference.h names, and of TRL 1.16's DPO, CPO and ORPO trainers).

#include <cmath>

#include "models/core/preference.h"
#include "simd/host_device.h"

namespace ferry::ops {

/** An answer: the sum of its log-probabilities, its tokens, and the sum by the first weights. */
struct AnswerSums {
  double log_p = 0, n_tokens = 1, reference = 0;
};

/** The loss, and its derivatives by the log_p of both answers. */
struct PairLoss {
  double value = 0, by_chosen = 0, by_rejected = 0;
};

FERRY_INLINE double sigmoid_of(double x) {
  return 1 / (1 + exp(-x));
}
/** -log(sigmoid(x)). */
FERRY_INLINE double minus_log_sigmoid(double x) {
  return x > 0 ? log1p(exp(-x)) : log1p(exp(x)) - x;
}
/** log(1 - exp(x)), x < 0. */
FERRY_INLINE double log_of_rest(double x) {
  constexpr double kHalf = -0.6931471805599453;
  return x > kHalf ? log(-expm1(x)) : log1p(-exp(x));
}

/** A function of a margin: its value and its derivative. */
struct OfMargin {
  double value = 0, slope = 0;
};
/** -log(sigmoid(z)), of which a share of `smoothing` is the other way round. */
FERRY_INLINE OfMargin smoothed_loss(double z, double smoothing) {
  return {(1 - smoothing) * minus_log_sigmoid(z) + smoothing * minus_log_sigmoid(-z),
          smoothing * sigmoid_of(z) - (1 - smoothing) * sigmoid_of(-z)};
}

FERRY_INLINE PairLoss pair_loss(const PreferenceRule& rule,
                                const AnswerSums& chosen,
                                const AnswerSums& rejected) {
  const double beta = rule.beta, smoothing = rule.label_smoothing;
  const double c = chosen.log_p - chosen.reference, r = rejected.log_p - rejected.reference;
  const double n_c = chosen.n_tokens, n_r = rejected.n_tokens;
  const double mean_c = chosen.log_p / n_c, mean_r = rejected.log_p / n_r;
  switch (rule.kind) {
    case PreferenceKind::sigmoid: {
      const OfMargin of = smoothed_loss(beta * (c - r), smoothing);
      return {of.value, beta * of.slope, -beta * of.slope};
    }
    case PreferenceKind::hinge: {
      const double left = 1 - beta * (c - r);
      if (left <= 0) return {};
      return {left, -beta, beta};
    }
    case PreferenceKind::ipo: {
      const double off = c / n_c - r / n_r - 1 / (2 * beta);
      return {off * off, 2 * off / n_c, -2 * off / n_r};
    }
    case PreferenceKind::robust: {
      const double z = beta * (c - r), scale = 1 / (1 - 2 * smoothing);
      const double value =
          (1 - smoothing) * minus_log_sigmoid(z) - smoothing * minus_log_sigmoid(-z);
      const double slope = -(1 - smoothing) * sigmoid_of(-z) - smoothing * sigmoid_of(z);
      return {scale * value, scale * beta * slope, -scale * beta * slope};
    }
    case PreferenceKind::sigmoid_norm: {
      const OfMargin of = smoothed_loss(beta * (c / n_c - r / n_r), smoothing);
      return {of.value, beta * of.slope / n_c, -beta * of.slope / n_r};
    }
    case PreferenceKind::nca_pair: {
      const double value = minus_log_sigmoid(beta * c) + 0.5 * minus_log_sigmoid(-beta * c) +
                           0.5 * minus_log_sigmoid(-beta * r);
      return {value, beta * (0.5 * sigmoid_of(beta * c) - sigmoid_of(-beta * c)),
              beta * 0.5 * sigmoid_of(beta * r)};
    }
    case PreferenceKind::sppo_hard: {
      const double of_c = c - 0.5 / beta, of_r = r + 0.5 / beta;
      return {of_c * of_c + of_r * of_r, 2 * of_c, 2 * of_r};
    }
    case PreferenceKind::apo_zero: {
      const double s_c = sigmoid_of(beta * c), s_r = sigmoid_of(beta * r);
      return {1 - s_c + s_r, -beta * s_c * (1 - s_c), beta * s_r * (1 - s_r)};
    }
    case PreferenceKind::apo_down: {
      const double s_c = sigmoid_of(beta * c), s_d = sigmoid_of(beta * (c - r));
      const double by_margin = -beta * s_d * (1 - s_d);
      return {s_c + 1 - s_d, beta * s_c * (1 - s_c) + by_margin, -by_margin};
    }
    case PreferenceKind::orpo: {
      constexpr double kMost = -1e-9;  // a probability of 1 has no odds
      const double l_c = fmin(mean_c, kMost), l_r = fmin(mean_r, kMost);
      const double odds = (l_c - l_r) - (log_of_rest(l_c) - log_of_rest(l_r));
      const double slope = -beta * sigmoid_of(-odds);
      return {beta * minus_log_sigmoid(odds), slope / (-expm1(l_c)) / n_c,
              -slope / (-expm1(l_r)) / n_r};
    }
    case PreferenceKind::simpo: {
      const OfMargin of = smoothed_loss(beta * (mean_c - mean_r) - rule.margin, smoothing);
      return {of.value, beta * of.slope / n_c, -beta * of.slope / n_r};
    }
    case PreferenceKind::cpo: {
      const OfMargin of = smoothed_loss(beta * (chosen.log_p - rejected.log_p), smoothing);
      return {of.value, beta * of.slope, -beta * of.slope};
    }
    case PreferenceKind::kto:  // answer_loss()
      break;
  }
  return {};
}

/** KTO's loss of an answer by itself, and its derivative by log_p. `divergence`: how much likelier
 * answers to other prompts have become on average, at least 0, a constant. */
FERRY_INLINE OfMargin answer_loss(const PreferenceRule& rule,
                                  const AnswerSums& answer,
                                  bool is_good,
                                  double divergence) {
  const double gained = answer.log_p - answer.reference - divergence;
  const double towards = is_good ? rule.beta : -static_cast<double>(rule.beta);
  const double weight = is_good ? rule.good_weight : rule.bad_weight;
  const double s = sigmoid_of(towards * gained);
  return {weight * (1 - s), -weight * towards * s * (1 - s)};
}

}  // namespace ferry::ops
