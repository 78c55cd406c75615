// The answer to what a run would take: what is read for it and kept, what changes it, and that it
// asks the planner as training does.

#include "src/service/plan/plan_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "src/base/bytes.h"
#include "src/base/unique_fd.h"
#include "src/config/models/models.h"
#include "src/files/hf/hf_directory.h"
#include "tests/files/test_files.h"
#include "tests/request/settings.h"
#include "tests/train/tiny_model.h"

namespace ferry::service {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class PlanAnswers : public ::testing::Test {
 protected:
  PlanAnswers() {
    test::write_tiny_model(directory_ / "model");
    test::write_tiny_data(data_, 200, 3);
  }
  /** For a card that is not here, whose times are known. */
  config::Config settings(const Settings& more = {}) const {
    Settings all = {{"model", (directory_ / "model").string()}, {"machine", "2080ti-11g"}};
    all.insert(all.end(), more.begin(), more.end());
    return config_of(all);
  }
  config::Config with_data(const Settings& more = {}) const {
    Settings all = {{"dataset", data_.string()}};
    all.insert(all.end(), more.begin(), more.end());
    return settings(all);
  }
  std::string text() const {
    std::ifstream in(data_);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& text) const { std::ofstream(data_, std::ios::trunc) << text; }

  test::TempDir directory_;
  fs::path data_ = directory_ / "data.tsv";
  Planner planner_;
};

TEST_F(PlanAnswers, WithoutDataCountEveryTextAsMaxLength) {
  const PlanAnswer answer = planner_.answer(settings());
  ASSERT_TRUE(answer.plan);
  EXPECT_TRUE(answer.fits());
  EXPECT_EQ(answer.verdict(), Verdict::fits);
  EXPECT_THAT(answer.machine.name, HasSubstr("2080ti-11g, by its profile"));
  EXPECT_EQ(answer.request.max_length, 32);
  EXPECT_FALSE(answer.request.text_tokens);
  EXPECT_FALSE(answer.texts.n_steps || answer.texts.mean_tokens);
  ASSERT_TRUE(answer.time);
  EXPECT_EQ(answer.time->tokens_per_text, 32);
  EXPECT_FALSE(answer.time->run_s);
  EXPECT_GT(answer.time->step_s, 0);
}

TEST_F(PlanAnswers, AskThePlannerAsTrainingDoes) {
  const config::Config config =
      with_data({{"eval_fraction", "0.1"}, {"epochs", "2.5"}, {"train_batch_size", "8"}});
  const PlanAnswer answer = planner_.answer(config);
  // As the trainer does before its first step, in its order.
  const HfDirectory model = HfDirectory::open(directory_ / "model");
  const Tokenizer tokenizer = Tokenizer::open(model.path());
  const Texts texts = texts_to_train_on(config, model.config(), &tokenizer);
  const Data data =
      tokenize(texts, tokenizer, token_settings(config, *texts.task, model.path(), 32, 2));
  const CountedTexts counted = count_texts(config, sample_counts_of(data), 32, /*trains=*/true);
  ModelTable table = make_model_table(config, model.config(), data.task->head(),
                                      data.task->n_labels(), answer.machine.machine);
  const PlanRequest request =
      make_plan_request(config, table, answer.machine.machine, /*trains=*/true, counted, {});
  EXPECT_EQ(answer.model.n_params(), table.n_params());
  EXPECT_EQ(answer.request.max_length, request.max_length);
  EXPECT_LT(answer.request.max_length, 32);
  EXPECT_EQ(answer.request.host_reserved_bytes, request.host_reserved_bytes);
  for (const int64_t micro_batch : {1, 2, 8}) {
    EXPECT_EQ(answer.request.text_tokens(8, micro_batch).most,
              request.text_tokens(8, micro_batch).most);
    EXPECT_EQ(answer.request.text_tokens(8, micro_batch).typical,
              request.text_tokens(8, micro_batch).typical);
  }
  EXPECT_EQ(answer.texts.n_steps, counted.steps.total);
  EXPECT_EQ(answer.texts.n_steps, 58);  // 180 texts in 23 steps, twice and a half
  EXPECT_DOUBLE_EQ(*answer.texts.mean_tokens, static_cast<double>(data.train.n_tokens()) / 180);
  EXPECT_DOUBLE_EQ(*answer.time->run_s, 58 * answer.time->step_s);
  const Plan plan = make_plan(table, request);
  EXPECT_EQ(answer.plan->layout.n_bytes, plan.layout.n_bytes);
  EXPECT_EQ(answer.plan->why, plan.why);
}

/** Sees who opens a file, from its construction on. */
class Opened {
 public:
  explicit Opened(const fs::path& file) : events_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    EXPECT_GE(::inotify_add_watch(events_.get(), file.c_str(), IN_OPEN), 0);
  }
  bool was() const {
    char event[4096];
    return ::read(events_.get(), event, sizeof event) > 0;
  }

 private:
  UniqueFd events_;
};

TEST_F(PlanAnswers, ReadTheDataAgainOnlyWhereTheyChanged) {
  const Opened opened(data_);
  const PlanAnswer first = planner_.answer(with_data());
  EXPECT_TRUE(opened.was());
  const PlanAnswer again = planner_.answer(with_data({{"gpu_memory", "6GiB"},
                                                      {"train_batch_size", "16"},
                                                      {"learning_rate", "1e-3"},
                                                      {"dtype", "fp16"},
                                                      {"host_memory", "5GiB"}}));
  EXPECT_FALSE(opened.was());
  EXPECT_EQ(again.texts.mean_tokens, first.texts.mean_tokens);
  EXPECT_EQ(*first.texts.n_steps, 21);  // three times 200 in 7 steps of 32
  EXPECT_EQ(*again.texts.n_steps, 39);
  EXPECT_NE(again.request.gpu_budget_bytes, first.request.gpu_budget_bytes);
  write(text() + "red red red red red red red red red red\tred\n");
  EXPECT_GT(planner_.answer(with_data()).texts.mean_tokens, first.texts.mean_tokens);
  EXPECT_TRUE(opened.was());
}

TEST_F(PlanAnswers, FollowTheSettingsOfTheData) {
  const PlanAnswer first = planner_.answer(with_data());
  const PlanAnswer held_out = planner_.answer(with_data({{"eval_fraction", "0.5"}}));
  EXPECT_LT(held_out.texts.n_steps, first.texts.n_steps);
  const PlanAnswer cut = planner_.answer(with_data({{"max_length", "5"}}));
  EXPECT_LT(cut.texts.mean_tokens, first.texts.mean_tokens);
  EXPECT_LE(cut.request.max_length, 5);
  // Back again, as by a planner that knows nothing.
  const PlanAnswer back = planner_.answer(with_data());
  const PlanAnswer anew = Planner().answer(with_data());
  EXPECT_EQ(back.texts.mean_tokens, anew.texts.mean_tokens);
  EXPECT_EQ(back.plan->layout.n_bytes, anew.plan->layout.n_bytes);
  EXPECT_EQ(back.notes, anew.notes);
}

TEST_F(PlanAnswers, ComeAtOnceWhereNoDataAreToBeRead) {
  const PlanAnswer at_once = planner_.answer(with_data(), {.reads_data = false});
  EXPECT_FALSE(at_once.texts.n_steps || at_once.texts.mean_tokens);
  EXPECT_EQ(at_once.request.max_length, 32);
  const PlanAnswer counted = planner_.answer(with_data());
  ASSERT_TRUE(counted.texts.mean_tokens);
  const PlanAnswer known =
      planner_.answer(with_data({{"gpu_memory", "6GiB"}}), {.reads_data = false});
  EXPECT_EQ(known.texts.mean_tokens, counted.texts.mean_tokens);
  const PlanAnswer other_length =
      planner_.answer(with_data({{"max_length", "6"}}), {.reads_data = false});
  EXPECT_FALSE(other_length.texts.mean_tokens);
  EXPECT_FALSE(other_length.texts.n_steps);
}

TEST_F(PlanAnswers, WithoutATokenizerSayHowTextsCount) {
  fs::remove(directory_ / "model/vocab.txt");
  std::vector<std::string> heard;
  const PlanAnswer answer = planner_.answer(
      with_data(), {.tell = [&](const std::string& note) { heard.push_back(note); }});
  EXPECT_THAT(answer.notes, Contains(HasSubstr("each text counts as 32 tokens")));
  EXPECT_EQ(heard, answer.notes);
  EXPECT_EQ(answer.texts.n_steps, 21);
  EXPECT_FALSE(answer.texts.mean_tokens);
}

TEST_F(PlanAnswers, ThatDoNotFitHaveTheNearestPlanAndTheReason) {
  const PlanAnswer answer = planner_.answer(
      settings({{"model", "bert-large-uncased"}, {"host_memory", "2GiB"}, {"placement", "host"}}));
  ASSERT_TRUE(answer.refusal);
  EXPECT_EQ(answer.refusal->fault(), Fault::does_not_fit);
  ASSERT_TRUE(answer.plan);
  EXPECT_GT(host_bytes_of(*answer.plan, true), answer.request.host_budget_bytes);
  EXPECT_FALSE(answer.time);
  EXPECT_FALSE(answer.fits());
  EXPECT_EQ(answer.verdict(), Verdict::does_not_fit);
  EXPECT_THAT(answer.notes, Contains(HasSubstr("is not on this machine")));
}

TEST_F(PlanAnswers, AreTightWhereLittleIsLeft) {
  const Settings on_host = {{"model", "bert-large-uncased"}, {"placement", "host"}};
  const PlanAnswer roomy = planner_.answer(settings(on_host));
  ASSERT_EQ(roomy.verdict(), Verdict::fits);
  Settings tight = on_host;
  const int64_t needed =
      host_bytes_of(*roomy.plan, true) + roomy.request.host_reserved_bytes + 8 * kMiB;
  tight.emplace_back("host_memory", std::to_string(needed));
  EXPECT_EQ(planner_.answer(settings(tight)).verdict(), Verdict::tight);
}

TEST_F(PlanAnswers, TellTheThirdPlaceAndItsWear) {
  EXPECT_FALSE(planner_.answer(settings()).nvme);
  const Settings on_drive = {{"model", "bert-large-uncased"},
                             {"placement", "nvme"},
                             {"nvme_path", "/mnt/nvme"},
                             {"nvme_endurance", "100TB"}};
  const PlanAnswer answer = planner_.answer(settings(on_drive));
  ASSERT_TRUE(answer.plan && answer.nvme && answer.time);
  const PlannedNvme& nvme = *answer.nvme;
  EXPECT_EQ(nvme.need.n_blocks, answer.plan->n_on_nvme);
  EXPECT_EQ(nvme.n_copies, answer.request.n_nvme_copies);
  EXPECT_FALSE(nvme.budget_bytes);
  ASSERT_TRUE(nvme.life);
  EXPECT_DOUBLE_EQ(*nvme.life->seconds, nvme.life->n_steps * answer.time->step_s);
  EXPECT_EQ(answer.verdict(), Verdict::fits);
  Settings tight = on_drive;
  tight.emplace_back("nvme_memory", std::to_string(nvme.need.store_bytes + kMiB));
  EXPECT_EQ(planner_.answer(settings(tight)).verdict(), Verdict::tight);
}

TEST_F(PlanAnswers, OnACpuKnowItsOwnResources) {
  const PlanAnswer answer = planner_.answer(settings({{"device", "cpu"}}));
  EXPECT_FALSE(answer.request.has_gpu);
  if (answer.time) {
    EXPECT_STREQ(answer.time->resources[0].name, "CPU");
  }
}

TEST_F(PlanAnswers, LookForGainsOnlyWhereAsked) {
  const Settings small = {{"model", "bert-large-uncased"}, {"gpu_memory", "3GiB"}};
  const PlanAnswer with = planner_.answer(settings(small));
  ASSERT_TRUE(with.time);
  EXPECT_THAT(with.time->gains, Not(IsEmpty()));
  const PlanAnswer without = planner_.answer(settings(small), {.looks_for_gains = false});
  EXPECT_THAT(without.time->gains, IsEmpty());
  EXPECT_EQ(without.time->step_s, with.time->step_s);
}

TEST_F(PlanAnswers, OfferFewerBitsOfFrozenWeightsWhereTheyHelp) {
  const auto notes = [&](const Settings& more) {
    Settings all = {{"model", "Qwen/Qwen3-8B"}, {"machine", "3060-12g"},   {"task", "causal-lm"},
                    {"tuning", "lora"},         {"train_batch_size", "1"}, {"max_length", "256"},
                    {"host_memory", "32GiB"}};
    all.insert(all.end(), more.begin(), more.end());
    return planner_.answer(config_of(all)).notes;
  };
  const auto offer = Contains(HasSubstr("with quantization = nf4"));
  EXPECT_THAT(notes({}), Contains(HasSubstr("with quantization = nf4 a step would take")));
  EXPECT_THAT(notes({{"host_memory", "8GiB"}, {"gpu_memory", "6GiB"}}),
              Contains(HasSubstr("with quantization = nf4 it would fit")));
  EXPECT_THAT(notes({{"quantization", "nf4"}}), Not(offer));
  EXPECT_THAT(notes({{"machine", "4090-24g"}, {"train_batch_size", "64"}}), Not(offer));
}

/** A model whose files are quantised: what that takes, and what it would take in 16 bits. */
TEST_F(PlanAnswers, SayWhatStoredBlocksTake) {
  auto config = nlohmann::json::parse(config::known_model_config("Qwen/Qwen3-8B").value());
  config["quantization_config"] = {{"quant_method", "mxfp4"}};
  fs::create_directories(directory_ / "quantised");
  std::ofstream(directory_ / "quantised/config.json") << config.dump();
  const auto answer = [&](const Settings& more) {
    Settings all = {{"model", (directory_ / "quantised").string()},
                    {"machine", "3060-12g"},
                    {"task", "causal-lm"},
                    {"tuning", "lora"},
                    {"train_batch_size", "1"},
                    {"max_length", "256"},
                    {"host_memory", "32GiB"}};
    all.insert(all.end(), more.begin(), more.end());
    return planner_.answer(config_of(all));
  };
  const PlanAnswer stored = answer({}), whole = answer({{"quantization", "none"}});
  EXPECT_EQ(stored.config.text("quantization"), "stored");
  EXPECT_THAT(stored.notes, Contains(HasSubstr("as mxfp4; the quantised ones take")));
  EXPECT_THAT(whole.notes, Contains(HasSubstr("are quantised (mxfp4)")));
  EXPECT_THAT(whole.notes, Contains(HasSubstr("with quantization = stored a step would take")));
  // 17 bytes for 32 values in place of 64, but for embeddings and head.
  const auto weight_bytes = [](const PlanAnswer& its) {
    int64_t n_bytes = 0;
    for (const BlockTable& block : its.model.blocks)
      if (block.kind == BlockKind::layer) n_bytes += 2 * block.n_segment_elements;
    return static_cast<double>(n_bytes);
  };
  EXPECT_NEAR(weight_bytes(stored) / weight_bytes(whole), 17.0 / 64, 0.01);
  EXPECT_LT(stored.time->step_s, whole.time->step_s);
}

TEST_F(PlanAnswers, ThrowWhatIsWrongWithTheSettings) {
  const auto fault_of = [&](const Settings& more) {
    try {
      planner_.answer(settings(more));
    } catch (const Error& error) {
      return error.fault();
    }
    return Fault::diverged;
  };
  EXPECT_EQ(fault_of({{"machine", "no-such-card"}}), Fault::usage);
  EXPECT_EQ(fault_of({{"model", "/no/model"}}), Fault::data);
  EXPECT_EQ(fault_of({{"dataset", "/no/data.tsv"}}), Fault::data);
  EXPECT_EQ(fault_of({{"max_length", "999"}}), Fault::usage);
  EXPECT_TRUE(planner_.answer(with_data()).fits()) << "an error leaves the planner as it was";
}

}  // namespace
}  // namespace ferry::service
