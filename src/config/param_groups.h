#pragma once
// How options param_groups and freeze are spelt. The patterns are matched with a model's names by
// src/request/param_groups.h; here is the text alone.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::config {

/** The settings in param_groups for the parameters that one pattern names. */
struct ParamGroup {
  std::string pattern;
  std::optional<double> learning_rate;  ///< in place of the run's
  std::optional<double> lr_factor;      ///< of the run's
  std::optional<double> weight_decay;   ///< in place of the run's
};

struct ParamGroups {
  std::vector<ParamGroup> groups;
  std::string problem;  ///< why the text is not of this form; empty: it is
};

/** "classifier.*:lr=1e-4,decay=0; *.bias:factor=2": groups end with ';' or a new line, each is a
 * pattern, ':' and one or more of lr (learning_rate), factor (lr_factor) and decay (weight_decay).
 */
ParamGroups parse_param_groups(std::string_view text);

/** One spelling for each list of groups; reading it gives the same groups. */
std::string to_text(const std::vector<ParamGroup>& groups);

/** The items of "a, b,c" without spaces around them; nullopt where one is empty. None for blank
 * text. */
std::optional<std::vector<std::string>> parse_list(std::string_view text);

}  // namespace ferry::config
