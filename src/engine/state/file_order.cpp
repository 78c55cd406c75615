#include "src/engine/state/file_order.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <numeric>

#include "src/base/error.h"

namespace ferry {
namespace {

/** Half the strips halve how often a page of the file is touched. */
constexpr int64_t kStrip_elements = 2 << 20;
/** The values of a cache line: so many columns are turned at once, and each line is written once.
 */
constexpr int64_t kLine = 16;
/** Elements of the file after which a strip is done with them: the pages of a whole tensor would
 * count as memory, and a call for each page takes time. */
constexpr int64_t kDone_elements = 1 << 18;

/** to(j, i) = from(i, j) for `rows` x `columns` of `from`; strides are the distances of rows. */
void transpose(const float* from,
               int64_t from_stride,
               int64_t rows,
               int64_t columns,
               float* to,
               int64_t to_stride) {
  for (int64_t first_row = 0; first_row < rows; first_row += kLine)
    for (int64_t first = 0; first < columns; first += kLine)
      for (int64_t j = first; j < std::min(first + kLine, columns); ++j)
        for (int64_t i = first_row; i < std::min(first_row + kLine, rows); ++i)
          to[j * to_stride + i] = from[i * from_stride + j];
}

}  // namespace

FileOrder::FileOrder(const ModelTable& model, const HfEntry& entry) : rows_(entry.rows) {
  const ParamSpec& param = model.param_of(entry);
  columns_ = param.row_values();
  transposed_ = entry.transposed && columns_ > 1 && rows_ > 1;
  const HfRowGroups& groups = entry.groups;
  if (groups.n_groups < 2 || groups.part_rows.size() < 2) {
    runs_ = {{0, 0, rows_}};
    return;
  }
  const int64_t group_rows =
      std::accumulate(groups.part_rows.begin(), groups.part_rows.end(), int64_t{0});
  FERRY_CHECK(groups.n_groups * group_rows == rows_, "'{}': {} groups of {} rows are not {}",
              entry.hf_name, groups.n_groups, group_rows, rows_);
  int64_t file = 0;
  for (int64_t group = 0; group < groups.n_groups; ++group) {
    int64_t part_begin = 0;  // of ours
    for (int64_t n : groups.part_rows) {
      runs_.push_back({part_begin + group * n, file, n});
      part_begin += groups.n_groups * n;
      file += n;
    }
  }
}

int64_t FileOrder::strip_rows() const {
  return std::clamp(kStrip_elements / std::max<int64_t>(columns_, 1), int64_t{1}, rows_);
}

void FileOrder::read_strip(int64_t first_row,
                           std::span<float> strip,
                           const ReadFile& read,
                           const Done& done) const {
  const int64_t end_row = first_row + static_cast<int64_t>(strip.size()) / columns_;
  const auto in_strip = [&](const Run& run, const auto& take) {
    const int64_t begin = std::max(run.ours, first_row), end = std::min(run.ours + run.n, end_row);
    if (begin < end) take(begin - first_row, run.file + begin - run.ours, end - begin);
  };
  if (!transposed_) {
    for (const Run& run : runs_)
      in_strip(run, [&](int64_t row, int64_t file_row, int64_t n) {
        read(file_row * columns_,
             strip.subspan(static_cast<size_t>(row * columns_), static_cast<size_t>(n * columns_)));
        done(file_row * columns_, n * columns_);
      });
    return;
  }
  const int64_t most_columns = kLine * std::max<int64_t>(1, kDone_elements / (kLine * rows_));
  tbb::parallel_for(int64_t{0}, (columns_ + most_columns - 1) / most_columns, [&](int64_t task) {
    const int64_t column = task * most_columns,
                  n_columns = std::min(most_columns, columns_ - column);
    std::vector<float> values;
    for (const Run& run : runs_)
      in_strip(run, [&](int64_t row, int64_t file_row, int64_t n) {
        values.resize(static_cast<size_t>(n_columns * n));
        for (int64_t i = 0; i < n_columns; ++i)
          read((column + i) * rows_ + file_row,
               std::span(values).subspan(static_cast<size_t>(i * n), static_cast<size_t>(n)));
        transpose(values.data(), n, n_columns, n, strip.data() + row * columns_ + column, columns_);
      });
    done(column * rows_, n_columns * rows_);
  });
}

void FileOrder::write_strip(int64_t first_row,
                            std::span<const float> strip,
                            const WriteFile& write) const {
  const int64_t end_row = first_row + static_cast<int64_t>(strip.size()) / columns_;
  std::vector<float> values;
  for (const Run& run : runs_) {
    const int64_t begin = std::max(run.ours, first_row), end = std::min(run.ours + run.n, end_row);
    if (begin >= end) continue;
    const int64_t n = end - begin, file_row = run.file + begin - run.ours;
    const auto rows = strip.subspan(static_cast<size_t>((begin - first_row) * columns_),
                                    static_cast<size_t>(n * columns_));
    if (!transposed_) {
      write(file_row * columns_, rows);
      continue;
    }
    for (int64_t column = 0; column < columns_; column += kLine) {
      const int64_t n_columns = std::min(kLine, columns_ - column);
      values.resize(static_cast<size_t>(n_columns * n));
      transpose(rows.data() + column, columns_, n, n_columns, values.data(), n);
      for (int64_t i = 0; i < n_columns; ++i)
        write((column + i) * rows_ + file_row,
              std::span<const float>(values).subspan(static_cast<size_t>(i * n),
                                                     static_cast<size_t>(n)));
    }
  }
}

void FileOrder::gather(int64_t first_element, std::span<float> values, const ReadOurs& read) const {
  if (values.empty()) return;
  const auto n_elements = static_cast<int64_t>(values.size());
  std::vector<Part> parts;
  if (!transposed_) {
    for (const Run& run : runs_) {
      const int64_t run_begin = run.file * columns_;
      const int64_t begin = std::max(run_begin, first_element);
      const int64_t end = std::min(run_begin + run.n * columns_, first_element + n_elements);
      if (begin < end)
        parts.push_back({run.ours * columns_ + begin - run_begin,
                         values.subspan(static_cast<size_t>(begin - first_element),
                                        static_cast<size_t>(end - begin))});
    }
    read(parts);
    return;
  }
  // Whole rows of the file, of which each is a column of ours.
  const int64_t first = first_element / rows_;
  const int64_t n_columns = (first_element + n_elements + rows_ - 1) / rows_ - first;
  std::vector<float> columns(static_cast<size_t>(rows_ * n_columns));  // (file rows, n_columns)
  for (const Run& run : runs_)
    for (int64_t i = 0; i < run.n; ++i)
      parts.push_back({(run.ours + i) * columns_ + first,
                       std::span(columns).subspan(static_cast<size_t>((run.file + i) * n_columns),
                                                  static_cast<size_t>(n_columns))});
  read(parts);
  const int64_t end = first_element + n_elements;
  for (int64_t at = first_element; at < end;) {
    const int64_t column = at / rows_, row = at % rows_;
    const bool is_whole = row == 0 && end - at >= rows_;
    const int64_t n = is_whole ? (end - at) / rows_ : 1;
    const int64_t n_rows = is_whole ? rows_ : std::min(rows_ - row, end - at);
    transpose(columns.data() + row * n_columns + column - first, n_columns, n_rows, n,
              values.data() + (at - first_element), rows_);
    at += n * n_rows;
  }
}

}  // namespace ferry
