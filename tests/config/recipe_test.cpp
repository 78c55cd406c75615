// YAML recipes of LLaMA-Factory, axolotl and TRL, and YAML itself.

#include <algorithm>
#include <filesystem>

#include "tests/config/config_fixture.h"

namespace ferry::config {
namespace {

class Recipe : public testing::Test {
 protected:
  std::string write(const std::string& text, const std::string& name = "r.yaml") {
    return directory_.write(name, text).string();
  }
  CommandLine read(const std::string& text) { return parse("train", {"--config", write(text)}); }
  std::string refusal_of(const std::string& text) {
    return usage_error([&] { read(text); });
  }
  TemporaryDirectory directory_;
};

/** The form of examples/train_full/llama3_full_sft.yaml. */
TEST_F(Recipe, OfLlamaFactory) {
  const std::string data = write("{\"a\": {\"file_name\": \"a.json\"}}", "data/dataset_info.json");
  const CommandLine command = read(
      "### model\n"
      "model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct\n"
      "trust_remote_code: true\n"
      "### method\n"
      "stage: sft\ndo_train: true\nfinetuning_type: full\n"
      "deepspeed: null\n"
      "dataset: a\ndataset_dir: " +
      directory_.path().string() +
      "/data\n"
      "cutoff_len: 2048\noverwrite_cache: true\npreprocessing_num_workers: 16\n"
      "output_dir: saves/llama3\nlogging_steps: 10\nsave_steps: 500\nplot_loss: true\n"
      "overwrite_output_dir: true\nreport_to: none\n"
      "per_device_train_batch_size: 1\ngradient_accumulation_steps: 2\n"
      "learning_rate: 1e-5\nnum_train_epochs: 3.0\nlr_scheduler_type: cosine\n"
      "warmup_ratio: 0.1\nbf16: true\nfp16: false\nddp_timeout: 180000000\n"
      "resume_from_checkpoint: null\n");
  EXPECT_EQ(command.config.text("task"), "causal-lm");
  EXPECT_EQ(command.config.number("learning_rate"), 1e-5);
  EXPECT_EQ(command.config.text("dataset"), directory_.path().string() + "/data/a.json");
  EXPECT_EQ(command.config.text("dtype"), "bf16");
  EXPECT_EQ(command.config.integer("train_batch_size"), 2);
  EXPECT_EQ(command.config.integer("max_length"), 2048);
  EXPECT_EQ(command.config.text("resume_from_checkpoint"), "");
  EXPECT_TRUE(says(command, "recipe of LLaMA-Factory"));
  EXPECT_TRUE(says(command, "using warmup_steps = 0.1"));
}

/** The form of examples/llama-3/fft-8b.yaml. */
TEST_F(Recipe, OfAxolotl) {
  const CommandLine command = read(
      "base_model: NousResearch/Meta-Llama-3.1-8B\n"
      "load_in_8bit: false\nload_in_4bit: false\nstrict: false\n"
      "datasets:\n  - path: a.jsonl\n    type: alpaca\n  - path: b.jsonl\n    ds_type: json\n"
      "    type: completion\n    split: train\n"
      "dataset_prepared_path: last_run_prepared\nval_set_size: 0.05\noutput_dir: ./out\n"
      "sequence_len: 8192\nsample_packing: true\npad_to_sequence_len: true\n"
      "adapter:\nlora_r:\nlora_target_modules:\n"
      "wandb_project:\nwandb_entity:\n"
      "gradient_accumulation_steps: 8\nmicro_batch_size: 1\nnum_epochs: 1\n"
      "optimizer: paged_adamw_8bit\nlr_scheduler: cosine\nlearning_rate: 2e-5\n"
      "bf16: auto\nfp16:\ntf32: false\n"
      "gradient_checkpointing: true\ngradient_checkpointing_kwargs:\n  use_reentrant: false\n"
      "early_stopping_patience:\nresume_from_checkpoint:\nlogging_steps: 1\n"
      "flash_attention: true\nwarmup_steps: 100\nevals_per_epoch: 2\nsaves_per_epoch: 1\n"
      "weight_decay: 0.0\nfsdp:\nfsdp_config:\nspecial_tokens:\n  pad_token: <|end_of_text|>\n");
  const Config& config = command.config;
  EXPECT_EQ(config.text("task"), "causal-lm");
  EXPECT_EQ(config.text("model_name_or_path"), "NousResearch/Meta-Llama-3.1-8B");
  EXPECT_EQ(config.text("dataset"), "a.jsonl,b.jsonl");
  EXPECT_EQ(config.number("eval_fraction"), 0.05);
  EXPECT_EQ(config.text("optim"), "adamw_8bit");
  EXPECT_EQ(config.text("dtype"), "auto");
  EXPECT_EQ(config.text("activations"), "recompute");
  EXPECT_EQ(config.number("learning_rate"), 2e-5);
  EXPECT_EQ(std::get<double>(config.value("eval_steps")), 0.5);
  EXPECT_EQ(config.text("save_strategy"), "epoch");
}

TEST_F(Recipe, OfTrl) {
  const CommandLine command = read(
      "model_name_or_path: Qwen/Qwen2.5-0.5B\ndataset_name: train.jsonl\n"
      "learning_rate: 2.0e-5\nnum_train_epochs: 1\npacking: true\ncompletion_only_loss: true\n"
      "per_device_train_batch_size: 2\ngradient_accumulation_steps: 8\nmax_length: 1024\n"
      "attn_implementation: flash_attention_2\nlr_scheduler_kwargs:\n  min_lr_rate: 0.1\n"
      "lr_scheduler_type: cosine_with_min_lr\nreport_to: none\n");
  EXPECT_EQ(command.config.text("dataset"), "train.jsonl");
  EXPECT_EQ(command.config.number("min_lr_rate"), 0.1);
  EXPECT_TRUE(command.config.flag("packing"));
}

TEST_F(Recipe, IsTakenAsAWord) {
  const std::string file = write("learning_rate: 3e-5\nseed: 7\n");
  const CommandLine command = parse("train", {file, "--seed", "8"});
  EXPECT_EQ(command.config.number("learning_rate"), 3e-5);
  EXPECT_EQ(command.config.integer("seed"), 8);
  EXPECT_CONTAINS(refusal("train", {file, file}), "both files of settings");
  EXPECT_CONTAINS(refusal("train missing.yaml"), "check that the file is there");
}

TEST_F(Recipe, OfLoRA) {
  const CommandLine by_default = read("model_name_or_path: m\nstage: sft\ncutoff_len: 64\n");
  EXPECT_EQ(by_default.config.text("tuning"), "lora");
  EXPECT_EQ(by_default.config.integer("lora_r"), 8) << "as LLaMA-Factory has it";
  const CommandLine said =
      read("stage: sft\nfinetuning_type: lora\nlora_rank: 4\nlora_target: q_proj,v_proj\n");
  EXPECT_EQ(said.config.integer("lora_r"), 4);
  EXPECT_EQ(said.config.list("lora_targets"), (std::vector<std::string>{"q_proj", "v_proj"}));
  const CommandLine axolotl = read(
      "base_model: m\nadapter: lora\nlora_r: 32\nlora_target_linear: true\n"
      "lora_modules_to_save:\n  - embed_tokens\n  - lm_head\n");
  EXPECT_EQ(axolotl.config.text("tuning"), "lora");
  EXPECT_EQ(axolotl.config.integer("lora_r"), 32);
  EXPECT_EQ(axolotl.config.list("modules_to_save"),
            (std::vector<std::string>{"embed_tokens", "lm_head"}));
  EXPECT_EQ(read("stage: sft\nfinetuning_type: full\n").config.text("tuning"), "full");
}

TEST_F(Recipe, OfQuantisedWeightsIsTaken) {
  for (const char* recipe :
       {"base_model: m\nadapter: qlora\n", "base_model: m\nadapter: qlora\nload_in_4bit: true\n",
        "base_model: m\nadapter: lora\nload_in_4bit: true\n",
        "load_in_4bit: true\nbase_model: m\nadapter: qlora\n",
        "stage: sft\nfinetuning_type: lora\nquantization_bit: 4\nquantization_method: bnb\n"}) {
    const CommandLine command = read(recipe);
    EXPECT_EQ(command.config.text("tuning"), "lora") << recipe;
    EXPECT_EQ(command.config.text("quantization"), "nf4") << recipe;
  }
  EXPECT_TRUE(read("base_model: m\nadapter: qlora\nbnb_4bit_use_double_quant: true\n")
                  .config.flag("double_quantization"));
  EXPECT_EQ(read("stage: sft\nquantization_bit: null\n").config.text("quantization"), "none");
  EXPECT_CONTAINS(refusal_of("stage: sft\nquantization_method: hqq\n"), "bitsandbytes");
}

TEST_F(Recipe, PairsOfAnswersAreATaskOfTheirOwn) {
  write(
      "{\"p\": {\"file_name\": \"p.json\", \"ranking\": true, \"columns\": {\"prompt\": "
      "\"instruction\", \"chosen\": \"chosen\", \"rejected\": \"rejected\"}}}",
      "data/dataset_info.json");
  const std::string data = "dataset: p\ndataset_dir: " + directory_.path().string() + "/data\n";
  const CommandLine factory =
      read("stage: dpo\nfinetuning_type: lora\n" + data + "pref_beta: 0.2\npref_loss: orpo\n");
  EXPECT_EQ(factory.config.text("task"), "preference");
  EXPECT_EQ(factory.config.text("preference_loss"), "orpo");
  EXPECT_EQ(factory.config.maybe_number("preference_beta"), 0.2);
  EXPECT_EQ(read("stage: rm\n" + data).config.text("task"), "reward");
  EXPECT_CONTAINS(refusal_of("stage: sft\n" + data), "--task preference");
  EXPECT_EQ(read("base_model: m\nrl: dpo\ndatasets:\n  - path: p.jsonl\n").config.text("task"),
            "preference");
}

TEST_F(Recipe, WhatIsNotThereIsNamedWithItsLine) {
  EXPECT_EQ(
      read("stage: sft\nfinetuning_type: full\ntemplate: llama3\n").config.text("chat_template"),
      "llama3");
  EXPECT_CONTAINS(refusal_of("base_model: m\nrl: grpo\n"), "--task preference");
  EXPECT_CONTAINS(refusal_of("base_model: m\nspecial_tokens:\n  eos_token: <|im_end|>\n"),
                  "adds no tokens");
  EXPECT_CONTAINS(
      refusal_of("base_model: m\ndatasets:\n  - path: a.jsonl\n    type: stepwise_supervised\n"),
      ":4: datasets.type = stepwise_supervised");
  EXPECT_EQ(read("base_model: m\ndatasets:\n  - path: a.jsonl\n    type: chat_template\n")
                .config.text("dataset"),
            "a.jsonl");
  EXPECT_CONTAINS(refusal_of("stage: sft\nfinetuning_type: full\ndataset: alpaca_en_demo\n"),
                  "'alpaca_en_demo' is no file");
  const std::string info = "{\"c\": {\"file_name\": \"c.json\", \"formatting\": \"webgpt\"}}";
  write(info, "data/dataset_info.json");
  EXPECT_CONTAINS(refusal_of("stage: sft\nfinetuning_type: full\ndataset: c\n"), "'webgpt'");
}

TEST_F(Recipe, AListOfDatasetsOfAbsurdSizeIsNotRead) {
  const std::string info = write("{}", "data/dataset_info.json");
  const std::string asked = "stage: sft\nfinetuning_type: full\ndataset: c\n";
  EXPECT_CONTAINS(refusal_of(asked), "'c' is no file");
  std::filesystem::resize_file(info, (16 << 20) + 1);
  EXPECT_CONTAINS(usage_error([&] { read(asked); }, Fault::data), "expected at most 16.0 MiB");
}

TEST_F(Recipe, YamlItself) {
  const CommandLine command = read(
      "# a comment\nlearning_rate: 1e-5  # a text in YAML 1.1\nseed: \"7\"\ndataset: 'a: b.tsv'\n"
      "eval_dataset: ~\nfreeze: [\"a.*\", b.*]\ndeterministic: no\nmax_time: 30min\n");
  EXPECT_EQ(command.config.number("learning_rate"), 1e-5);
  EXPECT_EQ(command.config.integer("seed"), 7);
  EXPECT_EQ(command.config.text("dataset"), "a: b.tsv");
  EXPECT_EQ(command.config.list("freeze").size(), 2u);
  EXPECT_FALSE(command.config.flag("deterministic"));
  EXPECT_EQ(read("").config.to_toml(), parse("train").config.to_toml());
  EXPECT_CONTAINS(refusal_of("seed: 1\nlerning_rate: 1\n"), "did you mean 'learning_rate'?");
  EXPECT_CONTAINS(refusal_of("seed: 1\nseed: 2\n"), "twice");
  EXPECT_CONTAINS(refusal_of("lr: 1e-5\nlearning_rate: 1e-4\n"), "given twice");
  EXPECT_CONTAINS(refusal_of("seed: [1, 2]\n"), "expected an integer");
  EXPECT_CONTAINS(refusal_of("seed: {a: b\n"), ":");
  EXPECT_CONTAINS(refusal_of("- a\n- b\n"), "without keys");
  EXPECT_CONTAINS(refusal_of("a: 1\n---\nb: 2\n"), "several documents");
}

/** Each line doubles what the last one holds: a gigabyte of values out of a page. */
TEST_F(Recipe, AliasesDoNotMultiply) {
  std::string text = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 30; ++i)
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) +
            ", *a" + std::to_string(i - 1) + "]\n";
  EXPECT_CONTAINS(refusal_of(text), ":");
  EXPECT_CONTAINS(refusal_of("a: &a [*a]\n"), ":");
  EXPECT_CONTAINS(refusal_of("a: " + std::string(100000, '[')), ":");
}

TEST_F(Recipe, JsonIsNamed) {
  const std::string json = write("{\"seed\": 1}", "a.json");
  EXPECT_CONTAINS(refusal("train", {"--config", json}), "is JSON");
  const std::string deepspeed = write("{\"zero_optimization\": {}}", "ds.json");
  EXPECT_CONTAINS(refusal("train", {"--config", deepspeed}), "DeepSpeed");
}

}  // namespace
}  // namespace ferry::config
