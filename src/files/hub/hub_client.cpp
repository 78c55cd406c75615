#include "src/files/hub/hub_client.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/files/hub/file_fetch.h"
#include "src/files/hub/hub_errors.h"
#include "src/files/plain_file.h"

namespace ferry::hub {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kFile_bytes_max = int64_t{1} << 50;
/** Above it the hub serves no file by HTTP. */
constexpr int64_t kHttp_bytes_max = 50'000'000'000;

std::string plural(RepoKind kind) {
  return kind == RepoKind::model ? "models" : "datasets";
}

/** `<URL>; rel="next"` of a Link header. */
std::string next_page(const std::string& link) {
  for (size_t at = 0; (at = link.find('<', at)) != std::string::npos;) {
    const size_t end = link.find('>', at);
    if (end == std::string::npos) return {};
    const size_t comma = std::min(link.find(",", end), link.size());
    if (link.substr(end, comma - end).find("rel=\"next\"") != std::string::npos)
      return link.substr(at + 1, end - at - 1);
    at = end;
  }
  return {};
}

bool is_sum(const std::string& text, size_t n_digits) {
  return text.size() == n_digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

RemoteFile file_of(const JsonReader& entry) {
  constexpr size_t kSha1_digits = 40, kSha256_digits = 64;
  RemoteFile file = {.path = entry.text("path"),
                     .n_bytes = entry.integer("size", 0, kFile_bytes_max),
                     .blob_id = entry.text("oid"),
                     .sha256 = {},
                     .xet_hash = entry.text("xetHash", "")};
  if (!is_safe_path(file.path)) entry.at("path").refuse("a path below the repository");
  if (const auto lfs = entry.find("lfs")) {
    file.sha256 = lfs->text("oid");
    file.n_bytes = lfs->integer("size", 0, kFile_bytes_max);
    if (!is_sum(file.sha256, kSha256_digits)) lfs->refuse("a SHA-256 sum");
  }
  if (!is_sum(file.blob_id, kSha1_digits)) entry.at("oid").refuse("a SHA-1 sum");
  if (!file.xet_hash.empty() && !is_sum(file.xet_hash, kSha256_digits)) file.xet_hash.clear();
  return file;
}

int64_t free_bytes_at(fs::path path) {
  std::error_code error;
  while (!fs::exists(path, error) && path.has_relative_path())
    path = path.parent_path();
  struct statvfs facts {};
  if (::statvfs(path.empty() ? "." : path.c_str(), &facts) != 0) return INT64_MAX;
  return static_cast<int64_t>(facts.f_bavail) * static_cast<int64_t>(facts.f_frsize);
}

Error not_cached(const RepoName& repo, const HubSettings& settings) {
  return Error(Fault::data, "hub.fetch",
               fmt::format("'{}' is not in {}, and the network is not to be used (HF_HUB_OFFLINE)",
                           repo.text(), settings.cache.string()),
               "unset HF_HUB_OFFLINE to fetch it");
}

}  // namespace

HubClient::HubClient(HubSettings settings, RepoName repo, Talk talk)
    : settings_(std::move(settings)),
      repo_(std::move(repo)),
      talk_(std::move(talk)),
      cache_(settings_.cache, repo_) {
  if (settings_.cache.empty())
    throw Error(Fault::usage, "hub.cache",
                "there is no home directory, and so no place for a cache",
                "set HF_HUB_CACHE to a directory");
}

bool HubClient::open_from_cache() {
  const auto commit = cache_.commit_of(repo_.revision);
  auto tree = commit ? cache_.read_tree(*commit) : std::nullopt;
  if (tree) tree_ = std::move(*tree);
  return tree.has_value();
}

void HubClient::open() {
  // What a commit has never changes.
  if ((settings_.is_offline || is_commit(repo_.revision)) && open_from_cache()) return;
  if (settings_.is_offline) throw not_cached(repo_, settings_);
  HttpSession session(settings_, talk_.is_cancelled);
  ask_for_commit(session);
  if (auto kept = cache_.read_tree(tree_.commit))
    tree_ = std::move(*kept);
  else
    ask_for_tree(session);
}

std::string HubClient::api_url() const {
  return fmt::format("{}/api/{}/{}", settings_.endpoint, plural(repo_.kind), repo_.id);
}

std::string HubClient::file_url(const RemoteFile& file) const {
  return fmt::format("{}/{}{}/resolve/{}/{}", settings_.endpoint,
                     repo_.kind == RepoKind::dataset ? "datasets/" : "", repo_.id, tree_.commit,
                     encoded(file.path, /*keeps_slashes=*/true));
}

void HubClient::pause(const HttpSession& session, std::chrono::milliseconds wait) const {
  constexpr std::chrono::milliseconds kGlance(50);
  const auto end = std::chrono::steady_clock::now() + wait;
  while (std::chrono::steady_clock::now() < end) {
    session.check_cancelled();
    std::this_thread::sleep_for(std::min(kGlance, wait));
  }
}

HttpAnswer HubClient::ask(HttpSession& session, const std::string& url) {
  const Asked asked = {settings_, repo_, {}};
  for (Retries retries(settings_);;) {
    HttpAnswer answer = session.get({.url = url});
    if (const std::string warning = answer.header("x-hf-warning"); !warning.empty() && talk_.tell) {
      const size_t end = std::min(warning.find(';'), warning.size());
      if (warned_.insert(warning.substr(0, end)).second)
        talk_.tell(fmt::format("the hub says: {}", warning));
    }
    if (answer.is_success()) return answer;
    const auto wait = retries.wait_after(answer);
    if (!wait) throw_refusal(answer, asked);
    constexpr std::chrono::seconds kWorthSaying(5);
    if (*wait >= kWorthSaying && talk_.tell)
      talk_.tell(fmt::format("the hub asks to wait {} s",
                             std::chrono::duration_cast<std::chrono::seconds>(*wait).count()));
    pause(session, *wait);
  }
}

void HubClient::ask_for_commit(HttpSession& session) {
  const std::string url = fmt::format("{}/revision/{}", api_url(), encoded(repo_.revision));
  const HttpAnswer answer = ask(session, url);
  const Asked asked = {settings_, repo_, {}};
  try {
    tree_.commit = JsonReader::parse(answer.body, {url, "hub.fetch", ""}).text("sha");
  } catch (const Error&) {
    throw_no_hub(asked, "it names no commit");
  }
  if (!is_commit(tree_.commit)) throw_no_hub(asked, "it names no commit");
}

void HubClient::ask_for_tree(HttpSession& session) {
  constexpr int kPages_max = 10'000;
  std::string url = fmt::format("{}/tree/{}?recursive=True&expand=False", api_url(), tree_.commit);
  std::set<std::string> paths;
  for (int n_pages = 0; !url.empty(); ++n_pages) {
    const Asked asked = {settings_, repo_, {}};
    if (n_pages == kPages_max) throw_no_hub(asked, "its list of files does not end");
    const HttpAnswer answer = ask(session, url);
    const auto page = JsonReader::parse(answer.body, {url, "hub.fetch", "is HF_ENDPOINT a hub?"});
    if (!page.is_list()) throw_no_hub(asked, "it gives no list of files");
    for (size_t i = 0; i < page.size(); ++i) {
      if (page.at(i).text("type") != "file") continue;
      RemoteFile file = file_of(page.at(i));
      if (!paths.insert(file.path).second) throw_no_hub(asked, "its list has a file twice");
      tree_.files.push_back(std::move(file));
    }
    std::string next = next_page(answer.header("link"));
    if (next.starts_with('/')) next = settings_.endpoint + next;
    url = std::move(next);
  }
  std::ranges::sort(tree_.files, {}, &RemoteFile::path);
}

bool HubClient::has(const std::vector<RemoteFile>& files) const {
  return std::ranges::all_of(
      files, [&](const RemoteFile& file) { return cache_.has(tree_.commit, file); });
}

FetchSize HubClient::size_of(const std::vector<RemoteFile>& files) const {
  FetchSize size = {.free_bytes = free_bytes_at(settings_.cache)};
  std::set<std::string> counted;
  for (const RemoteFile& file : files) {
    if (!counted.insert(file.etag()).second) continue;
    size.n_bytes += file.n_bytes;
    if (cache_.has(tree_.commit, file) || cache_.has_blob(file)) continue;
    ++size.n_files_missing;
    std::error_code error;
    const auto partial = fs::file_size(partial_file(cache_, file), error);
    const int64_t n_here = error ? 0 : std::min(static_cast<int64_t>(partial), file.n_bytes);
    size.n_missing_bytes += file.n_bytes - n_here;
  }
  return size;
}

void HubClient::check_possible(const std::vector<RemoteFile>& files) const {
  for (const RemoteFile& file : files)
    if (file.n_bytes > kHttp_bytes_max && !cache_.has(tree_.commit, file) && !cache_.has_blob(file))
      throw Error(Fault::data, "hub.fetch",
                  fmt::format("'{}' of '{}' has {}, and hubs serve no file above 50 GB by HTTP",
                              file.path, repo_.id, format_bytes(file.n_bytes)),
                  fmt::format("fetch it with Hugging Face's own tool: hf download {}", repo_.id));
  const FetchSize size = size_of(files);
  constexpr int64_t kSpare_bytes = 16 * kMiB;  // lists, locks, directories
  if (size.n_missing_bytes > 0 && size.free_bytes - kSpare_bytes < size.n_missing_bytes)
    throw Error(Fault::machine, "hub.fetch",
                fmt::format("'{}' takes {} more, and {} has {} free", repo_.text(),
                            format_bytes(size.n_missing_bytes), settings_.cache.string(),
                            format_bytes(size.free_bytes)),
                "free some space, or set HF_HUB_CACHE to a directory on another disk");
}

void HubClient::fetch(const std::vector<RemoteFile>& files) {
  std::vector<const RemoteFile*> missing;
  std::set<std::string> etags;
  int64_t n_bytes = 0;
  for (const RemoteFile& file : files) {
    n_bytes += file.n_bytes;
    if (!cache_.has(tree_.commit, file)) missing.push_back(&file);
  }
  if (missing.empty()) {
    try {
      if (!settings_.is_offline) cache_.write_ref(repo_.revision, tree_.commit);
    } catch (const Error&) {  // a cache that nobody may write to serves as it is
    }
    return;
  }
  if (settings_.is_offline)
    throw Error(Fault::data, "hub.fetch",
                fmt::format("of '{}' only a part is in {}: '{}' is not, and the network is not to "
                            "be used (HF_HUB_OFFLINE)",
                            repo_.text(), settings_.cache.string(), missing.front()->path),
                "unset HF_HUB_OFFLINE to fetch the rest");
  check_possible(files);
  cache_.create();
  cache_.write_tree(tree_);  // first: it tells other readers which files a half has
  const bool makes_links = settings_.makes_links && cache_.can_link();
  // The largest first: the last one to end is then short.
  std::ranges::stable_sort(missing, std::ranges::greater(), &RemoteFile::n_bytes);

  int64_t n_missing_bytes = 0;
  for (const RemoteFile* file : missing)
    n_missing_bytes += file->n_bytes;
  std::atomic<int64_t> n_done{n_bytes - n_missing_bytes};
  std::atomic<size_t> next{0}, n_ended{0};
  std::atomic<bool> has_failed{false};
  std::mutex mutex;
  std::exception_ptr failure;
  const IsCancelled ends = [&] {
    return has_failed.load() || (talk_.is_cancelled && talk_.is_cancelled());
  };
  const auto work = [&] {
    try {
      HttpSession session(settings_, ends);
      for (size_t i = 0; (i = next.fetch_add(1)) < missing.size();)
        FileFetch(*this, session, *missing[i], n_done).run(makes_links);
    } catch (...) {
      const std::scoped_lock lock(mutex);
      if (!failure) failure = std::current_exception();
      has_failed = true;
    }
    ++n_ended;
  };
  {
    constexpr size_t kAtOnce = 4;
    constexpr std::chrono::milliseconds kGlance(20);
    std::vector<std::jthread> workers;
    const size_t n_workers = std::min(kAtOnce, missing.size());
    for (size_t i = 0; i < n_workers; ++i)
      workers.emplace_back(work);
    while (n_ended.load() < n_workers) {
      std::this_thread::sleep_for(kGlance);
      if (talk_.progress) talk_.progress(n_done.load(), n_bytes);
    }
  }
  if (failure) std::rethrow_exception(failure);
  if (talk_.progress) talk_.progress(n_bytes, n_bytes);
  cache_.write_ref(repo_.revision, tree_.commit);
}

std::string HubClient::text_of(const RemoteFile& file) {
  const fs::path path = snapshot() / file.path;
  if (!cache_.has(tree_.commit, file)) {
    HubClient quiet(*this);
    quiet.talk_.progress = nullptr;
    quiet.fetch({file});
  }
  return read_text_file(path);
}

}  // namespace ferry::hub
