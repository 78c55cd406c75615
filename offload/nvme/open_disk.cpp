#include "offload/nvme/open_disk.h"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "offload/nvme/disk_file.h"
#include "offload/nvme/disk_queue.h"
#include "offload/nvme/stripes.h"
#include "src/base/error.h"
#include "src/base/print.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;

class QueuedDisk final : public FileDisk {
 public:
  QueuedDisk(std::shared_ptr<DiskQueueState> state,
             std::unique_ptr<DiskQueue> queue,
             int64_t n_bytes,
             std::string name,
             std::string transport)
      : state_(std::move(state)),
        n_bytes_(n_bytes),
        name_(std::move(name)),
        transport_(std::move(transport)),
        queue_(std::move(queue)) {}

  int64_t n_bytes() const override { return n_bytes_; }
  int64_t alignment() const override { return kDiskAlignment_bytes; }
  std::string name() const override { return name_; }
  std::string transport() const override { return transport_; }
  DiskTicket read(int64_t offset_bytes, std::span<std::byte> to) override {
    return add(DiskOperation::read, offset_bytes, to.data(), std::ssize(to));
  }
  DiskTicket write(int64_t offset_bytes, std::span<const std::byte> from) override {
    return add(DiskOperation::write, offset_bytes, const_cast<std::byte*>(from.data()),
               std::ssize(from));
  }
  void wait(DiskTicket ticket) override { state_->requests.wait(ticket); }
  void flush() override {
    state_->requests.wait(state_->requests.add(DiskOperation::flush, 0, nullptr, 0));
  }

 private:
  DiskTicket add(DiskOperation operation,
                 int64_t offset_bytes,
                 std::byte* memory,
                 int64_t n_bytes) {
    const auto address = reinterpret_cast<intptr_t>(memory);
    FERRY_CHECK((offset_bytes | n_bytes | address) % kDiskAlignment_bytes == 0,
                "{} bytes at {} of '{}', memory at {:#x}: all are to be multiples of {}", n_bytes,
                offset_bytes, name_, address, kDiskAlignment_bytes);
    FERRY_CHECK(offset_bytes >= 0 && n_bytes > 0 && n_bytes <= n_bytes_ - offset_bytes,
                "{} bytes at {} of '{}', which has {}", n_bytes, offset_bytes, name_, n_bytes_);
    return state_->requests.add(operation, offset_bytes, memory, n_bytes);
  }

  std::shared_ptr<DiskQueueState> state_;
  int64_t n_bytes_;
  std::string name_, transport_;
  std::unique_ptr<DiskQueue> queue_;
};

/** Once a process: a run opens its disk more than once. */
void say_once(std::atomic<bool>& is_said, const std::string& line) {
  if (!is_said.exchange(true)) log_line(line);
}

bool is_forbidden_by_user() {
  const char* const text = std::getenv("FERRY_NO_IO_URING");
  const std::string_view word = text ? text : "";
  if (word.empty() || word == "0") return false;
  if (word != "1")
    throw Error(Fault::usage, "nvme.open",
                fmt::format("FERRY_NO_IO_URING is '{}', expected 1 or 0", word),
                "unset FERRY_NO_IO_URING");
  return true;
}

std::string reason_of(int code) {
  if (code == EPERM || code == EACCES) return "it is forbidden here";
  if (code == ENOSYS) return "this system or this build is without it";
  return std::generic_category().message(code);
}

std::unique_ptr<DiskQueue> make_queue(const std::shared_ptr<DiskQueueState>& state,
                                      bool uses_io_uring,
                                      std::string& transport) {
  static std::atomic<bool> is_pool_said{false}, is_window_said{false};
  int code = 0;
  std::unique_ptr<DiskQueue> queue;
  if (uses_io_uring) queue = make_uring_queue(state, code);
  if (!queue) {
    if (code != 0)
      say_once(is_pool_said, fmt::format("nvme: io_uring cannot be used ({}); threads that call "
                                         "pread and pwrite take its place",
                                         reason_of(code)));
    transport = "pread and pwrite";
    return make_pool_queue(state);
  }
  transport = "io_uring";
  const std::string why = queue->why_unregistered();
  if (!why.empty())
    say_once(
        is_window_said,
        fmt::format("nvme: {} of buffers could not be registered ({}); transfers go on "
                    "without. A higher limit on locked memory (ulimit -l) spares some CPU time",
                    format_bytes(std::ssize(state->window)), why));
  else if (!state->window.empty())
    transport += ", registered buffers";
  return queue;
}

void check(const std::vector<fs::path>& files, int64_t n_bytes, const DiskOptions& options) {
  FERRY_CHECK(!files.empty() && files.size() <= kDiskFiles_max, "{} files", files.size());
  FERRY_CHECK(n_bytes > 0 && n_bytes % kDiskAlignment_bytes == 0, "{} bytes", n_bytes);
  FERRY_CHECK(options.request_bytes > 0 && options.request_bytes % kDiskAlignment_bytes == 0 &&
                  options.request_bytes <= kGiB,
              "requests of {} bytes", options.request_bytes);
  FERRY_CHECK(options.depth >= 1 && options.depth <= 1024, "depth {}", options.depth);
}

}  // namespace

std::unique_ptr<FileDisk> open_disk(const std::vector<fs::path>& files,
                                    int64_t n_bytes,
                                    const DiskOptions& options) {
  check(files, n_bytes, options);
  const bool uses_io_uring = options.uses_io_uring && !is_forbidden_by_user();
  const int n_files = static_cast<int>(files.size());
  DiskRequests::Options of_requests{.piece_bytes = options.request_bytes,
                                    .n_flights = options.depth * n_files,
                                    .deadline = options.deadline};
  std::string name;
  std::vector<DiskFile> opened;
  for (const fs::path& file : files) {
    opened.emplace_back(file, Stripes{n_files}.file_bytes(n_bytes),
                        options.reads_only   ? DiskFile::Use::reading
                        : options.must_exist ? DiskFile::Use::writing
                                             : DiskFile::Use::making);
    of_requests.files.push_back(file.string());
    name += (name.empty() ? "" : ", ") + file.string();
  }
  auto state = std::make_shared<DiskQueueState>(std::move(of_requests));
  for (DiskFile& file : opened)
    state->files.push_back(file.keep());
  state->window = options.window;
  if (options.faults) state->faults = *options.faults;
  std::string transport;
  auto queue = make_queue(state, uses_io_uring, transport);
  return std::make_unique<QueuedDisk>(std::move(state), std::move(queue), n_bytes, std::move(name),
                                      std::move(transport));
}

}  // namespace ferry
