#pragma once
// Where runs are: $XDG_DATA_HOME/ferry/runs.db (~/.local/share), SQLite, one path a row. Only an
// index: a run is its directory, and losing the file loses nothing but the way to runs outside
// runs/, until those are looked at again. So nothing here throws: a file that is damaged is made
// anew, one that is locked, read-only or not to be had is done without, with one line about it.
// Several processes may use it at once.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

struct sqlite3;

namespace ferry::runs {

class RunIndex {
 public:
  /** The user's own; empty where there is neither XDG_DATA_HOME nor HOME: then it knows nothing. */
  static std::filesystem::path default_file();

  explicit RunIndex(std::filesystem::path file = default_file());

  /** Known from now on. */
  void add(const std::filesystem::path& run);
  /** The known ones that are there. Those whose directory was removed are forgotten; where the one
   * above it is missing too (a disk that is not mounted) they stay known. */
  std::vector<std::filesystem::path> all();

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };

  /** Opens the file and makes its table; SQLite's result code. */
  int open();
  void make_anew();
  /** One statement; each row's only text goes to `rows`. SQLite's result code. */
  int execute(const std::string& sql,
              const std::string& argument = {},
              std::vector<std::string>* rows = nullptr);
  /** One that writes, as a transaction. */
  int change(const std::string& sql, const std::string& argument = {});
  /** Ends the use of the file unless `code` says that all is well; whether it did. */
  bool is_done_without(int code);

  std::filesystem::path file_;
  std::unique_ptr<sqlite3, Close> database_;  ///< null: done without
};

}  // namespace ferry::runs
