#pragma once
// Small models of every family that has GGUF files, with drawn weights, and tokenizers of both
// kinds. Tests of the export and of the reader share them.

#include <gmock/gmock.h>

#include <fmt/format.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "models/family.h"
#include "src/files/gguf/gguf.h"
#include "src/files/hf/hf_directory.h"
#include "src/files/safetensors/safetensors_writer.h"
#include "src/text/byte_letters.h"

namespace ferry::test::gguf {

namespace fs = std::filesystem;
using nlohmann::json;

inline constexpr int64_t kRows = 300;  // of words, more than the tokenizer has

inline json special_token(int id, const char* content) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

inline json begins_with_bos() {
  return {{"type", "TemplateProcessing"},
          {"single",
           {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
            {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
          {"pair",
           {{{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
            {{"Sequence", {{"id", "B"}, {"type_id", 1}}}}}},
          {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {1}}, {"tokens", {"<s>"}}}}}}};
}

/** Byte-level BPE as GPT-2 has it, with two merges. */
inline json byte_level_tokenizer() {
  json vocab = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}, {"<|im_end|>", 3}};
  int id = 4;
  for (int byte = 0; byte < 256; ++byte) {
    std::string letter;
    text::append_utf8(letter, text::kByteLetters[static_cast<size_t>(byte)]);
    vocab[letter] = id++;
  }
  vocab["he"] = id++;
  vocab["hel"] = id++;
  return {{"version", "1.0"},
          {"added_tokens",
           {special_token(0, "<unk>"), special_token(1, "<s>"), special_token(2, "</s>"),
            special_token(3, "<|im_end|>")}},
          {"pre_tokenizer",
           {{"type", "ByteLevel"},
            {"add_prefix_space", false},
            {"trim_offsets", true},
            {"use_regex", true}}},
          {"post_processor", begins_with_bos()},
          {"decoder",
           {{"type", "ByteLevel"},
            {"add_prefix_space", true},
            {"trim_offsets", true},
            {"use_regex", true}}},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", {"h e", "he l"}}}}};
}

/** SentencePiece's BPE as LLaMA 2 has it. */
inline json sentence_piece_tokenizer() {
  json vocab = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}};
  for (int byte = 0; byte < 256; ++byte)
    vocab[fmt::format("<0x{:02X}>", byte)] = 3 + byte;
  int id = 259;
  for (const char* token : {"\u2581", "a", "b", "A", "ab", "\u2581ab"})
    vocab[token] = id++;
  return {{"version", "1.0"},
          {"added_tokens",
           {special_token(0, "<unk>"), special_token(1, "<s>"), special_token(2, "</s>")}},
          {"normalizer",
           {{"type", "Sequence"},
            {"normalizers",
             {{{"type", "Prepend"}, {"prepend", "\u2581"}},
              {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}}}}}},
          {"post_processor", begins_with_bos()},
          {"model",
           {{"type", "BPE"},
            {"unk_token", "<unk>"},
            {"fuse_unk", true},
            {"byte_fallback", true},
            {"vocab", vocab},
            {"merges", {"a b", "\u2581 ab"}}}}};
}

inline json base_config(const char* model_type) {
  return {{"model_type", model_type}, {"vocab_size", kRows},
          {"hidden_size", 32},        {"intermediate_size", 48},
          {"num_hidden_layers", 2},   {"num_attention_heads", 4},
          {"num_key_value_heads", 2}, {"max_position_embeddings", 128},
          {"bos_token_id", 1},        {"eos_token_id", 2},
          {"pad_token_id", 0},        {"tie_word_embeddings", false}};
}

inline json with(json config, const json& more) {
  config.update(more);
  return config;
}

struct Case {
  json config;
  const char* architecture;
  json tokenizer = byte_level_tokenizer();
};

inline std::vector<Case> cases() {
  const json gemma = {{"head_dim", 8}, {"tie_word_embeddings", true}};
  const json later = with(gemma, {{"query_pre_attn_scalar", 8}, {"sliding_window", 16}});
  const json llama3 = {{"rope_type", "llama3"},
                       {"factor", 8.0},
                       {"low_freq_factor", 1.0},
                       {"high_freq_factor", 4.0},
                       {"original_max_position_embeddings", 32}};
  const json factors = {1.0, 1.5, 2.0, 3.0};
  json gpt2 = {{"model_type", "gpt2"}, {"vocab_size", kRows}, {"n_embd", 32},
               {"n_layer", 2},         {"n_head", 4},         {"n_positions", 128},
               {"eos_token_id", 2},    {"bos_token_id", 1}};
  json neox = base_config("gpt_neox");
  neox.erase("num_key_value_heads");
  return {{base_config("llama"), "LlamaForCausalLM"},
          {with(base_config("llama"), {{"rope_scaling", llama3}, {"tie_word_embeddings", true}}),
           "LlamaForCausalLM", sentence_piece_tokenizer()},
          {with(base_config("mistral"), {{"sliding_window", 64}}), "MistralForCausalLM",
           sentence_piece_tokenizer()},
          {base_config("qwen2"), "Qwen2ForCausalLM"},
          {with(base_config("qwen3"), {{"head_dim", 16}}), "Qwen3ForCausalLM"},
          {with(base_config("gemma"), gemma), "GemmaForCausalLM"},
          {with(base_config("gemma2"), later), "Gemma2ForCausalLM"},
          {with(base_config("gemma3_text"), later), "Gemma3ForCausalLM"},
          {with(base_config("phi3"),
                {{"sliding_window", nullptr},
                 {"original_max_position_embeddings", 64},
                 {"rope_scaling",
                  {{"type", "longrope"}, {"short_factor", factors}, {"long_factor", factors}}}}),
           "Phi3ForCausalLM"},
          {gpt2, "GPT2LMHeadModel"},
          {neox, "GPTNeoXForCausalLM"},
          {with(neox, {{"tie_word_embeddings", true}, {"use_parallel_residual", false}}),
           "GPTNeoXForCausalLM"}};
}

/** A model directory with drawn weights. */
inline void write_model(const fs::path& directory, const Case& its) {
  fs::create_directories(directory);
  json config = its.config;
  config["architectures"] = {its.architecture};
  std::ofstream(directory / "config.json") << config.dump();
  std::ofstream(directory / "tokenizer.json") << its.tokenizer.dump();
  std::ofstream(directory / "tokenizer_config.json")
      << R"({"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"})";
  const ModelTable table = make_table(JsonReader::of(config, {"config.json", "model.config", ""}),
                                      {.head = HeadKind::causal_lm, .hidden_dropout = 0.0f});
  std::vector<TensorSpec> specs;
  for (const HfEntry& entry : table.hf_names)
    specs.emplace_back(entry.hf_name, DType::f32, entry.hf_shape);
  SafetensorsWriter writer(directory / "model.safetensors", specs);
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0.0f, 0.1f);
  for (const TensorSpec& spec : specs) {
    size_t n = 1;
    for (const int64_t size : spec.shape)
      n *= static_cast<size_t>(size);
    std::vector<float> values(n);
    for (float& value : values)
      value = normal(random);
    writer.write(spec.name, std::as_bytes(std::span(values)));
  }
  writer.finish();
}

inline std::vector<float> row_of(const GgufFile& file, const std::string& name, int64_t row) {
  const GgufTensor* tensor = file.find(name);
  EXPECT_TRUE(tensor) << name;
  if (!tensor) return {};
  std::vector<float> values(static_cast<size_t>(tensor->columns()));
  tensor->read_row(row, values);
  return values;
}

/** A row of a tensor of the model. */
inline std::vector<float> row_of(const HfDirectory& model, const std::string& name, int64_t row) {
  const CheckpointReader weights = model.weights();
  const StoredTensor& tensor = weights.get(name);
  const int64_t columns = tensor.shape.back();
  std::vector<float> values(static_cast<size_t>(columns));
  CheckpointReader::read_part(tensor, row * columns, values);
  return values;
}

/** Blocks of any codes, whose values are of the order of 0.05. */
inline std::vector<std::byte> random_blocks(GgufType type, int64_t n_elements) {
  std::mt19937 random(11);
  std::vector<std::byte> bytes(static_cast<size_t>(bytes_of(type, n_elements)));
  for (std::byte& byte : bytes)
    byte = static_cast<std::byte>(random());
  // A positive fp16 is about 2 ^ (high byte / 4 - 15).
  const auto set_half = [&](size_t at, int high) {
    bytes[at + 1] = static_cast<std::byte>(high + static_cast<int>(random() % 4));
  };
  const bool has_256 = block_elements(type) == 256, has_8_bits = type == GgufType::q8_0;
  const auto step = static_cast<size_t>(block_bytes(type));
  for (size_t block = 0; block < bytes.size(); block += step) {
    if (type == GgufType::mxfp4)
      bytes[block] = static_cast<std::byte>(121 + random() % 3);
    else if (type == GgufType::q6_k)
      set_half(block + 208, 0x02);
    else
      set_half(block, has_256 ? 0x04 : has_8_bits ? 0x10 : 0x1C);
    if (type == GgufType::q4_1 || type == GgufType::q5_1) set_half(block + 2, 0x20);
    if (type == GgufType::q4_k || type == GgufType::q5_k) set_half(block + 2, 0x08);
  }
  return bytes;
}

}  // namespace ferry::test::gguf
