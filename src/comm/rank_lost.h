#pragma once
// The failure of a run whose other ranks are gone, as against one that would come again.

#include "src/base/error.h"

namespace ferry {

/** Another rank has died, or the way to it is cut: the run may be started anew. */
class RankLost : public Error {
 public:
  RankLost(std::string_view where, std::string_view what, std::string_view hint = {})
      : Error(Fault::machine, where, what, hint) {}
};

}  // namespace ferry
