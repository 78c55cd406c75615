// Models that the whole program is given and cannot take: each is refused with the exit code of
// data, and the message names what is wrong. What transformers passes over with a warning, Ferry
// passes over with one, too.

#include <functional>

#include "tests/train/run_test.h"
#include "tests/train/tensor_files.h"

namespace ferry::test {
namespace {

Tensor zeros(StoredType type, int64_t n) {
  return {type, {n}, std::vector<std::byte>(static_cast<size_t>(n * bits_of(type) / 8))};
}

class BadModels : public RunTest {
 protected:
  static void SetUpTestSuite() {
    RunTest::SetUpTestSuite();
    write_tiny_decoder(root_ / "llama");
    std::ofstream text(root_ / "text.txt");
    for (int i = 0; i < 40; ++i)
      text << "the old red car is new and the bird was near a house\n";
  }

  /** A copy of a model, to be spoilt. */
  static fs::path copy_of(const std::string& model) {
    const fs::path copy = root_ / "spoilt";
    fs::remove_all(copy);
    fs::copy(root_ / model, copy);
    return copy;
  }
  static void change(const fs::path& model, const nlohmann::json& fields) {
    auto config = nlohmann::json::parse(text_of(model / "config.json"));
    config.update(fields);
    std::ofstream(model / "config.json") << config.dump();
  }
  static void change(const fs::path& model,
                     const std::function<void(Tensors&)>& how,
                     int64_t max_shard_bytes = INT64_MAX) {
    Tensors tensors = read_tensors(model);
    how(tensors);
    write_tensors(model, tensors, max_shard_bytes);
  }

  static Outcome train(const std::string& model = "spoilt") {
    fs::remove_all(root_ / "run");
    const bool is_decoder =
        text_of(root_ / model / "config.json").find("llama") != std::string::npos;
    std::vector<std::string> words = {"train",         "--model=" + model, "--device=cpu",
                                      "--max-steps=1", "--output-dir=run", "--save-strategy=no"};
    for (const char* word : {"--task=causal-lm", "--dataset=text.txt", "--max-length=16"})
      if (is_decoder) words.emplace_back(word);
    if (!is_decoder) words.emplace_back("--dataset=train.tsv");
    return ferry(words);
  }
  static void expect_refused(const Outcome& outcome, const std::vector<std::string>& parts) {
    EXPECT_EQ(outcome.code(), 4) << parts.front() << ": " << outcome.err;
    for (const std::string& part : parts)
      EXPECT_NE(outcome.err.find(part), std::string::npos) << part << " in:\n" << outcome.err;
    EXPECT_FALSE(fs::exists(root_ / "run")) << parts.front();
  }
};

TEST_F(BadModels, ConfigurationsThatAreNotComputed) {
  const struct {
    const char* model;
    nlohmann::json fields;
    std::vector<std::string> parts;
  } cases[] = {
      {"llama", {{"model_type", "llamabird"}}, {"config.json", "model_type llamabird"}},
      {"llama",
       {{"rope_scaling", {{"rope_type", "spiral"}, {"factor", 2.0}}}},
       {"config.json", "rope_scaling.rope_type is \"spiral\""}},
      {"llama",
       {{"quantization_config", {{"quant_method", "awq"}}}},
       {"quantization_config says that the weights are quantised (awq)"}},
      {"llama", {{"attention_sinks", 4}}, {"attention_sinks", "Ferry does not know it"}},
      {"llama", {{"hidden_size", 48}}, {"model.embed_tokens.weight", "[20, 32]", "[20, 48]"}},
      {"model",
       {{"num_hidden_layers", 3}},
       {"encoder.layer.2.", "config.json says 3 layers, and the file has 2"}},
      // The tokenizer knows more tokens than the embeddings have rows.
      {"llama", {{"vocab_size", 12}}, {"has rows for 12 tokens"}},
      {"model", {{"vocab_size", 12}}, {"has rows for 12 tokens"}},
  };
  for (const auto& [model, fields, parts] : cases) {
    change(copy_of(model), fields);
    expect_refused(train(), parts);
  }
}

TEST_F(BadModels, TokenizersThatAreNotKnown) {
  fs::path model = copy_of("llama");
  std::ofstream(model / "tokenizer.json")
      << R"({"version": "1.0", "added_tokens": [], "model": {"type": "Syllables", "vocab": {}}})";
  expect_refused(train(), {"tokenizer.json", "Syllables"});
  std::ofstream(model / "tokenizer.json")
      << R"({"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Chopper"},)"
      << R"( "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})";
  expect_refused(train(), {"tokenizer.json", "Chopper"});
  model = copy_of("llama");
  fs::remove(model / "vocab.txt");
  expect_refused(train(), {"spoilt", "neither tokenizer.json nor vocab.txt"});
}

TEST_F(BadModels, TensorsThatMakeAnotherModel) {
  const std::string q = "model.layers.0.self_attn.q_proj.";
  const struct {
    std::function<void(Tensors&)> how;
    std::vector<std::string> parts;
  } cases[] = {
      {[&](Tensors& all) { all.erase("model.norm.weight"); },
       {"spoilt", "has no tensor 'model.norm.weight'"}},
      {[&](Tensors& all) { all.erase("lm_head.weight"); }, {"has no tensor 'lm_head.weight'"}},
      {[&](Tensors& all) { all[q + "qweight"] = zeros(StoredType::i32, 8); },
       {"tensor '" + q + "qweight' is of quantised weights"}},
      {[&](Tensors& all) { all[q + "weight.absmax"] = zeros(StoredType::u8, 8); },
       {"tensor '" + q + "weight.absmax' is of quantised weights"}},
      {[&](Tensors& all) { all[q + "lora_A.weight"] = zeros(StoredType::f32, 8); },
       {"tensor '" + q + "lora_A.weight' is of an adapter", "merge"}},
      {[&](Tensors& all) { all[q + "weight"].type = StoredType::i32; }, {q + "weight", "I32"}},
      {[&](Tensors& all) {
         all[q + "weight"].shape = {16, 64};
       },
       {q + "weight", "[16, 64]", "[32, 32]"}},
  };
  for (const auto& [how, parts] : cases) {
    change(copy_of("llama"), how);
    expect_refused(train(), parts);
  }
}

TEST_F(BadModels, CopiesOfATiedMatrix) {
  const auto tied = [](const std::function<void(Tensors&)>& how) {
    const fs::path model = copy_of("llama");
    change(model, nlohmann::json{{"tie_word_embeddings", true}});
    change(model, how);
    return train();
  };
  expect_refused(tied([](Tensors&) {}),
                 {"'model.embed_tokens.weight' and 'lm_head.weight'", "differ"});
  const auto copy = [](Tensors& all) { all["lm_head.weight"] = all["model.embed_tokens.weight"]; };
  EXPECT_EQ(tied(copy).code(), 0) << text_of(root_ / "err");
  // transformers takes the head's for both.
  EXPECT_EQ(tied([](Tensors& all) { all.erase("model.embed_tokens.weight"); }).code(), 0)
      << text_of(root_ / "err");
}

TEST_F(BadModels, TensorsThatAreLeftOverAreSaid) {
  change(copy_of("llama"), [](Tensors& all) {
    all["model.vision.weight"] = zeros(StoredType::boolean, 3);
    all["score.weight"] = zeros(StoredType::f64, 3);
    all["model.layers.1.self_attn.rotary_emb.inv_freq"] = zeros(StoredType::f32, 8);
  });
  const std::string said = "not used: 2 tensors of the checkpoint (";
  const Outcome trained = train();
  EXPECT_EQ(trained.code(), 0) << trained.err;
  EXPECT_NE(trained.err.find(said), std::string::npos) << trained.err;
  EXPECT_NE(trained.err.find("model.vision.weight"), std::string::npos) << trained.err;
  const Outcome asked = ferry({"generate", "--model=spoilt", "--device=cpu", "the old"});
  EXPECT_EQ(asked.code(), 0) << asked.err;
  EXPECT_NE(asked.err.find(said), std::string::npos) << asked.err;
}

TEST_F(BadModels, AnExportKeepsEachTensorAsItIs) {
  const std::string buffer = "model.layers.1.self_attn.rotary_emb.inv_freq";
  const fs::path model = copy_of("llama");
  change(model, [&](Tensors& all) {
    for (const StoredType type : {StoredType::boolean, StoredType::f64, StoredType::i16,
                                  StoredType::f8_e4m3, StoredType::u64, StoredType::c64}) {
      Tensor tensor = zeros(type, 5);
      tensor.bytes[3] = std::byte{1};
      all["extra." + std::string(name_of(type))] = tensor;
    }
    all[buffer] = zeros(StoredType::f32, 8);
  });
  fs::remove_all(root_ / "exported");
  const Outcome outcome = ferry({"export", "--model=spoilt", "--output=exported"});
  ASSERT_EQ(outcome.code(), 0) << outcome.err;
  Tensors before = read_tensors(model);
  before.erase(buffer);  // no release of transformers writes it any more
  const Tensors after = read_tensors(root_ / "exported");
  ASSERT_EQ(after.size(), before.size());
  for (const auto& [name, tensor] : before) {
    const Tensor& written = after.at(name);
    EXPECT_TRUE(written.type == tensor.type && written.shape == tensor.shape &&
                written.bytes == tensor.bytes)
        << name;
  }
}

TEST_F(BadModels, ShardsThatAreNotThere) {
  const auto sharded = [] {
    const fs::path model = copy_of("llama");
    change(
        model, [](Tensors&) {}, /*max_shard_bytes=*/20'000);
    return model;
  };
  const fs::path index = sharded() / "model.safetensors.index.json";
  ASSERT_TRUE(fs::exists(index));
  EXPECT_EQ(train().code(), 0) << text_of(root_ / "err");
  const auto map = nlohmann::json::parse(text_of(index))["weight_map"];
  const std::string shard = map["model.norm.weight"];
  fs::remove(index.parent_path() / shard);
  expect_refused(train(), {"model.safetensors.index.json", shard, "missing"});

  sharded();
  fs::copy_file(index.parent_path() / shard, root_ / "outside.safetensors",
                fs::copy_options::overwrite_existing);
  auto leads_out = nlohmann::json::parse(text_of(index));
  leads_out["weight_map"]["model.norm.weight"] = "../outside.safetensors";
  std::ofstream(index) << leads_out.dump();
  expect_refused(train(), {"model.safetensors.index.json", "../outside.safetensors"});

  sharded();
  auto wrong = nlohmann::json::parse(text_of(index));
  for (const auto& [name, file] : map.items())
    if (file != shard) wrong["weight_map"]["model.norm.weight"] = file;
  std::ofstream(index) << wrong.dump();
  expect_refused(train(), {"'model.norm.weight'", "no such tensor"});
}

TEST_F(BadModels, AdaptersAreNoModels) {
  const fs::path model = copy_of("llama");
  std::ofstream(model / "adapter_config.json") << R"({"peft_type": "LORA"})";
  expect_refused(train(), {"spoilt", "holds an adapter", "merge it"});
  fs::remove(model / "config.json");
  expect_refused(train(), {"spoilt", "holds an adapter", "merge it"});
}

TEST_F(BadModels, TextsThatDoNotFit) {
  std::string prompt;
  for (int i = 0; i < 33; ++i)
    prompt += "car ";
  const Outcome generated = ferry({"generate", "--model=llama", "--device=cpu", prompt});
  expect_refused(generated, {"has 35 tokens, and the context is 32"});
  std::ofstream(root_ / "cut.parquet", std::ios::binary) << "PAR1" << std::string(40, 'x');
  expect_refused(ferry({"train", "--model=llama", "--task=causal-lm", "--dataset=cut.parquet",
                        "--device=cpu", "--output-dir=run"}),
                 {"cut.parquet"});
}

}  // namespace
}  // namespace ferry::test
