#include "src/text/spec/known_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "src/base/error.h"
#include "src/files/plain_file.h"

namespace ferry::text {

void fail(const std::filesystem::path& file, std::string_view what, std::string_view hint) {
  throw Error(Fault::data, "tokenizer.open", fmt::format("'{}': {}", file.string(), what), hint);
}

JsonReader read_json_file(const std::filesystem::path& file) {
  // Four times the largest that is known.
  constexpr size_t kBytes_max = size_t{128} << 20;
  return JsonReader::parse(read_text_file(file, kBytes_max),
                           {file.string(), "tokenizer.open", std::string(kFetchAgain)});
}

KnownTokens::KnownTokens(std::filesystem::path file,
                         const std::vector<std::string>& vocabulary,
                         size_t n_holes)
    : file_(std::move(file)),
      vocabulary_(vocabulary),
      n_ids_(static_cast<int32_t>(vocabulary.size())),
      next_id_(static_cast<int32_t>(vocabulary.size() - n_holes)) {}

void KnownTokens::add(const AddedToken& token) {
  if (token.content.empty())
    fail(file_, fmt::format("the added token {} is empty", token.id), "remove it");
  if (!added_.emplace(token.content, token.id).second)
    fail(file_, fmt::format("adds the token '{}' twice", token.content), "keep one of them");
  int32_t id = vocabulary_.find(token.content);
  const bool is_new = id < 0;
  if (is_new) id = next_id_;
  if (is_new && id < n_ids_ && !vocabulary_[id].empty())
    fail(file_,
         fmt::format("the added token '{}' gets the id {}, which is that of '{}': ids have holes",
                     token.content, id, vocabulary_[id]),
         kSaveAgain);
  next_id_ = std::max(next_id_, id + 1);
  if (id != token.id)
    fail(file_,
         fmt::format("gives the added token '{}' the id {}, expected {}{}", token.content, token.id,
                     id, is_new ? ", the next one" : " as in the vocabulary"),
         kSaveAgain);
}

int32_t KnownTokens::find(const std::string& token) const {
  const int32_t id = vocabulary_.find(token);
  if (id >= 0) return id;
  const auto found = added_.find(token);
  return found == added_.end() ? -1 : found->second;
}

int32_t KnownTokens::require(const std::string& token, std::string_view role) const {
  const int32_t id = find(token);
  if (id < 0)
    fail(file_, fmt::format("the vocabulary has no {} token '{}'", role, token),
         "add it, or name the right one in tokenizer_config.json");
  return id;
}

}  // namespace ferry::text
