#include "src/files/hub/hub_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/files/plain_file.h"
#include "src/files/write/atomic_file.h"
#include "src/files/write/file_lock.h"
#include "src/files/write/write_error.h"

namespace ferry::hub {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kTree_version = 1;
constexpr int64_t kFile_bytes_max = int64_t{1} << 50;

constexpr std::string_view kCacheTag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This file is a cache directory tag created by huggingface_hub.\n"
    "# For information about cache directory tags, see:\n"
    "#\thttps://bford.info/cachedir/\n";

bool is_hex(std::string_view text, size_t n_digits) {
  return text.size() == n_digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

/** By its size alone: who wrote it has checked its bytes. */
bool is_there(const fs::path& path, int64_t n_bytes) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return !error && static_cast<int64_t>(size) == n_bytes;
}

RemoteFile file_of(const std::string& path, const JsonReader& about) {
  return {.path = path,
          .n_bytes = about.integer("size", 0, kFile_bytes_max),
          .blob_id = about.text("blob_id"),
          .sha256 = about.text("lfs_sha256", ""),
          .xet_hash = about.text("xet_hash", "")};
}

/** Another program that keeps the list may be of another mind what stands in it. */
bool is_sound(const RemoteFile& file) {
  constexpr size_t kSha1_digits = 40, kSha256_digits = 64;
  return is_safe_path(file.path) && is_hex(file.blob_id, kSha1_digits) &&
         (file.sha256.empty() || is_hex(file.sha256, kSha256_digits));
}

/** The time in which only this process writes small files and names of a repository. Temporary
 * files in the directory are then leftovers of a process that was killed: they go. */
class Turn {
 public:
  Turn(const fs::path& locks, const fs::path& directory) : lock_(lock_in(locks)) {
    make_directories(directory);
    if (lock_.lock() == FileLock::State::held) remove_temporary_files(directory);
  }

 private:
  static fs::path lock_in(const fs::path& locks) {
    make_directories(locks);
    return locks / "names.lock";
  }

  FileLock lock_;
};

/** The way from a file's directory in the snapshot up to the repository. */
fs::path up_from(std::string_view path) {
  fs::path up = "../..";  // out of snapshots/<commit>
  for (const char c : path)
    if (c == '/') up /= "..";
  return up;
}

}  // namespace

const RemoteFile* RepoTree::find(std::string_view path) const {
  const auto at = std::ranges::lower_bound(files, path, {}, &RemoteFile::path);
  return at != files.end() && at->path == path ? &*at : nullptr;
}

std::string folder_of(const RepoName& repo) {
  std::string folder =
      fmt::format("{}--{}", repo.kind == RepoKind::model ? "models" : "datasets", repo.id);
  if (const size_t slash = folder.find('/'); slash != std::string::npos)
    folder.replace(slash, 1, "--");
  return folder;
}

RepoCache::RepoCache(const fs::path& cache, const RepoName& repo)
    : cache_(cache), path_(cache / folder_of(repo)), repo_(repo) {}

fs::path RepoCache::lock_file(std::string_view etag) const {
  return locks() / fmt::format("{}.lock", etag);
}

fs::path RepoCache::locks() const {
  return cache_ / ".locks" / folder_of(repo_);
}

std::optional<std::string> RepoCache::commit_of(std::string_view revision) const {
  if (!is_safe_path(revision)) return std::nullopt;
  if (is_commit(revision)) return std::string(revision);
  const fs::path file = path_ / "refs" / revision;
  if (!path_exists(file) || path_is_directory(file)) return std::nullopt;
  constexpr size_t kLongest_bytes = 256;
  std::string commit = read_text_file(file, kLongest_bytes);
  while (!commit.empty() && (commit.back() == '\n' || commit.back() == '\r'))
    commit.pop_back();
  return is_commit(commit) ? std::optional(commit) : std::nullopt;
}

std::optional<RepoTree> RepoCache::read_tree(std::string_view commit) const {
  const fs::path file = path_ / "trees" / fmt::format("{}.json", commit);
  if (!is_commit(commit) || !path_exists(file)) return std::nullopt;
  try {
    const auto json = JsonReader::parse(read_text_file(file), {file.string(), "hub.cache", ""});
    if (json.integer("format_version", 0, INT32_MAX) != kTree_version) return std::nullopt;
    RepoTree tree = {.commit = std::string(commit), .files = {}};
    for (const auto& [path, about] : json.at("files").fields()) {
      tree.files.push_back(file_of(path, about));
      if (!is_sound(tree.files.back())) return std::nullopt;
    }
    std::ranges::sort(tree.files, {}, &RemoteFile::path);
    return tree;
  } catch (const Error&) {  // damaged: the list is asked for again
    return std::nullopt;
  }
}

bool RepoCache::has(std::string_view commit, const RemoteFile& file) const {
  return is_there(snapshot(commit) / file.path, file.n_bytes);
}

bool RepoCache::has_blob(const RemoteFile& file) const {
  return is_there(blob(file.etag()), file.n_bytes);
}

void RepoCache::create() const {
  make_directories(path_ / "blobs");
  make_directories(path_ / "snapshots");
  make_directories(locks());
  if (path_exists(cache_ / "CACHEDIR.TAG")) return;
  const Turn turn(cache_ / ".locks", cache_);
  write_text_file(cache_ / "CACHEDIR.TAG", kCacheTag);
}

void RepoCache::write_tree(const RepoTree& tree) const {
  nlohmann::ordered_json files = nlohmann::ordered_json::object();
  for (const RemoteFile& file : tree.files) {
    nlohmann::ordered_json about = {{"size", file.n_bytes}, {"blob_id", file.blob_id}};
    if (!file.sha256.empty()) {
      about["lfs_sha256"] = file.sha256;
      about["lfs_size"] = file.n_bytes;
    }
    if (!file.xet_hash.empty()) about["xet_hash"] = file.xet_hash;
    files[file.path] = about;
  }
  const nlohmann::ordered_json json = {{"format_version", kTree_version}, {"files", files}};
  const Turn turn(locks(), path_ / "trees");
  write_text_file(path_ / "trees" / fmt::format("{}.json", tree.commit),
                  json.dump(1, ' ', /*ensure_ascii=*/true));
}

void RepoCache::write_ref(std::string_view revision, std::string_view commit) const {
  if (is_commit(revision)) return;
  const fs::path file = path_ / "refs" / revision;
  if (commit_of(revision) == commit) return;
  const Turn turn(locks(), file.parent_path());
  write_text_file(file, commit);
}

void RepoCache::write_absent(std::string_view commit, std::string_view path) const {
  const fs::path file = path_ / ".no_exist" / commit / path;
  if (path_exists(file)) return;
  const Turn turn(locks(), file.parent_path());
  write_text_file(file, "");
}

bool RepoCache::can_link() const {
  const fs::path blobs = path_ / "blobs";
  const Turn turn(locks(), blobs);
  const fs::path probe = temporary_name(blobs / "link");
  std::error_code error;
  fs::create_symlink("nowhere", probe, error);
  if (error) return false;
  fs::remove(probe, error);
  return true;
}

void RepoCache::place(std::string_view commit,
                      const RemoteFile& file,
                      bool makes_links,
                      bool is_new) const {
  const fs::path to = snapshot(commit) / file.path, from = blob(file.etag());
  const Turn turn(locks(), to.parent_path());
  std::error_code error;
  if (!makes_links && !is_new) return copy_file_atomically(from, to);
  if (!makes_links) {
    fs::rename(from, to, error);
    if (error) throw_write_error(to, "made", error.value());
    return sync_directory(to.parent_path());
  }
  // Beside it and renamed: where the name leads to a blob of another form, nobody sees none.
  const fs::path temporary = temporary_name(to);
  fs::remove(temporary, error);  // where no lock is known, an earlier process may have left it
  fs::create_symlink(up_from(file.path) / "blobs" / file.etag(), temporary, error);
  if (!error) fs::rename(temporary, to, error);
  if (error) throw_write_error(to, "made", error.value());
}

}  // namespace ferry::hub
