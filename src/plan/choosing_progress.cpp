#include "src/plan/choosing_progress.h"

#include <fmt/format.h>

#include <charconv>

namespace ferry {
namespace {

constexpr std::string_view kChoosing = "choosing the plan (", kOfAtMost = " of at most ";

}  // namespace

std::string words_of(const ChoosingProgress& progress) {
  return fmt::format("{}{}{}{})", kChoosing, progress.n, kOfAtMost, progress.n_most);
}

std::optional<ChoosingProgress> find_choosing_progress(std::string_view said) {
  const size_t at = said.rfind(kChoosing);
  if (at == said.npos || said.find(kChosen, at) != said.npos) return std::nullopt;
  const char* const end = said.data() + said.size();
  ChoosingProgress progress;
  auto read = std::from_chars(said.data() + at + kChoosing.size(), end, progress.n);
  if (read.ec != std::errc() || !std::string_view(read.ptr, end).starts_with(kOfAtMost))
    return std::nullopt;
  read = std::from_chars(read.ptr + kOfAtMost.size(), end, progress.n_most);
  if (read.ec != std::errc() || read.ptr == end || *read.ptr != ')') return std::nullopt;
  return progress;
}

}  // namespace ferry
