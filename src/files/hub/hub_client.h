#pragma once
// Fetches files of a repository into the cache that Hugging Face's tools share: lists them, asks
// for those that are wanted and not here, checks each byte by the hub's own sums, and gives a file
// its name last. A process that is killed leaves files that the next one goes on with.
//
//   HubClient client(settings_of_environment(), repo, {.tell = log_line});
//   client.open();                                // which commit, which files
//   client.fetch(files_of_model(client.tree(), ...));
//   HfDirectory::open(client.snapshot());

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "src/files/hub/http.h"
#include "src/files/hub/hub_cache.h"
#include "src/files/hub/hub_settings.h"

namespace ferry::hub {

/** What the caller hears and says while something is fetched, all in the caller's own thread but
 * is_cancelled, which any thread asks. */
struct Talk {
  std::function<void(const std::string&)> tell;
  /** Bytes of the files that were asked for, those that were here included. */
  std::function<void(int64_t done, int64_t total)> progress;
  IsCancelled is_cancelled;
};

/** How much there is to fetch. */
struct FetchSize {
  int64_t n_bytes = 0;          ///< of all the files
  int64_t n_missing_bytes = 0;  ///< of them still to come
  int64_t n_files_missing = 0;
  int64_t free_bytes = 0;  ///< of the file system of the cache
};

class HubClient {
 public:
  /** Throws Error(usage) where there is no place for a cache. */
  HubClient(HubSettings settings, RepoName repo, Talk talk = {});

  /** Finds the commit of the revision and its files: by the cache alone for a commit whose list is
   * kept, or where the settings say offline; else by asking. Throws Error, Cancelled. */
  void open();
  /** The commit and files of the revision as the cache has them; false: it does not. */
  bool open_from_cache();

  const RepoName& repo() const { return repo_; }
  const RepoTree& tree() const { return tree_; }
  const RepoCache& cache() const { return cache_; }
  std::filesystem::path snapshot() const { return cache_.snapshot(tree_.commit); }

  bool has(const std::vector<RemoteFile>& files) const;
  FetchSize size_of(const std::vector<RemoteFile>& files) const;
  /** Brings those that are not here, several at once. Throws Error before the first byte where one
   * cannot be had or the disk has too little room; and as open(). */
  void fetch(const std::vector<RemoteFile>& files);
  /** The text of a small file, fetched if need be. */
  std::string text_of(const RemoteFile& file);

 private:
  std::string api_url() const;
  std::string file_url(const RemoteFile& file) const;
  HttpAnswer ask(HttpSession& session, const std::string& url);
  void pause(const HttpSession& session, std::chrono::milliseconds wait) const;
  void ask_for_commit(HttpSession& session);
  void ask_for_tree(HttpSession& session);
  void check_possible(const std::vector<RemoteFile>& files) const;

  friend class FileFetch;

  HubSettings settings_;
  RepoName repo_;
  Talk talk_;
  RepoCache cache_;
  RepoTree tree_;
  std::set<std::string> warned_;  // topics of the hub's own warnings
};

}  // namespace ferry::hub
