#pragma once
// A pass over the evaluation data: loss, the metrics of the task, and its answers. Its memory does
// not grow with the number of texts.

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/files/write/atomic_file.h"
#include "src/files/write/disk_full.h"
#include "src/train/prepare/job.h"

namespace ferry {

/** predictions.jsonl: an object a line; written beside its place as the answers come, and put there
 * by commit(). */
class PredictionFile {
 public:
  /** Failures are Error(machine); a full disk shows at commit(). */
  explicit PredictionFile(const std::filesystem::path& target);
  void add(std::string_view line);
  /** Throws DiskFull where the disk was full, and what came then is lost. */
  void commit();

 private:
  void write(const std::function<void()>& write);

  std::optional<AtomicFile> file_;  // null: the disk was full from the start
  std::string open_;                // not written yet
  std::optional<DiskFull> full_;
};

struct Evaluation {
  double loss = 0;  ///< mean over the label items: samples, or tokens that are guessed
  Metrics metrics;
  std::vector<int64_t> confusion;  ///< (n_labels, n_labels) row = true; of one class a text only
  std::vector<Answer> shown;       ///< up to three answers, from the whole of the data
  std::unique_ptr<PredictionFile> predictions;  ///< null where nobody wants them
};

/** The file of a run's predictions. */
std::filesystem::path predictions_of(const std::filesystem::path& run);

/** Evaluates data.eval, with loss and metrics where it has labels. `goes_on` is asked between two
 * batches; nothing comes back once it said no. `predictions`: where they will be; empty: nowhere.
 */
std::optional<Evaluation> evaluate_unless(Session& session,
                                          const Model& model,
                                          const Data& data,
                                          const std::function<bool()>& goes_on,
                                          const std::filesystem::path& predictions = {});
Evaluation evaluate(Session& session,
                    const Model& model,
                    const Data& data,
                    const std::filesystem::path& predictions = {});

/** The answers alone, as they come, for texts without labels. */
void answer(Session& session, const Model& model, const Data& data, const TakeAnswer& take);

/** One line of JSON: the example's texts, then `fields`. */
std::string answer_line(const Example& example, const JsonValue& fields);

}  // namespace ferry
