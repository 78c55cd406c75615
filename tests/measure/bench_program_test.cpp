// `ferry doctor` and `ferry bench` with the real trainer: figures in JSON, tables for people, and
// the profile that is kept.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "src/base/bytes.h"
#include "src/files/mapped_file.h"
#include "src/plan/machine/machine_profile.h"
#include "tests/cli/run_ferry.h"
#include "tests/config/config_fixture.h"

namespace ferry::cli {
namespace {

using config::TemporaryDirectory;

class BenchProgram : public testing::Test {
 protected:
  void SetUp() override {
    if (ferry_binary().empty())
      GTEST_SKIP() << "FERRY_BINARY names no ferry; run through meson test";
  }
  Outcome run(std::vector<std::string> words) const {
    return run_ferry({.arguments = std::move(words),
                      .environment = {{"FERRY_TRAINER", FERRY_TRAINER_BINARY},
                                      {"XDG_DATA_HOME", (home_.path() / "data").string()}},
                      .directory = home_.path().string()});
  }
  std::filesystem::path stored() const { return home_.path() / "data/ferry/machine.json"; }
  TemporaryDirectory home_;
};

TEST_F(BenchProgram, DoctorMeasuresAndKeepsTheProfile) {
  const Outcome outcome =
      run({"doctor", "--json", "--seconds", "0.3", "--nvme-path", home_.path().string()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto report = nlohmann::ordered_json::parse(outcome.out);
  const MachineProfile profile = parse_machine_profile(report["profile"].dump(), "doctor");
  EXPECT_EQ(profile.host.cpu, report["cpu"]["name"].get<std::string>());
  EXPECT_EQ(profile.host.n_threads, report["cpu"]["n_threads"]);
  EXPECT_EQ(profile.host.simd, report["cpu"]["simd"].get<std::string>());
  EXPECT_FALSE(profile.host.updates.empty());
  EXPECT_FALSE(profile.host.gemms.empty());
  EXPECT_TRUE(report["skipped"].is_array());
  EXPECT_CONTAINS(profile.name, profile.host.cpu);
  ASSERT_TRUE(std::filesystem::is_regular_file(stored())) << outcome.err;
  ASSERT_EQ(profile.nvme.size(), 1u) << outcome.out;
  EXPECT_EQ(profile.nvme[0].directories, std::vector{home_.path().string()});
  EXPECT_GT(profile.nvme[0].mixed_bytes_per_s, 0);

  // Plans of this machine assume nothing of its memory any more.
  const auto plan = [&](const std::string& format) {
    std::vector<std::string> words = {"plan", "--model", "model"};
    if (!format.empty()) words.push_back(format);
    return run(words);
  };
  home_.write("model/config.json", R"({"model_type": "bert", "vocab_size": 64, "hidden_size": 32,
      "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 64,
      "max_position_embeddings": 32, "type_vocab_size": 2, "hidden_act": "gelu"})");
  EXPECT_EQ(nlohmann::json::parse(plan("--json").out)["is_reserve_assumed"], false);
  EXPECT_EQ(plan("").out.find("assumed, not measured"), std::string::npos);
  std::filesystem::rename(stored(), home_.path() / "away.json");
  const auto unmeasured = nlohmann::json::parse(plan("--json").out);
  EXPECT_EQ(unmeasured["is_reserve_assumed"], true);
  EXPECT_GT(unmeasured["host_reserved_bytes"], 100 << 20);
  EXPECT_CONTAINS(plan("").out, "assumed, not measured on that machine");
  std::filesystem::rename(home_.path() / "away.json", stored());

  // Neither a run on another directory of the drive nor the next doctor measures it again.
  std::filesystem::create_directory(home_.path() / "states");
  const Outcome on_drive = run({"plan", "--model", "model", "--nvme-path", "states"});
  EXPECT_EQ(on_drive.exit_code, 0) << on_drive.err;
  EXPECT_EQ(on_drive.err.find("measuring"), std::string::npos) << on_drive.err;

  // Looking only shows what was kept, word for word.
  const Outcome again = run({"doctor", "--json", "--no-measure"});
  EXPECT_EQ(nlohmann::ordered_json::parse(again.out)["profile"], report["profile"]);
  const Outcome text = run({"doctor", "--no-measure"});
  EXPECT_CONTAINS(text.out, profile.source);
  EXPECT_CONTAINS(text.out, "M parameters/s with");
  EXPECT_CONTAINS(text.out, "GEMM, CPU");
}

TEST_F(BenchProgram, APartGivesItsFiguresAndStoresNothing) {
  const Outcome json = run({"bench", "gemm", "--json", "--seconds", "0.3"});
  EXPECT_EQ(json.exit_code, 0) << json.err;
  const auto out = nlohmann::ordered_json::parse(json.out);
  EXPECT_EQ(out["part"], "gemm");
  const MachineProfile profile = parse_machine_profile(out["profile"].dump(), "bench");
  EXPECT_FALSE(profile.host.gemms.empty());
  EXPECT_TRUE(profile.host.updates.empty());
  EXPECT_FALSE(std::filesystem::exists(stored()));

  const Outcome text = run({"bench", "adamw", "--seconds", "0.3"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_CONTAINS(text.out, "AdamW on the CPU");
  EXPECT_EQ(text.out.find("TFLOP/s"), std::string::npos) << text.out;
}

TEST_F(BenchProgram, AStepIsOneOfTheEngine) {
  const Outcome json = run({"bench", "step", "--json", "--seconds", "0.3"});
  EXPECT_EQ(json.exit_code, 0) << json.err;
  const auto out = nlohmann::ordered_json::parse(json.out);
  ASSERT_FALSE(out["steps"].empty()) << json.out;
  for (const auto& step : out["steps"]) {
    EXPECT_CONTAINS(step["model"].get<std::string>(), "BERT");
    EXPECT_GT(step["ms"].get<double>(), 0);
  }
  EXPECT_FALSE(out.contains("profile"));
  EXPECT_CONTAINS(run({"bench", "step", "--seconds", "0.3"}).out, "ms a step");
}

/** Two processes of the CPU, or three: the trainer checks what arrives at each. */
TEST_F(BenchProgram, ExchangesOfProcessesAreMeasuredAndKept) {
  MachineProfile before = {.name = "here", .source = "measured before"};
  before.host.cpu = cpu_name();
  before.learnt = {{.run = "bert, threads = 2, ranks = 2",
                    .plan = "host",
                    .micro_batch_size = 8,
                    .predicted_s = 1,
                    .step_s = 2},
                   {.run = "bert, threads = 2",
                    .plan = "host",
                    .micro_batch_size = 8,
                    .predicted_s = 1,
                    .step_s = 2}};
  home_.write("data/ferry/machine.json", to_json(before));
  for (const int n_ranks : {2, 3}) {
    const Outcome json = run({"bench", "nccl", "--device", "cpu", "--gpus", std::to_string(n_ranks),
                              "--message-bytes", "1MiB", "--seconds", "0.5", "--json"});
    ASSERT_EQ(json.exit_code, 0) << json.err;
    const auto out = nlohmann::ordered_json::parse(json.out);
    EXPECT_EQ(out["by"], "Gloo");
    EXPECT_EQ(out["n_ranks"], n_ranks);
    EXPECT_EQ(out["is_kept"], true);
    std::map<std::string, std::vector<int64_t>> sizes;
    double rate = 0, message_s = 0;
    for (const auto& row : out["exchanges"]) {
      const std::string operation = row["operation"];
      const double bytes = row["bytes"], algorithm = row["bytes_per_s"];
      const double of_others = (n_ranks - 1.0) / n_ranks;
      const double share = operation == "send/recv"    ? 1
                           : operation == "all-reduce" ? 2 * of_others
                                                       : of_others;
      EXPECT_NEAR(algorithm, bytes / row["seconds"].get<double>(), 2e-3 * algorithm);
      EXPECT_NEAR(row["bus_bytes_per_s"].get<double>(), share * algorithm, 2e-3 * algorithm);
      if (operation == "all-to-all") {
        rate = std::max(rate, row["bus_bytes_per_s"].get<double>());
        if (sizes[operation].empty()) message_s = row["seconds"];
      }
      sizes[operation].push_back(static_cast<int64_t>(bytes));
    }
    ASSERT_EQ(sizes.size(), 5u);
    for (const auto& [operation, all] : sizes) {
      ASSERT_EQ(all.size(), 5u) << operation;
      for (size_t i = 0; i < all.size(); ++i) {
        const int64_t whole = int64_t{4096} << (2 * i);
        EXPECT_LE(all[i], whole);  // three ranks have equal parts of it
        EXPECT_GT(all[i], whole - 4 * n_ranks);
      }
    }
    const MachineProfile kept = parse_machine_profile(read_text_file(stored()), "kept");
    EXPECT_EQ(kept.source, "measured before");
    ASSERT_TRUE(kept.host.exchange);
    EXPECT_EQ(kept.host.exchange->bytes_per_s, rate);
    EXPECT_EQ(kept.host.exchange->message_s, message_s);
    EXPECT_CONTAINS(kept.host.exchange->source, std::to_string(n_ranks) + " processes by Gloo");
    ASSERT_EQ(kept.learnt.size(), 1u) << "a step of several ranks was timed with other figures";
    EXPECT_EQ(kept.learnt[0].run, "bert, threads = 2");
  }
  // Measured anew by the doctor, the machine keeps them.
  EXPECT_EQ(run({"doctor", "--seconds", "0.3"}).exit_code, 0);
  const MachineProfile anew = parse_machine_profile(read_text_file(stored()), "anew");
  EXPECT_NE(anew.source, "measured before");
  EXPECT_TRUE(anew.host.exchange);
}

TEST_F(BenchProgram, ExchangesHaveATableAndNeedTwoRanks) {
  const Outcome text =
      run({"bench", "nccl", "--device", "cpu", "--message-bytes", "16KiB", "--seconds", "0.1"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_CONTAINS(text.out, "2 processes of the CPU by Gloo");
  for (const char* word : {"all-gather", "reduce-scatter", "all-reduce", "all-to-all", "send/recv",
                           "bus GB/s", "4.0 KiB", "16.0 KiB"})
    EXPECT_CONTAINS(text.out, word);
  EXPECT_CONTAINS(text.err, "this machine has no profile yet");
  EXPECT_FALSE(std::filesystem::exists(stored()));
  struct Case {
    std::vector<std::string> words;
    std::string message;
  };
  for (const auto& [words, message] :
       {Case{{"--gpus", "1", "--device", "cpu"}, "a rank alone sends nothing"},
        Case{{"--gpus", "x", "--device", "cpu"}, "'x' is no number of a GPU"},
        Case{{"--device", "tpu"}, "expected auto, cuda or cpu"},
        Case{{"--message-bytes", "1GiB"}, "expected a size from 4 KiB to 256 MiB"},
        Case{{"--fast"}, "unexpected argument '--fast'"}}) {
    std::vector<std::string> all = {"bench", "nccl"};
    all.insert(all.end(), words.begin(), words.end());
    const Outcome outcome = run(all);
    EXPECT_NE(outcome.exit_code, 0) << message;
    EXPECT_CONTAINS(outcome.err, message);
  }
}

TEST_F(BenchProgram, AWholeProfileIsWrittenWhereItIsAskedFor) {
  const Outcome outcome =
      run({"bench", "all", "--seconds", "0.3", "--output", "here.json", "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const MachineProfile profile = find_machine_preset((home_.path() / "here.json").string());
  EXPECT_EQ(nlohmann::ordered_json::parse(to_json(profile)),
            nlohmann::ordered_json::parse(outcome.out)["profile"]);
  EXPECT_FALSE(profile.host.updates.empty());
  EXPECT_FALSE(std::filesystem::exists(stored()));
}

TEST_F(BenchProgram, WhatCannotBeWrittenIsRefusedBeforeMeasuring) {
  home_.write("there.json", "{}");
  const std::string home = home_.path().string();
  struct Case {
    std::string output, message;
  };
  for (const auto& [output, message] :
       {Case{"there.json", "'there.json' is there already"}, Case{home, "is there already"},
        Case{"none/x.json", "there is no directory 'none' - make it first"},
        Case{"none/", "there is no directory 'none'"},
        Case{"there.json/x.json", "there is no directory 'there.json'"}, Case{"", "is empty"},
        Case{"new.json", "FERRY_TRAINER names no program"}})
    for (const std::string part : {"all", "card"}) {
      // The trainer that measures is not there: Ferry finds out after it has looked at the name.
      const Outcome outcome = run_ferry({.arguments = {"bench", part, "--output", output},
                                         .environment = {{"FERRY_TRAINER", "/no/trainer"}},
                                         .directory = home});
      EXPECT_EQ(outcome.exit_code, 2) << output << outcome.err;
      EXPECT_CONTAINS(outcome.err, message);
    }
  std::filesystem::remove(home_.path() / "there.json");
  EXPECT_TRUE(std::filesystem::is_empty(home_.path()));
}

TEST_F(BenchProgram, AnUnknownPartIsToldTheParts) {
  for (const auto& [part, message] :
       {std::pair{"nope",
                  "the parts are memory, adamw, dram, copy, gpu, gemm, attention, disk, step"},
        std::pair{"gem", "did you mean 'gemm'? the parts are memory"},
        std::pair{"x", "unknown part 'x' - the parts are memory"}}) {
    const Outcome outcome = run({"bench", part});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_CONTAINS(outcome.err, message);
  }
}

TEST_F(BenchProgram, WithoutAGpuThereAreNoCopiesAndNoCard) {
  const Outcome copies = run({"bench", "copy", "--seconds", "0.3", "--json"});
  ASSERT_EQ(copies.exit_code, 0) << copies.err;
  if (nlohmann::ordered_json::parse(copies.out)["profile"].contains("gpu"))
    GTEST_SKIP() << "there is a GPU";
  EXPECT_CONTAINS(run({"bench", "copy", "--seconds", "0.3"}).err, "no usable GPU");
  const Outcome card = run({"bench", "card", "--seconds", "0.3"});
  EXPECT_EQ(card.exit_code, 5);
  EXPECT_CONTAINS(card.err, "no usable GPU to describe");
}

TEST_F(BenchProgram, ACardSaysNothingOfItsHost) {
  const Outcome outcome = run({"bench", "card", "--seconds", "0.5", "--output", "card.json"});
  if (outcome.exit_code == 5) GTEST_SKIP() << "there is no GPU";
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const MachineProfile card = find_machine_preset((home_.path() / "card.json").string());
  ASSERT_TRUE(card.gpu);
  EXPECT_EQ(card.name, card.gpu->name);
  EXPECT_FALSE(card.gpu->gemms.empty());
  EXPECT_EQ(card.host.n_threads, 0);
  EXPECT_TRUE(card.host.cpu.empty());
  EXPECT_TRUE(card.host.gemms.empty());
  EXPECT_TRUE(card.disk.directory.empty());
  const Outcome again = run({"bench", "card", "--seconds", "0.5", "--output", "card.json"});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_CONTAINS(again.err, "is there already");
}

TEST_F(BenchProgram, TheTrainerRefusesWhatItDoesNotKnow) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"bench"},
                                                {"bench", "gem"},
                                                {"bench", "gemm", "dram"},
                                                {"bench", "gemm", "--seconds", "x"},
                                                {"bench", "gemm", "--fast", "1"}}) {
    const Outcome outcome = run_ferry({.arguments = words, .program = FERRY_TRAINER_BINARY});
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_TRUE(outcome.out.empty()) << outcome.out;
    EXPECT_CONTAINS(outcome.err, "usage: ferry-trainer bench");
  }
}

}  // namespace
}  // namespace ferry::cli
