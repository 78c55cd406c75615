#include "tests/comm/every_call.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <thread>

namespace ferry {
namespace {

using Bytes = std::vector<std::byte>;

/** Bytes that tell who sent them to whom: a pattern over and over, of an odd length. */
Bytes message(int from, int to, size_t n_bytes) {
  std::array<uint64_t, 8191> pattern;
  uint64_t state = 77u * static_cast<uint64_t>(from) + 1234567u * static_cast<uint64_t>(to) + 1;
  for (uint64_t& word : pattern)
    word = state = state * 6364136223846793005u + 1442695040888963407u;
  Bytes bytes(n_bytes);
  for (size_t place = 0; place < n_bytes; place += sizeof pattern)
    std::memcpy(&bytes[place], pattern.data(), std::min(sizeof pattern, n_bytes - place));
  return bytes;
}

/** Without gtest's print of all bytes. */
bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

/** Every rank to every rank, of sizes that differ by direction; some of them empty. */
size_t size_of(int from, int to) {
  return (from + 2 * to) % 3 == 0 ? 0 : 10 * static_cast<size_t>(from) + to + 1;
}

void check_exchange(Comm& comm) {
  std::vector<Bytes> sent(comm.world()), received(comm.world());
  for (int peer = 0; peer < comm.world(); ++peer) {
    sent[peer] = message(comm.rank(), peer, size_of(comm.rank(), peer));
    received[peer].resize(size_of(peer, comm.rank()));
  }
  comm.exchange(std::vector<Comm::SentBytes>(sent.begin(), sent.end()),
                std::vector<Comm::ReceivedBytes>(received.begin(), received.end()));
  for (int peer = 0; peer < comm.world(); ++peer)
    EXPECT_TRUE(same(received[peer], message(peer, comm.rank(), size_of(peer, comm.rank()))))
        << "rank " << peer << " to " << comm.rank();
}

void check_send(Comm& comm) {
  for (int from = 0; from < comm.world(); ++from) {
    for (int to = 0; to < comm.world(); ++to) {
      if (from == to) continue;
      const Bytes expected = message(from, to, 1000);
      if (comm.rank() == from) comm.send(expected, to);
      if (comm.rank() != to) continue;
      Bytes bytes(expected.size());
      comm.receive(bytes, from);
      EXPECT_TRUE(same(bytes, expected)) << "rank " << from << " to " << to;
    }
  }
}

void check_gathers(Comm& comm) {
  constexpr size_t kBytes = 100;
  Bytes all(kBytes * comm.world());
  const auto part = [&](int rank) { return std::span(all).subspan(rank * kBytes, kBytes); };
  comm.all_gather(message(comm.rank(), 0, kBytes), all);
  for (int rank = 0; rank < comm.world(); ++rank)
    EXPECT_TRUE(same(part(rank), message(rank, 0, kBytes))) << rank << " at " << comm.rank();

  std::ranges::fill(all, std::byte{});
  const Bytes mine = message(comm.rank(), 1, kBytes);
  std::ranges::copy(mine, part(comm.rank()).begin());
  comm.all_gather(part(comm.rank()), all);
  for (int rank = 0; rank < comm.world(); ++rank)
    EXPECT_TRUE(same(part(rank), message(rank, 1, kBytes))) << "in place, " << rank;

  const auto size_of_rank = [](int rank) { return static_cast<size_t>(rank % 3) * 41; };
  const auto varying = comm.all_gather_varying(message(comm.rank(), 2, size_of_rank(comm.rank())));
  ASSERT_EQ(varying.size(), static_cast<size_t>(comm.world()));
  for (int rank = 0; rank < comm.world(); ++rank)
    EXPECT_TRUE(same(varying[rank], message(rank, 2, size_of_rank(rank)))) << rank;

  const std::vector<int> squares = comm.gather_values(comm.rank() * comm.rank());
  for (int rank = 0; rank < comm.world(); ++rank)
    EXPECT_EQ(squares[rank], rank * rank);
  comm.all_gather({}, {});
}

void check_broadcast(Comm& comm) {
  for (int root = 0; root < comm.world(); ++root) {
    Bytes bytes = message(comm.rank(), 3, 500);
    comm.broadcast(bytes, root);
    EXPECT_TRUE(same(bytes, message(root, 3, 500))) << "root " << root;
    EXPECT_EQ(comm.broadcast_value(100 + comm.rank(), root), 100 + root);
  }
}

void check_sum(Comm& comm) {
  std::vector<double> values = values_of_rank(comm.rank());
  comm.sum(values);
  const std::vector<double> expected = serial_sum(comm.world());
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_EQ(std::bit_cast<uint64_t>(values[i]), std::bit_cast<uint64_t>(expected[i]))
        << "place " << i << ", " << values[i] << " and " << expected[i];
}

void check_differences(Comm& comm) {
  EXPECT_TRUE(comm.ranks_that_differ(7).empty());
  std::vector<int> odd;
  for (int rank = 1; rank < comm.world(); rank += 2)
    odd.push_back(rank);
  EXPECT_EQ(comm.ranks_that_differ(uint64_t{1} << 63 | (comm.rank() % 2)), odd);
}

}  // namespace

std::vector<double> values_of_rank(int rank) {
  std::mt19937_64 random(rank + 1);
  std::vector<double> values;
  for (int i = 0; i < 2000; ++i)
    values.push_back(std::ldexp(static_cast<double>(random()), -static_cast<int>(random() % 60)) *
                     (random() % 2 ? 1 : -1));
  values.push_back(-0.0);  // of all ranks: their sum is -0, too
  return values;
}

std::vector<double> serial_sum(int world) {
  std::vector<double> sum = values_of_rank(0);
  for (int rank = 1; rank < world; ++rank) {
    const std::vector<double> values = values_of_rank(rank);
    for (size_t i = 0; i < sum.size(); ++i)
      sum[i] += values[i];
  }
  return sum;
}

void check_every_call(Comm& comm) {
  SCOPED_TRACE("rank " + std::to_string(comm.rank()));
  // Twice: messages of the second turn are not those of the first.
  for (int turn = 0; turn < 2; ++turn) {
    check_send(comm);
    check_exchange(comm);
    check_gathers(comm);
    check_broadcast(comm);
    comm.barrier();
    check_sum(comm);
    check_differences(comm);
  }
}

void check_sizes(Comm& comm, size_t n_bytes_max) {
  SCOPED_TRACE("rank " + std::to_string(comm.rank()));
  const int next = (comm.rank() + 1) % comm.world();
  const int before = (comm.rank() + comm.world() - 1) % comm.world();
  for (const size_t n_bytes :
       {size_t{0}, size_t{1}, size_t{4097}, size_t{65536}, size_t{65537}, n_bytes_max}) {
    // Of two ranks each is before and after the other: one message goes each way.
    std::vector<Bytes> sent(comm.world()), received(comm.world());
    for (int peer : {next, before}) {
      sent[peer] = message(comm.rank(), peer, n_bytes);
      received[peer].resize(n_bytes);
    }
    comm.exchange(std::vector<Comm::SentBytes>(sent.begin(), sent.end()),
                  std::vector<Comm::ReceivedBytes>(received.begin(), received.end()));
    for (int peer : {next, before})
      EXPECT_TRUE(same(received[peer], message(peer, comm.rank(), n_bytes)))
          << n_bytes << " bytes of rank " << peer;
  }
}

void check_groups(Comm& comm) {
  SCOPED_TRACE("rank " + std::to_string(comm.rank()));
  const int colour = comm.rank() % 2 == 0 ? 9 : -4;
  const std::unique_ptr<Comm> group = comm.split(colour);
  std::vector<int> members;
  for (int rank = comm.rank() % 2; rank < comm.world(); rank += 2)
    members.push_back(rank);
  ASSERT_EQ(group->ranks_of_run(), members);
  ASSERT_EQ(members[group->rank()], comm.rank());
  // The groups take different numbers of calls, and the whole world works beside them.
  std::thread beside([&] {
    for (int turn = 0; turn < 20; ++turn) {
      const std::vector<int> all = comm.gather_values(comm.rank() + turn);
      for (int rank = 0; rank < comm.world(); ++rank)
        EXPECT_EQ(all[rank], rank + turn);
    }
  });
  for (int turn = 0; turn < (colour == 9 ? 30 : 50); ++turn) {
    const std::vector<int> all = group->gather_values(10 * comm.rank() + turn);
    for (size_t i = 0; i < members.size(); ++i)
      EXPECT_EQ(all[i], 10 * members[i] + turn);
  }
  beside.join();
  check_every_call(*group);

  // A group of a group knows the ranks of the run, and a group outlives what it was split from.
  std::unique_ptr<Comm> part = group->split(group->rank() / 2);
  for (int i = 0; i < part->world(); ++i)
    EXPECT_EQ(part->ranks_of_run()[i], members[group->rank() / 2 * 2 + i]);
  const std::unique_ptr<Comm> whole = part->split(0);
  part.reset();
  EXPECT_EQ(whole->gather_values(comm.rank()), whole->ranks_of_run());
  comm.barrier();
}

}  // namespace ferry
