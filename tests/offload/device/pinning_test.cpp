// What is pinned of some memory, on systems that refuse: nothing stays half pinned, and every copy
// has its ends in one piece.

#include "offload/device/host/pinning.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry::test {
namespace {

/** Pins so many bytes at most, and so many at most by one call; keeps what it pinned. */
struct Machine {
  int64_t pinnable_bytes = INT64_MAX, one_call_bytes = INT64_MAX;
  std::map<std::byte*, int64_t> pinned;
  int n_refused = 0;

  int64_t bytes() const {
    return std::accumulate(pinned.begin(), pinned.end(), int64_t{0},
                           [](int64_t sum, const auto& one) { return sum + one.second; });
  }
};

class RefusingSystem final : public PinningSystem {
 public:
  explicit RefusingSystem(Machine& machine) : machine_(machine) {}
  bool pin(std::byte* at, int64_t n_bytes) override {
    if (n_bytes > machine_.one_call_bytes || machine_.bytes() + n_bytes > machine_.pinnable_bytes) {
      ++machine_.n_refused;
      return false;
    }
    EXPECT_TRUE(machine_.pinned.emplace(at, n_bytes).second);
    return true;
  }
  void unpin(std::byte* at, int64_t n_bytes) override {
    EXPECT_EQ(machine_.pinned.at(at), n_bytes);
    machine_.pinned.erase(at);
  }

 private:
  Machine& machine_;
};

Pinning pinning_on(Machine& machine, int64_t bytes_max = INT64_MAX) {
  return Pinning(std::make_unique<RefusingSystem>(machine), bytes_max, 4 * kKiB);
}

/** Addresses alone: nothing is written there. */
std::byte* const kMemory = reinterpret_cast<std::byte*>(int64_t{1} << 46);

/** Each byte of [begin, end) is in one part, and pinned as its part says. */
void expect_parts(const Pinning& pinning, const Machine& machine, int64_t begin, int64_t end) {
  for (int64_t at = begin; at < end;) {
    const HostPart part = pinning.first_part(kMemory + at, end - at);
    ASSERT_GT(part.n_bytes, 0);
    const auto after = machine.pinned.upper_bound(kMemory + at);
    const bool is_pinned = after != machine.pinned.begin() &&
                           kMemory + at < std::prev(after)->first + std::prev(after)->second;
    if (is_pinned) {
      EXPECT_LE(kMemory + at + part.n_bytes, std::prev(after)->first + std::prev(after)->second);
    }
    EXPECT_EQ(part.uses_ring, !is_pinned) << at;
    at += part.n_bytes;
  }
}

TEST(Pinning, AllByOneCallWhereNothingIsRefused) {
  Machine machine;
  {
    Pinning pinning = pinning_on(machine);
    pinning.add(kMemory, {3 * kMiB + 512, 60 * kGiB});
    ASSERT_EQ(machine.pinned.size(), 1u);
    EXPECT_EQ(*machine.pinned.begin(),
              (std::pair<std::byte* const, int64_t>(kMemory + 3 * kMiB, 60 * kGiB + 4 * kKiB)));
    EXPECT_FALSE(pinning.has_ring());
    EXPECT_EQ(pinning.first_part(kMemory, kGiB).n_bytes, 3 * kMiB);  // never copied
    EXPECT_FALSE(pinning.first_part(kMemory, kGiB).uses_ring);
    pinning.remove(kMemory);
    EXPECT_EQ(machine.bytes(), 0);
    pinning.add(kMemory, {0, 0});
    EXPECT_EQ(machine.bytes(), 0);
    pinning.add(kMemory, {0, kMiB});
  }
  EXPECT_EQ(machine.bytes(), 0);  // with the object, at the latest
}

TEST(Pinning, PieceByPieceAsFarAsTheSystemGoes) {
  Machine machine = {.pinnable_bytes = 500 * kMiB};
  Pinning pinning = pinning_on(machine);
  pinning.add(kMemory, {0, kGiB});
  const PinnedBytes bytes = pinning.bytes();
  EXPECT_EQ(bytes.ring, 32 * kMiB);
  // Seven pieces of 64 MiB fit beside the ring; one is given back to others.
  EXPECT_EQ(bytes.pinned, (32 + 6 * 64) * kMiB);
  EXPECT_EQ(machine.bytes(), bytes.pinned);
  EXPECT_EQ(bytes.unpinned, kGiB - 6 * 64 * kMiB);
  expect_parts(pinning, machine, 0, kGiB);
  // Later memory finds a ring, or what the system has left.
  pinning.add(kMemory + 2 * kGiB, {0, 256 * kMiB});
  expect_parts(pinning, machine, 2 * kGiB, 2 * kGiB + 256 * kMiB);
  pinning.remove(kMemory + 2 * kGiB);
  pinning.remove(kMemory);
  EXPECT_EQ(machine.bytes(), bytes.ring);
}

TEST(Pinning, ASystemThatTakesNoLargeCallsTakesAllPieces) {
  Machine machine = {.one_call_bytes = 100 * kMiB};
  Pinning pinning = pinning_on(machine);
  pinning.add(kMemory, {0, kGiB});
  EXPECT_EQ(pinning.bytes().unpinned, 0);
  EXPECT_EQ(machine.pinned.size(), 17u);  // and the ring
  expect_parts(pinning, machine, 0, kGiB);
}

TEST(Pinning, StaysWithinTheLimitThatItWasGiven) {
  Machine machine;
  Pinning pinning = pinning_on(machine, 512 * kMiB);
  pinning.add(kMemory, {0, kGiB});
  EXPECT_EQ(machine.bytes(), 512 * kMiB);
  EXPECT_EQ(machine.n_refused, 0);
  EXPECT_EQ(machine.pinned.size(), 2u);
  expect_parts(pinning, machine, 0, kGiB);
}

TEST(Pinning, LaterMemoryMakesNoRing) {
  Machine machine;
  Pinning pinning = pinning_on(machine, 512 * kMiB);
  pinning.add(kMemory, {0, 300 * kMiB});
  pinning.add(kMemory + 2 * kGiB, {0, 300 * kMiB});
  EXPECT_FALSE(pinning.has_ring());
  EXPECT_LE(machine.bytes(), 512 * kMiB);
  for (int64_t at = 0, n = 0; at < 300 * kMiB; at += n) {
    const HostPart part = pinning.first_part(kMemory + 2 * kGiB + at, 300 * kMiB - at);
    EXPECT_FALSE(part.uses_ring);
    n = part.n_bytes;
  }
}

TEST(Pinning, AMachineThatPinsLittleHasASmallRingAndOneThatPinsNothingIsRefused) {
  Machine little = {.pinnable_bytes = 3 * kMiB};
  Pinning pinning = pinning_on(little);
  pinning.add(kMemory, {0, kGiB});
  EXPECT_EQ(pinning.bytes().ring, 2 * kMiB);
  EXPECT_EQ(pinning.bytes().pinned, 2 * kMiB);
  Machine nothing = {.pinnable_bytes = 0};
  Pinning refused = pinning_on(nothing);
  try {
    refused.add(kMemory, {0, kGiB});
    FAIL() << "nothing can be pinned";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::does_not_fit);
  }
}

}  // namespace
}  // namespace ferry::test
