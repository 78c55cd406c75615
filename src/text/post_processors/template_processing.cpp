#include "src/text/post_processors/template_processing.h"

#include <fmt/format.h>

#include <array>

namespace ferry::text {
namespace {

void check_id(const JsonReader& place, int32_t id, size_t vocab_size) {
  if (static_cast<size_t>(id) >= vocab_size)
    place.fail(fmt::format("has the id {}, but there are {} tokens", id, vocab_size),
               "give the token's id in the vocabulary");
}

/** Each of the template's texts has to appear once. */
Template read_template(const JsonReader& processor,
                       std::string_view key,
                       int n_texts,
                       size_t vocab_size) {
  const JsonReader list = processor.at(key), special = processor.at("special_tokens");
  Template result;
  std::array<int, 2> seen{};
  for (size_t i = 0; i < list.size(); ++i) {
    const auto [kind, piece] = list.at(i).only();
    Template::Piece& added = result.pieces.emplace_back();
    added.type_id = id_of(piece.at("type_id"));
    if (added.type_id > 255) piece.fail("has a type_id above 255", kSaveAgain);
    const std::string id = piece.text("id");
    if (kind == "Sequence") {
      if (id != "A" && id != "B")
        piece.fail(fmt::format("has the id '{}', expected A or B", id), kSaveAgain);
      added.text = id == "A" ? 0 : 1;
      ++seen[static_cast<size_t>(added.text)];
    } else if (kind == "SpecialToken") {
      const JsonReader ids = special.at(id).at("ids");
      for (size_t k = 0; k < ids.size(); ++k) {
        added.ids.push_back(id_of(ids.at(k)));
        check_id(ids, added.ids.back(), vocab_size);
      }
    } else {
      piece.fail(fmt::format("is a {}, expected Sequence or SpecialToken", kind), kSaveAgain);
    }
  }
  if (seen[0] != 1 || seen[1] != n_texts - 1)
    list.fail(fmt::format("has text A {} and text B {} times, expected 1 and {}", seen[0], seen[1],
                          n_texts - 1),
              kSaveAgain);
  return result;
}

}  // namespace

int32_t read_token_pair(const JsonReader& section, const std::string& key, size_t vocab_size) {
  const JsonReader token = section.at(key);
  if (token.size() != 2) token.fail("has to be a token and its id", kSaveAgain);
  const int32_t id = id_of(token.at(size_t{1}));
  check_id(token, id, vocab_size);
  return id;
}

std::unique_ptr<PostProcessor> TemplateProcessing::read(const JsonReader& section,
                                                        const StageContext& context) {
  const size_t vocab_size = context.known->n_ids();
  return std::make_unique<TemplateProcessing>(read_template(section, "single", 1, vocab_size),
                                              read_template(section, "pair", 2, vocab_size));
}

std::unique_ptr<PostProcessor> TemplateProcessing::read_bert(const JsonReader& section,
                                                             const StageContext& context) {
  const size_t vocab_size = context.known->n_ids();
  return bert(read_token_pair(section, "cls", vocab_size),
              read_token_pair(section, "sep", vocab_size));
}

std::unique_ptr<PostProcessor> TemplateProcessing::bert(int32_t cls, int32_t sep) {
  Template single, pair;
  single.pieces = {{-1, {cls}, 0}, {0, {}, 0}, {-1, {sep}, 0}};
  pair = single;
  pair.pieces.insert(pair.pieces.end(), {{1, {}, 1}, {-1, {sep}, 1}});
  return std::make_unique<TemplateProcessing>(std::move(single), std::move(pair));
}

}  // namespace ferry::text
