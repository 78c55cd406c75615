// A CSV or TSV file is refused, or becomes rows. The first byte chooses how it is read.

#include <cstdint>
#include <cstdlib>

#include "src/base/error.h"
#include "src/data/read/reader.h"
#include "tests/fuzz/scratch.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ferry;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  DatasetOptions options;
  options.path = fuzz::write_scratch(data[0] & 1 ? "x.tsv" : "x.csv", bytes);
  if (data[0] & 2) options.labels = LabelUse::ignored;
  try {
    read_dataset(options);
  } catch (const Error&) {
  }
  return 0;
}
