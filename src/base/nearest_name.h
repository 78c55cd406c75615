#pragma once
// Names that a user typed: how they are compared, and which known one was meant.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ferry {

/** '-' to '_', ASCII upper case to lower: how names are compared. */
std::string normalized_name(std::string_view name);

/** The candidate nearest to what was typed, or empty when none is near enough to be meant: with
 * `most_edits` one that so many letters tell from it, else also one that it is a part of. */
std::string nearest_name(std::string_view typed,
                         const std::vector<std::string_view>& candidates,
                         std::optional<size_t> most_edits = {});

}  // namespace ferry
