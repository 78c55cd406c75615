// metrics.jsonl as charts have it: while it grows, after a cut, with what is not finite, of a
// million rows.

#include "src/service/runs/metrics_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "src/runs/index/run_list.h"
#include "src/runs/logs/metrics_log.h"
#include "tests/files/test_files.h"

namespace ferry::service {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;

/** Everything that a reader tells. */
std::string told(const MetricsReader& reader) {
  std::string text = fmt::format("{} rows, step {}, {} bad, mean {}, {} s\n{}\n{}\n",
                                 reader.n_rows(), reader.n_steps(), reader.n_bad_lines(),
                                 reader.mean_loss(), reader.training_seconds(),
                                 reader.last_step().dump(), reader.last_evaluation().dump());
  for (const auto& [key, series] : reader.curves()) {
    text += fmt::format("{}: {} by {}\n", key, series.n_values(), series.values_per_point());
    for (const SeriesPoint& p : series.points())
      text += fmt::format("{}-{} {} {} {} {} {}\n", p.first_step, p.last_step, p.min, p.max, p.mean,
                          p.n_finite, p.n_nonfinite);
  }
  return text;
}

class MetricsFile : public ::testing::Test {
 protected:
  void append(const std::string& text) { std::ofstream(file_, std::ios::app) << text; }
  static std::string row(int64_t step, double loss) {
    return fmt::format(R"({{"step": {}, "loss": {:.6f}, "step_ms": 250, "time": {}}})", step, loss,
                       1.7e9 + static_cast<double>(step)) +
           "\n";
  }
  static void read_all(MetricsReader& reader, size_t bytes_max = size_t{1} << 20) {
    while (reader.poll(bytes_max).is_behind) {
    }
  }
  std::string told_anew(size_t points_max = 4096) const {
    MetricsReader anew(directory_.path(), points_max);
    read_all(anew);
    return told(anew);
  }

  test::TempDir directory_;
  fs::path file_ = directory_ / "metrics.jsonl";
  MetricsReader reader_{directory_.path()};
};

TEST_F(MetricsFile, BecomesCurves) {
  EXPECT_FALSE(reader_.poll().is_there);
  EXPECT_TRUE(reader_.last_step().is_null());
  append(row(1, 0.5) + row(2, 0.25));
  append(R"({"step": 2, "eval_loss": 0.75, "eval_accuracy": 0.5})"
         "\n"
         R"({"step": 2, "save_seconds": 1.5, "save_bytes": 1000})"
         "\n");
  const auto poll = reader_.poll();
  EXPECT_TRUE(poll.has_changed && poll.is_there);
  EXPECT_FALSE(poll.is_behind || poll.is_anew);
  EXPECT_EQ(reader_.n_rows(), 4);
  EXPECT_EQ(reader_.n_steps(), 2);
  EXPECT_EQ(reader_.training_seconds(), 0.5);
  const auto points = reader_.find("loss")->points();
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[1].first_step, 2);
  EXPECT_EQ(points[1].mean, 0.25);
  EXPECT_EQ(reader_.find("eval_accuracy")->last(), 0.5);
  EXPECT_EQ(reader_.find("save_bytes")->last(), 1000);
  EXPECT_EQ(reader_.find("step"), nullptr);
  EXPECT_EQ(reader_.last_step()["step"], 2);
  EXPECT_EQ(reader_.last_evaluation()["eval_loss"], 0.75);
  EXPECT_FALSE(reader_.poll().has_changed);
}

TEST_F(MetricsFile, SaysWhatTheListOfRunsSays) {
  directory_.write("run.json", R"({"format_version": 1, "phase": "finished"})");
  std::mt19937 random(1);
  for (int64_t step = 1; step <= 300; ++step) {
    nlohmann::ordered_json line = {
        {"step", step}, {"loss", 1e-3 * (random() % 1000)}, {"step_ms", random() % 100}};
    if (step % 37 == 0) line["loss_mean"] = 0.5;
    if (step % 50 == 0) line["loss"] = nullptr;
    append(line.dump() + "\n");
    if (step % 100 == 0)
      append(nlohmann::ordered_json({{"step", step}, {"eval_loss", 0.1}}).dump() + "\n");
    read_all(reader_);
    const runs::RunSummary summary = runs::summarise(directory_.path());
    ASSERT_EQ(fmt::format("{}", reader_.mean_loss()), fmt::format("{}", summary.mean_loss));
    ASSERT_EQ(reader_.training_seconds(), summary.training_seconds);
    ASSERT_EQ(reader_.last_step(), *summary.last_step);
    ASSERT_EQ(reader_.last_evaluation(), *summary.last_evaluation);
  }
}

TEST_F(MetricsFile, IsTheSameHoweverItComes) {
  std::string text;
  for (int64_t step = 1; step <= 20; ++step)
    text += row(step, 1.0 / static_cast<double>(step));
  size_t done = 0;
  for (std::mt19937 random(2); done < text.size();) {
    const size_t n = std::min<size_t>(random() % 90, text.size() - done);
    append(text.substr(done, n));
    done += n;
    reader_.poll();
    const auto n_whole = std::count(text.begin(), text.begin() + static_cast<long>(done), '\n');
    EXPECT_EQ(reader_.n_rows(), n_whole);
    EXPECT_EQ(reader_.n_bad_lines(), 0);
  }
  EXPECT_EQ(told(reader_), told_anew());
  MetricsReader slow(directory_.path());
  read_all(slow, 7);
  EXPECT_EQ(told(slow), told_anew());
}

TEST_F(MetricsFile, OfAResumedRunIsReadAnew) {
  runs::MetricsLog first(directory_.path(), 0);
  for (int64_t step = 1; step <= 9; ++step)
    first.append({{"step", step}, {"loss", 1.0}});
  append("{\"step\": 10, \"lo");  // it was killed
  read_all(reader_);
  EXPECT_EQ(reader_.n_steps(), 9);
  runs::MetricsLog second(directory_.path(), 4);
  for (int64_t step = 5; step <= 12; ++step)
    second.append({{"step", step}, {"loss", 2.0}});
  const auto poll = reader_.poll();
  EXPECT_TRUE(poll.is_anew && poll.is_behind && poll.has_changed);
  EXPECT_EQ(reader_.n_rows(), 0);
  read_all(reader_);
  EXPECT_EQ(reader_.n_rows(), 12);
  EXPECT_EQ(reader_.find("loss")->points()[4].mean, 2.0);
  EXPECT_EQ(told(reader_), told_anew());
}

TEST_F(MetricsFile, OfARunThatWasRemovedStays) {
  append(row(1, 0.5));
  read_all(reader_);
  fs::remove(file_);
  EXPECT_FALSE(reader_.poll().is_there);
  EXPECT_EQ(reader_.n_rows(), 1);
  fs::create_directory(file_);
  EXPECT_THAT(reader_.poll().trouble, ::testing::HasSubstr("a directory"));
  EXPECT_EQ(reader_.n_rows(), 1);
}

TEST_F(MetricsFile, HasGapsWhereNumbersAreNotFinite) {
  runs::MetricsLog log(directory_.path(), 0);
  log.append({{"step", 1}, {"loss", 0.5}});
  log.append({{"step", 2}, {"loss", std::nan("")}, {"grad_norm", HUGE_VAL}});
  log.append({{"step", 3}, {"loss", 0.25}, {"skipped", true}});
  read_all(reader_);
  const Series& loss = *reader_.find("loss");
  ASSERT_EQ(loss.points().size(), 3u);
  EXPECT_EQ(loss.points()[1].n_finite, 0);
  EXPECT_EQ(loss.points()[1].n_nonfinite, 1);
  EXPECT_EQ(loss.n_nonfinite(), 1);
  EXPECT_TRUE(std::isnan(reader_.find("grad_norm")->last()));
  EXPECT_EQ(reader_.find("skipped")->last(), 1);
  EXPECT_EQ(reader_.find("nonfinite")->n_values(), 1);
  EXPECT_EQ(reader_.n_bad_lines(), 0);
}

TEST_F(MetricsFile, LeavesOutWhatIsNoRow) {
  const std::string good = row(5, 0.5);
  std::vector<std::string> bad = {std::string("{\"step\": 6, \0\"loss\": 1}", 23),
                                  std::string(1000, '[')};
  for (const char* line :
       {"", "null", "[1]", R"([{"step": 1}])", R"({"loss": 1})", R"({"step": -1})",
        R"({"step": 1.5})", R"({"step": "6"})", R"({"step": 6, "loss": NaN})",
        R"({"step": 6, "loss": 1e999})", R"({"step": 6)", R"({"step": 4, "loss": 1})",
        R"({"step": 18446744073709551615})", R"({"a": {"step": 6}})", R"({"step": 6}})",
        "\xff\xfe"})
    bad.emplace_back(line);
  append(good);
  for (const std::string& line : bad)
    append(line + "\n");
  append(std::string(3 << 20, '{') + "\n");  // longer than any line: not even counted
  append(
      "{\"step\": 6, \"loss\": 2, \"a\": {\"b\": 1, \"loss\": 9}, \"l\": [1, 2], \"t\": \"x\"}\n");
  append("  {\"step\":7,\"loss\":3}\r\n");
  read_all(reader_);
  EXPECT_EQ(reader_.n_bad_lines(), static_cast<int64_t>(bad.size()));
  EXPECT_EQ(reader_.n_rows(), 3);
  EXPECT_EQ(reader_.find("loss")->n_values(), 3);
  EXPECT_EQ(reader_.find("loss")->points()[1].max, 2);
  EXPECT_EQ(reader_.find("b"), nullptr);
  EXPECT_EQ(reader_.find("t"), nullptr);
  EXPECT_EQ(reader_.find("loss")->last(), 3);
}

TEST_F(MetricsFile, WithKeysWithoutEndTakesNoMoreMemory) {
  for (int i = 0; i < 2000; ++i)
    append(fmt::format("{{\"step\": {}, \"key{}\": 1}}\n", i, i));
  read_all(reader_);
  EXPECT_EQ(reader_.n_rows(), 2000);
  EXPECT_LE(reader_.curves().size(), 128u);
}

TEST_F(MetricsFile, WhileItIsWritten) {
  constexpr int64_t kSteps = 500;
  runs::MetricsLog log(directory_.path(), 0);
  std::jthread writer([&] {
    for (int64_t step = 1; step <= kSteps; ++step)
      log.append({{"step", step}, {"loss", 1.0 / static_cast<double>(step)}});
  });
  int64_t before = 0;
  while (reader_.n_steps() < kSteps) {
    const auto poll = reader_.poll(1000);
    EXPECT_FALSE(poll.is_anew);
    EXPECT_GE(reader_.n_rows(), before);
    EXPECT_EQ(reader_.n_rows(), reader_.n_steps());
    before = reader_.n_rows();
  }
  EXPECT_EQ(reader_.n_bad_lines(), 0);
  EXPECT_EQ(told(reader_), told_anew());
}

/** As a run of so many steps writes it. */
void write_long(const fs::path& file, int64_t n_steps) {
  std::ofstream out(file);
  for (int64_t step = 1; step <= n_steps; ++step) {
    const double loss = step == n_steps / 3   ? 77.0
                        : step == n_steps / 2 ? -5.0
                                              : 0.001 * static_cast<double>(step % 997);
    out << fmt::format(
        R"({{"step":{},"epoch":{:.6f},"loss":{:.6f},"grad_norm":1.25,"learning_rate":2e-05,)"
        R"("num_input_tokens_seen":{},"train_tokens_per_second":12345.678,"step_ms":12.5,)"
        R"("host_bytes":1234567890,"time":{:.3f}}})",
        step, 1e-3 * static_cast<double>(step), loss, 1000 * step,
        1.7e9 + 0.5 * static_cast<double>(step));
    out << "\n";
    if (step % 1000 == 0) out << fmt::format("{{\"step\":{},\"eval_loss\":0.5}}\n", step);
  }
}

TEST_F(MetricsFile, OfALongRunKeepsItsExtremesInFewPoints) {
  const int64_t n_steps = std::getenv("FERRY_LONG") ? 1'000'000 : 40'000;
  write_long(file_, n_steps);
  MetricsReader reader(directory_.path(), 1000);
  read_all(reader);
  EXPECT_EQ(reader.n_steps(), n_steps);
  EXPECT_EQ(reader.n_rows(), n_steps + n_steps / 1000);
  for (const auto& [key, series] : reader.curves()) {
    EXPECT_LE(series.points().size(), 1000u) << key;
    int64_t n = 0, last = -1;
    for (const SeriesPoint& point : series.points()) {
      n += point.n_finite;
      EXPECT_GT(point.first_step, last) << key;
      EXPECT_GE(point.last_step, point.first_step) << key;
      last = point.last_step;
    }
    EXPECT_EQ(n, series.n_values()) << key;
  }
  const Series& loss = *reader.find("loss");
  EXPECT_GT(loss.points().size(), 499u);
  const auto with = [&](double SeriesPoint::*extreme, double value) {
    return std::ranges::count(loss.points(), value, extreme);
  };
  EXPECT_EQ(with(&SeriesPoint::max, 77.0), 1);
  EXPECT_EQ(with(&SeriesPoint::min, -5.0), 1);
  double sum = 0;
  for (const SeriesPoint& point : loss.points())
    sum += point.mean * static_cast<double>(point.n_finite);
  EXPECT_NEAR(sum / static_cast<double>(n_steps), 0.498, 0.002);

  // A step more costs its own bytes.
  const std::string more = row(n_steps + 1, 0.5);
  append(more);
  EXPECT_FALSE(reader.poll(more.size()).is_behind);
  EXPECT_EQ(reader.n_steps(), n_steps + 1);

  // Any part of it, as it is in the file.
  std::mt19937_64 random(3);
  for (int i = 0; i < 20; ++i) {
    const auto wanted = static_cast<int64_t>(1 + random() % static_cast<uint64_t>(n_steps));
    std::vector<int64_t> steps;
    reader.read_from_step(wanted, [&](const MetricsRow& row) {
      if (!row.has("eval_loss")) {
        EXPECT_EQ(row.value("num_input_tokens_seen"), 1000.0 * static_cast<double>(row.step));
      }
      steps.push_back(row.step);
      return steps.size() < 3;
    });
    ASSERT_FALSE(steps.empty());
    EXPECT_EQ(steps[0], wanted);
    int64_t n_read = 0, first = 0;
    reader.read_rows(wanted - 1, [&](const MetricsRow& row) {
      if (n_read == 0) first = row.step;
      return ++n_read < 5;
    });
    EXPECT_EQ(n_read, std::min<int64_t>(5, reader.n_rows() - wanted + 1));
    EXPECT_EQ(first, wanted - wanted / 1001);  // after a thousand steps comes an evaluation
  }
  int64_t n = 0;
  reader.read_rows(0, [&](const MetricsRow&) { return ++n, true; });
  EXPECT_EQ(n, reader.n_rows());
  reader.read_rows(reader.n_rows(), [&](const MetricsRow&) { return ++n, true; });
  reader.read_from_step(n_steps + 2, [&](const MetricsRow&) { return ++n, true; });
  EXPECT_EQ(n, reader.n_rows());
}

TEST(SeriesPoints, AreValuesAsLongAsThereAreFew) {
  Series series(4);
  for (int64_t step = 1; step <= 4; ++step)
    series.add(step, static_cast<double>(step));
  EXPECT_EQ(series.values_per_point(), 1);
  EXPECT_EQ(series.points()[3].mean, 4);
  series.add(5, 5);
  EXPECT_EQ(series.values_per_point(), 2);
  ASSERT_EQ(series.points().size(), 3u);
  EXPECT_EQ(series.points()[0].first_step, 1);
  EXPECT_EQ(series.points()[0].last_step, 2);
  EXPECT_EQ(series.points()[0].mean, 1.5);
  EXPECT_EQ(series.points()[2].n_finite, 1);
  series.add(6, std::nan(""));
  EXPECT_EQ(series.points()[2].max, 5);
  EXPECT_EQ(series.points()[2].n_nonfinite, 1);
  EXPECT_TRUE(std::isnan(series.last()));
}

TEST(SeriesPoints, OfTheLargestNumbersAreFinite) {
  Series series(2);
  for (int64_t step = 0; step < 100; ++step)
    series.add(step, step % 2 == 0 ? 1.7e308 : -1.7e308);
  for (const SeriesPoint& point : series.points()) {
    EXPECT_TRUE(std::isfinite(point.mean));
    EXPECT_EQ(point.max, 1.7e308);
  }
}

TEST(SeriesPoints, OfNothingFiniteHaveNoValue) {
  Series series(2);
  for (int64_t step = 0; step < 9; ++step)
    series.add(step, HUGE_VAL);
  for (const SeriesPoint& point : series.points())
    EXPECT_EQ(point.n_finite, 0);
  EXPECT_EQ(series.n_nonfinite(), 9);
}

}  // namespace
}  // namespace ferry::service
