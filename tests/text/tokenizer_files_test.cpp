// Model directories that are damaged, incomplete or of another kind: an Error (data) that names the
// file, never a crash.

#include <random>

#include "tests/text/model_files.h"

namespace ferry::test {
namespace {

using nlohmann::json;

void expect_refused(const json& model, const std::vector<std::string>& parts) {
  std::vector<std::string> all = parts;
  all.push_back("[tokenizer.open]");
  all.push_back("tokenizer.json'");
  expect_error(Fault::data, all, [&] { open_model(model); });
}

json changed(const std::string& pointer, const json& value) {
  json model = small_model();
  model[json::json_pointer(pointer)] = value;
  return model;
}

json without(const std::string& parent, const std::string& key) {
  json model = small_model();
  model[json::json_pointer(parent)].erase(key);
  return model;
}

TEST(TokenizerFiles, NothingThere) {
  TemporaryDirectory directory;
  expect_error(Fault::data, {directory.path().string(), "neither tokenizer.json nor vocab.txt"},
               [&] { Tokenizer::open(directory.path()); });
  expect_error(Fault::data, {"neither"}, [&] { Tokenizer::open(directory.path() / "none"); });
  std::filesystem::create_directory(directory.path() / "tokenizer.json");
  expect_error(Fault::data, {"tokenizer.json", "is a directory"},
               [&] { Tokenizer::open(directory.path()); });
}

TEST(TokenizerFiles, TruncatedAnywhere) {
  const std::string whole = small_model().dump();
  TemporaryDirectory directory;
  for (size_t size = 0; size < whole.size(); size += 1 + size % 7) {
    directory.write("tokenizer.json", whole.substr(0, size));
    expect_error(Fault::data, {"tokenizer.json", "is not valid JSON", "fetch"},
                 [&] { Tokenizer::open(directory.path()); });
  }
  directory.write("tokenizer.json", std::string(100000, '['));
  expect_error(Fault::data, {"is not valid JSON"}, [&] { Tokenizer::open(directory.path()); });
}

TEST(TokenizerFiles, DamagedAnywhereOpensOrIsRefused) {
  const std::string whole = small_model().dump();
  TemporaryDirectory directory;
  std::mt19937 random(11);
  int n_refused = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string damaged = whole;
    for (unsigned n = 1 + random() % 3; n > 0; --n)
      damaged[random() % damaged.size()] =
          i % 2 ? static_cast<char>(random()) : "0123456789-{}[],:\"tfn.e "[random() % 24];
    directory.write("tokenizer.json", damaged);
    try {
      Encoding e;
      Tokenizer::open(directory.path()).encode("hello [SEP] unaffable 日本 café", 64, e);
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::data) << error.what();
      ++n_refused;
    }
  }
  EXPECT_GT(n_refused, 500);
}

TEST(TokenizerFiles, MissingFields) {
  expect_refused(without("", "model"), {"model is missing"});
  for (const char* key : {"vocab", "unk_token", "max_input_chars_per_word"})
    expect_refused(without("/model", key), {"model." + std::string(key) + " is missing"});
  for (const char* key : {"type", "clean_text", "handle_chinese_chars", "lowercase"})
    expect_refused(without("/normalizer", key), {"normalizer." + std::string(key) + " is missing"});
  for (const char* key :
       {"id", "content", "special", "normalized", "lstrip", "rstrip", "single_word"})
    expect_refused(without("/added_tokens/1", key),
                   {"added_tokens[1]." + std::string(key) + " is missing"});
  for (const char* key : {"single", "pair", "special_tokens"})
    expect_refused(without("/post_processor", key),
                   {"post_processor." + std::string(key) + " is missing"});
  expect_refused(without("/post_processor/special_tokens", "[SEP]"),
                 {"post_processor.special_tokens", "[SEP]"});
}

TEST(TokenizerFiles, FieldsThatMayBeMissing) {
  EXPECT_EQ(tokens_of(open_model(without("", "added_tokens")), "[SEP]"), "[ sep ]");
  EXPECT_EQ(tokens_of(open_model(without("", "normalizer")), "hello Hello cafe\u0301"),
            "hello Hello cafe ##\u0301");
  EXPECT_EQ(tokens_of(open_model(without("/normalizer", "strip_accents")), "É"), "[UNK]");
  EXPECT_EQ(tokens_of(open_model(without("", "pre_tokenizer")), "unaffable"), "un ##aff ##able");
  EXPECT_EQ(open_model(without("", "decoder")).decode(std::vector<int32_t>{7, 8}), "un ##aff");
  EXPECT_EQ(tokens_of(open_model(without("/model", "type")), "hello"), "hello");
}

TEST(TokenizerFiles, WrongTypes) {
  expect_refused(changed("/model", 3), {"model is 3, expected an object"});
  expect_refused(changed("/model/vocab", json::array({1, 2})),
                 {"model.vocab is [1,2], expected an object"});
  expect_refused(changed("/model/vocab/hello", "5"),
                 {"model.vocab.hello is \"5\", expected a whole number from 0"});
  expect_refused(changed("/model/vocab/hello", -1), {"is -1, expected a whole number from 0 to"});
  expect_refused(changed("/model/vocab/hello", 1e300), {"expected a whole number"});
  expect_refused(changed("/model/vocab/hello", 18446744073709551615ull),
                 {"is 18446744073709551615, expected a whole number from 0 to"});
  expect_refused(changed("/model/unk_token", true), {"model.unk_token is true, expected a text"});
  expect_refused(changed("/normalizer/lowercase", "yes"),
                 {"normalizer.lowercase is \"yes\", expected true or false"});
  expect_refused(changed("/added_tokens", "none"), {"added_tokens is \"none\", expected a list"});
  expect_refused(changed("/added_tokens/0", 7), {"added_tokens[0] is 7, expected an object"});
  expect_refused(changed("/post_processor/single/0", json::object()),
                 {"has 0 fields, expected one"});
  expect_refused(changed("/post_processor/single/1/Sequence/id", "C"),
                 {"has the id 'C', expected A or B"});
  expect_refused(changed("/post_processor/special_tokens/[SEP]/ids/0", 1000),
                 {"has the id 1000, but there are 30"});
  expect_refused(json::array(), {"the whole is [], expected an object"});
  expect_refused(changed("/version", "2.0"), {"version is 2.0, expected 1.0"});
}

TEST(TokenizerFiles, OfAbsurdSizeAreRefusedBeforeTheyAreTakenApart) {
  const auto refusal = [](const TemporaryDirectory& directory) -> std::string {
    try {
      Tokenizer::open(directory.path());
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  TemporaryDirectory directory;
  directory.write("tokenizer.json", small_model().dump());
  EXPECT_EQ(refusal(directory), "");
  json special = json::object();
  for (int i = 0; i < 4097; ++i)
    special["token " + std::to_string(i)] = "[PAD]";
  directory.write("special_tokens_map.json", special.dump());
  EXPECT_NE(refusal(directory).find("has 4097 tokens, expected at most 4096"), std::string::npos)
      << refusal(directory);
  directory.write("special_tokens_map.json", "{}");
  std::filesystem::resize_file(directory.path() / "tokenizer.json", (128 << 20) + 1);
  EXPECT_NE(refusal(directory).find("expected at most 128.0 MiB"), std::string::npos)
      << refusal(directory);
}

/** The hole is before all of the ids: none of them is below the number of tokens. */
TEST(TokenizerFiles, ManyIdsBehindAHole) {
  constexpr int kTokens = 50'000, kHole = 60'000;
  json model = small_model();
  model.erase("added_tokens");
  for (int i = 0; i < kTokens; ++i)
    model["model"]["vocab"]["many" + std::to_string(i)] = kHole + i;
  const Tokenizer tokenizer = open_model(model);
  EXPECT_EQ(tokens_of(tokenizer, "hello many49999"), "hello many49999");
}

TEST(TokenizerFiles, OtherKindsOfTokenizer) {
  expect_refused(changed("/model", {{"type", "Characters"}, {"vocab", json::object()}}),
                 {"model is of type Characters", "supported are", "WordPiece"});
  expect_refused(changed("/model", {{"vocab", json::object()}}), {"model.type is missing"});
  expect_refused(changed("/normalizer/type", "Other"),
                 {"normalizer is of type Other", "BertNormalizer"});
  expect_refused(changed("/pre_tokenizer/type", "UnicodeScripts"),
                 {"is of type UnicodeScripts", "BertPreTokenizer"});
  expect_refused(changed("/post_processor/type", "Other"), {"post_processor is of type Other"});
  expect_refused(changed("/decoder/type", "CTC"), {"decoder is of type CTC", "supported are"});
  expect_refused(changed("/pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}),
                 {"model is of type WordPiece, which has no letters for bytes"});
}

TEST(TokenizerFiles, VocabulariesThatAreWrong) {
  expect_refused(changed("/model/vocab", json::object()), {"model.vocab is empty"});
  expect_refused(changed("/model/vocab/hello", 20'000'000),
                 {"gives 'hello' the id 20000000, but has only 30 tokens"});
  expect_refused(changed("/model/vocab/hello", 6), {"'hello' and 'world' the same id 6"});
  json empty_token = without("/model/vocab", "hello");
  empty_token["model"]["vocab"][""] = 5;
  expect_refused(empty_token, {"has an empty token, id 5"});
  json no_unk = without("/model/vocab", "[UNK]");
  no_unk["model"]["vocab"]["x"] = 1;
  expect_refused(no_unk, {"no unknown token '[UNK]'"});

  std::string twice = small_model().dump();
  twice.replace(twice.find("\"hello\":5"), 9, "\"hello\":5,\"hello\":5");
  TemporaryDirectory directory;
  directory.write("tokenizer.json", twice);
  expect_error(Fault::data, {"has 'hello' twice"}, [&] { Tokenizer::open(directory.path()); });
}

TEST(TokenizerFiles, AddedTokensThatAreWrong) {
  expect_refused(changed("/added_tokens/0/id", 7),
                 {"added token '[PAD]' the id 7, expected 0 as in the vocabulary"});
  expect_refused(changed("/added_tokens/0/content", "<new>"),
                 {"'<new>' the id 0, expected 30, the next one"});
  // Hugging Face counts tokens: the next id may be another token's where ids have holes.
  json holes = changed("/model/vocab/hello", 40);
  holes["model"]["vocab"]["x"] = 30;
  holes["model"]["vocab"].erase("world");
  holes["added_tokens"].push_back(holes["added_tokens"][0]);
  holes["added_tokens"].back().update({{"content", "<new>"}, {"id", 30}});
  expect_refused(holes, {"the added token '<new>' gets the id 30, which is that of 'x'"});
  expect_refused(changed("/added_tokens/0/content", ""), {"added token 0 is empty"});
  expect_refused(changed("/added_tokens/0", small_model()["added_tokens"][1]), {"'[SEP]' twice"});
  json nothing = small_model()["added_tokens"][0], model = small_model();
  nothing["content"] = "\u0301\u0302";
  nothing["id"] = 30;
  nothing["normalized"] = true;
  model["added_tokens"].push_back(nothing);
  expect_refused(model, {"which is nothing"});
  nothing["content"] = "ABC";
  model["added_tokens"].back() = nothing;
  nothing["content"] = "abc";
  nothing["id"] = 31;
  model["added_tokens"].push_back(nothing);
  expect_refused(model, {"'abc'", "as another one is"});
}

TEST(TokenizerFiles, ConfigurationThatContradicts) {
  TemporaryDirectory directory;
  directory.write("tokenizer.json", small_model().dump());
  directory.write("tokenizer_config.json", R"({"do_lower_case": false})");
  expect_error(Fault::data,
               {"tokenizer_config.json'", "do_lower_case is false", "'tokenizer.json' says true"},
               [&] { Tokenizer::open(directory.path()); });
  directory.write("tokenizer_config.json", R"({"do_lower_case": true, "strip_accents": null})");
  EXPECT_EQ(Tokenizer::open(directory.path()).vocab_size(), 30);
}

std::string vocab_lines() {
  std::string lines;
  for (const std::string& token : kSmallVocabulary)
    lines += token + "\n";
  return lines;
}

std::vector<int32_t> ids_of(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids;
  tokenizer.append_ids(text, ids);
  return ids;
}

TEST(TokenizerFiles, IdsMayHaveHoles) {
  const Tokenizer t = open_model(changed("/model/vocab/hello", 165));
  EXPECT_EQ(t.vocab_size(), 166);
  EXPECT_EQ(ids_of(t, "hello world"), (std::vector<int32_t>{165, 6}));
  EXPECT_EQ(t.id_to_token(5), "");
  const int32_t ids[] = {5, 165, 100};
  EXPECT_EQ(t.decode(ids), "hello");
}

TEST(TokenizerFiles, WordLevelTakesWholePieces) {
  json model = changed(
      "/model",
      {{"type", "WordLevel"}, {"unk_token", "[UNK]"}, {"vocab", small_model()["model"]["vocab"]}});
  const Tokenizer t = open_model(model);
  EXPECT_EQ(tokens_of(t, "Hello unaffable, [SEP] world"), "hello [UNK] , [SEP] world");
  model["model"]["unk_token"] = "<none>";
  EXPECT_EQ(tokens_of(open_model(model), "hello world"), "hello world");
  expect_error(Fault::data, {"'unaffable' is not in the tokenizer's vocabulary"},
               [&] { tokens_of(open_model(model), "hello unaffable"); });
}

/** Files that different tools wrote: tokenizer.json lacks what the configuration adds. */
TEST(TokenizerFiles, TokensOfTheConfigurationAlone) {
  TemporaryDirectory directory;
  directory.write("tokenizer.json", small_model().dump());
  const auto open_with = [&](const json& config) {
    directory.write("tokenizer_config.json", config.dump());
    return Tokenizer::open(directory.path());
  };
  const json user = {{"content", "<|user|>"}, {"special", true}}, ent = {{"content", "ENT"}};
  const json mask = {{"content", "[MASK]"}, {"special", true}, {"rstrip", true}};
  const Tokenizer t = open_with({{"added_tokens_decoder", {{"31", ent}, {"30", user}, {"4", mask}}},
                                 {"eos_token", "[CLS]"},
                                 {"pad_token", {{"content", "<pad>"}, {"__type", "AddedToken"}}},
                                 {"image_token", "<image>"},
                                 {"additional_special_tokens", {"<x>", "<|user|>"}}});
  EXPECT_EQ(t.vocab_size(), 35);
  EXPECT_EQ(tokens_of(t, "<|user|>hello ent<x>[CLS]<image> <pad>"),
            "<|user|> hello ENT <x> [CLS] <image> <pad>");
  EXPECT_EQ(ids_of(t, "<pad><image><x>"), (std::vector<int32_t>{32, 33, 34}));
  EXPECT_EQ(t.special_ids().pad, 32);
  EXPECT_EQ(t.special_ids().eos, 2);
  // A flag of the configuration counts, not the file's.
  Encoding e;
  t.encode("hello [MASK] world", 16, e, Offsets::keep);
  EXPECT_EQ(e.offsets[2].begin, 6u);
  EXPECT_EQ(e.offsets[2].end, 13u);
  expect_error(Fault::data, {"added token '<|user|>' the id 31, expected 30, the next one"}, [&] {
    open_with({{"added_tokens_decoder", {{"31", user}}}});
  });
}

/** As transformers wrote before 4.34. */
TEST(TokenizerFiles, TokensOfFilesBesideTheConfiguration) {
  for (const bool has_json : {true, false}) {
    SCOPED_TRACE(has_json);
    TemporaryDirectory directory;
    if (has_json)
      directory.write("tokenizer.json", small_model().dump());
    else
      directory.write("vocab.txt", vocab_lines());
    directory.write("added_tokens.json", R"({"[/E1]": 31, "[E1]": 30, "Word": 32})");
    directory.write("special_tokens_map.json",
                    R"({"additional_special_tokens": ["[E1]", "[/E1]"], "pad_token": "[P]"})");
    const Tokenizer t = Tokenizer::open(directory.path());
    EXPECT_EQ(ids_of(t, "[E1]hello[/E1] word"), (std::vector<int32_t>{30, 5, 31, 32}));
    EXPECT_EQ(t.special_ids().pad, 33);
    const auto files = text::tokenizer_files(directory.path());
    EXPECT_EQ(files.size(), 3u);
    // A newer configuration has all of it.
    directory.write("tokenizer_config.json", R"({"added_tokens_decoder": {}})");
    EXPECT_EQ(Tokenizer::open(directory.path()).vocab_size(), 30);
  }
}

TEST(TokenizerFiles, TextsLoseTheEndThatTheFilesSay) {
  const auto cut = [](const char* config, const char* direction) {
    TemporaryDirectory directory;
    json model = small_model();
    if (*direction) model["truncation"]["direction"] = direction;
    directory.write("tokenizer.json", model.dump());
    if (*config) directory.write("tokenizer_config.json", config);
    const Tokenizer t = Tokenizer::open(directory.path());
    Encoding e;
    t.encode("hello world un the", 4, e, Offsets::keep);
    return std::pair(e.ids, e.offsets[1].begin);
  };
  using Ids = std::vector<int32_t>;
  const auto left = std::pair(Ids{2, 7, 13, 3}, 12u), right = std::pair(Ids{2, 5, 6, 3}, 0u);
  EXPECT_EQ(cut("", ""), right);
  EXPECT_EQ(cut("", "Left"), left);
  EXPECT_EQ(cut(R"({"truncation_side": "left"})", ""), left);
  EXPECT_EQ(cut(R"({"truncation_side": "right"})", "Left"), right);
  EXPECT_THROW(cut(R"({"truncation_side": "both"})", ""), Error);

  TemporaryDirectory directory;
  directory.write("tokenizer.json", small_model().dump());
  directory.write("tokenizer_config.json", R"({"truncation_side": "left"})");
  const Tokenizer t = Tokenizer::open(directory.path());
  Encoding e;
  t.encode_pair("hello world un", "the world", 7, e, Offsets::keep);
  EXPECT_EQ(e.ids, (Ids{2, 6, 7, 3, 13, 6, 3}));
  EXPECT_EQ(e.offsets[1].begin, 6u);
  const std::string_view words[] = {"hello", "unaffable", "world"};
  std::vector<int32_t> first;
  t.encode_words(words, 5, e, first);
  EXPECT_EQ(e.ids, (Ids{2, 8, 9, 6, 3}));
  EXPECT_EQ(first, (Ids{-1, -1, 3}));
  t.encode_words(words, 7, e, first);
  EXPECT_EQ(first, (Ids{1, 2, 5}));
}

/** transformers builds GPT-2's tokenizers with the blank that tokenizer_config.json says. */
TEST(TokenizerFiles, TheFirstBlankIsTheConfigurationsForSomeClasses) {
  const json model = json::parse(R"({
    "version": "1.0", "added_tokens": [], "normalizer": null, "post_processor": null, "decoder": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
    "model": {"type": "BPE", "vocab": {"Ġ": 0, "a": 1, "Ġa": 2}, "merges": ["Ġ a"]}})");
  const auto first_token = [&](const char* configuration) {
    TemporaryDirectory directory;
    directory.write("tokenizer.json", model.dump());
    if (*configuration) directory.write("tokenizer_config.json", configuration);
    Encoding e;
    Tokenizer::open(directory.path()).encode("a", 8, e);
    return std::pair(e.ids.front(), text::has_configured_prefix_space(directory.path()));
  };
  EXPECT_EQ(first_token(""), std::pair(2, false));
  EXPECT_EQ(first_token(R"({"tokenizer_class": "PreTrainedTokenizerFast"})"), std::pair(2, false));
  EXPECT_EQ(first_token(R"({"tokenizer_class": "GPT2TokenizerFast"})"), std::pair(1, true));
  EXPECT_EQ(first_token(R"({"tokenizer_class": "RobertaTokenizer", "add_prefix_space": true})"),
            std::pair(2, true));
}

TEST(VocabTxt, IsUncasedUnlessTheConfigurationSaysSo) {
  TemporaryDirectory directory;
  directory.write("vocab.txt", vocab_lines());
  const Tokenizer uncased = Tokenizer::open(directory.path());
  EXPECT_EQ(uncased.vocab_size(), 30);
  EXPECT_EQ(tokens_of(uncased, "HELLO café [SEP]日"), "hello cafe [SEP] 日");
  Encoding e;
  uncased.encode_pair("hello", "world", 128, e);
  EXPECT_EQ(e.ids, (std::vector<int32_t>{2, 5, 3, 6, 3}));

  directory.write("tokenizer_config.json",
                  R"({"do_lower_case": false, "tokenize_chinese_chars": false})");
  EXPECT_EQ(tokens_of(Tokenizer::open(directory.path()), "Hello café 日本"), "Hello café 日 ##本");
  directory.write("tokenizer_config.json", R"({"do_lower_case": false, "strip_accents": true})");
  EXPECT_EQ(tokens_of(Tokenizer::open(directory.path()), "Hello café"), "Hello cafe");
}

TEST(VocabTxt, LineEndsOfWindowsAndNoLastNewline) {
  std::string lines = vocab_lines();
  lines.pop_back();
  for (size_t at = 0; (at = lines.find('\n', at)) != std::string::npos; at += 2)
    lines.replace(at, 1, "\r\n");
  TemporaryDirectory directory;
  directory.write("vocab.txt", lines);
  const Tokenizer t = Tokenizer::open(directory.path());
  EXPECT_EQ(t.vocab_size(), 30);
  EXPECT_EQ(t.id_to_token(29), "istanbul");
  EXPECT_EQ(tokens_of(t, "hello"), "hello");
}

TEST(VocabTxt, AddedTokensOfTheConfiguration) {
  TemporaryDirectory directory;
  directory.write("vocab.txt", vocab_lines());
  directory.write("tokenizer_config.json", R"({"added_tokens_decoder": {
    "30": {"content": "<Ent>", "special": true}, "4": {"content": "[MASK]", "lstrip": true, "special": true},
    "31": {"content": "ABC", "special": false}}})");
  const Tokenizer t = Tokenizer::open(directory.path());
  EXPECT_EQ(t.vocab_size(), 32);
  EXPECT_EQ(tokens_of(t, "<Ent>hello<ent> xabcx"), "<Ent> hello [UNK] [UNK] [UNK] [UNK] ABC [UNK]");
  for (const char* key : {"", "x", "-1", "99999999999"}) {
    directory.write("tokenizer_config.json",
                    json{{"added_tokens_decoder", {{key, {{"content", "<Ent>"}}}}}}.dump());
    expect_error(Fault::data, {"tokenizer_config.json'", "expected an id"},
                 [&] { Tokenizer::open(directory.path()); });
  }
}

/** A line is an id, whatever stands there. */
TEST(VocabTxt, EmptyLinesAndWordsThatAreThereTwice) {
  TemporaryDirectory directory;
  directory.write("vocab.txt", "\n" + vocab_lines() + "hello\n\nlast\n");
  const Tokenizer t = Tokenizer::open(directory.path());
  EXPECT_EQ(t.vocab_size(), 34);
  Encoding e;
  t.encode("hello world last", 16, e);
  EXPECT_EQ(e.ids, (std::vector<int32_t>{3, 31, 7, 33, 4}));
  EXPECT_EQ(t.decode(e.ids), "hello world last");
  EXPECT_EQ(t.id_to_token(6), "");
}

TEST(VocabTxt, FilesThatAreWrong) {
  TemporaryDirectory directory;
  const auto refused = [&](const std::string& bytes, const std::vector<std::string>& parts) {
    directory.write("vocab.txt", bytes);
    expect_error(Fault::data, parts, [&] { Tokenizer::open(directory.path()); });
  };
  const std::string lines = vocab_lines();
  refused("", {"vocab.txt'", "is empty"});
  refused(lines + "a\xff\n", {"line 31 is not UTF-8"});
  refused("a\nb\n[CLS]\n[SEP]\n", {"no unknown token '[UNK]'"});
  refused("[UNK]\n[SEP]\n", {"no cls token '[CLS]'", "tokenizer_config.json"});
  directory.write("tokenizer_config.json", "{\"do_lower_case\": 1}");
  refused(lines, {"tokenizer_config.json'", "expected true or false"});
  directory.write("tokenizer_config.json", "{");
  refused(lines, {"tokenizer_config.json'", "is not valid JSON"});
}

/** Each of them makes a thousand letters of one. */
TEST(TokenizerFiles, ReplacementsThatGrowWithoutBoundAreAnError) {
  const json replace = {
      {"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", std::string(1000, 'a')}};
  const Tokenizer tokenizer = open_model(
      changed("/normalizer", {{"type", "Sequence"}, {"normalizers", {replace, replace, replace}}}));
  Encoding encoding;
  expect_error(Fault::data, {"[tokenizer.encode]", "makes a text larger than"},
               [&] { tokenizer.encode(std::string(30, 'a'), 16, encoding); });
  const Tokenizer once = open_model(changed("/normalizer", replace));
  once.encode("a world", 16, encoding);
}

}  // namespace
}  // namespace ferry::test
