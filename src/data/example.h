#pragma once
// A dataset before it is tokenized: texts and labels, and the names of the labels. The
// readers fill it (src/data/read/reader.h), src/data/tokenized.h takes it up.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ferry {

enum class ProblemType : uint8_t {
  unlabelled,
  single_label,
  multi_label,
  regression,
  tags,         // a label for each word of a text
  answers,      // places in the second text that answer the first
  preferences,  // the better of two answers
};

/** As transformers spells it in config.json ("single_label_classification"); "" for those that it
 * has no name for. */
std::string_view hf_name_of(ProblemType type);
/** The inverse; nullopt for another text. */
std::optional<ProblemType> parse_problem_type(std::string_view hf_name);

/** Bytes [begin, end) of a text. */
struct TextRange {
  uint32_t begin = 0, end = 0;
  bool operator==(const TextRange&) const = default;
};

/** The part of a text. */
inline std::string_view part_of(std::string_view text, TextRange range) {
  return text.substr(range.begin, range.end - range.begin);
}

/** One of these, by the dataset's ProblemType. */
struct Label {
  int32_t class_id = -1;           // single_label
  std::vector<int32_t> classes;    // multi_label: ascending, may be empty
  float value = 0;                 // regression
  std::vector<int32_t> tags;       // tags: as many as words; -1 of a word without a tag
  std::vector<TextRange> answers;  // answers: in the second text; none if it has no answer
};

/** A document that is larger than a piece of it may be comes in parts, one after another. */
enum class TextPart : uint8_t { whole, first, middle, last };

/** The text begins with this part, or ends with it. */
inline bool begins_text(TextPart part) {
  return part == TextPart::whole || part == TextPart::first;
}
inline bool ends_text(TextPart part) {
  return part == TextPart::whole || part == TextPart::last;
}
/** The part that begins the text, or ends it, as said. */
inline TextPart part_that(bool begins, bool ends) {
  if (begins) return ends ? TextPart::whole : TextPart::first;
  return ends ? TextPart::last : TextPart::middle;
}

struct Example {
  std::string text;                      // valid UTF-8; empty only where texts are to be answered
  std::optional<std::string> text_pair;  // for tasks on two texts
  /** The worse of two answers. text_pair is the better answer, and text the prompt of both; or text
   * and rejected are whole chats. */
  std::optional<std::string> rejected;
  float margin = 0;  // by which the better answer is to be better, where the data say so
  Label label;
  std::vector<TextRange> words;  // in text, where the data came in words
  std::string id;                // the data's own name for it; may be empty
  std::string place;             // "train.jsonl:17" while it is read, for messages; else empty
  TextPart part = TextPart::whole;
  bool continues = false;  // of a later part: as Tokenizer::append_ids takes it
  bool is_chat = false;    // the text is what chat::packed() gives (src/chat/conversation.h)
};

/** The names of the classes in the order of their ids: `id2label`, saved with the model. */
class LabelMap {
 public:
  LabelMap() = default;
  /** In the order given; a name appears once. */
  explicit LabelMap(std::vector<std::string> names);
  /** Duplicates dropped, sorted: by value when all are whole numbers ("2" before "10"), else by
   * bytes. */
  static LabelMap sorted(std::vector<std::string> names);

  int32_t size() const { return static_cast<int32_t>(names_.size()); }
  const std::vector<std::string>& names() const { return names_; }
  const std::string& name(int32_t id) const { return names_.at(static_cast<size_t>(id)); }

  /** The id of a label as a data file spells it: its name; or, of a whole number, another spelling
   * of it ("1.0"); or the id itself where no name is a number (files of ids beside a model that
   * knows names). */
  std::optional<int32_t> find(std::string_view label) const;

  /** "business, politics, sport"; at most ten. */
  std::string list() const;
  /** Some names are tags of entities: B-PER, I-LOC. Else they are of parts of speech or the like,
   * or numbers that nobody named. */
  bool has_entities() const;

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, int32_t> ids_;
  bool any_number_ = false;
};

/** "3", "3.0", " +3" -> "3"; nullopt when the text is not a whole number. */
std::optional<std::string> canonical_integer(std::string_view text);
/** The whole of the text as a finite number, spaces around it allowed. */
std::optional<double> parse_number(std::string_view text);
std::string_view trim(std::string_view text);

}  // namespace ferry
