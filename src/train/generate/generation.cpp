#include "src/train/generate/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/train/generate/token_text.h"

namespace ferry {
namespace {

/** A prompt with what has come of it. */
struct Sequence {
  Sequence(const Prompt& its_prompt, int64_t its_index, const GenerationJob& job)
      : prompt(its_prompt),
        index(its_index),
        ids(its_prompt.ids),
        text(job.job.model.tokenizer, its_prompt.ids, job.rule.stops) {}

  const Prompt& prompt;
  int64_t index;             // among all prompts
  std::vector<int32_t> ids;  // the prompt's, then the new ones
  TokenText text;
  bool is_done = false;
  Ending ending{};

  int64_t n_tokens() const { return static_cast<int64_t>(ids.size()); }
  int64_t n_new() const { return n_tokens() - static_cast<int64_t>(prompt.ids.size()); }
};

/** A micro-batch of some sequences' tokens; owns what it shows. */
class TokenBatch {
 public:
  explicit TokenBatch(int64_t max_length) : max_length_(max_length) {}

  void clear() {
    for (auto* ints : {&ids_, &positions_, &cu_seqlens_, &places_, &lengths_})
      ints->clear();
    cu_seqlens_.push_back(0);
    n_real_ = 0;
  }

  /** The tokens from `begin` on of a sequence; `place`: where its keys and values are kept. */
  void add(std::span<const int32_t> ids, int64_t begin, std::optional<int32_t> place) {
    add_tokens(ids.subspan(static_cast<size_t>(begin)), begin);
    ++n_real_;
    if (!place) return;
    places_.push_back(*place);
    lengths_.push_back(static_cast<int32_t>(begin));
  }

  /** Rounds the tokens up, so that few counts of them come to the engine. */
  void pad() {
    constexpr int64_t kMultiple = 64;
    const std::vector<int32_t> padding(static_cast<size_t>(max_length_), 0);
    int64_t left = round_up(n_tokens(), kMultiple) - n_tokens();
    for (; left > 0; left -= max_length_)
      add_tokens(std::span(padding).first(static_cast<size_t>(std::min(left, max_length_))), 0);
  }

  HostBatch view() {
    types_.assign(ids_.size(), 0);
    labels_.assign(ids_.size(), kNoLabel);
    const auto n_seqs = static_cast<int64_t>(cu_seqlens_.size()) - 1;
    return {
        .shape = {.tokens = n_tokens(), .n_seqs_max = n_seqs, .max_length = max_length_},
        .n_seqs = n_seqs,
        .n_seqs_real = n_real_,
        .input_ids = ids_,
        .type_ids = types_,
        .position_ids = positions_,
        .cache_places = places_,
        .cache_lengths = lengths_,
        .cu_seqlens = cu_seqlens_,
        .labels = std::as_bytes(std::span(labels_)),
    };
  }

 private:
  int64_t n_tokens() const { return static_cast<int64_t>(ids_.size()); }

  void add_tokens(std::span<const int32_t> ids, int64_t begin) {
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    for (size_t i = 0; i < ids.size(); ++i)
      positions_.push_back(static_cast<int32_t>(begin + static_cast<int64_t>(i)));
    cu_seqlens_.push_back(static_cast<int32_t>(n_tokens()));
  }

  int64_t max_length_;
  int64_t n_real_ = 0;
  std::vector<int32_t> ids_, types_, positions_, cu_seqlens_, labels_, places_, lengths_;
};

void check_finite(std::span<const float> logits, DType compute) {
  if (std::ranges::all_of(logits, [](float x) { return std::isfinite(x); })) return;
  throw Error(Fault::diverged, "generate", "the model's outputs are not finite",
              compute == DType::f16 ? "use dtype = bf16 or fp32"
                                    : "its training diverged: take an earlier checkpoint");
}

class Generator {
 public:
  Generator(Session& session, const GenerationJob& job, TakeText take_text)
      : session_(session),
        job_(job),
        rule_(job.rule),
        take_text_(std::move(take_text)),
        batch_(job.job.data.max_length) {}

  /** Goes on with these sequences until all are done. */
  void run(std::vector<Sequence>& sequences) {
    for (bool is_first = true; gather(sequences, is_first); is_first = false) {
      session_.evaluate(batch_.view(), &logits_);
      check_finite(logits_, job_.job.model.table.compute);
      const auto vocab = static_cast<size_t>(job_.job.model.table.vocab_size);
      for (size_t i = 0; i < running_.size(); ++i)
        add_token(*running_[i], std::span(logits_).subspan(i * vocab, vocab));
    }
  }

 private:
  /** The batch of the next pass; false: all sequences are done. */
  bool gather(std::vector<Sequence>& sequences, bool is_first) {
    running_.clear();
    batch_.clear();
    const bool is_whole = is_first || !rule_.uses_cache;
    for (size_t s = 0; s < sequences.size(); ++s) {
      Sequence& its = sequences[s];
      if (its.is_done) continue;
      running_.push_back(&its);
      const std::optional<int32_t> place =
          rule_.uses_cache ? std::optional(static_cast<int32_t>(s)) : std::nullopt;
      batch_.add(its.ids, is_whole ? 0 : its.n_tokens() - 1, place);
    }
    if (is_whole && !running_.empty()) batch_.pad();
    return !running_.empty();
  }

  void add_token(Sequence& its, std::span<const float> logits) {
    // The model may have room for more words than its tokenizer has.
    const auto words = logits.first(static_cast<size_t>(job_.job.model.tokenizer.vocab_size()));
    const double u = random_of_token(rule_.seed, its.index, its.n_new());
    const int32_t token = choose_token(words, rule_.sampling, u);
    its.ids.push_back(token);
    const bool ends = std::ranges::find(rule_.end_ids, token) != rule_.end_ids.end();
    if (!ends) give(its.text.add(token));
    if (ends)
      end(its, Ending::end_of_text);
    else if (its.text.is_stopped())
      end(its, Ending::stop);
    else if (its.n_new() == rule_.n_new_max)
      end(its, Ending::length);
    else if (its.n_tokens() > rule_.context)
      end(its, Ending::context);
  }

  void end(Sequence& its, Ending ending) {
    its.is_done = true;
    its.ending = ending;
    give(its.text.finish());
  }

  void give(const std::string& text) {
    if (take_text_ && !text.empty()) take_text_(text);
  }

  Session& session_;
  const GenerationJob& job_;
  const GenerationRule& rule_;
  TakeText take_text_;
  TokenBatch batch_;
  std::vector<Sequence*> running_;
  std::vector<float> logits_;
};

}  // namespace

std::string_view name_of(Ending ending) {
  constexpr std::string_view kNames[] = {"length", "eos", "stop", "context"};
  return kNames[static_cast<size_t>(ending)];
}

void generate(Session& session,
              const GenerationJob& job,
              const TakeText& take_text,
              const TakeGenerated& take) {
  const auto n = static_cast<int64_t>(job.prompts.size());
  for (int64_t first = 0; first < n; first += job.job.plan.micro_batch_size) {
    std::vector<Sequence> sequences;
    for (int64_t p = first; p < std::min(n, first + job.job.plan.micro_batch_size); ++p)
      sequences.emplace_back(job.prompts[static_cast<size_t>(p)], p, job);
    Generator(session, job, n == 1 ? take_text : TakeText()).run(sequences);
    for (Sequence& its : sequences)
      take(its.prompt, {.ids = {its.ids.end() - its.n_new(), its.ids.end()},
                        .text = its.text.text(),
                        .ending = its.ending});
  }
}

}  // namespace ferry
