#include "src/data/tokens/tokenize.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "src/base/error.h"
#include "src/data/tokens/window_cutter.h"

namespace ferry {
namespace {

/** Examples that one thread works on: enough to be worth sharing out, few enough that what is not
 * written yet stays small. */
struct Chunk {
  static constexpr size_t kText_bytes = 1 << 20, kExamples = 4096;

  std::vector<Example> examples;
  size_t n_examples = 0;                            // of them, the others are memory to reuse
  std::vector<std::vector<TokenizedExample>> made;  // the samples of each
};

class Pipeline {
 public:
  Pipeline(ExampleStream& examples,
           const Tokenize& tokenize,
           const TokenizeOptions& options,
           TokenWriter& to)
      : examples_(examples),
        tokenize_(tokenize),
        options_(options),
        to_(to),
        windows_(static_cast<size_t>(options.window)) {}

  void run() {
    {
      std::vector<std::jthread> threads;
      try {
        for (int t = 1; t < options_.n_threads; ++t)
          threads.emplace_back([this] { work(); });
        work();
      } catch (...) {  // there is no memory for a thread: those that run are not to do all the work
        fail(0, std::current_exception());
      }
    }
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  /** Every thread reads a chunk, makes its tokens, and writes them once those of the chunks before
   * it are written. */
  void work() {
    Chunk chunk;
    int64_t number = 0;
    try {
      while (read(chunk, number)) {
        for (size_t i = 0; i < chunk.n_examples; ++i) {
          chunk.made[i].clear();
          tokenize_(chunk.examples[i], chunk.made[i]);
        }
        if (!write(chunk, number)) return;
      }
    } catch (...) {
      fail(number, std::current_exception());
    }
  }

  /** False at the end. */
  bool read(Chunk& chunk, int64_t& number) {
    const std::lock_guard lock(reading_);
    number = n_read_;
    if (is_read_) return false;
    ++n_read_;  // whatever fails from here on is this chunk's
    chunk.n_examples = 0;
    size_t n_bytes = 0;
    while (chunk.n_examples < Chunk::kExamples && n_bytes < Chunk::kText_bytes) {
      if (chunk.n_examples == chunk.examples.size()) chunk.examples.emplace_back();
      Example& example = chunk.examples[chunk.n_examples];
      is_read_ = true;  // also where reading throws
      if (!examples_.next(example)) break;
      is_read_ = false;
      ++chunk.n_examples;
      n_bytes += example.text.size() + (example.text_pair ? example.text_pair->size() : 0);
    }
    chunk.made.resize(std::max(chunk.made.size(), chunk.n_examples));
    n_bytes_read_ = examples_.n_bytes_read();
    return true;
  }

  /** False where the work is to end: an earlier chunk has failed. */
  bool write(Chunk& chunk, int64_t number) {
    std::unique_lock lock(writing_);
    turn_.wait(lock, [&] { return n_written_ == number || n_written_ == failed_; });
    if (n_written_ != number || number == failed_) return false;
    for (size_t i = 0; i < chunk.n_examples; ++i)
      write_example(chunk.examples[i], chunk.made[i]);
    if (options_.progress) options_.progress(n_bytes_read_);
    ++n_written_;
    turn_.notify_all();
    return true;
  }

  void write_example(const Example& example, std::vector<TokenizedExample>& samples) {
    if (samples.empty()) {
      to_.leave_out();
      if (options_.left_out) options_.left_out(example);
      return;
    }
    if (begins_text(example.part)) to_.add_example(example);
    for (TokenizedExample& sample : samples) {
      if (sample.part != TextPart::whole) {
        write_part(sample);
        continue;
      }
      if (sample.ids.empty())
        throw Error(Fault::data, "data.tokenize",
                    fmt::format("example {} has no tokens", to_.n_examples()),
                    "is its text blank?");
      to_.add(sample);
    }
  }

  void write_part(const TokenizedExample& part) {
    const auto take = [this](std::vector<int32_t>& window) {
      window_.ids.swap(window);
      to_.add(window_);
      window_.ids.swap(window);
    };
    windows_.add(part.ids, take);
    if (part.part == TextPart::last) windows_.finish(take);
  }

  /** Chunks before this one go on, and one of them may fail, too. */
  void fail(int64_t number, std::exception_ptr failure) {
    {
      const std::lock_guard lock(reading_);
      is_read_ = true;
    }
    const std::lock_guard lock(writing_);
    if (failed_ >= 0 && failed_ < number) return;
    failed_ = number;
    failure_ = std::move(failure);
    turn_.notify_all();
  }

  ExampleStream& examples_;
  const Tokenize& tokenize_;
  const TokenizeOptions& options_;
  TokenWriter& to_;

  std::mutex reading_;
  int64_t n_read_ = 0;  // chunks
  bool is_read_ = false;
  std::atomic<int64_t> n_bytes_read_ = 0;

  std::mutex writing_;
  std::condition_variable turn_;
  int64_t n_written_ = 0;  // chunks
  int64_t failed_ = -1;    // the earliest chunk that did
  std::exception_ptr failure_;
  WindowCutter windows_;
  TokenizedExample window_;
};

}  // namespace

void tokenize_examples(ExampleStream& examples,
                       const Tokenize& tokenize,
                       const TokenizeOptions& options,
                       TokenWriter& to) {
  Pipeline(examples, tokenize, options, to).run();
}

}  // namespace ferry
