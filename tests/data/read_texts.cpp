// read_texts: a dataset as it is read, for compare_tables.py. `read_texts FORM DATASET`, FORM one
// of texts, words, questions. Prints an object a row; exits with 4 and the message for a fault of
// it.

#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/data/read/reader.h"

int main(int n_arguments, char** arguments) {
  using namespace ferry;
  if (n_arguments != 3) return 2;
  DatasetOptions options{.path = arguments[2]};
  if (std::strcmp(arguments[1], "words") == 0) options.rows = RowForm::words;
  if (std::strcmp(arguments[1], "questions") == 0) options.rows = RowForm::questions;
  try {
    const Dataset dataset = read_dataset(options);
    for (const Example& example : dataset.examples) {
      const Label& label = example.label;
      nlohmann::ordered_json row = {{"text", example.text},    {"id", example.id},
                                    {"class", label.class_id}, {"classes", label.classes},
                                    {"value", label.value},    {"tags", label.tags}};
      if (example.text_pair) row["text_pair"] = *example.text_pair;
      for (const TextRange& answer : label.answers)
        row["answers"].push_back({answer.begin, answer.end});
      std::cout << row.dump() << '\n';
    }
    std::cout << nlohmann::ordered_json(dataset.scheme.labels.names()).dump() << '\n';
  } catch (const Error& error) {
    std::cerr << error.what() << '\n';
    return 4;
  }
}
