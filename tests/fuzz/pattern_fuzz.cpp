// A tokenizer's pattern is refused, or finds matches that are not empty and in order, or says that
// it tries too many ways. The first line of the input is the pattern, the rest is the text.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "src/base/error.h"
#include "src/base/utf8.h"
#include "src/text/pattern.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ferry;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find('\n'), input.size());
  const std::string_view expression = input.substr(0, end);
  const std::string_view text = input.substr(std::min(end + 1, input.size()));
  constexpr size_t kNone = std::string_view::npos;
  if (first_invalid_utf8(expression) != kNone || first_invalid_utf8(text) != kNone) return 0;
  try {
    const text::Pattern pattern(expression);
    size_t done = 0;
    pattern.find_all(text, [&](size_t begin, size_t stop) {
      if (begin < done || stop <= begin || stop > text.size()) std::abort();
      done = stop;
      return true;
    });
  } catch (const std::invalid_argument&) {
  } catch (const Error&) {
  }
  return 0;
}
