#include "src/train/evaluate/references.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "models/core/preference.h"
#include "src/base/crc32c.h"
#include "src/base/error.h"
#include "src/files/paths.h"
#include "src/files/plain_file.h"
#include "src/files/write/atomic_file.h"
#include "src/term/progress.h"
#include "src/train/prepare/batches.h"
#include "src/train/prepare/run_store.h"

namespace ferry {
namespace {

namespace stdfs = std::filesystem;
using ReferenceScores = std::vector<float>;

/** By sequence. */
struct References {
  ReferenceScores train, eval;
};

/** The file: this head, the scores of both data sets, and the CRC of all before it. */
struct ReferenceHead {
  char magic[8] = {'F', 'E', 'R', 'R', 'Y', 'R', 'E', 'F'};
  uint64_t fingerprint = 0;  ///< of the data
  int64_t n_train = 0, n_eval = 0;
  bool operator==(const ReferenceHead&) const = default;
};

ReferenceHead head_of_references(const Data& data) {
  ReferenceHead head;
  head.fingerprint = data.train.fingerprint() ^ (data.eval.fingerprint() * 3);
  head.n_train = data.train.n_sequences();
  head.n_eval = data.eval.n_sequences();
  return head;
}

template <class Value>
std::string_view bytes_of(const Value* values, size_t n) {
  return {reinterpret_cast<const char*>(values), n * sizeof(Value)};
}

void write_references(const stdfs::path& file,
                      const ReferenceHead& head,
                      const References& references) {
  std::string text(bytes_of(&head, 1));
  text += bytes_of(references.train.data(), references.train.size());
  text += bytes_of(references.eval.data(), references.eval.size());
  const uint32_t crc = crc32c(std::as_bytes(std::span(text)));
  AtomicFile out(file, kPrivateMode);
  out.append(text);
  out.append(bytes_of(&crc, 1));
  out.commit();
}

/** Nothing where the file is not there, damaged, or of other data. */
std::optional<References> read_references(const stdfs::path& file, const ReferenceHead& wanted) {
  if (!path_exists(file)) return std::nullopt;
  const std::string text = read_text_file(file);
  const auto n = static_cast<size_t>(wanted.n_train + wanted.n_eval);
  if (text.size() != sizeof(ReferenceHead) + n * sizeof(float) + sizeof(uint32_t))
    return std::nullopt;
  ReferenceHead head;
  std::memcpy(&head, text.data(), sizeof head);
  uint32_t crc = 0;
  const size_t end = text.size() - sizeof crc;
  std::memcpy(&crc, text.data() + end, sizeof crc);
  if (head != wanted || crc32c(std::as_bytes(std::span(text).first(end))) != crc)
    return std::nullopt;
  References references = {.train = ReferenceScores(static_cast<size_t>(wanted.n_train)),
                           .eval = ReferenceScores(static_cast<size_t>(wanted.n_eval))};
  const char* at = text.data() + sizeof(ReferenceHead);
  std::memcpy(references.train.data(), at, references.train.size() * sizeof(float));
  at += references.train.size() * sizeof(float);
  std::memcpy(references.eval.data(), at, references.eval.size() * sizeof(float));
  return references;
}

/** Forward passes over both data sets. */
class ReferencePass {
 public:
  ReferencePass(Session& session, const Job& job)
      : session_(session),
        data_(job.data),
        long_from_(job.model.table.long_from),
        collator_(job.model.tokenizer, job.data, job.model.table),
        progress_(stderr,
                  term::detect_terminal(2),
                  "evaluating the first weights",
                  job.data.train.size() + job.data.eval.size(),
                  "pair") {}

  References run() {
    References references;
    if (data_.train.size() > 0) references.train = scores_of(data_.train);
    references.eval = scores_of(data_.eval);
    progress_.vanish();
    return references;
  }

 private:
  ReferenceScores scores_of(const TokenizedDataset& data) {
    ReferenceScores scores(static_cast<size_t>(data.n_sequences()));
    const FirstPosition first_position = positions_in_order(data, long_from_, kLongPosition);
    const auto n_at_once = static_cast<size_t>(session_.n_evaluated_at_once());
    std::vector<MicroBatch> batches(n_at_once);
    const auto passes = plan_pass(data.size(), data_.split.micro_batch_size);
    for (size_t first = 0; first < passes.size(); first += n_at_once) {
      std::vector<HostBatch> shown;
      for (size_t i = first; i < std::min(first + n_at_once, passes.size()); ++i)
        shown.push_back(collator_.collate(data, passes[i], data_.token_sizes, {},
                                          batches[i - first], first_position));
      const std::vector<Evaluated> evaluated = session_.evaluate_each(shown, true);
      for (size_t i = 0; i < evaluated.size(); ++i) {
        put(batches[i].samples, evaluated[i].logits, scores);
        n_done_ += std::ssize(passes[first + i]);
      }
      progress_.update(n_done_);
    }
    return scores;
  }

  static void put(const std::vector<int64_t>& sequences,
                  const std::vector<float>& sums,
                  ReferenceScores& scores) {
    for (size_t s = 0; s < sequences.size(); ++s) {
      const float log_p = sums[s * static_cast<size_t>(kPreferenceSums) +
                               static_cast<size_t>(PreferenceSum::log_p)];
      if (!std::isfinite(log_p))
        throw Error(Fault::diverged, "train.references",
                    "the first weights give an answer no finite probability",
                    "use dtype = bf16 or fp32");
      scores[static_cast<size_t>(sequences[s])] = log_p;
    }
  }

  Session& session_;
  const Data& data_;
  int64_t long_from_;
  Collator collator_;
  term::Progress progress_;
  int64_t n_done_ = 0;
};

}  // namespace

void take_references(Session& session, Job& job, const stdfs::path& run, bool run_begins) {
  Data& data = job.data;
  if (!data.task->has_reference()) return;
  const stdfs::path file = run / "references.bin";
  const ReferenceHead head = head_of_references(data);
  std::optional<References> references;
  if (!run_begins) references = read_references(file, head);
  if (!references && !run_begins)
    throw Error(Fault::data, "train.references",
                fmt::format("'{}' is missing, damaged or of other data", file.string()),
                "the answers' first probabilities are in it, and its weights have changed since: "
                "start a new run from its model");
  if (!references) {
    references = ReferencePass(session, job).run();
    write_references(file, head, *references);
  }
  data.train.set_references(std::make_shared<const ReferenceScores>(std::move(references->train)));
  data.eval.set_references(std::make_shared<const ReferenceScores>(std::move(references->eval)));
}

void take_references_of(const std::string& first_model, config::Config config, Job& job) {
  if (!job.data.task->has_reference()) return;
  if (first_model.empty())
    throw Error(Fault::data, "train.references", "the run of this model began with drawn weights",
                "its pairs were measured while it trained: its metrics.jsonl has them");
  config.choose("model_name_or_path", first_model, "the run of the model");
  const Job first = prepare(std::move(config), {.purpose = Purpose::evaluation});
  if (first.data.eval.fingerprint() != job.data.eval.fingerprint())
    throw Error(Fault::data, "train.references",
                fmt::format("'{}' turns the texts into other tokens than the model", first_model),
                "has it changed since the run? The loss compares the model with it");
  RunStore store(fmt::format("first-{}", ::getpid()));
  const auto session = open_session(first, store);
  job.data.eval.set_references(
      std::make_shared<const ReferenceScores>(ReferencePass(*session, first).run().eval));
}

}  // namespace ferry
