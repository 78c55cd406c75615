#include "src/train/generate/chatting.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "src/base/error.h"
#include "src/base/print.h"
#include "src/base/utf8.h"
#include "src/inputs/model_files.h"
#include "src/inputs/prompt_settings.h"

namespace ferry {
namespace {

constexpr const char* kPlace = "the chat";

chat::Turn turn_of(std::string_view role, std::string text) {
  return {.role = std::string(role), .text = std::move(text)};
}

}  // namespace

Chatting::Chatting(const ChatJob& chat, Session& session)
    : job_(chat.job), session_(session), encoder_(*chat.encoder) {
  if (encoder_.template_text().empty()) {
    chat::Conversation any;
    any.turns.push_back(turn_of(chat::kUser, "?"));
    encoder_.ask(any, job_.model.tokenizer, kPlace);  // says that there is none
  }
  set_system(job_.config.text("system_prompt"));
}

void Chatting::set_system(std::string text) {
  conversation_.turns.clear();
  if (!text.empty()) conversation_.turns.push_back(turn_of(chat::kSystem, std::move(text)));
}

void Chatting::reset() {
  const bool has_system =
      !conversation_.turns.empty() && conversation_.turns.front().role == chat::kSystem;
  conversation_.turns.resize(has_system ? 1 : 0);
}

std::vector<int32_t> Chatting::question(int64_t& n_left_out) const {
  constexpr int64_t kAnswer_tokens = 32;  // an answer without room for more would be cut off
  const int64_t context = job_.generation.rule.context,
                room = context - std::min(kAnswer_tokens, context / 2);
  chat::Conversation seen = conversation_;
  const auto is_first_of_pair = [&](const chat::Turn& turn) { return turn.role == chat::kUser; };
  for (n_left_out = 0;;) {
    std::vector<int32_t> ids = encoder_.ask(seen, job_.model.tokenizer, kPlace);
    virtual_tokens_of(job_.model.directory).prepend(ids);
    if (std::ssize(ids) <= room) return ids;
    const auto first = std::ranges::find_if(seen.turns, is_first_of_pair);
    const auto next = std::find_if(first + 1, seen.turns.end(), is_first_of_pair);
    if (next == seen.turns.end())
      throw Error(Fault::data, "chat.context",
                  fmt::format("the turn has {} tokens with what the template puts around it, and "
                              "the context is {}",
                              ids.size(), context),
                  "shorten it, or give more with --max-length where the model takes more");
    n_left_out += next - first;
    seen.turns.erase(first, next);
  }
}

ChatAnswer Chatting::answer(std::string turn,
                            const std::function<bool()>& goes_on,
                            const TakeText& take_text) {
  if (first_invalid_utf8(turn) != turn.npos)
    throw Error(Fault::data, "chat.turn", "the turn is not UTF-8", "convert it with iconv");
  conversation_.turns.push_back(turn_of(chat::kUser, std::move(turn)));
  try {
    ChatAnswer answer;
    const Prompt prompt = {.text = {}, .ids = question(answer.n_left_out)};
    check_rows(prompt.ids, job_.model.tokenizer, job_.model.table);
    answer.n_prompt_tokens = std::ssize(prompt.ids);
    answer.generated = go_on_with(session_, job_, job_.generation.rule, prompt, n_answers_++, kept_,
                                  goes_on, take_text);
    conversation_.turns.push_back(turn_of(chat::kAssistant, answer.generated.text));
    return answer;
  } catch (...) {
    conversation_.turns.pop_back();
    throw;
  }
}

std::string Chatting::take_back() {
  if (conversation_.turns.empty() || conversation_.turns.back().role != chat::kAssistant) return {};
  conversation_.turns.pop_back();
  std::string turn = std::move(*conversation_.turns.back().text);
  conversation_.turns.pop_back();
  return turn;
}

namespace {

volatile sig_atomic_t n_stops = 0;

/** Lines of standard input. A signal ends the wait for one, which the C++ streams would go on with.
 */
class Lines {
 public:
  /** Nothing at the end, or where a signal came. */
  std::optional<std::string> next() {
    for (size_t end; (end = read_.find('\n')) == read_.npos;) {
      char bytes[4096];
      const ssize_t n = ::read(STDIN_FILENO, bytes, sizeof bytes);
      if (n < 0 && errno == EINTR && n_stops == 0) continue;
      if (n <= 0) {
        if (read_.empty() || n < 0) return std::nullopt;
        return std::exchange(read_, {});
      }
      read_.append(bytes, static_cast<size_t>(n));
    }
    const size_t end = read_.find('\n');
    std::string line = read_.substr(0, end);
    read_.erase(0, end + 1);
    if (line.ends_with('\r')) line.pop_back();
    return line;
  }

 private:
  std::string read_;
};

/** Lines of a person or a program, and the answers to them. */
class ChatLoop {
 public:
  ChatLoop(const ChatJob& chat, Session& session, bool wants_json)
      : chatting_(chat, session),
        wants_json_(wants_json),
        is_terminal_(::isatty(STDIN_FILENO) && ::isatty(STDOUT_FILENO)) {}

  int run() {
    if (is_terminal_) log_line("/help lists what may be typed beside turns; Ctrl-D ends");
    while (std::optional<std::string> line = next_turn()) {
      if (line->find_first_not_of(" \t") == line->npos) continue;
      try {
        if (line->front() == '/' ? !obey(*line) : !answer(std::move(*line))) return 0;
      } catch (const Error& error) {
        // A person types it again; a program's next turns would make no sense without it.
        if (!is_terminal_ || error.fault() != Fault::data) throw;
        log_line(error.what());
      }
    }
    if (is_terminal_) print("\n");
    return 0;
  }

 private:
  static constexpr std::string_view kQuotes = "\"\"\"";

  /** A line, or the lines between two of three quotes. */
  std::optional<std::string> next_turn() {
    if (is_terminal_) print("> ");
    std::optional<std::string> line = lines_.next();
    if (!line || !line->starts_with(kQuotes)) return line;
    std::string turn = line->substr(kQuotes.size());
    while ((line = lines_.next())) {
      if (!turn.empty()) turn += '\n';
      if (line->ends_with(kQuotes)) return turn + line->substr(0, line->size() - kQuotes.size());
      turn += *line;
    }
    return turn;
  }

  /** False: the chat ends. */
  bool obey(const std::string& line) {
    const size_t space = std::min(line.find(' '), line.size());
    const std::string word = line.substr(0, space);
    std::string rest = line.substr(std::min(space + 1, line.size()));
    if (word == "/exit" || word == "/bye" || word == "/quit") return false;
    if (word == "/reset" || word == "/clear") {
      chatting_.reset();
    } else if (word == "/system") {
      chatting_.set_system(std::move(rest));
    } else if (word == "/undo" || word == "/retry") {
      std::string turn = chatting_.take_back();
      if (turn.empty())
        throw Error(Fault::data, "chat.command", "there is no turn yet", "ask something first");
      if (word == "/retry") return answer(std::move(turn));
    } else if (word == "/help") {
      log_line(
          "/reset begins anew; /system TEXT sets the system prompt and begins anew; /retry "
          "asks for another answer (with --temperature above 0); /undo takes the last turn "
          "back; /exit ends. \"\"\" begins and ends a turn of several lines. Ctrl-C stops an "
          "answer.");
    } else {
      throw Error(Fault::data, "chat.command", fmt::format("'{}' is no command", word),
                  "/help lists them; a turn that begins with / goes between \"\"\"");
    }
    return true;
  }

  bool answer(std::string turn) {
    n_stops = 0;
    const ChatAnswer answer = chatting_.answer(
        std::move(turn), [] { return n_stops == 0; }, wants_json_ ? TakeText() : print);
    if (wants_json_)
      print(nlohmann::ordered_json{{"role", chat::kAssistant},
                                   {"content", answer.generated.text},
                                   {"ended", name_of(answer.generated.ending)},
                                   {"n_prompt_tokens", answer.n_prompt_tokens},
                                   {"n_new_tokens", answer.generated.ids.size()},
                                   {"n_turns_left_out", answer.n_left_out}}
                .dump() +
            "\n");
    else
      print("\n");
    if (answer.n_left_out > 0)
      log_line(fmt::format("the context has no room for the first {} turns: they were left out",
                           answer.n_left_out));
    if (answer.generated.ending == Ending::length) log_line("the answer was cut at max_new_tokens");
    const bool was_interrupted = std::exchange(n_stops, 0) > 0;
    return is_terminal_ || !was_interrupted;
  }

  Chatting chatting_;
  bool wants_json_, is_terminal_;
  Lines lines_;
};

}  // namespace

int run_chat_loop(const ChatJob& chat, Session& session, bool wants_json) {
  struct sigaction action = {};
  action.sa_handler = [](int) { n_stops = n_stops + 1; };
  ::sigaction(SIGINT, &action, nullptr);  // without SA_RESTART: it ends a wait for a line, too
  return ChatLoop(chat, session, wants_json).run();
}

}  // namespace ferry
