#pragma once
// KnownTokens is what the readers of a tokenizer's files ask for ids: the vocabulary, and the
// tokens that are added to it one by one. Beside it, what those readers share for fields and
// errors.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/base/json/json_reader.h"
#include "src/text/added_tokens.h"
#include "src/text/token_map.h"

namespace ferry::text {

constexpr std::string_view kFetchAgain = "is the download complete? fetch the model's files again";
constexpr std::string_view kSaveAgain = "save the tokenizer again with Hugging Face transformers";

/** The most that an id may be, and a size that is kept as one. */
constexpr int64_t kId_max = INT32_MAX - 1;

/** An Error (data, "tokenizer.open") about a file. */
[[noreturn]] void fail(const std::filesystem::path& file,
                       std::string_view what,
                       std::string_view hint);

/** A JSON file; an error in it is one of "tokenizer.open". */
JsonReader read_json_file(const std::filesystem::path& file);

inline int32_t id_of(const JsonReader& value) {
  return static_cast<int32_t>(value.integer(0, kId_max));
}

class KnownTokens {
 public:
  /** `file`: for messages. `vocabulary`: the token of each id, of which n_holes have none. */
  KnownTokens(std::filesystem::path file,
              const std::vector<std::string>& vocabulary,
              size_t n_holes = 0);

  /** Fails if the token is empty, added already, or has not the id that Hugging Face gives it: the
   * vocabulary's, or else the next one (Hugging Face would only warn, and use another id than the
   * file says). */
  void add(const AddedToken& token);
  /** The id that Hugging Face gives the next token that is new. It counts tokens and not ids: where
   * ids have holes, the id may be another token's, and then add() fails. */
  int32_t next_id() const { return next_id_; }
  /** All ids are below it. */
  size_t n_ids() const { return static_cast<size_t>(n_ids_ > next_id_ ? n_ids_ : next_id_); }

  /** -1 if there is none. */
  int32_t find(const std::string& token) const;
  bool is_added(const std::string& token) const { return added_.contains(token); }

  /** The id of a token that has to be there; role says what for, in the message. */
  int32_t require(const std::string& token, std::string_view role) const;

 private:
  std::filesystem::path file_;
  TokenMap vocabulary_;
  int32_t n_ids_;  // of the vocabulary, holes included
  int32_t next_id_;
  std::unordered_map<std::string, int32_t> added_;  // the ids of all that are added
};

}  // namespace ferry::text
