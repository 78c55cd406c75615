#include "src/tasks/entities.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/error.h"

namespace ferry {
namespace {

/** A tag in its two parts: "B-PER" is B and PER. */
struct Tag {
  char kind = 'O';  ///< of a tag that begins with no ASCII letter: '?'
  std::string_view type = "_";
};

Tag parts_of(std::string_view tag) {
  if (tag.empty()) return {};
  size_t n_first = 1;  // bytes of the first character
  while (n_first < tag.size() && (static_cast<unsigned char>(tag[n_first]) & 0xC0) == 0x80)
    ++n_first;
  std::string_view rest = tag.substr(n_first);
  if (const size_t dash = rest.find('-'); dash != rest.npos) rest.remove_prefix(dash + 1);
  return {.kind = n_first == 1 ? tag.front() : '?', .type = rest.empty() ? "_" : rest};
}

bool is_outside(const Tag& tag) {
  return tag.kind == 'O' || tag.kind == '.';
}

bool is_one_of(char kind, std::string_view kinds) {
  return kinds.find(kind) != kinds.npos;
}

/** An entity ends between two words. */
bool ends_between(const Tag& before, const Tag& after) {
  if (is_one_of(before.kind, "ES")) return true;
  if (is_one_of(before.kind, "BI") && is_one_of(after.kind, "BSO")) return true;
  return !is_outside(before) && before.type != after.type;
}

/** An entity begins between two words. */
bool begins_between(const Tag& before, const Tag& after) {
  if (is_one_of(after.kind, "BS")) return true;
  if (is_one_of(before.kind, "ESO") && is_one_of(after.kind, "EI")) return true;
  return !is_outside(after) && before.type != after.type;
}

double ratio(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::vector<Entity> entities_of(std::span<const std::string_view> tags) {
  std::vector<Entity> entities;
  Tag before;
  int64_t first = 0;
  for (size_t i = 0; i <= tags.size(); ++i) {
    const Tag tag = i < tags.size() ? parts_of(tags[i]) : Tag();
    const auto at = static_cast<int64_t>(i);
    if (ends_between(before, tag))
      entities.push_back({.type = before.type, .first = first, .last = at - 1});
    if (begins_between(before, tag)) first = at;
    before = tag;
  }
  return entities;
}

void EntityScores::add(std::span<const std::string_view> actual,
                       std::span<const std::string_view> predicted) {
  FERRY_CHECK(actual.size() == predicted.size(), "{} tags and {}", actual.size(), predicted.size());
  n_words_ += static_cast<int64_t>(actual.size());
  for (size_t i = 0; i < actual.size(); ++i)
    n_right_words_ += actual[i] == predicted[i];
  const std::vector<Entity> is = entities_of(actual), said = entities_of(predicted);
  n_actual_ += static_cast<int64_t>(is.size());
  n_predicted_ += static_cast<int64_t>(said.size());
  for (const Entity& entity : said) {
    const auto found = std::ranges::lower_bound(is, entity.last, {}, &Entity::last);
    n_right_ += found != is.end() && *found == entity;
  }
}

double EntityScores::precision() const {
  return ratio(n_right_, n_predicted_);
}
double EntityScores::recall() const {
  return ratio(n_right_, n_actual_);
}
double EntityScores::f1() const {
  return ratio(2 * n_right_, n_actual_ + n_predicted_);
}
double EntityScores::accuracy() const {
  return ratio(n_right_words_, n_words_);
}

}  // namespace ferry
