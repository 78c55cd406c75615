// The whole program as a user runs it: train, evaluate, predict, export on a tiny BERT; and what
// bad input gets.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <span>
#include <sstream>

#include "src/files/hf/checkpoint_reader.h"
#include "tests/files/hostile_files.h"
#include "tests/train/tiny_model.h"

namespace ferry::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kQuery = "bert.encoder.layer.0.attention.self.query.weight";

struct Outcome {
  int code = 0;
  std::string out, err;
};

std::string text_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

/** "peak host memory" of what a run printed at its end, in bytes. */
struct PeakMemory {
  double promised = 0, actual = 0;
};
PeakMemory peak_memory_in(const std::string& printed) {
  static const std::regex row("peak host memory\\D+([0-9.]+) ([KMG])iB\\D+([0-9.]+) ([KMG])iB");
  std::smatch found;
  if (!std::regex_search(printed, found, row)) return {};
  auto bytes = [&](size_t number) {
    return std::stod(found[number]) *
           std::pow(1024.0, 1 + std::string("KMG").find(found[number + 1].str()));
  };
  return {bytes(1), bytes(3)};
}

class Program : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    root_ = fs::temp_directory_path() / ("ferry_program_" + std::to_string(getpid()));
    fs::create_directories(root_);
    setenv("XDG_DATA_HOME", (root_ / "data").c_str(), 1);  // an index of runs of its own
    write_tiny_model(root_ / "model");
    write_tiny_data(root_ / "train.tsv", 300, 1);
    write_tiny_data(root_ / "dev.tsv", 60, 2);
  }
  static void TearDownTestSuite() { fs::remove_all(root_); }

  /** `first`: what the shell does before, such as a limit. */
  static Outcome ferry(const std::string& arguments, const std::string& first = "true") {
    const std::string out = (root_ / "out").string(), err = (root_ / "err").string();
    const std::string command = std::string("cd '") + root_.string() + "' && " + first +
                                " && env -u FERRY_SEED FERRY_TRAINER='" FERRY_TRAINER_BINARY
                                "' '" FERRY_BINARY "' " +
                                arguments + " >'" + out + "' 2>'" + err + "'";
    const int status = std::system(command.c_str());
    return {WEXITSTATUS(status), text_of(out), text_of(err)};
  }
  static std::string train_arguments(const std::string& run) {
    return "train --model model --dataset train.tsv --eval-dataset dev.tsv --device cpu "
           "--train-batch-size 8 --lr 3e-3 --epochs 2 "
           "--output-dir " +
           run + " ";
  }
  /** A copy of the tiny model, to be damaged. */
  static fs::path copied_model(const std::string& name) {
    fs::remove_all(root_ / name);
    fs::copy(root_ / "model", root_ / name, fs::copy_options::recursive);
    return root_ / name;
  }
  /** Overwrites the first value of a tensor of a model.safetensors. */
  static void set_first_value(const fs::path& file, const std::string& tensor, float value) {
    std::string bytes = text_of(file);
    uint64_t n_header = 0;
    std::memcpy(&n_header, bytes.data(), sizeof n_header);
    const auto header = nlohmann::json::parse(bytes.substr(sizeof n_header, n_header));
    const size_t begin = header.at(tensor).at("data_offsets").at(0);
    std::memcpy(bytes.data() + sizeof n_header + n_header + begin, &value, sizeof value);
    std::ofstream(file, std::ios::binary) << bytes;
  }
  static void write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file, std::ios::binary) << text;
  }
  /** Weights as they are kept: the type of all, and the values of one of them in fp32. */
  struct Kept {
    std::set<StoredType> types;
    std::string said;  ///< "dtype" of config.json
    std::vector<float> values;
  };
  static Kept kept_in(const std::string& directory) {
    Kept kept;
    const auto weights = CheckpointReader::open(root_ / directory);
    for (const StoredTensor* tensor : weights.tensors())
      kept.types.insert(tensor->type);
    weights.read_f32(weights.get(kQuery), [&](std::span<const float> values, int64_t) {
      kept.values.insert(kept.values.end(), values.begin(), values.end());
    });
    kept.said =
        nlohmann::json::parse(text_of(root_ / directory / "config.json")).value("dtype", "");
    return kept;
  }
  /** To the nearest bf16, ties to even. */
  static std::vector<float> as_bf16(std::vector<float> values) {
    for (float& value : values) {
      uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
      std::memcpy(&value, &bits, sizeof bits);
    }
    return values;
  }
  /** The outcome's exit code, and its message holds each of these. */
  static void expect_fault(const Outcome& outcome,
                           int code,
                           const std::vector<std::string>& holds) {
    EXPECT_EQ(outcome.code, code) << outcome.err;
    for (const std::string& part : holds)
      EXPECT_NE(outcome.err.find(part), std::string::npos) << part << " in: " << outcome.err;
  }
  static inline fs::path root_;
};

using Types = std::set<StoredType>;

TEST_F(Program, TheTrainedModelIsInTheTypeOfItsRun) {
  const std::string words = "--dtype bf16 --max-steps 6 ";
  ASSERT_EQ(ferry(train_arguments("half") + words).code, 0);
  ASSERT_EQ(ferry(train_arguments("master") + words + "--final-dtype fp32").code, 0);
  ASSERT_EQ(ferry(train_arguments("fp16") + words + "--final-dtype fp16").code, 0);
  const Kept half = kept_in("half/final"), master = kept_in("master/final"),
             fp16 = kept_in("fp16/final");
  EXPECT_EQ(half.types, Types{StoredType::bf16});
  EXPECT_EQ(half.said, "bfloat16");
  EXPECT_EQ(master.types, Types{StoredType::f32});
  EXPECT_EQ(master.said, "float32");
  EXPECT_EQ(half.values, as_bf16(master.values));
  EXPECT_NE(half.values, master.values);
  EXPECT_EQ(fp16.types, Types{StoredType::f16});
  EXPECT_EQ(fp16.said, "float16");
  ASSERT_EQ(fp16.values.size(), master.values.size());
  for (size_t i = 0; i < fp16.values.size(); ++i)
    EXPECT_NEAR(fp16.values[i], master.values[i],
                std::ldexp(std::abs(master.values[i]), -11) + 1e-7);
  // Checkpoints hold the master weights in any case.
  EXPECT_EQ(kept_in("half/checkpoint-6").types, Types{StoredType::f32});
  EXPECT_EQ(kept_in("half/checkpoint-6").values, master.values);
  // The plan counts the file so.
  const auto planned_bytes = [](const std::string& more) -> int64_t {
    const Outcome plan =
        ferry("plan --model model --dataset train.tsv --device cpu --json " + more);
    EXPECT_EQ(plan.code, 0) << plan.err;
    return nlohmann::json::parse(plan.out)["disk"]["final_bytes"];
  };
  const int64_t fp32_bytes = planned_bytes("--dtype fp32");
  EXPECT_EQ(planned_bytes("--dtype bf16 --final-dtype fp32"), fp32_bytes);
  EXPECT_EQ(2 * planned_bytes("--dtype bf16"), fp32_bytes);
  EXPECT_EQ(2 * planned_bytes("--dtype fp32 --final-dtype fp16"), fp32_bytes);
}

TEST_F(Program, ExportsInTheTypeThatIsAskedFor) {
  ASSERT_EQ(ferry(train_arguments("types") + "--dtype bf16 --max-steps 6").code, 0);
  int n = 0;
  const auto exported = [&](const std::string& words) {
    const std::string to = "typed" + std::to_string(n++);
    const Outcome outcome = ferry("export --output " + to + " " + words);
    EXPECT_EQ(outcome.code, 0) << words << ": " << outcome.err;
    return kept_in(to);
  };
  const std::vector<float> master = kept_in("types/checkpoint-6").values;
  // A checkpoint becomes what its run would have left.
  const Kept as_run = exported("--model types/checkpoint-6");
  EXPECT_EQ(as_run.types, Types{StoredType::bf16});
  EXPECT_EQ(as_run.said, "bfloat16");
  EXPECT_EQ(as_run.values, as_bf16(master));
  const Kept whole = exported("--model types/checkpoint-6 --dtype fp32");
  EXPECT_EQ(whole.types, Types{StoredType::f32});
  EXPECT_EQ(whole.said, "float32");
  EXPECT_EQ(whole.values, master);
  // Other models stay as they are, or take the type.
  EXPECT_EQ(exported("--model types").types, Types{StoredType::bf16});
  const Kept wider = exported("--model types --dtype float32");
  EXPECT_EQ(wider.types, Types{StoredType::f32});
  EXPECT_EQ(wider.values, as_bf16(master));
  EXPECT_EQ(exported("--model model").types, Types{StoredType::f32});
  const Kept rounded = exported("--model model --dtype bf16");
  EXPECT_EQ(rounded.values, as_bf16(kept_in("model").values));
  EXPECT_EQ(exported("--model model --dtype fp16").said, "float16");
  expect_fault(ferry("export --model model --dtype int8 --output typed_int8"), 2,
               {"dtype", "int8"});
  EXPECT_FALSE(fs::exists(root_ / "typed_int8"));
}

#ifndef FERRY_WITH_CUDA
/** A machine without a GPU is given no more of CUDA than LibTorch's CPU half asks for. */
TEST_F(Program, TrainerForTheCpuLoadsNoCudaHalf) {
  const std::string listing = (root_ / "ldd").string();
  ASSERT_EQ(std::system(("ldd '" FERRY_TRAINER_BINARY "' >'" + listing + "'").c_str()), 0);
  const std::string libraries = text_of(listing);
  EXPECT_NE(libraries.find("libtorch_cpu"), std::string::npos) << libraries;
  for (const char* absent : {"libtorch.so", "libtorch_cuda", "not found"})
    EXPECT_EQ(libraries.find(absent), std::string::npos) << libraries;
}
#else
/** Asked for, the GPU is needed; left to Ferry, the CPU does, and the user hears why. */
TEST_F(Program, AnOldDriverIsRefusedWithTheOneThatIsNeeded) {
  fs::create_directories(root_ / "driver");
  fs::create_symlink(OLD_CUDA_DRIVER, root_ / "driver/libcuda.so.1");
  const char* paths = std::getenv("LD_LIBRARY_PATH");
  const std::string first = "export LD_LIBRARY_PATH='" + (root_ / "driver").string() +
                            (paths ? ":" + std::string(paths) : "") + "'";
  const std::string what = "the NVIDIA driver is too old: it serves CUDA 12.2",
                    cure = "update the NVIDIA driver to 580 or newer";
  // The last of two equal options counts.
  expect_fault(ferry(train_arguments("refused") + "--device cuda", first), 5, {what, cure});
  EXPECT_FALSE(fs::exists(root_ / "refused"));
  expect_fault(ferry(train_arguments("on_cpu") + "--device auto --max-steps 1", first), 0,
               {"on the CPU, because " + what, cure});
}
#endif

TEST_F(Program, TrainsEvaluatesPredictsAndExports) {
  Outcome train = ferry(train_arguments("run"));
  ASSERT_EQ(train.code, 0) << train.err;
  for (const char* part : {"accuracy: 1.0000", "training loss", "true \\ predicted", "expected",
                           "peak host memory", "predictions on held-out"})
    EXPECT_NE(train.out.find(part), std::string::npos) << part << " in:\n" << train.out;
  const PeakMemory peak = peak_memory_in(train.out);
  EXPECT_GT(peak.actual, 0) << train.out;
  EXPECT_LE(peak.actual, 1.05 * peak.promised) << train.out;
  EXPECT_TRUE(fs::exists(root_ / "run/final/model.safetensors"));
  EXPECT_TRUE(fs::exists(root_ / "run/final/vocab.txt"));
  EXPECT_FALSE(fs::exists(root_ / "run/final.partial"));
  auto config = nlohmann::json::parse(text_of(root_ / "run/final/config.json"));
  EXPECT_EQ(config["id2label"]["0"], "blue");
  EXPECT_EQ(config["architectures"][0], "BertForSequenceClassification");
  EXPECT_EQ(config["problem_type"], "single_label_classification");

  Outcome eval = ferry("eval --model run --dataset dev.tsv --device cpu --json");
  ASSERT_EQ(eval.code, 0) << eval.err;
  EXPECT_EQ(nlohmann::json::parse(eval.out)["accuracy"], 1.0);
  EXPECT_EQ(nlohmann::json::parse(eval.out)["samples"], 60);

  Outcome predict = ferry("predict --model run --device cpu 'the old car is red' 'a green house'");
  ASSERT_EQ(predict.code, 0) << predict.err;
  EXPECT_EQ(predict.out.substr(0, 3), "red");
  EXPECT_NE(predict.out.find("\ngreen"), std::string::npos) << predict.out;

  Outcome exported = ferry("export --model run --output exported");
  ASSERT_EQ(exported.code, 0) << exported.err;
  auto a = CheckpointReader::open(root_ / "run/final"),
       b = CheckpointReader::open(root_ / "exported");
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (const StoredTensor* t : a.tensors())
    EXPECT_TRUE(std::equal(t->bytes.begin(), t->bytes.end(), b.get(t->name).bytes.begin()))
        << t->name;
  expect_fault(ferry("export --model run --output exported"), 2, {"exported"});
  expect_fault(ferry(train_arguments("run")), 2, {"already holds a trained model", "output_dir"});
}

TEST_F(Program, TheSameBitsWhateverThePlacement) {
  ASSERT_EQ(ferry(train_arguments("resident") + "--max-steps 6").code, 0);
  ASSERT_EQ(ferry(train_arguments("streamed") +
                  "--max-steps 6 --placement host --activations recompute --worker-threads 3")
                .code,
            0);
  EXPECT_EQ(text_of(root_ / "resident/final/model.safetensors"),
            text_of(root_ / "streamed/final/model.safetensors"));
  ASSERT_EQ(ferry(train_arguments("other") + "--max-steps 6 --seed 43").code, 0);
  EXPECT_NE(text_of(root_ / "resident/final/model.safetensors"),
            text_of(root_ / "other/final/model.safetensors"));
}

TEST_F(Program, StatesOnADriveAreToldAndGiveTheSameBits) {
  fs::create_directories(root_ / "drive");
  const Outcome on_drive = ferry(train_arguments("on_drive") +
                                 "--max-steps 6 --placement nvme --nvme-path drive "
                                 "--nvme-endurance 1TB");
  if (on_drive.err.find("takes no direct transfers") != std::string::npos)
    GTEST_SKIP() << "the folder for temporary files is on no drive";
  ASSERT_EQ(on_drive.code, 0) << on_drive.err;
  for (const char* part :
       {"of states on the drive, with all copies. A step reads ", "nvme_endurance lasts for "})
    EXPECT_NE(on_drive.out.find(part), std::string::npos) << part << " in:\n" << on_drive.out;
  const auto plan = nlohmann::json::parse(text_of(root_ / "on_drive/run.json"))["plan"];
  int64_t states_bytes = 0;
  for (const auto& row : plan["rows"])
    if (row["place"] == "nvme") states_bytes += row["bytes"].get<int64_t>();
  EXPECT_GT(states_bytes, 0);
  EXPECT_GE(plan["nvme"]["step_written_bytes"], states_bytes);
  EXPECT_GE(plan["nvme"]["store_bytes"], 2 * states_bytes);
  EXPECT_GE(fs::file_size(root_ / "drive/on_drive.states"), plan["nvme"]["store_bytes"]);

  ASSERT_EQ(ferry(train_arguments("in_memory") + "--max-steps 6").code, 0);
  EXPECT_EQ(text_of(root_ / "on_drive/final/model.safetensors"),
            text_of(root_ / "in_memory/final/model.safetensors"));
  EXPECT_FALSE(
      nlohmann::json::parse(text_of(root_ / "in_memory/run.json"))["plan"].contains("nvme"));
}

// Without clipping blocks are updated as their gradients arrive, on queues of their own here.
TEST_F(Program, TheSameBitsWithoutClipping) {
  const std::string options = "--max-steps 6 --max-grad-norm 0 ";
  ASSERT_EQ(ferry(train_arguments("unclipped") + options).code, 0);
  ASSERT_EQ(ferry(train_arguments("unclipped_queues") + options +
                  "--placement host --device simulated --activations recompute")
                .code,
            0);
  EXPECT_EQ(text_of(root_ / "unclipped/final/model.safetensors"),
            text_of(root_ / "unclipped_queues/final/model.safetensors"));
}

// A system that pins little: copies go through a ring. One that pins nothing: no run begins.
TEST_F(Program, TheSameBitsWhereTheSystemRefusesToPin) {
  const auto train = [&](const std::string& run, const std::string& options,
                         const std::string& pinnable) {
    const std::string of_device =
        options + " --max-steps 4 --logging-steps 1 --device simulated --activations recompute";
    return ferry(train_arguments(run) + of_device,
                 pinnable.empty() ? "true" : "export FERRY_SIMULATED_PINS=" + pinnable);
  };
  /** The pinned bytes of a run's last step. */
  const auto pinned = [&](const std::string& run) {
    std::istringstream lines(text_of(root_ / run / "metrics.jsonl"));
    int64_t n_bytes = -1;
    for (std::string line; std::getline(lines, line);)
      n_bytes = nlohmann::json::parse(line).value("host_bytes_pinned", n_bytes);
    return n_bytes;
  };
  const auto model = [&](const std::string& run) {
    return text_of(root_ / run / "final/model.safetensors");
  };
  const Outcome all = train("pins_all", "--placement host", "");
  ASSERT_EQ(all.code, 0) << all.err;
  EXPECT_EQ(all.err.find("go through the ring"), std::string::npos) << all.err;
  const int64_t copied_bytes = pinned("pins_all");
  EXPECT_GT(copied_bytes, 0);

  constexpr int64_t kMiB = 1 << 20;
  for (const int64_t mib : {1, 3}) {
    const std::string run = "pins_" + std::to_string(mib);
    const Outcome little = train(run, "--placement host", std::to_string(mib * kMiB));
    ASSERT_EQ(little.code, 0) << little.err;
    EXPECT_EQ(model(run), model("pins_all")) << run;
    EXPECT_LE(pinned(run), mib * kMiB);
    EXPECT_GT(pinned(run), 0);
  }

  const Outcome refused = train("pins_refused", "--placement host", "0");
  EXPECT_EQ(refused.code, 3) << refused.err;
  EXPECT_NE(refused.err.find("the system would not pin"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("memlock"), std::string::npos) << refused.err;
  EXPECT_FALSE(fs::exists(root_ / "pins_refused"));
}

TEST_F(Program, TracesItsFirstSteps) {
  ASSERT_EQ(ferry(train_arguments("untraced") + "--max-steps 12 --placement host").code, 0);
  const Outcome traced =
      ferry(train_arguments("traced") + "--max-steps 12 --placement host --trace steps.trace");
  ASSERT_EQ(traced.code, 0) << traced.err;
  EXPECT_NE(traced.err.find("trace of 10 steps in '"), std::string::npos) << traced.err;
  EXPECT_NE(traced.err.find("steps.trace'"), std::string::npos) << traced.err;
  EXPECT_EQ(text_of(root_ / "untraced/final/model.safetensors"),
            text_of(root_ / "traced/final/model.safetensors"));
  const auto trace = nlohmann::json::parse(text_of(root_ / "steps.trace"));
  std::map<std::string, int> n_of;  // by what was done
  for (const auto& event : trace.at("traceEvents"))
    if (event.at("ph") == "X") ++n_of[event.at("cat").get<std::string>()];
  EXPECT_EQ(n_of["decide"], 10);
  EXPECT_GT(n_of["forward"], 20);
  EXPECT_EQ(n_of["forward"], n_of["backward"]);
  EXPECT_EQ(n_of["update"] % 10, 0);
  std::ifstream lines(root_ / "traced/metrics.jsonl");
  int n_overlaps = 0;
  for (std::string text; std::getline(lines, text);) {
    const auto line = nlohmann::json::parse(text);
    if (!line.contains("overlap_percent")) continue;
    ++n_overlaps;
    EXPECT_EQ(line["traced_steps"], 10);
    EXPECT_GE(line["overlap_percent"], 0);
    EXPECT_LE(line["overlap_percent"], 100);
    EXPECT_GT(line["compute_busy_ms"], 0);
  }
  EXPECT_EQ(n_overlaps, 1);
  // A run that ends before leaves what there was; a place that cannot be written is an error.
  ASSERT_EQ(ferry(train_arguments("short_trace") + "--max-steps 3 --trace short.trace").code, 0);
  EXPECT_EQ(text_of(root_ / "short.trace").find("\"step\":4"), std::string::npos);
  expect_fault(ferry(train_arguments("no_trace") + "--max-steps 3 --trace no/such/dir/trace"), 5,
               {"no/such/dir/trace", "cannot be written"});
}

TEST_F(Program, MaskedLmAdaptsToTextsWithoutLabels) {
  Outcome train = ferry(train_arguments("mlm") + "--task mlm --max-steps 20");
  ASSERT_EQ(train.code, 0) << train.err;
  auto config = nlohmann::json::parse(text_of(root_ / "mlm/final/config.json"));
  EXPECT_EQ(config["architectures"][0], "BertForMaskedLM");
  EXPECT_NE(train.out.find("eval_loss"), std::string::npos);
  // As the run masked: the same figures.
  const Outcome eval = ferry("eval --model mlm --dataset dev.tsv --device cpu");
  ASSERT_EQ(eval.code, 0) << eval.err;
  const auto figures = [](const std::string& text) {
    std::smatch found;
    std::regex_search(text, found, std::regex("eval_loss: ([0-9.]+)\nperplexity: ([0-9.]+)\n"));
    return found.str();
  };
  EXPECT_FALSE(figures(train.out).empty()) << train.out;
  EXPECT_EQ(figures(eval.out), figures(train.out)) << eval.out;
  std::istringstream numbers(figures(eval.out));
  double loss = 0, perplexity = 0;
  std::string name;
  numbers >> name >> loss >> name >> perplexity;
  EXPECT_NEAR(perplexity, std::exp(loss), 1e-3 * perplexity);
  expect_fault(ferry("predict --model mlm --device cpu a"), 4, {"language model"});
}

TEST_F(Program, PrintsTheMeanLossSinceTheLastLine) {
  const Outcome train = ferry(train_arguments("mean") + "--max-steps 40 --logging-steps 3");
  ASSERT_EQ(train.code, 0) << train.err;
  std::istringstream lines(text_of(root_ / "mean/metrics.jsonl"));
  double sum = 0;
  int n = 0, n_lines = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto values = nlohmann::json::parse(line);
    if (!values.contains("loss")) continue;
    sum += values["loss"].get<double>();
    ++n;
    const int step = values["step"];
    ASSERT_EQ(values.contains("loss_mean"), step % 3 == 0 || step % 4 == 0) << line;
    if (!values.contains("loss_mean")) continue;
    EXPECT_DOUBLE_EQ(values["loss_mean"], sum / n);
    char printed[64];
    std::snprintf(printed, sizeof printed, "step %d/40: loss %.4f ", step, sum / n);
    if (step % 3 == 0 || step == 40) {
      EXPECT_NE(train.err.find(printed), std::string::npos) << printed << "in:\n" << train.err;
    }
    sum = n = 0;
    ++n_lines;
  }
  EXPECT_EQ(n_lines, 20);
}

TEST_F(Program, ADivergedTrainingThatStaysFiniteIsWarnedOf) {
  const Outcome train = ferry(
      "train --model model --dataset train.tsv --device cpu --max-steps 30 --lr 1 "
      "--max-grad-norm 0 --output-dir rises");
  EXPECT_EQ(train.code, 0) << train.err;
  for (const std::string& said :
       {train.err, text_of(root_ / "rises/train.log"), text_of(root_ / "rises/run.json")})
    for (const char* part :
         {"the loss rose from ", "lower learning_rate (it was 1)", "set max_grad_norm = 1"})
      EXPECT_NE(said.find(part), std::string::npos) << part << " in: " << said;
  EXPECT_NE(ferry("runs show rises").out.find("the loss rose from "), std::string::npos);
  const Outcome good = ferry(train_arguments("falls") + "--max-steps 30");
  EXPECT_EQ(good.err.find("the loss rose"), std::string::npos) << good.err;
}

TEST_F(Program, DamagedModels) {
  const auto damaged = &Program::copied_model;
  auto train = [&](const std::string& model) {
    return ferry("train --model " + model +
                 " --dataset train.tsv --device cpu --output-dir never --max-steps 1");
  };
  fs::remove(damaged("no_weights") / "model.safetensors");
  expect_fault(train("no_weights"), 4, {"no_weights"});
  fs::resize_file(damaged("truncated") / "model.safetensors", 5000);
  expect_fault(train("truncated"), 4, {"download"});
  auto config = nlohmann::json::parse(text_of(damaged("shape") / "config.json"));
  config["intermediate_size"] = 128;
  write("shape/config.json", config.dump());
  expect_fault(train("shape"), 4, {"intermediate.dense", "[64, 32]", "[128, 32]"});
  config["intermediate_size"] = 64;
  config["model_type"] = "gpt9";
  damaged("family");
  write("family/config.json", config.dump());
  expect_fault(train("family"), 4, {"gpt9"});
  expect_fault(train("nowhere"), 4, {"nowhere"});
  set_first_value(damaged("nan") / "model.safetensors", kQuery,
                  std::numeric_limits<float>::quiet_NaN());
  expect_fault(train("nan"), 4, {kQuery, "nan"});
  if (getuid() != 0) {
    fs::permissions(damaged("unreadable") / "tokenizer_config.json", fs::perms::none);
    expect_fault(train("unreadable"), 4, {"tokenizer_config.json"});
  }
  EXPECT_FALSE(fs::exists(root_ / "never")) << "a fault of the model leaves nothing behind";
}

/** Finite weights whose outputs are not: nothing is saved that no step could change. */
TEST_F(Program, PredictsWhatItIsGiven) {
  ASSERT_EQ(ferry(train_arguments("given")).code, 0);
  const auto predict = [](const std::string& given, const std::string& first = "true") {
    return ferry("predict --model given --device cpu " + given, first);
  };
  write("new.csv", "text;label\n\"a red car; new\";\nold blue house;\n");
  const Outcome file = predict("new.csv");
  ASSERT_EQ(file.code, 0) << file.err;
  EXPECT_NE(file.err.find("'new.csv' is a file"), std::string::npos) << file.err;
  EXPECT_EQ(file.out.substr(0, 3), "red");
  EXPECT_NE(file.out.find("\nblue"), std::string::npos) << file.out;
  EXPECT_EQ(predict("-- new.csv").err.find("is a file"), std::string::npos);
  expect_fault(predict("new.csv 'a red car'"), 2, {"new.csv", "give one file alone"});
  expect_fault(predict("new.csv --dataset dev.tsv"), 2, {"new.csv", "give one file alone"});
  expect_fault(predict("none.csv"), 0, {});  // no such file: a text

  // Data that comes through a pipe, by each of its names.
  EXPECT_EQ(predict("<new.txt", "printf 'a red car\\n\\na blue car' >new.txt").out.substr(0, 3),
            "red");
  const std::string lines = "printf 'text\\na red car\\na blue car\\n' >lines.csv";
  for (const char* given : {"--dataset /dev/stdin --dataset-format csv <lines.csv",
                            "--dataset /dev/fd/7 --dataset-format csv 7<lines.csv"}) {
    const Outcome piped = predict(given, lines);
    EXPECT_EQ(piped.code, 0) << piped.err;
    EXPECT_EQ(piped.out.substr(0, 3), "red");
  }
  expect_fault(predict("<nul.txt", "printf 'text\\na\\0b\\n' >nul.txt"), 4,
               {"byte 6 of standard input (line 2) is 0 (NUL)"});
  expect_fault(predict("</dev/zero"), 4, {"byte 0 of standard input (line 1) is 0 (NUL)"});
  expect_fault(predict("</dev/null"), 4, {"no texts on standard input"});
  expect_fault(predict("--dataset fifo.csv", "mkfifo fifo.csv"), 4, {"'fifo.csv' is a pipe"});
  expect_fault(ferry("train --model model --device cpu --output-dir never --max-steps 1 "
                     "--dataset /dev/stdin --dataset-format tsv <train.tsv"),
               4, {"'/dev/stdin' can be read once", "write it to a file"});
}

TEST_F(Program, PredictsPairs) {
  std::string rows = "sentence1\tsentence2\tlabel\n";
  for (int i = 0; i < 20; ++i)
    rows += std::string("a red car\ta ") + (i % 2 ? "blue" : "red") + " car\t" +
            (i % 2 ? "other" : "same") + "\n";
  write("pairs.tsv", rows);
  const Outcome train = ferry(
      "train --model model --device cpu --output-dir pairs --max-steps 2 --dataset pairs.tsv");
  ASSERT_EQ(train.code, 0) << train.err;
  EXPECT_NE(train.out.find("--pairs \"a text\""), std::string::npos) << train.out;
  const auto predict = [](const std::string& given) {
    return ferry("predict --model pairs --device cpu " + given);
  };
  const Outcome two = predict("--json --pairs 'a red car' 'a blue car' 'a b' 'c d'");
  ASSERT_EQ(two.code, 0) << two.err;
  const auto first = nlohmann::json::parse(two.out.substr(0, two.out.find('\n')));
  EXPECT_EQ(first["text"], "a red car");
  EXPECT_EQ(first["text_pair"], "a blue car");
  EXPECT_EQ(std::count(two.out.begin(), two.out.end(), '\n'), 2);
  write("pairs.txt", "a red car\ta blue car\n");
  const auto one = nlohmann::json::parse(predict("--json --pairs <pairs.txt").out);
  EXPECT_EQ(one["text_pair"], first["text_pair"]);
  EXPECT_EQ(one["labels"], first["labels"]);
  expect_fault(predict("'a red car' 'a blue car'"), 2,
               {"was trained on pairs of texts", "give pairs: --pairs"});
  expect_fault(predict("--pairs 'a red car' 'a blue car' 'a b'"), 2, {"3 texts are given"});
  write("single.txt", "a red car\n");
  expect_fault(predict("--pairs <single.txt"), 4, {"line 1 of standard input is no pair"});
  expect_fault(predict("--dataset dev.tsv"), 4, {"is read as one text an example"});
  EXPECT_EQ(ferry("eval --model pairs --device cpu --dataset pairs.tsv").code, 0);
  // Trained on from there with single texts, it is a model of single texts.
  ASSERT_EQ(ferry("train --model pairs --device cpu --output-dir singles --max-steps 1 "
                  "--dataset train.tsv")
                .code,
            0);
  EXPECT_EQ(ferry("predict --model singles --device cpu 'a red car'").code, 0);
}

TEST_F(Program, NoLikelyLabelIsAnEmptyList) {
  std::string rows;
  for (int i = 0; i < 8; ++i)
    rows +=
        R"({"text": "a red car", "labels": [)" + std::string(i == 0 ? R"("x", "y")" : "") + "]}\n";
  write("lists.jsonl", rows);
  const Outcome train = ferry(
      "train --model model --device cpu --output-dir lists --max-steps 20 --lr 3e-3 "
      "--dataset lists.jsonl");
  ASSERT_EQ(train.code, 0) << train.err;
  EXPECT_NE(train.err.find("2 labels, any number of them per text: x, y") +
                train.out.find("2 labels, any number of them per text: x, y"),
            2 * std::string::npos);
  const Outcome predict = ferry("predict --model lists --device cpu --json 'a red car'");
  ASSERT_EQ(predict.code, 0) << predict.err;
  EXPECT_EQ(nlohmann::json::parse(predict.out)["labels"], nlohmann::json::array());
}

TEST_F(Program, HostileFilesOfAModel) {
  for (const char* name :
       {"config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt"})
    for (const auto& [what, make] : hostile_files()) {
      const fs::path model = copied_model("hostile");
      fs::remove(model / name);
      make(model / name);
      const Outcome train = ferry(
          "train --model hostile --dataset train.tsv --device cpu --output-dir never "
          "--max-steps 1");
      expect_fault(train, 4, {name});
    }
  EXPECT_FALSE(fs::exists(root_ / "never"));
}

TEST_F(Program, DivergedRunsSaveNothing) {
  set_first_value(copied_model("huge") / "model.safetensors", kQuery, 3e38f);
  Outcome train = ferry(
      "train --model huge --dataset train.tsv --device cpu --output-dir diverged "
      "--max-steps 3");
  expect_fault(train, 6, {"all steps", "learning_rate"});
  EXPECT_EQ(train.err.find("fp32"), std::string::npos) << "the run is fp32 already: " << train.err;
  EXPECT_FALSE(fs::exists(root_ / "diverged/final"));
  ASSERT_EQ(ferry(train_arguments("broken_later") + "--max-steps 1").code, 0);
  set_first_value(root_ / "broken_later/final/model.safetensors", kQuery, 3e38f);
  for (const char* verb : {"eval", "predict"}) {
    Outcome outcome =
        ferry(std::string(verb) + " --model broken_later --dataset dev.tsv --device cpu");
    expect_fault(outcome, 6, {"not finite"});
    EXPECT_EQ(outcome.out, "");
  }
}

TEST_F(Program, AVocabularyCutShortIsSaid) {
  copied_model("short_vocabulary");
  const std::string words = text_of(root_ / "model/vocab.txt");
  write("short_vocabulary/vocab.txt", words.substr(0, words.find("\nnear")) + "\n");
  Outcome train = ferry(
      "train --model short_vocabulary --dataset train.tsv --device cpu --max-steps 1 "
      "--output-dir short_vocabulary_run");
  EXPECT_EQ(train.code, 0) << train.err;
  EXPECT_NE(train.err.find("vocabulary complete"), std::string::npos) << train.err;
}

TEST_F(Program, AClassifierIsTrainedForOtherLabels) {
  ASSERT_EQ(ferry(train_arguments("three") + "--max-steps 3").code, 0);
  write("two.tsv", "text\tlabel\na red car\t0\na blue car\t1\na green car\t0\nold\t1\n");
  Outcome two =
      ferry("train --model three --dataset two.tsv --device cpu --max-steps 2 --output-dir two");
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_NE(two.err.find("newly initialised for these labels"), std::string::npos) << two.err;
  EXPECT_NE(two.err.find("classifier.weight of shape [3, 32], expected [2, 32]"), std::string::npos)
      << two.err;
  // transformers leaves its default of two unnamed labels out.
  auto config = nlohmann::json::parse(text_of(root_ / "two/final/config.json"));
  config.erase("id2label"), config.erase("label2id");
  write("two/final/config.json", config.dump());
  Outcome eval = ferry("eval --model two --dataset two.tsv --device cpu --json");
  EXPECT_EQ(eval.code, 0) << eval.err;
  config["id2label"] = {{"0", "a"}, {"1", "b"}, {"2", "c"}};
  write("two/final/config.json", config.dump());
  expect_fault(ferry("predict --model two --device cpu a"), 4,
               {"classifier.weight", "[2, 32]", "[3, 32]"});
  // The same labels in another order stay as the model has them.
  config["id2label"] = {{"0", "1"}, {"1", "0"}};
  write("two/final/config.json", config.dump());
  Outcome again =
      ferry("train --model two --dataset two.tsv --device cpu --max-steps 1 --output-dir again");
  ASSERT_EQ(again.code, 0) << again.err;
  config = nlohmann::json::parse(text_of(root_ / "again/final/config.json"));
  EXPECT_EQ(config["id2label"]["0"], "1");
}

TEST_F(Program, NothingIsOverwritten) {
  write("mine/config.toml", "mine");
  expect_fault(ferry(train_arguments("mine") + "--max-steps 1"), 2, {"not empty", "config.toml"});
  EXPECT_EQ(text_of(root_ / "mine/config.toml"), "mine");
  ASSERT_EQ(ferry(train_arguments("begun") + "--max-steps 1").code, 0);
  write("export.partial/precious", "mine");
  expect_fault(ferry("export --model begun --output export"), 2, {"export.partial"});
  EXPECT_EQ(text_of(root_ / "export.partial/precious"), "mine");
  Outcome limited = ferry(train_arguments("limited") + "--max-steps 1", "ulimit -f 20");
  expect_fault(limited, 5, {"ulimit -f"});
  EXPECT_FALSE(fs::exists(root_ / "limited/final"));
  EXPECT_FALSE(fs::exists(root_ / "limited/final.partial"));
}

TEST_F(Program, BadData) {
  auto train = [&](const std::string& file, const std::string& more = "") {
    return ferry("train --model model --dataset " + file +
                 " --device cpu --output-dir never --max-steps 1 " + more);
  };
  write("empty.tsv", "");
  expect_fault(train("empty.tsv"), 4, {"empty.tsv"});
  write("field.tsv", "text\tlabel\nred car\tred\nblue car\n");
  expect_fault(train("field.tsv"), 4, {"field.tsv:3"});
  write("utf8.tsv", "text\tlabel\nred \xff car\tred\n");
  expect_fault(train("utf8.tsv"), 4, {"utf8.tsv:2", "UTF-8"});
  write("unseen.tsv", "text\tlabel\na car\tviolet\n");
  expect_fault(train("train.tsv", "--eval-dataset unseen.tsv"), 4,
               {"unseen.tsv:2", "violet", "blue"});
  write("pairs.tsv", "text\ttext_pair\tlabel\na\tred\tred\nb\tblue\tblue\nc\tx\tgreen\n");
  expect_fault(train("pairs.tsv", "--eval-dataset train.tsv"), 4, {"train.tsv", "two texts"});
}

TEST_F(Program, PredictsFromStandardInput) {
  ASSERT_EQ(ferry(train_arguments("stdin") + "--max-steps 3").code, 0);
  write("lines.txt", "\xEF\xBB\xBFone text\r\n\nanother text\n");
  Outcome predict = ferry("predict --model stdin --device cpu --json <lines.txt");
  ASSERT_EQ(predict.code, 0) << predict.err;
  EXPECT_EQ(std::count(predict.out.begin(), predict.out.end(), '\n'), 3) << predict.out;
  EXPECT_NE(predict.out.find("\"one text\""), std::string::npos) << predict.out;
  expect_fault(ferry("predict --model stdin --device cpu </dev/null"), 4, {"standard input"});
  write("latin.txt", "caf\xe9\n");
  expect_fault(ferry("predict --model stdin --device cpu <latin.txt"), 4, {"UTF-8"});
}

/** Sizes are rounded up to 64 tokens: many dummy sequences where texts are this short. */
TEST_F(Program, ShortTextsInSmallBatches) {
  for (const char* sizes : {"--train-batch-size 1 --max-length 8", "--train-batch-size 2",
                            "--train-batch-size 8 --micro-batch-size 1 --max-length 5"}) {
    const std::string run = "short" + std::to_string(std::hash<std::string>()(sizes));
    Outcome train = ferry(
        "train --model model --dataset train.tsv --eval-dataset dev.tsv "
        "--device cpu --max-steps 3 --output-dir " +
        run + " " + sizes);
    EXPECT_EQ(train.code, 0) << sizes << ": " << train.err;
    Outcome predict = ferry(
        "predict --device cpu --max-length 8 --per-device-train-batch-size 1 "
        "--model " +
        run + " a -- b");
    EXPECT_EQ(predict.code, 0) << sizes << ": " << predict.err;
  }
}

/** Texts have 9 tokens at most: whatever more max_length allows takes no memory and changes no bit.
 */
TEST_F(Program, PlansForTheTextsThereAre) {
  const auto plan_of = [](const std::string& run) {
    return nlohmann::json::parse(text_of(root_ / run / "run.json"))["plan"];
  };
  for (const char* length : {"9", "16", "32"}) {
    const Outcome train = ferry(train_arguments(std::string("length_") + length) +
                                "--max-steps 6 --max-length " + length);
    ASSERT_EQ(train.code, 0) << train.err;
    EXPECT_EQ(train.err.find("the longest text has 9 tokens") != std::string::npos,
              length != std::string("9"))
        << train.err;
  }
  for (const char* longer : {"length_16", "length_32"}) {
    EXPECT_EQ(plan_of(longer), plan_of("length_9"));
    EXPECT_EQ(text_of(root_ / longer / "final/model.safetensors"),
              text_of(root_ / "length_9/final/model.safetensors"));
  }
  // Fewer tokens, less memory.
  ASSERT_EQ(ferry(train_arguments("length_5") + "--max-steps 1 --max-length 5").code, 0);
  EXPECT_NE(plan_of("length_5"), plan_of("length_9"));
  // `ferry plan` reads the texts, too, and says what is trained.
  for (const char* length : {"5", "32"}) {
    const std::string run = std::string("length_") + length;
    std::string words = train_arguments(run) + "--max-steps 6 --json --max-length " + length;
    const Outcome plan = ferry(words.replace(0, std::strlen("train"), "plan"));
    ASSERT_EQ(plan.code, 0) << plan.err;
    EXPECT_NE(plan.err.find("3 labels: blue, green, red"), std::string::npos) << plan.err;
    const auto said = nlohmann::json::parse(plan.out), trained = plan_of(run);
    for (const char* key : {"why", "micro_batch_size", "rows"})
      EXPECT_EQ(said[key], trained[key]) << run << " " << key;
  }
}

TEST_F(Program, EvaluatesOnlyATrainedClassifier) {
  ASSERT_EQ(ferry(train_arguments("trained") + "--max-steps 3").code, 0);
  auto config = nlohmann::json::parse(text_of(root_ / "trained/final/config.json"));
  EXPECT_EQ(config["dtype"], "float32");
  config.erase("problem_type");  // as transformers writes it before it trains
  write("trained/final/config.json", config.dump());
  Outcome eval = ferry("eval --model trained --dataset dev.tsv --device cpu --json");
  ASSERT_EQ(eval.code, 0) << eval.err;
  EXPECT_TRUE(nlohmann::json::parse(eval.out).contains("accuracy")) << eval.out;
  EXPECT_EQ(ferry("eval --model trained --dataset dev.tsv --device cpu >/dev/full; #").code, 5);
  config["problem_type"] = "klassification";
  write("trained/final/config.json", config.dump());
  expect_fault(ferry("eval --model trained --dataset dev.tsv --device cpu"), 4, {"klassification"});
  config = nlohmann::json::parse(text_of(root_ / "model/config.json"));
  config["id2label"] = {{"0", "blue"}, {"1", "red"}, {"2", "green"}};
  fs::create_directories(root_ / "headless");
  fs::copy(root_ / "model", root_ / "headless", fs::copy_options::recursive);
  write("headless/config.json", config.dump());
  expect_fault(ferry("predict --model headless --device cpu a"), 4,
               {"has no tensor", "head is not trained"});
}

#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // they take memory of their own
/** Or says beforehand that it cannot; with LibTorch's build for a GPU the least is more. */
TEST_F(Program, TakesNoMoreHostMemoryThanItIsGiven) {
  int n_trained = 0;
  for (const int mib : {200, 300, 520}) {
    const std::string given = std::to_string(mib) + "MiB";
    const Outcome train =
        ferry(train_arguments("kept" + given) + "--max-steps 2 --host-memory " + given);
    if (train.code == 3) {
      expect_fault(train, 3, {"does not fit", "beside LibTorch"});
      continue;
    }
    ASSERT_EQ(train.code, 0) << train.err;
    ++n_trained;
    const PeakMemory peak = peak_memory_in(train.out);
    EXPECT_LE(peak.promised, mib * 1024.0 * 1024 * 1.05) << given << train.out;
    EXPECT_LE(peak.actual, mib * 1024.0 * 1024) << given << train.out;
  }
  EXPECT_GT(n_trained, 0);
}
#endif

TEST_F(Program, BadOptions) {
  expect_fault(ferry(train_arguments("never") + "--learning-rte 1"), 2,
               {"did you mean '--learning-rate'"});
  expect_fault(ferry(train_arguments("never") + "--adam-beta1 1.5"), 2, {"adam_beta1", "1.5"});
  expect_fault(ferry(train_arguments("never") + "--max-length 64"), 2, {"max_length", "32"});
  expect_fault(ferry(train_arguments("never") +
                     "--micro-batch-size 2048 --batch-size 2048 --host-memory 1MiB"),
               3, {"largest: staging", "per_device_train_batch_size"});  // of 300 short texts
  if (getuid() != 0) {
    fs::create_directories(root_ / "locked");
    fs::permissions(root_ / "locked", fs::perms::owner_read | fs::perms::owner_exec);
    expect_fault(ferry(train_arguments("locked/run")), 5, {"locked"});
  }
  write("a_file", "");
  expect_fault(ferry(train_arguments("a_file/run")), 5, {"a_file"});
}

}  // namespace
}  // namespace ferry::test
