#pragma once
// The rows of a dataset's files laid end to end, and what all files have to agree on. Private to
// src/data: the readers of texts, words and questions read their files through it.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/data/read/reader.h"

namespace ferry {

/** The rows of one file or folder. */
template <typename RowOfSource>
class RowSource {
 public:
  using Row = RowOfSource;

  RowSource() = default;
  RowSource(const RowSource&) = delete;
  RowSource& operator=(const RowSource&) = delete;
  virtual ~RowSource() = default;

  /** False at the end. Reuses the row's memory. Error(data) with file:line. */
  virtual bool next(Row& row) = 0;
  /** The share of the source that was given so far, from 0 to 1. */
  virtual double share() const = 0;
  /** The columns and what they were taken for, without the file's name; empty where there are none.
   */
  const std::string& columns() const { return columns_; }
  /** For the user; complete at the end. */
  const std::vector<std::string>& notes() const { return notes_; }

 protected:
  std::string columns_;
  std::vector<std::string> notes_;
};

/** The part of RowFiles that does not depend on the kind of rows: which file is being read. */
class FilesInOrder {
 public:
  /** The place of the file that is being read. */
  size_t file() const { return file_; }

 protected:
  explicit FilesInOrder(DatasetFiles files);

  DatasetOptions options_of_file() const { return files_.options_of(file_); }
  /** The file is open. Refuses one whose columns are taken for something else than those of the
   * first. */
  void begin(const std::string& columns);
  /** The file is read to its end, of so many rows. Refuses one without rows; false where it was the
   * last. */
  bool go_on(int64_t n_rows, const std::vector<std::string>& notes);
  /** First how many files there are. What is said of every file is said once, of the first. */
  std::vector<std::string> notes_with(const std::vector<std::string>& of_this_file) const;
  int64_t n_bytes_read(double share_of_this_file) const;

 private:
  DatasetFiles files_;
  size_t file_ = 0;
  std::string first_columns_;
  std::vector<std::string> notes_;  // of the files before it
  int64_t n_bytes_before_ = 0, n_bytes_ = 0;
};

/** The rows of all files, in their order. */
template <typename Source>
class RowFiles : public FilesInOrder {
 public:
  using Open = std::unique_ptr<Source> (*)(const DatasetOptions& options);

  /** Opens the first. */
  RowFiles(DatasetFiles files, Open open) : FilesInOrder(std::move(files)), open_(open) {
    open_file();
  }

  /** False at the end. */
  bool next(typename Source::Row& row) {
    while (!source_->next(row)) {
      if (!go_on(n_rows_, source_->notes())) return false;
      open_file();
    }
    ++n_rows_;
    return true;
  }

  /** The source that the last row came from. */
  const Source& source() const { return *source_; }
  /** Notes of the files so far. */
  std::vector<std::string> notes() const { return notes_with(source_->notes()); }
  /** Bytes of the files that were read so far. */
  int64_t n_bytes_read() const { return FilesInOrder::n_bytes_read(source_->share()); }

 private:
  void open_file() {
    source_ = open_(options_of_file());
    n_rows_ = 0;
    begin(source_->columns());
  }

  Open open_;
  std::unique_ptr<Source> source_;
  int64_t n_rows_ = 0;  // of the file
};

}  // namespace ferry
