#include "src/text/registry.h"

#include <fmt/format.h>

#include <array>
#include <stdexcept>

#include "src/text/decoders/byte_level_decoder.h"
#include "src/text/decoders/text_decoders.h"
#include "src/text/decoders/wordpiece_decoder.h"
#include "src/text/models/bpe.h"
#include "src/text/models/unigram.h"
#include "src/text/models/word_level.h"
#include "src/text/models/wordpiece.h"
#include "src/text/normalizers/bert_normalizer.h"
#include "src/text/normalizers/normal_forms.h"
#include "src/text/normalizers/precompiled.h"
#include "src/text/normalizers/replacements.h"
#include "src/text/post_processors/byte_level_offsets.h"
#include "src/text/post_processors/template_processing.h"
#include "src/text/pre_tokenizers/bert_pre_tokenizer.h"
#include "src/text/pre_tokenizers/byte_level.h"
#include "src/text/pre_tokenizers/character_splits.h"
#include "src/text/pre_tokenizers/metaspace.h"
#include "src/text/pre_tokenizers/split.h"

namespace ferry::text {
namespace {

/** A type's name in tokenizer.json, and who reads it. */
template <typename Read>
struct Type {
  std::string_view name;
  Read* read;
};

template <typename Stage>
using ReadStage = std::unique_ptr<Stage>(const JsonReader&, const StageContext&);

constexpr Type<ReadStage<Normalizer>> kNormalizers[] = {
    {"BertNormalizer", BertNormalizer::read},
    {"Lowercase", Lowercase::read},
    {"NFC", NormalForm::read},
    {"NFD", NormalForm::read},
    {"NFKC", NormalForm::read},
    {"NFKD", NormalForm::read},
    {"Nmt", Nmt::read},
    {"Precompiled", Precompiled::read},
    {"Prepend", Prepend::read},
    {"Replace", Replace::read},
    {"Sequence", NormalizerSequence::read},
    {"Strip", Strip::read},
    {"StripAccents", StripAccents::read},
};
constexpr Type<ReadStage<PreTokenizer>> kPreTokenizers[] = {
    {"BertPreTokenizer", BertPreTokenizer::read},
    {"ByteLevel", ByteLevel::read},
    {"Digits", CharacterSplit::read_digits},
    {"Metaspace", Metaspace::read},
    {"Punctuation", CharacterSplit::read_punctuation},
    {"Sequence", PreTokenizerSequence::read},
    {"Split", Split::read},
    {"Whitespace", CharacterSplit::read_words},
    {"WhitespaceSplit", CharacterSplit::read_white_space},
};
constexpr Type<ReadModel(const JsonReader&, const StageContext&, bool)> kModels[] = {
    {"BPE", Bpe::read},
    {"Unigram", Unigram::read},
    {"WordLevel", WordLevel::read},
    {"WordPiece", WordPiece::read},
};
constexpr Type<ReadStage<PostProcessor>> kPostProcessors[] = {
    {"BertProcessing", TemplateProcessing::read_bert}, {"ByteLevel", ByteLevelOffsets::read},
    {"RobertaProcessing", RobertaProcessing::read},    {"Sequence", PostProcessorSequence::read},
    {"TemplateProcessing", TemplateProcessing::read},
};
constexpr Type<ReadStage<Decoder>> kDecoders[] = {
    {"BPEDecoder", read_suffix_decoder},   {"ByteFallback", read_byte_fallback_decoder},
    {"ByteLevel", ByteLevelDecoder::read}, {"Fuse", read_fuse_decoder},
    {"Metaspace", read_metaspace_decoder}, {"Replace", read_replace_decoder},
    {"Sequence", read_decoder_sequence},   {"Strip", read_strip_decoder},
    {"WordPiece", WordPieceDecoder::read},
};

template <typename Read, size_t N>
Read* find_type(const Type<Read> (&types)[N], const JsonReader& section, const std::string& name) {
  std::string supported;
  for (const Type<Read>& type : types) {
    if (type.name == name) return type.read;
    supported += fmt::format("{}{}", supported.empty() ? "" : ", ", type.name);
  }
  section.fail(fmt::format("is of type {}", name), fmt::format("supported are {}", supported));
}

/** Files of the first versions carry no type; the model is then known by a field of its own. */
std::string model_type(const JsonReader& section) {
  if (!section.find("type")) {
    if (section.find("merges")) return "BPE";
    if (section.find("max_input_chars_per_word")) return "WordPiece";
  }
  return section.text("type");
}

}  // namespace

Pattern read_pattern(const JsonReader& section) {
  const auto [kind, value] = section.at("pattern").only();
  const std::string expression = value.text();
  if (kind != "Regex" && kind != "String")
    value.fail(fmt::format("is a {}, expected Regex or String", kind), kSaveAgain);
  if (expression.empty()) value.fail("is empty", kSaveAgain);
  if (kind == "String") return Pattern::literal(expression);
  try {
    return Pattern(expression);
  } catch (const std::invalid_argument& error) {
    constexpr size_t kShown_bytes = 200;
    value.fail(fmt::format("is the pattern {}{}, {}", expression.substr(0, kShown_bytes),
                           expression.size() > kShown_bytes ? "..." : "", error.what()),
               "patterns know classes, quantifiers of characters, alternatives and look-ahead");
  }
}

std::unique_ptr<Normalizer> read_normalizer(const JsonReader& section,
                                            const StageContext& context) {
  return find_type(kNormalizers, section, section.text("type"))(section, context);
}

std::unique_ptr<PreTokenizer> read_pre_tokenizer(const JsonReader& section,
                                                 const StageContext& context) {
  return find_type(kPreTokenizers, section, section.text("type"))(section, context);
}

std::unique_ptr<PostProcessor> read_post_processor(const JsonReader& section,
                                                   const StageContext& context) {
  return find_type(kPostProcessors, section, section.text("type"))(section, context);
}

std::unique_ptr<Decoder> read_decoder(const JsonReader& section, const StageContext& context) {
  return find_type(kDecoders, section, section.text("type"))(section, context);
}

ReadModel read_model(const JsonReader& section, const StageContext& context, bool gives_bytes) {
  return find_type(kModels, section, model_type(section))(section, context, gives_bytes);
}

}  // namespace ferry::text
