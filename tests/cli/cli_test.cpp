// The built ferry, from outside: exit codes, messages, what it hands to the trainer, what it loads.

#include <fmt/format.h>
#include <sys/stat.h>

#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

#include "tests/cli/ferry_fixture.h"

namespace ferry::cli {
namespace {

/** With a model and data that are enough for a plan. */
class Ferry : public FerryTest {
 protected:
  void SetUp() override {
    FerryTest::SetUp();
    directory_.write("model/config.json", kTinyBert);
    directory_.write("train.tsv", "text\tlabel\nyes\t1\n");
    directory_.write("trainer", "#!/bin/sh\nprintf '%s\\n' \"$@\"\nexit 6\n");
    chmod(path("trainer").c_str(), 0755);
  }
  /** The model gets weights and words, the data a second label: enough for who looks without
   * training. */
  void make_whole() {
    directory_.write("model/vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nyes\nno\n");
    directory_.write("model/model.safetensors", std::string("\x02\0\0\0\0\0\0\0{}", 10));
    directory_.write("train.tsv", "text\tlabel\nyes\tgood\nno\tbad\n");
  }
  static std::string text_of(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  Outcome with_trainer(const std::string& line) const {
    return run(line, {{"FERRY_TRAINER", path("trainer")}});
  }
};

TEST_F(Ferry, PreviewShowsTheTextsAsTheModelSeesThem) {
  make_whole();
  const std::string line = "preview --model model --dataset train.tsv ";
  const Outcome text = succeed(line);
  EXPECT_CONTAINS(text.out, "[CLS] yes [SEP]");
  EXPECT_CONTAINS(text.out, "{good} is learnt");
  EXPECT_EQ(text.out.find('\x1b'), std::string::npos) << "a pipe has no colours";
  const auto preview = json_of(line + "1");
  ASSERT_EQ(preview["samples"].size(), 1u);
  EXPECT_EQ(preview["samples"][0]["answer"], "good");
  EXPECT_EQ(preview["samples"][0]["tokens"][1]["end"], 3);
  EXPECT_EQ(preview["n_sequences"], 2);
  EXPECT_EQ(preview["first_batch"]["rows"].size(), 2u);
  expect_refused(line + "many", 2, "many");
  expect_refused(line + "--text-column=sentence", 2, "text, label");  // what the file has
}

TEST_F(Ferry, HelpNamesEveryVerb) {
  for (const char* line : {"--help", "-h", "help"}) {
    Outcome outcome = run(line);
    EXPECT_EQ(outcome.exit_code, 0);
    for (const char* verb : {"train", "eval", "predict", "export", "plan", "preview", "presets",
                             "doctor", "bench", "completion", "help"})
      EXPECT_CONTAINS(outcome.out, std::string("\n  ") + verb + " ");
    EXPECT_TRUE(outcome.err.empty()) << outcome.err;
  }
  EXPECT_TRUE(run("--version").out.starts_with("ferry "));
}

TEST_F(Ferry, EveryVerbHasHelpInBothForms) {
  for (const char* verb : {"train", "eval", "predict", "export", "plan", "preview", "presets",
                           "doctor", "bench", "completion"}) {
    Outcome first = run(std::string("help ") + verb), second = run(std::string(verb) + " --help");
    EXPECT_EQ(first.exit_code, 0) << verb;
    EXPECT_EQ(first.out, second.out);
    EXPECT_TRUE(first.out.starts_with(std::string("ferry ") + verb + " - ")) << first.out;
    EXPECT_CONTAINS(first.out, std::string("usage: ferry ") + verb);
  }
}

TEST_F(Ferry, WrongUseIsTwoAndNamesTheNearest) {
  const std::string whole = "train --model model --dataset train.tsv ";
  const std::pair<std::string, const char*> cases[] = {
      {"", "usage: ferry VERB"},
      {"trian", "did you mean 'train'?"},
      {"help trian", "did you mean 'train'?"},
      {"train", "needs --model"},
      {"train --model model", "needs --dataset"},
      {whole + "--lerning-rate 1", "did you mean '--learning-rate'?"},
      {whole + "lr=abc", "lr = abc (lr=abc), expected a number"},
      {whole + "--lr -1", "at least 0"},
      {"train --preset minilm-clasify", "did you mean 'minilm-classify'?"},
      {"train --config /no/such.toml", "no such file"},
      {"export --model model", "needs --output"},
      {"export --model model --output train.tsv", "is there already"},
      {"predict --model model --dataset train.tsv 'a text'", "both --dataset and texts"},
      {"predict --model model --dataset ''", "dataset is empty"},
      {"train --model '' --dataset train.tsv", "model_name_or_path is empty (--model)"},
      {whole + "--output ''", "output_dir is empty"},
      {"presets", "usage: ferry presets ls"},
      {"presets show nothing-like-it", "no preset"},
      {"doctor --fast", "unexpected argument '--fast'"},
      {"doctor --seconds soon", "--seconds soon, expected a number"},
      {"bench", "usage: ferry bench PART"},
      {"bench gem", "did you mean 'gemm'?"},
      {"bench gemm dram", "unexpected argument 'dram'"},
      {"bench gemm --seconds", "--seconds needs a value"},
      {"bench all --output train.tsv", "is there already"},
      {"bench gemm --output x.json", "goes with `ferry bench card` and"},
      {"plan --model model --max-length 65", "at most 64"},
      {"plan --model model --max-length 2", "expected an integer of at least 3"},
  };
  for (const auto& [line, message] : cases) {
    Outcome outcome = with_trainer(line);
    EXPECT_EQ(outcome.exit_code, 2) << message << outcome.err;
    EXPECT_CONTAINS(outcome.err, message);
    EXPECT_TRUE(outcome.out.empty()) << outcome.out;
  }
}

TEST_F(Ferry, MissingModelOrDataIsFour) {
  for (const char* line :
       {"train --model /no/model --dataset train.tsv", "train --model model --dataset /no/data",
        "train --model model --dataset train.tsv --eval-dataset /no/data",
        "eval --model model --dataset /no/data", "predict --model /no/model text",
        "export --model /no/model --output x", "plan --model /no/model",
        "plan --model model --dataset /no/data",
        "plan --model model --dataset train.tsv --eval-dataset /no/data"}) {
    Outcome outcome = with_trainer(line);
    EXPECT_EQ(outcome.exit_code, 4) << line << outcome.err;
    EXPECT_CONTAINS(outcome.err, "/no/");
  }
  directory_.write("broken/config.json", "{\"model_type\": \"bert\", ");
  EXPECT_EQ(run("plan --model broken").exit_code, 4);
}

TEST_F(Ferry, BecomesTheTrainerWithTheSameWords) {
  const char* const lines[] = {"train --model model --dataset train.tsv lr=3e-5 --no-deterministic",
                               "eval --model model --dataset train.tsv --json",
                               "predict --model model 'a text' -- --json",
                               "export --model model --output new"};
  for (const char* line : lines) {
    Outcome outcome = with_trainer(line);
    std::string expected;
    for (const std::string& word : config::words_of(line))
      expected += word + "\n";
    EXPECT_EQ(outcome.out, expected);
    EXPECT_EQ(outcome.exit_code, 6) << "the trainer's own exit code";
  }
  EXPECT_CONTAINS(with_trainer(lines[0]).err, "using learning_rate = 3e-05 (from lr=3e-5)");
}

TEST_F(Ferry, SaysWhenThereIsNoTrainer) {
  Outcome outcome =
      run("eval --model model --dataset train.tsv", {{"FERRY_TRAINER", "/no/trainer"}});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_CONTAINS(outcome.err, "FERRY_TRAINER names no program: '/no/trainer'");

  auto copy = directory_.path() / "bin" / "ferry";  // a tree without a trainer
  std::filesystem::create_directories(copy.parent_path());
  std::filesystem::copy_file(ferry_binary(), copy);
  setenv("FERRY_BINARY_SAVED", ferry_binary().c_str(), 1);
  setenv("FERRY_BINARY", copy.c_str(), 1);
  outcome = run("eval --model model --dataset train.tsv");
  setenv("FERRY_BINARY", getenv("FERRY_BINARY_SAVED"), 1);
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_CONTAINS(outcome.err, "ferry-trainer is not beside ferry");
}

TEST_F(Ferry, DryRunPrintsAFileThatReadsBack) {
  make_whole();
  Outcome first = succeed(
      "train --preset minilm-classify --model model --dataset train.tsv --lr=3e-5 --dry-run",
      {{"FERRY_SEED", "7"}});
  EXPECT_CONTAINS(first.err, "nothing was written");
  EXPECT_CONTAINS(first.out, "# from FERRY_SEED");
  EXPECT_CONTAINS(first.out, "# from --lr");
  EXPECT_CONTAINS(first.out, "minilm-classify.toml:8");
  directory_.write("again.toml", first.out);
  const auto settings = json_of("train --config again.toml --dry-run");
  EXPECT_EQ(settings["seed"]["value"], 7);
  EXPECT_EQ(settings["learning_rate"]["value"], 3e-5);
  EXPECT_EQ(settings["gpu_memory"]["value"], "auto");
}

/** An error that would end a run before its first step ends the dry run too. */
TEST_F(Ferry, DryRunFindsWhatIsMissing) {
  make_whole();
  const std::string dry = "train --model model --dataset train.tsv --dry-run ";
  EXPECT_EQ(run(dry).exit_code, 0) << run(dry).err;
  directory_.write("used/final/config.json", "{}");
  directory_.write("bare/config.json", kTinyBert);
  for (const auto& [more, exit_code, message] :
       {std::tuple{"--model /no/model", 4, "/no/model"},
        {"--model bare", 4, "model.safetensors"},
        {"--dataset /no/data.csv", 4, "/no/data.csv"},
        {"--eval-dataset /no/dev.csv", 4, "/no/dev.csv"},
        {"--label-column nope", 2, "label_column = nope"},
        {"--output-dir used", 2, "already holds a trained model"}}) {
    expect_refused(dry + more, exit_code, message);
    EXPECT_CONTAINS(run(dry + more).out, "learning_rate = ");  // settings are said all the same
  }
}

TEST_F(Ferry, PlanPrintsBytesThatAddUp) {
  const auto plan = json_of("plan --model model --device cpu");
  int64_t sum = 0;
  for (const auto& row : plan["rows"])
    sum += row["bytes"].get<int64_t>();
  EXPECT_EQ(sum, plan["host_bytes"].get<int64_t>());
  EXPECT_EQ(plan["gpu_bytes"], 0);
  std::set<std::string> tags;
  for (const auto& row : plan["rows"]) {
    EXPECT_EQ(row["place"], "host") << "there is no other memory";
    EXPECT_TRUE(tags.insert(row["tag"]).second) << row["tag"];
  }
  EXPECT_GT(plan["n_parameters"].get<int64_t>(), 10000);
  EXPECT_TRUE(plan["fits"]);

  Outcome text = run("plan --model model --device cpu");
  EXPECT_CONTAINS(text.out, "master");
  EXPECT_CONTAINS(text.out, "It fits.");
  EXPECT_EQ(text.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.out.find("\xe2"), std::string::npos)
      << "no drawing beyond ASCII without a UTF-8 locale";
}

TEST_F(Ferry, PlanSaysWhatIsPinnedAndWhatGoesThroughARing) {
  const std::string host = "plan --model bert-base-uncased --machine 2080ti-11g --placement host ";
  const auto all = json_of(host), limited = json_of(host + "--pinned-memory 64MiB");
  EXPECT_TRUE(all["pinned"]["limit_bytes"].is_null());
  EXPECT_EQ(all["pinned"]["step_ring_bytes"], 0);
  EXPECT_EQ(all["rows"], limited["rows"]);
  const int64_t limit = 64 << 20, ring = limited["pinned"]["ring_bytes"],
                pinned = limited["pinned"]["pinned_bytes"];
  EXPECT_EQ(limited["pinned"]["limit_bytes"], limit);
  EXPECT_LE(pinned, limit);
  EXPECT_EQ(pinned - ring + limited["pinned"]["unpinned_bytes"].get<int64_t>(),
            all["pinned"]["pinned_bytes"].get<int64_t>());
  EXPECT_GT(limited["pinned"]["step_ring_bytes"], limited["pinned"]["unpinned_bytes"]);
  EXPECT_GE(limited["time"]["step_s"], all["time"]["step_s"]);
  const Outcome text = run(host + "--pinned-memory 64MiB");
  EXPECT_CONTAINS(text.out, "of 64.0 MiB");
  EXPECT_CONTAINS(text.out, "through the ring");
  EXPECT_TRUE(json_of("plan --model model --device cpu")["pinned"].is_null());
}

// The driver is the fake one, of a 2080 Ti.
TEST_F(Ferry, PlanIsForTheGpuThatTrainingWouldUse) {
  const char* folder = std::getenv("FAKE_NVML_DIRECTORY");
  const auto plan = [&](const std::string& more, const std::string& driver,
                        std::optional<std::string> visible = {}) {
    Environment environment = {{"LD_LIBRARY_PATH", folder ? folder : ""}, {"FAKE_NVML", driver}};
    if (visible) environment.emplace_back("CUDA_VISIBLE_DEVICES", *visible);
    return run("plan --model model --json " + more, environment);
  };
  const auto device = [](const Outcome& outcome) -> std::string {
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out)["device"];
  };
  const Outcome plain = plan("", "ok");
  if (plain.err.find("not planned for") != std::string::npos)
    GTEST_SKIP() << "this build has no code for the fake card: " << plain.err;
  EXPECT_EQ(device(plain), "NVIDIA GeForce RTX 2080 Ti");
  EXPECT_EQ(device(plan("", "ok", "0")), "NVIDIA GeForce RTX 2080 Ti");
  for (const char* hidden : {"", "-1", "1", "x"})
    EXPECT_EQ(device(plan("", "ok", hidden)), "the CPU") << hidden;

  // A GPU that training would not use is named, with the cure; asked for, it is an error.
  for (const char* driver : {"old", "maxwell"}) {
    const Outcome refused = plan("", driver);
    EXPECT_EQ(device(refused), "the CPU");
    EXPECT_CONTAINS(refused.err, "not planned for the NVIDIA GeForce RTX 2080 Ti");
    const Outcome asked = plan("--device cuda", driver);
    EXPECT_EQ(asked.exit_code, 5) << asked.err;
    EXPECT_CONTAINS(asked.err, "--gpu-memory");
  }
  EXPECT_CONTAINS(plan("", "old").err, "580");
  EXPECT_EQ(plan("--device cuda", "ok", "").exit_code, 2);
}

// The plan for a machine that is not here: times, what binds, and a trace of two steps.
TEST_F(Ferry, PlanKnowsTimesOfOtherMachines) {
  const std::string line = "plan --model model --machine 3090-24g ";
  const auto time = json_of(line + "--simulate plan.trace")["time"];
  EXPECT_GT(time["step_s"], 0);
  EXPECT_GE(time["step_s"], time["compute_s"]);
  EXPECT_FALSE(time["assumptions"].empty());
  std::ifstream in(path("plan.trace"));
  EXPECT_GT(nlohmann::json::parse(in)["traceEvents"].size(), 20u);
  const Outcome text = run(line);
  for (const char* part : {"binds", "samples/s", "1000 such steps", "published figures"})
    EXPECT_CONTAINS(text.out, part);
  // A card's file has no host: this machine's is taken. What nobody measured is said, not guessed.
  directory_.write("card.json", R"({"version": 2, "name": "a card", "gpu": {"name": "a card",
                                    "compute_capability": 86, "memory_bytes": 12884901888}})");
  const Outcome unknown = succeed("plan --model model --machine card.json");
  EXPECT_CONTAINS(unknown.out, "in this machine");
  EXPECT_CONTAINS(unknown.out, "profile lacks rates of");
  EXPECT_EQ(run("plan --model model --machine 3090").exit_code, 2);
  for (const char* name : {"rtx2080ti", "RTX 2080 Ti", "NVIDIA GeForce RTX 2080 Ti", "2080-ti"})
    EXPECT_CONTAINS(run(fmt::format("plan --model model --machine '{}'", name)).err,
                    "did you mean '2080ti-11g'?");
}

TEST_F(Ferry, Bf16OnACardWithoutItIsRefusedWithWhatItCanDo) {
  const std::string turing = "plan --model model --machine 2080ti-11g --dtype ";
  expect_refused(turing + "bf16", 2, "bf16 needs compute capability 8.0, this GPU has 7.5");
  expect_refused(turing + "bf16", 2, "use dtype = fp16, or auto");
  EXPECT_EQ(json_of("plan --model model --machine 3090-24g --dtype bf16")["dtype"], "bf16");
  EXPECT_EQ(json_of(turing + "auto")["dtype"], "fp16");
}

TEST_F(Ferry, PlanOfUnlikeGpusHasTheSpeedAndTheMemoryOfEach) {
  const std::string words =
      "plan --model bert-large-uncased --train-batch-size 64 --max-length 512 --machine ";
  const std::string both = words + "4090-24g,3060-12g";
  const auto plan = json_of(both), large = json_of(words + "4090-24g");
  EXPECT_EQ(plan["n_gpus"], 2) << "both without being asked";
  ASSERT_EQ(plan["gpu_shares"].size(), 2u);
  const int of_large = plan["gpu_shares"][0], of_small = plan["gpu_shares"][1];
  EXPECT_GT(of_large, 3 * of_small);
  const auto& gpus = plan["time"]["gpus"];
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(gpus[0]["name"], "NVIDIA GeForce RTX 4090");
  EXPECT_EQ(gpus[1]["name"], "NVIDIA GeForce RTX 3060");
  EXPECT_EQ(gpus[1]["share"], of_small);
  EXPECT_GT(gpus[0]["budget_bytes"].get<int64_t>(), int64_t{20} << 30);
  EXPECT_LT(gpus[1]["budget_bytes"].get<int64_t>(), int64_t{12} << 30);
  EXPECT_LE(plan["gpu_bytes"].get<int64_t>(), plan["gpu_budget_bytes"].get<int64_t>());
  for (const auto& gpu : gpus)
    EXPECT_LE(gpu["busiest_s"].get<double>(), plan["time"]["step_s"].get<double>());
  EXPECT_EQ(plan["time"]["fewer_gpus"]["gpus"], nlohmann::json({0}));
  EXPECT_NEAR(plan["time"]["fewer_gpus"]["step_s"].get<double>(),
              large["time"]["step_s"].get<double>(), 0.05 * large["time"]["step_s"].get<double>());

  const auto text = run(both);
  EXPECT_CONTAINS(text.out, "4090-24g,3060-12g, by its profiles, 2 GPUs of one host");
  EXPECT_CONTAINS(text.out, fmt::format("in shares of {}, {}", of_large, of_small));
  EXPECT_CONTAINS(text.out, "The NVIDIA GeForce RTX 4090 alone would take");
  EXPECT_CONTAINS(text.out, "1: NVIDIA GeForce RTX 3060");
  EXPECT_CONTAINS(text.err, fmt::format("estimated to be {}, {}", of_large, of_small));
  // Equal shares wait for the slow one, so it does not help.
  EXPECT_CONTAINS(run(both + " --gpu-shares 1,1").out,
                  "the slower ones do not help here (--gpus 1 takes the faster one)");

  EXPECT_EQ(json_of(both + " --gpus 1")["time"]["step_s"], large["time"]["step_s"]);
  EXPECT_EQ(json_of(both + " --gpus 0,1")["n_gpus"], 2);
  const auto of_two_hosts = json_of(both + " --gpus 4");
  EXPECT_EQ(of_two_hosts["n_gpus_of_host"], 2);
  EXPECT_EQ(of_two_hosts["gpu_shares"].size(), 4u);
  expect_refused(both + " --gpus 3", 2, "3 GPUs are no whole number of hosts");
  expect_refused(both + " --gpus 0,2", 2, "there is no GPU 2");
  EXPECT_EQ(json_of(words + "2080ti-11g,3060-12g")["dtype"], "fp16") << "which both have";
}

TEST_F(Ferry, PlanOfSeveralGpusSharesTheirHosts) {
  const std::string words =
      "plan --model bert-large-uncased --machine 8xa100-80g --train-batch-size 256 --placement "
      "host";
  const auto one = json_of(words), eight = json_of(words + " --gpus 8"),
             many = json_of(words + " --gpus 16");
  EXPECT_EQ(one["n_gpus"], 1);
  EXPECT_EQ(one["n_gpus_of_host"], 1);
  EXPECT_FALSE(one["time"].contains("exchange_s"));
  EXPECT_EQ(many["n_gpus"], 16);
  EXPECT_EQ(many["n_gpus_of_host"], 8);
  EXPECT_GT(eight["time"]["exchange_s"].get<double>(), 0);
  // Each of eight has an eighth of the host, less what its process takes; so has each of sixteen.
  EXPECT_LT(eight["host_budget_bytes"].get<int64_t>() * 8, one["host_budget_bytes"].get<int64_t>());
  EXPECT_EQ(eight["host_budget_bytes"], many["host_budget_bytes"]);
  EXPECT_EQ(eight["time"]["one_gpu_step_s"], one["time"]["step_s"]);
  EXPECT_LT(eight["time"]["step_s"].get<double>(), one["time"]["step_s"].get<double>());
  const std::string text = run(words + " --gpus 16").out;
  for (const char* part : {"16 GPUs of 2 hosts; the table is of each", "all GPUs of a host",
                           "exchanges between GPUs", "One GPU would take"})
    EXPECT_CONTAINS(text, part);
  EXPECT_EQ(run(words).out.find("GPUs"), std::string::npos);
  EXPECT_CONTAINS(
      run("plan --config-name openai-community/gpt2 --task causal-lm --machine 8xa100-80g --gpus 8")
          .out,
      "300 G tokens would take");
  // A desktop whose updates bind gains nothing by a second card.
  const std::string bound =
      "plan --model bert-large-uncased --machine 3090-24g --train-batch-size 2 "
      "--per-device-train-batch-size 1 --max-length 8 --placement host";
  EXPECT_CONTAINS(run(bound + " --gpus 2").out, "do not help here");
  EXPECT_CONTAINS(run(bound + " --gpus 2").err, "GPUs are assumed to send each other 11.2 GB/s");
}

TEST_F(Ferry, PlanCountsReducedStatesAndASplitMaster) {
  const auto plan_of = [&](const std::string& more) {
    const auto plan = json_of("plan --model model --device cpu --dtype bf16 " + more);
    std::map<std::string, int64_t> bytes = {
        {"checkpoint", plan["disk"]["checkpoint_bytes"].get<int64_t>()}};
    for (const auto& row : plan["rows"])
      bytes[row["tag"]] += row["bytes"].get<int64_t>();
    return bytes;
  };
  auto fp32 = plan_of(""), bf16 = plan_of("--optim=adamw_bf16"),
       eight = plan_of("--optim adamw_8bit --master split");
  EXPECT_EQ(bf16["adam_m"], fp32["adam_m"] / 2);
  EXPECT_EQ(bf16["master"], fp32["master"]);
  EXPECT_EQ(eight["master"], fp32["master"] / 2);
  EXPECT_GT(eight["adam_v"], fp32["adam_v"] / 4);
  // One byte for 256 elements, and every block's segments end on 512 bytes.
  EXPECT_LT(eight["adam_v"], fp32["adam_v"] * 11 / 40);
  EXPECT_LT(eight["checkpoint"], bf16["checkpoint"]);
  EXPECT_LT(bf16["checkpoint"], fp32["checkpoint"]);

  const std::string refused = "plan --model model --device cpu --dtype fp32 --master split";
  expect_refused(refused, 2, "this run computes in fp32");
  expect_refused(refused, 2, "set dtype = bf16");
}

TEST_F(Ferry, PlanCountsTheDisk) {
  const std::string line = "plan --model model --device cpu --output-dir=not/there/yet ";
  const auto two = json_of(line)["disk"], five = json_of(line + "--save-total-limit=5")["disk"],
             none = json_of(line + "--save-strategy=no")["disk"];
  EXPECT_EQ(two["n_checkpoints"], 3);
  EXPECT_EQ(two["checkpoint_bytes"], 3 * two["final_bytes"].get<int64_t>());
  EXPECT_EQ(two["bytes"], 3 * two["checkpoint_bytes"].get<int64_t>() +
                              two["final_bytes"].get<int64_t>() +
                              two["small_bytes"].get<int64_t>());
  EXPECT_EQ(five["n_checkpoints"], 6);
  EXPECT_EQ(none["n_checkpoints"], 0);
  EXPECT_GT(two["free_bytes"].get<int64_t>(), 0);
  const Outcome text = run(line);
  EXPECT_CONTAINS(text.out, "checkpoints");
  EXPECT_CONTAINS(text.out, " free");

  const Outcome never = run(line + "--json --save-total-limit=1000000 --hidden-dropout=0");
  const auto need = nlohmann::json::parse(never.out)["disk"];
  if (need["bytes"] <= need["free_bytes"]) GTEST_SKIP() << "a disk for a million checkpoints";
  EXPECT_EQ(never.exit_code, 3);
  EXPECT_FALSE(nlohmann::json::parse(never.out)["fits"]);
  for (const char* part : {"save_total_limit", "save_strategy = no", "output_dir"})
    EXPECT_CONTAINS(never.err, part);
}

TEST_F(Ferry, ConfigOfANewerFerryNamesBothVersions) {
  directory_.write("config.toml",
                   "format_version = 9\nferry_version = \"77.0\"\nseed = 3\nnew_option = 1\n");
  for (const char* part : {"77.0", "format_version 9", "this is Ferry ", "up to 1"})
    expect_refused("train --config config.toml --dry-run", 2, part);
  directory_.write("same.toml", "format_version = 1\nseed = 3\n");
  make_whole();
  const Outcome read =
      succeed("train --config same.toml --model model --dataset train.tsv --dry-run");
}

TEST_F(Ferry, PlanForAGpuThatIsNotHere) {
  EXPECT_TRUE(json_of("plan --model model --device cuda --gpu-memory 4GiB")["has_gpu"]);
}

TEST_F(Ferry, PlanThatDoesNotFitIsThree) {
  Outcome outcome =
      run("plan --model model --device cpu --host-memory 1MiB --per-device-train-batch-size 32 "
          "--activations keep");
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  EXPECT_CONTAINS(outcome.err, "does not fit");
  EXPECT_CONTAINS(outcome.err, "largest:");
  EXPECT_CONTAINS(outcome.err, "at least host_memory = ");
  EXPECT_EQ(outcome.err.find("gpu"), std::string::npos) << outcome.err;
}

TEST_F(Ferry, APlanThatDoesNotFitIsShownAllTheSame) {
  const std::string line =
      "plan --model model --device cpu --host-memory 1MiB --activations recompute";
  EXPECT_CONTAINS(run(line).out, "Does not fit. The nearest: ");
  EXPECT_CONTAINS(run(line).out, ": too much");
  const Outcome outcome = run(line + " --json");
  EXPECT_EQ(outcome.exit_code, 3);
  const auto plan = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(plan["fits"], false);
  EXPECT_FALSE(plan["rows"].empty());
  EXPECT_CONTAINS(plan["refusal"].get<std::string>(), "does not fit");
}

TEST_F(Ferry, PlanTellsTheTimeToFinish) {
  const auto time_of = [&](const std::string& more) {
    return json_of("plan --model model --machine 2080ti-11g --train-batch-size 8 " + more)["time"];
  };
  EXPECT_FALSE(time_of("").contains("run_s"));
  const auto by_steps = time_of("--max-steps 500");
  EXPECT_EQ(by_steps["n_steps"], 500);
  EXPECT_DOUBLE_EQ(by_steps["run_s"], 500 * by_steps["step_s"].get<double>());
  std::string lines = "text\tlabel\n";
  for (int i = 0; i < 100; ++i)
    lines += "text " + std::to_string(i) + "\t" + std::to_string(i % 2) + "\n";
  directory_.write("hundred.tsv", lines);
  // 90 texts in steps of 8, twice and a half.
  EXPECT_EQ(time_of("--dataset hundred.tsv --eval-fraction 0.1 --epochs 2.5")["n_steps"], 30);
  directory_.write("no.tsv", "a\n");
  EXPECT_EQ(run("plan --model model --dataset no.tsv").exit_code, 4);
}

TEST_F(Ferry, PlanSaysARangeWherePublishedFiguresDisagree) {
  // A model so large that attention takes a good part of the time.
  directory_.write(
      "large/config.json",
      R"({"model_type": "bert", "vocab_size": 30522, "hidden_size": 1024, "num_hidden_layers": 24,
          "num_attention_heads": 16, "intermediate_size": 4096, "max_position_embeddings": 512,
          "type_vocab_size": 2, "hidden_act": "gelu"})");
  const std::string line =
      "plan --model large --dtype fp16 --max-length 384 --train-batch-size 32 --machine ";
  const auto time = json_of(line + "2080ti-11g")["time"];
  const double most = time["samples_per_second"], least = time["samples_per_second_at_least"];
  EXPECT_LT(least, 0.95 * most);
  EXPECT_GT(least, 0.8 * most);
  const std::string said = run(line + "2080ti-11g").out;
  EXPECT_CONTAINS(said, fmt::format("{:.1f} to {:.1f} samples/s", least, most));
  EXPECT_CONTAINS(said, "the lower rate is that of the machine 2080ti-11g-low");
  for (const char* machine : {"2080ti-11g-low", "4090-24g"})
    EXPECT_FALSE(json_of(line + machine)["time"].contains("samples_per_second_at_least"))
        << machine;
}

TEST_F(Ferry, PlanTakesNoMoreThanTheCardHas) {
  const std::string line = "plan --model model --machine 2080ti-11g --gpu-memory 24GiB ";
  EXPECT_CONTAINS(run(line).err, "gpu_memory is 24.00 GiB, and the GPU has 10.83 GiB");
  EXPECT_LT(json_of(line)["gpu_budget_bytes"], int64_t{11} << 30);
  EXPECT_EQ(json_of(line + "--device cpu")["has_gpu"], false);
  EXPECT_CONTAINS(run(line + "--device cpu").err, "gpu_memory is not used");
}

TEST_F(Ferry, PlanOnACpuKnowsOnePlaceOnly) {
  Outcome outcome = succeed("plan --model model --device cpu");
  EXPECT_CONTAINS(outcome.out, "\nin all ");
  for (const char* other : {"gpu ", "device ", "memory "})
    EXPECT_EQ(outcome.out.find(other), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("\nbatch "), outcome.out.rfind("\nbatch ")) << "a tag has one row";
}

TEST_F(Ferry, PlanRefusesAbsurdModelsNamingFileAndKey) {
  for (const char* key : {"hidden_size", "vocab_size", "num_hidden_layers", "intermediate_size",
                          "max_position_embeddings", "type_vocab_size"}) {
    auto config = nlohmann::json::parse(kTinyBert);
    config[key] = 1'000'000'000'000;
    directory_.write("absurd/config.json", config.dump());
    expect_refused("plan --model absurd --device cpu", 4,
                   fmt::format("absurd/config.json': line 1: {} is 1000000000000", key));
  }
}

TEST_F(Ferry, PresetsAreListed) {
  directory_.write("ferry/presets/bad.toml", "# bad\nnonsense = 1\n");
  directory_.write("ferry/presets/own.toml", "seed = 1\n");
  const auto json = [&](const std::string& filter) {
    std::map<std::string, nlohmann::json> named;
    for (const auto& preset : json_of("presets ls " + filter))
      named[preset["name"].get<std::string>()] = preset;
    return named;
  };
  const auto all = json("");
  const auto& large = all.at("bert-large-qa-2080ti-11g");
  EXPECT_EQ(large["task"], "question-answering");
  EXPECT_EQ(large["model"], "bert-large-uncased");
  EXPECT_EQ(large["hub_id"], "google-bert/bert-large-uncased");
  EXPECT_EQ(large["card"], "2080ti-11g");
  EXPECT_EQ(large["host_memory_bytes"], 16ll << 30);
  EXPECT_FALSE(large["title"].get<std::string>().empty());
  EXPECT_TRUE(all.at("minilm-classify")["card"].is_null());
  EXPECT_TRUE(all.at("own")["is_users"].get<bool>());
  EXPECT_CONTAINS(all.at("bad")["problem"].get<std::string>(), "bad.toml:2");
  const std::string table = run("presets ls").out;
  for (const char* part : {"minilm-classify", "question-answering", "2080ti-11g", "unknown option"})
    EXPECT_CONTAINS(table, part);

  const auto taggers = json("--task ner"), large_cards = json("--card 5090-32g");
  EXPECT_TRUE(taggers.contains("bert-base-ner-2080ti-11g"));
  EXPECT_FALSE(taggers.contains("bert-large-qa-2080ti-11g"));
  EXPECT_TRUE(large_cards.contains("qwen3-8b-lm-5090-32g"));
  EXPECT_FALSE(large_cards.contains("bert-large-qa-2080ti-11g"));
  EXPECT_CONTAINS(run("presets ls --card 5090").err, "did you mean '5090-32g'?");
  EXPECT_EQ(run("presets ls --task cooking").exit_code, 2);
  EXPECT_EQ(run("presets show minilm-classify --here").exit_code, 2);
}

/** By their memory alone: some machines that run this have a GPU. */
TEST_F(Ferry, PresetsForThisMachineAreListed) {
  directory_.write("ferry/presets/large.toml", "preset.host_memory = \"4096GiB\"\n");
  directory_.write("ferry/presets/small.toml", "preset.host_memory = \"1MiB\"\n");
  const std::string names = "\n" + run("presets ls --here --names").out;
  EXPECT_CONTAINS(names, "\nsmall\n");
  EXPECT_FALSE(config::contains(names, "\nlarge\n"));
}

TEST_F(Ferry, PresetsAreShownWithTheirPlan) {
  Outcome outcome = succeed("presets show bert-large-qa-2080ti-11g");
  for (const char* part :
       {"learning_rate = 3e-5", "google-bert/bert-large-uncased",
        "# Planned, not measured, for 2080ti-11g with 16.00 GiB of host memory", "It fits",
        "samples/s", "the GPU binds", "--machine 2080ti-11g --host-memory 14.4GiB"})
    EXPECT_CONTAINS(outcome.out, part);
  // All of it is a file of settings.
  directory_.write("shown.toml", outcome.out);
  make_whole();
  EXPECT_EQ(run("train --config shown.toml --model model --task classification --max-length 64 "
                "--dataset train.tsv --dry-run")
                .exit_code,
            0);

  const auto json = json_of("presets show llama-3-8b-lm-4090-24g");
  EXPECT_EQ(json["settings"]["optim"], "adamw_8bit");
  EXPECT_FALSE(json["settings"].contains("seed"));
  const auto& plan = json["plan"];
  EXPECT_TRUE(plan["fits"].get<bool>());
  EXPECT_FALSE(plan["is_measured"].get<bool>());
  EXPECT_LE(plan["host_bytes"].get<int64_t>(), plan["host_budget_bytes"].get<int64_t>());
  EXPECT_GT(plan["time"]["step_s"].get<double>(), 0);

  // The command that it names plans the same.
  const auto whole =
      json_of("plan --preset llama-3-8b-lm-4090-24g --machine 4090-24g --host-memory 57.6GiB");
  EXPECT_EQ(whole["gpu_bytes"], plan["gpu_bytes"]);
  EXPECT_EQ(whole["host_bytes"], plan["host_bytes"]);
  EXPECT_EQ(whole["time"]["step_s"], plan["time"]["step_s"]);

  directory_.write("ferry/presets/own.toml", "seed = 1\n");
  EXPECT_CONTAINS(run("presets show own").out, "# No plan: it names no card");
  directory_.write("ferry/presets/card.toml", "model = \"gpt2\"\npreset.card = \"3090-42g\"\n");
  outcome = run("presets show card");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_CONTAINS(outcome.out, "card.toml:2");
  directory_.write("ferry/presets/bad.toml", "# bad\nnonsense = 1\n");
  EXPECT_EQ(run("presets show bad").exit_code, 2);
}

TEST_F(Ferry, AShapeAloneIsNeverOfferedForDownload) {
  make_whole();
  const Outcome refused = run("train --model gpt3-175b --dataset train.tsv");
  EXPECT_EQ(refused.exit_code, 4);
  EXPECT_CONTAINS(refused.err, "of 'gpt3-175b' only the shape is known");
  EXPECT_CONTAINS(refused.err, "--from-config gpt3-175b --tokenizer DIR");
  EXPECT_FALSE(config::contains(refused.err, "ferry fetch"));
  EXPECT_CONTAINS(run("presets show t5-11b-size-lm-2xa100-40g").out,
                  "# The model is a new one of the shape t5-11b-size: it needs --tokenizer.");
}

TEST_F(Ferry, APresetForALargerMachineSaysSo) {
  make_whole();
  const auto note_of = [&](const std::string& preset) {
    const Outcome outcome = succeed(
        "train --model model --dataset train.tsv --dry-run --task classification --max-length 64 "
        "--preset " +
        preset);
    return outcome.err;
  };
  EXPECT_CONTAINS(note_of("bert-large-qa-2080ti-11g --device cpu"),
                  "made for 2080ti-11g and 16.00 GiB of host memory; here is no GPU");
  EXPECT_CONTAINS(note_of("minilm-classify --host-memory 1GiB"),
                  "here is 1.00 GiB of host memory instead of 4.00 GiB");
  directory_.write("ferry/presets/small.toml", "preset.host_memory = \"1MiB\"\n");
  EXPECT_FALSE(config::contains(note_of("small"), "made for"));
  // The plan says no as ever.
  const Outcome refused = run("plan --preset llama-3-8b-lm-3090-24g --machine 2080ti-11g");
  EXPECT_EQ(refused.exit_code, 3);
  directory_.write("ferry/presets/card.toml", "preset.card = \"3090-42g\"\n");
  EXPECT_CONTAINS(run("train --preset card --model model --dataset train.tsv").err, "card.toml:1");
}

TEST_F(Ferry, BertLargePresetFitsTheCardItIsFor) {
  auto config = nlohmann::json::parse(kTinyBert);
  config.update({{"vocab_size", 30522},
                 {"hidden_size", 1024},
                 {"num_hidden_layers", 24},
                 {"num_attention_heads", 16},
                 {"intermediate_size", 4096},
                 {"max_position_embeddings", 512}});
  directory_.write("models/bert-large-uncased/config.json", config.dump());
  const std::string preset = "--preset bert-large-classify-2080ti-11g ";
  const auto plan = json_of("plan --device cuda --gpu-memory 11GiB --host-memory 16GiB " + preset,
                            {{"FERRY_MODELS", path("models")}});
  EXPECT_NEAR(plan["n_parameters"].get<double>(), 335.1e6, 0.5e6);
  EXPECT_EQ(plan["train_batch_size"], 32);
  EXPECT_LE(plan["gpu_bytes"].get<int64_t>(), plan["gpu_budget_bytes"].get<int64_t>());
  EXPECT_LT(plan["gpu_budget_bytes"].get<int64_t>(), 11ll << 30);

  // Its shape is known by its name: nothing need be fetched for a plan.
  const Environment nowhere = {
      {"HF_HUB_CACHE", path("")}, {"FERRY_MODELS", ""}, {"HF_HUB_OFFLINE", "1"}};
  std::filesystem::rename(path("models"), path("elsewhere"));
  const std::string by_name = "plan --machine 2080ti-11g " + preset;
  EXPECT_EQ(json_of(by_name, nowhere)["n_parameters"], plan["n_parameters"]);
  EXPECT_CONTAINS(run(by_name, nowhere).err, "bert-large-uncased is not on this machine");
  expect_refused("train --dataset train.tsv " + preset, 4,
                 "'google-bert/bert-large-uncased' is not in", nowhere);
}

TEST_F(Ferry, PresetsAreCopiedToNewFilesOnly) {
  const std::string copy = "presets cp minilm-classify ";
  Outcome outcome = succeed(copy + "mine.toml");
  EXPECT_CONTAINS(outcome.err, "--config mine.toml");
  EXPECT_TRUE(run("presets show minilm-classify").out.starts_with(text_of(path("mine.toml"))));
  make_whole();
  EXPECT_EQ(run("train --config mine.toml --model model --dataset train.tsv --dry-run").exit_code,
            0);

  directory_.write("mine.toml", "# changed\n");
  expect_refused(copy + "mine.toml", 2, "is there already");
  EXPECT_EQ(text_of(path("mine.toml")), "# changed\n");

  std::filesystem::create_directory(path("to"));
  EXPECT_EQ(run(copy + "to").exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(path("to/minilm-classify.toml")));
  EXPECT_EQ(run(copy + "/no/such/place.toml").exit_code, 5);
  EXPECT_CONTAINS(run("presets cp minilm-clasify mine.toml").err, "did you mean");
  EXPECT_EQ(run(copy).exit_code, 2);
}

TEST_F(Ferry, PresetNamesComeOneALine) {
  directory_.write("ferry/presets/my own.toml", "# Mine\nseed = 1\n");
  const std::string names = "\n" + run("presets ls --names").out;
  EXPECT_CONTAINS(names, "\nmy own\n");
  EXPECT_CONTAINS(names, "\nminilm-classify\n");
  EXPECT_EQ(run("presets ls --names --json").exit_code, 2);
}

/** A page with tables between the script's marks. */
class RenewedPage : public Ferry {
 protected:
  void SetUp() override {
    Ferry::SetUp();
    if (!std::filesystem::exists(FERRY_SOURCE_ROOT "/scripts"))
      GTEST_SKIP() << "no source tree at " << FERRY_SOURCE_ROOT;
  }
  /** What the script makes of it, between what was before and after. */
  std::string renewed(const std::string& script, const std::string& stale) const {
    const std::string before = "# Head\n\n<!-- " + script + " (made) -->\n";
    const std::string after = "<!-- end of " + script + " -->\n\nThe & \\ end\n";
    const std::string file = directory_.write("page.md", before + stale + after).string();
    const Outcome outcome = run_ferry(
        {.arguments = {FERRY_SOURCE_ROOT "/scripts/renew_" + script, ferry_binary(), file},
         .program = "bash"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const std::string page = text_of(file);
    EXPECT_TRUE(page.starts_with(before) && page.ends_with(after)) << page;
    return page.substr(before.size(), page.size() - before.size() - after.size());
  }
};

TEST_F(RenewedPage, OfPresetsHasTheirTables) {
  const std::string tables = renewed("presets", "stale\n");
  EXPECT_TRUE(tables.starts_with("### classification\n")) << tables;
  EXPECT_CONTAINS(tables, "| `minilm-classify` |");
  EXPECT_FALSE(config::contains(tables, "stale"));
}

TEST_F(RenewedPage, OfOptionsHasTheirTable) {
  const std::string options = run("help --markdown").out;
  EXPECT_EQ(options, config::options_markdown());
  for (const std::string& stale : {std::string(), std::string("| `gone` | | | | x |\n\n"), options})
    EXPECT_EQ(renewed("options", stale), options);
}

TEST_F(Ferry, FullDiskIsToldNotSwallowed) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  Outcome outcome = run_ferry({{"--help"}, {}, {}, "/dev/full"});
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_CONTAINS(outcome.err, "cannot write to standard output");
}

/** Every library that the dynamic loader opens, at start or later. */
TEST_F(Ferry, LoadsNoLibTorch) {
  for (const char* line :
       {"--help", "train --help", "plan --help", "plan --model model", "presets ls",
        "presets show gpt2-lm-2080ti-11g", "doctor --no-measure"}) {
    Outcome outcome = run(line, {{"LD_DEBUG", "files"}});
    EXPECT_CONTAINS(outcome.err, "libc.so");  // the listing works
    for (const char* library : {"torch", "libc10", "libcudart", "libpython"})
      EXPECT_EQ(outcome.err.find(library), std::string::npos) << line << " loads " << library;
  }
}

}  // namespace
}  // namespace ferry::cli
