#include "tests/files/write/lossy_disk.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace ferry::test {
namespace {

namespace fs = std::filesystem;

/** The unit that a drive writes whole or not at all. */
constexpr size_t kSector_bytes = 512;

size_t draw(std::mt19937_64& dice, size_t n) {
  return std::uniform_int_distribution<size_t>(0, n - 1)(dice);
}

/** How much of what was not synced is there. */
enum class Survival : uint8_t { none, all, first, any };
Survival draw_survival(std::mt19937_64& dice) {
  return static_cast<Survival>(draw(dice, 4));
}

/** Which of n changes survive. */
std::vector<bool> draw_survivors(size_t n, std::mt19937_64& dice) {
  const Survival survival = draw_survival(dice);
  const size_t n_first = draw(dice, n + 1);
  std::vector<bool> survivors(n);
  for (size_t i = 0; i < n; ++i)
    survivors[i] = survival == Survival::all || (survival == Survival::first && i < n_first) ||
                   (survival == Survival::any && draw(dice, 2) == 0);
  return survivors;
}

}  // namespace

DiskLog::DiskLog(const fs::path& file, fs::path root) : root_(std::move(root)) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw std::runtime_error("no log '" + file.string() + "'");
  for (DiskRecord record; stream.read(reinterpret_cast<char*>(&record), sizeof record);) {
    Call call{record, std::string(record.n_path, ' '), std::string(record.n_other, ' '),
              std::vector<std::byte>(record.n_bytes)};
    stream.read(call.path.data(), record.n_path);
    stream.read(call.other.data(), record.n_other);
    stream.read(reinterpret_cast<char*>(call.bytes.data()), record.n_bytes);
    if (!stream) throw std::runtime_error("'" + file.string() + "' is torn");
    calls_.push_back(std::move(call));
  }
}

/** A file with its changes since the last sync: each a write, or a new size. */
struct LossyDisk::File {
  struct Change {
    DiskCall call;
    int64_t at;
    const std::vector<std::byte>* bytes;  // the log's
  };
  std::vector<std::byte> synced;
  std::vector<Change> changes;  // since
  int64_t size_bytes = 0;       // as the process sees it

  static void write(std::vector<std::byte>& to, size_t at, const std::byte* bytes, size_t n) {
    if (n == 0) return;
    if (to.size() < at + n) to.resize(at + n);
    std::memcpy(to.data() + at, bytes, n);
  }
  static void apply(const Change& change, std::vector<std::byte>& to) {
    const auto at = static_cast<size_t>(change.at);
    if (change.call == DiskCall::write) write(to, at, change.bytes->data(), change.bytes->size());
    if (change.call == DiskCall::truncate) to.resize(at);
    if (change.call == DiskCall::allocate && to.size() < at) to.resize(at);
  }
  void sync() {
    for (const Change& change : changes)
      apply(change, synced);
    changes.clear();
  }
  std::vector<std::byte> left(std::mt19937_64& dice) const {
    std::vector<std::byte> bytes = synced;
    const Survival survival = draw_survival(dice);
    if (survival == Survival::any) {
      // Sectors by themselves; the size may be there before them.
      for (const Change& change : changes) {
        if (change.call != DiskCall::write) {
          if (draw(dice, 2) == 0) apply(change, bytes);
          continue;
        }
        for (size_t begin = 0; begin < change.bytes->size();) {
          const size_t at = static_cast<size_t>(change.at) + begin;
          const size_t end =
              std::min(change.bytes->size(), begin + kSector_bytes - at % kSector_bytes);
          if (draw(dice, 2) == 0) write(bytes, at, change.bytes->data() + begin, end - begin);
          begin = end;
        }
      }
      if (draw(dice, 2) == 0 && bytes.size() < static_cast<size_t>(size_bytes))
        bytes.resize(static_cast<size_t>(size_bytes));
      return bytes;
    }
    const size_t n = survival == Survival::all     ? changes.size()
                     : survival == Survival::first ? draw(dice, changes.size() + 1)
                                                   : 0;
    for (size_t i = 0; i < n; ++i)
      apply(changes[i], bytes);
    return bytes;
  }
};

struct LossyDisk::Directory {
  std::map<std::string, NodePtr> entries, synced;
  std::vector<EntryChange> changes;  // since
};

struct LossyDisk::Node {
  bool is_directory = false;
  File file;
  Directory directory;
};

LossyDisk::LossyDisk(const DiskLog& log) : log_(log), root_(std::make_shared<Node>()) {
  root_->is_directory = true;
}
LossyDisk::~LossyDisk() = default;

void LossyDisk::play_to(size_t n) {
  for (; n_played_ < n; ++n_played_)
    play(log_.calls()[n_played_]);
}

LossyDisk::NodePtr LossyDisk::find(const std::string& path) const {
  NodePtr at = root_;
  for (const fs::path& name : fs::path(path).lexically_relative(log_.root())) {
    if (name == "." || name.empty()) continue;
    const auto found = at->directory.entries.find(name.string());
    if (found == at->directory.entries.end()) return nullptr;
    at = found->second;
  }
  return at;
}

std::pair<LossyDisk::NodePtr, std::string> LossyDisk::parent_of(const std::string& path) const {
  const fs::path whole(path);
  NodePtr parent = find(whole.parent_path().string());
  if (!parent) throw std::runtime_error("no directory of '" + path + "' in the log");
  return {std::move(parent), whole.filename().string()};
}

void LossyDisk::apply(const EntryChange& change, std::map<std::string, NodePtr>& entries) {
  const auto erase = [&](const std::string& name, const NodePtr& node) {
    if (const auto found = entries.find(name); found != entries.end() && found->second == node)
      entries.erase(found);
  };
  switch (change.call) {
    case DiskCall::make_directory:
    case DiskCall::open:
      entries[change.name] = change.node;
      break;
    case DiskCall::remove:
      erase(change.name, change.node);
      break;
    case DiskCall::rename:
      erase(change.name, change.node);
      entries[change.other] = change.node;
      break;
    case DiskCall::exchange:
      entries[change.name] = change.other_node;
      entries[change.other] = change.node;
      break;
    default:
      throw std::logic_error("no change of an entry");
  }
}

void LossyDisk::change(Node& directory, EntryChange change) {
  apply(change, directory.directory.entries);
  directory.directory.changes.push_back(std::move(change));
}

void LossyDisk::play(const DiskLog::Call& call) {
  const DiskRecord& record = call.record;
  const auto file = [&]() -> File& { return open_.at(record.fd)->file; };
  switch (record.call) {
    case DiskCall::open: {
      NodePtr node = find(call.path);
      if (!node) {
        const auto [parent, name] = parent_of(call.path);
        node = std::make_shared<Node>();
        change(*parent, {DiskCall::open, name, {}, node, nullptr});
      }
      if (record.flags & O_TRUNC) {
        node->file.changes.push_back({DiskCall::truncate, 0, nullptr});
        node->file.size_bytes = 0;
      }
      open_[record.fd] = node;
      break;
    }
    case DiskCall::close:
      open_.erase(record.fd);
      break;
    case DiskCall::write:
      file().changes.push_back({record.call, record.at, &call.bytes});
      file().size_bytes =
          std::max(file().size_bytes, record.at + static_cast<int64_t>(call.bytes.size()));
      break;
    case DiskCall::truncate:
    case DiskCall::allocate:
      file().changes.push_back({record.call, record.at, nullptr});
      file().size_bytes =
          record.call == DiskCall::truncate ? record.at : std::max(file().size_bytes, record.at);
      break;
    case DiskCall::sync: {
      Node& node = *open_.at(record.fd);
      node.file.sync();
      node.directory.synced = node.directory.entries;
      node.directory.changes.clear();
      break;
    }
    case DiskCall::make_directory: {
      if (call.path == log_.root()) break;
      const auto [parent, name] = parent_of(call.path);
      auto node = std::make_shared<Node>();
      node->is_directory = true;
      change(*parent, {record.call, name, {}, node, nullptr});
      break;
    }
    case DiskCall::remove: {
      const auto [parent, name] = parent_of(call.path);
      change(*parent, {record.call, name, {}, parent->directory.entries.at(name), nullptr});
      break;
    }
    case DiskCall::rename:
    case DiskCall::exchange: {
      const auto [parent, name] = parent_of(call.path);
      const auto [other_parent, other] = parent_of(call.other);
      if (parent != other_parent)
        throw std::runtime_error("'" + call.path + "' is renamed into another directory");
      change(*parent,
             {record.call, name, other, parent->directory.entries.at(name),
              record.call == DiskCall::exchange ? parent->directory.entries.at(other) : nullptr});
      break;
    }
    case DiskCall::mark:
      break;
  }
}

void LossyDisk::leave(const Node& node, const fs::path& to, std::mt19937_64& dice) {
  if (!node.is_directory) {
    const auto bytes = node.file.left(dice);
    std::ofstream(to, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return;
  }
  fs::create_directories(to);
  std::map<std::string, NodePtr> entries = node.directory.synced;
  const auto survivors = draw_survivors(node.directory.changes.size(), dice);
  for (size_t i = 0; i < survivors.size(); ++i)
    if (survivors[i]) apply(node.directory.changes[i], entries);
  for (const auto& [name, child] : entries)
    leave(*child, to / name, dice);
}

void LossyDisk::cut_power(const fs::path& to, std::mt19937_64& dice) const {
  leave(*root_, to, dice);
}

}  // namespace ferry::test
