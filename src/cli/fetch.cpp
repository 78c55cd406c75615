// ferry fetch: brings a model or a data set of a hub into the cache that Hugging Face's tools
// share, or brings what is there up to date.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/print.h"
#include "src/cli/commands.h"
#include "src/cli/inputs.h"
#include "src/files/plain_file.h"

namespace ferry::cli {
namespace {

constexpr std::string_view kFetchUsage =
    "usage: ferry fetch [--json] NAME ... [--dataset NAME ...]\n\n"
    "Brings models of the Hugging Face hub to this machine: ORGANISATION/NAME, or\n"
    "ORGANISATION/NAME@REVISION; behind --dataset data sets: ORGANISATION/NAME, with :CONFIG and\n"
    ":SPLIT where it has several. What is here is brought up to date. The files lie where Hugging\n"
    "Face's own tools look for them, and what those have fetched is not fetched again. With an\n"
    "adapter its model comes, too.\n\n"
    "HF_TOKEN is for repositories that are not public, HF_ENDPOINT names another hub, "
    "HF_HUB_CACHE\n"
    "another place for the files.\n\n"
    "  ferry fetch HuggingFaceTB/SmolLM2-135M-Instruct\n"
    "  ferry fetch --dataset stanfordnlp/imdb:test\n";

}  // namespace

int run_fetch(Arguments arguments) {
  bool wants_json = false;
  bool are_datasets = false;
  std::vector<std::pair<std::string, bool>> names;  // true: of a data set
  for (const std::string& argument : arguments) {
    if (argument == "--help" || argument == "-h") {
      print(kFetchUsage);
      return 0;
    }
    if (argument == "--json") {
      wants_json = true;
      continue;
    }
    if (argument == "--dataset" || argument == "--model") {
      are_datasets = argument == "--dataset";
      continue;
    }
    if (argument.starts_with('-'))
      throw Error(Fault::usage, "cli.option",
                  fmt::format("ferry fetch has no option '{}'", argument),
                  "ferry fetch --help shows how it is called");
    names.emplace_back(argument, are_datasets);
  }
  if (names.empty())
    throw Error(Fault::usage, "cli.fetch", "no name is given",
                "for example: ferry fetch HuggingFaceTB/SmolLM2-135M-Instruct");
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name = names[i].first;
    const bool is_dataset = names[i].second;
    std::filesystem::path directory;
    std::optional<std::string> base;  // of an adapter
    // Both have the same steps.
    const auto bring = [&](auto&& source, const hub::Talk& talk) {
      source.look();
      talk.tell(fmt::format("{}: {}", name, source.summary()));
      directory = source.fetch();
      if constexpr (requires { source.base_model(); }) base = source.base_model();
      all.push_back({{"name", source.repo().id},
                     {"commit", source.commit()},
                     {"directory", directory.string()},
                     {"bytes", source.size().n_bytes}});
    };
    with_progress([&](const hub::Talk& talk) {
      is_dataset ? bring(service::HubDataset(name, talk), talk)
                 : bring(service::HubModel(name, talk), talk);
    });
    if (!wants_json) print(directory.string() + "\n");
    // An adapter is of no use without its model, unless that is a directory here.
    if (base && !path_exists(*base)) names.emplace_back(*base, false);
  }
  if (wants_json) print(all.dump(2) + "\n");
  return 0;
}

}  // namespace ferry::cli
