#include "src/tasks/prompt/verbalizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/files/plain_file.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kVerbalizerOption = "config.verbalizer";
constexpr std::string_view kVerbalizerExample =
    R"(write it as in '{"negative": ["terrible", "bad"], "positive": ["great"]}')";
/** A word that begins with it stands for itself, without a blank before it. */
constexpr std::string_view kBare = "<!>";

/** "great" or ["great", "good"]. */
Verbalizer::Words words_of(const JsonReader& json) {
  if (json.is_text()) return {json.text()};
  return json.texts();
}

Verbalizer of_json(const JsonReader& json) {
  Verbalizer verbalizer;
  if (json.is_object()) {
    for (const auto& [label, words] : json.fields())
      verbalizer.by_name.emplace_back(label, words_of(words));
  } else {
    for (size_t i = 0; i < json.size(); ++i)
      verbalizer.by_order.push_back(words_of(json.at(i)));
  }
  return verbalizer;
}

/** A name with the number of a verbalizer in its file, counted from 1. */
struct FileChoice {
  std::string file;
  size_t number = 1;
};

FileChoice choice_of(const std::string& option) {
  const size_t colon = option.find_last_of(':');
  std::error_code error;
  if (colon == option.npos || fs::exists(option, error)) return {.file = option};
  const auto number = parse_number(option.substr(colon + 1));
  if (!number || *number < 1 || *number > 1e6) return {.file = option};
  return {.file = option.substr(0, colon), .number = static_cast<size_t>(*number)};
}

/** The lines of a file up to a blank one are a verbalizer. */
std::vector<Verbalizer> of_lines(const std::string& text) {
  std::vector<Verbalizer> all;
  bool begins = true;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trim(std::string_view(text).substr(at, end - at));
    at = end + 1;
    if (line.empty()) {
      begins = true;
      continue;
    }
    if (std::exchange(begins, false)) all.emplace_back();
    Verbalizer::Words& words = all.back().by_order.emplace_back();
    for (size_t i = 0; i <= line.size();) {
      const size_t comma = std::min(line.find(',', i), line.size());
      if (const auto word = trim(line.substr(i, comma - i)); !word.empty())
        words.emplace_back(word);
      i = comma + 1;
    }
  }
  return all;
}

std::vector<Verbalizer> of_json_text(const std::string& text, const JsonSource& source) {
  const JsonReader json = JsonReader::parse(text, source);
  const bool are_several = json.is_list() && json.size() > 0 && json.at(size_t{0}).is_object();
  std::vector<Verbalizer> all;
  if (!are_several) return {of_json(json)};
  for (size_t i = 0; i < json.size(); ++i)
    all.push_back(of_json(json.at(i)));
  return all;
}

Verbalizer of_file(const FileChoice& choice) {
  const fs::path file = choice.file;
  std::error_code error;
  if (!fs::is_regular_file(file, error))
    throw Error(Fault::usage, kVerbalizerOption,
                fmt::format("verbalizer is '{}', which is neither JSON nor a file", choice.file),
                kVerbalizerExample);
  const std::string text = read_text_file(file);
  const bool is_json = file.extension() == ".json" || file.extension() == ".jsonl";
  std::vector<Verbalizer> all =
      is_json ? of_json_text(text, {file.string(), std::string(kVerbalizerOption),
                                    std::string(kVerbalizerExample)})
              : of_lines(text);
  if (choice.number > all.size())
    throw Error(Fault::data, kVerbalizerOption,
                fmt::format("'{}' has {} verbalizers, and number {} is asked for", choice.file,
                            all.size(), choice.number),
                "its verbalizers are counted from 1, with a blank line between two of them");
  return std::move(all[choice.number - 1]);
}

}  // namespace

Verbalizer read_verbalizer(const std::string& option) {
  const std::string_view text = trim(option);
  if (text.empty()) return {};
  if (!text.starts_with('{') && !text.starts_with('[')) return of_file(choice_of(option));
  nlohmann::ordered_json json;
  if (const auto fault = parse_json(text, json))
    throw Error(Fault::usage, kVerbalizerOption,
                fmt::format("the verbalizer is no JSON: {} at byte {}", fault->what, fault->byte),
                kVerbalizerExample);
  return of_json(JsonReader::of(std::move(json), {"the verbalizer", std::string(kVerbalizerOption),
                                                  std::string(kVerbalizerExample)}));
}

std::vector<Verbalizer::Words> words_of_labels(const Verbalizer& verbalizer,
                                               const LabelMap& labels) {
  std::vector<Verbalizer::Words> words(static_cast<size_t>(labels.size()));
  if (verbalizer.is_empty()) {
    for (size_t i = 0; i < words.size(); ++i) {
      const std::string& name = labels.name(static_cast<int32_t>(i));
      if (parse_number(name))
        throw Error(Fault::usage, kVerbalizerOption,
                    fmt::format("the labels are {}, and no words stand for them", labels.list()),
                    R"(name some: --verbalizer '{"0": ["bad"], "1": ["good"]}')");
      words[i] = {name};
    }
    return words;
  }
  if (!verbalizer.by_order.empty()) {
    if (verbalizer.by_order.size() != words.size())
      throw Error(Fault::usage, kVerbalizerOption,
                  fmt::format("the verbalizer has words for {} labels, and the data have {}: {}",
                              verbalizer.by_order.size(), words.size(), labels.list()),
                  "its order is that of these labels; with names it needs none");
    words = verbalizer.by_order;
  }
  for (const auto& [name, its] : verbalizer.by_name) {
    const auto label = labels.find(name);
    if (!label)
      throw Error(Fault::usage, kVerbalizerOption,
                  fmt::format("the verbalizer has words for '{}', which is no label", name),
                  fmt::format("the labels are {}", labels.list()));
    words[static_cast<size_t>(*label)] = its;
  }
  for (size_t i = 0; i < words.size(); ++i)
    if (words[i].empty())
      throw Error(
          Fault::usage, kVerbalizerOption,
          fmt::format("no words stand for the label '{}'", labels.name(static_cast<int32_t>(i))),
          kVerbalizerExample);
  return words;
}

LabelWords tokens_of_words(const std::vector<Verbalizer::Words>& words,
                           WordTokens tokens,
                           const Tokenizer& tokenizer) {
  LabelWords out = {.words = {}, .tokens = tokens};
  for (const Verbalizer::Words& of_label : words) {
    auto& label = out.words.emplace_back();
    for (const std::string& word : of_label) {
      const bool is_bare = word.starts_with(kBare);
      std::vector<int32_t>& ids = label.emplace_back();
      tokenizer.append_ids(is_bare ? word.substr(kBare.size()) : " " + word, ids,
                           /*continues=*/true);
      const int32_t unknown = tokenizer.special_ids().unk;
      if (ids.empty() || (unknown >= 0 && std::ranges::find(ids, unknown) != ids.end()))
        throw Error(Fault::usage, kVerbalizerOption,
                    fmt::format("the tokenizer has no tokens for the word '{}'", word),
                    "take another word for this label");
    }
  }
  return out;
}

}  // namespace ferry
