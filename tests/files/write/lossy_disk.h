#pragma once
// A disk that lost its power: made of a log (disk_log.h), it has everything that was synced, and of
// everything else any part in any order, as the drive, the page cache and the journal please.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/files/write/disk_log.h"

namespace ferry::test {

/** The calls of a log. Throws std::runtime_error where it cannot be read or is torn. */
class DiskLog {
 public:
  struct Call {
    DiskRecord record;
    std::string path, other;
    std::vector<std::byte> bytes;
  };
  DiskLog(const std::filesystem::path& file, std::filesystem::path root);

  const std::filesystem::path& root() const { return root_; }
  const std::vector<Call>& calls() const { return calls_; }

 private:
  std::filesystem::path root_;
  std::vector<Call> calls_;
};

/** A disk that took one call after another. Files and directories that were there before the log
 * began are not on it: begin with an empty root. */
class LossyDisk {
 public:
  explicit LossyDisk(const DiskLog& log);
  ~LossyDisk();

  /** The first `n` calls of the log have happened; n only grows. */
  void play_to(size_t n);
  /** Writes what a cut of power at this moment leaves under `to`, which must be new or empty: the
   * root and what is left in it. */
  void cut_power(const std::filesystem::path& to, std::mt19937_64& dice) const;

 private:
  struct File;
  struct Directory;
  struct Node;
  using NodePtr = std::shared_ptr<Node>;
  /** A change of a name in a directory: a whole entry changes at once. */
  struct EntryChange {
    DiskCall call;
    std::string name, other;
    NodePtr node, other_node;
  };

  void play(const DiskLog::Call& call);
  NodePtr find(const std::string& path) const;
  /** The directory of the path, and the last name in it. */
  std::pair<NodePtr, std::string> parent_of(const std::string& path) const;
  static void apply(const EntryChange& change, std::map<std::string, NodePtr>& entries);
  static void change(Node& directory, EntryChange change);
  static void leave(const Node& node, const std::filesystem::path& to, std::mt19937_64& dice);

  const DiskLog& log_;
  NodePtr root_;
  std::map<int, NodePtr> open_;
  size_t n_played_ = 0;
};

}  // namespace ferry::test
