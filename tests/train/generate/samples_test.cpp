// Samples of a training by the whole program: they change no bit of it, wherever its bytes live and
// however often it is killed; they are what `ferry generate` gives; and what cannot be sampled.

#include <algorithm>
#include <map>
#include <random>

#include "tests/train/run_test.h"

namespace ferry::test {
namespace {

class Samples : public RunTest {
 protected:
  static void SetUpTestSuite() {
    RunTest::SetUpTestSuite();
    write_tiny_language_model(root_ / "decoder");
    write_tiny_documents(root_ / "docs.jsonl", 200, 1);
    write_tiny_documents(root_ / "docs_dev.jsonl", 40, 2);
    // The third has more tokens than a text of the training.
    std::ofstream(root_ / "prompts.txt") << "the old\na bird\n" << long_prompt() << "\nred\n";
  }
  static std::string long_prompt() {
    std::string text = "the";
    for (int i = 0; i < 6; ++i)
      text += " old red car is";
    return text;
  }

  static std::vector<std::string> decoder_run(const std::string& run,
                                              const std::vector<std::string>& more = {}) {
    auto words = new_run(run, {"--model=decoder", "--task=causal-lm", "--dataset=docs.jsonl",
                               "--eval-dataset=docs_dev.jsonl", "--max-length=16"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static std::vector<std::string> sampled_run(const std::string& run) {
    return decoder_run(run, {"--sample-prompts=prompts.txt", "--sample-steps=10",
                             "--max-new-tokens=12", "--temperature=1", "--top-k=5"});
  }

  static std::vector<nlohmann::json> rows_of(const fs::path& file) {
    std::istringstream lines(text_of(file));
    std::vector<nlohmann::json> rows;
    for (std::string line; std::getline(lines, line);)
      rows.push_back(nlohmann::json::parse(line));
    return rows;
  }
  static std::vector<nlohmann::json> samples_after(const std::string& run, int step) {
    std::string number = std::to_string(step);
    number.insert(0, 6 - number.size(), '0');
    return rows_of(root_ / run / "samples" / ("step-" + number + ".jsonl"));
  }
  /** Every file of samples, by its name. */
  static std::map<std::string, std::string> samples_of(const std::string& run) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(root_ / run / "samples"))
      files[entry.path().filename().string()] = text_of(entry.path());
    return files;
  }
  static std::vector<nlohmann::json> generated_by(const std::string& model) {
    const Outcome outcome =
        ferry({"generate", "--model=" + model, "--dataset=prompts.txt", "--text-column=0",
               "--dataset-format=csv", "--dataset-header=no", "--device=cpu", "--json",
               "--max-new-tokens=12", "--temperature=1", "--top-k=5", "--intra-op-threads=1"});
    EXPECT_EQ(outcome.code(), 0) << outcome.err;
    return rows_of(root_ / "out");
  }
  static void expect_refused(const std::vector<std::string>& arguments,
                             int code,
                             const std::string& says) {
    const Outcome outcome = ferry(arguments);
    EXPECT_EQ(outcome.code(), code) << outcome.err;
    EXPECT_NE(outcome.err.find(says), std::string::npos) << outcome.err;
  }
};

TEST_F(Samples, ChangeNoBitOfTheTraining) {
  ASSERT_EQ(ferry(decoder_run("plain")).code(), 0) << text_of(root_ / "err");
  EXPECT_FALSE(fs::exists(root_ / "plain/samples"));
  const Outcome sampled = ferry(sampled_run("sampled"));
  ASSERT_EQ(sampled.code(), 0) << sampled.err;
  expect_same_run("plain", "sampled");
  EXPECT_NE(sampled.err.find("samples after step 75:\n  the old"), std::string::npos)
      << sampled.err;
  EXPECT_NE(text_of(root_ / "out").find("of samples, "), std::string::npos);
  const auto record = nlohmann::json::parse(text_of(root_ / "sampled/run.json"));
  EXPECT_GT(record["promised"]["sample_seconds"], 0);
  EXPECT_GT(record["actual"]["sample_seconds"], 0);
  EXPECT_EQ(text_of(root_ / "sampled/train.log").find("a bird"), std::string::npos)
      << "a log is sent along, and has no texts";

  // Before the first step, after every tenth, after the last.
  const auto files = samples_of("sampled");
  EXPECT_EQ(files.size(), 9u);
  for (const auto& [name, text] : files)
    EXPECT_EQ(std::ranges::count(text, '\n'), 4) << name;
  const auto rows = samples_after("sampled", 75);
  EXPECT_EQ(rows.at(0)["step"], 75);
  EXPECT_EQ(rows.at(2)["prompt"], long_prompt());
  EXPECT_EQ(rows.at(2)["n_prompt_tokens"], 25);
  EXPECT_EQ(rows.at(1)["settings"]["top_k"], 5);
  EXPECT_NE(files.begin()->second, files.rbegin()->second) << "it learns";

  // The same tokens as by the models themselves: other batches, prompts in one piece.
  for (const auto& [model, step] : {std::pair{"decoder", 0}, {"sampled/final", 75}}) {
    const auto own = samples_after("sampled", step), generated = generated_by(model);
    ASSERT_EQ(own.size(), generated.size());
    for (size_t i = 0; i < own.size(); ++i)
      for (const char* key : {"prompt", "text", "ids", "ended"})
        EXPECT_EQ(own[i][key], generated[i][key]) << model << ", prompt " << i << ", " << key;
  }
}

TEST_F(Samples, OfARunThatIsKilledAreTheSame) {
  if (!fs::exists(root_ / "sampled/final")) {
    ASSERT_EQ(ferry(sampled_run("sampled")).code(), 0) << text_of(root_ / "err");
  }
  const std::vector<std::vector<std::string>> placements = {
      {"--placement=host", "--activations=recompute"},
      {"--placement=resident", "--accumulation-order=vertical"},
      {"--placement=host", "--layer_inputs=host", "--worker-threads=3"}};
  size_t n_kills = 0;
  for (const int step : {4, 20, 33, 70}) {
    std::vector<std::string> arguments = fs::exists(root_ / "killed/config.toml")
                                             ? std::vector<std::string>{"train", "--resume=killed"}
                                             : sampled_run("killed");
    const auto& places = placements[n_kills++ % placements.size()];
    arguments.insert(arguments.end(), places.begin(), places.end());
    const pid_t child = start(arguments);
    wait_for_line("killed", step);
    ::kill(child, SIGKILL);
    wait_for(child);
  }
  const Outcome last = ferry({"train", "--resume=killed", "--placement=host"});
  ASSERT_EQ(last.code(), 0) << last.err;
  expect_same_run("sampled", "killed");
  EXPECT_EQ(samples_of("sampled"), samples_of("killed"));
}

/** Many and long, so that the run is caught while it makes them. */
TEST_F(Samples, ThatAreStoppedAreMadeWhenTheRunGoesOn) {
  std::ofstream many(root_ / "many.txt");
  for (int i = 0; i < 40; ++i)
    many << "the old red\n";
  many.close();
  const auto arguments = [](const std::string& run) {
    return decoder_run(run, {"--sample-prompts=many.txt", "--sample-steps=1000", "--max-steps=10",
                             "--max-new-tokens=60", "--top-p=0.9"});
  };
  ASSERT_EQ(ferry(arguments("many")).code(), 0) << text_of(root_ / "err");
  const auto is_sampling = [](int n_steps) {
    return text_of(root_ / "stopped/run.json").find("\"phase\": \"sampling\"") !=
               std::string::npos &&
           text_of(root_ / "stopped/metrics.jsonl")
                   .find("\"step\":" + std::to_string(n_steps) + ",") != std::string::npos;
  };
  const pid_t child = start(arguments("stopped"));
  wait_until([&] { return is_sampling(10); });
  ::kill(child, SIGTERM);
  const Outcome stopped = wait_for(child);
  EXPECT_EQ(stopped.code(), 130) << stopped.err;
  EXPECT_FALSE(fs::exists(root_ / "stopped/samples/step-000010.jsonl"));
  ASSERT_EQ(ferry({"train", "--resume=stopped"}).code(), 0) << text_of(root_ / "err");
  EXPECT_EQ(curve_of("many"), curve_of("stopped"));
  EXPECT_EQ(samples_of("many"), samples_of("stopped"));
}

TEST_F(Samples, AreMadeWhenSomebodyAsks) {
  const auto ask = [](const std::string& verb, const std::string& run) {
    return ferry({"runs", verb, run}, "ask_");
  };
  const auto run_of = [](const std::string& run, const std::string& every) {
    return decoder_run(run, {"--sample-prompts=prompts.txt", "--sample-steps=" + every,
                             "--max-new-tokens=12", "--temperature=1", "--top-k=5",
                             "--max-steps=100000", "--save-strategy=no", "--eval-strategy=no"});
  };
  const pid_t asked = start(run_of("asked", "100000"));
  wait_for_line("asked", 3);
  ASSERT_EQ(ask("sample", "asked").code(), 0) << text_of(root_ / "ask_err");
  const std::string answer = text_of(root_ / "ask_out");
  const int step = std::stoi(answer.substr(std::string("samples after step ").size()));
  ASSERT_GE(step, 3) << answer;
  EXPECT_NE(answer.find("asked/samples/step-"), std::string::npos) << answer;
  EXPECT_EQ(samples_of("asked").size(), 2u) << "those before the first step, and those";
  wait_for_line("asked", step + 2);
  ASSERT_EQ(ask("pause", "asked").code(), 0);
  EXPECT_EQ(ask("sample", "asked").code(), 2);
  EXPECT_NE(text_of(root_ / "ask_err").find("is paused: resume it first"), std::string::npos);
  ASSERT_EQ(ask("stop", "asked").code(), 0);
  EXPECT_EQ(wait_for(asked).code(), 130);

  // Those of a run that makes them after each step, and its bits.
  const pid_t always = start(run_of("always", "1"));
  wait_for_line("always", step + 1);
  ASSERT_EQ(ask("stop", "always").code(), 0) << text_of(root_ / "ask_err");
  EXPECT_EQ(wait_for(always).code(), 130);
  EXPECT_EQ(samples_after("asked", step), samples_after("always", step));
  const std::string curve = curve_of("asked"), other = curve_of("always");
  const size_t n = std::min(curve.size(), other.size());
  ASSERT_GE(std::ranges::count(curve.substr(0, n), '\n'), step);
  EXPECT_EQ(curve.substr(0, n), other.substr(0, n));

  const pid_t unsampled = start(decoder_run("unsampled", {"--max-steps=100000"}));
  wait_for_line("unsampled", 1);
  EXPECT_EQ(ask("sample", "unsampled").code(), 2);
  EXPECT_NE(text_of(root_ / "ask_err").find("without sample_prompts"), std::string::npos);
  ASSERT_EQ(ferry({"runs", "stop", "unsampled", "--no-save"}, "ask_").code(), 0);
  EXPECT_EQ(wait_for(unsampled).code(), 130);
}

TEST_F(Samples, ThatCannotBeAreRefused) {
  const std::string task = "samples show how a language model goes on with texts";
  expect_refused(new_run("refused", {"--sample-prompts=the old"}), 2, task);
  expect_refused(new_run("refused", {"--task=mlm", "--sample-prompts=the old"}), 2, task);
  expect_refused(decoder_run("refused", {"--top-k=3"}), 2, "top_k says how texts are gone on with");
  expect_refused(decoder_run("refused", {"--sample-prompts=the old", "--sample-steps=0"}), 2,
                 "sample_steps = 0");
  expect_refused(decoder_run("refused", {"--sample-prompts=none.txt"}), 4,
                 "no such file: 'none.txt'");
  std::string text;
  for (int i = 0; i < 65; ++i)
    text += "old ";
  expect_refused(decoder_run("refused", {"--sample-prompts=" + text}), 4,
                 "has 65 tokens, and the context is 64");
  EXPECT_FALSE(fs::exists(root_ / "refused"));
}

TEST_F(Samples, ThatCannotBeWrittenEndNoTraining) {
  ASSERT_EQ(ferry(decoder_run("unwritten", {"--max-steps=2"})).code(), 0) << text_of(root_ / "err");
  std::ofstream(root_ / "unwritten/samples") << "a file where a directory is wanted";
  const Outcome outcome =
      ferry({"train", "--resume=unwritten", "--max-steps=4", "--sample-prompts=the old"});
  EXPECT_EQ(outcome.code(), 0) << outcome.err;
  EXPECT_NE(outcome.err.find("training goes on"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("samples after step 4:"), std::string::npos) << outcome.err;
}

TEST_F(Samples, AreInThePlan) {
  const auto cache_bytes = [](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = decoder_run("planned", {"--device=cpu", "--json"});
    arguments.front() = "plan";
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = ferry(arguments);
    EXPECT_EQ(outcome.code(), 0) << outcome.err;
    const auto plan = nlohmann::json::parse(text_of(root_ / "out"));
    for (const auto& row : plan["rows"])
      if (row["tag"] == "cache") return row["bytes"].get<int64_t>();
    return int64_t{0};
  };
  EXPECT_EQ(cache_bytes({}), 0);
  // Keys and values of two layers with two heads of width 8, for 2 + 11 tokens; logits of 18 words
  // and hidden states 32 wide; each rounded up to 512 bytes.
  const auto rounded = [](int64_t n_bytes) { return (n_bytes + 511) / 512 * 512; };
  const auto expected = [&](int64_t n, int64_t n_tokens) {
    return 2 * 2 * rounded(n * n_tokens * 2 * 8 * 4) + rounded(n * 18 * 4) + rounded(n * 32 * 4);
  };
  EXPECT_EQ(cache_bytes({"--sample-prompts=the old", "--max-new-tokens=12"}), expected(1, 13));
  // Four prompts, of which the longest has 25 tokens, as many at once as a micro-batch has texts.
  EXPECT_EQ(cache_bytes({"--sample-prompts=prompts.txt", "--max-new-tokens=12"}), expected(4, 36));
  EXPECT_EQ(
      cache_bytes({"--sample-prompts=prompts.txt", "--max-new-tokens=12", "--micro-batch-size=2"}),
      expected(2, 36));
  EXPECT_EQ(cache_bytes({"--sample-prompts=prompts.txt", "--max-new-tokens=500"}), expected(4, 64));
}

}  // namespace
}  // namespace ferry::test
