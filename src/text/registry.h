#pragma once
// The registry of stages: makes the stage that a section of tokenizer.json describes, by the name
// of its type. A stage that is not known is an Error (data) that names file, key and type. Called
// by the reader of tokenizer.json and by stages that hold others (Sequence).

#include <memory>

#include "src/base/json/json_reader.h"
#include "src/text/pattern.h"
#include "src/text/spec/known_tokens.h"
#include "src/text/stages.h"

namespace ferry::text {

/** Facts that stages share, besides their own fields. */
struct StageContext {
  std::shared_ptr<const CharTable> table;
  const KnownTokens* known = nullptr;  // for post-processors, when the vocabulary is complete
};

/** Each reads one section, an object with a "type". */
std::unique_ptr<Normalizer> read_normalizer(const JsonReader& section, const StageContext& context);
std::unique_ptr<PreTokenizer> read_pre_tokenizer(const JsonReader& section,
                                                 const StageContext& context);
std::unique_ptr<PostProcessor> read_post_processor(const JsonReader& section,
                                                   const StageContext& context);
std::unique_ptr<Decoder> read_decoder(const JsonReader& section, const StageContext& context);

/** {"Regex": ".."} or {"String": ".."} under the key "pattern". */
Pattern read_pattern(const JsonReader& section);

/** A model and its vocabulary. */
struct ReadModel {
  std::unique_ptr<Model> model;
  std::vector<std::string> vocabulary;  // the token of each id; no two equal, empty: a hole
  std::string unknown;                  // the token for what is not in it; empty: none
};

/** `gives_bytes`: as the pre-tokenizer says. */
ReadModel read_model(const JsonReader& section, const StageContext& context, bool gives_bytes);

/** The vocabulary of a model, {"token": id, ...}, by id; ids without a token are empty. */
std::vector<std::string> read_vocabulary(const JsonReader& vocab);

}  // namespace ferry::text
