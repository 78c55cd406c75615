// Planning in a thread: the latest question wins, data that were counted are kept, and the numbers
// are those of `ferry plan --json`.

#include "gui/models/plan/plan_thread.h"

#include <gtest/gtest.h>

#include <QProcess>
#include <nlohmann/json.hpp>

#include "gui/models/plan/plan_picture.h"
#include "gui/models/process/ferry_command.h"
#include "gui/models/text.h"
#include "tests/files/test_files.h"
#include "tests/gui/waiting.h"
#include "tests/request/settings.h"
#include "tests/train/tiny_model.h"

namespace ferry::gui {
namespace {

using ferry::test::TempDir;
using Outcome = std::shared_ptr<const PlanOutcome>;

class PlanThreads : public testing::Test {
 protected:
  PlanThreads() {
    ferry::test::write_tiny_model(directory_ / "model");
    ferry::test::write_tiny_data(directory_ / "data.tsv", 300, 3);
    QObject::connect(&thread_, &PlanThread::answered, &thread_,
                     [this](const Outcome& outcome) { outcomes_.push_back(outcome); });
  }
  config::Config settings(const Settings& more = {}) const {
    Settings all = {{"model", (directory_ / "model").string()}, {"machine", "2080ti-11g"}};
    all.insert(all.end(), more.begin(), more.end());
    return config_of(all);
  }
  const Outcome& last_of(const config::Config& config) {
    thread_.ask(config);
    EXPECT_TRUE(wait_until([&] { return !thread_.is_waiting(); }));
    return outcomes_.back();
  }
  /** bert-large's shape is known by its name. */
  static config::Config large(const Settings& more = {}) {
    Settings all = {{"model", "bert-large-uncased"}, {"machine", "2080ti-11g"}};
    all.insert(all.end(), more.begin(), more.end());
    return config_of(all);
  }

  TempDir directory_;
  std::vector<Outcome> outcomes_;
  PlanThread thread_;
};

TEST_F(PlanThreads, AnswersAtOnceAndThenWithTheDataCounted) {
  last_of(settings({{"dataset", (directory_ / "data.tsv").string()}}));
  ASSERT_GE(outcomes_.size(), 3u);
  EXPECT_FALSE(outcomes_.front()->has_counted_data);
  EXPECT_FALSE(outcomes_.front()->is_complete);
  EXPECT_TRUE(outcomes_[1]->has_counted_data);
  EXPECT_TRUE(outcomes_.back()->is_complete);
  EXPECT_TRUE(outcomes_.back()->answer->time->run_s);
  // They are kept: the first answer to another batch size has them.
  outcomes_.clear();
  last_of(settings({{"dataset", (directory_ / "data.tsv").string()}, {"train_batch_size", "8"}}));
  EXPECT_TRUE(outcomes_.front()->has_counted_data);
  EXPECT_EQ(outcomes_.front()->answer->request.train_batch_size, 8);
}

TEST_F(PlanThreads, TheLatestQuestionWins) {
  for (int batch = 1; batch <= 40; ++batch)
    thread_.ask(settings({{"train_batch_size", std::to_string(batch)}}));
  ASSERT_TRUE(wait_until([&] { return !thread_.is_waiting(); }));
  for (const Outcome& outcome : outcomes_)
    EXPECT_EQ(outcome->answer->request.train_batch_size, 40) << "an answer that nobody waits for";
  EXPECT_TRUE(outcomes_.back()->is_complete);
}

TEST_F(PlanThreads, FaultsAreAnswers) {
  for (const auto& [wrong, words] : std::vector<std::pair<config::Config, std::string>>{
           {settings({{"dataset", "/no/such.tsv"}}), "/no/such.tsv"},
           {config_of({{"model", "/no/model"}}), "/no/model"},
           {settings({{"max_length", "4096"}}), "at most 32"},
           {settings({{"machine", "abacus"}}), "abacus"}}) {
    const Outcome& outcome = last_of(wrong);
    ASSERT_TRUE(outcome->error);
    EXPECT_NE(std::string(outcome->error->what()).find(words), std::string::npos)
        << outcome->error->what();
  }
  directory_.write("other/config.json", R"({"model_type": "mamba", "hidden_size": 8})");
  EXPECT_TRUE(last_of(config_of({{"model", (directory_ / "other").string()}}))->error);
  EXPECT_TRUE(last_of(settings())->answer) << "and the next question is answered";
}

TEST_F(PlanThreads, ARefusalComesWithChangesThatFit) {
  const Outcome outcome = last_of(large({{"gpu_memory", "1500MiB"}, {"host_memory", "3GiB"}}));
  ASSERT_TRUE(outcome->answer);
  ASSERT_TRUE(outcome->answer->refusal);
  ASSERT_FALSE(outcome->changes.empty()) << outcome->answer->refusal->what();
  for (const PlanChange& change : outcome->changes) {
    config::Config changed = large({{"gpu_memory", "1500MiB"}, {"host_memory", "3GiB"}});
    for (const auto& [key, value] : change.settings)
      changed.set(key.toStdString(), value.toStdString(), {});
    EXPECT_FALSE(last_of(changed)->answer->refusal) << PlanPicture::text_of(change).toStdString();
  }
}

TEST_F(PlanThreads, EachBarHasTheScaleOfItsNumbers) {
  for (const config::Config& config :
       {large(), settings({{"machine", "auto"}, {"device", "cpu"}})}) {
    const Outcome& outcome = last_of(config);
    ASSERT_TRUE(outcome->answer);
    const PlanPicture picture(*outcome);
    int n_limited = 0;
    for (const Bar& bar : picture.memory) {
      if (bar.limit <= 0) continue;
      ++n_limited;
      const double shown = bar.total() / bar.scale, said = bar.total() / bar.limit;
      EXPECT_NEAR(shown, said, 0.05) << bar.name.toStdString() << ": " << bar.caption.toStdString();
    }
    EXPECT_GE(n_limited, 2);
  }
}

TEST(PlanChanges, AreReadFromTheRefusal) {
  using Settings = std::vector<std::pair<QString, QString>>;
  const auto changes = changes_in_words(
      "[plan] the model does not fit: it needs 3 GiB; largest: saved on the GPU, 2 GiB - it fits "
      "without placement = host and with max_length = 256, slots = 2, or with at least gpu_memory "
      "= 12.4GiB and host_memory = 812MiB, or with optim = adamw_8bit; else only with at least "
      "host_memory = 900GiB, more than this machine can give");
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(changes[0], (Settings{{"placement", "auto"}, {"max_length", "256"}, {"slots", "2"}}));
  EXPECT_EQ(changes[1], (Settings{{"gpu_memory", "12.4GiB"}, {"host_memory", "812MiB"}}));
  EXPECT_EQ(changes[2], (Settings{{"optim", "adamw_8bit"}}));
  EXPECT_TRUE(changes_in_words("it would fit with at least gpu_memory = 1GiB, more than").empty());
}

/** The bars and words of the third place. */
void expect_drive(const PlanPicture& picture, const nlohmann::json& json) {
  const Bar& drive = picture.memory[picture.memory.size() - 2];
  EXPECT_EQ(drive.name, "NVMe");
  EXPECT_EQ(drive.total(), json["nvme"]["store_bytes"].get<double>());
  ASSERT_EQ(picture.time.size(), 6u);
  EXPECT_DOUBLE_EQ(picture.time[4].total(), json["time"]["nvme_read_s"]);
  EXPECT_DOUBLE_EQ(picture.time[5].total(), json["time"]["nvme_write_s"]);
  EXPECT_TRUE(picture.summary.contains("NVMe, a step: ")) << picture.summary.toStdString();
  EXPECT_TRUE(picture.summary.contains("of training without a pause"));
  EXPECT_FALSE(picture.notes.filter("is worn after").isEmpty());
}

TEST_F(PlanThreads, ShowTheFiguresOfFerryPlan) {
  const auto ferry = find_ferry();
  if (!ferry || !std::filesystem::exists(*ferry)) GTEST_SKIP() << "no ferry to compare with";
  for (const config::Config& config :
       {settings({{"dataset", (directory_ / "data.tsv").string()}, {"epochs", "2"}}), large(),
        large({{"gpu_memory", "2GiB"}}),
        large({{"placement", "nvme"}, {"nvme_path", "/mnt/nvme"}, {"nvme_endurance", "1TB"}}),
        settings({{"machine", "auto"}, {"device", "cpu"}, {"host_memory", "4GiB"}})}) {
    QStringList words = {"plan", "--json"};
    words += arguments_of(config, config::kPlan);
    QProcess process;
    process.start(path_text(*ferry), words);
    ASSERT_TRUE(process.waitForFinished(60000));
    const auto json = nlohmann::json::parse(process.readAllStandardOutput().toStdString());
    const Outcome outcome = last_of(config);
    ASSERT_TRUE(outcome->answer);
    const PlanPicture picture(*outcome);
    EXPECT_EQ(outcome->answer->fits(), json["fits"]);
    const bool has_gpu = json["has_gpu"];
    const double reserved = json["host_reserved_bytes"];
    const nlohmann::json& nvme = json["nvme"];
    ASSERT_EQ(picture.memory.size(), (has_gpu ? 4u : 2u) + (nvme.is_null() ? 0u : 1u));
    if (has_gpu) {
      const double gpu_reserved = json["gpu_reserved_bytes"];
      EXPECT_EQ(picture.memory[0].total(), json["gpu_bytes"].get<double>() + gpu_reserved);
      EXPECT_EQ(picture.memory[0].limit, json["gpu_budget_bytes"].get<double>() + gpu_reserved);
      EXPECT_EQ(picture.memory[1].total(), json["host_bytes"].get<double>());
      EXPECT_EQ(picture.memory[2].total(), reserved);
    } else {
      EXPECT_EQ(picture.memory[0].total(), json["host_bytes"].get<double>() + reserved);
    }
    EXPECT_EQ(picture.memory.back().total(), json["disk"]["bytes"].get<double>());
    double rows = 0;
    for (const auto& row : json["rows"])
      rows += row["bytes"].get<double>();
    double drawn = 0;
    for (size_t i = 0; i + 1 < picture.memory.size(); ++i)
      for (const BarSegment& segment : picture.memory[i].segments)
        if (segment.name != "more copies of them" && segment.name != "driver and kernels" &&
            segment.name != "process, libraries, texts")
          drawn += segment.value;
    EXPECT_EQ(drawn, rows) << "every byte of the plan is in a bar";
    ASSERT_EQ(picture.time.empty(), json["time"].is_null());
    if (picture.time.empty()) continue;
    EXPECT_DOUBLE_EQ(picture.time[0].limit, json["time"]["step_s"]);
    EXPECT_DOUBLE_EQ(picture.time[0].total(), json["time"]["compute_s"]);
    EXPECT_DOUBLE_EQ(picture.time[has_gpu ? 3 : 1].total(), json["time"]["host_s"]);
    if (!nvme.is_null()) expect_drive(picture, json);
    int n_binding = 0;
    for (const Bar& bar : picture.time)
      n_binding += bar.caption.endsWith("limits the step");
    EXPECT_EQ(n_binding, 1);
  }
}

TEST_F(PlanThreads, AnotherBudgetIsPlanned) {
  ASSERT_TRUE(last_of(large())->answer);
  double longest = 0;
  for (const char* budget : {"9GiB", "7GiB", "5GiB", "3GiB"}) {
    outcomes_.clear();
    const double begin = cpu_ms(CLOCK_PROCESS_CPUTIME_ID);
    thread_.ask(large({{"gpu_memory", budget}}));
    ASSERT_TRUE(wait_until([&] { return !outcomes_.empty(); }));
    longest = std::max(longest, cpu_ms(CLOCK_PROCESS_CPUTIME_ID) - begin);
    ASSERT_TRUE(wait_until([&] { return !thread_.is_waiting(); }));
  }
  tell_time("another budget is planned and delivered", longest, 200);
}

}  // namespace
}  // namespace ferry::gui
