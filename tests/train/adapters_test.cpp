// Adapters by the whole program: a run trains and saves them alone, goes on with the bits of one
// that never stopped, and what it made is used, merged and used again like any other model.

#include <cmath>
#include <random>

#include "models/core/storage.h"
#include "src/files/hf/checkpoint_reader.h"
#include "tests/train/run_test.h"
#include "tests/train/tensor_files.h"

namespace ferry::test {
namespace {

using nlohmann::json;

class Adapters : public RunTest {
 protected:
  static void SetUpTestSuite() {
    RunTest::SetUpTestSuite();
    write_tiny_language_model(root_ / "llama");
    std::ofstream text(root_ / "text.txt");
    std::mt19937 random(3);
    for (int line = 0; line < 120; ++line)
      text << (random() % 2 ? "the red car was new\n" : "a green bird is near the house\n");
  }
  static std::vector<std::string> with(std::vector<std::string> words,
                                       const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static std::vector<std::string> lora_run(const std::string& run,
                                           const std::vector<std::string>& more = {}) {
    return with(new_run(run, {"--tuning=lora", "--lora-r=4", "--lora-dropout=0.1"}), more);
  }
  static std::vector<std::string> of_texts(const std::string& run,
                                           const std::vector<std::string>& more = {}) {
    return with(
        {"train", "--model=llama", "--dataset=text.txt", "--tuning=lora", "--lora-r=2",
         "--device=" + device(), "--max-steps=12", "--train-batch-size=8", "--micro-batch-size=4",
         "--max-length=32", "--save-steps=5", "--intra-op-threads=1", "--output-dir=" + run},
        more);
  }
  /** The matrices that nf4 takes, as transformers saves them with bitsandbytes. */
  static void store_as_bitsandbytes(const fs::path& model) {
    Tensors tensors = read_tensors(model), stored;
    const auto bytes_of = [](const void* from, size_t n) {
      const auto* bytes = static_cast<const std::byte*>(from);
      return std::vector<std::byte>(bytes, bytes + n);
    };
    for (auto& [name, tensor] : tensors) {
      const bool is_linear = name.find("_proj") != name.npos;
      if (!is_linear || tensor.shape[1] % kNf4Values_per_scale != 0) {
        stored[name] = tensor;
        continue;
      }
      const StoredMatrix matrix =
          stored_matrix(Storage::nf4, tensor.shape[0], tensor.shape[1], DType::f32);
      std::vector<std::byte> codes(static_cast<size_t>(matrix.rows * matrix.row_bytes));
      std::vector<float> scales(static_cast<size_t>(matrix.rows * matrix.row_scales));
      quantise(matrix,
               {reinterpret_cast<const float*>(tensor.bytes.data()), tensor.bytes.size() / 4},
               codes.data(), scales.data());
      const std::string state = json({{"quant_type", "nf4"},
                                      {"blocksize", 64},
                                      {"dtype", "float32"},
                                      {"shape", tensor.shape}})
                                    .dump();
      stored[name + ".absmax"] = {
          StoredType::f32, {std::ssize(scales)}, bytes_of(scales.data(), scales.size() * 4)};
      stored[name + ".quant_map"] = {StoredType::f32, {16}, bytes_of(kNf4.data(), 64)};
      stored[name + ".quant_state.bitsandbytes__nf4"] = {
          StoredType::u8, {std::ssize(state)}, bytes_of(state.data(), state.size())};
      stored[name] = {StoredType::u8, {std::ssize(codes), 1}, codes};
    }
    write_tensors(model, stored);
    json config = json::parse(text_of(model / "config.json"));
    config["quantization_config"] = {
        {"quant_method", "bitsandbytes"}, {"load_in_4bit", true}, {"bnb_4bit_quant_type", "nf4"}};
    std::ofstream(model / "config.json") << config.dump();
  }
  static json adapter_config(const std::string& run) {
    return json::parse(text_of(root_ / run / "final/adapter_config.json"));
  }
  static std::vector<std::string> tensors_of(const fs::path& directory, const char* stem) {
    std::vector<std::string> names;
    const CheckpointReader file = CheckpointReader::open(directory, stem);
    for (const StoredTensor* tensor : file.tensors())
      names.push_back(tensor->name);
    return names;
  }
  static std::string adapter_of(const std::string& directory) {
    return text_of(root_ / directory / "adapter_model.safetensors");
  }
  /** The evaluation of a model on the data that the runs are evaluated on. */
  static double loss_of(const std::string& model) {
    EXPECT_EQ(ferry({"eval", "--model=" + model, "--dataset=dev.tsv", "--json"}).code(), 0)
        << text_of(root_ / "err");
    return json::parse(text_of(root_ / "out")).at("eval_loss");
  }
};

TEST_F(Adapters, AreAllThatARunSaves) {
  ASSERT_EQ(ferry(lora_run("lora")).code(), 0) << text_of(root_ / "err");
  const json config = adapter_config("lora");
  EXPECT_EQ(config["peft_type"], "LORA");
  EXPECT_EQ(config["task_type"], "SEQ_CLS");
  EXPECT_EQ(config["r"], 4);
  EXPECT_EQ(config["lora_alpha"], 8);
  EXPECT_EQ(config["base_model_name_or_path"], (root_ / "model").string());
  EXPECT_EQ(config["modules_to_save"], json({"bert.pooler", "classifier"}));
  for (const char* place : {"final", "checkpoint-75"}) {
    EXPECT_FALSE(fs::exists(root_ / "lora" / place / "model.safetensors")) << place;
    int n_whole = 0;
    for (const std::string& name : tensors_of(root_ / "lora" / place, "adapter_model")) {
      EXPECT_TRUE(name.starts_with("base_model.model.")) << name;
      n_whole += name.find(".lora_") == std::string::npos;
    }
    EXPECT_EQ(n_whole, 4) << "the new head";
  }
  const std::string states = text_of(root_ / "lora/checkpoint-75/state/adam_m.safetensors");
  EXPECT_EQ(states.find("self.query.weight"), std::string::npos);
  EXPECT_NE(states.find("self.query.lora_A.weight"), std::string::npos);
  const auto losses = losses_of("lora");
  EXPECT_LT(losses.back(), losses.front());
}

TEST_F(Adapters, GoOnWithTheSameBits) {
  ASSERT_EQ(ferry(lora_run("whole")).code(), 0) << text_of(root_ / "err");
  for (const char* placement : {"--placement=host", "--placement=resident"}) {
    const std::string run = std::string("killed") + (placement + 12);
    const pid_t child = start(lora_run(run));
    wait_for_line(run, 20);
    ::kill(child, SIGKILL);
    wait_for(child);
    ASSERT_EQ(ferry(go_on(run, {placement})).code(), 0) << text_of(root_ / "err");
    EXPECT_EQ(curve_of("whole"), curve_of(run));
    EXPECT_TRUE(adapter_of("whole/final") == adapter_of(run + "/final"));
    EXPECT_TRUE(adapter_of("whole/checkpoint-75") == adapter_of(run + "/checkpoint-75"));
  }
  fs::rename(root_ / "killedhost/final", root_ / "final_away");
  EXPECT_EQ(ferry({"train", "--resume=killedhost/checkpoint-70", "--lora-r=8"}).code(), 2);
  EXPECT_NE(text_of(root_ / "err").find("lora_r"), std::string::npos) << text_of(root_ / "err");
}

/** States on a drive are ahead of the last checkpoint. */
TEST_F(Adapters, GoOnFromADriveAndOnMoreProcesses) {
  const std::vector<std::string> drive = {"--placement=nvme", "--nvme-path=drive"};
  fs::create_directories(root_ / "drive");
  if (!fs::exists(root_ / "whole/final")) {
    ASSERT_EQ(ferry(lora_run("whole")).code(), 0) << text_of(root_ / "err");
  }
  const pid_t child = start(lora_run("on_drive", drive));
  wait_for_line("on_drive", 20);
  ::kill(child, SIGKILL);
  wait_for(child);
  ASSERT_EQ(ferry({"train", "--resume=on_drive"}).code(), 0) << text_of(root_ / "err");
  EXPECT_EQ(curve_of("whole"), curve_of("on_drive"));
  EXPECT_TRUE(adapter_of("whole/final") == adapter_of("on_drive/final"));

  if (device() == "cuda") return;
  const pid_t two = start(lora_run("ranks", {"--device=cpu", "--gpus=2"}));
  wait_for_line("ranks", 20);
  ::kill(two, SIGKILL);
  wait_for(two);
  ASSERT_EQ(ferry({"train", "--resume=ranks", "--gpus=3"}).code(), 0) << text_of(root_ / "err");
  EXPECT_EQ(curve_of("whole"), curve_of("ranks"));
  EXPECT_TRUE(adapter_of("whole/final") == adapter_of("ranks/final"));
}

TEST_F(Adapters, AreUsedBesideTheirModelAndMerged) {
  if (!fs::exists(root_ / "whole/final")) {
    ASSERT_EQ(ferry(lora_run("whole")).code(), 0) << text_of(root_ / "err");
  }
  fs::remove_all(root_ / "merged");
  ASSERT_EQ(ferry({"export", "--model=whole", "--output-dir=merged"}).code(), 0)
      << text_of(root_ / "err");
  const auto merged = tensors_of(root_ / "merged", "model");
  for (const std::string& name : merged)
    EXPECT_TRUE(name.find("lora") == std::string::npos && !name.starts_with("base_model")) << name;
  const double beside = loss_of("whole/final");
  // GPUs compute in 16 bits here, to which the merged weights are rounded.
  EXPECT_NEAR(loss_of("merged"), beside, device() == "cuda" ? 4e-3 : 1e-5);
  EXPECT_NEAR(losses_of("whole").back(), beside, 1e-5);

  // An adapter that lacks the files of its model finds them there.
  fs::create_directories(root_ / "bare");
  for (const char* file : {"adapter_config.json", "adapter_model.safetensors", "config.json"})
    fs::copy_file(root_ / "whole/final" / file, root_ / "bare" / file,
                  fs::copy_options::overwrite_existing);
  EXPECT_EQ(loss_of("bare"), beside);

  // A model that is gone, and one that is another.
  json config = adapter_config("whole");
  config["base_model_name_or_path"] = (root_ / "gone").string();
  std::ofstream(root_ / "bare/adapter_config.json") << config.dump();
  EXPECT_EQ(ferry({"eval", "--model=bare", "--dataset=dev.tsv"}).code(), 4);
  EXPECT_NE(text_of(root_ / "err").find("is for the model"), std::string::npos);
  config["base_model_name_or_path"] = (root_ / "llama").string();
  std::ofstream(root_ / "bare/adapter_config.json") << config.dump();
  EXPECT_EQ(ferry({"eval", "--model=bare", "--dataset=dev.tsv"}).code(), 4);
  config["use_qalora"] = true;
  std::ofstream(root_ / "bare/adapter_config.json") << config.dump();
  EXPECT_EQ(ferry({"eval", "--model=bare", "--dataset=dev.tsv"}).code(), 4);
  EXPECT_NE(text_of(root_ / "err").find("QALoRA"), std::string::npos) << text_of(root_ / "err");
  // Lengths of rows that the file does not have.
  config["use_qalora"] = false;
  config["use_dora"] = true;
  config["base_model_name_or_path"] = (root_ / "model").string();
  std::ofstream(root_ / "bare/adapter_config.json") << config.dump();
  EXPECT_EQ(ferry({"eval", "--model=bare", "--dataset=dev.tsv"}).code(), 4);
  EXPECT_NE(text_of(root_ / "err").find("lora_magnitude_vector"), std::string::npos)
      << text_of(root_ / "err");
  EXPECT_EQ(ferry(new_run("from_adapter", {"--model=whole/final"})).code(), 4);
}

TEST_F(Adapters, OfALanguageModelGoOnWithTexts) {
  ASSERT_EQ(ferry(of_texts("texts", {"--lora-targets=q_proj,v_proj", "--dtype=bf16"})).code(), 0)
      << text_of(root_ / "err");
  for (const std::string& name : tensors_of(root_ / "texts/final", "adapter_model"))
    EXPECT_TRUE(name.find("q_proj.lora_") != name.npos || name.find("v_proj.lora_") != name.npos)
        << name;
  const auto text_by = [&](const std::string& model) {
    EXPECT_EQ(ferry({"generate", "--model=" + model, "--dtype=fp32", "--temperature=0",
                     "--max-new-tokens=8", "the red"})
                  .code(),
              0)
        << text_of(root_ / "err");
    return text_of(root_ / "out");
  };
  ASSERT_EQ(ferry({"export", "--model=texts", "--output-dir=merged_texts"}).code(), 0)
      << text_of(root_ / "err");
  EXPECT_EQ(text_by("texts"), text_by("merged_texts"));
}

TEST_F(Adapters, AreRefusedWhereTheyHaveNoPlace) {
  const auto refusal = [&](const std::vector<std::string>& more) {
    EXPECT_EQ(ferry(of_texts("refused", more)).code(), 2);
    EXPECT_FALSE(fs::exists(root_ / "refused"));
    return text_of(root_ / "err");
  };
  EXPECT_NE(refusal({"--lora-targets=q_prj"}).find("did you mean 'q_proj'?"), std::string::npos);
  EXPECT_NE(refusal({"--lora-targets=embed_tokens"}).find("--modules-to-save embed_tokens"),
            std::string::npos);
  EXPECT_NE(refusal({"--modules-to-save=nothing"}).find("names no module"), std::string::npos);
  EXPECT_NE(refusal({"--modules-to-save=k_proj"}).find("as one"), std::string::npos);
  EXPECT_NE(refusal({"--tuning=full"}).find("add --tuning lora"), std::string::npos);
  auto scratch = of_texts("refused", {"--from-config=llama"});
  std::erase(scratch, "--model=llama");
  EXPECT_EQ(ferry(scratch).code(), 2);
  EXPECT_NE(text_of(root_ / "err").find("from scratch"), std::string::npos)
      << text_of(root_ / "err");
  auto biases = of_texts("refused", {"--tuning=bitfit"});
  std::erase(biases, "--lora-r=2");
  EXPECT_EQ(ferry(biases).code(), 2);
  EXPECT_NE(text_of(root_ / "err").find("has none"), std::string::npos) << text_of(root_ / "err");

  // A head of masked words that the model lacks would be drawn, and be in no file.
  const std::vector<std::string> masked = {
      "train",         "--model=model", "--task=mlm",    "--dataset=text.txt",
      "--tuning=lora", "--device=cpu",  "--max-steps=1", "--output-dir=refused"};
  EXPECT_EQ(ferry(masked).code(), 4);
  EXPECT_NE(text_of(root_ / "err").find("--modules-to-save cls.predictions"), std::string::npos)
      << text_of(root_ / "err");
}

/** LLaMA-Factory's files mean LoRA where they name no method. */
TEST_F(Adapters, OfAFileAreTakenBackByAWord) {
  std::ofstream(root_ / "recipe.yaml") << "stage: sft\nlora_rank: 4\n";
  const std::vector<std::string> words = {"train",
                                          "--config=recipe.yaml",
                                          "--model=llama",
                                          "--task=causal-lm",
                                          "--dataset=text.txt",
                                          "--device=cpu",
                                          "--max-steps=1",
                                          "--max-length=32"};
  ASSERT_EQ(ferry(with(words, {"--output-dir=by_file"})).code(), 0) << text_of(root_ / "err");
  EXPECT_EQ(adapter_config("by_file")["r"], 4);
  ASSERT_EQ(ferry(with(words, {"--tuning=full", "--output-dir=by_word"})).code(), 0)
      << text_of(root_ / "err");
  EXPECT_TRUE(fs::exists(root_ / "by_word/final/model.safetensors"));
}

/** The words of input and output are one tensor of this model. */
TEST_F(Adapters, KeepTiedTensorsOne) {
  ASSERT_EQ(ferry(of_texts("tied", {"--modules-to-save=embed_tokens"})).code(), 0)
      << text_of(root_ / "err");
  EXPECT_EQ(adapter_config("tied")["ensure_weight_tying"], true);
  EXPECT_EQ(adapter_config("tied")["modules_to_save"], json({"model.embed_tokens"}));
  const auto eval = [&] { return ferry({"eval", "--model=tied", "--dataset=text.txt", "--json"}); };
  const auto merge = [&] {
    fs::remove_all(root_ / "merged_tied");
    return ferry({"export", "--model=tied", "--output-dir=merged_tied"});
  };
  ASSERT_EQ(eval().code(), 0) << text_of(root_ / "err");
  const std::string loss = text_of(root_ / "out");

  // PEFT reads and writes both names of such a tensor.
  const std::string kIn = "base_model.model.model.embed_tokens.weight",
                    kOut = "base_model.model.lm_head.weight";
  Tensors tensors = read_tensors(root_ / "tied/final", "adapter_model");
  EXPECT_TRUE(tensors.at(kIn).bytes == tensors.at(kOut).bytes);
  ASSERT_EQ(merge().code(), 0) << text_of(root_ / "err");
  const Tensor out = tensors.extract(kOut).mapped();
  write_tensors(root_ / "tied/final", tensors, INT64_MAX, "adapter_model");
  ASSERT_EQ(eval().code(), 0) << text_of(root_ / "err");
  EXPECT_EQ(text_of(root_ / "out"), loss);
  ASSERT_EQ(merge().code(), 0) << text_of(root_ / "err");
  tensors[kOut] = out;

  // Two tensors, or the output's alone, are another model.
  tensors.at(kOut).bytes[0] ^= std::byte{1};
  write_tensors(root_ / "tied/final", tensors, INT64_MAX, "adapter_model");
  for (const auto& outcome : {eval(), merge()}) {
    EXPECT_EQ(outcome.code(), 4);
    EXPECT_NE(outcome.err.find("are one in this model"), std::string::npos) << outcome.err;
  }
  tensors.erase(kIn);
  write_tensors(root_ / "tied/final", tensors, INT64_MAX, "adapter_model");
  for (const auto& outcome : {eval(), merge()}) {
    EXPECT_EQ(outcome.code(), 4);
    EXPECT_NE(outcome.err.find("apart from"), std::string::npos) << outcome.err;
  }
}

TEST_F(Adapters, GoOnBesideTheirModelAlone) {
  fs::copy(root_ / "model", root_ / "base");
  ASSERT_EQ(ferry(lora_run("unmoved", {"--model=base"})).code(), 0) << text_of(root_ / "err");
  const pid_t child = start(lora_run("moved", {"--model=base"}));
  wait_for_line("moved", 20);
  ::kill(child, SIGKILL);
  wait_for(child);
  fs::rename(root_ / "base", root_ / "base_elsewhere");
  EXPECT_EQ(ferry({"train", "--resume=moved"}).code(), 4);

  // Another training of the same model lies where it was.
  fs::copy(root_ / "base_elsewhere", root_ / "base");
  Tensors tensors = read_tensors(root_ / "base");
  tensors.begin()->second.bytes[0] ^= std::byte{1};
  write_tensors(root_ / "base", tensors);
  EXPECT_EQ(ferry({"train", "--resume=moved"}).code(), 2);
  EXPECT_NE(text_of(root_ / "err").find("have changed"), std::string::npos)
      << text_of(root_ / "err");
  ASSERT_EQ(ferry({"train", "--resume=moved", "--model=base_elsewhere"}).code(), 0)
      << text_of(root_ / "err");
  EXPECT_EQ(curve_of("unmoved"), curve_of("moved"));
  EXPECT_TRUE(adapter_of("unmoved/final") == adapter_of("moved/final"));
  EXPECT_EQ(adapter_config("moved")["base_model_name_or_path"],
            (root_ / "base_elsewhere").string());
  fs::copy(root_ / "moved/final", root_ / "of_adapter");
  json config = adapter_config("moved");
  config["base_model_name_or_path"] = (root_ / "moved/final").string();
  std::ofstream(root_ / "of_adapter/adapter_config.json") << config.dump();
  EXPECT_EQ(ferry({"eval", "--model=of_adapter", "--dataset=dev.tsv"}).code(), 4);
  EXPECT_NE(text_of(root_ / "err").find("which is an adapter itself"), std::string::npos)
      << text_of(root_ / "err");
}

/** The norms of a matrix's rows, fp32 in files. */
std::vector<float> row_norms(const Tensor& matrix) {
  std::vector<float> norms;
  const auto* values = reinterpret_cast<const float*>(matrix.bytes.data());
  for (int64_t row = 0; row < matrix.shape[0]; ++row) {
    double square = 0;
    for (int64_t column = 0; column < matrix.shape[1]; ++column) {
      const double value = values[row * matrix.shape[1] + column];
      square += value * value;
    }
    norms.push_back(static_cast<float>(std::sqrt(square)));
  }
  return norms;
}

/** Rows with lengths of their own, in every place, after a kill and on two processes. */
TEST_F(Adapters, TrainLengthsOfRows) {
  const std::vector<std::string> dora = {"--use-dora=true", "--lora-dropout=0.1",
                                         "--learning-rate=0.01"};
  ASSERT_EQ(ferry(of_texts("dora", dora)).code(), 0) << text_of(root_ / "err");
  EXPECT_EQ(adapter_config("dora")["use_dora"], true);
  EXPECT_EQ(adapter_config("dora")["modules_to_save"], json());
  const auto losses = losses_of("dora");
  EXPECT_LT(losses.back(), losses.front());
  for (const char* placement : {"host", "resident"}) {
    const std::string run = std::string("dora_") + placement;
    const pid_t child = start(of_texts(run, with(dora, {std::string("--placement=") + placement})));
    wait_for_line(run, 6);
    ::kill(child, SIGKILL);
    wait_for(child);
    ASSERT_EQ(ferry(go_on(run, {})).code(), 0) << text_of(root_ / "err");
    EXPECT_EQ(curve_of("dora"), curve_of(run));
    EXPECT_TRUE(adapter_of("dora/final") == adapter_of(run + "/final")) << placement;
  }
  if (device() != "cuda") {
    ASSERT_EQ(ferry(of_texts("dora_ranks", with(dora, {"--device=cpu", "--gpus=2"}))).code(), 0)
        << text_of(root_ / "err");
    EXPECT_TRUE(adapter_of("dora/final") == adapter_of("dora_ranks/final"));
  }

  const auto loss_by = [&](const std::string& model) {
    EXPECT_EQ(ferry({"eval", "--model=" + model, "--dataset=text.txt", "--max-length=32", "--json"})
                  .code(),
              0)
        << text_of(root_ / "err");
    return json::parse(text_of(root_ / "out")).at("eval_loss").get<double>();
  };
  const double loss = loss_by("dora");
  EXPECT_LT(loss, loss_by("llama") - 1e-3);
  ASSERT_EQ(ferry({"export", "--model=dora", "--output-dir=merged_dora"}).code(), 0)
      << text_of(root_ / "err");
  EXPECT_NEAR(loss, loss_by("merged_dora"), 2e-6 * loss);
  // The merged rows have the trained lengths.
  const Tensors merged = read_tensors(root_ / "merged_dora"),
                adapter = read_tensors(root_ / "dora/final", "adapter_model");
  const std::string module = "model.layers.1.mlp.down_proj";
  const auto norms = row_norms(merged.at(module + ".weight"));
  const auto& lengths = adapter.at("base_model.model." + module + ".lora_magnitude_vector");
  ASSERT_EQ(lengths.shape, (std::vector<int64_t>{std::ssize(norms)}));
  for (size_t i = 0; i < norms.size(); ++i)
    EXPECT_NEAR(norms[i], reinterpret_cast<const float*>(lengths.bytes.data())[i], 1e-5 * norms[i]);
}

/** Before it learns the adapter changes nothing, also where weights are quantised. */
TEST_F(Adapters, BeginWithTheLengthsThatRowsHave) {
  for (const char* bits : {"none", "nf4", "int8"}) {
    const std::string run = std::string("lengths_") + bits,
                      option = std::string("--quantization=") + bits;
    ASSERT_EQ(ferry(of_texts(run, {"--use-dora=true", option, "--max-steps=1"})).code(), 0)
        << text_of(root_ / "err");
    ASSERT_EQ(ferry(of_texts(run + "_lora", {option, "--max-steps=1"})).code(), 0)
        << text_of(root_ / "err");
    EXPECT_NEAR(losses_of(run).at(0), losses_of(run + "_lora").at(0), 2e-6) << bits;
  }
  EXPECT_EQ(ferry(of_texts("refused", {"--tuning=bitfit", "--use-dora=true"})).code(), 2);
}

/** The same as beside the values that the stored bits stand for. */
TEST_F(Adapters, LearnBesideQuantisedWeights) {
  const auto quantised = [&](Storage storage) {
    const fs::path model = root_ / ("llama_" + std::string(name_of(storage)));
    fs::copy(root_ / "llama", model);
    Tensors tensors = read_tensors(model);
    for (auto& [name, tensor] : tensors) {
      if (name.find("_proj") == name.npos) continue;
      const int64_t rows = tensor.shape[0], columns = tensor.shape[1];
      if (storage == Storage::nf4 && columns % kNf4Values_per_scale != 0) continue;
      const StoredMatrix matrix = stored_matrix(storage, rows, columns, DType::f32);
      std::vector<std::byte> codes(static_cast<size_t>(matrix.rows * matrix.row_bytes));
      std::vector<float> scales(static_cast<size_t>(matrix.rows * matrix.row_scales));
      auto* values = reinterpret_cast<float*>(tensor.bytes.data());
      quantise(matrix, {values, static_cast<size_t>(rows * columns)}, codes.data(), scales.data());
      for (int64_t row = 0; row < rows; ++row)
        dequantise(matrix, codes.data() + row * matrix.row_bytes,
                   scales.data() + row * matrix.row_scales, 0,
                   {values + row * columns, static_cast<size_t>(columns)});
    }
    write_tensors(model, tensors);
    return model.filename().string();
  };
  for (const Storage storage : {Storage::int8, Storage::nf4}) {
    const std::string name(name_of(storage)), with_bits = "bits_" + name,
                                              of_values = "values_" + name;
    const std::string option = "--quantization=" + name;
    ASSERT_EQ(ferry(of_texts(of_values, {"--model=" + quantised(storage)})).code(), 0)
        << text_of(root_ / "err");
    ASSERT_EQ(ferry(of_texts(with_bits, {option})).code(), 0) << text_of(root_ / "err");
    const auto expected = losses_of(of_values), losses = losses_of(with_bits);
    ASSERT_EQ(losses.size(), expected.size());
    for (size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(losses[i], expected[i], 2e-4 * expected[i]) << name << " " << i;

    // They stream, and a run goes on beside them, with the same bits.
    const pid_t child = start(of_texts(with_bits + "_host", {option, "--placement=host"}));
    wait_for_line(with_bits + "_host", 5);
    ::kill(child, SIGKILL);
    wait_for(child);
    ASSERT_EQ(ferry(go_on(with_bits + "_host", {})).code(), 0) << text_of(root_ / "err");
    EXPECT_TRUE(adapter_of(with_bits + "/final") == adapter_of(with_bits + "_host/final"));
  }
  // A model that is stored so is taken as it is: the same codes, the same bits.
  fs::copy(root_ / "llama", root_ / "llama_stored");
  store_as_bitsandbytes(root_ / "llama_stored");
  ASSERT_EQ(ferry(of_texts("stored", {"--model=llama_stored"})).code(), 0)
      << text_of(root_ / "err");
  EXPECT_NE(text_of(root_ / "stored/config.toml").find("quantization = \"nf4\""),
            std::string::npos);
  EXPECT_EQ(losses_of("stored"), losses_of("bits_nf4"));
  EXPECT_TRUE(adapter_of("stored/final") == adapter_of("bits_nf4/final"));
  // Merged it is a model without quantisation.
  ASSERT_EQ(ferry({"export", "--model=stored", "--output-dir=stored_merged"}).code(), 0)
      << text_of(root_ / "err");
  EXPECT_FALSE(
      json::parse(text_of(root_ / "stored_merged/config.json")).contains("quantization_config"));
  for (const auto& [name, tensor] : read_tensors(root_ / "stored_merged"))
    EXPECT_EQ(tensor.type, StoredType::f32) << name;
  EXPECT_EQ(ferry(of_texts("refused", {"--quantization=nf4", "--lora-targets=q_proj",
                                       "--modules-to-save=down_proj"}))
                .code(),
            2);
  EXPECT_NE(text_of(root_ / "err").find("multiple of 64"), std::string::npos)
      << text_of(root_ / "err");
}

/** A merged model has the types of the model that it was. */
TEST_F(Adapters, AreMergedInTheTypesOfTheirModel) {
  fs::copy(root_ / "llama", root_ / "llama_bf16");
  ASSERT_EQ(ferry({"export", "--model=llama", "--dtype=bf16", "--output-dir=llama_half"}).code(), 0)
      << text_of(root_ / "err");
  ASSERT_EQ(
      ferry(of_texts("half", {"--model=llama_half", "--modules-to-save=embed_tokens"})).code(), 0)
      << text_of(root_ / "err");
  ASSERT_EQ(ferry({"export", "--model=half", "--output-dir=merged_half"}).code(), 0)
      << text_of(root_ / "err");
  for (const auto& [name, tensor] : read_tensors(root_ / "merged_half"))
    EXPECT_EQ(tensor.type, StoredType::bf16) << name;
}

/** A tokenizer alone beside an adapter does not hide how its model generates. */
TEST_F(Adapters, StopWhereTheirModelStops) {
  fs::copy(root_ / "llama", root_ / "llama_stops");
  std::ofstream(root_ / "llama_stops/generation_config.json")
      << R"({"eos_token_id": [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]})";
  ASSERT_EQ(ferry(of_texts("stops", {"--model=llama_stops"})).code(), 0) << text_of(root_ / "err");
  fs::remove(root_ / "stops/final/generation_config.json");
  ASSERT_TRUE(fs::exists(root_ / "stops/final/tokenizer.json"));
  ASSERT_EQ(ferry({"generate", "--model=stops", "--json", "the red"}).code(), 0)
      << text_of(root_ / "err");
  EXPECT_EQ(json::parse(text_of(root_ / "out"))["text"], "") << text_of(root_ / "out");
}

/** Two small maps behind or beside the branches of each layer. */
TEST_F(Adapters, MayHaveABottleneck) {
  struct Kind {
    std::string tuning, type, tensor;
    std::vector<std::string> more;
  };
  const Kind kinds[] = {
      {"adapter", "ADAPTER", "down.weight", {"--adapter-size=6"}},
      {"parallel_adapter", "PARALLEL_ADAPTER", "up.weight", {"--adapter-scale=4"}},
      {"low_rank_adapter", "LOW_RANK_ADAPTER", "down.left", {"--adapter-size=5"}},
      {"compacter", "COMPACTER", "up.phm_rule", {"--compacter-division=2"}},
  };
  for (const Kind& kind : kinds) {
    SCOPED_TRACE(kind.tuning);
    auto words = of_texts(kind.tuning,
                          with(kind.more, {"--tuning=" + kind.tuning, "--learning-rate=0.003"}));
    std::erase(words, "--tuning=lora");
    std::erase(words, "--lora-r=2");
    ASSERT_EQ(ferry(words).code(), 0) << text_of(root_ / "err");
    EXPECT_EQ(adapter_config(kind.tuning)["peft_type"], kind.type);
    const auto losses = losses_of(kind.tuning);
    EXPECT_LT(losses.back(), losses.front());
    const Tensors tensors = read_tensors(root_ / kind.tuning / "final", "adapter_model");
    EXPECT_TRUE(tensors.contains("base_model.model.model.layers.1.self_attn.o_proj.adapter." +
                                 kind.tensor));
    for (const auto& [name, tensor] : tensors)
      EXPECT_NE(name.find(".adapter."), std::string::npos) << name;

    const std::string run = kind.tuning + "_host";
    std::ranges::replace(words, "--output-dir=" + kind.tuning, "--output-dir=" + run);
    words.push_back("--placement=host");
    const pid_t child = start(words);
    wait_for_line(run, 6);
    ::kill(child, SIGKILL);
    wait_for(child);
    ASSERT_EQ(ferry(go_on(run, {})).code(), 0) << text_of(root_ / "err");
    EXPECT_EQ(curve_of(kind.tuning), curve_of(run));
    EXPECT_TRUE(adapter_of(kind.tuning + "/final") == adapter_of(run + "/final"));

    // It is used with its model, and is no sum of weights.
    ASSERT_EQ(
        ferry({"eval", "--model=" + kind.tuning, "--dataset=text.txt", "--max-length=32", "--json"})
            .code(),
        0)
        << text_of(root_ / "err");
    const double loss = json::parse(text_of(root_ / "out")).at("eval_loss");
    ASSERT_EQ(
        ferry({"eval", "--model=llama", "--dataset=text.txt", "--max-length=32", "--json"}).code(),
        0);
    EXPECT_LT(loss, json::parse(text_of(root_ / "out")).at("eval_loss").get<double>() - 1e-3);
    EXPECT_EQ(ferry({"export", "--model=" + kind.tuning, "--output-dir=merged_bottleneck"}).code(),
              2);
    EXPECT_NE(text_of(root_ / "err").find("no sum of weights"), std::string::npos)
        << text_of(root_ / "err");
  }
  const auto refusal = [&](std::vector<std::string> more) {
    auto words = of_texts("refused", with(std::move(more), {"--tuning=compacter"}));
    std::erase(words, "--tuning=lora");
    std::erase(words, "--lora-r=2");
    EXPECT_EQ(ferry(words).code(), 2);
    return text_of(root_ / "err");
  };
  EXPECT_NE(refusal({"--adapter-size=10"}).find("divides both"), std::string::npos);
  EXPECT_NE(refusal({"--adapter-scale=2"}).find("--tuning parallel_adapter"), std::string::npos);
  EXPECT_NE(refusal({"--lora-alpha=2"}).find("--tuning lora"), std::string::npos);
}

TEST_F(Adapters, MayBeBiasesAlone) {
  ASSERT_EQ(ferry(new_run("biases", {"--tuning=bitfit"})).code(), 0) << text_of(root_ / "err");
  for (const std::string& name : tensors_of(root_ / "biases/final", "adapter_model"))
    EXPECT_TRUE(name.ends_with(".bias") || name.find("classifier") != name.npos ||
                name.find("pooler") != name.npos)
        << name;
  ASSERT_EQ(ferry({"export", "--model=biases", "--output-dir=merged_biases"}).code(), 0)
      << text_of(root_ / "err");
  EXPECT_NEAR(loss_of("biases/final"), loss_of("merged_biases"), 1e-6);
}

}  // namespace
}  // namespace ferry::test
