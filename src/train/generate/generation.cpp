#include "src/train/generate/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/train/generate/choose_token.h"
#include "src/train/generate/token_text.h"

namespace ferry {
namespace {

/** A prompt with what has come of it. */
struct Sequence {
  Sequence(const Prompt& its_prompt,
           int64_t its_index,
           const Tokenizer& tokenizer,
           const GenerationRule& rule)
      : prompt(its_prompt),
        index(its_index),
        ids(its_prompt.ids),
        text(tokenizer, its_prompt.ids, rule.stops) {}

  const Prompt& prompt;
  int64_t index;             // among all prompts
  std::vector<int32_t> ids;  // the prompt's, then the new ones
  TokenText text;
  int64_t n_kept = 0;  // tokens whose keys and values are in the cache
  bool is_done = false;
  Ending ending{};

  int64_t n_tokens() const { return static_cast<int64_t>(ids.size()); }
  int64_t n_new() const { return n_tokens() - static_cast<int64_t>(prompt.ids.size()); }
  int64_t n_left() const { return n_tokens() - n_kept; }
  /** It has more to read than the token that came last. */
  bool reads_text() const { return n_kept == 0 || n_left() > 1; }
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

  /** `n` tokens from `begin` on of a sequence; `place`: where its keys and values are kept.
   * `is_long`: their positions have kLongPosition. */
  void add(std::span<const int32_t> ids,
           int64_t begin,
           int64_t n,
           std::optional<int32_t> place,
           bool is_long) {
    add_tokens(ids.subspan(static_cast<size_t>(begin), static_cast<size_t>(n)),
               begin + (is_long ? kLongPosition : 0));
    ++n_real_;
    if (!place) return;
    places_.push_back(*place);
    lengths_.push_back(static_cast<int32_t>(begin));
  }

  /** Rounds the tokens up, to no more than `most`, so that few counts of them come to the engine.
   */
  void pad(int64_t most) {
    constexpr int64_t kMultiple = 64;
    const std::vector<int32_t> padding(static_cast<size_t>(max_length_), 0);
    int64_t left = std::min(most, round_up(n_tokens(), kMultiple)) - n_tokens();
    for (; left > 0; left -= max_length_)
      add_tokens(std::span(padding).first(static_cast<size_t>(std::min(left, max_length_))), 0);
  }

  int64_t n_tokens() const { return static_cast<int64_t>(ids_.size()); }

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
        .generates = true,
        .cache_places = places_,
        .cache_lengths = lengths_,
        .cu_seqlens = cu_seqlens_,
        .labels = std::as_bytes(std::span(labels_)),
    };
  }

 private:
  void add_tokens(std::span<const int32_t> ids, int64_t first_position) {
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    for (size_t i = 0; i < ids.size(); ++i)
      positions_.push_back(static_cast<int32_t>(first_position + static_cast<int64_t>(i)));
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

/** Goes on with some sequences, pass by pass. */
class Generator {
 public:
  Generator(Session& session, const Job& job, const GenerationRule& rule, TakeText take_text)
      : session_(session),
        job_(job),
        rule_(rule),
        take_text_(std::move(take_text)),
        batch_(job.data.max_length) {}

  /** Until all are done; false: `goes_on` said no. */
  bool run(std::vector<Sequence>& sequences, const std::function<bool()>& goes_on) {
    while (std::ranges::any_of(sequences, [](const Sequence& its) { return !its.is_done; })) {
      if (!goes_on()) return false;
      pass(sequences);
      check_finite(logits_, job_.model.table.compute);
      const auto vocab = static_cast<size_t>(job_.model.table.vocab_size);
      for (size_t i = 0; i < running_.size(); ++i)
        if (Sequence& its = *running_[i]; its.n_left() == 0 || !rule_.uses_cache)
          add_token(its, std::span(logits_).subspan(i * vocab, vocab));
    }
    return true;
  }

  /** Of the last pass, (sequences that ran, vocabulary). */
  const std::vector<float>& logits() const { return logits_; }
  /** Reads the texts that were not read yet, else the newest tokens. */
  void pass(std::vector<Sequence>& sequences) {
    gather(sequences);
    session_.evaluate(batch_.view(), &logits_);
  }

 private:
  bool is_long(int64_t n_tokens) const {
    const int64_t long_from = job_.model.table.long_from;
    return long_from > 0 && n_tokens > long_from;
  }

  /** The batch of the next pass. Texts go through whole, as many as a micro-batch has room for; one
   * that has more tokens than that goes alone, in pieces. */
  void gather(std::vector<Sequence>& sequences) {
    const int64_t room = job_.plan.largest.tokens;
    // Keys that are kept were turned as those of a short text: a text that has become long is read
    // anew, as transformers does.
    for (Sequence& its : sequences)
      if (its.n_kept > 0 && !is_long(its.n_kept) && is_long(its.n_tokens())) its.n_kept = 0;
    const bool read_texts = std::ranges::any_of(
        sequences, [](const Sequence& its) { return !its.is_done && its.reads_text(); });
    bool has_kept = !read_texts;
    running_.clear();
    batch_.clear();
    for (size_t s = 0; s < sequences.size(); ++s) {
      Sequence& its = sequences[s];
      if (its.is_done || its.reads_text() != read_texts) continue;
      const int64_t left = room - batch_.n_tokens();
      const int64_t n = std::min({its.n_left(), job_.data.max_length, left});
      const bool goes_alone = read_texts && (its.n_kept > 0 || n < its.n_left());
      if (goes_alone && !running_.empty()) break;
      running_.push_back(&its);
      batch_.add(its.ids, its.n_kept, n,
                 rule_.uses_cache ? std::optional(static_cast<int32_t>(s)) : std::nullopt,
                 is_long(its.n_tokens()));
      has_kept = has_kept || its.n_kept > 0;
      if (rule_.uses_cache) its.n_kept += n;
      if (goes_alone) break;
    }
    if (!has_kept) batch_.pad(room);
  }

  void add_token(Sequence& its, std::span<const float> logits) {
    // The model may have rows for more tokens than its tokenizer has, or for fewer.
    const auto words = logits.first(
        std::min(logits.size(), static_cast<size_t>(job_.model.tokenizer.vocab_size())));
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
  const Job& job_;
  const GenerationRule& rule_;
  TakeText take_text_;
  TokenBatch batch_;
  std::vector<Sequence*> running_;  // in the batch
  std::vector<float> logits_;
};

/** The prompts that are gone on with at once. */
int64_t group_size(const Job& job) {
  return generation_shape(shape_of(job.generation), job.plan.largest).n_sequences;
}

std::vector<Sequence> sequences_from(const Job& job, int64_t first) {
  std::vector<Sequence> sequences;
  const int64_t end = std::min(job.generation.n_prompts(), first + group_size(job));
  for (int64_t p = first; p < end; ++p)
    sequences.emplace_back(job.generation.prompts[static_cast<size_t>(p)], p, job.model.tokenizer,
                           job.generation.rule);
  return sequences;
}

}  // namespace

std::string_view name_of(Ending ending) {
  constexpr std::string_view kNames[] = {"length", "eos", "stop", "context", "interrupted"};
  return kNames[static_cast<size_t>(ending)];
}

bool generate_unless(Session& session,
                     const Job& job,
                     const std::function<bool()>& goes_on,
                     const TakeText& take_text,
                     const TakeGenerated& take) {
  const bool is_alone = job.generation.n_prompts() == 1;
  for (int64_t first = 0; first < job.generation.n_prompts(); first += group_size(job)) {
    std::vector<Sequence> sequences = sequences_from(job, first);
    if (!Generator(session, job, job.generation.rule, is_alone ? take_text : TakeText())
             .run(sequences, goes_on))
      return false;
    for (const Sequence& its : sequences)
      take(its.prompt, {.ids = {its.ids.end() - its.n_new(), its.ids.end()},
                        .text = its.text.text(),
                        .ending = its.ending});
  }
  return true;
}

Generated go_on_with(Session& session,
                     const Job& job,
                     const GenerationRule& rule,
                     const Prompt& prompt,
                     int64_t index,
                     KeptText& kept,
                     const std::function<bool()>& goes_on,
                     const TakeText& take_text) {
  std::vector<Sequence> sequences;
  Sequence& its = sequences.emplace_back(prompt, index, job.model.tokenizer, rule);
  const auto is_long = [&](const std::vector<int32_t>& ids) {
    return job.model.table.long_from > 0 && std::ssize(ids) > job.model.table.long_from;
  };
  // The last token of the prompt is read in any case: its outputs say how the text goes on. Keys of
  // a long text are turned in another way.
  if (is_long(kept.ids) == is_long(prompt.ids))
    its.n_kept = std::min(std::ranges::mismatch(kept.ids, prompt.ids).in1 - kept.ids.begin(),
                          std::ssize(prompt.ids) - 1);
  kept.ids.clear();
  const bool has_ended = Generator(session, job, rule, take_text).run(sequences, goes_on);
  kept.ids.assign(its.ids.begin(), its.ids.begin() + its.n_kept);
  if (!has_ended) {
    const std::string rest = its.text.finish();
    if (take_text && !rest.empty()) take_text(rest);
  }
  return {.ids = {its.ids.end() - its.n_new(), its.ids.end()},
          .text = its.text.text(),
          .ending = has_ended ? its.ending : Ending::interrupted};
}

AlongText go_along(Session& session, const Job& job, std::span<const int32_t> given, int64_t n) {
  std::vector<Sequence> sequences = sequences_from(job, 0);
  Sequence& its = sequences.front();
  Generator generator(session, job, job.generation.rule, {});
  AlongText along;
  while (std::ssize(along.ids) < n) {
    do {
      generator.pass(sequences);
    } while (job.generation.rule.uses_cache && its.n_left() > 0);
    const std::vector<float>& logits = along.logits.emplace_back(generator.logits());
    check_finite(logits, job.model.table.compute);
    const auto at = along.ids.size();
    const auto likeliest = std::ranges::max_element(logits) - logits.begin();
    along.ids.push_back(at < given.size() ? given[at] : static_cast<int32_t>(likeliest));
    its.ids.push_back(along.ids.back());
  }
  return along;
}

int64_t n_groups(const Job& job) {
  const int64_t n = job.generation.n_prompts(), size = std::max<int64_t>(1, group_size(job));
  return (n + size - 1) / size;
}

GenerationSeconds time_generation(Session& session, const Job& job) {
  using Clock = std::chrono::steady_clock;
  FERRY_CHECK(job.generation.rule.uses_cache, "texts that are read anew for each token");
  const int64_t looked_at = shape_of(job.generation).cache_tokens;
  std::vector<Sequence> sequences = sequences_from(job, 0);
  Generator generator(session, job, job.generation.rule, {});
  const auto seconds_since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const auto is_read = [](const Sequence& its) { return !its.reads_text() || its.n_left() == 0; };
  GenerationSeconds seconds;
  const auto start = Clock::now();
  do {
    generator.pass(sequences);
  } while (!std::ranges::all_of(sequences, is_read));
  seconds.prompts_s = seconds_since(start);
  for (Sequence& its : sequences) {
    its.ids.push_back(0);  // any token takes as long
    its.is_done = its.n_tokens() > looked_at;
  }
  if (std::ranges::all_of(sequences, &Sequence::is_done)) return seconds;
  const auto token_start = Clock::now();
  generator.pass(sequences);
  seconds.token_s = seconds_since(token_start);
  return seconds;
}

JsonValue to_json(const Prompt& prompt, const Generated& generated) {
  return nlohmann::ordered_json{{"prompt", prompt.text},
                                {"text", generated.text},
                                {"ids", generated.ids},
                                {"n_prompt_tokens", prompt.ids.size()},
                                {"ended", name_of(generated.ending)}};
}

}  // namespace ferry
