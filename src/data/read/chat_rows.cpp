#include "src/data/read/chat_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/base/error.h"
#include "src/chat/rows.h"
#include "src/data/read/columns.h"
#include "src/data/read/formats/json_objects.h"
#include "src/data/read/object_rows.h"

namespace ferry {
namespace {

class ChatRows : public TextRows {
 public:
  ChatRows(const DatasetOptions& options, chat::RowColumns columns, const chat::Json& first)
      : name_(options.path.string()), rows_(options), of_(std::move(columns)) {
    const std::string what = of_.turns.empty()
                                 ? fmt::format("chats of '{}' and '{}'", of_.prompt, of_.answer)
                                 : fmt::format("chats of '{}'", of_.turns);
    columns_ = what;
    notes_.push_back(fmt::format("{}: {}", name_, what));
    std::vector<std::string> unread;
    for (const auto& [key, value] : first.items())
      if (key != of_.turns && key != of_.prompt && key != of_.answer && key != of_.below &&
          !chat::is_read_column(key))
        unread.push_back(key);
    if (!unread.empty()) notes_.push_back(fmt::format("{}: {}", name_, note_of_unread(unread)));
  }

  bool next(RawRow& row) override {
    if (!rows_.next(row_)) return false;
    row.place = fmt::format("{}:{}", name_, row_.line);
    const chat::Json object = object_of(row_, name_);
    const std::string& key = of_.turns.empty() ? of_.prompt : of_.turns;
    if (const auto found = object.find(key); found == object.end() || found->is_null())
      refuse_row(row.place, fmt::format("the field '{}' is missing", key));
    row.text = chat::packed(chat::read_row(object, of_, row.place));
    row.text_pair.reset();
    row.labels.clear();
    row.has_list = row.is_unlabelled = false;
    row.is_chat = true;
    return true;
  }
  double share() const override { return rows_.share(); }

 private:
  std::string name_;
  ObjectRows rows_;
  JsonRow row_;
  chat::RowColumns of_;
};

}  // namespace

std::unique_ptr<TextRows> open_chats(const DatasetOptions& options) {
  if (options.rows != RowForm::documents || !options.text_pair_column.empty()) return nullptr;
  ObjectRows rows(options);
  JsonRow row;
  if (!rows.next(row)) return nullptr;
  const chat::Json first = object_of(row, options.path.string());
  auto columns = chat::find_columns(first, options.text_column, options.prompts_are_chats);
  if (!columns) return nullptr;
  return std::make_unique<ChatRows>(options, std::move(*columns), first);
}

}  // namespace ferry
