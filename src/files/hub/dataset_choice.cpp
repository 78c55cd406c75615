#include "src/files/hub/dataset_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/files/hub/hub_settings.h"
#include "src/files/plain_file.h"
#include "src/files/yaml.h"

namespace ferry::hub {
namespace {

namespace fs = std::filesystem;

using Splits = std::vector<std::pair<std::string, std::vector<std::string>>>;  // of paths

constexpr std::string_view kConverted = "refs/convert/parquet";
/** By rank where two are as common. */
constexpr std::array<std::string_view, 7> kEndings = {".parquet", ".arrow", ".jsonl", ".json",
                                                      ".csv",     ".tsv",   ".txt"};
constexpr std::array<std::string_view, 5> kNoData = {
    "README.md", "config.json", "dataset_info.json", "dataset_infos.json", "dataset_dict.json"};

/** Train first. */
constexpr std::array<std::pair<std::string_view, std::array<std::string_view, 4>>, 3> kKeywords = {
    {{"train", {"train", "training"}},
     {"validation", {"validation", "valid", "dev", "val"}},
     {"test", {"test", "testing", "eval", "evaluation"}}}};

std::string_view last_part(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

std::string ending_of(std::string_view path) {
  const std::string_view name = last_part(path);
  const size_t dot = name.rfind('.');
  return dot == name.npos ? "" : std::string(name.substr(dot));
}

/** Hidden files, and those that say what the others are. */
bool is_data(std::string_view path) {
  if (std::ranges::find(kNoData, last_part(path)) != kNoData.end()) return false;
  for (std::string_view rest = path;;) {
    if (rest.starts_with('.') || rest.starts_with("__")) return false;
    const size_t slash = rest.find('/');
    if (slash == rest.npos) return true;
    rest.remove_prefix(slash + 1);
  }
}

Error fail(const std::string& what, const std::string& hint) {
  return Error(Fault::data, "hub.dataset", what, hint);
}

bool is_separator(char c) {
  return std::string_view("-._ 0123456789").find(c) != std::string_view::npos;
}

/** The keyword stands in the name by itself. */
bool has_keyword(std::string_view name, std::string_view keyword, bool is_file) {
  for (size_t at = 0; (at = name.find(keyword, at)) != name.npos; ++at) {
    const size_t end = at + keyword.size();
    const bool begins = at == 0 || is_separator(name[at - 1]);
    // A file that is called like it has an ending besides.
    const bool ends = end == name.size() ? !is_file : is_separator(name[end]);
    if (begins && ends) return true;
  }
  return false;
}

bool names_split(std::string_view path, std::string_view keyword, bool by_directory) {
  for (std::string_view rest = path;;) {
    const size_t slash = rest.find('/');
    const bool is_file = slash == rest.npos;
    if (is_file != by_directory && has_keyword(rest.substr(0, slash), keyword, is_file))
      return true;
    if (is_file) return false;
    rest.remove_prefix(slash + 1);
  }
}

/** "data/train-00000-of-00002-abc.parquet" is of split "train". */
std::string split_of_shard(std::string_view path) {
  constexpr std::string_view kFolder = "data/";
  constexpr std::string_view kNumbers =
      "-[0-9][0-9][0-9][0-9][0-9]-of-[0-9][0-9][0-9][0-9][0-9]*.*";
  if (!path.starts_with(kFolder) || path.substr(kFolder.size()).find('/') != path.npos) return {};
  const std::string name(path.substr(kFolder.size()));
  for (size_t dash = name.find('-'); dash != name.npos; dash = name.find('-', dash + 1))
    if (::fnmatch(std::string(kNumbers).c_str(), name.c_str() + dash, 0) == 0)
      return name.substr(0, dash);
  return {};
}

/** Splits by the names of files, where nothing says what they are. */
Splits splits_by_names(const std::vector<std::string>& paths) {
  Splits shards;
  const auto add = [](Splits& splits, const std::string& split, const std::string& path) {
    const auto found = std::ranges::find(splits, split, &Splits::value_type::first);
    if (found == splits.end())
      splits.emplace_back(split, std::vector{path});
    else
      found->second.push_back(path);
  };
  for (const std::string& path : paths)
    if (const std::string split = split_of_shard(path); !split.empty()) add(shards, split, path);
  if (!shards.empty()) return shards;
  for (const bool by_directory : {true, false}) {
    Splits found;
    for (const auto& [split, keywords] : kKeywords)
      for (const std::string& path : paths)
        if (std::ranges::any_of(keywords, [&](std::string_view keyword) {
              return !keyword.empty() && names_split(path, keyword, by_directory);
            }))
          add(found, std::string(split), path);
    if (!found.empty()) return found;
  }
  return {{"train", paths}};
}

/** A configuration as the README's head has it. */
struct Config {
  std::string name;
  bool is_default = false;
  std::string directory;                                                   // data_dir
  std::vector<std::pair<std::string, std::vector<std::string>>> patterns;  // by split
};

std::vector<std::string> texts_of(const YamlNode& node) {
  std::vector<std::string> texts;
  if (node.kind == YamlNode::Kind::scalar) texts.push_back(node.text);
  for (const YamlNode& item : node.items)
    if (item.kind == YamlNode::Kind::scalar) texts.push_back(item.text);
  return texts;
}

std::string text_at(const YamlNode& node, std::string_view key) {
  const YamlNode* const found = node.find(key);
  return found && found->kind == YamlNode::Kind::scalar ? found->text : "";
}

Config config_of(const YamlNode& node) {
  Config config = {.name = text_at(node, "config_name"),
                   .is_default = text_at(node, "default") == "true",
                   .directory = text_at(node, "data_dir"),
                   .patterns = {}};
  if (config.name.empty()) config.name = "default";
  const YamlNode* const files = node.find("data_files");
  if (!files) return config;
  const bool has_splits = files->kind == YamlNode::Kind::list && !files->items.empty() &&
                          files->items.front().kind == YamlNode::Kind::map;
  if (has_splits) {
    for (const YamlNode& item : files->items)
      if (const YamlNode* const path = item.find("path"))
        config.patterns.emplace_back(text_at(item, "split"), texts_of(*path));
  } else if (files->kind == YamlNode::Kind::map) {
    for (const auto& [split, path] : files->fields)
      config.patterns.emplace_back(split, texts_of(path));
  } else if (auto patterns = texts_of(*files); !patterns.empty()) {
    config.patterns.emplace_back("train", std::move(patterns));
  }
  return config;
}

/** The head of a README.md, between two lines of dashes. */
std::optional<YamlNode> head_of(const std::string& readme) {
  if (!readme.starts_with("---")) return std::nullopt;
  const size_t begin = readme.find('\n'),
               end = readme.find("\n---", begin == readme.npos ? 0 : begin);
  if (begin == readme.npos || end == readme.npos) return std::nullopt;
  try {
    return parse_yaml(readme.substr(begin + 1, end - begin), "README.md");
  } catch (const Error& error) {
    throw fail(fmt::format("the head of README.md is no YAML that Ferry reads: {}", error.what()),
               "give the files themselves: --dataset 'DIR/*.parquet'");
  }
}

std::vector<Config> configs_of(const std::optional<std::string>& readme) {
  std::vector<Config> configs;
  const auto head = readme ? head_of(*readme) : std::nullopt;
  const YamlNode* const list = head ? head->find("configs") : nullptr;
  if (list)
    for (const YamlNode& node : list->items)
      if (node.kind == YamlNode::Kind::map) configs.push_back(config_of(node));
  return configs;
}

/** Of the branch that the hub makes: CONFIG/SPLIT/0000.parquet. */
std::map<std::string, Splits> converted_configs(const RepoTree& tree, bool& is_partial) {
  constexpr std::string_view kPartial = "partial-";
  std::map<std::string, Splits> configs;
  for (const RemoteFile& file : tree.files) {
    const size_t first = file.path.find('/'), second = file.path.find('/', first + 1);
    if (first == std::string::npos || second == std::string::npos || !is_data(file.path)) continue;
    std::string split = file.path.substr(first + 1, second - first - 1);
    if (split.starts_with(kPartial)) {
      is_partial = true;
      split.erase(0, kPartial.size());
    }
    Splits& splits = configs[file.path.substr(0, first)];
    if (splits.empty() || splits.back().first != split)
      splits.emplace_back(split, std::vector<std::string>());
    splits.back().second.push_back(file.path);
  }
  return configs;
}

/** "./data/" is "data". */
std::string without_dots(std::string directory) {
  while (directory.starts_with("./"))
    directory.erase(0, 2);
  while (directory.ends_with('/'))
    directory.pop_back();
  return directory == "." ? "" : directory;
}

Splits splits_of(const RepoTree& tree, const Config& config, const DatasetName& name) {
  const std::string below = without_dots(config.directory);
  std::vector<std::string> paths;  // below that directory
  const std::string prefix = below.empty() ? "" : below + "/";
  for (const RemoteFile& file : tree.files)
    if (file.path.starts_with(prefix)) paths.push_back(file.path.substr(prefix.size()));
  Splits splits;
  if (config.patterns.empty()) {
    std::erase_if(paths, [](const std::string& path) { return !is_data(path); });
    splits = splits_by_names(paths);
  }
  for (const auto& [split, patterns] : config.patterns) {
    std::set<std::string> found;  // sorted
    for (std::string pattern : patterns) {
      if (pattern.find("://") != pattern.npos)
        throw fail(fmt::format("'{}' takes files from elsewhere: {}", name.text(), pattern),
                   "fetch those and give them: --dataset FILE");
      while (pattern.starts_with("./"))
        pattern.erase(0, 2);
      for (const std::string& path : paths)
        if (path == pattern || (is_data(path) && matches_pattern(path, pattern)))
          found.insert(path);
      if (found.empty())
        throw fail(fmt::format("no file of '{}' matches '{}', which its README.md names",
                               name.text(), pattern),
                   "tell its owner, or give another revision");
    }
    splits.emplace_back(split.empty() ? "train" : split,
                        std::vector<std::string>(found.begin(), found.end()));
  }
  for (auto& [split, files] : splits)
    for (std::string& path : files)
      path.insert(0, prefix);
  return splits;
}

/** The commonest form decides; files of others are left out. */
void keep_one_form(Splits& splits, const DatasetName& name) {
  std::map<std::string, size_t> counts;
  for (const auto& [split, paths] : splits)
    for (const std::string& path : paths)
      ++counts[ending_of(path)];
  std::string_view form;
  for (const std::string_view ending : kEndings)
    if (counts[std::string(ending)] > (form.empty() ? 0 : counts[std::string(form)])) form = ending;
  if (form.empty()) {
    std::vector<std::string> endings;
    for (const auto& [ending, n] : counts)
      if (n > 0) endings.push_back(ending.empty() ? "no ending" : ending);
    throw fail(fmt::format("the files of '{}' are of no form that Ferry reads ({})", name.text(),
                           fmt::join(endings, ", ")),
               name.repo.revision == kConverted
                   ? "give another data set"
                   : fmt::format("the hub may have converted them: --dataset {}@{}", name.repo.id,
                                 kConverted));
  }
  for (auto& [split, paths] : splits) {
    std::erase_if(paths, [&](const std::string& path) { return ending_of(path) != form; });
    std::ranges::sort(paths);
  }
  std::erase_if(splits, [](const auto& split) { return split.second.empty(); });
}

std::vector<std::string> names_of(const Splits& splits) {
  std::vector<std::string> names;
  for (const auto& [split, paths] : splits)
    names.push_back(split);
  return names;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

/** The configuration that the name means; `parts` keeps what is left of it. */
std::string choose_config(const std::vector<std::string>& configs,
                          const std::string& otherwise,
                          std::vector<std::string>& parts,
                          const DatasetName& name) {
  if (!parts.empty() && has(configs, parts.front())) {
    const std::string config = parts.front();
    parts.erase(parts.begin());
    return config;
  }
  if (parts.size() == 2)
    throw fail(fmt::format("'{}' has no configuration '{}'", name.repo.text(), parts.front()),
               fmt::format("it has {}", fmt::join(configs, ", ")));
  if (!otherwise.empty()) return otherwise;
  throw fail(fmt::format("'{}' has several configurations: {}", name.repo.text(),
                         fmt::join(configs, ", ")),
             fmt::format("name one: --dataset {}:{}", name.repo.text(), configs.front()));
}

std::string choose_split(const std::vector<std::string>& splits,
                         const std::vector<std::string>& parts,
                         const std::vector<std::string>& configs,
                         const DatasetName& name) {
  if (parts.empty()) {
    if (has(splits, "train")) return "train";
    if (splits.size() == 1) return splits.front();
    throw fail(fmt::format("'{}' has no split 'train'", name.text()),
               fmt::format("name one: --dataset {}:{} (it has {})", name.text(), splits.front(),
                           fmt::join(splits, ", ")));
  }
  if (has(splits, parts.front())) return parts.front();
  throw fail(fmt::format("'{}' has no split{} '{}'", name.repo.text(),
                         configs.size() > 1 ? " and no configuration" : "", parts.front()),
             fmt::format("its splits are {}{}", fmt::join(splits, ", "),
                         configs.size() > 1
                             ? fmt::format(", its configurations {}", fmt::join(configs, ", "))
                             : ""));
}

}  // namespace

std::string DatasetName::text() const {
  std::string all = repo.text();
  for (const std::string& part : parts)
    all += ":" + part;
  return all;
}

std::optional<DatasetName> parse_dataset_name(std::string_view text) {
  std::error_code error;
  if (text.empty() || fs::exists(fs::path(text), error)) return std::nullopt;
  DatasetName name;
  size_t colon = text.find(':');
  std::string_view id = text.substr(0, colon);
  while (colon != text.npos) {
    const size_t next = text.find(':', colon + 1);
    name.parts.emplace_back(text.substr(colon + 1, next == text.npos ? next : next - colon - 1));
    if (name.parts.back().empty()) return std::nullopt;
    colon = next;
  }
  if (name.parts.size() > 2) return std::nullopt;
  const auto repo = parse_repo_name(RepoKind::dataset, id);
  const size_t slash = repo ? repo->id.find('/') : std::string::npos;
  if (slash == std::string::npos) return std::nullopt;
  // "data/train.tsv" is a path that is misspelt.
  if (fs::exists(repo->id.substr(0, slash), error)) return std::nullopt;
  constexpr std::array<std::string_view, 9> kFiles = {
      ".parquet", ".arrow", ".jsonl", ".json", ".csv", ".tsv", ".txt", ".conll", ".md"};
  if (std::ranges::find(kFiles, ending_of(repo->id)) != kFiles.end()) return std::nullopt;
  name.repo = *repo;
  return name;
}

bool matches_pattern(std::string_view path, std::string_view pattern) {
  const size_t slash = pattern.find('/');
  const std::string_view part = pattern.substr(0, slash);
  if (part == "**") {
    if (slash == pattern.npos) return true;
    const std::string_view rest = pattern.substr(slash + 1);
    for (std::string_view at = path;;) {
      if (matches_pattern(at, rest)) return true;
      const size_t next = at.find('/');
      if (next == at.npos) return false;
      at.remove_prefix(next + 1);
    }
  }
  const size_t end = path.find('/');
  if ((end == path.npos) != (slash == pattern.npos)) return false;
  if (::fnmatch(std::string(part).c_str(), std::string(path.substr(0, end)).c_str(), FNM_PERIOD) !=
      0)
    return false;
  return end == path.npos || matches_pattern(path.substr(end + 1), pattern.substr(slash + 1));
}

DatasetChoice choose_dataset(const RepoTree& tree,
                             const std::optional<std::string>& readme,
                             const DatasetName& name) {
  DatasetChoice choice;
  std::vector<std::string> parts = name.parts;
  Splits splits;
  if (name.repo.revision == kConverted) {
    auto configs = converted_configs(tree, choice.is_partial);
    for (const auto& [config, of_config] : configs)
      choice.configs.push_back(config);
    if (configs.empty()) throw fail(fmt::format("'{}' has no files", name.text()), "");
    choice.config = choose_config(choice.configs,
                                  configs.size() == 1        ? choice.configs.front()
                                  : configs.count("default") ? "default"
                                                             : "",
                                  parts, name);
    splits = std::move(configs.at(choice.config));
  } else {
    const std::vector<Config> configs = configs_of(readme);
    Config config = {.name = "default", .is_default = true, .directory = {}, .patterns = {}};
    for (const Config& one : configs)
      choice.configs.push_back(one.name);
    if (configs.empty()) choice.configs.push_back(config.name);
    std::string otherwise = configs.size() <= 1 ? choice.configs.front() : "";
    for (const Config& one : configs)
      if (one.is_default || (otherwise.empty() && one.name == "default")) otherwise = one.name;
    choice.config = choose_config(choice.configs, otherwise, parts, name);
    for (const Config& one : configs)
      if (one.name == choice.config) config = one;
    splits = splits_of(tree, config, name);
  }
  keep_one_form(splits, name);
  choice.splits = names_of(splits);
  choice.split = choose_split(choice.splits, parts, choice.configs, name);
  for (const auto& [split, paths] : splits)
    if (split == choice.split)
      for (const std::string& path : paths)
        choice.files.push_back(*tree.find(path));
  return choice;
}

std::vector<fs::path> cached_dataset_files(const DatasetName& name) {
  const RepoCache cache(cache_directory(), name.repo);
  const auto commit = cache.commit_of(name.repo.revision);
  const auto tree = commit ? cache.read_tree(*commit) : std::nullopt;
  const auto missing = [&](const std::string& what) {
    return Error(Fault::data, "data.open",
                 fmt::format("no such file or directory: '{}', and {} in {}", name.text(), what,
                             cache_directory().string()),
                 fmt::format("fetch it: ferry fetch --dataset {}", name.text()));
  };
  if (!tree) throw missing("no data set of that name");
  std::optional<std::string> readme;
  if (const RemoteFile* const file = tree->find("README.md")) {
    if (!cache.has(*commit, *file)) throw missing("only a part of the data set");
    readme = read_text_file(cache.snapshot(*commit) / file->path);
  }
  std::vector<fs::path> files;
  for (const RemoteFile& file : choose_dataset(*tree, readme, name).files) {
    if (!cache.has(*commit, file)) throw missing(fmt::format("'{}' is not", file.path));
    files.push_back(cache.snapshot(*commit) / file.path);
  }
  return files;
}

DatasetName with_commit(DatasetName name) {
  const RepoCache cache(cache_directory(), name.repo);
  if (auto commit = cache.commit_of(name.repo.revision)) name.repo.revision = std::move(*commit);
  return name;
}

std::optional<std::vector<fs::path>> saved_dataset_files(const fs::path& directory) {
  const auto read = [](const fs::path& file) {
    return JsonReader::parse(read_text_file(file), {file.string(), "data.read",
                                                    "save the data set again (save_to_disk)"});
  };
  if (path_exists(directory / "dataset_dict.json")) {
    const auto splits = read(directory / "dataset_dict.json").at("splits").texts();
    const std::string split = has(splits, "train") || splits.size() != 1 ? "train" : splits.front();
    if (!has(splits, split) || !is_safe_path(split))
      throw Error(Fault::data, "data.read",
                  fmt::format("'{}' has no split train", directory.string()),
                  fmt::format("give one of its directories: {}", fmt::join(splits, ", ")));
    return saved_dataset_files(directory / split);
  }
  if (!path_exists(directory / "state.json") || !path_exists(directory / "dataset_info.json"))
    return std::nullopt;
  std::vector<fs::path> files;
  const auto list = read(directory / "state.json").at("_data_files");
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string name = list.at(i).text("filename");
    if (!is_safe_path(name)) list.at(i).at("filename").refuse("the name of a file beside it");
    files.push_back(directory / name);
  }
  if (files.empty())
    throw Error(Fault::data, "data.read", fmt::format("'{}' has no rows", directory.string()), "");
  return files;
}

namespace {

std::vector<std::string> names_of_labels(const YamlNode& names) {
  if (names.kind == YamlNode::Kind::list) return texts_of(names);
  std::map<int64_t, std::string> by_number;  // the keys are numbers as texts: "10" is behind "2"
  for (const auto& [number, name] : names.fields)
    by_number[std::strtoll(number.c_str(), nullptr, 10)] = name.text;
  std::vector<std::string> sorted;
  for (auto& [number, name] : by_number) {
    if (number != std::ssize(sorted)) return {};  // one is missing: the library takes none of them
    sorted.push_back(std::move(name));
  }
  return sorted;
}

/** The file is one of this configuration: by its patterns, or where it has none by its directory.
 */
bool has_file(const std::vector<Config>& configs, const std::string& name, std::string_view path) {
  const auto config = std::ranges::find(configs, name, &Config::name);
  if (config == configs.end() || config->patterns.empty()) {
    const std::string& below =
        config == configs.end() || config->directory.empty() ? name : config->directory;
    return !below.empty() && path.starts_with(without_dots(below) + "/");
  }
  const std::string below = without_dots(config->directory);
  const std::string prefix = below.empty() ? "" : below + "/";
  if (!path.starts_with(prefix)) return false;
  for (const auto& [split, patterns] : config->patterns)
    for (std::string_view pattern : patterns) {
      while (pattern.starts_with("./"))
        pattern.remove_prefix(2);
      if (matches_pattern(path.substr(prefix.size()), pattern)) return true;
    }
  return false;
}

/** The names that a configuration has for the labels of a column, or of its lists. */
std::vector<std::string> label_names_in(const YamlNode& info, const std::string& column) {
  const YamlNode* const features = info.find("features");
  if (!features) return {};
  for (const YamlNode& feature : features->items) {
    if (text_at(feature, "name") != column) continue;
    for (const std::string_view key : {"dtype", "sequence", "list"}) {
      const YamlNode* const type = feature.find(key);
      const YamlNode* const label = type ? type->find("class_label") : nullptr;
      if (const YamlNode* const names = label ? label->find("names") : nullptr)
        return names_of_labels(*names);
    }
  }
  return {};
}

}  // namespace

std::vector<std::string> label_names_of_readme(const std::string& readme,
                                               const std::string& column,
                                               const std::string& path) {
  const auto head = head_of(readme);
  const YamlNode* const info = head ? head->find("dataset_info") : nullptr;
  if (!info) return {};
  if (info->kind == YamlNode::Kind::map) return label_names_in(*info, column);
  std::set<std::vector<std::string>> found, of_path;
  const std::vector<Config> configs = configs_of(readme);
  for (const YamlNode& one : info->items) {
    auto names = label_names_in(one, column);
    if (names.empty()) continue;
    if (has_file(configs, text_at(one, "config_name"), path)) of_path.insert(names);
    found.insert(std::move(names));
  }
  const auto& told = of_path.empty() ? found : of_path;
  return told.size() == 1 ? *told.begin() : std::vector<std::string>();
}

}  // namespace ferry::hub
