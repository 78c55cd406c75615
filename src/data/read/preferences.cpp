// Answers that are compared: JSONL, Parquet or Arrow with a prompt, a better and a worse answer a
// row (src/chat/preference_row.h has the forms).

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "src/base/utf8.h"
#include "src/chat/preference_row.h"
#include "src/data/read/formats/json_objects.h"
#include "src/data/read/object_rows.h"
#include "src/data/read/raw_rows.h"

namespace ferry {
namespace {

/** The field `margin`; 0 where the row has none. */
float margin_of(const chat::Json& row, const std::string& place) {
  const auto found = row.find("margin");
  if (found == row.end() || found->is_null()) return 0;
  if (!found->is_number() || !std::isfinite(found->get<double>()))
    refuse_row(place, "the field 'margin' is no number");
  return found->get<float>();
}

/** The pairs of one file. */
class PreferenceRows : public RowSource<Example> {
 public:
  explicit PreferenceRows(const DatasetOptions& options)
      : name_(options.path.string()),
        columns_{.prompt = options.text_column, .chosen = options.text_pair_column},
        are_chats_(options.prompts_are_chats),
        rows_(options) {}

  /** Rows whose answers are the same teach nothing, and are passed over. */
  bool next(Example& example) override {
    JsonRow row;
    while (rows_.next(row)) {
      const std::string place = fmt::format("{}:{}", name_, row.line);
      const chat::Json object = object_of(row, name_);
      example = {};
      example.place = place;
      example.margin = margin_of(object, place);
      const bool differ = std::visit([&](auto&& pair) { return take(std::move(pair), example); },
                                     chat::read_preference(object, columns_, are_chats_, place));
      if (differ) return true;
      if (n_same_++ == 0) first_same_ = place;
    }
    say_same();
    return false;
  }
  double share() const override { return rows_.share(); }

 private:
  static bool take(chat::TextPair&& pair, Example& example) {
    example.text = std::move(pair.prompt);
    example.text_pair = std::move(pair.chosen);
    example.rejected = std::move(pair.rejected);
    return *example.text_pair != *example.rejected;
  }
  static bool take(chat::ChatPair&& pair, Example& example) {
    example.text = chat::packed(pair.chosen);
    example.rejected = chat::packed(pair.rejected);
    example.is_chat = true;
    return example.text != *example.rejected;
  }

  void say_same() {
    if (n_same_ > 0)
      notes_.push_back(fmt::format(
          "{}: {} row{} with two answers that are the same passed over, the first is {}", name_,
          n_same_, n_same_ == 1 ? " is" : "s are", first_same_));
    n_same_ = 0;
  }

  std::string name_;
  chat::PreferenceColumns columns_;
  bool are_chats_;
  ObjectRows rows_;
  int64_t n_same_ = 0;
  std::string first_same_;
};

std::unique_ptr<PreferenceRows> open_pairs(const DatasetOptions& options) {
  return std::make_unique<PreferenceRows>(options);
}

using PreferenceFiles = RowFiles<PreferenceRows>;

class PreferenceStream : public ExampleStream {
 public:
  PreferenceStream(const DatasetFiles& files, std::vector<std::string> notes)
      : rows_(files, open_pairs), notes_(std::move(notes)) {}

  bool next(Example& example) override { return rows_.next(example); }
  int64_t n_bytes_read() const override { return rows_.n_bytes_read(); }
  std::vector<std::string> notes() const override { return notes_; }

 private:
  PreferenceFiles rows_;
  std::vector<std::string> notes_;
};

class PreferenceReader : public DatasetReader {
 public:
  explicit PreferenceReader(const DatasetFiles& files) : DatasetReader(files) {
    PreferenceFiles rows(files, open_pairs);
    int64_t n = 0;
    bool are_chats = false;
    for (Example example; rows.next(example); ++n)
      are_chats = example.is_chat;
    scheme_.problem = ProblemType::preferences;
    notes_ = rows.notes();
    notes_.push_back(fmt::format("{}: {} prompt{} with a chosen and a rejected answer{}",
                                 files.options.path.string(), n, n == 1 ? "" : "s",
                                 are_chats ? ", as chats" : ""));
    for (std::string& line : notes_)
      line = escaped(line);
  }

  std::unique_ptr<ExampleStream> examples() const override {
    return std::make_unique<PreferenceStream>(files_, notes_);
  }
};

}  // namespace

std::unique_ptr<DatasetReader> open_preferences(const DatasetFiles& files) {
  return std::make_unique<PreferenceReader>(files);
}

}  // namespace ferry
