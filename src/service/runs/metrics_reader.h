#pragma once
// Follows metrics.jsonl of a run while it grows: curves for charts, the last step, sums. Memory
// is bounded however long the run is, and a call costs what came since the one before.
//
//   MetricsReader reader(run);
//   do {                                      // at first a long file takes several calls
//     poll = reader.poll();
//   } while (poll.is_behind);
//   draw(reader.find("loss")->points());

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/files/growing_lines.h"
#include "src/runs/logs/mean_loss.h"
#include "src/service/runs/series.h"

namespace ferry::service {

/** A line of metrics.jsonl: of a step, an evaluation or a checkpoint. */
struct MetricsRow {
  int64_t step = 0;
  /** Numbers by key, in the order of the line: NaN where one is not finite, a boolean as 0 or 1. */
  std::vector<std::pair<std::string, double>> values;

  /** NaN where the line has no such key. */
  double value(std::string_view key) const;
  bool has(std::string_view key) const;
};

/** Parses a line into `row`, whose memory is used again; false of one that is none: half written,
 * damaged, without a step. */
bool parse_row(std::string_view line, MetricsRow& row);

/** For one thread. */
class MetricsReader {
 public:
  /** points_max: of each curve, even. */
  explicit MetricsReader(const std::filesystem::path& run, size_t points_max = 4096);

  struct Poll {
    bool has_changed = false;
    /** The run was taken back to an earlier step, or is another one: everything begins anew. */
    bool is_anew = false;
    bool is_behind = false;  ///< there is more to read: call again
    bool is_there = false;   ///< false before the first step, and where the run was removed
    std::string trouble;     ///< why it cannot be read
  };
  /** Reads what came since, at most so many bytes; the default takes some 3 ms. */
  Poll poll(size_t bytes_max = size_t{256} << 10);

  using Curves = std::map<std::string, Series, std::less<>>;
  /** The curve of every number but the step, by its key: "loss", "eval_loss", "time", ... */
  const Curves& curves() const { return curves_; }
  /** Null where there is none. */
  const Series* find(std::string_view key) const;

  int64_t n_rows() const { return n_rows_; }
  int64_t n_steps() const { return n_steps_; }  ///< the last step's number
  /** Whole lines that are not understood, and rows that go back: left out. */
  int64_t n_bad_lines() const { return n_bad_lines_; }
  /** As the run shows it (src/runs/logs/mean_loss.h); NaN: none. */
  double mean_loss() const { return loss_.value(); }
  double training_seconds() const { return training_seconds_; }
  /** The last line of a step and of an evaluation as they are; null: none. */
  nlohmann::ordered_json last_step() const;
  nlohmann::ordered_json last_evaluation() const;

  /** Rows as the file has them, while `use` gives true: the whole truth where a chart is zoomed
   * in, for a table, for export. Reads those rows and at most rows / 2048 before them. Throws
   * Error(data) where the file cannot be read. */
  using UseRow = std::function<bool(const MetricsRow&)>;
  void read_rows(int64_t first_row, const UseRow& use) const;
  /** From the first row of this step or a later one on. */
  void read_from_step(int64_t step, const UseRow& use) const;

 private:
  /** A row's place in the file. */
  struct Mark {
    int64_t row, step, offset;
  };
  void take(std::string_view line, int64_t offset);
  void note_place(int64_t step, int64_t offset);
  /** Rows from a mark on with their numbers. */
  void read_after(const Mark& mark,
                  const std::function<bool(int64_t, const MetricsRow&)>& use) const;

  size_t points_max_;
  LineFollower follower_;
  MetricsRow row_;  // its memory
  Curves curves_;
  runs::ShownLoss loss_;
  std::string last_step_, last_evaluation_;  // lines
  int64_t n_rows_ = 0, n_steps_ = 0, n_bad_lines_ = 0, last_row_step_ = 0;
  double training_seconds_ = 0;
  std::vector<Mark> marks_;  // every rows_per_mark_ rows, bounded
  int64_t rows_per_mark_ = 1;
};

}  // namespace ferry::service
