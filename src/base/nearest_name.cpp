#include "src/base/nearest_name.h"

#include <algorithm>

namespace ferry {

std::string normalized_name(std::string_view name) {
  std::string result(name);
  for (char& c : result) {
    if (c == '-') c = '_';
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

namespace {

/** Edits (insert, delete, replace, swap of neighbours) that turn a into b. */
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string nearest_name(std::string_view typed,
                         const std::vector<std::string_view>& candidates,
                         std::optional<size_t> most_edits) {
  const std::string wanted = normalized_name(typed);
  std::string_view best;
  size_t best_distance = std::max<size_t>(2, wanted.size() / 3) + 1;
  if (wanted.size() < 3) best_distance = 2;
  if (most_edits) best_distance = *most_edits + 1;
  for (std::string_view candidate : candidates) {
    size_t distance = edit_distance(wanted, normalized_name(candidate));
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  if (!best.empty() || wanted.size() < 4 || most_edits) return std::string(best);
  for (std::string_view candidate :
       candidates)  // "warmup" for warmup_steps, "rate" for learning_rate
    if (normalized_name(candidate).find(wanted) != std::string::npos) return std::string(candidate);
  return {};
}

}  // namespace ferry
