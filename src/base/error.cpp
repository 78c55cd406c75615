#include "src/base/error.h"

#include <cstdlib>

#include "src/base/print.h"
#include "src/base/utf8.h"

namespace ferry {

Error::Error(Fault fault, std::string_view where, std::string_view what, std::string_view hint)
    : fault_(fault) {
  message_.append("[").append(where).append("] ").append(escaped(what));
  if (!hint.empty()) message_.append(" - ").append(escaped(hint));
}

void check_failed(const char* file, int line, const char* expression, const std::string& message) {
  log_line("ferry: internal error at " + std::string(file) + ":" + std::to_string(line) + ": " +
           expression + ": " + message);
  std::abort();
}

}  // namespace ferry
