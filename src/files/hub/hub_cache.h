#pragma once
// The cache that Hugging Face's tools and Ferry share: which commit a revision is, which files a
// repository has, where they lie. What makes a file whole for every reader is that its name in
// snapshots/ leads to something, so that name is made last. Nothing here asks the network.
//
//   CACHE/models--org--name/  blobs/<etag>  refs/<revision>  snapshots/<commit>/<file>
//   trees/<commit>.json  .no_exist/<commit>/<file>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/files/hub/hub_names.h"

namespace ferry::hub {

/** A file of a repository, as the hub lists it. */
struct RemoteFile {
  std::string path;
  int64_t n_bytes = 0;
  std::string blob_id;   ///< SHA-1 of git's form of it: of a large file's pointer
  std::string sha256;    ///< of a large file's bytes; empty for small ones
  std::string xet_hash;  ///< kept for other readers of the cache

  /** What the file is called in blobs/, and the sum that its bytes must have. */
  const std::string& etag() const { return sha256.empty() ? blob_id : sha256; }
};

/** All files of a repository at one commit, sorted by path. */
struct RepoTree {
  std::string commit;
  std::vector<RemoteFile> files;

  const RemoteFile* find(std::string_view path) const;
};

class RepoCache {
 public:
  RepoCache(const std::filesystem::path& cache, const RepoName& repo);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path snapshot(std::string_view commit) const {
    return path_ / "snapshots" / commit;
  }
  std::filesystem::path blob(std::string_view etag) const { return path_ / "blobs" / etag; }
  /** Where the locks of this repository are. */
  std::filesystem::path locks() const;
  std::filesystem::path lock_file(std::string_view etag) const;

  /** The commit that a revision was when it was fetched last. */
  std::optional<std::string> commit_of(std::string_view revision) const;
  /** nullopt where nobody has kept the list, or not in a form that is known. */
  std::optional<RepoTree> read_tree(std::string_view commit) const;
  /** The file is there, and as long as it should be. */
  bool has(std::string_view commit, const RemoteFile& file) const;
  /** Its blob is there, and as long as it should be. */
  bool has_blob(const RemoteFile& file) const;

  /** Makes the directories, and the mark by which backups leave the cache out. */
  void create() const;
  void write_tree(const RepoTree& tree) const;
  void write_ref(std::string_view revision, std::string_view commit) const;
  /** Says that the commit has no such file, so that other tools need not ask. */
  void write_absent(std::string_view commit, std::string_view path) const;
  /** Gives a blob its name in the snapshot: a link, or without links the blob itself, of which
   * other names may know unless `is_new`. */
  void place(std::string_view commit, const RemoteFile& file, bool makes_links, bool is_new) const;
  /** The file system of the cache knows links. */
  bool can_link() const;

 private:
  std::filesystem::path cache_, path_;
  RepoName repo_;
};

/** "models--organisation--name". */
std::string folder_of(const RepoName& repo);

}  // namespace ferry::hub
