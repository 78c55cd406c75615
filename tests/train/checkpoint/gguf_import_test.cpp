// Models that begin as GGUF files: what `ferry export` wrote comes back with the same values,
// configuration and tokens, for every family, and blocks of each type have the values that their
// type says.

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>

#include "src/config/models/models.h"
#include "src/files/gguf/gguf_config.h"
#include "src/files/gguf/gguf_tensors.h"
#include "src/files/gguf/gguf_tokenizer.h"
#include "src/files/gguf/gguf_writer.h"
#include "src/files/plain_file.h"
#include "src/files/tensor_codes.h"
#include "src/inputs/model_files.h"
#include "src/text/tokenizer.h"
#include "src/train/checkpoint/gguf_export.h"
#include "tests/files/test_files.h"
#include "tests/train/checkpoint/gguf_cases.h"

namespace ferry {
namespace {

using test::error_of;
using test::TempDir;
using testing::HasSubstr;
using namespace test::gguf;

/** A directory, and in it the cache for models. */
class GgufImport : public testing::Test {
 protected:
  GgufImport() { ::setenv("XDG_CACHE_HOME", (dir_ / "cache").c_str(), 1); }
  ~GgufImport() override { ::unsetenv("XDG_CACHE_HOME"); }
  HfDirectory open(const fs::path& file) {
    return open_directory(config::find_model(file.string()));
  }

  TempDir dir_;
};

std::vector<int32_t> ids_of(const Tokenizer& tokenizer, std::string_view text) {
  Encoding encoding;
  tokenizer.encode(text, /*max_length=*/100, encoding);
  return encoding.ids;
}

/** Keys without the name, which is the file's. */
std::map<std::string, GgufValue> keys_of(const GgufFile& file) {
  std::map<std::string, GgufValue> keys(file.keys().begin(), file.keys().end());
  keys.erase("general.name");
  keys.erase("general.file_type");
  return keys;
}

TEST_F(GgufImport, AnotherFileOfItIsTheSame) {
  int n = 0;
  for (const Case& its : cases()) {
    SCOPED_TRACE(its.config.dump());
    const fs::path from = dir_ / fmt::format("model{}", n++);
    write_model(from, its);
    for (const GgufType type : {GgufType::f32, GgufType::bf16, GgufType::q8_0}) {
      const fs::path file = from.string() + std::string(name_of(type)) + ".gguf",
                     again = file.string() + ".again.gguf";
      export_gguf(from, file, type);
      export_gguf(config::find_model(file.string()), again, GgufType::f32);
      const GgufFile first = GgufFile::open(file), second = GgufFile::open(again);
      EXPECT_EQ(keys_of(first).size(), keys_of(second).size());
      for (const auto& [key, value] : keys_of(first)) {
        const GgufValue* other = find_key(second.keys(), key);
        EXPECT_TRUE(other && *other == value) << key;
      }
      ASSERT_EQ(first.tensors().size(), second.tensors().size());
      for (const GgufTensor& tensor : first.tensors())
        for (int64_t row = 0; row < tensor.rows(); ++row)
          ASSERT_EQ(row_of(first, tensor.name, row), row_of(second, tensor.name, row))
              << tensor.name << " " << row;
    }
  }
}

TEST_F(GgufImport, HasTheTensorsOfTheModel) {
  int n = 0;
  for (const Case& its : cases()) {
    SCOPED_TRACE(its.config.dump());
    const fs::path from = dir_ / fmt::format("model{}", n++), file = from.string() + ".gguf";
    write_model(from, its);
    export_gguf(from, file, GgufType::f32);
    const HfDirectory model = open(file);
    const auto table = [](const HfDirectory& directory) {
      return make_table(directory.config().fields(), {.head = HeadKind::causal_lm});
    };
    const ModelTable expected = table(HfDirectory::open(from)), found = table(model);
    ASSERT_EQ(found.hf_names.size(), expected.hf_names.size());
    const CheckpointReader weights = model.weights(), old = HfDirectory::open(from).weights();
    for (const HfEntry& entry : expected.hf_names) {
      const StoredTensor& tensor = weights.get(entry.hf_name, entry.hf_shape);
      std::vector<float> values(static_cast<size_t>(tensor.n_elements())), theirs(values.size());
      CheckpointReader::read_part(tensor, 0, values);
      CheckpointReader::read_part(old.get(entry.hf_name), 0, theirs);
      // Gemma's norms are counted from one in the file, which rounds them.
      const bool is_rounded = entry.hf_name.ends_with("norm.weight");
      for (size_t i = 0; i < values.size(); ++i)
        ASSERT_NEAR(values[i], theirs[i], is_rounded ? 1e-7 : 0) << entry.hf_name << " " << i;
      const int64_t middle = tensor.n_elements() / 3;
      std::vector<float> part(5);
      CheckpointReader::read_part(tensor, middle, part);
      for (size_t i = 0; i < part.size(); ++i)
        EXPECT_EQ(part[i], values[static_cast<size_t>(middle) + i]) << entry.hf_name;
    }
  }
}

TEST_F(GgufImport, TextsHaveTheSameTokens) {
  for (const size_t index : {size_t{0}, size_t{1}, size_t{3}, size_t{10}}) {
    const fs::path from = dir_ / fmt::format("model{}", index), file = from.string() + ".gguf";
    write_model(from, cases()[index]);
    export_gguf(from, file, GgufType::f32);
    const Tokenizer theirs = Tokenizer::open(from), its = Tokenizer::open(open(file).tokenizer());
    for (const char* text :
         {"hello hell", "  ab Ab abab", "na\u00efve \U0001f600\n", "x</s> y", ""})
      EXPECT_EQ(ids_of(its, text), ids_of(theirs, text)) << text;
    EXPECT_EQ(its.special_ids().bos, theirs.special_ids().bos);
    EXPECT_EQ(its.special_ids().eos, theirs.special_ids().eos);
    EXPECT_EQ(its.special_ids().unk, theirs.special_ids().unk);
  }
}

TEST_F(GgufImport, AFileOrTheDirectoryWithItIsAModel) {
  write_model(dir_ / "model", cases()[0]);
  fs::create_directories(dir_ / "with");
  export_gguf(dir_ / "model", dir_ / "with/x.gguf", GgufType::q8_0);
  const fs::path found = config::find_model((dir_ / "with/x.gguf").string());
  EXPECT_EQ(config::find_model((dir_ / "with").string()), found);
  EXPECT_EQ(open(dir_ / "with").config().quantised, "gguf");
  EXPECT_EQ(open(dir_ / "with").config().storages.at("model.layers.0.self_attn.q_proj.weight"),
            "q8_0");
  EXPECT_FALSE(open(dir_ / "with").config().json().contains("quantization_config"));

  // A tokenizer beside the file goes before the one in it.
  json other = byte_level_tokenizer();
  other["model"]["merges"] = json::array();
  std::ofstream(dir_ / "with/tokenizer.json") << other.dump();
  const HfDirectory with = open(dir_ / "with");
  EXPECT_NE(with.path(), found);
  EXPECT_EQ(ids_of(Tokenizer::open(with.tokenizer()), "he").size(), 3U);

  fs::copy(dir_ / "with/x.gguf", dir_ / "with/y.gguf");
  EXPECT_THAT(error_of([&] { config::find_model((dir_ / "with").string()); }),
              HasSubstr("holds 2 GGUF files"));
  EXPECT_THAT(error_of([&] { config::find_model((dir_ / "none.gguf").string()); }),
              HasSubstr("there is no GGUF file"));
}

/** The file with other keys. */
void set_keys(const fs::path& from, const fs::path& to, const GgufKeys& changes) {
  const GgufFile file = GgufFile::open(from);
  GgufKeys keys = file.keys();
  for (const auto& [key, value] : changes) {
    const auto at = std::ranges::find(keys, key, &GgufKeys::value_type::first);
    if (at == keys.end())
      keys.emplace_back(key, value);
    else
      at->second = value;
  }
  std::vector<GgufTensorSpec> specs;
  for (const GgufTensor& tensor : file.tensors())
    specs.push_back({tensor.name, tensor.type, tensor.shape});
  GgufWriter writer(to, keys, specs);
  for (const GgufTensor& tensor : file.tensors())
    writer.write_blocks(tensor.name, tensor.bytes);
  writer.finish();
}

TEST_F(GgufImport, WhatIsNotReadIsRefusedByName) {
  write_model(dir_ / "model", cases()[0]);
  export_gguf(dir_ / "model", dir_ / "x.gguf", GgufType::f32);
  int n = 0;
  const auto refusal = [&](const char* key, GgufValue value) {
    const fs::path to = dir_ / fmt::format("{}.gguf", n++);
    set_keys(dir_ / "x.gguf", to, {{key, std::move(value)}});
    return error_of([&] { open(to).weights(); });
  };
  EXPECT_THAT(refusal("general.architecture", GgufValue::text("mamba")),
              HasSubstr("of the architecture mamba"));
  EXPECT_THAT(refusal("general.type", GgufValue::text("adapter")), HasSubstr("holds no model"));
  EXPECT_THAT(refusal("split.count", GgufValue::u32(3)), HasSubstr("one of 3 parts"));
  EXPECT_THAT(refusal("tokenizer.ggml.pre", GgufValue::text("elsewhere")),
              HasSubstr("splits texts as elsewhere"));
  EXPECT_THAT(refusal("tokenizer.ggml.model", GgufValue::text("bert")),
              HasSubstr("a tokenizer of the kind bert"));
  EXPECT_THAT(refusal("llama.rope.scaling.type", GgufValue::text("ntk")),
              HasSubstr("scales rotary positions as ntk"));
  EXPECT_THAT(refusal("llama.rope.dimension_count", GgufValue::u32(4)),
              HasSubstr("turns 4 of 8 elements"));
  EXPECT_THAT(refusal("llama.block_count", GgufValue::text("two")),
              HasSubstr("a value of another kind as 'llama.block_count'"));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_ / "cache/ferry/gguf"), {}), 0)
      << "nothing of them is left";
}

/** A byte of the header is changed: the file is refused in words, or read as another model. */
TEST_F(GgufImport, AnyHeaderIsReadOrRefused) {
  std::mt19937 random(17);
  int n_refused = 0;
  for (const size_t index : {size_t{1}, size_t{3}, size_t{7}, size_t{10}}) {
    const fs::path from = dir_ / fmt::format("model{}", index), file = dir_ / "changed.gguf";
    write_model(from, cases()[index]);
    export_gguf(from, dir_ / "whole.gguf", GgufType::q8_0);
    const std::string whole = read_text_file(dir_ / "whole.gguf");
    fs::remove(dir_ / "whole.gguf");
    const size_t n_header = whole.find("tokenizer.ggml.tokens");
    ASSERT_NE(n_header, whole.npos);
    for (int i = 0; i < 150; ++i) {
      std::string changed = whole;
      changed[8 + random() % (n_header - 8)] =
          static_cast<char>(random() % 4 ? random() % 3 : random());
      std::ofstream(file, std::ios::binary | std::ios::trunc) << changed;
      try {
        const GgufFile opened = GgufFile::open(file);
        gguf_config(opened);
        gguf_tensors(opened);
        gguf_tokenizer_files(opened);
      } catch (const Error& error) {
        EXPECT_EQ(error.fault(), Fault::data);
        ++n_refused;
      }
    }
  }
  EXPECT_GT(n_refused, 50);
}

TEST_F(GgufImport, ANumberOfHeadsThatCannotBeIsRefused) {
  write_model(dir_ / "model", cases()[0]);
  export_gguf(dir_ / "model", dir_ / "x.gguf", GgufType::f32);
  for (const int64_t n : {int64_t{0}, int64_t{1000}}) {
    const fs::path to = dir_ / fmt::format("heads{}.gguf", n);
    set_keys(dir_ / "x.gguf", to, {{"llama.attention.head_count", GgufValue::u32(n)}});
    EXPECT_THAT(error_of([&] { open(to); }), HasSubstr(fmt::format("says {} heads", n)));
  }
}

TEST_F(GgufImport, BlocksHaveTheValuesOfTheirType) {
  write_model(dir_ / "model",
              {with(base_config("llama"), {{"hidden_size", 256}, {"intermediate_size", 256}}),
               "LlamaForCausalLM"});
  export_gguf(dir_ / "model", dir_ / "x.gguf", GgufType::f32);
  const GgufFile file = GgufFile::open(dir_ / "x.gguf");
  for (const GgufType type : {GgufType::q8_0, GgufType::q4_0, GgufType::q4_1, GgufType::q5_0,
                              GgufType::q4_k, GgufType::q5_k, GgufType::q6_k, GgufType::mxfp4}) {
    SCOPED_TRACE(name_of(type));
    std::vector<GgufTensorSpec> specs;
    for (const GgufTensor& tensor : file.tensors())
      specs.push_back({tensor.name, tensor.shape.size() == 2 ? type : GgufType::f32, tensor.shape});
    const fs::path to = dir_ / (std::string(name_of(type)) + ".gguf");
    GgufWriter writer(to, file.keys(), specs);
    for (size_t i = 0; i < specs.size(); ++i)
      if (specs[i].type == type)
        writer.write_blocks(specs[i].name, random_blocks(type, file.tensors()[i].rows() *
                                                                   file.tensors()[i].columns()));
      else
        writer.write_blocks(specs[i].name, file.tensors()[i].bytes);
    writer.finish();
    const GgufFile written = GgufFile::open(to);
    const HfDirectory model = open(to);
    const CheckpointReader weights = model.weights();
    const StoredTensor& down = weights.get("model.layers.1.mlp.down_proj.weight");
    const GgufTensor& its = *written.find("blk.1.ffn_down.weight");
    std::vector<float> row(256), values(256);
    for (int64_t i = 0; i < 256; i += 51) {
      its.read_row(i, row);
      CheckpointReader::read_part(down, i * 256, values);
      EXPECT_EQ(values, row);
      ASSERT_GT(*std::ranges::max_element(row), 0);
      CheckpointReader::read_part(down, i * 256 + 37, std::span(values).first(100));
      EXPECT_TRUE(std::equal(values.begin(), values.begin() + 100, row.begin() + 37));
    }
    // Row 1 of the second head (of 64 rows) is the file's row 2 of it.
    const StoredTensor& q = weights.get("model.layers.0.self_attn.q_proj.weight");
    written.find("blk.0.attn_q.weight")->read_row(64 + 2, row);
    CheckpointReader::read_part(q, 65 * 256, values);
    EXPECT_EQ(values, row);
    const bool is_stored = type != GgufType::q5_0 && type != GgufType::q5_k;
    EXPECT_EQ(q.codes->storage().empty(), !is_stored);
    if (!is_stored || type == GgufType::mxfp4) continue;
    std::vector<std::byte> blocks(static_cast<size_t>(bytes_of(type, 256)));
    q.codes->read_rows(65, 1, blocks);
    EXPECT_TRUE(std::ranges::equal(
        blocks,
        written.find("blk.0.attn_q.weight")->bytes.subspan(66 * blocks.size(), blocks.size())));
  }
}

}  // namespace
}  // namespace ferry
