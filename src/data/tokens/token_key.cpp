#include "src/data/tokens/token_key.h"

namespace ferry {
namespace {

template <typename Enum>
void add(ContentHash& hash, Enum value) {
  hash.add_number(static_cast<uint64_t>(value));
}

void add(ContentHash& hash, const std::vector<std::string>& texts) {
  hash.add_number(texts.size());
  for (const std::string& text : texts)
    hash.add_text(text);
}

/** 0: there is none. */
template <typename Value>
uint64_t number_of(const std::optional<Value>& value) {
  return value ? 1 + static_cast<uint64_t>(*value) : 0;
}

}  // namespace

void add_reading(ContentHash& hash, const DatasetReader& reader) {
  for (const DatasetReader* part : reader.parts())
    add_reading(hash, *part);
  hash.add_number(reader.choice());
  const DatasetOptions& options = reader.files().options;
  add(hash, reader.files().format);
  hash.add_text(options.text_column);
  hash.add_text(options.text_pair_column);
  add(hash, options.label_columns);
  add(hash, options.label_names);
  add(hash, options.header);
  add(hash, options.quoting);
  add(hash, options.delimiter);
  add(hash, options.label_separator);
  add(hash, options.rows);
  add(hash, options.labels);
  add(hash, options.encoding);
  add(hash, options.prompts_are_chats);
  hash.add_number(number_of(options.problem));
  const LabelScheme& scheme = reader.scheme();
  add(hash, scheme.problem);
  add(hash, scheme.labels.names());
  hash.add_number(number_of(scheme.has_pairs));
}

}  // namespace ferry
