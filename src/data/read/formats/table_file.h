#pragma once
// The rows of a Parquet or Arrow file, as JSONL would have them. Private to src/data: the readers
// of JSONL read these, too. Arrow is loaded when the first such file is read; builds without the
// pyarrow wheel lack what loads it (src/data/parquet).

#include "src/data/read/formats/text_file.h"
#include "src/data/read/reader.h"

namespace ferry {

/** Files whose rows are objects: JSONL, Parquet and Arrow. */
bool has_objects(DatasetFormat format);

/** The text of a file whose rows are objects, a row a line where the file is a table. Error(data)
 * where a table is damaged, without Arrow, and as load_text_file() else. */
TextFile load_objects(const DatasetOptions& options);

}  // namespace ferry
