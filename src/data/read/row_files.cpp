#include "src/data/read/row_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/error.h"

namespace ferry {
namespace {

/** Adds the notes of a file to those of others before it. */
void add_notes(std::vector<std::string>& all,
               const std::string& file,
               const std::vector<std::string>& notes) {
  // A note begins with its file's name.
  for (const std::string& note : notes) {
    const std::string_view end =
        std::string_view(note).substr(note.starts_with(file) ? file.size() : 0);
    const bool is_new = std::ranges::none_of(
        all, [&](const std::string& earlier) { return earlier.ends_with(end); });
    if (is_new) all.push_back(note);
  }
}

}  // namespace

DatasetOptions DatasetFiles::options_of(size_t file) const {
  DatasetOptions of_file = options;
  of_file.path = files[file];
  of_file.format = format;
  return of_file;
}

FilesInOrder::FilesInOrder(DatasetFiles files) : files_(std::move(files)) {
  const auto& all = files_.files;
  if (all.size() > 1)
    notes_.push_back(fmt::format("{}: {} files, '{}' to '{}'", files_.options.path.string(),
                                 all.size(), all.front().string(), all.back().string()));
}

void FilesInOrder::begin(const std::string& columns) {
  n_bytes_ = file_bytes(files_.files[file_]);
  if (file_ == 0) first_columns_ = columns;
  // Without columns it has no rows, which is said when one is wanted.
  if (columns.empty() || columns == first_columns_) return;
  throw Error(Fault::data, "data.columns",
              fmt::format("the files have different columns: of '{}' {}; of '{}' {}",
                          files_.files.front().string(), first_columns_,
                          files_.files[file_].string(), columns),
              "name the columns with text_column, text_pair_column and label_column, or give files "
              "of the same form");
}

bool FilesInOrder::go_on(int64_t n_rows, const std::vector<std::string>& notes) {
  const std::vector<std::filesystem::path>& all = files_.files;
  if (n_rows == 0)
    throw Error(Fault::data, "data.read", fmt::format("'{}' has no examples", all[file_].string()),
                all.size() == 1 ? "is it the right file?" : "is it complete? else leave it out");
  if (file_ + 1 == all.size()) return false;
  add_notes(notes_, all[file_].string(), notes);
  n_bytes_before_ += n_bytes_;
  ++file_;
  return true;
}

std::vector<std::string> FilesInOrder::notes_with(
    const std::vector<std::string>& of_this_file) const {
  std::vector<std::string> all = notes_;
  add_notes(all, files_.files[file_].string(), of_this_file);
  return all;
}

int64_t FilesInOrder::n_bytes_read(double share_of_this_file) const {
  return n_bytes_before_ + static_cast<int64_t>(share_of_this_file * static_cast<double>(n_bytes_));
}

}  // namespace ferry
