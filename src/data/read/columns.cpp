#include "src/data/read/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "src/base/error.h"
#include "src/data/read/formats/delimiter.h"

namespace ferry {
namespace {

// As the data sets of the hub and of GLUE name them; a pair counts only when both are there.
using NamePair = std::pair<std::string_view, std::string_view>;
constexpr std::array<NamePair, 15> kPairNames = {{
    {"sentence1", "sentence2"},
    {"premise", "hypothesis"},
    {"question1", "question2"},
    {"question", "sentence"},
    {"question", "passage"},
    {"question", "context"},
    {"question", "answer"},
    {"query", "passage"},
    {"text", "text_pair"},
    {"text_a", "text_b"},
    {"text1", "text2"},
    {"text_1", "text_2"},
    {"prompt", "completion"},
    {"prompt", "response"},
    {"instruction", "output"},
}};
// Of language models: a prompt and its completion.
constexpr std::array<NamePair, 12> kPromptNames = {{
    {"prompt", "completion"},
    {"prompt", "response"},
    {"prompt", "answer"},
    {"prompt", "output"},
    {"instruction", "output"},
    {"instruction", "response"},
    {"question", "answer"},
    {"question", "response"},
    {"query", "response"},
    {"query", "answer"},
    {"input", "output"},
    {"input", "response"},
}};
// What an instruction or a question is about, in data of the Alpaca and Dolly forms.
constexpr std::array<std::string_view, 2> kBelowPrompt = {"input", "context"};
constexpr std::array<std::string_view, 16> kTextNames = {
    "text",  "sentence", "content", "document", "review", "review_text", "comment", "comment_text",
    "tweet", "message",  "body",    "article",  "title",  "question",    "input",   "prompt"};
constexpr std::array<std::string_view, 13> kLabelNames = {
    "label", "labels",    "target", "targets", "class",  "category", "topic",
    "score", "sentiment", "rating", "stars",   "intent", "y"};

std::string lower(std::string_view text) {
  std::string result(trim(text));
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

template <typename Names>
bool is_one_of(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), lower(name)) != names.end();
}

bool is_known_name(std::string_view name) {
  const std::string low = lower(name);
  const auto has_name = [&](const NamePair& pair) {
    return pair.first == low || pair.second == low;
  };
  return is_one_of(kTextNames, low) || is_one_of(kLabelNames, low) ||
         std::ranges::any_of(kPairNames, has_name) || std::ranges::any_of(kPromptNames, has_name);
}

/** At most so many bytes of a text, whole characters. */
std::string first_bytes(std::string_view text, size_t n_bytes) {
  if (text.size() <= n_bytes) return std::string(text);
  while (n_bytes > 0 && (static_cast<unsigned char>(text[n_bytes]) & 0xc0) == 0x80)
    --n_bytes;
  return std::string(text.substr(0, n_bytes)) + "...";
}

class Chooser {
 public:
  Chooser(const std::vector<std::string>& names,
          const std::vector<DelimitedRow>& sample,
          const DatasetOptions& options,
          std::string_view file,
          char delimiter)
      : names_(names),
        sample_(sample),
        options_(options),
        file_(file),
        delimiter_(delimiter),
        n_columns_(!names.empty()   ? names.size()
                   : sample.empty() ? 0
                                    : sample.front().fields.size()) {}

  Columns choose() {
    Columns columns;
    check_delimiter();
    if (!options_.text_pair_column.empty())
      pair_ = asked(options_.text_pair_column, "text_pair_column");
    for (const std::string& name : options_.label_columns)
      labels_.push_back(asked(name, "label_column"));
    if (!options_.text_column.empty())
      ask_for_texts();
    else
      guess_texts_by_name();
    columns.is_guessed = options_.text_column.empty();
    columns.are_documents = options_.rows == RowForm::documents;
    check_asked();
    if (labels_.empty()) guess_label_by_name();
    if (!text_ || labels_.empty()) guess_by_count();
    if (!text_) refuse("text", "text_column");
    if (labels_.empty() && options_.labels == LabelUse::required) refuse("label", "label_column");
    columns.text = *text_;
    columns.text_pair = pair_;
    if (options_.labels != LabelUse::ignored) columns.labels = labels_;
    columns.below = below_;
    columns.note = fmt::format("text is {}", shown(columns.text));
    for (const std::string& name : below_)
      if (std::ranges::count(names_, name) > 0)
        columns.note += fmt::format(" and, a line below, column '{}'", name);
    if (pair_) columns.note += fmt::format(" with {}", shown(*pair_));
    const size_t n_labels = columns.labels.size();
    for (size_t i = 0; i < n_labels; ++i)
      columns.note +=
          fmt::format("{}{}",
                      i > 0          ? ", "
                      : n_labels > 1 ? fmt::format(", labels are {} columns of 0 and 1: ", n_labels)
                                     : ", label is ",
                      n_labels > 1 ? quoted(columns.labels[i]) : shown(columns.labels[i]));
    if (by_count_)
      columns.note += " (the column with fewer different values is taken for the label)";
    return columns;
  }

 private:
  std::string shown(size_t column) const {
    return names_.empty() ? fmt::format("column {}", column)
                          : fmt::format("column '{}'", first_bytes(names_[column], 200));
  }

  std::string quoted(size_t column) const {
    return names_.empty() ? std::to_string(column)
                          : fmt::format("'{}'", first_bytes(names_[column], 200));
  }

  std::string all() const {
    const std::string_view s = n_columns_ == 1 ? "" : "s";
    if (names_.empty()) return fmt::format("{} column{} without names", n_columns_, s);
    // A file of other lines or columns than expected may have very many or very long ones.
    constexpr size_t kNames = 12, kBytes = 60;
    std::string list;
    for (size_t i = 0; i < std::min(names_.size(), kNames); ++i)
      list += (i ? ", " : "") + first_bytes(names_[i], kBytes);
    if (names_.size() > kNames) list += fmt::format(", ... ({} in all)", names_.size());
    return fmt::format("the column{} {}", s, list);
  }

  size_t asked(const std::string& name, std::string_view option) const {
    for (size_t i = 0; i < names_.size(); ++i)
      if (names_[i] == name) return i;
    size_t number = 0;
    auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (code == std::errc{} && end == name.data() + name.size() && number < n_columns_)
      return number;
    if (const char other = other_delimiter()) refuse_delimiter(other);
    throw Error(Fault::usage, "data.columns",
                fmt::format("{} = {}: '{}' has {}", option, name, file_, all()),
                names_.empty() ? "columns count from 0" : "use one of these names");
  }

  /** One column, or several whose texts are joined: "instruction,input". */
  void ask_for_texts() {
    std::string_view rest = options_.text_column;
    const bool is_one = rest.find(',') == rest.npos || std::ranges::count(names_, rest) > 0;
    if (is_one) {
      text_ = asked(options_.text_column, "text_column");
      return;
    }
    for (bool is_first = true; !rest.empty(); is_first = false) {
      const size_t end = std::min(rest.find(','), rest.size());
      const size_t column = asked(std::string(trim(rest.substr(0, end))), "text_column");
      if (is_first)
        text_ = column;
      else
        below_.push_back(names_.empty() ? std::to_string(column) : names_[column]);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }

  /** Columns asked for by name or number that turn out to be one. */
  void check_asked() const {
    const auto refuse_same = [&](size_t column, std::string_view a, std::string_view b) {
      throw Error(Fault::usage, "data.columns",
                  fmt::format("{} and {} are both {} of '{}'", a, b, shown(column), file_),
                  "give each a column of its own");
    };
    if (text_ && text_ == pair_) refuse_same(*text_, "text_column", "text_pair_column");
    for (size_t label : labels_) {
      if (text_ == label) refuse_same(label, "text_column", "label_column");
      if (pair_ == label) refuse_same(label, "text_pair_column", "label_column");
    }
  }

  /** The other delimiter that all lines hold where the first has one column; '\0': none. */
  char other_delimiter() const {
    if (delimiter_ == '\0' || n_columns_ != 1) return '\0';
    for (char other : {'\t', ',', ';', '|'}) {
      const auto has_other = [&](const DelimitedRow& row) {
        return std::any_of(row.fields.begin(), row.fields.end(), [&](const std::string& field) {
          return field.find(other) != std::string::npos;
        });
      };
      if (other != delimiter_ && !sample_.empty() &&
          std::all_of(sample_.begin(), sample_.end(), has_other))
        return other;
    }
    return '\0';
  }

  [[noreturn]] void refuse_delimiter(char other) const {
    throw Error(Fault::data, "data.columns",
                fmt::format("'{}' has one column when split at {}, and its lines hold {}", file_,
                            plural_of_delimiter(delimiter_), plural_of_delimiter(other)),
                other == ','    ? "is it dataset_format = csv?"
                : other == '\t' ? "is it dataset_format = tsv?"
                : other == ';'  ? "is it dataset_delimiter = semicolon?"
                                : "is it dataset_delimiter = pipe?");
  }

  /** Texts may hold any delimiter, so a file of one column is refused here only where its first
   * line is a header of several, split at another. */
  void check_delimiter() const {
    const char other = other_delimiter();
    if (other == '\0') return;
    std::string_view rest = names_.empty() ? sample_.front().fields.front() : names_.front();
    if (rest.find(other) == rest.npos) return;
    for (bool is_last = false; !is_last;) {
      const size_t end = rest.find(other);
      is_last = end == rest.npos;
      if (is_known_name(rest.substr(0, end))) refuse_delimiter(other);
      if (!is_last) rest.remove_prefix(end + 1);
    }
  }

  bool is_free(size_t column) const {
    return text_ != column && pair_ != column &&
           std::find(labels_.begin(), labels_.end(), column) == labels_.end();
  }

  std::optional<size_t> named(std::string_view name) const {
    for (size_t i = 0; i < names_.size(); ++i)
      if (is_free(i) && lower(names_[i]) == name) return i;
    return std::nullopt;
  }

  template <typename Pairs>
  bool guess_pair(const Pairs& pairs) {
    for (const auto& [first, second] : pairs) {
      const auto a = named(first), b = named(second);
      if (!a || !b) continue;
      text_ = a;
      pair_ = b;
      return true;
    }
    return false;
  }

  void guess_texts_by_name() {
    const bool has_prompts = options_.rows == RowForm::documents;
    if (!pair_ && (has_prompts ? guess_pair(kPromptNames) : guess_pair(kPairNames))) {
      const std::string prompt = has_prompts ? lower(names_[*text_]) : "";
      if (prompt == "instruction" || prompt == "question")
        for (const std::string_view name : kBelowPrompt) {
          const auto column = named(name);  // some rows only may have it
          below_.push_back(column ? names_[*column] : std::string(name));
        }
      return;
    }
    for (std::string_view name : kTextNames)
      if ((text_ = named(name))) return;
  }

  void guess_label_by_name() {
    for (std::string_view name : kLabelNames)
      if (auto column = named(name)) {
        labels_.push_back(*column);
        return;
      }
  }

  /** Guesses what names do not tell: one column left for one role, or two for text and label by
   * their values. */
  void guess_by_count() {
    std::vector<size_t> left;
    for (size_t i = 0; i < n_columns_; ++i)
      if (is_free(i)) left.push_back(i);
    const size_t n_roles = pair_ ? 3 : 2;
    const bool knows_text = text_.has_value(), knows_label = !labels_.empty();
    if (left.size() == 1 && n_columns_ <= n_roles) {
      if (!knows_text)
        text_ = left[0];
      else if (!knows_label && options_.labels == LabelUse::required)
        labels_.push_back(left[0]);
    } else if (left.size() == 2 && n_columns_ == n_roles && !knows_text && !knows_label &&
               !sample_.empty()) {
      const bool first_is_label = variety(left[0]) < variety(left[1]);
      text_ = left[first_is_label ? 1 : 0];
      labels_.push_back(left[first_is_label ? 0 : 1]);
      by_count_ = true;
    }
  }

  /** Different values, then bytes: labels have fewer and shorter ones. */
  std::pair<size_t, size_t> variety(size_t column) const {
    std::set<std::string_view> values;
    size_t n_bytes = 0;
    for (const DelimitedRow& row : sample_) {
      if (column >= row.fields.size()) continue;
      values.insert(row.fields[column]);
      n_bytes += row.fields[column].size();
    }
    return {values.size(), n_bytes};
  }

  [[noreturn]] void refuse(std::string_view role, std::string_view option) const {
    if (const char other = other_delimiter()) refuse_delimiter(other);
    throw Error(Fault::data, "data.columns",
                fmt::format("'{}' has {}, and none is plainly the {}", file_, all(), role),
                fmt::format("name it with {} = NAME, or by its number from 0{}", option,
                            role == "label" ? "; texts without labels train a language model: "
                                              "--task causal-lm (a decoder) or mlm (an encoder)"
                                            : ""));
  }

  const std::vector<std::string>& names_;
  const std::vector<DelimitedRow>& sample_;
  const DatasetOptions& options_;
  std::string_view file_;
  char delimiter_;
  size_t n_columns_;
  std::optional<size_t> text_, pair_;
  std::vector<size_t> labels_;
  std::vector<std::string> below_;
  bool by_count_ = false;
};

constexpr std::string_view kWithinPrompt =
    "take the rows as chats: --chat-template model (the model's own), or a name or file of one; or "
    "leave the column out";

}  // namespace

bool Columns::is_unread(size_t column, const std::string& name) const {
  return column != text && column != text_pair && std::ranges::count(labels, column) == 0 &&
         std::ranges::count(below, name) == 0;
}

void add_below(std::string& text, std::string_view below) {
  if (trim(below).empty()) return;
  if (trim(text).empty())
    text.clear();
  else
    text += '\n';
  text += below;
}

void refuse_chat(std::string_view place, std::string_view name) {
  throw Error(Fault::data, "data.chat",
              fmt::format("{}: '{}' holds a chat, which is not read as a text", place, name),
              fmt::format("chats train a decoder: --task causal-lm; of several columns with turns "
                          "name one: --text-column {}",
                          name));
}

void refuse_meaning(std::string_view place,
                    std::string_view name,
                    bool is_flag,
                    const Columns& columns) {
  if (!columns.is_guessed || !columns.are_documents) return;
  struct Meaning {
    std::string_view name, what, hint;
    bool is_of_prompts = true;
  };
  constexpr std::string_view kPreference = "has answers that are compared (DPO, reward models)";
  constexpr std::string_view kToChosen =
      "`ferry train --task preference` learns from both answers, `ferry train --task reward` gives "
      "answers a number, and both measure the pairs of --eval-dataset; to read the chosen answers "
      "alone: --text-column prompt --text-pair-column chosen";
  constexpr std::string_view kSystem = "holds a system prompt, which would be left out";
  constexpr Meaning kMeanings[] = {
      {"chosen", kPreference, kToChosen, false},
      {"rejected", kPreference, kToChosen, false},
      {"system", kSystem, kWithinPrompt},
      {"system_prompt", kSystem, kWithinPrompt},
      {"history", "holds earlier turns, which would be left out", kWithinPrompt},
      {"tools", "holds the tools of a chat, which would be left out", kWithinPrompt},
  };
  const std::string low = lower(name);
  for (const Meaning& meaning : kMeanings)
    if (meaning.name == low && (columns.text_pair || !meaning.is_of_prompts))
      throw Error(Fault::data, "data.columns",
                  fmt::format("{}: column '{}' {}", place, name, meaning.what), meaning.hint);
  // Without it a model would learn the bad completions as well as the good ones.
  if (columns.text_pair && is_flag && low == "label")
    throw Error(Fault::data, "data.columns",
                fmt::format("{}: column '{}' says which completions are good (KTO), and this "
                            "version does not train on such data",
                            place, name),
                "keep the rows of the good ones, and leave the column out");
}

std::string note_of_unread(const std::vector<std::string>& names) {
  constexpr size_t kNames = 12;
  std::string note;
  for (size_t i = 0; i < std::min(names.size(), kNames); ++i)
    note += fmt::format("{}'{}'", i > 0 ? ", " : "not read: ", first_bytes(names[i], 60));
  if (names.size() > kNames) note += fmt::format(", ... ({} in all)", names.size());
  return note;
}

Columns choose_columns(const std::vector<std::string>& names,
                       const std::vector<DelimitedRow>& sample,
                       const DatasetOptions& options,
                       std::string_view file,
                       char delimiter) {
  return Chooser(names, sample, options, file, delimiter).choose();
}

bool looks_like_header(const std::vector<DelimitedRow>& sample, const DatasetOptions& options) {
  if (sample.empty()) return false;
  const std::vector<std::string>& first = sample.front().fields;
  for (size_t column = 0; column < first.size(); ++column) {
    const std::string& cell = first[column];
    if (cell.empty()) continue;
    // A number is asked for as a number: it does not make the row "1<TAB>text" a header.
    const bool is_asked = cell == options.text_column || cell == options.text_pair_column ||
                          std::find(options.label_columns.begin(), options.label_columns.end(),
                                    cell) != options.label_columns.end();
    if ((is_asked && !parse_number(cell)) || is_known_name(cell)) return true;
    if (sample.size() < 2 || parse_number(cell)) continue;
    const bool numbers_below =
        std::all_of(sample.begin() + 1, sample.end(), [&](const DelimitedRow& row) {
          return column < row.fields.size() && parse_number(row.fields[column]);
        });
    if (numbers_below) return true;
  }
  return false;
}

}  // namespace ferry
