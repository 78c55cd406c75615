#include "src/data/read/object_rows.h"

#include "src/data/read/formats/class_labels.h"

namespace ferry {

bool has_objects(DatasetFormat format) {
  return format == DatasetFormat::jsonl || format == DatasetFormat::parquet ||
         format == DatasetFormat::arrow;
}

ObjectRows::ObjectRows(const DatasetOptions& options) : name_(options.path.string()) {
  if (options.format == DatasetFormat::parquet || options.format == DatasetFormat::arrow) {
    table_ = std::make_unique<TableFile>(options);
    return;
  }
  text_ = load_text_file(options);
  rows_.emplace(text_->text(), name_);
}

bool ObjectRows::next(JsonRow& row) {
  while (!rows_ || !rows_->next(row)) {
    if (!table_) return false;
    const std::string_view piece = table_->next();
    if (piece.empty()) return false;
    rows_.emplace(piece, name_, /*first_line=*/n_rows_ + 1);
  }
  ++n_rows_;
  if (text_) row.text = text_->take(row.text, utf8_);
  return true;
}

std::vector<std::string> ObjectRows::label_names(const std::string& column) const {
  return class_label_names(name_, table_ ? table_->metadata() : std::string_view(), column);
}

double ObjectRows::share() const {
  return table_ ? table_->share() : rows_->share();
}

}  // namespace ferry
