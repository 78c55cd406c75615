// GGUF files of small models of every family: keys and tensors as llama.cpp reads them, faults in a
// file that the comparison with the model finds, models and tokenizers that are refused by name,
// and an adapter that is merged on the way. tests/parity/gguf_files.py has llama.cpp run such
// files.

#include "src/train/checkpoint/gguf_export.h"

#include <gmock/gmock.h>

#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "models/family.h"
#include "src/files/gguf/gguf.h"
#include "src/files/gguf/gguf_writer.h"
#include "src/files/safetensors/safetensors_writer.h"
#include "src/inputs/model_files.h"
#include "src/train/checkpoint/export_check.h"
#include "tests/files/test_files.h"
#include "tests/train/checkpoint/gguf_cases.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::error_of;
using test::TempDir;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using namespace test::gguf;

TEST(GgufExport, FilesOfEveryFamily) {
  for (const Case& its : cases()) {
    SCOPED_TRACE(its.config.dump());
    TempDir dir;
    write_model(dir / "model", its);
    for (const GgufType type : {GgufType::f32, GgufType::f16, GgufType::bf16, GgufType::q8_0}) {
      const fs::path file = dir / (std::string(name_of(type)) + ".gguf");
      // Read back as a model, it answers as the model does.
      std::optional<Likeness> found;
      export_gguf(dir / "model", file, type, {}, [&](const fs::path& written) {
        found = compare_models(dir / "model", written, 6);
      });
      ASSERT_TRUE(found) << name_of(type);
      EXPECT_EQ(found->n_tokens, 6);
      EXPECT_LT(found->most, type == GgufType::f32 ? 1e-5 : 0.5) << name_of(type);
      const GgufFile written = GgufFile::open(file);
      EXPECT_EQ(written.find("token_embd.weight")->type, type);
      EXPECT_EQ(written.find("output_norm.weight")->type, GgufType::f32);
    }
    EXPECT_EQ(dir.n_entries(), 5u) << "nothing else is left";
  }
}

TEST(GgufExport, RowsAreInLlamaCppsOrder) {
  TempDir dir;
  for (const auto& [index, its] :
       {std::pair{0, cases()[0]}, {1, cases()[10]}, {2, cases()[9]}, {3, cases()[5]}}) {
    const fs::path from = dir / std::to_string(index);
    write_model(from, its);
    export_gguf(from, dir / fmt::format("{}.gguf", index));
  }
  const auto model = [&](int index) { return HfDirectory::open(dir / std::to_string(index)); };
  const auto file = [&](int index) { return GgufFile::open(dir / fmt::format("{}.gguf", index)); };
  // Heads of 8 rows: neighbours are halves.
  const std::string q = "model.layers.1.self_attn.q_proj.weight";
  EXPECT_EQ(row_of(file(0), "blk.1.attn_q.weight", 8 + 1), row_of(model(0), q, 8 + 4));
  EXPECT_EQ(row_of(file(0), "blk.1.attn_q.weight", 8 + 2), row_of(model(0), q, 8 + 1));
  EXPECT_EQ(row_of(file(0), "blk.1.attn_v.weight", 9),
            row_of(model(0), "model.layers.1.self_attn.v_proj.weight", 9));
  // The second of 4 heads of 8 rows each has its key there.
  EXPECT_EQ(row_of(file(1), "blk.0.attn_qkv.weight", 32 + 8 + 3),
            row_of(model(1), "gpt_neox.layers.0.attention.query_key_value.weight", 24 + 8 + 3));
  // GPT-2's matrices lie the other way round.
  EXPECT_EQ(row_of(file(2), "blk.0.ffn_up.weight", 3)[2],
            row_of(model(2), "transformer.h.0.mlp.c_fc.weight", 2)[3]);
  // Gemma's norms count from one.
  EXPECT_EQ(row_of(file(3), "blk.0.attn_norm.weight", 0)[5],
            row_of(model(3), "model.layers.0.input_layernorm.weight", 0)[5] + 1);
}

TEST(GgufExport, FactorsOfLlama3) {
  TempDir dir;
  write_model(dir / "model", cases()[1]);
  export_gguf(dir / "model", dir / "x.gguf");
  const GgufFile file = GgufFile::open(dir / "x.gguf");
  EXPECT_FALSE(file.find("output.weight")) << "the head is tied";
  const std::vector<float> factors = row_of(file, "rope_freqs.weight", 0);
  ASSERT_EQ(factors.size(), 4u);
  // Waves of 6.3, 62.8, 628 and 6283 tokens; short ones end at 8, long ones begin at 32.
  EXPECT_EQ(factors[0], 1);
  EXPECT_THAT(std::vector(factors.begin() + 1, factors.end()), ElementsAre(8, 8, 8));
}

TEST(GgufExport, KeysOfTokenizers) {
  TempDir dir;
  write_model(dir / "words", cases()[1]);
  write_model(dir / "bytes", cases()[3]);
  const GgufKeys words = [&] {
    export_gguf(dir / "words", dir / "words.gguf");
    return GgufFile::open(dir / "words.gguf").keys();
  }();
  export_gguf(dir / "bytes", dir / "bytes.gguf");
  const GgufKeys bytes = GgufFile::open(dir / "bytes.gguf").keys();
  const auto ints = [](const GgufKeys& keys, const char* key) {
    return std::get<std::vector<int64_t>>(find_key(keys, key)->content);
  };
  EXPECT_EQ(*find_key(words, "tokenizer.ggml.model"), GgufValue::text("llama"));
  EXPECT_EQ(*find_key(words, "tokenizer.ggml.add_space_prefix"), GgufValue::flag(true));
  EXPECT_EQ(*find_key(words, "tokenizer.ggml.add_bos_token"), GgufValue::flag(true));
  const auto kinds = ints(words, "tokenizer.ggml.token_type");
  EXPECT_EQ(kinds.size(), static_cast<size_t>(kRows));
  EXPECT_THAT(std::vector(kinds.begin(), kinds.begin() + 4), ElementsAre(2, 3, 3, 6));
  EXPECT_EQ(kinds.back(), 5);
  const auto scores =
      std::get<std::vector<double>>(find_key(words, "tokenizer.ggml.scores")->content);
  EXPECT_GT(scores[263], scores[264]) << "what is merged first has the higher score";

  EXPECT_EQ(*find_key(bytes, "tokenizer.ggml.model"), GgufValue::text("gpt2"));
  EXPECT_EQ(*find_key(bytes, "tokenizer.ggml.pre"), GgufValue::text("gpt-2"));
  EXPECT_EQ(*find_key(bytes, "tokenizer.ggml.merges"), GgufValue::texts({"h e", "he l"}));
  EXPECT_EQ(*find_key(bytes, "tokenizer.ggml.eos_token_id"), GgufValue::u32(2));
}

TEST(GgufExport, ATurnOfAChatEndsTheAnswer) {
  TempDir dir;
  write_model(dir / "model", cases()[0]);
  const auto eos_of = [&](const char* config, const char* generation) {
    std::ofstream(dir / "model/tokenizer_config.json") << config;
    std::ofstream(dir / "model/generation_config.json") << generation;
    export_gguf(dir / "model", dir / "x.gguf");
    const GgufFile file = GgufFile::open(dir / "x.gguf");
    fs::remove(dir / "x.gguf");
    return std::pair{
        std::get<int64_t>(find_key(file.keys(), "tokenizer.ggml.eos_token_id")->content),
        std::get<int64_t>(find_key(file.keys(), "tokenizer.ggml.eot_token_id")->content)};
  };
  using Ends = std::pair<int64_t, int64_t>;
  const char* plain = R"({"bos_token": "<s>", "eos_token": "</s>"})";
  const char* chat = R"({"eos_token": "</s>", "chat_template": "{{ x }}<|im_end|>"})";
  const char* own = R"({"eos_token": "</s>", "chat_template": "{{ x + eos_token }}<|im_end|>"})";
  EXPECT_EQ(eos_of(plain, "{}"), Ends(2, 2));
  EXPECT_EQ(eos_of(chat, "{}"), Ends(3, 3));
  EXPECT_EQ(eos_of(chat, R"({"eos_token_id": [3, 2]})"), Ends(3, 3));
  EXPECT_EQ(eos_of(own, "{}"), Ends(2, 2));
  EXPECT_EQ(eos_of(plain, R"({"eos_token_id": [2, 1]})"), Ends(2, 1)) << "a stop of its own";
  EXPECT_THAT(error_of([&] { eos_of(plain, R"({"eos_token_id": [2, 10, 11, 12]})"); }),
              HasSubstr("names two at most"));
}

/** The file with something changed. */
void rewrite(
    const fs::path& from,
    const fs::path& to,
    const std::function<void(GgufKeys&)>& change_keys,
    const std::function<bool(const std::string&, std::vector<std::vector<float>>&)>& keep_tensor) {
  const GgufFile file = GgufFile::open(from);
  GgufKeys keys = file.keys();
  change_keys(keys);
  std::vector<GgufTensorSpec> specs;
  std::vector<std::vector<std::vector<float>>> all;
  for (const GgufTensor& tensor : file.tensors()) {
    std::vector<std::vector<float>> rows;
    for (int64_t r = 0; r < tensor.rows(); ++r)
      rows.push_back(row_of(file, tensor.name, r));
    if (!keep_tensor(tensor.name, rows)) continue;
    specs.push_back({tensor.name, tensor.type, tensor.shape});
    all.push_back(std::move(rows));
  }
  GgufWriter writer(to, keys, specs);
  for (size_t i = 0; i < specs.size(); ++i)
    for (const std::vector<float>& row : all[i])
      writer.write(specs[i].name, row);
  writer.finish();
}

TEST(GgufExport, FaultsInAFileAreFound) {
  TempDir dir;
  const auto nothing = [](GgufKeys&) {};
  const auto keep = [](const std::string&, std::vector<std::vector<float>>&) { return true; };
  for (const GgufType type : {GgufType::f32, GgufType::f16, GgufType::q8_0}) {
    for (const size_t index : {size_t{0}, size_t{11}}) {
      const fs::path from = dir / fmt::format("model{}", index),
                     file = dir / fmt::format("{}-{}.gguf", index, name_of(type));
      if (!fs::exists(from)) write_model(from, cases()[index]);
      export_gguf(from, file, type);
      const HfDirectory model = open_directory(from);
      const CheckpointReader weights = model.weights();
      const auto found = [&](const auto& change_keys, const auto& keep_tensor) {
        rewrite(file, dir / "changed.gguf", change_keys, keep_tensor);
        return error_of(
            [&] {
              check_gguf(model, weights, type, from.filename().string(), dir / "changed.gguf");
            },
            Fault::machine);
      };
      check_gguf(model, weights, type, from.filename().string(), file);
      const auto set = [](const char* key, GgufValue value) {
        return [=](GgufKeys& keys) {
          for (auto& [its, old] : keys)
            if (its == key) old = value;
        };
      };
      EXPECT_THAT(found(set("tokenizer.ggml.eos_token_id", GgufValue::u32(3)), keep),
                  HasSubstr("'tokenizer.ggml.eos_token_id' has another value"));
      EXPECT_THAT(found([](GgufKeys& keys) { keys.pop_back(); }, keep), HasSubstr("is not there"));
      EXPECT_THAT(found([](GgufKeys& keys) { keys.emplace_back("more", GgufValue::u32(1)); }, keep),
                  HasSubstr("'more' does not belong there"));
      EXPECT_THAT(
          found(nothing, [](const std::string& name, auto&) { return name != "output.weight"; }),
          HasSubstr("tensor 'output.weight' is not there"));
      const std::string turned = index == 0 ? "blk.1.attn_k.weight" : "blk.1.attn_qkv.weight";
      EXPECT_THAT(found(nothing,
                        [&](const std::string& name, auto& rows) {
                          if (name == turned) std::swap(rows[1], rows[2]);
                          return true;
                        }),
                  HasSubstr(fmt::format("tensor '{}' has", turned)));
      EXPECT_THAT(found(nothing,
                        [](const std::string& name, auto& rows) {
                          if (name == "blk.0.ffn_down.weight") rows[7][5] += 0.05f;
                          return true;
                        }),
                  HasSubstr("in row 7, column 5"));
    }
  }
}

TEST(GgufExport, RefusesByName) {
  TempDir dir;
  int n = 0;
  const auto refused = [&](const json& config, const char* architecture, const json& tokenizer) {
    const fs::path from = dir / std::to_string(n++);
    write_model(from, {config, architecture, tokenizer});
    const std::string message = error_of([&] { export_gguf(from, dir / "x.gguf"); });
    EXPECT_FALSE(fs::exists(dir / "x.gguf"));
    EXPECT_FALSE(fs::exists(dir / "x.gguf.partial"));
    return message;
  };
  const json words = byte_level_tokenizer(), pieces = sentence_piece_tokenizer();
  const json granite = with(base_config("granite"), {{"tie_word_embeddings", true}});
  EXPECT_THAT(refused(granite, "GraniteForCausalLM", words),
              AllOf(HasSubstr("model_type granite"), HasSubstr("--format hf"), HasSubstr("qwen3")));
  EXPECT_THAT(
      refused(with(base_config("qwen3"), {{"attention_bias", true}}), "Qwen3ForCausalLM", words),
      HasSubstr("biases of attention"));
  EXPECT_THAT(
      refused(with(base_config("llama"), {{"hidden_act", "gelu"}}), "LlamaForCausalLM", words),
      HasSubstr("activation"));
  EXPECT_THAT(refused(with(base_config("llama"), {{"vocab_size", 100}}), "LlamaForCausalLM", words),
              HasSubstr("100 rows of words, and its tokenizer 262 tokens"));
  const json llama = base_config("llama");
  const auto refused_tokenizer = [&](json tokenizer, const char* pointer, const json& value) {
    tokenizer[json::json_pointer(pointer)] = value;
    return refused(llama, "LlamaForCausalLM", tokenizer);
  };
  const json split = {{"type", "Sequence"},
                      {"pretokenizers",
                       {{{"type", "Split"},
                         {"pattern", {{"Regex", "\\p{N}{1,7}"}}},
                         {"behavior", "Isolated"},
                         {"invert", false}},
                        {{"type", "ByteLevel"},
                         {"add_prefix_space", false},
                         {"trim_offsets", true},
                         {"use_regex", false}}}}};
  EXPECT_THAT(refused_tokenizer(words, "/pre_tokenizer", split),
              AllOf(HasSubstr("\\p{N}{1,7}"), HasSubstr("tokenizer.json")));
  EXPECT_THAT(refused_tokenizer(words, "/normalizer", {{"type", "NFKC"}}), HasSubstr("NFKC"));
  EXPECT_THAT(refused_tokenizer(words, "/pre_tokenizer/add_prefix_space", true),
              HasSubstr("add_prefix_space"));
  EXPECT_THAT(refused_tokenizer(words, "/model/ignore_merges", true), HasSubstr("ignore_merges"));
  EXPECT_THAT(refused_tokenizer(words, "/added_tokens/3/lstrip", true), HasSubstr("lstrip"));
  EXPECT_THAT(refused_tokenizer(pieces, "/model/merges", {"a b"}),
              HasSubstr("makes the token '\u2581ab' in 0 of 1 ways"));
  EXPECT_THAT(refused_tokenizer(pieces, "/normalizer/normalizers/0", {{"type", "Lowercase"}}),
              HasSubstr("Lowercase"));
  json classifier = llama;
  EXPECT_THAT(refused(classifier, "LlamaForSequenceClassification", words),
              HasSubstr("no language model"));
}

TEST(GgufExport, ValuesThatATypeDoesNotHold) {
  TempDir dir;
  write_model(dir / "model", cases()[0]);
  {
    const CheckpointReader weights = CheckpointReader::open(dir / "model");
    std::vector<TensorSpec> specs;
    for (const StoredTensor* tensor : weights.tensors())
      specs.emplace_back(tensor->name, tensor->type, tensor->shape);
    SafetensorsWriter writer(dir / "large.safetensors", specs);
    for (const StoredTensor* tensor : weights.tensors()) {
      std::vector<float> values(static_cast<size_t>(tensor->n_elements()));
      CheckpointReader::read_part(*tensor, 0, values);
      if (tensor->name == "lm_head.weight") values[7] = 1e5f;
      writer.write(tensor->name, std::as_bytes(std::span(values)));
    }
    writer.finish();
  }
  fs::rename(dir / "large.safetensors", dir / "model/model.safetensors");
  EXPECT_THAT(error_of([&] { export_gguf(dir / "model", dir / "x.gguf", GgufType::f16); }),
              AllOf(HasSubstr("lm_head.weight"), HasSubstr("--gguf-type bf16")));
  export_gguf(dir / "model", dir / "x.gguf", GgufType::bf16);
}

TEST(GgufExport, MergesAnAdapter) {
  TempDir dir;
  write_model(dir / "model", cases()[0]);
  fs::create_directories(dir / "adapter");
  const std::string module = "base_model.model.model.layers.0.self_attn.q_proj";
  std::ofstream(dir / "adapter/adapter_config.json")
      << json{{"peft_type", "LORA"},      {"r", 1},
              {"lora_alpha", 2},          {"target_modules", {"q_proj"}},
              {"task_type", "CAUSAL_LM"}, {"base_model_name_or_path", (dir / "model").string()}}
             .dump();
  std::vector<float> a(32), b(32);
  a[3] = 1, b[4] = 0.25;
  {
    SafetensorsWriter writer(dir / "adapter/adapter_model.safetensors",
                             {{module + ".lora_A.weight", DType::f32, {1, 32}},
                              {module + ".lora_B.weight", DType::f32, {32, 1}}});
    writer.write(module + ".lora_A.weight", std::as_bytes(std::span(a)));
    writer.write(module + ".lora_B.weight", std::as_bytes(std::span(b)));
    writer.finish();
  }
  export_gguf(dir / "model", dir / "plain.gguf");
  export_gguf(dir / "adapter", dir / "merged.gguf");
  const GgufFile plain = GgufFile::open(dir / "plain.gguf"),
                 merged = GgufFile::open(dir / "merged.gguf");
  // Row 4 of a head of 8 is its row 1 in the file.
  const auto before = row_of(plain, "blk.0.attn_q.weight", 1);
  auto after = row_of(merged, "blk.0.attn_q.weight", 1);
  EXPECT_FLOAT_EQ(after[3], before[3] + 0.5f);
  after[3] = before[3];
  EXPECT_EQ(after, before);
  EXPECT_EQ(row_of(plain, "blk.1.attn_q.weight", 1), row_of(merged, "blk.1.attn_q.weight", 1));
  EXPECT_EQ(dir.n_entries(), 4u) << "nothing else is left";
}

}  // namespace
}  // namespace ferry
