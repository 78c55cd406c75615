// A tokenizer.json is refused, or makes a tokenizer that gives ids of its vocabulary.

#include <cstdint>
#include <cstdlib>

#include "src/base/error.h"
#include "src/text/tokenizer.h"
#include "tests/fuzz/scratch.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ferry;
  fuzz::write_scratch("tokenizer.json", {reinterpret_cast<const char*>(data), size});
  try {
    const Tokenizer tokenizer = Tokenizer::open(fuzz::scratch_directory());
    Encoding encoding;
    tokenizer.encode_pair("hello unaffable caf\xc3\xa9 [MASK]!", "\xe6\x97\xa5 world", 16,
                          encoding);
    for (const int32_t id : encoding.ids)
      if (id < 0 || id >= tokenizer.vocab_size()) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
