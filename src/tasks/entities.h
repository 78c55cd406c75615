#pragma once
// The entities that the tags of words make, and their scores, as seqeval's default mode has both:
// tags are B-, I-, E- or S- with a type ("B-PER"), or O, and of what they leave open a change of
// type begins a new entity. So IOB1, IOB2 and IOBES are all taken.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ferry {

/** The words [first, last]. */
struct Entity {
  std::string_view type;  ///< "_" of tags without a type
  int64_t first = 0, last = 0;
  bool operator==(const Entity&) const = default;
};

/** In the order of their last words, no two of which are the same. `tags` outlive them. */
std::vector<Entity> entities_of(std::span<const std::string_view> tags);

/** Counts over texts; a ratio of nothing is 0. */
class EntityScores {
 public:
  /** The tags of a text's words, as many of both. */
  void add(std::span<const std::string_view> actual, std::span<const std::string_view> predicted);

  /** The share of the predicted entities that are right: type, first and last word. */
  double precision() const;
  /** The share of the actual entities that are predicted. */
  double recall() const;
  double f1() const;
  /** The share of the words with the right tag. */
  double accuracy() const;

 private:
  int64_t n_actual_ = 0, n_predicted_ = 0, n_right_ = 0;
  int64_t n_words_ = 0, n_right_words_ = 0;
};

}  // namespace ferry
