#include "src/runs/logs/wall_time.h"

#include <ctime>

namespace ferry::runs {

std::string now_in_words() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace ferry::runs
