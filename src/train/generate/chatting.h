#pragma once
// A chat with a model: holds the turns, leaves out the oldest where the context has no room for
// all, and answers the last one. `ferry chat` is a loop over it.

#include <functional>
#include <string>

#include "src/train/generate/generation.h"

namespace ferry {

struct ChatAnswer {
  Generated generated;
  int64_t n_prompt_tokens = 0;
  int64_t n_left_out = 0;  ///< turns that the model did not see
};

class Chatting {
 public:
  /** The chat's job and its session outlive it. Throws Error(data) where the model has no
   * chat template. */
  Chatting(const ChatJob& chat, Session& session);

  /** The first turn; empty for none. The chat begins anew. */
  void set_system(std::string text);
  /** Without turns, but for the system prompt. */
  void reset();
  /** Answers the turn, and keeps both. `take_text` gets the answer as it comes; where `goes_on`
   * says no, it stays as it is. Throws Error(data) where the template refuses the chat, or where
   * the turn alone is longer than the context; the chat then is as it was before. */
  ChatAnswer answer(std::string turn,
                    const std::function<bool()>& goes_on,
                    const TakeText& take_text);
  /** Takes the last turn and its answer back, and gives the turn; empty where there is none. */
  std::string take_back();

 private:
  /** The newest turns that the context has room for, as tokens. */
  std::vector<int32_t> question(int64_t& n_left_out) const;

  const Job& job_;
  Session& session_;
  const chat::ChatEncoder& encoder_;
  chat::Conversation conversation_;
  KeptText kept_;
  int64_t n_answers_ = 0;  ///< so far, also those that were taken back
};

/** `ferry chat`: turns from standard input, a line each, answers to standard output. The exit code.
 */
int run_chat_loop(const ChatJob& chat, Session& session, bool wants_json);

}  // namespace ferry
