#include "gui/models/curves/csv_export.h"

#include <fmt/format.h>

#include <QSaveFile>
#include <cmath>

#include "gui/models/text.h"
#include "src/base/error.h"
#include "src/service/runs/metrics_reader.h"

namespace ferry::gui {

namespace {

[[noreturn]] void fail(const QSaveFile& file) {
  throw Error(Fault::machine, "export.csv",
              fmt::format("'{}' cannot be written: {}", file.fileName().toStdString(),
                          file.errorString().toStdString()),
              "choose another place");
}

/** A field of CSV (RFC 4180). */
std::string quoted(const QString& text) {
  if (!text.contains(',') && !text.contains('"') && !text.contains('\n')) return text.toStdString();
  QString inside = text;
  return ('"' + inside.replace("\"", "\"\"") + '"').toStdString();
}

}  // namespace

void write_csv(const std::vector<CsvRun>& runs,
               const std::vector<std::string>& keys,
               const QString& file_name,
               std::stop_token stop) {
  QSaveFile file(file_name);
  if (!file.open(QIODevice::WriteOnly)) fail(file);
  const bool has_names = runs.size() > 1;
  std::string text = has_names ? "run,step" : "step";
  for (const std::string& key : keys)
    text += "," + quoted(to_text(key));
  text += '\n';
  const auto write = [&] {
    const auto size = static_cast<qint64>(text.size());
    if (file.write(text.data(), size) != size) fail(file);
    text.clear();
  };
  for (const CsvRun& run : runs) {
    service::MetricsReader reader(run.run);
    for (auto poll = reader.poll(); poll.is_behind && !stop.stop_requested();
         poll = reader.poll()) {
    }
    const std::string name = quoted(run.name);
    reader.read_rows(0, [&](const service::MetricsRow& row) {
      std::string values;
      bool has_any = false;
      for (const std::string& key : keys) {
        values += ',';
        if (!row.has(key)) continue;
        has_any = true;
        values += fmt::format("{}", row.value(key));
      }
      if (!has_any) return !stop.stop_requested();
      if (has_names) text += name + ",";
      text += fmt::format("{}{}\n", row.step, values);
      if (text.size() > (size_t{1} << 20)) write();
      return !stop.stop_requested();
    });
  }
  if (stop.stop_requested()) return file.cancelWriting();
  write();
  if (!file.commit()) fail(file);
}

CsvExport::~CsvExport() = default;

void CsvExport::start(std::vector<CsvRun> runs,
                      std::vector<std::string> keys,
                      const QString& file) {
  thread_ = std::jthread(
      [this, runs = std::move(runs), keys = std::move(keys), file](std::stop_token stop) {
        const auto trouble = trouble_of([&] { write_csv(runs, keys, file, stop); });
        if (!stop.stop_requested()) emit ended(file, trouble.value_or(QString()));
      });
}

}  // namespace ferry::gui
