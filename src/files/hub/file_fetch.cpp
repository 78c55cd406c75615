#include "src/files/hub/file_fetch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "src/base/error.h"
#include "src/files/hub/hub_errors.h"
#include "src/files/write/atomic_file.h"
#include "src/files/write/write_error.h"

namespace ferry::hub {
namespace {

namespace fs = std::filesystem;

Digest digest_of(const RemoteFile& file) {
  return file.sha256.empty() ? Digest::git_blob(file.n_bytes) : Digest::sha256();
}

/** The server gave other bytes than the list promises. */
Error wrong_bytes(const RemoteFile& file, const std::string& what) {
  return Error(
      Fault::data, "hub.fetch",
      fmt::format("what came for '{}' is not the file that the hub promises: {}", file.path, what),
      "nothing of it was kept; try again, and do not trust a proxy or mirror that does "
      "this twice");
}

/** The first byte that "bytes 5-9/10" names. */
std::optional<int64_t> first_of_range(const Headers& headers) {
  const auto found = headers.find("content-range");
  if (found == headers.end() || !found->second.starts_with("bytes ")) return std::nullopt;
  return std::strtoll(found->second.c_str() + std::string_view("bytes ").size(), nullptr, 10);
}

}  // namespace

fs::path partial_file(const RepoCache& cache, const RemoteFile& file) {
  return cache.blob(file.etag() + ".ferry.incomplete");
}

FileFetch::FileFetch(const HubClient& client,
                     HttpSession& session,
                     const RemoteFile& file,
                     std::atomic<int64_t>& n_done)
    : client_(client),
      session_(session),
      file_(file),
      n_done_(n_done),
      partial_(partial_file(client.cache_, file)) {}

void FileFetch::run(bool makes_links) {
  const RepoCache& cache = client_.cache_;
  lock();
  // Another process may have brought it while this one waited.
  if (cache.has(client_.tree_.commit, file_)) {
    n_done_ += file_.n_bytes;
    return;
  }
  if (cache.has_blob(file_)) {
    cache.place(client_.tree_.commit, file_, makes_links, /*is_new=*/false);
    n_done_ += file_.n_bytes;
    return;
  }
  open_partial();
  const bool was_resumed = n_here_ > 0;
  ask_until_whole();
  finish(was_resumed, makes_links);
}

/** Waits for whoever fetches the same file, Python's tools included. Where the file system knows no
 * locks, names that only this file's bytes have keep the cache right. */
void FileFetch::lock() {
  const fs::path path = client_.cache_.lock_file(file_.etag());
  make_directories(path.parent_path());
  constexpr mode_t kMode = 0664;
  lock_ = UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMode));
  if (!lock_) throw_write_error(path, "created", errno);
  while (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return;
    client_.pause(session_, std::chrono::milliseconds(100));
  }
}

/** Takes over what an earlier process left, as far as it can be a beginning of the file. */
void FileFetch::open_partial() {
  constexpr mode_t kMode = 0666;
  fd_ = UniqueFd(::open(partial_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kMode));
  if (!fd_) throw_write_error(partial_, "created", errno);
  digest_ = digest_of(file_);
  // A small file may come packed, which no offset counts in.
  const bool may_resume = !file_.sha256.empty();
  std::array<char, 1 << 16> buffer;
  while (may_resume) {
    session_.check_cancelled();
    const ssize_t n = ::pread(fd_.get(), buffer.data(), buffer.size(), n_here_);
    if (n < 0) throw_write_error(partial_, "read", errno);
    if (n == 0) break;
    add({buffer.data(), static_cast<size_t>(n)});
    if (n_here_ > file_.n_bytes) break;
  }
  if (!may_resume || n_here_ > file_.n_bytes) restart();
}

void FileFetch::restart() {
  if (::ftruncate(fd_.get(), 0) != 0) throw_write_error(partial_, "written", errno);
  n_done_ -= n_here_;
  n_here_ = 0;
  digest_ = digest_of(file_);
}

void FileFetch::add(std::string_view bytes) {
  digest_->add(bytes);
  n_here_ += static_cast<int64_t>(bytes.size());
  n_done_ += static_cast<int64_t>(bytes.size());
}

void FileFetch::begin(int status, const Headers& headers) {
  // From its beginning, whatever was asked for.
  if (status == 200 && n_here_ > 0) restart();
  if (status == 206 && first_of_range(headers) != n_here_) {
    ::unlink(partial_.c_str());
    throw wrong_bytes(file_, "it begins elsewhere than it was asked to");
  }
}

void FileFetch::take(std::string_view bytes) {
  if (n_here_ + static_cast<int64_t>(bytes.size()) > file_.n_bytes) {
    ::unlink(partial_.c_str());
    throw wrong_bytes(file_, fmt::format("it is longer than {} bytes", file_.n_bytes));
  }
  for (std::string_view rest = bytes; !rest.empty();) {
    const auto at = static_cast<off_t>(n_here_) + static_cast<off_t>(bytes.size() - rest.size());
    const ssize_t n = ::pwrite(fd_.get(), rest.data(), rest.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_write_error(partial_, "written", errno);
    rest.remove_prefix(static_cast<size_t>(n));
  }
  add(bytes);
}

/** Asks for what is missing, again where the way breaks off: the hub's link to another server ends
 * after some time, so each try begins at the hub. */
void FileFetch::ask_until_whole() {
  const Asked asked = {client_.settings_, client_.repo_, file_.path};
  const std::string url = client_.file_url(file_);
  const bool is_small = file_.sha256.empty();
  int n_links = 0;
  for (Retries retries(client_.settings_); !is_whole();) {
    const int64_t n_before = n_here_;
    HttpAnswer answer =
        session_.get({.url = url, .first_byte = n_here_, .may_be_packed = is_small, .body = this});
    if (n_here_ > n_before) retries.reset();
    if (answer.is_success()) {
      if (is_whole()) break;
      if (answer.hub_header("x-repo-commit").empty())
        throw_no_hub(asked, "it does not say of which commit a file is");
      answer.status = 0;
      answer.fault = fmt::format("only {} of {} bytes came", n_here_, file_.n_bytes);
    }
    // The end of a link shows as a refusal by the server that it leads to.
    constexpr int kLinks_max = 5;
    const bool is_of_link = answer.url != url && !answer.has_sent_token &&
                            (answer.status == 403 || answer.status == 401);
    if (is_of_link && ++n_links <= kLinks_max) continue;
    if (answer.status == 416 && n_here_ > 0) {  // of another length than what is here
      restart();
      if (++n_links <= kLinks_max) continue;
    }
    if (is_small && n_here_ > 0) restart();
    const auto wait = retries.wait_after(answer);
    if (!wait) throw_refusal(answer, asked);
    client_.pause(session_, *wait);
  }
}

void FileFetch::finish(bool was_resumed, bool makes_links) {
  const std::string sum = digest_->hex();
  if (sum != file_.etag()) {
    restart();
    if (!was_resumed) {
      ::unlink(partial_.c_str());
      throw wrong_bytes(file_, fmt::format("its sum is {} in place of {}", sum, file_.etag()));
    }
    // The fault may lie in what was found here.
    ask_until_whole();
    return finish(/*was_resumed=*/false, makes_links);
  }
  if (::fsync(fd_.get()) != 0 || fd_.close() != 0) throw_write_error(partial_, "written", errno);
  const fs::path blob = client_.cache_.blob(file_.etag());
  std::error_code error;
  fs::rename(partial_, blob, error);
  if (error) throw_write_error(blob, "made", error.value());
  sync_directory(blob.parent_path());
  client_.cache_.place(client_.tree_.commit, file_, makes_links, /*is_new=*/true);
}

}  // namespace ferry::hub
