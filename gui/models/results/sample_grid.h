#pragma once
// The samples of a run as a grid: a row a prompt, a column a step. Grows while the run goes on;
// cells that are there stay where they are. Files are read in a thread.

#include <QAbstractTableModel>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "gui/models/latest_worker.h"
#include "src/files/file_stamp.h"

namespace ferry::gui {

/** A text that a model went on with. */
struct Sample {
  QString prompt, text;
  QString ended;     ///< "length", "eos", "stop", "context"
  QString settings;  ///< for people: "temperature 0.8, top-p 0.95, seed 42"
  int64_t n_tokens = 0, n_prompt_tokens = 0;

  bool operator==(const Sample&) const = default;
};

/** A file RUN/samples/step-N.jsonl. */
struct SampleFile {
  int64_t step = 0;
  FileStamp stamp;
  std::vector<Sample> samples;
  int64_t n_bad_lines = 0;  ///< half written or damaged
};

struct SampleFiles {
  std::vector<SampleFile> read;  ///< those that changed
  std::vector<int64_t> steps;    ///< of all that are there, ascending
  QString trouble;               ///< why the directory or one of them cannot be read
};

/** Reads the files whose stamps are not those in `known`. */
SampleFiles read_samples(const std::filesystem::path& run,
                         const std::map<int64_t, FileStamp>& known);

class SampleGrid : public QAbstractTableModel {
  Q_OBJECT

 public:
  explicit SampleGrid(QObject* parent = nullptr);

  /** Another run, or none: the grid is empty until look() has read it. */
  void set_run(const std::filesystem::path& run);
  const std::filesystem::path& run() const { return run_; }
  /** Reads what came since; looked() follows. */
  void look();

  int n_prompts() const { return static_cast<int>(prompts_.size()); }
  int n_steps() const { return static_cast<int>(columns_.size()); }
  int64_t step(int column) const { return columns_[static_cast<size_t>(column)].step; }
  const QString& prompt(int row) const { return prompts_[static_cast<size_t>(row)]; }
  /** Null where that step has none of the prompt. */
  const Sample* sample(int row, int column) const;
  int64_t n_bad_lines() const;
  /** Why samples cannot be read; empty: they can. */
  const QString& trouble() const { return trouble_; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 signals:
  /** A look is over; `has_changed`: there is something new. */
  void looked(bool has_changed);

 private:
  struct Column {
    int64_t step;
    FileStamp stamp;
    std::vector<std::optional<Sample>> samples;  ///< by row
    int64_t n_bad_lines;
  };
  void take(const SampleFiles& files);
  void remove_gone(const std::vector<int64_t>& steps);
  void put(const SampleFile& file);
  std::vector<size_t> rows_of(const std::vector<Sample>& samples);

  std::filesystem::path run_;
  std::vector<QString> prompts_;
  std::vector<Column> columns_;  ///< by step
  QString trouble_;
  LatestWorker background_;
};

}  // namespace ferry::gui
