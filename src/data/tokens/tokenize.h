#pragma once
// Examples to tokens, on as many threads as wanted and in their order, with no more of them in
// memory than the threads are working on.

#include <cstdint>
#include <functional>

#include "src/data/read/reader.h"
#include "src/data/tokenized_example.h"
#include "src/data/tokens/token_writer.h"

namespace ferry {

struct TokenizeOptions {
  int n_threads = 1;
  /** Documents that come in parts are cut to windows of so many tokens. */
  int64_t window = 512;
  /** Told now and then, by one thread at a time, how many bytes of the dataset's files are read. */
  std::function<void(int64_t n_bytes)> progress;
  /** Told of each example that was left out since the task makes no sample of it, by one thread at
   * a time and in their order. */
  std::function<void(const Example& example)> left_out;
};

/** The result does not depend on the number of threads. The fault of the earliest example is
 * rethrown. Takes an example that yields no token for a data fault. */
void tokenize_examples(ExampleStream& examples,
                       const Tokenize& tokenize,
                       const TokenizeOptions& options,
                       TokenWriter& to);

}  // namespace ferry
