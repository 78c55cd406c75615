// Makes a tokenizer of a SentencePiece model, in the form that Hugging Face's converters give it.
// Which form goes with it is known by the name of the tokenizer's class in tokenizer_config.json,
// or else by config.json's model type; a model that comes alone is taken as SentencePiece has it.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "src/text/models/bpe.h"
#include "src/text/models/unigram.h"
#include "src/text/normalizers/normal_forms.h"
#include "src/text/normalizers/precompiled.h"
#include "src/text/post_processors/template_processing.h"
#include "src/text/registry.h"
#include "src/text/spec/sentence_piece_file.h"
#include "src/text/spec/tokenizer_spec.h"

namespace ferry::text {
namespace {

using Json = nlohmann::ordered_json;
using Kind = SentencePieceFile::Kind;

/** SentencePiece's letter for a blank. */
constexpr const char* kBlank = "\u2581";

enum class Form { plain, llama, gemma, t5, xlm_roberta };

struct SentencePieceClass {
  std::string_view name, model_type;
  Form form;
};
constexpr SentencePieceClass kSentencePieceClasses[] = {
    {"LlamaTokenizer", "llama", Form::llama},
    {"LlamaTokenizer", "mistral", Form::llama},
    {"LlamaTokenizer", "mixtral", Form::llama},
    {"CodeLlamaTokenizer", "code_llama", Form::llama},
    {"Phi3Tokenizer", "phi3", Form::llama},
    {"GemmaTokenizer", "gemma", Form::gemma},
    {"GemmaTokenizer", "gemma2", Form::gemma},
    {"GemmaTokenizer", "gemma3_text", Form::gemma},
    {"T5Tokenizer", "t5", Form::t5},
    {"MT5Tokenizer", "mt5", Form::t5},
    {"XLMRobertaTokenizer", "xlm-roberta", Form::xlm_roberta},
};

Form form_of(const std::filesystem::path& model_dir,
             const JsonReader* config,
             const TokenizerSpec& spec) {
  const TokenizerClass found = read_class(model_dir, config);
  if (found.name.empty() && found.model_type.empty()) return Form::plain;
  for (const SentencePieceClass& known : kSentencePieceClasses)
    if (found.name.empty() ? known.model_type == found.model_type : known.name == found.name)
      return known.form;
  fail_unknown_class(spec.file, found);
}

/** The stages as sections of tokenizer.json. */
struct Sections {
  std::vector<Json> normalizers;
  Json pre_tokenizer;
  Json decoder;
};

Json replace(std::string_view from, std::string_view to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

Json metaspace(std::string_view scheme, bool split) {
  return {
      {"type", "Metaspace"}, {"replacement", kBlank}, {"prepend_scheme", scheme}, {"split", split}};
}

/** Blanks and bytes back, without the blank that was put in front. */
Json joined_decoder(bool bytes, bool prefix) {
  Json parts = Json::array({replace(kBlank, " ")});
  if (bytes) parts.push_back({{"type", "ByteFallback"}});
  parts.push_back({{"type", "Fuse"}});
  if (prefix) parts.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return {{"type", "Sequence"}, {"decoders", parts}};
}

Sections sections_of(Form form, const SentencePieceFile& model, const JsonReader* config) {
  Sections s;
  const Json prepend = {{"type", "Prepend"}, {"prepend", kBlank}};
  switch (form) {
    case Form::llama: {
      const bool prefix = !config || config->flag("add_prefix_space", true);
      if (config && !config->flag("legacy", true)) {
        s.pre_tokenizer = metaspace(prefix ? "first" : "never", false);
      } else {
        if (prefix) s.normalizers.push_back(prepend);
        s.normalizers.push_back(replace(" ", kBlank));
      }
      s.decoder = joined_decoder(true, prefix);
      break;
    }
    case Form::gemma:
      s.normalizers.push_back(replace(" ", kBlank));
      s.pre_tokenizer = {{"type", "Split"},
                         {"pattern", {{"String", " "}}},
                         {"behavior", "MergedWithPrevious"},
                         {"invert", false}};
      s.decoder = joined_decoder(true, false);
      break;
    case Form::t5:
    case Form::xlm_roberta:
      s.pre_tokenizer = {
          {"type", "Sequence"},
          {"pretokenizers", {{{"type", "WhitespaceSplit"}}, metaspace("always", true)}}};
      s.decoder = metaspace("always", true);
      break;
    case Form::plain:
      if (model.remove_extra_whitespaces) {
        s.normalizers.push_back({{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}});
        s.normalizers.push_back(
            {{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}});
      }
      if (model.add_dummy_prefix) s.normalizers.push_back(prepend);
      s.normalizers.push_back(replace(" ", kBlank));
      s.decoder = joined_decoder(model.byte_fallback, model.add_dummy_prefix);
      break;
  }
  return s;
}

/** The names that go with a form, or that the model gives, unless others are configured. */
void set_names(Form form, const SentencePieceFile& model, TokenizerSpec& spec) {
  spec.bos = model.text_of(model.bos_id);
  spec.eos = model.text_of(model.eos_id);
  spec.unk = model.text_of(model.unknown_id);
  spec.pad = model.text_of(model.pad_id);
  spec.cls = spec.sep = spec.mask = "";
  if (form == Form::t5) spec.bos = "";
  if (form != Form::xlm_roberta) return;
  spec.bos = spec.cls = "<s>";
  spec.eos = spec.sep = "</s>";
  spec.unk = "<unk>";
  spec.pad = "<pad>";
  spec.mask = "<mask>";
}

/** Tokens beyond the model's that mark gaps in T5's texts. */
std::string extra_token(int64_t i) {
  return fmt::format("<extra_id_{}>", i);
}

struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<double> scores;
  int32_t unknown_id;

  void add(std::string token, double score) {
    tokens.push_back(std::move(token));
    scores.push_back(score);
  }
};

Vocabulary vocabulary_of(Form form,
                         const SentencePieceFile& model,
                         const JsonReader* config,
                         const TokenizerSpec& spec) {
  Vocabulary v;
  v.unknown_id = model.unknown_id;
  size_t first = 0;
  if (form == Form::xlm_roberta) {  // fairseq's ids: other ones for the first three pieces
    for (const std::string& token : {spec.bos, spec.pad, spec.eos, spec.unk})
      v.add(token, 0);
    v.unknown_id = 3;
    first = 3;
  }
  for (size_t id = first; id < model.pieces.size(); ++id)
    v.add(model.pieces[id].text, model.pieces[id].score);
  if (form == Form::xlm_roberta) v.add(spec.mask, 0);
  if (form == Form::t5)
    for (int64_t n = config ? config->integer("extra_ids", 0, 10000, 100) : 100; n > 0; --n)
      v.add(extra_token(n - 1), 0);
  if (form == Form::gemma && std::find(v.tokens.begin(), v.tokens.end(), "\t") == v.tokens.end())
    std::replace(v.tokens.begin(), v.tokens.end(), std::string("<0x09>"), std::string("\t"));
  std::unordered_set<std::string_view> seen;
  for (const std::string& token : v.tokens)
    if (token.empty() || !seen.insert(token).second)
      fail(spec.file, fmt::format("with the special tokens has the token '{}' twice", token),
           "name others in tokenizer_config.json");
  return v;
}

std::unique_ptr<Model> model_of(Form form, const SentencePieceFile& model, const Vocabulary& v) {
  if (model.algorithm == SentencePieceFile::Algorithm::unigram)
    return std::make_unique<Unigram>(v.tokens, v.scores, v.unknown_id,
                                     form == Form::plain && model.byte_fallback);
  BpeOptions options;
  options.unknown = v.tokens[static_cast<size_t>(v.unknown_id)];
  options.fuse_unknown = true;
  options.leftmost_first = form == Form::plain;
  options.byte_fallback = form != Form::plain || model.byte_fallback;
  return std::make_unique<Bpe>(std::move(options), v.tokens, merges_of_scores(v.tokens, v.scores));
}

/** Control symbols, and those that users defined, are sought in the text; by SentencePiece itself
 * those of users where blanks are letters already. */
void add_symbols(Form form,
                 const SentencePieceFile& model,
                 KnownTokens& known,
                 TokenizerSpec& spec) {
  for (const SentencePieceFile::Piece& piece : model.pieces) {
    if (piece.kind != Kind::control && piece.kind != Kind::user_defined) continue;
    const int32_t id = known.find(piece.text);
    if (id < 0 || known.is_added(piece.text)) continue;
    const bool is_turn = piece.text == "<start_of_turn>" || piece.text == "<end_of_turn>";
    const bool special = piece.kind == Kind::control || (form == Form::gemma && is_turn);
    const bool is_normal = form == Form::plain && piece.kind == Kind::user_defined;
    add_token({id, piece.text, false, false, false, is_normal, special, is_normal}, known, spec);
  }
  if (form != Form::t5) return;
  for (int64_t i = 0;; ++i) {
    const int32_t id = known.find(extra_token(i));
    if (id < 0) return;
    if (!known.is_added(extra_token(i)))
      add_token({id, extra_token(i), false, false, false, false, true}, known, spec);
  }
}

std::unique_ptr<PostProcessor> post_processor_of(Form form,
                                                 const JsonReader* config,
                                                 const KnownTokens& known,
                                                 const TokenizerSpec& spec) {
  if (form != Form::t5 && form != Form::xlm_roberta)
    return bos_and_eos(config, form != Form::plain, known, spec);
  const int32_t eos = known.require(spec.eos, "eos");
  Template single{{{0, {}, 0}, {-1, {eos}, 0}}}, pair = single;
  pair.pieces.insert(pair.pieces.end(), {{1, {}, 0}, {-1, {eos}, 0}});
  if (form == Form::xlm_roberta) {
    const Template::Piece bos{-1, {known.require(spec.bos, "bos")}, 0};
    single.pieces.insert(single.pieces.begin(), bos);
    pair.pieces.insert(pair.pieces.begin(), bos);
    pair.pieces[2].ids.push_back(eos);
  }
  return std::make_unique<TemplateProcessing>(std::move(single), std::move(pair));
}

}  // namespace

void read_sentence_piece(const std::filesystem::path& model_dir,
                         const JsonReader* config,
                         TokenizerSpec& spec) {
  const Form form = form_of(model_dir, config, spec);
  const SentencePieceFile model = read_sentence_piece_file(spec.file);
  set_names(form, model, spec);
  if (config) read_names(*config, spec);

  Vocabulary vocabulary = vocabulary_of(form, model, config, spec);
  spec.model = model_of(form, model, vocabulary);
  spec.vocabulary = std::move(vocabulary.tokens);
  KnownTokens known(spec.file, spec.vocabulary);
  add_configured_tokens(config, known, spec);
  add_usual_tokens(known, spec);
  add_symbols(form, model, known, spec);

  const StageContext context{.table = spec.table};
  const Sections sections = sections_of(form, model, config);
  const auto section_of = [&](const Json& section) {
    return JsonReader::of(section, {spec.file.string(), "tokenizer.open", std::string(kSaveAgain)});
  };
  std::vector<std::unique_ptr<Normalizer>> normalizers;
  if (!model.charsmap.empty() && form != Form::llama && form != Form::gemma) {
    try {
      normalizers.push_back(std::make_unique<Precompiled>(model.charsmap));
    } catch (const std::invalid_argument& error) {
      fail(spec.file, fmt::format("its map of characters {}", error.what()), kFetchAgain);
    }
  }
  for (const Json& section : sections.normalizers)
    normalizers.push_back(read_normalizer(section_of(section), context));
  if (!normalizers.empty())
    spec.normalizer = std::make_unique<NormalizerSequence>(std::move(normalizers));
  if (!sections.pre_tokenizer.is_null())
    spec.pre_tokenizer = read_pre_tokenizer(section_of(sections.pre_tokenizer), context);
  spec.decoder = read_decoder(section_of(sections.decoder), context);
  spec.post_processor = post_processor_of(form, config, known, spec);
}

}  // namespace ferry::text
