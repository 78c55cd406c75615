#include "src/service/runs/metrics_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "src/base/json/json_reader.h"

namespace ferry::service {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
/** A run has some 15 keys; a file with more than this is no run's. */
constexpr size_t kCurves_max = 128;
constexpr size_t kMarks_max = 4096;
constexpr std::string_view kStep = "step";

/** Takes the numbers of a flat object; what is nested is passed over. */
class RowEvents : public JsonEvents {
 public:
  explicit RowEvents(MetricsRow& row) : row_(row) {}

  /** Call it when all is read: false where it is no row. */
  bool finish() {
    row_.values.resize(n_);
    return is_object_ && has_step_;
  }

  void null() override { add(kNan); }
  void boolean(bool value) override { add(value ? 1 : 0); }
  void integer(int64_t value) override { add(static_cast<double>(value)); }
  void natural(uint64_t value) override {
    if (depth_ == 1 && key_ == kStep && value <= INT64_MAX) {
      row_.step = static_cast<int64_t>(value);
      has_step_ = true;
    }
    add(static_cast<double>(value));
  }
  void number(double value, const std::string&) override { add(value); }
  void text(std::string&) override {}
  void begin_object() override { is_object_ = ++depth_ == 1 ? !is_list_ : is_object_; }
  void key(std::string& value) override {
    if (depth_ == 1) key_.swap(value);
  }
  void end_object() override { --depth_; }
  void begin_list() override {
    if (depth_++ == 0) is_list_ = true;
  }
  void end_list() override { --depth_; }

 private:
  void add(double value) {
    if (depth_ != 1 || is_list_ || key_ == kStep) return;
    if (n_ == row_.values.size()) row_.values.emplace_back();
    row_.values[n_].first.assign(key_);
    row_.values[n_++].second = value;
  }

  MetricsRow& row_;
  std::string key_;
  size_t n_ = 0;
  int depth_ = 0;
  bool is_object_ = false, is_list_ = false, has_step_ = false;
};

nlohmann::ordered_json parsed(const std::string& line) {
  nlohmann::ordered_json value;
  if (line.empty() || parse_json(line, value)) return nullptr;
  return value;
}

}  // namespace

double MetricsRow::value(std::string_view key) const {
  const auto found = std::ranges::find(values, key, &std::pair<std::string, double>::first);
  return found == values.end() ? kNan : found->second;
}

bool MetricsRow::has(std::string_view key) const {
  return std::ranges::find(values, key, &std::pair<std::string, double>::first) != values.end();
}

bool parse_row(std::string_view line, MetricsRow& row) {
  RowEvents events(row);
  const bool is_json = !read_json(line, events);
  return events.finish() && is_json;
}

MetricsReader::MetricsReader(const std::filesystem::path& run, size_t points_max)
    : points_max_(points_max), follower_(run / "metrics.jsonl") {}

MetricsReader::Poll MetricsReader::poll(size_t bytes_max) {
  const LineFollower::Growth growth = follower_.follow(
      bytes_max, [this](std::string_view line, int64_t offset) { take(line, offset); });
  if (growth.is_anew) *this = MetricsReader(follower_.path().parent_path(), points_max_);
  return {.has_changed = growth.n_bytes > 0 || growth.is_anew,
          .is_anew = growth.is_anew,
          .is_behind = growth.is_behind,
          .is_there = growth.is_there,
          .trouble = growth.trouble};
}

void MetricsReader::take(std::string_view line, int64_t offset) {
  if (!parse_row(line, row_) || row_.step < last_row_step_) {
    ++n_bad_lines_;
    return;
  }
  last_row_step_ = row_.step;
  note_place(row_.step, offset);
  ++n_rows_;
  bool is_step = false, is_evaluation = false, ends_mean = false;
  double loss = kNan;
  for (const auto& [key, value] : row_.values) {
    if (key == "loss") {
      is_step = true;
      loss = value;
    }
    is_evaluation = is_evaluation || key == "eval_loss";
    ends_mean = ends_mean || key == "loss_mean";
    if (key == "step_ms" && std::isfinite(value)) training_seconds_ += value / 1e3;
    auto curve = curves_.find(key);
    if (curve == curves_.end() && curves_.size() < kCurves_max)
      curve = curves_.emplace(key, Series(points_max_)).first;
    if (curve != curves_.end()) curve->second.add(row_.step, value);
  }
  if (is_step) {
    n_steps_ = row_.step;
    loss_.add(loss, ends_mean);
    last_step_ = line;
  } else if (is_evaluation) {
    last_evaluation_ = line;
  }
}

void MetricsReader::note_place(int64_t step, int64_t offset) {
  if (n_rows_ % rows_per_mark_ != 0) return;
  if (marks_.size() == kMarks_max) {
    for (size_t i = 0; i < kMarks_max / 2; ++i)
      marks_[i] = marks_[2 * i];
    marks_.resize(kMarks_max / 2);
    rows_per_mark_ *= 2;
  }
  marks_.push_back({n_rows_, step, offset});
}

const Series* MetricsReader::find(std::string_view key) const {
  const auto found = curves_.find(key);
  return found == curves_.end() ? nullptr : &found->second;
}

nlohmann::ordered_json MetricsReader::last_step() const {
  return parsed(last_step_);
}
nlohmann::ordered_json MetricsReader::last_evaluation() const {
  return parsed(last_evaluation_);
}

void MetricsReader::read_after(const Mark& mark,
                               const std::function<bool(int64_t, const MetricsRow&)>& use) const {
  MetricsRow row;
  int64_t last_step = mark.step, n = mark.row;
  read_lines(follower_.path(), mark.offset, [&](std::string_view line, int64_t) {
    if (n == n_rows_) return false;  // later ones come with the next poll
    if (!parse_row(line, row) || row.step < last_step) return true;
    last_step = row.step;
    return use(n++, row);
  });
}

void MetricsReader::read_rows(int64_t first_row, const UseRow& use) const {
  if (first_row < 0 || first_row >= n_rows_) return;
  const auto after = std::ranges::upper_bound(marks_, first_row, {}, &Mark::row);
  read_after(*std::prev(after),
             [&](int64_t n, const MetricsRow& row) { return n < first_row || use(row); });
}

void MetricsReader::read_from_step(int64_t step, const UseRow& use) const {
  if (n_rows_ == 0 || step > last_row_step_) return;
  // Several rows may have the step, before the mark too.
  auto mark = std::ranges::lower_bound(marks_, step, {}, &Mark::step);
  if (mark != marks_.begin()) --mark;
  read_after(*mark, [&](int64_t, const MetricsRow& row) { return row.step < step || use(row); });
}

}  // namespace ferry::service
