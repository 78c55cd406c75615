// Models whose files are quantised, by the whole program: a GGUF file and MXFP4 as adapters keep
// them, the values of a GGUF file trained whole, and scales of nf4 that are quantised, too.

#include <cmath>
#include <cstring>
#include <random>

#include "models/core/nested_scales.h"
#include "models/core/storage.h"
#include "src/files/gguf/gguf_writer.h"
#include "tests/train/run_test.h"
#include "tests/train/tensor_files.h"

namespace ferry::test {
namespace {

using nlohmann::json;

bool is_of_layers(const std::string& name) {
  return name.find("_proj") != name.npos;
}

class QuantisedFiles : public RunTest {
 protected:
  static void SetUpTestSuite() {
    RunTest::SetUpTestSuite();
    ::setenv("XDG_CACHE_HOME", (root_ / "cache").c_str(), 1);
    write_tiny_language_model(root_ / "llama");
    std::ofstream text(root_ / "text.txt");
    std::mt19937 random(3);
    for (int line = 0; line < 120; ++line)
      text << (random() % 2 ? "the red car was new\n" : "a green bird is near the house\n");
  }
  static std::vector<std::string> run_of(const std::string& run,
                                         const std::string& model,
                                         const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {
        "train",          "--model=" + model,     "--dataset=text.txt",   "--device=" + device(),
        "--max-steps=12", "--train-batch-size=8", "--micro-batch-size=4", "--max-length=32",
        "--save-steps=5", "--intra-op-threads=1", "--output-dir=" + run};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static std::vector<std::string> lora_run(const std::string& run,
                                           const std::string& model,
                                           std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"--tuning=lora", "--lora-r=2"});
    return run_of(run, model, more);
  }
  static std::string adapter_of(const std::string& directory) {
    return text_of(root_ / directory / "adapter_model.safetensors");
  }
  /** Each run has the losses of the other one, whose products round in another order. */
  static void expect_same_losses(const std::string& run, const std::string& other) {
    const auto losses = losses_of(run), expected = losses_of(other);
    ASSERT_EQ(losses.size(), expected.size());
    for (size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(losses[i], expected[i], 2e-4 * expected[i]) << run << " " << i;
  }

  /** The model with other values of its layers' matrices. */
  template <class Change>
  static void write_changed(const std::string& name, const Change& change) {
    fs::copy(root_ / "llama", root_ / name);
    Tensors tensors = read_tensors(root_ / name);
    for (auto& [tensor_name, tensor] : tensors) {
      if (!is_of_layers(tensor_name)) continue;
      std::vector<float> values(tensor.bytes.size() / sizeof(float));
      std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
      change(tensor_name, tensor.shape, values);
      std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
    }
    write_tensors(root_ / name, tensors);
  }

  /** blocks/x.gguf has the layers' matrices as Q8_0, but those of values as Q4_0 or F32, with the
   * tokenizer beside it: llama.cpp has no kind for this one. */
  static void write_gguf(const std::string& directory, GgufType of_values) {
    fs::create_directories(root_ / directory);
    for (const char* file : {"tokenizer.json", "tokenizer_config.json"})
      fs::copy(root_ / "llama" / file, root_ / directory / file);
    const json config = json::parse(text_of(root_ / "llama/config.json"));
    const auto own = [&](const char* key, const char* name) {
      return std::pair{std::string("llama.") + key, GgufValue::u32(config.at(name))};
    };
    const GgufKeys keys = {
        {"general.architecture", GgufValue::text("llama")},
        own("context_length", "max_position_embeddings"),
        own("embedding_length", "hidden_size"),
        own("block_count", "num_hidden_layers"),
        own("feed_forward_length", "intermediate_size"),
        own("attention.head_count", "num_attention_heads"),
        own("attention.head_count_kv", "num_key_value_heads"),
        {"llama.attention.layer_norm_rms_epsilon", GgufValue::f32(1e-6f)},
        {"tokenizer.ggml.eos_token_id", GgufValue::u32(2)},
    };
    constexpr std::pair<const char*, const char*> kNames[] = {
        {"model.embed_tokens", "token_embd"}, {"model.norm", "output_norm"},
        {"input_layernorm", "attn_norm"},     {"self_attn.q_proj", "attn_q"},
        {"self_attn.k_proj", "attn_k"},       {"self_attn.v_proj", "attn_v"},
        {"self_attn.o_proj", "attn_output"},  {"post_attention_layernorm", "ffn_norm"},
        {"mlp.gate_proj", "ffn_gate"},        {"mlp.up_proj", "ffn_up"},
        {"mlp.down_proj", "ffn_down"},        {"model.layers.", "blk."}};
    const Tensors tensors = read_tensors(root_ / "llama");
    std::vector<GgufTensorSpec> specs;
    std::vector<std::string> names;
    for (const auto& [name, tensor] : tensors) {
      std::string its = name;
      for (const auto& [from, to] : kNames)
        if (const size_t at = its.find(from); at != its.npos)
          its.replace(at, std::string(from).size(), to);
      const bool is_value = name.find("v_proj") != name.npos;
      specs.push_back({its,
                       !is_of_layers(name) ? GgufType::f32
                       : is_value          ? of_values
                                           : GgufType::q8_0,
                       tensor.shape});
      names.push_back(name);
    }
    GgufWriter writer(root_ / directory / "x.gguf", keys, specs);
    std::mt19937 random(7);
    for (size_t i = 0; i < specs.size(); ++i) {
      const Tensor& tensor = tensors.at(names[i]);
      std::vector<float> values(tensor.bytes.size() / sizeof(float));
      std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
      if (specs[i].type != GgufType::q4_0) {
        // Any rows will do for queries and keys: what is trained beside them is compared.
        writer.write(specs[i].name, values);
        continue;
      }
      std::vector<std::byte> blocks(values.size() / 32 * 18);
      for (size_t b = 0; b < blocks.size(); ++b)
        blocks[b] = static_cast<std::byte>(b % 18 == 1 ? 0x24 : random());
      writer.write_blocks(specs[i].name, blocks);
    }
    writer.finish();
  }
};

TEST_F(QuantisedFiles, AdaptersLearnBesideTheBlocksOfAGgufFile) {
  write_gguf("blocks", GgufType::q4_0);
  ASSERT_EQ(ferry({"export", "--model=blocks/x.gguf", "--output-dir=values"}).code(), 0)
      << text_of(root_ / "err");
  EXPECT_FALSE(json::parse(text_of(root_ / "values/config.json")).contains("quantization_config"));
  EXPECT_TRUE(fs::exists(root_ / "values/tokenizer.json"));

  ASSERT_EQ(ferry(lora_run("of_values", "values")).code(), 0) << text_of(root_ / "err");
  ASSERT_EQ(ferry(lora_run("of_blocks", "blocks/x.gguf")).code(), 0) << text_of(root_ / "err");
  EXPECT_NE(text_of(root_ / "of_blocks/config.toml").find("quantization = \"stored\""),
            std::string::npos);
  const std::string said = text_of(root_ / "err") + text_of(root_ / "out");
  EXPECT_NE(said.find("q8_0"), std::string::npos) << said;
  EXPECT_NE(said.find("q8_0 and q4_0"), std::string::npos) << said;
  expect_same_losses("of_blocks", "of_values");

  // They stream, and a run goes on beside them, with the same bits.
  const pid_t child = start(lora_run("on_host", "blocks", {"--placement=host"}));
  wait_for_line("on_host", 5);
  ::kill(child, SIGKILL);
  wait_for(child);
  ASSERT_EQ(ferry(go_on("on_host", {})).code(), 0) << text_of(root_ / "err");
  EXPECT_TRUE(adapter_of("on_host/final") == adapter_of("of_blocks/final"));

  // The adapter is used beside them, and merged into the values.
  ASSERT_EQ(ferry({"export", "--model=of_blocks", "--output-dir=merged"}).code(), 0)
      << text_of(root_ / "err");
  for (const auto& [name, tensor] : read_tensors(root_ / "merged"))
    EXPECT_EQ(tensor.type, StoredType::f32) << name;
  ASSERT_EQ(ferry({"generate", "--model=of_blocks", "--json", "the red"}).code(), 0)
      << text_of(root_ / "err");
}

TEST_F(QuantisedFiles, ValuesOfAGgufFileAreTrainedAsThoseOfADirectory) {
  write_gguf("file", GgufType::f32);
  ASSERT_EQ(ferry({"export", "--model=file", "--output-dir=file_values"}).code(), 0)
      << text_of(root_ / "err");
  ASSERT_EQ(ferry(run_of("whole_file", "file/x.gguf")).code(), 0) << text_of(root_ / "err");
  EXPECT_NE((text_of(root_ / "err") + text_of(root_ / "out")).find("are quantised (gguf)"),
            std::string::npos);
  ASSERT_EQ(ferry(run_of("whole_values", "file_values")).code(), 0) << text_of(root_ / "err");
  EXPECT_EQ(losses_of("whole_file"), losses_of("whole_values"));
  EXPECT_TRUE(text_of(root_ / "whole_file/final/model.safetensors") ==
              text_of(root_ / "whole_values/final/model.safetensors"));
  ASSERT_EQ(ferry(lora_run("none", "file", {"--quantization=none"})).code(), 0)
      << text_of(root_ / "err");
  ASSERT_EQ(ferry(lora_run("none_values", "file_values")).code(), 0) << text_of(root_ / "err");
  EXPECT_TRUE(adapter_of("none/final") == adapter_of("none_values/final"));
  // A matrix whose parts are not all in blocks is in the type of compute.
  ASSERT_EQ(ferry(lora_run("some", "file")).code(), 0) << text_of(root_ / "err");
  expect_same_losses("some", "none");
}

/** Experts of gpt-oss lie so: blocks of two codes a byte, and scales beside them. */
TEST_F(QuantisedFiles, AdaptersLearnBesideMxfp4) {
  std::mt19937 random(9);
  std::map<std::string, std::pair<std::vector<std::byte>, std::vector<std::byte>>> codes;
  const std::array<float, 8> table = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  write_changed("mx_values", [&](const std::string& name, const std::vector<int64_t>&,
                                 std::vector<float>& values) {
    auto& [blocks, scales] = codes[name];
    blocks.resize(values.size() / 2);
    scales.resize(values.size() / 32);
    for (size_t i = 0; i < values.size(); ++i) {
      if (i % 32 == 0) scales[i / 32] = static_cast<std::byte>(121 + random() % 3);
      const unsigned code = random() % 16;
      blocks[i / 2] |= static_cast<std::byte>(i % 2 == 0 ? code : code << 4);
      const float value = std::ldexp(table[code % 8], std::to_integer<int>(scales[i / 32]) - 127);
      values[i] = code < 8 ? value : -value;
    }
  });
  fs::copy(root_ / "mx_values", root_ / "mx");
  Tensors tensors = read_tensors(root_ / "mx"), stored;
  for (const auto& [name, tensor] : tensors) {
    if (!is_of_layers(name)) {
      stored[name] = tensor;
      continue;
    }
    const std::string stem = name.substr(0, name.size() - std::string(".weight").size());
    const int64_t rows = tensor.shape[0], n = tensor.shape[1] / 32;
    stored[stem + "_blocks"] = {StoredType::u8, {rows, n, 16}, codes.at(name).first};
    stored[stem + "_scales"] = {StoredType::u8, {rows, n}, codes.at(name).second};
  }
  write_tensors(root_ / "mx", stored);
  json config = json::parse(text_of(root_ / "mx/config.json"));
  config["quantization_config"] = {{"quant_method", "mxfp4"},
                                   {"modules_to_not_convert", {"model.embed_tokens", "lm_head"}}};
  std::ofstream(root_ / "mx/config.json") << config.dump();

  ASSERT_EQ(ferry(lora_run("beside_values", "mx_values")).code(), 0) << text_of(root_ / "err");
  ASSERT_EQ(ferry(lora_run("beside_mx", "mx")).code(), 0) << text_of(root_ / "err");
  EXPECT_NE(text_of(root_ / "beside_mx/config.toml").find("quantization = \"stored\""),
            std::string::npos);
  expect_same_losses("beside_mx", "beside_values");
  ASSERT_EQ(ferry(lora_run("mx_none", "mx", {"--quantization=none"})).code(), 0)
      << text_of(root_ / "err");
  EXPECT_TRUE(adapter_of("mx_none/final") == adapter_of("beside_values/final"));
  // Files that are not as their configuration says.
  fs::copy(root_ / "mx_values", root_ / "mx_wrong");
  fs::copy(root_ / "mx/config.json", root_ / "mx_wrong/config.json",
           fs::copy_options::overwrite_existing);
  EXPECT_NE(ferry(lora_run("wrong", "mx_wrong")).code(), 0);
  EXPECT_NE(text_of(root_ / "err").find("is not stored as mxfp4"), std::string::npos)
      << text_of(root_ / "err");
}

TEST_F(QuantisedFiles, ScalesOfNf4AreQuantisedToo) {
  write_changed("nested_values", [&](const std::string&, const std::vector<int64_t>& shape,
                                     std::vector<float>& values) {
    if (shape[1] % kNf4Values_per_scale != 0) return;
    const StoredMatrix matrix = stored_matrix(Storage::nf4_nested, shape[0], shape[1], DType::f32);
    std::vector<std::byte> codes(static_cast<size_t>(matrix.rows * matrix.row_bytes));
    std::vector<float> scales(static_cast<size_t>(matrix.rows * matrix.row_scales));
    quantise(matrix, values, codes.data(), scales.data());
    std::vector<std::byte> nested_codes(scales.size());
    std::vector<float> nested(static_cast<size_t>(matrix.n_nested()));
    nest(scales, nested_codes, nested);
    unnest(nested_codes.data(), nested.data(), 0, scales);
    for (int64_t row = 0; row < matrix.rows; ++row)
      dequantise(matrix, codes.data() + row * matrix.row_bytes,
                 scales.data() + row * matrix.row_scales, 0,
                 std::span(values).subspan(static_cast<size_t>(row * matrix.columns),
                                           static_cast<size_t>(matrix.columns)));
  });
  const std::vector<std::string> nests = {"--quantization=nf4", "--double-quantization=true"};
  ASSERT_EQ(ferry(lora_run("beside_nested", "llama", nests)).code(), 0) << text_of(root_ / "err");
  EXPECT_NE((text_of(root_ / "err") + text_of(root_ / "out")).find("nf4_nested"),
            std::string::npos);
  ASSERT_EQ(ferry(lora_run("of_nested", "nested_values")).code(), 0) << text_of(root_ / "err");
  expect_same_losses("beside_nested", "of_nested");
  fs::rename(root_ / "beside_nested/final", root_ / "final_away");
  EXPECT_EQ(ferry({"train", "--resume=beside_nested", "--double-quantization=false"}).code(), 2);
  EXPECT_NE(text_of(root_ / "err").find("double_quantization"), std::string::npos)
      << text_of(root_ / "err");
  EXPECT_EQ(ferry(lora_run("wrong_nest", "llama", {"--double-quantization=true"})).code(), 2);
  EXPECT_NE(text_of(root_ / "err").find("is for quantization = nf4"), std::string::npos)
      << text_of(root_ / "err");
}

/** Files of bitsandbytes with nested scales: the same bytes in memory, and so the values. */
TEST_F(QuantisedFiles, NestedScalesOfAFileAreTaken) {
  std::map<std::string, Tensor> beside;
  std::mt19937 random(4);
  write_changed("bnb_values", [&](const std::string& name, const std::vector<int64_t>& shape,
                                  std::vector<float>& values) {
    if (shape[1] % kNf4Values_per_scale != 0) return;
    const StoredMatrix matrix = stored_matrix(Storage::nf4_nested, shape[0], shape[1], DType::f32);
    std::vector<std::byte> codes(static_cast<size_t>(matrix.rows * matrix.row_bytes)),
        scale_codes(static_cast<size_t>(matrix.rows * matrix.row_scales));
    // No codes that Ferry would make of the values.
    for (std::byte& code : codes)
      code = static_cast<std::byte>(random());
    for (std::byte& code : scale_codes)
      code = static_cast<std::byte>(random());
    const std::vector<float> nested = {0.05f, 0.01f};
    ASSERT_EQ(std::ssize(nested), matrix.n_nested());
    std::vector<float> scales(scale_codes.size());
    unnest(scale_codes.data(), nested.data(), 0, scales);
    for (int64_t row = 0; row < matrix.rows; ++row)
      dequantise(matrix, codes.data() + row * matrix.row_bytes,
                 scales.data() + row * matrix.row_scales, 0,
                 std::span(values).subspan(static_cast<size_t>(row * matrix.columns),
                                           static_cast<size_t>(matrix.columns)));
    const auto bytes = [](const void* from, size_t n) {
      const auto* its = static_cast<const std::byte*>(from);
      return std::vector<std::byte>(its, its + n);
    };
    const std::string state = json({{"quant_type", "nf4"},
                                    {"blocksize", 64},
                                    {"dtype", "float32"},
                                    {"shape", shape},
                                    {"nested_blocksize", 256},
                                    {"nested_dtype", "float32"},
                                    {"nested_offset", nested[0]}})
                                  .dump();
    beside[name] = {StoredType::u8, {std::ssize(codes), 1}, codes};
    beside[name + ".absmax"] = {StoredType::u8, {std::ssize(scale_codes)}, scale_codes};
    beside[name + ".quant_map"] = {StoredType::f32, {16}, bytes(kNf4.data(), 64)};
    beside[name + ".nested_absmax"] = {StoredType::f32, {1}, bytes(&nested[1], 4)};
    beside[name + ".nested_quant_map"] = {StoredType::f32, {256}, bytes(nested_map().data(), 1024)};
    beside[name + ".quant_state.bitsandbytes__nf4"] = {
        StoredType::u8, {std::ssize(state)}, bytes(state.data(), state.size())};
  });
  fs::copy(root_ / "bnb_values", root_ / "bnb");
  Tensors tensors = read_tensors(root_ / "bnb");
  for (const auto& [name, tensor] : beside)
    tensors[name] = tensor;
  write_tensors(root_ / "bnb", tensors);
  json config = json::parse(text_of(root_ / "bnb/config.json"));
  config["quantization_config"] = {{"quant_method", "bitsandbytes"},
                                   {"load_in_4bit", true},
                                   {"bnb_4bit_quant_type", "nf4"},
                                   {"bnb_4bit_use_double_quant", true}};
  std::ofstream(root_ / "bnb/config.json") << config.dump();
  ASSERT_EQ(ferry(lora_run("beside_bnb", "bnb")).code(), 0) << text_of(root_ / "err");
  EXPECT_NE(text_of(root_ / "beside_bnb/config.toml").find("double_quantization = true"),
            std::string::npos);
  ASSERT_EQ(ferry(lora_run("beside_bnb_values", "bnb_values")).code(), 0) << text_of(root_ / "err");
  expect_same_losses("beside_bnb", "beside_bnb_values");
}

}  // namespace
}  // namespace ferry::test
