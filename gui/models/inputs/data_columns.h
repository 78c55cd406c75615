#pragma once
// The names of a data file's columns, to choose from. Reads its beginning, so it belongs in a
// thread.

#include <QStringList>
#include <string>

namespace ferry::gui {

/** The columns of a CSV or TSV file with a header, or the fields of the first row of a JSON,
 * Parquet or Arrow file; of several files the first one's. Empty where there are none, or the file
 * cannot be read. */
QStringList data_columns(const std::string& dataset);

}  // namespace ferry::gui
