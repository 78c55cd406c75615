#include "src/service/hub/hub_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "models/family.h"
#include "src/base/error.h"
#include "src/config/models/models.h"
#include "src/files/plain_file.h"
#include "src/inputs/model_files.h"
#include "src/service/plan/plan_answer.h"

namespace ferry::service {
namespace {

namespace fs = std::filesystem;

constexpr size_t kCommit_digits_shown = 8;

hub::RepoName repo_of(const std::string& name) {
  if (const auto repo = config::hub_model_of(name)) {
    config::refuse_other_families(name);
    return *repo;
  }
  throw Error(Fault::usage, "hub.model", fmt::format("'{}' is no name of a model on a hub", name),
              "expected ORGANISATION/NAME, or ORGANISATION/NAME@REVISION");
}

hub::DatasetName dataset_of(const std::string& name) {
  if (auto parsed = hub::parse_dataset_name(name)) return std::move(*parsed);
  throw Error(Fault::usage, "hub.dataset",
              fmt::format("'{}' is no name of a data set on a hub", name),
              "expected ORGANISATION/NAME, with :CONFIG and :SPLIT where it has several");
}

void tell(const hub::Talk& talk, const std::string& text) {
  if (talk.tell) talk.tell(text);
}

/** A name that may be a path that is misspelt: says that nothing here is called so, too. */
Error not_here_either(const std::string& name, const Error& error) {
  std::string what = error.what();
  if (const size_t end = what.find("] "); end != what.npos) what.erase(0, end + 2);
  const size_t dash = what.find(" - ");
  return Error(
      error.fault(), "hub.fetch",
      fmt::format("no file or directory here is called '{}'; {}", name, what.substr(0, dash)),
      dash == what.npos ? "" : what.substr(dash + 3));
}

/** Brings the data sets of a list that are not here. */
void provide_datasets(const std::string& list, const hub::Talk& talk) {
  if (list.empty() || path_exists(list)) return;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    std::string part = list.substr(at, end - at);
    at = end + 1;
    part.erase(0, part.find_first_not_of(' '));
    const auto name = hub::parse_dataset_name(part);
    if (!name) continue;
    try {
      hub::cached_dataset_files(*name);
      continue;
    } catch (const Error&) {  // not here, or not whole
    }
    HubDataset dataset(part, talk);
    try {
      dataset.open();
    } catch (const Error& error) {
      throw not_here_either(part, error);
    }
    dataset.look();
    tell(talk, fmt::format("fetching {}: {}", part, dataset.summary()));
    dataset.fetch();
  }
}

/** Files that a reader misses; not those kept for people. */
std::vector<hub::RemoteFile> needed_of(std::vector<hub::RemoteFile> files) {
  std::erase_if(files, [](const hub::RemoteFile& file) { return !hub::is_needed(file.path); });
  return files;
}

/** The cache has all that is needed of a model, without asking the hub. */
bool is_complete(const hub::RepoName& repo, const fs::path& directory, ModelNeed need) {
  if (need == ModelNeed::shape) return true;
  if (need == ModelNeed::weights && !hub::is_whole_model(directory)) return false;
  hub::HubClient client(hub::settings_of_environment(), repo);
  if (!client.open_from_cache() || client.snapshot() != directory) return true;  // no telling
  try {
    const hub::RemoteFile* const index = hub::weights_index(client.tree());
    std::optional<std::string> text;
    if (index && client.has({*index})) text = client.text_of(*index);
    const auto part = need == ModelNeed::weights ? hub::ModelPart::all : hub::ModelPart::small;
    return client.has(needed_of(hub::files_of_model(client.tree(), text, part, repo)));
  } catch (const Error&) {  // a list that another tool has kept
    return true;
  }
}

/** The run fits, as `ferry plan` says; else its Error. */
void check_fits(const config::Config& config, const hub::Talk& talk) {
  const PlanAnswer answer =
      Planner().answer(config, {.reads_data = true, .looks_for_gains = false, .tell = talk.tell});
  if (answer.refusal) throw Error(*answer.refusal);
}

}  // namespace

std::string decimal_bytes(int64_t n_bytes) {
  constexpr double kKilo = 1e3, kMega = 1e6, kGiga = 1e9, kTera = 1e12;
  const auto n = static_cast<double>(n_bytes);
  const auto text = [](double value, std::string_view unit) {
    constexpr double kWhole = 100;
    return value < kWhole ? fmt::format("{:.1f} {}", value, unit)
                          : fmt::format("{:.0f} {}", value, unit);
  };
  return n < kMega   ? text(n / kKilo, "kB")
         : n < kGiga ? text(n / kMega, "MB")
         : n < kTera ? text(n / kGiga, "GB")
                     : text(n / kTera, "TB");
}

HubModel::HubModel(const std::string& name, hub::Talk talk)
    : client_(hub::settings_of_environment(), repo_of(name), std::move(talk)) {}

void HubModel::open() {
  client_.open();
  is_open_ = true;
}

void HubModel::look() {
  if (!is_open_) open();
  const auto small =
      hub::files_of_model(client_.tree(), std::nullopt, hub::ModelPart::config, client_.repo());
  const std::string text = client_.text_of(small.front()),
                    origin = fmt::format("{}/{}", client_.repo().text(), small.front().path);
  if (hub::is_adapter(client_.tree())) {
    base_model_ = JsonReader::parse(text, {origin, "hub.model", "the repository is damaged"})
                      .text("base_model_name_or_path");
  } else {
    config_ = HfConfig::parse(text, origin);
    const Family& family = family_of(config_->fields());
    // A model that is not computed is refused here, not after the download.
    make_table(config_->fields(), {.head = family.heads.front()});
  }
  if (const hub::RemoteFile* const index = hub::weights_index(client_.tree()))
    index_ = client_.text_of(*index);
  files_ = hub::files_of_model(client_.tree(), index_, hub::ModelPart::all, client_.repo());
  size_ = client_.size_of(files_);
  n_shards_ = std::ranges::count_if(
      files_, [](const hub::RemoteFile& file) { return hub::is_weights(file.path); });
}

std::string HubModel::summary() const {
  std::string text = fmt::format("{} in {} {}", decimal_bytes(size_.n_bytes), n_shards_,
                                 n_shards_ == 1 ? "file of weights" : "shards");
  if (size_.n_missing_bytes < size_.n_bytes)
    text += fmt::format(", {} of it still to come", decimal_bytes(size_.n_missing_bytes));
  return fmt::format("{}, {} free", text, decimal_bytes(size_.free_bytes));
}

void HubModel::fetch_small() {
  client_.fetch(hub::files_of_model(client_.tree(), index_, hub::ModelPart::small, client_.repo()));
}

fs::path HubModel::fetch() {
  client_.fetch(files_);
  for (const std::string& path : hub::absent_files_of_model(client_.tree()))
    client_.cache().write_absent(client_.tree().commit, path);
  return client_.snapshot();
}

HubDataset::HubDataset(const std::string& name, hub::Talk talk)
    : name_(dataset_of(name)),
      client_(hub::settings_of_environment(), name_.repo, std::move(talk)) {}

void HubDataset::open() {
  client_.open();
  is_open_ = true;
}

void HubDataset::look() {
  if (!is_open_) open();
  const hub::RemoteFile* const page = client_.tree().find("README.md");
  choice_ = hub::choose_dataset(client_.tree(),
                                page ? std::optional(client_.text_of(*page)) : std::nullopt, name_);
}

std::string HubDataset::summary() const {
  const hub::FetchSize bytes = size();
  const auto others = choice_.splits.size() > 1
                          ? fmt::format(" of {}", fmt::join(choice_.splits, ", "))
                          : std::string();
  return fmt::format("split {}{}, configuration {}{}: {} in {} file{}, {} free", choice_.split,
                     others, choice_.config,
                     choice_.is_partial ? ", of which the hub has converted only a part" : "",
                     decimal_bytes(bytes.n_bytes), choice_.files.size(),
                     choice_.files.size() == 1 ? "" : "s", decimal_bytes(bytes.free_bytes));
}

fs::path HubDataset::fetch() {
  client_.fetch(choice_.files);
  return client_.snapshot();
}

void provide_inputs(const config::Config& config,
                    ModelNeed need,
                    bool must_fit,
                    const hub::Talk& talk) {
  const std::string& name = config.text("model_name_or_path");
  std::optional<HubModel> model;
  if (!draws_weights(config) && !name.empty()) {
    const auto here = config::locate_model(name);
    const bool is_of_hub = !here || config::commit_of_snapshot(*here);
    const auto repo = is_of_hub ? config::hub_model_of(name) : std::nullopt;
    const bool is_known = need != ModelNeed::weights && config::known_model_config(name);
    if (repo && !(here && is_complete(*repo, *here, need)) &&
        !(is_known && !here && need == ModelNeed::shape)) {
      model.emplace(name, talk);
      try {
        model->open();
      } catch (const Error& error) {
        if (!is_known) throw not_here_either(name, error);
        model.reset();  // a plan goes on with the shape, and counts each text as long as it may be
      }
      if (model) model->look();
    }
  }
  for (const char* key : {"dataset", "eval_dataset"})
    provide_datasets(config.text(key), talk);
  if (!model) return;
  if (need == ModelNeed::tokens) return model->fetch_small();
  if (need != ModelNeed::weights) return;
  if (must_fit) {
    model->fetch_small();
    check_fits(config, talk);
  }
  tell(talk, fmt::format("fetching {} ({}): {}", model->repo().text(),
                         model->commit().substr(0, kCommit_digits_shown), model->summary()));
  model->fetch();
}

}  // namespace ferry::service
