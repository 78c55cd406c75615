#pragma once
// The words in which two texts differ, for texts side by side.

#include <QString>
#include <utility>
#include <vector>

namespace ferry::gui {

struct DiffPart {
  QString text;
  bool is_other = false;  ///< the other text does not have it there

  bool operator==(const DiffPart&) const = default;
};

/** The parts of both, which joined give each text again. Beyond some thousand words it compares
 * the beginning, and takes the rest as other. */
std::pair<std::vector<DiffPart>, std::vector<DiffPart>> word_diff(const QString& a,
                                                                  const QString& b);

}  // namespace ferry::gui
