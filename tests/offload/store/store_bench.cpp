// Times a store beside the bare disk under it: writes, reads, commits, checkpoints.
//   store_bench FILE GIB [EXTENT_KIB]      FILE takes 3 x GIB; it is made, and removed at the end

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "offload/nvme/open_disk.h"
#include "offload/store/store.h"
#include "offload/store/store_requests.h"
#include "src/base/error.h"

namespace {

using namespace ferry;

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/** Blocks of 256 MiB, as a layer of some 20 M parameters has of each state. */
std::vector<StoredSegment> segments(int64_t n_bytes, int64_t extent_bytes) {
  std::vector<StoredSegment> segments;
  for (int block = 0; n_bytes > 0; ++block, n_bytes -= 256 * kMiB)
    segments.push_back({block, "adam_m", std::min(n_bytes, 256 * kMiB), extent_bytes});
  return segments;
}

void bench(const std::filesystem::path& file, int64_t n_bytes, int64_t extent_bytes) {
  const auto all = segments(n_bytes, extent_bytes);
  const StoreLayout layout(all, 1);
  const auto disk = open_disk({file}, layout.n_bytes());
  ExtentStore::create(*disk, all, 1, "bench");
  ExtentStore store(*disk, {});
  fmt::print("{} extents of {}, {}, {}\n", layout.n_extents(), format_bytes(extent_bytes),
             format_bytes(layout.n_bytes()), disk->transport());

  std::vector<StorePage> window(static_cast<size_t>(256 * kMiB / kStorePage_bytes));
  const auto bytes = [&](SegmentId id) {
    return bytes_of(window).first(static_cast<size_t>(layout.padded_bytes(id)));
  };
  const auto for_all = [&](auto work) {
    return [&layout, work] {
      for (SegmentId id = 0; id < layout.n_segments(); ++id)
        work(id);
    };
  };
  const auto print = [&](const char* name, double s) {
    fmt::print("{:28} {:8.3f} s {:8.2f} GB/s\n", name, s, static_cast<double>(n_bytes) / s / 1e9);
  };
  const auto bare = [&](bool is_write) {
    return for_all([&, is_write](SegmentId id) {
      run_ahead(
          layout.n_extents(id),
          [&](int64_t i) {
            const auto part = layout.part_of(bytes(id), id, i);
            const int64_t offset = layout.offset_of(id, i, 1);
            return is_write ? disk->write(offset, part) : disk->read(offset, part);
          },
          [&](DiskTicket ticket) { disk->wait(ticket); });
    });
  };
  for (int round = 0; round < 2; ++round) {
    print("the disk, write", seconds(bare(true)));
    print("the store, write",
          seconds(for_all([&](SegmentId id) { store.write_segment(id, bytes(id)); })));
    fmt::print("{:28} {:8.1f} ms\n", "first commit", 1e3 * seconds([&] { store.commit(""); }));
    print("the disk, read", seconds(bare(false)));
    print(
        "the store, read",
        seconds(for_all([&](SegmentId id) { store.read_segment(store.newest(), id, bytes(id)); })));
  }
  const auto print_times = [](const std::string& name, const std::function<void()>& before,
                              const std::function<void()>& work) {
    std::vector<double> times;
    for (int i = 0; i < 21; ++i) {
      before();
      times.push_back(1e3 * seconds(work));
    }
    std::ranges::sort(times);
    fmt::print("{:40} median {:.1f} ms, {:.1f} to {:.1f}\n", name, times[10], times.front(),
               times.back());
  };
  const auto commit = [&] { store.commit("metadata"); };
  print_times(
      fmt::format("commit after writes of {}", format_bytes(layout.padded_bytes(0))),
      [&] { store.write_segment(0, bytes(0)); }, commit);
  print_times(
      "commit after none", [] {}, commit);
  print_times(
      "checkpoint",
      [&] {
        if (!store.pins().empty()) store.unpin("c");
      },
      [&] { store.pin("c"); });
}

}  // namespace

int main(int n, char** arguments) {
  if (n < 3) {
    fmt::print(stderr, "usage: store_bench FILE GIB [EXTENT_KIB]\n");
    return 2;
  }
  try {
    bench(arguments[1], static_cast<int64_t>(std::atof(arguments[2]) * kGiB),
          n > 3 ? std::atoll(arguments[3]) * kKiB : 4 * kMiB);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_code();
  }
  std::filesystem::remove(arguments[1]);
}
