#pragma once
// The rows of a Parquet or Arrow file, as JSONL would have them. Private to src/data:
// src/data/read/object_rows.h reads them. Arrow is loaded when the first such file is read; builds
// without the pyarrow wheel lack what loads it (src/data/parquet).

#include <memory>
#include <string_view>

#include "src/data/parquet/table_rows.h"
#include "src/data/read/reader.h"

namespace ferry {

class TableFile {
 public:
  /** Error(data) without Arrow, and where the file is missing or damaged. */
  explicit TableFile(const DatasetOptions& options);

  /** The next rows, an object and a line end each, valid until the next call; empty at the end.
   * Error(data) where the file is damaged. */
  std::string_view next();
  /** What the datasets library says of the columns, as JSON; empty where it wrote nothing. */
  std::string_view metadata() const { return metadata_; }
  /** The share of the file that was given so far, from 0 to 1. */
  double share() const { return share_; }

 private:
  FerryTableNext* next_;
  std::unique_ptr<FerryTable, FerryTableClose*> table_;
  std::string path_;
  bool is_parquet_;
  std::string_view metadata_;
  double share_ = 0;
};

}  // namespace ferry
