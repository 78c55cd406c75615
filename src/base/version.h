#pragma once
// Which Ferry this is, for messages about files of another one.

namespace ferry {

/** "0.1.0" */
const char* ferry_version();

}  // namespace ferry
