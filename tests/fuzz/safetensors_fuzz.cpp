// A safetensors header is refused, or means the same once it was written again.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/files/safetensors/safetensors_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ferry;
  Header header;
  try {
    header = parse_header({reinterpret_cast<const char*>(data), size});
  } catch (const HeaderError&) {
    return 0;
  }
  int64_t end_bytes = 0;
  for (const HeaderEntry& entry : header.entries) {
    if (entry.begin_bytes != end_bytes || entry.end_bytes < end_bytes) std::abort();
    end_bytes = entry.end_bytes;
  }
  const std::string text = format_header(header);
  if (format_header(parse_header(text)) != text) std::abort();
  return 0;
}
