// Several data sets as one, each with its share of the examples.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "src/base/error.h"
#include "src/base/utf8.h"
#include "src/data/content_hash.h"
#include "src/data/read/reader.h"
#include "src/data/sampler.h"

namespace ferry {
namespace {

/** A data set, and which of its examples are taken. */
struct MixedPart {
  std::unique_ptr<DatasetReader> reader;
  std::vector<bool> is_taken;  // (examples)
  int64_t n_taken = 0;
};

class MixedStream : public ExampleStream {
 public:
  explicit MixedStream(const std::vector<MixedPart>& parts) : parts_(parts) { begin(); }

  bool next(Example& example) override {
    for (;;) {
      if (!stream_->next(example)) {
        n_bytes_before_ += stream_->n_bytes_read();
        if (++part_ == parts_.size()) {
          --part_;  // the last stays at its end
          return false;
        }
        begin();
        continue;
      }
      place_ += begins_text(example.part);
      if (parts_[part_].is_taken[static_cast<size_t>(place_)]) return true;
    }
  }
  int64_t n_bytes_read() const override { return n_bytes_before_ + stream_->n_bytes_read(); }

 private:
  void begin() {
    stream_ = parts_[part_].reader->examples();
    place_ = -1;
  }

  const std::vector<MixedPart>& parts_;
  size_t part_ = 0;
  std::unique_ptr<ExampleStream> stream_;
  int64_t place_ = -1;  // of the example in its part
  int64_t n_bytes_before_ = 0;
};

class MixedReader : public DatasetReader {
 public:
  MixedReader(std::vector<std::unique_ptr<DatasetReader>> parts,
              const std::vector<double>& shares,
              uint64_t seed)
      : DatasetReader(parts.front()->files()) {
    scheme_ = parts.front()->scheme();
    files_.files.clear();
    for (auto& reader : parts)
      add(std::move(reader));
    choose(shares, seed);
  }

  std::unique_ptr<ExampleStream> examples() const override {
    return std::make_unique<MixedStream>(parts_);
  }
  std::vector<const DatasetReader*> parts() const override {
    std::vector<const DatasetReader*> readers;
    for (const MixedPart& part : parts_)
      readers.push_back(part.reader.get());
    return readers;
  }
  uint64_t choice() const override { return choice_; }

 private:
  /** Reads all of it, for the number of its examples. */
  void add(std::unique_ptr<DatasetReader> reader) {
    const auto stream = reader->examples();
    int64_t n = 0;
    for (Example example; stream->next(example);)
      n += begins_text(example.part);
    std::vector<std::string> notes = stream->notes();
    if (notes.empty()) notes = reader->notes();
    notes_.insert(notes_.end(), notes.begin(), notes.end());
    const auto& files = reader->files().files;
    files_.files.insert(files_.files.end(), files.begin(), files.end());
    scheme_.has_unanswered |= reader->scheme().has_unanswered;
    parts_.push_back(
        {.reader = std::move(reader), .is_taken = std::vector<bool>(static_cast<size_t>(n))});
  }

  void choose(const std::vector<double>& shares, uint64_t seed) {
    FERRY_CHECK(shares.size() == parts_.size(), "{} shares of {}", shares.size(), parts_.size());
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    double n_all = std::numeric_limits<double>::max();
    for (size_t i = 0; i < parts_.size(); ++i)
      n_all = std::min(n_all, static_cast<double>(parts_[i].is_taken.size()) * sum / shares[i]);
    ContentHash hash;
    hash.add_number(seed);
    for (size_t i = 0; i < parts_.size(); ++i) {
      MixedPart& part = parts_[i];
      const auto n = static_cast<int64_t>(part.is_taken.size());
      constexpr double kRounding = 1e-6;  // 0.3 * 10 is three
      const auto wanted = static_cast<int64_t>(n_all * shares[i] / sum + kRounding);
      part.n_taken = std::clamp<int64_t>(wanted, 1, n);
      const Sampler order(n, seed + i);
      for (int64_t k = 0; k < part.n_taken; ++k)
        part.is_taken[static_cast<size_t>(order.at(0, k))] = true;
      hash.add_number(static_cast<uint64_t>(part.n_taken));
      notes_.push_back(escaped(fmt::format("'{}' gives {} of its {} texts, a share of {:.3g}",
                                           part.reader->files().options.path.string(), part.n_taken,
                                           n, shares[i] / sum)));
    }
    choice_ = hash.value();
  }

  std::vector<MixedPart> parts_;
  uint64_t choice_ = 0;
};

}  // namespace

std::unique_ptr<DatasetReader> mix_datasets(std::vector<std::unique_ptr<DatasetReader>> parts,
                                            const std::vector<double>& shares,
                                            uint64_t seed) {
  return std::make_unique<MixedReader>(std::move(parts), shares, seed);
}

}  // namespace ferry
