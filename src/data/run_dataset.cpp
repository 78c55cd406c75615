#include "src/data/run_dataset.h"

#include <cmath>

namespace ferry {

DatasetOptions dataset_options(const Setting& setting, const std::string& path, LabelUse labels) {
  const auto text = [&](std::string_view key) { return setting(key).value_or("auto"); };
  DatasetOptions options;
  options.path = path;
  options.format = *parse_dataset_format(text("dataset_format"));
  options.encoding =
      text("dataset_encoding") == "utf8" ? TextEncoding::utf8 : TextEncoding::utf8_or_latin1;
  options.text_column = setting("text_column").value_or("");
  options.text_pair_column = setting("text_pair_column").value_or("");
  if (const auto column = setting("label_column"); column && !column->empty())
    options.label_columns = {*column};
  options.problem = parse_problem_type(text("problem_type"));
  options.labels = labels;
  return options;
}

int64_t steps_of_run(int64_t n_steps_per_epoch, double n_epochs, int64_t max_steps) {
  if (max_steps >= 0) return max_steps;
  return static_cast<int64_t>(std::ceil(n_epochs * static_cast<double>(n_steps_per_epoch)));
}

}  // namespace ferry
