#include "src/files/gguf/gguf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "src/files/gguf/gguf_keys.h"
#include "src/files/gguf/gguf_names.h"

namespace ferry {
namespace {

using Json = nlohmann::ordered_json;
using Texts = std::vector<std::string>;

/** SentencePiece's letter for a blank. */
constexpr std::string_view kMetaspace = "\u2581";
constexpr const char* kTakeFiles =
    "put tokenizer.json and tokenizer_config.json of the model beside the GGUF file";

/** The kinds of tokens, with the format's numbers. */
enum class TokenKind : int64_t { normal = 1, unknown, control, user_defined, unused, byte };

std::string with_blanks(std::string text) {
  for (size_t at = 0; (at = text.find(kMetaspace, at)) != text.npos; ++at)
    text.replace(at, kMetaspace.size(), " ");
  return text;
}

class TokenizerOfGguf {
 public:
  explicit TokenizerOfGguf(const GgufFile& file) : keys_(file) {
    const auto* tokens = keys_.find<Texts>("tokenizer.ggml.tokens");
    if (!tokens) keys_.refuse("has no tokenizer", kTakeFiles);
    tokens_ = *tokens;
    model_ = keys_.text("tokenizer.ggml.model");
    architecture_ = keys_.text("general.architecture");
    kinds_.assign(tokens_.size(), TokenKind::normal);
    if (const auto* kinds = keys_.find<std::vector<int64_t>>("tokenizer.ggml.token_type"))
      for (size_t i = 0; i < std::min(kinds->size(), kinds_.size()); ++i)
        kinds_[i] = static_cast<TokenKind>((*kinds)[i]);
    takes_blanks_after_ = is_llama() && architecture_ == "phi3" && says_phi3();
  }

  std::vector<std::pair<std::string, std::string>> files() const {
    std::vector<std::pair<std::string, std::string>> made = {
        {"tokenizer.json", tokenizer().dump()},
        {"tokenizer_config.json", settings().dump(1)},
        {"generation_config.json", generation().dump(1)}};
    if (const std::string tools = keys_.text("tokenizer.chat_template.tool_use", "");
        !tools.empty())
      made.emplace_back("additional_chat_templates/tool_use.jinja", tools);
    if (const std::string chat = keys_.text("tokenizer.chat_template", ""); !chat.empty())
      made.emplace_back("chat_template.jinja", chat);
    return made;
  }

 private:
  bool is_llama() const { return model_ == "llama"; }

  bool says_phi3() const {
    std::string name = keys_.text("general.name", "");
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    return name.find("phi-3") != name.npos || name.find("phi3") != name.npos;
  }

  /** -1: there is none. */
  int64_t id_of(std::string_view key) const {
    const int64_t id = keys_.integer(fmt::format("tokenizer.ggml.{}_token_id", key), -1);
    return id >= 0 && id < std::ssize(tokens_) ? id : -1;
  }
  const std::string& token(int64_t id) const { return tokens_[static_cast<size_t>(id)]; }

  const GgufSplit* split() const {
    // Files of GPT-NeoX that llama.cpp's own converter writes name none.
    const std::string pre =
        keys_.text("tokenizer.ggml.pre", architecture_ == "gptneox" ? "gpt-2" : "");
    for (const GgufSplit& known : gguf_splits())
      if (known.pre == pre || std::ranges::find(known.other_names, pre) != known.other_names.end())
        return &known;
    keys_.refuse(
        pre.empty()
            ? std::string("does not say how its tokenizer splits texts (tokenizer.ggml.pre)")
            : fmt::format("has a tokenizer that splits texts as {}, which Ferry does not know",
                          pre),
        kTakeFiles);
  }

  bool adds_bos(const GgufSplit* its) const {
    const bool otherwise = is_llama() || (its && (its->pre == "llama-bpe" || its->pre == "tekken"));
    return id_of("bos") >= 0 && keys_.flag("tokenizer.ggml.add_bos_token", otherwise);
  }
  bool adds_eos() const {
    return id_of("eos") >= 0 && keys_.flag("tokenizer.ggml.add_eos_token", false);
  }

  Json tokenizer() const {
    if (model_ != "gpt2" && !is_llama())
      keys_.refuse(
          fmt::format("has a tokenizer of the kind {}, which Ferry does not read from GGUF",
                      model_),
          kTakeFiles);
    const GgufSplit* its = is_llama() ? nullptr : split();
    Json json = {{"version", "1.0"},          {"truncation", nullptr},
                 {"padding", nullptr},        {"added_tokens", added_tokens()},
                 {"normalizer", nullptr},     {"pre_tokenizer", nullptr},
                 {"post_processor", nullptr}, {"decoder", nullptr}};
    if (is_llama()) {
      add_sentence_piece(json);
    } else {
      if (its->composes || architecture_ == "gptneox") json["normalizer"] = {{"type", "NFC"}};
      json["pre_tokenizer"] = pre_tokenizer(*its);
      json["decoder"] = byte_level(true, true);
    }
    if (adds_bos(its) || adds_eos()) json["post_processor"] = template_of(adds_bos(its));
    json["model"] = {
        {"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", is_llama() && id_of("unknown") >= 0 ? Json(token(id_of("unknown"))) : Json()},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", is_llama()},
        {"byte_fallback", is_llama()},
        {"ignore_merges", its && its->ignores_merges},
        {"vocab", vocabulary()},
        {"merges", is_llama() ? merges_of_scores() : merges()}};
    return json;
  }

  static Json byte_level(bool adds_blank, bool splits) {
    return {{"type", "ByteLevel"},
            {"add_prefix_space", adds_blank},
            {"trim_offsets", true},
            {"use_regex", splits}};
  }

  static Json pre_tokenizer(const GgufSplit& its) {
    auto steps = Json::array();
    bool has_bytes = false;
    for (const std::string_view step : its.steps) {
      if (step == kSplitsByteWords) {
        steps.push_back(byte_level(false, true));
        has_bytes = true;
      } else if (step == kSplitsEachDigit) {
        steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
      } else {
        steps.push_back({{"type", "Split"},
                         {"pattern", {{"Regex", step}}},
                         {"behavior", "Isolated"},
                         {"invert", false}});
      }
    }
    if (!has_bytes) steps.push_back(byte_level(false, false));
    if (steps.size() == 1) return steps.front();
    return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
  }

  void add_sentence_piece(Json& json) const {
    const bool adds_blank = keys_.flag("tokenizer.ggml.add_space_prefix", true);
    const Json replace = {
        {"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kMetaspace}};
    const Json prepend = {{"type", "Prepend"}, {"prepend", kMetaspace}};
    json["normalizer"] =
        adds_blank ? Json{{"type", "Sequence"}, {"normalizers", {prepend, replace}}} : replace;
    auto steps =
        Json::array({{{"type", "Replace"}, {"pattern", {{"String", kMetaspace}}}, {"content", " "}},
                     {{"type", "ByteFallback"}},
                     {{"type", "Fuse"}}});
    if (adds_blank)
      steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    json["decoder"] = {{"type", "Sequence"}, {"decoders", std::move(steps)}};
  }

  Json template_of(bool has_bos) const {
    auto single = Json::array(), pair = Json::array();
    auto special = Json::object();
    const auto put = [&](int64_t id, Json& to, int type) {
      to.push_back({{"SpecialToken", {{"id", token(id)}, {"type_id", type}}}});
      special[token(id)] = {{"id", token(id)}, {"ids", {id}}, {"tokens", Json::array({token(id)})}};
    };
    const auto text = [&](const char* name, Json& to, int type) {
      if (has_bos) put(id_of("bos"), to, type);
      to.push_back({{"Sequence", {{"id", name}, {"type_id", type}}}});
      if (adds_eos()) put(id_of("eos"), to, type);
    };
    text("A", single, 0);
    text("A", pair, 0);
    text("B", pair, 1);
    return {{"type", "TemplateProcessing"},
            {"single", std::move(single)},
            {"pair", std::move(pair)},
            {"special_tokens", std::move(special)}};
  }

  TokenKind kind(size_t id) const { return kinds_[id]; }
  bool is_added(size_t id) const {
    return kind(id) == TokenKind::control || kind(id) == TokenKind::unknown ||
           kind(id) == TokenKind::user_defined;
  }
  /** The token as it stands in texts. */
  std::string content(size_t id) const {
    return is_llama() && kind(id) == TokenKind::user_defined ? with_blanks(tokens_[id])
                                                             : tokens_[id];
  }

  Json added_tokens() const {
    auto added = Json::array();
    for (size_t id = 0; id < tokens_.size(); ++id) {
      if (!is_added(id)) continue;
      const bool is_special = kind(id) != TokenKind::user_defined;
      const std::string& its = tokens_[id];
      const bool leaves_blanks = its == "<unk>" || its == "<s>" || its == "<|endoftext|>";
      added.push_back({{"id", id},
                       {"content", content(id)},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", takes_blanks_after_ && is_special && !leaves_blanks},
                       {"normalized", false},
                       {"special", is_special}});
    }
    return added;
  }

  Json vocabulary() const {
    auto vocabulary = Json::object();
    // Put in by its key, each token would be looked for among all earlier ones.
    auto& places = vocabulary.get_ref<Json::object_t&>();
    std::unordered_map<std::string, size_t> seen;
    for (size_t id = 0; id < tokens_.size(); ++id) {
      if (kind(id) == TokenKind::unused) continue;
      if (!seen.emplace(content(id), id).second)
        keys_.refuse(fmt::format("has the token '{}' twice", tokens_[id]), kTakeFiles);
      places.emplace_back(content(id), id);
    }
    return vocabulary;
  }

  Json merges() const {
    const auto* merges = keys_.find<Texts>("tokenizer.ggml.merges");
    if (!merges) keys_.refuse("has a tokenizer without merges", kTakeFiles);
    auto pairs = Json::array();
    for (const std::string& merge : *merges) {
      const size_t blank = merge.find(' ', 1);
      if (blank == merge.npos || blank + 1 == merge.size())
        keys_.refuse(fmt::format("has the merge '{}', which is no pair of tokens", merge),
                     kTakeFiles);
      pairs.push_back({merge.substr(0, blank), merge.substr(blank + 1)});
    }
    return pairs;
  }

  /** Any two neighbours whose text is a token are joined, the greatest score first. */
  Json merges_of_scores() const {
    const auto* scores = keys_.find<std::vector<double>>("tokenizer.ggml.scores");
    if (!scores || scores->size() < tokens_.size())
      keys_.refuse("has a tokenizer without scores", kTakeFiles);
    std::unordered_map<std::string_view, size_t> ids;
    std::vector<size_t> order;
    for (size_t id = 0; id < tokens_.size(); ++id)
      if (kind(id) == TokenKind::normal) {
        ids.emplace(tokens_[id], id);
        order.push_back(id);
      }
    std::ranges::stable_sort(order, std::greater<>(), [&](size_t id) { return (*scores)[id]; });
    auto merges = Json::array();
    for (const size_t id : order) {
      const std::string_view its = tokens_[id];
      std::vector<std::pair<size_t, size_t>> pairs;
      for (size_t cut = 1; cut < its.size(); ++cut) {
        if ((static_cast<unsigned char>(its[cut]) & 0xC0) == 0x80) continue;
        const auto left = ids.find(its.substr(0, cut)), right = ids.find(its.substr(cut));
        if (left != ids.end() && right != ids.end())
          pairs.emplace_back(left->second, right->second);
      }
      std::ranges::sort(pairs);
      for (const auto& [left, right] : pairs)
        merges.push_back({tokens_[left], tokens_[right]});
    }
    return merges;
  }

  Json settings() const {
    Json json = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                 {"clean_up_tokenization_spaces", false}};
    for (const auto& [key, name] : {std::pair{"bos", "bos_token"},
                                    {"eos", "eos_token"},
                                    {"unknown", "unk_token"},
                                    {"padding", "pad_token"}})
      if (const int64_t id = id_of(key); id >= 0) json[name] = token(id);
    return json;
  }

  Json generation() const {
    Json json = Json::object();
    if (const int64_t bos = id_of("bos"); bos >= 0) json["bos_token_id"] = bos;
    std::vector<int64_t> ends;
    for (const char* key : {"eos", "eot", "eom"})
      if (const int64_t id = id_of(key); id >= 0 && std::ranges::find(ends, id) == ends.end())
        ends.push_back(id);
    if (!ends.empty()) json["eos_token_id"] = ends.size() == 1 ? Json(ends.front()) : Json(ends);
    return json;
  }

  GgufKeyReader keys_;
  Texts tokens_;
  std::vector<TokenKind> kinds_;
  std::string model_, architecture_;
  bool takes_blanks_after_ = false;
};

}  // namespace

std::vector<std::pair<std::string, std::string>> gguf_tokenizer_files(const GgufFile& file) {
  return TokenizerOfGguf(file).files();
}

}  // namespace ferry
