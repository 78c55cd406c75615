// Answers that are good or bad: JSONL, Parquet or Arrow with a prompt, an answer and a label a row.
// KTO compares each with an answer to another prompt, which a row before it has, or else behind it.

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "src/base/error.h"
#include "src/base/utf8.h"
#include "src/chat/preference_row.h"
#include "src/data/read/formats/json_objects.h"
#include "src/data/read/object_rows.h"
#include "src/data/read/raw_rows.h"

namespace ferry {
namespace {

/** A row, and what tells its prompt from others. */
struct Rated {
  chat::RatedAnswer its;
  std::string prompt, place;
};

/** The first turn of the answer. */
size_t answer_of(const chat::Conversation& chat) {
  size_t first = chat.turns.size();
  while (first > 0 && chat.turns[first - 1].role != chat::kUser)
    --first;
  return first;
}

/** The prompt of one chat with the answer of another. */
chat::Conversation with_answer(const chat::Conversation& asks, const chat::Conversation& answers) {
  chat::Conversation mixed = asks;
  mixed.turns.resize(answer_of(asks));
  for (size_t i = answer_of(answers); i < answers.turns.size(); ++i)
    mixed.turns.push_back(answers.turns[i]);
  return mixed;
}

class RatedRows : public RowSource<Example> {
 public:
  explicit RatedRows(const DatasetOptions& options)
      : name_(options.path.string()),
        columns_{.prompt = options.text_column, .chosen = options.text_pair_column},
        label_(options.label_columns.empty() ? "" : options.label_columns.front()),
        are_chats_(options.prompts_are_chats),
        rows_(options) {}

  bool next(Example& example) override {
    if (waiting_.empty() && !read()) return false;
    const Rated* other = other_than_front();
    while (!other && read())
      other = other_than_front();
    if (!other)
      throw Error(Fault::data, "data.preferences",
                  fmt::format("{}: all rows have the same prompt", name_),
                  "KTO compares answers with those to other prompts");
    example = example_of(waiting_.front(), *other);
    if (last_ && last_->prompt != waiting_.front().prompt) before_ = std::move(last_);
    last_ = std::move(waiting_.front());
    waiting_.pop_front();
    return true;
  }
  double share() const override { return rows_.share(); }

 private:
  /** The last row with another prompt than the next one's, or the first such behind it. */
  const Rated* other_than_front() const {
    const std::string& prompt = waiting_.front().prompt;
    for (const auto* row : {&last_, &before_})
      if (*row && (*row)->prompt != prompt) return &**row;
    const auto differs =
        std::ranges::find_if(waiting_, [&](const Rated& row) { return row.prompt != prompt; });
    return differs == waiting_.end() ? nullptr : &*differs;
  }

  bool read() {
    JsonRow row;
    if (!rows_.next(row)) return false;
    Rated rated;
    rated.place = fmt::format("{}:{}", name_, row.line);
    rated.its = chat::read_rating(object_of(row, name_), columns_, label_, are_chats_, rated.place);
    rated.prompt = rated.its.prompt;
    if (rated.its.is_chat) {
      chat::Conversation asks = rated.its.chat;
      asks.turns.resize(answer_of(asks));
      rated.prompt = chat::packed(asks);
    }
    waiting_.push_back(std::move(rated));
    return true;
  }

  static Example example_of(const Rated& row, const Rated& other) {
    Example example;
    example.place = row.place;
    example.is_chat = row.its.is_chat;
    example.label.class_id = row.its.is_good;
    if (row.its.is_chat != other.its.is_chat)
      refuse_row(row.place, "the file has chats and texts", "give rows of one form");
    if (row.its.is_chat) {
      example.text = chat::packed(row.its.chat);
      example.rejected = chat::packed(with_answer(row.its.chat, other.its.chat));
    } else {
      example.text = row.its.prompt;
      example.text_pair = row.its.answer;
      example.rejected = other.its.answer;
    }
    return example;
  }

  std::string name_;
  chat::PreferenceColumns columns_;
  std::string label_;
  bool are_chats_;
  ObjectRows rows_;
  std::deque<Rated> waiting_;           // read, and not given yet
  std::optional<Rated> last_, before_;  // given last, and before it with another prompt
};

std::unique_ptr<RatedRows> open_rated(const DatasetOptions& options) {
  return std::make_unique<RatedRows>(options);
}

using RatedFiles = RowFiles<RatedRows>;

class RatedStream : public ExampleStream {
 public:
  RatedStream(const DatasetFiles& files, std::vector<std::string> notes)
      : rows_(files, open_rated), notes_(std::move(notes)) {}

  bool next(Example& example) override { return rows_.next(example); }
  int64_t n_bytes_read() const override { return rows_.n_bytes_read(); }
  std::vector<std::string> notes() const override { return notes_; }

 private:
  RatedFiles rows_;
  std::vector<std::string> notes_;
};

class RatedReader : public DatasetReader {
 public:
  explicit RatedReader(const DatasetFiles& files) : DatasetReader(files) {
    RatedFiles rows(files, open_rated);
    int64_t n_good = 0, n_bad = 0;
    for (Example example; rows.next(example);)
      ++(example.label.class_id == 1 ? n_good : n_bad);
    if (n_good == 0 || n_bad == 0)
      throw Error(Fault::data, "data.preferences",
                  fmt::format("{}: all answers are {}", files.options.path.string(),
                              n_good > 0 ? "good" : "bad"),
                  "KTO needs both: is it the right column? For good answers alone train with "
                  "--task causal-lm");
    scheme_.problem = ProblemType::preferences;
    notes_ = rows.notes();
    notes_.push_back(fmt::format("{}: {} good answers and {} bad ones", files.options.path.string(),
                                 n_good, n_bad));
    for (std::string& line : notes_)
      line = escaped(line);
  }

  std::unique_ptr<ExampleStream> examples() const override {
    return std::make_unique<RatedStream>(files_, notes_);
  }
};

}  // namespace

std::unique_ptr<DatasetReader> open_ratings(const DatasetFiles& files) {
  return std::make_unique<RatedReader>(files);
}

}  // namespace ferry
