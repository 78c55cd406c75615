#include "src/base/version.h"

namespace ferry {

const char* ferry_version() {
  return FERRY_VERSION;
}

}  // namespace ferry
