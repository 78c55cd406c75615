// Runs whose processes share the tokens (by heads of attention, or in a ring) or the layers of each
// micro-batch. They give one process's
// run but for the rounding of sums, and the same bits each time, whatever the places.

#include <cmath>
#include <map>

#include "src/files/hf/checkpoint_reader.h"
#include "tests/train/run_test.h"

namespace ferry::test {
namespace {

class SharedWork : public RunTest {
 protected:
  static void SetUpTestSuite() {
    RunTest::SetUpTestSuite();
    write_tiny_language_model(root_ / "decoder");
    for (const auto& [name, n, seed] : {std::tuple("", 200, 1), std::tuple("_dev", 40, 2)}) {
      write_tiny_documents(root_ / ("docs" + std::string(name) + ".jsonl"), n, seed);
      write_tiny_tags(root_ / ("tags" + std::string(name) + ".jsonl"), n, seed);
    }
  }

  /** A run of some steps with the task's data. */
  static std::vector<std::string> run_of(const std::string& task,
                                         const std::string& run,
                                         std::vector<std::string> more) {
    static const std::map<std::string, std::vector<std::string>> kTasks = {
        {"causal-lm",
         {"--model=decoder", "--task=causal-lm", "--dataset=docs.jsonl",
          "--eval-dataset=docs_dev.jsonl", "--max-length=16"}},
        {"mlm",
         {"--task=mlm", "--dataset=docs.jsonl", "--eval-dataset=docs_dev.jsonl",
          "--max-length=16"}},
        {"ner", {"--task=ner", "--dataset=tags.jsonl", "--eval-dataset=tags_dev.jsonl"}},
        {"classification", {}}};
    for (const std::string& word : kTasks.at(task))
      more.push_back(word);
    for (const char* word : {"--max-steps=20", "--save-steps=10"})
      more.emplace_back(word);
    return new_run(run, more);
  }
  static void expect_to_run(const std::vector<std::string>& words) {
    ASSERT_EQ(ferry(words).code(), 0) << text_of(root_ / "err");
  }

  /** All weights that the run ends with. */
  static std::vector<float> weights_of(const std::string& run) {
    const auto file = CheckpointReader::open(root_ / run / "final");
    std::vector<float> weights;
    for (const StoredTensor* tensor : file.tensors())
      file.read_f32(*tensor, [&](std::span<const float> values, int64_t) {
        weights.insert(weights.end(), values.begin(), values.end());
      });
    return weights;
  }

  /** AdamW turns the rounding of a gradient that is nearly zero into a step of any size up to the
   * rate, so a few weights may differ by that; their mean may not. */
  static void expect_like(const std::string& a, const std::string& b) {
    const std::vector<double> of_a = losses_of(a), of_b = losses_of(b);
    ASSERT_EQ(of_a.size(), of_b.size());
    ASSERT_GE(of_a.size(), 20U);
    for (size_t i = 0; i < of_a.size(); ++i)
      EXPECT_NEAR(of_a[i], of_b[i], 1e-5 * std::abs(of_a[i])) << b << ", loss " << i;
    const std::vector<float> in_a = weights_of(a), in_b = weights_of(b);
    ASSERT_EQ(in_a.size(), in_b.size());
    double difference = 0, size = 0;
    for (size_t i = 0; i < in_a.size(); ++i) {
      difference += std::abs(static_cast<double>(in_a[i]) - static_cast<double>(in_b[i]));
      size += std::abs(static_cast<double>(in_a[i]));
    }
    EXPECT_LT(difference, 1e-4 * size) << b;
  }
};

/** Runs that share the tokens, in both ways, and runs that share the layers. */
class SharedWorkOf : public SharedWork, public ::testing::WithParamInterface<const char*> {
 protected:
  static std::vector<std::string> options() {
    if (!shares_tokens()) return {"--tp-size=2"};
    if (std::string(GetParam()) == "sp") return {"--sp-size=2"};
    return {"--sp-size=2", "--sp-attention=ring"};
  }
  static bool shares_tokens() { return std::string(GetParam()) != "tp"; }
  static std::string named(const std::string& run) { return run + "_" + GetParam(); }
  static void expect_to_run_on(const std::string& gpus,
                               const std::string& task,
                               const std::string& run,
                               std::vector<std::string> more = {}) {
    more.push_back(gpus);
    for (const std::string& option : options())
      more.push_back(option);
    expect_to_run(run_of(task, named(run), more));
  }
};

TEST_P(SharedWorkOf, GivesTheRunOfOneProcess) {
  std::vector<std::string> tasks = {"causal-lm", "mlm", "ner"};
  if (!shares_tokens()) tasks.emplace_back("classification");
  for (const std::string& task : tasks) {
    SCOPED_TRACE(task);
    if (!fs::exists(root_ / ("one_" + task))) expect_to_run(run_of(task, "one_" + task, {}));
    expect_to_run_on("--gpus=2", task, task);
    const std::string what = shares_tokens() ? "tokens" : "layers";
    EXPECT_NE(text_of(root_ / "err").find("each 2 of them share the " + what), std::string::npos)
        << text_of(root_ / "err");
    expect_like("one_" + task, named(task));
  }
  // The same bits again, in all places, and beside replicas and stages.
  const std::vector<std::vector<std::string>> kOthers = {
      {"--gpus=2", "--placement=resident"},
      {"--gpus=2", "--placement=host"},
      {"--gpus=2", "--activations=recompute"},
      {"--gpus=2", "--accumulation-order=vertical"},
      {"--gpus=2", "--zero-level=3"},
      {"--gpus=4"},
      {"--gpus=4", "--pipe-size=2"}};
  for (size_t i = 0; i < kOthers.size(); ++i) {
    const std::string run = "again_" + std::to_string(i);
    SCOPED_TRACE(kOthers[i].back());
    expect_to_run_on(kOthers[i].front(), "causal-lm", run,
                     {kOthers[i].begin() + 1, kOthers[i].end()});
    EXPECT_EQ(curve_of(named("causal-lm")), curve_of(named(run)));
    EXPECT_TRUE(text_of(root_ / named("causal-lm") / "final/model.safetensors") ==
                text_of(root_ / named(run) / "final/model.safetensors"));
  }
  expect_to_run_on("--gpus=4", "causal-lm", "sums", {"--zero-level=3", "--reduction=fast"});
  expect_like("one_causal-lm", named("sums"));
}

TEST_P(SharedWorkOf, GoesOnWithOtherNumbers) {
  if (!fs::exists(root_ / "one_mlm")) expect_to_run(run_of("mlm", "one_mlm", {}));
  std::vector<std::string> words = options();
  words.emplace_back("--gpus=2");
  pid_t leader = start(run_of("mlm", named("others"), words));
  wait_for_line(named("others"), 11);
  ::kill(leader, SIGKILL);
  EXPECT_TRUE(wait_for(leader).was_killed());
  // The other way drops the option that the run has kept, and so does one process.
  const std::string other = shares_tokens() ? "--tp-size=2" : "--sp-size=2";
  leader = start(go_on(named("others"), {"--gpus=2", other}));
  wait_for_line(named("others"), 16);
  ::kill(leader, SIGKILL);
  EXPECT_TRUE(wait_for(leader).was_killed());
  expect_to_run(go_on(named("others"), {"--gpus=1"}));
  expect_like("one_mlm", named("others"));
}

INSTANTIATE_TEST_SUITE_P(Ways,
                         SharedWorkOf,
                         ::testing::Values("sp", "ring", "tp"),
                         [](const auto& param) { return std::string(param.param); });

TEST_F(SharedWork, SamplesOfSharedLayersAreThoseOfOneProcess) {
  const std::vector<std::string> samples = {"--sample-prompts=the old", "--sample-steps=10",
                                            "--max-new-tokens=8"};
  expect_to_run(run_of("causal-lm", "samples_one", samples));
  std::vector<std::string> shared = samples;
  shared.insert(shared.end(), {"--gpus=2", "--tp-size=2"});
  expect_to_run(run_of("causal-lm", "samples_shared", shared));
  int n_files = 0;
  for (const auto& file : fs::recursive_directory_iterator(root_ / "samples_one/samples")) {
    if (!file.is_regular_file()) continue;
    const fs::path other =
        root_ / "samples_shared/samples" / fs::relative(file.path(), root_ / "samples_one/samples");
    EXPECT_EQ(text_of(file.path()), text_of(other)) << other;
    ++n_files;
  }
  EXPECT_GT(n_files, 0);
}

TEST_F(SharedWork, RefuseWhatTheyCannotDo) {
  const auto refusal = [](const std::vector<std::string>& words) {
    const Outcome outcome = ferry(words);
    EXPECT_EQ(outcome.code(), 2) << outcome.err;
    return outcome.err;
  };
  const auto of_decoder = [&](std::vector<std::string> more) {
    return refusal(run_of("causal-lm", "refused", std::move(more)));
  };
  EXPECT_NE(
      of_decoder({"--gpus=3", "--sp-size=3", "--sp-attention=heads"}).find("4 heads of attention"),
      std::string::npos);
  EXPECT_NE(of_decoder({"--gpus=2", "--sp-attention=ring"}).find("no GPUs share texts"),
            std::string::npos);
  EXPECT_NE(of_decoder({"--gpus=3", "--sp-size=2"}).find("a divisor of gpus / pipe_size"),
            std::string::npos);
  EXPECT_NE(of_decoder({"--sp-size=2"}).find("the run has 1 GPU"), std::string::npos);
  EXPECT_NE(of_decoder({"--gpus=2", "--sp-size=2", "--gpu-split=blocks"}).find("gpu_split"),
            std::string::npos);
  EXPECT_NE(of_decoder({"--gpus=2", "--sp-size=2", "--gpu-shares=2,1"}).find("gpu_shares"),
            std::string::npos);
  EXPECT_NE(of_decoder({"--gpus=2", "--sp-size=2", "--sample-prompts=the"}).find("sample_prompts"),
            std::string::npos);
  EXPECT_NE(of_decoder({"--gpus=3", "--tp-size=3"}).find("4 heads of attention"),
            std::string::npos);
  EXPECT_NE(of_decoder({"--gpus=4", "--tp-size=2", "--sp-size=2"}).find("not both"),
            std::string::npos);
  EXPECT_NE(refusal(new_run("refused", {"--gpus=2", "--sp-size=2"})).find("reads whole texts"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(root_ / "refused"));
}

}  // namespace
}  // namespace ferry::test
