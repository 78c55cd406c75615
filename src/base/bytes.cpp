#include "src/base/bytes.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace ferry {

std::optional<int64_t> parse_bytes(std::string_view text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !(value >= 0)) return std::nullopt;
  std::string unit;
  for (char c : text.substr(static_cast<size_t>(end - text.data())))
    if (!std::isspace(static_cast<unsigned char>(c)))
      unit.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  double scale = 0;
  if (unit.empty() || unit == "b")
    scale = 1;
  else if (unit == "kib")
    scale = 1024.0;
  else if (unit == "mib")
    scale = 1048576.0;
  else if (unit == "gib")
    scale = 1073741824.0;
  else if (unit == "tib")
    scale = 1099511627776.0;
  else if (unit == "kb")
    scale = 1e3;
  else if (unit == "mb")
    scale = 1e6;
  else if (unit == "gb")
    scale = 1e9;
  else if (unit == "tb")
    scale = 1e12;
  else
    return std::nullopt;
  double bytes = value * scale;
  if (!(bytes < 9.2e18)) return std::nullopt;
  return static_cast<int64_t>(std::llround(bytes));
}

std::string format_bytes(int64_t bytes) {
  char text[48];
  double value = static_cast<double>(bytes);
  if (bytes >= kGiB)
    std::snprintf(text, sizeof text, "%.2f GiB", value / static_cast<double>(kGiB));
  else if (bytes >= kMiB)
    std::snprintf(text, sizeof text, "%.1f MiB", value / static_cast<double>(kMiB));
  else if (bytes >= kKiB)
    std::snprintf(text, sizeof text, "%.1f KiB", value / static_cast<double>(kKiB));
  else
    std::snprintf(text, sizeof text, "%lld B", static_cast<long long>(bytes));
  return text;
}

std::optional<int64_t> checked_mul(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

}  // namespace ferry
