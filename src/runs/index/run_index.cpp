#include "src/runs/index/run_index.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/file.h>

#include "src/base/error.h"
#include "src/base/print.h"
#include "src/base/unique_fd.h"
#include "src/files/user_data.h"
#include "src/files/write/atomic_file.h"

namespace ferry::runs {
namespace {

namespace fs = std::filesystem;

constexpr int kPatience_ms = 2000;

/** As others may find it from another directory. */
std::string key_of(const fs::path& run) {
  std::error_code error;
  fs::path path = fs::weakly_canonical(fs::absolute(run, error), error);
  if (!path.has_filename()) path = path.parent_path();
  return path.string();
}

bool is_damage(int code) {
  return code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
}

}  // namespace

void RunIndex::Close::operator()(sqlite3* database) const {
  sqlite3_close(database);
}

fs::path RunIndex::default_file() {
  return user_data_file("runs.db");
}

RunIndex::RunIndex(fs::path file) : file_(std::move(file)) {
  if (file_.empty()) return;
  try {
    make_private_directories(file_.parent_path());
  } catch (const Error&) {  // open() says what it came to
  }
  int code = open();
  if (is_damage(code)) {
    make_anew();
    code = open();
  }
  is_done_without(code);
}

int RunIndex::open() {
  sqlite3* database = nullptr;
  int code = sqlite3_open_v2(file_.c_str(), &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                             nullptr);
  database_.reset(database);
  if (code != SQLITE_OK) return code;
  sqlite3_busy_timeout(database, kPatience_ms);
  execute("PRAGMA synchronous = OFF");  // a power cut may cost the index, waiting costs every start
  // Looked for first: whoever only reads needs no right to write.
  code = execute("SELECT path FROM runs LIMIT 1");
  if (code != SQLITE_ERROR) return code;
  return change("CREATE TABLE IF NOT EXISTS runs (path TEXT PRIMARY KEY) WITHOUT ROWID");
}

/** Another process may be doing the same: one does it, the next finds it done. */
void RunIndex::make_anew() {
  const UniqueFd directory(::open(file_.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory) ::flock(directory.get(), LOCK_EX);
  if (!is_damage(open())) return;
  database_.reset();
  log_line(fmt::format(
      "the index of runs '{}' is damaged and is made anew; runs outside runs/ are known "
      "again once `ferry runs ls DIRECTORY` has seen them",
      file_.string()));
  std::error_code error;
  for (const char* suffix : {"", "-journal", "-wal", "-shm"})
    fs::remove(file_.string() + suffix, error);
}

int RunIndex::execute(const std::string& sql,
                      const std::string& argument,
                      std::vector<std::string>* rows) {
  sqlite3_stmt* prepared = nullptr;
  int code = sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &prepared, nullptr);
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(prepared, sqlite3_finalize);
  if (code != SQLITE_OK) return code;
  if (!argument.empty())
    sqlite3_bind_text(prepared, 1, argument.c_str(), static_cast<int>(argument.size()),
                      SQLITE_TRANSIENT);
  while ((code = sqlite3_step(prepared)) == SQLITE_ROW)
    if (rows)
      rows->emplace_back(reinterpret_cast<const char*>(sqlite3_column_text(prepared, 0)),
                         static_cast<size_t>(sqlite3_column_bytes(prepared, 0)));
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

int RunIndex::change(const std::string& sql, const std::string& argument) {
  // At once as a writer: two readers that want to become writers would only wait for each other.
  int code = execute("BEGIN IMMEDIATE");
  if (code == SQLITE_OK) code = execute(sql, argument);
  if (code == SQLITE_OK) code = execute("COMMIT");
  return code;
}

bool RunIndex::is_done_without(int code) {
  if (database_ && code == SQLITE_OK) return false;
  if (code != SQLITE_OK)
    log_line(fmt::format("the index of runs '{}' cannot be used: {}; going on without it",
                         file_.string(), sqlite3_errstr(code)));
  database_.reset();
  return true;
}

void RunIndex::add(const fs::path& run) {
  if (!database_) return;
  const std::string key = key_of(run);
  std::vector<std::string> found;
  if (is_done_without(execute("SELECT path FROM runs WHERE path = ?", key, &found))) return;
  if (found.empty()) is_done_without(change("INSERT OR IGNORE INTO runs VALUES (?)", key));
}

std::vector<fs::path> RunIndex::all() {
  std::vector<fs::path> there;
  std::vector<std::string> known;
  if (!database_ || is_done_without(execute("SELECT path FROM runs ORDER BY path", {}, &known)))
    return there;
  for (const std::string& path : known) {
    std::error_code error;
    if (fs::is_regular_file(fs::path(path) / "run.json", error))
      there.emplace_back(path);
    else if (database_ && fs::is_directory(fs::path(path).parent_path(), error))
      is_done_without(change("DELETE FROM runs WHERE path = ?", path));
  }
  return there;
}

}  // namespace ferry::runs
