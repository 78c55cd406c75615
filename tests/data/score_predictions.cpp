// score_predictions: the metrics for compare_metrics.py. Reads a JSON object a line from stdin,
// {"problem": "single_label" | "multi_label" | "regression", "n_labels": N, "actual": [...],
// "predicted": [...]}; of several labels, actual is the list of each sample's and predicted the
// logits. Writes for each line an object of metrics, in which an undefined one is missing.

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/data/metrics.h"

namespace {

using nlohmann::json;

json score_classes(const json& request) {
  ferry::ConfusionMatrix matrix(request["n_labels"].get<int32_t>());
  for (size_t i = 0; i < request["actual"].size(); ++i)
    matrix.add(request["actual"][i].get<int32_t>(), request["predicted"][i].get<int32_t>());
  json out = {{"accuracy", matrix.accuracy()},
              {"f1_macro", matrix.macro_f1()},
              {"matthews_correlation", matrix.matthews_correlation()}};
  if (matrix.n_classes() == 2) out["f1"] = matrix.f1(1);
  return out;
}

json score_label_sets(const json& request) {
  ferry::MultiLabelScores scores(request["n_labels"].get<int32_t>());
  for (size_t i = 0; i < request["actual"].size(); ++i)
    scores.add(request["actual"][i].get<std::vector<int32_t>>(),
               request["predicted"][i].get<std::vector<float>>());
  return {{"accuracy", scores.exact_match()},
          {"f1_micro", scores.micro_f1()},
          {"f1_macro", scores.macro_f1()}};
}

json score_values(const json& request) {
  ferry::RegressionScores scores;
  for (size_t i = 0; i < request["actual"].size(); ++i)
    scores.add(request["actual"][i].get<double>(), request["predicted"][i].get<double>());
  json out = {{"mean_absolute_error", scores.mean_absolute_error()},
              {"mean_squared_error", scores.mean_squared_error()}};
  if (auto r = scores.pearson()) out["pearson"] = *r;
  if (auto r = scores.spearman()) out["spearman"] = *r;
  return out;
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const json request = json::parse(line);
    const auto& problem = request["problem"].get_ref<const std::string&>();
    const json out = problem == "regression"    ? score_values(request)
                     : problem == "multi_label" ? score_label_sets(request)
                                                : score_classes(request);
    std::cout << out.dump() << '\n';
  }
}
