#include "gui/models/inputs/data_columns.h"

#include <QFile>
#include <QSet>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "gui/models/text.h"
#include "src/data/read/dataset_files.h"
#include "src/data/read/first_row.h"

namespace ferry::gui {

namespace {

constexpr qint64 kLine_bytes = qint64{64} << 10;
constexpr int kName_chars = 60;

QStringList keys_of(const QByteArray& line) {
  const auto row = nlohmann::ordered_json::parse(line.begin(), line.end(), nullptr,
                                                 /*allow_exceptions=*/false);
  QStringList keys;
  if (row.is_object())
    for (const auto& [key, value] : row.items())
      keys << to_text(key);
  return keys;
}

/** The character that splits a header: the most frequent of the usual ones. */
QChar delimiter_of(const QString& header) {
  QChar best = ',';
  for (const QChar each : {QChar('\t'), QChar(';'), QChar('|')})
    if (header.count(each) > header.count(best)) best = each;
  return best;
}

QStringList cells_of(const QString& header, QChar delimiter) {
  QStringList cells{QString()};
  bool is_quoted = false;
  for (const QChar each : header) {
    if (each == '"')
      is_quoted = !is_quoted;
    else if (each == delimiter && !is_quoted)
      cells << QString();
    else
      cells.back() += each;
  }
  for (QString& cell : cells)
    cell = cell.trimmed();
  return cells;
}

/** Names differ, are short, and are no numbers: else the line is a row. */
bool are_names(const QStringList& cells) {
  const QSet<QString> different(cells.begin(), cells.end());
  return cells.size() > 1 && different.size() == cells.size() &&
         std::ranges::all_of(cells, [](const QString& cell) {
           bool is_number = false;
           cell.toDouble(&is_number);
           return !cell.isEmpty() && cell.size() <= kName_chars && !is_number;
         });
}

}  // namespace

QStringList data_columns(const std::string& dataset) {
  QStringList columns;
  trouble_of([&] {
    const auto files =
        dataset.empty() ? std::vector<std::filesystem::path>() : dataset_files(dataset);
    QFile file;
    if (files.empty() || !std::filesystem::is_regular_file(files.front()) ||
        !open_to_read(file, files.front()))
      return;
    const std::string kind = files.front().extension().string();
    QByteArray line = file.readLine(kLine_bytes);
    if (line.startsWith("\xef\xbb\xbf")) line.remove(0, 3);
    if (kind == ".jsonl" || kind == ".ndjson") {
      columns = keys_of(line);
    } else if (kind == ".csv" || kind == ".tsv") {
      const QString header = QString::fromUtf8(line).trimmed();
      const QStringList cells =
          cells_of(header, kind == ".tsv" ? QChar('\t') : delimiter_of(header));
      if (are_names(cells)) columns = cells;
    } else {
      for (const std::string& field : fields_of_first_row(files.front()))
        columns << to_text(field);
    }
  });
  return columns;
}

}  // namespace ferry::gui
