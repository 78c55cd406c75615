#pragma once
// One file on its way from the hub into the cache. Private to src/files/hub: HubClient runs several
// at once.

#include <atomic>
#include <filesystem>
#include <optional>

#include "src/base/unique_fd.h"
#include "src/files/hub/digest.h"
#include "src/files/hub/hub_client.h"

namespace ferry::hub {

/** What has come of a file, until it is whole. Other readers of the cache do not mind it. */
std::filesystem::path partial_file(const RepoCache& cache, const RemoteFile& file);

class FileFetch : private BodyReceiver {
 public:
  /** `n_done`: counts the bytes that are here, over all files. */
  FileFetch(const HubClient& client,
            HttpSession& session,
            const RemoteFile& file,
            std::atomic<int64_t>& n_done);

  /** Returns when the file has its name. Throws Error, Cancelled. */
  void run(bool makes_links);

 private:
  void begin(int status, const Headers& headers) override;
  void take(std::string_view bytes) override;

  void lock();
  void open_partial();
  void restart();
  void ask_until_whole();
  bool is_whole() const { return n_here_ == file_.n_bytes; }
  void add(std::string_view bytes);
  void finish(bool was_resumed, bool makes_links);

  const HubClient& client_;
  HttpSession& session_;
  const RemoteFile& file_;
  std::atomic<int64_t>& n_done_;
  std::filesystem::path partial_;
  UniqueFd lock_, fd_;
  std::optional<Digest> digest_;
  int64_t n_here_ = 0;
};

}  // namespace ferry::hub
