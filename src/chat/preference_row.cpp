#include "src/chat/preference_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>

#include "src/base/error.h"
#include "src/base/utf8.h"
#include "src/chat/rows.h"

namespace ferry::chat {
namespace {

constexpr std::string_view kChosen = "chosen", kRejected = "rejected", kPrompt = "prompt";

struct AnswerNames {
  std::string_view chosen, rejected;
};
constexpr std::array kAnswers = {AnswerNames{kChosen, kRejected},
                                 AnswerNames{"preferred_output", "non_preferred_output"}};
/** The columns that may hold a prompt, and the ones with a text below it. */
struct PromptNames {
  std::string_view prompt, below;
};
constexpr std::array kPrompts = {
    PromptNames{kPrompt, ""}, PromptNames{"instruction", "input"}, PromptNames{"question", ""},
    PromptNames{"query", ""}, PromptNames{"conversations", ""},    PromptNames{"messages", ""}};

[[noreturn]] void refuse(const std::string& place, const std::string& what, std::string_view hint) {
  throw Error(Fault::data, "data.preferences", fmt::format("{}: {}", place, what), hint);
}

const Json* find(const Json& row, std::string_view key) {
  const auto found = row.find(std::string(key));
  return found == row.end() || found->is_null() ? nullptr : &*found;
}

const AnswerNames* names_in(const Json& row) {
  const auto found = std::ranges::find_if(kAnswers, [&](const AnswerNames& names) {
    return row.contains(std::string(names.chosen)) && row.contains(std::string(names.rejected));
  });
  return found == kAnswers.end() ? nullptr : &*found;
}

/** A turn, or a list of them, as a list. */
Json turns_of(const Json& answer) {
  if (answer.is_object()) return Json::array({answer});
  return answer;
}

bool is_of_turns(const Json& answer) {
  return has_turns(turns_of(answer));
}

size_t n_same(const Json& a, const Json& b) {
  size_t n = 0;
  while (n < std::min(a.size(), b.size()) && a[n] == b[n])
    ++n;
  return n;
}

Json part_of(const Json& list, size_t first, size_t last) {
  Json part = Json::array();
  for (size_t i = first; i < last; ++i)
    part.push_back(list[i]);
  return part;
}

/** The place where two texts begin to differ, moved back behind the last blank before it and out of
 * a character. */
size_t end_of_same(const std::string& a, const std::string& b) {
  const auto differs = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
  auto n = static_cast<size_t>(differs - a.begin());
  while (n > 0 && n < a.size() && (static_cast<unsigned char>(a[n]) & 0xc0) == 0x80)
    --n;
  if (n > 0 && a[n - 1] == ' ') --n;
  return n;
}

class Reader {
 public:
  Reader(const Json& row, const PreferenceColumns& columns, const std::string& place)
      : row_(row), place_(place) {
    const AnswerNames* names = names_in(row);
    const std::string rejected(names ? names->rejected : kRejected);
    chosen_ = &answer(columns.chosen.empty() ? std::string(names ? names->chosen : kChosen)
                                             : columns.chosen);
    rejected_ = &answer(rejected);
    find_prompt(columns.prompt);
  }

  std::variant<TextPair, ChatPair> read(bool are_chats) const {
    const bool has_any_turns =
        is_of_turns(*chosen_) || is_of_turns(*rejected_) || (prompt_ && has_turns(*prompt_));
    if (has_any_turns || are_chats || has_columns_of_chats()) return chats();
    return texts();
  }

 private:
  const Json& answer(const std::string& key) const {
    const Json* found = find(row_, key);
    if (!found)
      refuse(place_, fmt::format("the field '{}' is missing", key),
             R"(expected {"prompt": ..., "chosen": ..., "rejected": ...})");
    return *found;
  }

  void find_prompt(const std::string& asked) {
    if (!asked.empty()) {
      prompt_ = &answer(asked);
      return;
    }
    // OpenAI's form has the prompt's turns, and tools, one level below.
    if (const Json* input = find(row_, "input"); input && input->is_object()) {
      prompt_ = find(*input, "messages");
      if (!prompt_)
        refuse(place_, "'input' has no 'messages'", R"(expected {"input": {"messages": [...]}})");
      return;
    }
    for (const auto& [key, below] : kPrompts)
      if (const Json* found = find(row_, key)) {
        prompt_ = found;
        below_ = below.empty() ? nullptr : find(row_, below);
        return;
      }
  }

  bool has_columns_of_chats() const {
    return std::ranges::any_of(row_.items(), [](const auto& item) {
      return is_read_column(item.key()) && !item.value().is_null() && !item.value().empty();
    });
  }

  const std::string& text_of(const Json& value, std::string_view what) const {
    if (!value.is_string())
      refuse(place_, fmt::format("the {} is not a text", what), "expected a text, or turns");
    return value.get_ref<const std::string&>();
  }

  TextPair texts() const {
    std::string chosen = text_of(*chosen_, "chosen answer"),
                rejected = text_of(*rejected_, "rejected answer"), prompt;
    if (prompt_) {
      prompt = text_of(*prompt_, "prompt");
      if (below_ && !text_of(*below_, "text below the prompt").empty())
        prompt += "\n" + below_->get<std::string>();
      if (!prompt.empty() && chosen.starts_with(prompt) && rejected.starts_with(prompt)) {
        chosen.erase(0, prompt.size());
        rejected.erase(0, prompt.size());
      }
    } else {
      const size_t n = end_of_same(chosen, rejected);
      prompt = chosen.substr(0, n);
      chosen.erase(0, n);
      rejected.erase(0, n);
      if (prompt.empty())
        refuse(place_, "there is no prompt, and the answers begin in different ways",
               "name its column with text_column");
    }
    return {std::move(prompt), std::move(chosen), std::move(rejected)};
  }

  /** The row as read_row() takes it, once with each answer. */
  ChatPair chats() const {
    Json row = row_;
    if (const Json* input = find(row_, "input"); input && input->is_object())
      if (const Json* tools = find(*input, "tools")) row["tools"] = *tools;
    Json chosen = turns_of(*chosen_), rejected = turns_of(*rejected_);
    std::string below;
    if (!prompt_) {
      if (!has_turns(chosen) || !has_turns(rejected))
        refuse(place_, "there is no prompt beside the answers", "name its column with text_column");
      const size_t n = std::min({n_same(chosen, rejected), chosen.size() - 1, rejected.size() - 1});
      if (n == 0) refuse(place_, "the answers have no turn in common", "a prompt comes first");
      row[kPrompt] = part_of(chosen, 0, n);
      chosen = part_of(chosen, n, chosen.size());
      rejected = part_of(rejected, n, rejected.size());
    } else {
      row[kPrompt] = *prompt_;
      if (below_) row[below = "below"] = *below_;
      drop_prompt(chosen);
      drop_prompt(rejected);
    }
    row[kChosen] = std::move(chosen);
    row[kRejected] = std::move(rejected);
    const auto read = [&](std::string_view answer) {
      return read_row(row,
                      {.turns = {},
                       .prompt = std::string(kPrompt),
                       .answer = std::string(answer),
                       .below = below},
                      place_);
    };
    return {read(kChosen), read(kRejected)};
  }

  /** Takes the prompt's turns from the beginning of an answer that has them, too. */
  void drop_prompt(Json& answer) const {
    if (!answer.is_array() || answer.size() < 2) return;
    if (has_turns(*prompt_)) {
      const size_t n = n_same(answer, *prompt_);
      if (n == prompt_->size() && n < answer.size()) answer = part_of(answer, n, answer.size());
      return;
    }
    if (!has_turns(answer) || !prompt_->is_string()) return;
    const Json& first = answer.front();
    for (const char* key : {"content", "value"})
      if (const Json* said = find(first, key); said && *said == *prompt_) {
        answer = part_of(answer, 1, answer.size());
        return;
      }
  }

  const Json& row_;
  const std::string& place_;
  const Json *prompt_ = nullptr, *below_ = nullptr, *chosen_ = nullptr, *rejected_ = nullptr;
};

/** A boolean, 0 or 1, or a word for it. */
bool is_good_by(const Json& label, const std::string& key, const std::string& place) {
  if (label.is_boolean()) return label.get<bool>();
  if (label.is_number() && (label == 0 || label == 1)) return label == 1;
  if (label.is_string()) {
    const std::string& word = label.get_ref<const std::string&>();
    for (const char* good : {"true", "True", "1", "good", "up", "desirable", "chosen"})
      if (word == good) return true;
    for (const char* bad : {"false", "False", "0", "bad", "down", "undesirable", "rejected"})
      if (word == bad) return false;
  }
  refuse(place, fmt::format("the field '{}' says neither good nor bad", key),
         "expected true or false");
}

/** The first of the names that the row has; the user's, where one is given. */
std::string key_in(const Json& row,
                   const std::string& asked,
                   std::initializer_list<std::string_view> names) {
  if (!asked.empty()) return asked;
  for (const std::string_view name : names)
    if (row.contains(std::string(name))) return std::string(name);
  return std::string(*names.begin());
}

/** The last turns of a chat, which alone are learnt. */
void learn_last_answer(Conversation& chat) {
  auto& turns = chat.turns;
  const auto last = std::ranges::find_if(turns.rbegin(), turns.rend(),
                                         [](const Turn& turn) { return turn.role == kUser; });
  for (auto turn = turns.begin(); turn != last.base(); ++turn)
    turn->is_trained = false;
}

}  // namespace

RatedAnswer read_rating(const Json& row,
                        const PreferenceColumns& columns,
                        const std::string& label_column,
                        bool are_chats,
                        const std::string& place) {
  const std::string label = key_in(
      row, label_column, {"label", "kto_tag", "is_good", "desirable", "thumbs_up", "rating"});
  const Json* said = find(row, label);
  if (!said)
    refuse(place, fmt::format("the field '{}' is missing", label),
           R"(expected {"prompt": ..., "completion": ..., "label": true})");
  RatedAnswer out;
  out.is_good = is_good_by(*said, label, place);
  for (const char* turns : {"messages", "conversations"})
    if (const Json* list = find(row, turns); columns.prompt.empty() && list && has_turns(*list)) {
      out.is_chat = true;
      out.chat = read_row(row, {.turns = turns, .prompt = {}, .answer = {}, .below = {}}, place);
      learn_last_answer(out.chat);
      return out;
    }
  const std::string prompt =
                        key_in(row, columns.prompt, {"prompt", "instruction", "question", "query"}),
                    answer =
                        key_in(row, columns.chosen, {"completion", "response", "output", "answer"});
  for (const std::string& key : {prompt, answer})
    if (!find(row, key))
      refuse(place, fmt::format("the field '{}' is missing", key),
             R"(expected {"prompt": ..., "completion": ..., "label": true})");
  const std::string below = prompt == "instruction" && find(row, "input") ? "input" : "";
  out.is_chat = are_chats || has_turns(row.at(prompt)) || has_turns(row.at(answer));
  if (out.is_chat) {
    out.chat =
        read_row(row, {.turns = {}, .prompt = prompt, .answer = answer, .below = below}, place);
    return out;
  }
  for (const std::string& key : {prompt, answer})
    if (!row.at(key).is_string())
      refuse(place, fmt::format("the field '{}' is not a text", key), "expected a text, or turns");
  out.prompt = row.at(prompt).get<std::string>();
  if (!below.empty() && row.at(below).is_string() &&
      !row.at(below).get_ref<const std::string&>().empty())
    out.prompt += "\n" + row.at(below).get<std::string>();
  out.answer = row.at(answer).get<std::string>();
  return out;
}

std::variant<TextPair, ChatPair> read_preference(const Json& row,
                                                 const PreferenceColumns& columns,
                                                 bool are_chats,
                                                 const std::string& place) {
  return Reader(row, columns, place).read(are_chats);
}

}  // namespace ferry::chat
