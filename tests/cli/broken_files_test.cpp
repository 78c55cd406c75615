// Files as attacks, disks and slips make them, over every reader: each ends in an Error that names
// the file, within seconds. A crash or a hang fails the whole program.

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "models/bert/bert_config.h"
#include "src/base/error.h"
#include "src/data/read/reader.h"
#include "src/files/hf/checkpoint_reader.h"
#include "src/files/hf/hf_config.h"
#include "src/files/safetensors/safetensors.h"
#include "src/plan/machine/machine_profile.h"
#include "src/runs/control.h"
#include "src/runs/control_client.h"
#include "src/runs/directory/checkpoints.h"
#include "src/runs/index/run_list.h"
#include "src/runs/logs/metrics_log.h"
#include "src/text/tokenizer.h"
#include "tests/cli/ferry_fixture.h"

namespace ferry::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

constexpr size_t kDeep = 200'000;

std::string repeated(std::string_view piece, size_t n) {
  std::string text;
  for (size_t i = 0; i < n; ++i)
    text += piece;
  return text;
}

/** u64 length, header, bytes. */
std::string safetensors(const std::string& header, size_t n_bytes, uint64_t length) {
  std::string text(reinterpret_cast<const char*>(&length), sizeof length);
  return text + header + std::string(n_bytes, '\0');
}

struct Reader {
  const char* file;  ///< under the test's directory
  std::string good;
  std::function<void(const fs::path& file)> read;
};

const std::string kVocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\n";

std::vector<Reader> json_readers() {
  const json profile = {{"version", 2}, {"name", "a host"}};
  json vocabulary;
  for (const char* token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello"})
    vocabulary[token] = vocabulary.size();
  const json tokenizer = {
      {"added_tokens", json::array()},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
      {"post_processor",
       {{"type", "BertProcessing"}, {"sep", {"[SEP]", 3}}, {"cls", {"[CLS]", 2}}}},
      {"model",
       {{"type", "WordPiece"},
        {"unk_token", "[UNK]"},
        {"continuing_subword_prefix", "##"},
        {"max_input_chars_per_word", 100},
        {"vocab", vocabulary}}}};
  return {
      {"model/config.json",
       R"({"model_type": "bert", "vocab_size": 100, "hidden_size": 24, "num_hidden_layers": 2, )"
       R"("num_attention_heads": 3, "intermediate_size": 40, "max_position_embeddings": 16})",
       [](const fs::path& file) { parse_bert_config(HfConfig::load(file).fields()); }},
      {"index/model.safetensors.index.json", R"({"weight_map": {"a": "1.safetensors"}})",
       [](const fs::path& file) { CheckpointReader::open(file.parent_path()); }},
      {"json/tokenizer.json", tokenizer.dump(),
       [](const fs::path& file) { Tokenizer::open(file.parent_path()); }},
      {"txt/tokenizer_config.json", R"({"do_lower_case": true})",
       [](const fs::path& file) { Tokenizer::open(file.parent_path()); }},
      {"machine.json", profile.dump(),
       [](const fs::path& file) { parse_machine_profile(read_text_file(file), file.string()); }},
      {"run/run.json", R"({"format_version": 1, "phase": "stopped"})",
       [](const fs::path& file) { runs::summarise(file.parent_path()); }},
      {"checkpoint-1/state/checksums.json", R"({"run_state.json": 0})",
       [](const fs::path& file) { runs::read_checksums(file.parent_path().parent_path()); }},
      {"rows.jsonl", "{\"text\": \"a\", \"label\": \"x\"}\n{\"text\": \"b\", \"label\": \"y\"}",
       [](const fs::path& file) { read_dataset({.path = file}); }},
  };
}

const std::string kScalar = R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})";

class BrokenFiles : public FerryTest {
 protected:
  void SetUp() override {
    directory_.write("index/1.safetensors", safetensors(kScalar, 4, kScalar.size()));
    directory_.write("txt/vocab.txt", kVocabulary);
    directory_.write(std::string("checkpoint-1/state/") + runs::kRunStateName, "");
  }

  /** Refused as a file that is at fault, by name. */
  void expect_refused(const Reader& reader, const std::string& what) {
    const fs::path file = directory_.path() / reader.file;
    try {
      reader.read(file);
      ADD_FAILURE() << reader.file << " " << what << " is taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::data) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(file.filename().string())) << what;
      EXPECT_LT(std::string_view(error.what()).size(), 1000u) << what;
    }
    ++n_refused_;
  }
  void expect_refused(const Reader& reader, const std::string& what, const std::string& bytes) {
    directory_.write(reader.file, bytes);
    expect_refused(reader, what);
  }

  int n_refused_ = 0;
};

TEST_F(BrokenFiles, EveryReaderOfJson) {
  for (const Reader& reader : json_readers()) {
    directory_.write(reader.file, reader.good);
    EXPECT_NO_THROW(reader.read(directory_.path() / reader.file)) << reader.file;
    const auto with = [&](const std::string& field) {
      return "{" + field + "," + reader.good.substr(1);
    };
    const std::string deep = repeated("[", kDeep) + repeated("]", kDeep);
    expect_refused(reader, "without a byte", "");
    expect_refused(reader, "half", reader.good.substr(0, reader.good.size() / 2));
    expect_refused(reader, "of open lists", repeated("[", kDeep));
    expect_refused(reader, "of open objects", repeated("{\"a\":", kDeep));
    expect_refused(reader, "of lists in each other", deep);
    expect_refused(reader, "with a deep unknown key", with("\"unknown\": " + deep));
    expect_refused(reader, "with a NUL", with("\"b\": \"" + std::string(1, '\0') + "\""));
    expect_refused(reader, "with a NUL behind it", reader.good + std::string(1, '\0'));
    expect_refused(reader, "that is no UTF-8", with("\"\xc3\x28\": 1"));
    expect_refused(reader, "with a key twice", with("\"k\": 1, \"k\": 2"));
    expect_refused(reader, "with a number beyond all", with("\"n\": 1e999"));
    expect_refused(reader, "that is a list", "[" + reader.good + ", 3]");
    expect_refused(reader, "that is a number", "-18446744073709551616");
    expect_refused(reader, "with more behind it", reader.good + reader.good);
    fs::remove(directory_.path() / reader.file);
    fs::create_directory(directory_.path() / reader.file);
    expect_refused(reader, "that is a directory");
    fs::remove(directory_.path() / reader.file);
    if (std::string_view(reader.file) != "txt/tokenizer_config.json" &&
        std::string_view(reader.file) != "json/tokenizer.json" &&
        std::string_view(reader.file) != "index/model.safetensors.index.json")
      expect_refused(reader, "that is not there");
    // Cut anywhere it is refused or, where only space or the last line went, taken.
    for (size_t n = 0; n < reader.good.size(); n += 1 + reader.good.size() / 50)
      expect_refused(reader, "cut", reader.good.substr(0, n));
  }
  EXPECT_GE(n_refused_, 40);
}

TEST_F(BrokenFiles, WrongTypesNameTheirKey) {
  const struct {
    const char *file, *key;
    json value;
  } cases[] = {
      {"model/config.json", "hidden_size", "24"},
      {"model/config.json", "vocab_size", -1},
      {"model/config.json", "num_hidden_layers", 1e300},
      {"model/config.json", "layer_norm_eps", json::array()},
      {"model/config.json", "id2label", {{"0", 3}}},
      {"model/config.json", "architectures", {1, 2}},
      {"index/model.safetensors.index.json", "weight_map", 3},
      {"json/tokenizer.json", "model", nullptr},
      {"json/tokenizer.json", "added_tokens", {{{"id", -3}, {"special", true}}}},
      {"txt/tokenizer_config.json", "do_lower_case", "yes"},
      {"machine.json", "gpu", 3},
      {"run/run.json", "phase", 7},
      {"run/run.json", "pid", "many"},
      {"run/run.json", "changes", {{{"step", "x"}}}},
      {"run/run.json", "plan", {{"rows", {3}}}},
      {"run/run.json", "created", nullptr},
      {"run/run.json", "pid", nullptr},
      {"run/run.json", "parent", 3},
      {"checkpoint-1/state/checksums.json", "model", {{"a", -1}}},
      {"checkpoint-1/state/checksums.json", "run_state.json", 4294967296},
      {"rows.jsonl", "text", 3},
  };
  for (const auto& [file, key, value] : cases)
    for (const Reader& reader : json_readers()) {
      if (std::string_view(reader.file) != file) continue;
      json changed = json::parse(reader.good.substr(0, reader.good.find('\n')));
      changed[key] = value;
      expect_refused(reader, key, changed.dump());
      try {
        reader.read(directory_.path() / file);
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr(key));
      }
    }
}

TEST_F(BrokenFiles, HeadersOfSafetensors) {
  const std::string header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const Reader reader = {"x.safetensors", "",
                         [](const fs::path& file) { SafetensorsFile::open(file); }};
  const auto with = [&](const std::string& text) { return safetensors(text, 8, text.size()); };
  directory_.write(reader.file, with(header));
  EXPECT_NO_THROW(reader.read(directory_.path() / reader.file));
  expect_refused(reader, "empty", "");
  expect_refused(reader, "seven bytes", "1234567");
  expect_refused(reader, "a length beyond the file", safetensors(header, 8, 1 << 20));
  expect_refused(reader, "a length beyond all", safetensors(header, 8, ~uint64_t{0}));
  expect_refused(reader, "a length that wraps", safetensors(header, 8, ~uint64_t{0} - 7));
  expect_refused(reader, "a length of nothing", safetensors(header, 8, 0));
  expect_refused(reader, "fewer bytes", safetensors(header, 7, header.size()));
  expect_refused(reader, "more bytes", safetensors(header, 9, header.size()));
  for (const char* bad :
       {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})",
        R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})",
        R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}})",
        R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,18446744073709551615]}})",
        R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})",
        R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
        R"({"a":{"dtype":"Q9","shape":[2],"data_offsets":[0,8]}})",
        R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{}})",
        R"({"a":{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]}})",
        R"({"a":{"dtype":["F32"],"shape":[2],"data_offsets":[0,8]}})",
        R"({"__metadata__":{"x":3},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
        R"({"a":3})", R"([])", R"({"a":null})"})
    expect_refused(reader, bad, with(bad));
  expect_refused(reader, "deep", with("{\"a\":" + repeated("[", kDeep)));
  expect_refused(reader, "deep", with(repeated("{\"a\":", kDeep)));
  expect_refused(reader, "NUL", with(std::string("{\"a\0\":1}", 8)));
}

TEST_F(BrokenFiles, TextsAndRows) {
  const auto refused = [&](const char* file, const std::string& bytes) {
    expect_refused({file, "", [](const fs::path& path) { read_dataset({.path = path}); }},
                   "of " + bytes.substr(0, 20), bytes);
  };
  refused("x.csv", "");
  refused("x.csv", "text,label\n");
  refused("x.csv", "text,label\n\"never closed,x\n");
  refused("x.csv", "text,label\na,b,c\n");
  refused("x.csv", "text,label\n\xff\xfe\x80,b\n");
  refused("x.csv", std::string("t\0e\0x\0t\0,\0l\0\n\0", 14));
  refused("x.tsv", "text\tlabel\na\n");
  refused("x.tsv", repeated("\t", kDeep) + "\n");
  refused("x.jsonl", "\n\n");
  refused("x.jsonl",
          "{\"text\": \"a\", \"label\": \"x\"}\n{\"text\": " + repeated("[", kDeep) + "\n");
  refused("x.jsonl", "{\"text\": \"a\", \"label\": " + repeated("[", 60) + repeated("]", 60) + "}");
  refused("x.jsonl", "[{\"text\": \"a\", \"label\": \"x\"}, " + repeated("[", kDeep));
  const auto vocabulary = [&](const std::string& bytes) {
    expect_refused(
        {"txt/vocab.txt", "", [](const fs::path& path) { Tokenizer::open(path.parent_path()); }},
        bytes.substr(0, 20), bytes);
  };
  vocabulary("");
  vocabulary("\n");
  vocabulary("[UNK]\n\xc3\x28\n");
  vocabulary(repeated("[", kDeep));
}

/** Whoever reads metrics.jsonl leaves out what is no line of it: the last one may be half. */
TEST_F(BrokenFiles, LinesOfMetrics) {
  directory_.write("run/run.json", R"({"format_version": 1, "phase": "stopped"})");
  for (const std::string& bad :
       {std::string(), repeated("[", kDeep), repeated("{\"a\":", kDeep),
        std::string("{\"step\": \"x\", \"loss\": []}"), std::string("\0\0\0\n", 4),
        std::string("\xff\xfe"), std::string("{\"step\": 1e300, \"loss\": 1}"),
        std::string("{\"step\": 18446744073709551615, \"loss\": 1, \"step_ms\": 1e308}"),
        std::string("{\"step\": 2, \"loss\": 1, \"num_input_tokens_seen\": {}}"),
        std::string("{\"eval_loss\": \"x\", \"step\": null}"), std::string("[1, 2]"),
        std::string("{\"step\": 2, \"step\": 3, \"loss\": 1}")}) {
    const fs::path file =
        directory_.write("run/metrics.jsonl", "{\"step\": 1, \"loss\": 0.5}\n" + bad + "\n");
    EXPECT_TRUE(runs::summarise(file.parent_path()).last_step->is_object());
    runs::MetricsLog log(file.parent_path(), 5, /*with_tensorboard=*/false);
    EXPECT_GE(log.losses().size(), 1u);
  }
}

TEST_F(BrokenFiles, LinesOfTheControlSocket) {
  ::setenv("XDG_RUNTIME_DIR", directory_.path().c_str(), 1);
  directory_.write("run/run.json", "{}");
  runs::ControlServer server(directory_.path() / "run");
  for (const json& bad : {json::parse("[1]"), json{{"command", 3}}, json{{"command", nullptr}}}) {
    const runs::ControlAnswer answer = runs::ask_run(server.path(), bad);
    EXPECT_FALSE(answer.is_done);
    EXPECT_THAT(answer.text, HasSubstr("a JSON object of texts was expected"));
  }
  json deep;  // no deeper than who writes it can recurse, with sanitizers too
  for (int i = 0; i < 1'000; ++i)
    deep = json::array({std::move(deep)});
  EXPECT_THAT(runs::ask_run(server.path(), deep).text, HasSubstr("a JSON object of texts"));
  EXPECT_FALSE(server.take());
  ::unsetenv("XDG_RUNTIME_DIR");
}

/** The programs' own exit codes for the worst of them. */
TEST_F(BrokenFiles, ExitCodes) {
  FerryTest::SetUp();
  if (IsSkipped()) return;
  const auto expect = [&](int code, const std::string& said, const std::string& line) {
    FerryTest::expect_refused(line, code, said);
  };
  const std::string deep = repeated("[", kDeep) + repeated("]", kDeep);
  const Reader config = json_readers().front();
  directory_.write(config.file, "{\"unknown\": " + deep + "," + config.good.substr(1));
  expect(4, "config.json", "plan --device=cpu --model=model");
  directory_.write(config.file, config.good);
  directory_.write("machine.json", deep);
  expect(4, "machine.json", "plan --model=model --machine=machine.json");
  directory_.write("rows.jsonl", "{\"text\": " + deep + "}\n");
  expect(4, "rows.jsonl:1", "plan --model=model --device=cpu --dataset=rows.jsonl");
  directory_.write("runs/deep/run.json", deep);
  directory_.write("runs/typed/run.json", R"({"phase": [], "plan": {"rows": 3}})");
  for (const std::string run : {"runs/deep", "runs/typed"}) {
    expect(4, "run.json", "runs show " + run);
    succeed("runs report " + run);
  }
  expect(0, "is left out", "runs ls");
  for (const std::string& text :
       {"lr = " + deep, "lr = " + repeated("{a=", kDeep), "lr = [\n" + repeated("[\n", kDeep),
        repeated("a.", kDeep) + "a = 1", repeated("\"a\" . ", kDeep / 2) + "a = 1",
        "[" + repeated("a.", kDeep) + "a]", "x = {" + repeated("a.", kDeep) + "a = 1}",
        "'''\n" + repeated("a.", kDeep), std::string("seed = 99999999999999999999"),
        std::string("lr = \"\xff\""), std::string("seed = \0 1", 10), std::string("= 3"),
        std::string("seed = 1\nseed = 2")}) {
    directory_.write("x.toml", text);
    expect(2, "x.toml", "plan --model=model --device=cpu --config=x.toml");
  }
  fs::create_directory(directory_.path() / "d.toml");
  expect(2, "d.toml", "plan --model=model --device=cpu --config=d.toml");
}

}  // namespace
}  // namespace ferry::cli
