#include "src/data/tokens/source_hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/data/content_hash.h"
#include "src/files/plain_file.h"
#include "src/files/write/atomic_file.h"

namespace ferry {
namespace {

namespace stdfs = std::filesystem;
using nlohmann::ordered_json;

FileStamp stamp_of(const stdfs::path& file) {
  const auto stamp = file_stamp(file);
  if (!stamp)
    throw Error(Fault::data, "data.read",
                fmt::format("'{}' cannot be looked at: {}", file.string(),
                            std::generic_category().message(errno)),
                "check the path");
  return *stamp;
}

/** Sorted, so that they are the same on every file system. */
std::vector<stdfs::path> files_in(const stdfs::path& folder) {
  std::vector<stdfs::path> files;
  std::error_code code;
  for (stdfs::recursive_directory_iterator entry(folder, code), end; !code && entry != end;
       entry.increment(code)) {
    std::error_code no_file;
    if (entry->is_regular_file(no_file)) files.push_back(entry->path());
  }
  if (code)
    throw Error(Fault::data, "data.read",
                fmt::format("'{}' cannot be listed: {}", folder.string(), code.message()),
                "check the path");
  std::ranges::sort(files);
  return files;
}

/** Hashes of contents by path, as they were found before. */
class KnownFiles {
 public:
  /** `file`: where they are kept; empty: nowhere. One that cannot be read knows nothing. */
  explicit KnownFiles(stdfs::path file) : file_(std::move(file)) {
    if (file_.empty() || !path_exists(file_)) return;
    ordered_json all;
    if (parse_json(read_text_file(file_), all) || !all.is_object()) return;
    for (const auto& [path, known] : all.items())
      if (const auto entry = read(known)) entries_[path] = *entry;
  }

  std::optional<uint64_t> find(const std::string& path, const FileStamp& stamp) const {
    const auto found = entries_.find(path);
    if (found == entries_.end() || found->second.stamp != stamp) return std::nullopt;
    return found->second.hash;
  }
  void add(const std::string& path, const FileStamp& stamp, uint64_t hash) {
    // The system's clock is coarse: a file that has just changed may change again unseen.
    constexpr auto kSettled = std::chrono::seconds(2);
    const auto changed = std::chrono::system_clock::time_point(
        std::chrono::duration_cast<std::chrono::system_clock::duration>(
            std::chrono::nanoseconds(stamp.changed_ns)));
    if (std::chrono::system_clock::now() - changed > kSettled) entries_[path] = {stamp, hash};
  }
  /** Knowledge that cannot be kept is found again next time. */
  void store() const {
    if (file_.empty()) return;
    ordered_json all = ordered_json::object();
    for (const auto& [path, entry] : entries_)
      all[path] = {entry.stamp.device, entry.stamp.inode, entry.stamp.n_bytes,
                   entry.stamp.changed_ns, entry.hash};
    try {
      make_private_directories(file_.parent_path());
      write_text_file(file_, all.dump(0, ' ', false, ordered_json::error_handler_t::replace) + "\n",
                      kPrivateMode);
    } catch (const Error&) {
    }
  }

 private:
  struct Entry {
    FileStamp stamp;
    uint64_t hash = 0;
  };

  static std::optional<Entry> read(const ordered_json& known) {
    if (!known.is_array() || known.size() != 5 ||
        !std::ranges::all_of(known, [](const auto& part) { return part.is_number_integer(); }))
      return std::nullopt;
    return Entry{{known[0].get<uint64_t>(), known[1].get<uint64_t>(), known[2].get<int64_t>(),
                  known[3].get<int64_t>()},
                 known[4].get<uint64_t>()};
  }

  stdfs::path file_;
  std::map<std::string, Entry> entries_;
};

uint64_t content_hash(const stdfs::path& path,
                      const std::function<void(int64_t n_bytes)>& progress,
                      int64_t n_bytes_before) {
  const PlainFile file = open_plain_file(path);
  std::vector<char> piece(size_t{1} << 20);
  ContentHash hash;
  for (int64_t n_bytes = n_bytes_before;;) {
    const size_t count = read_some(file, path, piece);
    if (count == 0) return hash.value();
    hash.add(std::as_bytes(std::span(piece).first(count)));
    n_bytes += static_cast<int64_t>(count);
    if (progress) progress(n_bytes);
  }
}

}  // namespace

SourceFiles::SourceFiles(std::span<const stdfs::path> files) {
  std::error_code code;
  for (const stdfs::path& file : files) {
    if (!stdfs::is_directory(file, code)) {
      files_.push_back({.path = file, .name = {}, .stamp = stamp_of(file)});
      continue;
    }
    for (const stdfs::path& inside : files_in(file))
      files_.push_back({.path = inside,
                        .name = inside.lexically_relative(file).string(),
                        .stamp = stamp_of(inside)});
  }
}

int64_t SourceFiles::n_bytes() const {
  int64_t n_bytes = 0;
  for (const File& file : files_)
    n_bytes += file.stamp.n_bytes;
  return n_bytes;
}

uint64_t SourceFiles::hash(const stdfs::path& directory,
                           const std::function<void(int64_t n_bytes)>& progress) const {
  ContentHash names, all;
  std::error_code code;
  std::vector<std::string> paths;
  for (const File& file : files_) {
    paths.push_back(stdfs::absolute(file.path, code).lexically_normal().string());
    names.add_text(paths.back());
  }
  KnownFiles known(directory.empty() ? stdfs::path()
                                     : directory / fmt::format("{:016x}.files", names.value()));
  int64_t n_bytes = 0;
  bool is_all_known = true;
  for (size_t i = 0; i < files_.size(); ++i) {
    const File& file = files_[i];
    auto hash = known.find(paths[i], file.stamp);
    if (!hash) {
      is_all_known = false;
      hash = content_hash(file.path, progress, n_bytes);
      known.add(paths[i], file.stamp, *hash);
    }
    n_bytes += file.stamp.n_bytes;
    all.add_text(file.name);
    all.add_number(*hash);
  }
  if (!is_all_known) {
    check_unchanged();
    known.store();
  }
  return all.value();
}

void SourceFiles::check_unchanged() const {
  for (const File& file : files_)
    if (stamp_of(file.path) != file.stamp)
      throw Error(Fault::data, "data.read",
                  fmt::format("'{}' changed while it was read", file.path.string()),
                  "wait until nobody writes to it any more");
}

}  // namespace ferry
