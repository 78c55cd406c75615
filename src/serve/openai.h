#pragma once
// Requests and answers of a server as programs for OpenAI's API send and expect them:
// /v1/chat/completions and /v1/completions. JSON in, JSON out; knows no network and no model.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/chat/conversation.h"

namespace ferry::serve {

/** A request that is refused: the HTTP status, and what the answer says. */
struct ApiError {
  int status = 400;
  std::string type = "invalid_request_error";
  std::string message;
};
std::string json_of(const ApiError& error);

/** A text to go on with. What is not set is the server's to choose. */
struct WritingRequest {
  bool is_chat = true;
  chat::Conversation conversation;  ///< of a chat; the last turn is to be answered
  std::string prompt;               ///< of a text
  std::optional<int64_t> n_new_most;
  std::optional<double> temperature, top_p;
  std::optional<int64_t> top_k;
  std::optional<uint64_t> seed;
  std::vector<std::string> stops;
  bool streams = false;
  bool includes_usage = false;  ///< a stream ends with the counts of tokens
};

/** Fields that nobody knows are passed over, null counts as absent. Throws ApiError for what is no
 * request, and for fields that ask for another text than the server would write (n above 1, a
 * schema, penalties). */
WritingRequest parse_request(std::string_view body, bool is_chat);

/** The text of an answer, and why it ended. */
struct Written {
  std::string text;
  bool is_cut = false;  ///< at the most tokens or at the context, not where the model ended
  int64_t n_prompt_tokens = 0, n_new_tokens = 0;
};

/** The answers to one request, which have its id, the time and the model's name in common. */
class AnswerForm {
 public:
  AnswerForm(bool is_chat, std::string id, int64_t created, std::string model)
      : is_chat_(is_chat), id_(std::move(id)), created_(created), model_(std::move(model)) {}

  /** The whole answer. */
  std::string whole(const Written& written) const;
  /** Lines of a stream ("data: {...}\n\n"): the first, a piece of text, and the end with
   * "data: [DONE]". */
  std::string first() const;
  std::string piece(std::string_view text) const;
  std::string last(const Written& written, bool includes_usage) const;
  /** An error after the first line went out. */
  static std::string failed(const ApiError& error);

 private:
  chat::Json frame(bool is_stream) const;
  std::string line(chat::Json choice) const;

  bool is_chat_;
  std::string id_;
  int64_t created_;
  std::string model_;
};

/** /v1/models. */
std::string models_json(std::string_view model, int64_t created);

}  // namespace ferry::serve
