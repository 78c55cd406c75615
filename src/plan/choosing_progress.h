#pragma once
// How far the choice of a plan has come (src/plan/plan_choice.h), in words: a run says it while it
// has no directory yet, and the app finds it in what the run said.

#include <optional>
#include <string>
#include <string_view>

namespace ferry {

/** How far a choice has come: `n` is timed now, of `n_most` at most. */
struct ChoosingProgress {
  int n = 0, n_most = 0;
  bool operator==(const ChoosingProgress&) const = default;
};
/** "choosing the plan (2 of at most 3)": begins a line that a run says, and the app reads. */
std::string words_of(const ChoosingProgress& progress);
/** The newest in what a process has said; nothing where it chooses no plan, or has chosen. */
std::optional<ChoosingProgress> find_choosing_progress(std::string_view said);
/** Begins the line that a run says when it has chosen. */
inline constexpr std::string_view kChosen = "the plan is chosen";

}  // namespace ferry
