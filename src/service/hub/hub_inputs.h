#pragma once
// Models and data that settings name as a hub does are brought to this machine before they are
// read: for the commands, and for the app's pages. What is here already is taken as it is, without
// the network. In a thread of the caller's; the app runs it in a worker.
//
//   HubModel model("org/name", {.tell = ..., .progress = ..., .is_cancelled = ...});
//   model.look();                        // its commit, its files and config.json: some kilobytes
//   show(model.summary());               // "1.2 GB in 1 file, 212 GB free"
//   const auto directory = model.fetch();  // all of it; throws hub::Cancelled where one has enough

#include <filesystem>
#include <optional>
#include <string>

#include "src/config/config.h"
#include "src/files/hf/hf_config.h"
#include "src/files/hub/dataset_choice.h"
#include "src/files/hub/hub_client.h"
#include "src/files/hub/model_files.h"

namespace ferry::service {

class HubModel {
 public:
  /** `name`: "org/name", "org/name@revision" or a name that is known. Throws Error(usage) for what
   * can be none, Error(data) for one of a family that is not trained. */
  explicit HubModel(const std::string& name, hub::Talk talk = {});

  /** Finds the commit and lists the files. Throws Error: no network, no such repository. */
  void open();
  /** open() if need be; fetches and judges config.json. Throws Error also where there is no right
   * to read it, or it is no model that Ferry trains. */
  void look();
  const hub::RepoName& repo() const { return client_.repo(); }
  const std::string& commit() const { return client_.tree().commit; }
  /** config.json, after look(); not of an adapter. */
  const HfConfig& config() const { return *config_; }
  /** After look(), of an adapter the name of its model as its author gave it. */
  const std::optional<std::string>& base_model() const { return base_model_; }
  /** Of all files that a training needs; those of its weights are shards. */
  hub::FetchSize size() const { return size_; }
  int64_t n_shards() const { return n_shards_; }
  /** "15.0 GB in 4 shards, 212 GB free". */
  std::string summary() const;

  /** Brings what tokenizing takes. */
  void fetch_small();
  /** Brings all; the model's directory. Throws Error, hub::Cancelled. */
  std::filesystem::path fetch();

 private:
  hub::HubClient client_;
  bool is_open_ = false;
  std::optional<std::string> index_;
  std::optional<HfConfig> config_;
  std::optional<std::string> base_model_;
  std::vector<hub::RemoteFile> files_;
  hub::FetchSize size_;
  int64_t n_shards_ = 0;
};

/** A data set of a hub, in the same steps. */
class HubDataset {
 public:
  /** `name`: "org/name[@revision][:config][:split]". Throws Error(usage) for what can be none. */
  explicit HubDataset(const std::string& name, hub::Talk talk = {});

  /** As HubModel's. */
  void open();
  /** open() if need be; reads README.md and chooses. Throws Error. */
  void look();
  /** Configuration and split that the name means, those that there are, and the files. */
  const hub::DatasetChoice& choice() const { return choice_; }
  hub::FetchSize size() const { return client_.size_of(choice_.files); }
  /** "split train of configuration default: 12.3 MB in 2 files, 212 GB free". */
  std::string summary() const;
  const hub::RepoName& repo() const { return client_.repo(); }
  const std::string& commit() const { return client_.tree().commit; }
  /** Throws Error, hub::Cancelled. */
  std::filesystem::path fetch();

 private:
  hub::DatasetName name_;
  hub::HubClient client_;
  bool is_open_ = false;
  hub::DatasetChoice choice_;
};

/** What a command reads of its model. */
enum class ModelNeed : uint8_t {
  shape,    ///< config.json, or a name whose shape is known
  tokens,   ///< the tokenizer, too
  weights,  ///< all
};

/** Brings what the settings name and is not here: the model, as far as it is needed, and the data
 * sets. Before large files: what there is is judged, and with `must_fit` the run is planned, so
 * that nothing is fetched in vain. Throws Error, hub::Cancelled. */
void provide_inputs(const config::Config& config,
                    ModelNeed need,
                    bool must_fit,
                    const hub::Talk& talk);

/** "15.0 GB", "1.2 MB": as hubs count. */
std::string decimal_bytes(int64_t n_bytes);

}  // namespace ferry::service
