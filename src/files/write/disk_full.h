#pragma once
// The one fault of writing that passes by itself when somebody makes room.

#include "src/base/error.h"

namespace ferry {

/** No space, or no more of this user's share of it. */
class DiskFull : public Error {
 public:
  using Error::Error;
};

}  // namespace ferry
