#include <algorithm>
#include <vector>

#include "src/comm/collectives.h"

namespace ferry {
namespace {

class HostCollectives final : public Collectives {
 public:
  explicit HostCollectives(Comm& comm) : comm_(comm) {}

  float* reserve(int64_t n) override {
    memory_.emplace_back(static_cast<size_t>(n));
    return memory_.back().data();
  }
  void write(float* to, std::span<const float> from) override { std::ranges::copy(from, to); }
  void read(std::span<float> to, const float* from) override {
    std::copy_n(from, to.size(), to.begin());
  }

  void all_gather(const float* mine, float* all, int64_t n) override {
    comm_.all_gather(sent(mine, n), received(all, n * comm_.world()));
  }
  void reduce_scatter(const float* all, float* mine, int64_t n) override {
    parts_.resize(static_cast<size_t>(n * comm_.world()));
    all_to_all(all, parts_.data(), n);
    add_parts(mine, n);
  }
  void all_reduce(const float* mine, float* sum, int64_t n) override {
    const Part own = part_of(comm_.rank(), n);
    parts_.resize(static_cast<size_t>(own.n * comm_.world()));
    exchange([&](int rank) { return sent(mine + part_of(rank, n).begin, part_of(rank, n).n); },
             [&](int rank) { return received(parts_.data() + rank * own.n, own.n); });
    add_parts(sum + own.begin, own.n);
    exchange(
        [&](int rank) {
          return rank == comm_.rank() ? Comm::SentBytes() : sent(sum + own.begin, own.n);
        },
        [&](int rank) {
          const Part part = part_of(rank, n);
          return rank == comm_.rank() ? Comm::ReceivedBytes() : received(sum + part.begin, part.n);
        });
  }
  void all_to_all(const float* sends, float* receives, int64_t n) override {
    exchange([&](int rank) { return sent(sends + rank * n, n); },
             [&](int rank) { return received(receives + rank * n, n); });
  }
  void send_on(const float* mine, float* to, int64_t n) override {
    const int world = comm_.world(), rank = comm_.rank();
    const int next = (rank + 1) % world, before = (rank + world - 1) % world;
    exchange([&](int peer) { return peer == next ? sent(mine, n) : Comm::SentBytes(); },
             [&](int peer) { return peer == before ? received(to, n) : Comm::ReceivedBytes(); });
  }
  void wait() override {}

 private:
  struct Part {
    int64_t begin = 0, n = 0;
  };
  Part part_of(int rank, int64_t n) const {
    const int64_t n_each = (n + comm_.world() - 1) / comm_.world();
    const int64_t begin = std::min(n, rank * n_each);
    return {begin, std::min(n, begin + n_each) - begin};
  }
  static Comm::SentBytes sent(const float* from, int64_t n) {
    return std::as_bytes(std::span(from, static_cast<size_t>(n)));
  }
  static Comm::ReceivedBytes received(float* to, int64_t n) {
    return std::as_writable_bytes(std::span(to, static_cast<size_t>(n)));
  }
  void exchange(const auto& sent_to, const auto& received_from) {
    std::vector<Comm::SentBytes> sends;
    std::vector<Comm::ReceivedBytes> receives;
    for (int rank = 0; rank < comm_.world(); ++rank) {
      sends.push_back(sent_to(rank));
      receives.push_back(received_from(rank));
    }
    comm_.exchange(sends, receives);
  }
  /** The parts of all ranks, by rank. */
  void add_parts(float* sum, int64_t n) const {
    std::copy_n(parts_.begin(), n, sum);
    for (int rank = 1; rank < comm_.world(); ++rank)
      for (int64_t i = 0; i < n; ++i)
        sum[i] += parts_[static_cast<size_t>(rank * n + i)];
  }

  Comm& comm_;
  std::vector<std::vector<float>> memory_;
  std::vector<float> parts_;
};

}  // namespace

std::unique_ptr<Collectives> make_host_collectives(Comm& comm) {
  return std::make_unique<HostCollectives>(comm);
}

}  // namespace ferry
