// A run.json is refused, or gives a summary of the run, and names files of stores that prove
// nothing unless they are there: none of the files of a directory of somebody else's goes.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/base/error.h"
#include "src/runs/directory/run_directory.h"
#include "src/runs/index/run_list.h"
#include "src/runs/store/store_place.h"
#include "tests/fuzz/scratch.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ferry;
  fuzz::write_scratch("run.json", {reinterpret_cast<const char*>(data), size});
  fuzz::write_scratch("other.states", "somebody's notes");
  const std::filesystem::path run = fuzz::scratch_directory();
  try {
    runs::summarise(run);
  } catch (const Error&) {
  }
  try {
    if (const auto place = runs::store_place_of(run))
      if (!runs::files_proved_of(*place).empty()) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
