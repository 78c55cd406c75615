#pragma once
// The dataset that a run's settings name: one reading of them for `ferry plan`, which counts its
// examples, and for training. The settings come as texts, so that src/data knows no option table.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/data/read/reader.h"

namespace ferry {

/** An option's value; nullopt where it is auto. */
using Setting = std::function<std::optional<std::string>(std::string_view key)>;

DatasetOptions dataset_options(const Setting& setting, const std::string& path, RowNeed rows);

/** "0.7,0.3" as numbers. Error(usage) where one is not above 0. */
std::vector<double> dataset_shares(std::string_view text);

/** Steps of a run over `n_examples` training examples: max_steps where it is not negative, else
 * those of so many epochs. */
int64_t steps_of_run(int64_t n_steps_per_epoch, double n_epochs, int64_t max_steps);

}  // namespace ferry
