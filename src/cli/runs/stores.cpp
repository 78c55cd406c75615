#include "src/cli/runs/stores.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/print.h"
#include "src/cli/runs/run_tables.h"
#include "src/runs/index/run_list.h"
#include "src/runs/store/found_stores.h"
#include "src/runs/store/store_place.h"
#include "src/service/runs/delete_run.h"
#include "src/term/table.h"

namespace ferry::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using runs::FoundStore;

std::string state_of(const FoundStore& store) {
  if (store.is_in_use) return "in use";
  if (!store.owner.empty()) return "kept for its run";
  if (store.run.empty()) return "does not say whose it is";
  return "left over";
}

void print_stores(const std::vector<FoundStore>& stores) {
  if (stores.empty()) {
    fmt::print("no run has states on a drive there (--nvme-path makes them)\n");
    return;
  }
  term::Table table({{"file"}, {"size", term::Align::right}, {"run"}, {""}});
  for (const FoundStore& store : stores)
    table.add_row({store.file.string(), format_bytes(store.n_bytes),
                   store.owner.empty() ? store.run : store.owner.string(), state_of(store)});
  fmt::print("{}", table.text(term::detect_terminal(1)));
  if (std::ranges::any_of(stores,
                          [](const FoundStore& store) { return state_of(store) == "left over"; }))
    fmt::print("no known run has what is left over: ferry runs delete FILE\n");
}

/** A file or directory that goes, or would go. */
struct Removed {
  fs::path path;
  std::string what;
  int64_t n_bytes = 0;
  bool stays = false;  // it does not say that it is of this run's states
};

std::vector<Removed> delete_file(const fs::path& file, bool is_sure) {
  const fs::path whole = fs::canonical(file);
  const auto stores = runs::find_stores({whole.parent_path()}, runs::known_runs());
  const auto found =
      std::ranges::find_if(stores, [&](const FoundStore& store) { return store.file == whole; });
  if (found == stores.end())
    throw Error(Fault::usage, "runs.delete",
                fmt::format("'{}' is no store of a run", file.string()),
                "`ferry runs stores` lists them");
  if (!found->owner.empty())
    throw Error(
        Fault::usage, "runs.delete",
        fmt::format("'{}' has the states of the run '{}'", file.string(), found->owner.string()),
        fmt::format("to remove both: ferry runs delete {}", found->owner.string()));
  if (found->run.empty())
    throw Error(Fault::usage, "runs.delete",
                fmt::format("'{}' does not say that it is a run's: no store, a damaged one, or "
                            "made by an older Ferry",
                            file.string()),
                "look at it, and remove it yourself");
  if (is_sure) runs::remove_store_files({found->file});
  return {{found->file, "of states that no known run has", found->n_bytes}};
}

std::vector<Removed> delete_run(const fs::path& run, bool is_sure) {
  const service::RunRemains remains = service::remains_of(run);
  if (is_sure) service::delete_run(run);
  std::vector<Removed> all = {{run, "of settings, checkpoints and results", remains.run_bytes}};
  for (const fs::path& file : remains.store_files)
    all.push_back({file, "of states, all files of the run together", remains.store_bytes});
  for (const fs::path& file : remains.unproved_files)
    all.push_back({.path = file, .what = "", .stays = true});
  return all;
}

}  // namespace

void list_stores(std::span<const std::string> directories, bool wants_json) {
  const std::vector<fs::path> known = runs::known_runs();
  Directories places(directories.begin(), directories.end());
  for (const fs::path& place : places)
    if (!fs::is_directory(place))
      throw Error(Fault::usage, "runs.stores", fmt::format("'{}' is no directory", place.string()),
                  "name one on a drive of nvme_path");
  if (places.empty()) {
    places = runs::store_directories_of(known);
    for (fs::path& place : nvme_directories_of_environment())
      places.push_back(std::move(place));
  }
  const std::vector<FoundStore> stores = runs::find_stores(places, known);
  if (!wants_json) return print_stores(stores);
  ordered_json all = ordered_json::array();
  for (const FoundStore& store : stores)
    all.push_back({{"file", store.file.string()},
                   {"bytes", store.n_bytes},
                   {"run", store.run},
                   {"directory", store.owner.string()},
                   {"state", state_of(store)}});
  print_run_json(all);
}

void delete_remains(const std::string& word, bool is_sure, bool wants_json) {
  const bool is_file = fs::path(word).extension() == runs::kStoreExtension && fs::exists(word);
  const std::vector<Removed> all =
      is_file ? delete_file(word, is_sure) : delete_run(runs::find_run(word), is_sure);
  if (wants_json) {
    ordered_json out = {{"removed", is_sure}, {"paths", ordered_json::array()}};
    out["kept"] = ordered_json::array();
    for (const Removed& removed : all)
      if (removed.stays)
        out["kept"].push_back(removed.path.string());
      else
        out["paths"].push_back({{"path", removed.path.string()}, {"bytes", removed.n_bytes}});
    return print_run_json(out);
  }
  for (const Removed& removed : all)
    ferry::print(
        removed.stays
            ? fmt::format("{}: stays, for it does not say that it is of this run's states\n",
                          removed.path.string())
            : fmt::format("{}: {} {}{}\n", removed.path.string(), format_bytes(removed.n_bytes),
                          removed.what, is_sure ? ", removed" : ""));
  if (!is_sure) fmt::print("nothing was removed: say --yes for that\n");
}

}  // namespace ferry::cli
