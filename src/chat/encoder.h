#pragma once
// Chats as tokens: rendered (renderer.h), encoded as transformers encodes a rendered chat, with the
// tokens that are learnt, and cut to a length so that no answer loses its question. The task
// causal-lm calls it from several threads.

#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/chat/renderer.h"
#include "src/chat/template_source.h"
#include "src/files/hf/hf_directory.h"
#include "src/text/tokenizer.h"

namespace ferry::chat {

/** The settings of a run that chats go by. */
struct ChatSettings {
  /** "model": the model's own template; else a name (known_templates()) or a file. */
  std::string chat_template = "model";
  /** Rows of a prompt and an answer are chats, too. */
  bool takes_prompts = false;
  TrainOn train_on = TrainOn::each;
  Json template_variables = Json::object();  ///< that the user gives the template
  std::time_t now = 0;                       ///< the moment that it takes for the present
};

/** The files of a model that its chats go by. */
struct ModelFiles {
  /** The directory has all of them. */
  ModelFiles(const std::filesystem::path& directory);
  /** An adapter's own files come before its model's. */
  ModelFiles(const HfDirectory& model);

  std::filesystem::path tokenizer;          ///< its directory, which has the template, too
  std::filesystem::path generation_config;  ///< the file, which need not be there
};

struct EncodedChat {
  std::vector<int32_t> ids;
  std::vector<text::Span> answers;  ///< places of tokens that are learnt, ascending, none empty
  bool was_cut = false;
};

class ChatEncoder {
 public:
  /** The template as the settings name it, else the model's. A fault of it is thrown when the first
   * chat is encoded, since data without chats need none. Throws Error(usage) for a name that is not
   * known. */
  ChatEncoder(const ChatSettings& settings, const ModelFiles& model, const Tokenizer& tokenizer);

  /** By this template, whatever the settings name. */
  ChatEncoder(const ChatSettings& settings,
              const TemplateSource& source,
              const ModelFiles& model,
              const Tokenizer& tokenizer);

  const ChatSettings& settings() const { return settings_; }
  /** The template's text; empty where there is none. */
  const std::string& template_text() const { return template_text_; }
  bool tells_date() const;
  /** Changes with all that decides the tokens of a chat. */
  uint64_t key() const;

  /** At most max_length tokens of a chat, whole answers where one fits. Nothing where the first
   * answer has no room behind its question. Throws Error(data) with the place. */
  std::optional<EncodedChat> encode(const Conversation& conversation,
                                    const Tokenizer& tokenizer,
                                    int64_t max_length,
                                    const std::string& place) const;
  /** The text of a chat; nothing where the template refuses it. */
  std::optional<std::string> rendering(const Conversation& conversation,
                                       const std::string& place) const;
  /** The tokens that a model goes on with to answer the last turn. Throws Error(data) as the
   * template refuses the chat. */
  std::vector<int32_t> ask(const Conversation& conversation,
                           const Tokenizer& tokenizer,
                           const std::string& place) const;
  /** The control token by which the template ends an answer; -1: the template has none, or takes no
   * chat of a question and an answer. */
  int32_t end_of_answer(const Tokenizer& tokenizer) const;
  /** Sentences for the user about the chats so far, and about them alone. */
  std::vector<std::string> take_notes() const;

 private:
  /** Keeps a fault of `find` or of the template in fault_. */
  void open(const std::function<TemplateSource()>& find,
            const ModelFiles& model,
            const Tokenizer& tokenizer);

  ChatSettings settings_;
  std::optional<Renderer> renderer_;
  std::string template_text_;
  std::exception_ptr fault_;  ///< where there is no renderer
  mutable std::mutex mutex_;
  mutable int64_t n_with_controls_ = 0;
  mutable std::string first_with_controls_;
};

}  // namespace ferry::chat
