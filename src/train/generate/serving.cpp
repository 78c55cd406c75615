#include "src/train/generate/serving.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "src/base/error.h"
#include "src/base/print.h"
#include "src/base/utf8.h"
#include "src/inputs/model_files.h"
#include "src/inputs/prompt_settings.h"
#include "src/serve/server.h"

namespace ferry {
namespace {

/** Writes what requests ask for, one after another. */
class ModelWriter {
 public:
  ModelWriter(const ChatJob& chat, Session& session)
      : job_(chat.job), session_(session), encoder_(*chat.encoder) {}

  serve::Written write(const serve::WritingRequest& request,
                       const std::function<bool()>& goes_on,
                       const TakeText& take_text) {
    const Prompt prompt = prompt_of(request);
    const GenerationRule rule = rule_of(request, std::ssize(prompt.ids));
    const Generated generated =
        go_on_with(session_, job_, rule, prompt, 0, kept_, goes_on, take_text);
    return {.text = generated.text,
            .is_cut = generated.ending == Ending::length || generated.ending == Ending::context,
            .n_prompt_tokens = std::ssize(prompt.ids),
            .n_new_tokens = std::ssize(generated.ids)};
  }

 private:
  Prompt prompt_of(const serve::WritingRequest& request) const {
    const Tokenizer& tokenizer = job_.model.tokenizer;
    const int64_t context = job_.generation.rule.context;
    const VirtualTokens before = virtual_tokens_of(job_.model.directory);
    if (!request.is_chat) {
      Prompt prompt = make_prompt(request.prompt, tokenizer, context - before.n);
      before.prepend(prompt.ids);
      return prompt;
    }
    chat::Conversation conversation = request.conversation;
    const std::string& system = job_.config.text("system_prompt");
    if (!system.empty() && conversation.turns.front().role == chat::kUser)
      conversation.turns.insert(conversation.turns.begin(),
                                {.role = std::string(chat::kSystem), .text = system});
    Prompt prompt = {.text = {}, .ids = encoder_.ask(conversation, tokenizer, "messages")};
    before.prepend(prompt.ids);
    if (std::ssize(prompt.ids) > context)
      throw serve::ApiError{400, "exceed_context_size_error",
                            fmt::format("the messages have {} tokens, and the context is {}",
                                        prompt.ids.size(), context)};
    check_rows(prompt.ids, tokenizer, job_.model.table);
    return prompt;
  }

  GenerationRule rule_of(const serve::WritingRequest& request, int64_t n_prompt_tokens) const {
    GenerationRule rule = job_.generation.rule;
    // Programs expect the whole answer where they name no length.
    rule.n_new_max = request.n_new_most.value_or(
        job_.config.origin("max_new_tokens").source == config::Source::built_in
            ? std::max<int64_t>(1, rule.context - n_prompt_tokens)
            : rule.n_new_max);
    SamplingRule& sampling = rule.sampling;
    sampling.top_k = request.top_k.value_or(sampling.top_k);
    sampling.top_p = request.top_p.value_or(sampling.top_p);
    sampling.temperature = request.temperature.value_or(request.top_k || request.top_p
                                                            ? std::max(sampling.temperature, 1.0)
                                                            : sampling.temperature);
    rule.seed = request.seed.value_or(std::random_device{}());
    rule.stops.insert(rule.stops.end(), request.stops.begin(), request.stops.end());
    return rule;
  }

  const Job& job_;
  Session& session_;
  const chat::ChatEncoder& encoder_;
  KeptText kept_;
};

volatile sig_atomic_t ends = 0;

}  // namespace

int serve_model(const ChatJob& chat, Session& session, bool wants_json) {
  const Job& job = chat.job;
  const auto integer = [&](const char* key) { return static_cast<int>(job.config.integer(key)); };
  const serve::ServerSettings settings = {.host = job.config.text("host"),
                                          .port = integer("port"),
                                          .api_key = job.config.text("api_key"),
                                          .allow_origin = job.config.text("allow_origin"),
                                          .model = name_of_model(job.config)};
  ModelWriter writer(chat, session);
  serve::Server server(settings);
  struct sigaction action = {};
  action.sa_handler = [](int) { ends = 1; };
  for (const int signal : {SIGINT, SIGTERM})
    ::sigaction(signal, &action, nullptr);
  log_line(fmt::format("answering at http://{}:{}/v1; Ctrl-C ends",
                       settings.host == "127.0.0.1" ? "localhost" : settings.host, server.port()));
  if (settings.host != "127.0.0.1" && settings.host != "localhost" && settings.api_key.empty())
    log_line(
        "warning: whoever reaches this address may ask: --api-key KEY lets those alone who "
        "know it");
  if (wants_json)
    print(nlohmann::ordered_json{{"host", settings.host}, {"port", server.port()}}.dump() + "\n");
  server.run([&](const auto& request, const auto& goes_on,
                 const auto& take_text) { return writer.write(request, goes_on, take_text); },
             [] { return ends == 0; });
  return 0;
}

}  // namespace ferry
