#pragma once
// Rows of metrics.jsonl as CSV, in a thread: a million of them take seconds.

#include <QObject>
#include <QString>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ferry::gui {

struct CsvRun {
  QString name;
  std::filesystem::path run;
};

/** Writes the exact rows that have any of the keys: "step,loss,eval_loss", before them "run" where
 * there are several runs. Numbers have all their digits; one that is not finite is "nan". Whole or
 * not at all. Throws Error(machine) where the file cannot be written, Error(data) where metrics
 * cannot be read. */
void write_csv(const std::vector<CsvRun>& runs,
               const std::vector<std::string>& keys,
               const QString& file,
               std::stop_token stop = {});

class CsvExport : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;
  ~CsvExport() override;

  /** One at a time: an export that goes on ends without a file. */
  void start(std::vector<CsvRun> runs, std::vector<std::string> keys, const QString& file);

 signals:
  /** trouble: empty where the file is written. */
  void ended(const QString& file, const QString& trouble);

 private:
  std::jthread thread_;
};

}  // namespace ferry::gui
