// Random programs on a store, each ended several times by a cut of power or a kill in any call. The
// generation that was committed last is found afterwards, or the one whose commit was under way,
// and each checkpoint: with the same bits. The test is tested: it finds a flush left out.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "offload/store/store.h"
#include "src/base/error.h"
#include "tests/offload/store/store_cases.h"
#include "tests/offload/store/virtual_disk.h"

namespace ferry {
namespace {

using test::fill;
using test::LifeEnded;
using test::VirtualDisk;

enum class LeftOut { nothing, flush_before_map, flush_after_map, flush_at_opening };

/** The number of each lasting extent's bytes. */
using Content = std::vector<uint64_t>;
struct Kept {
  int64_t number = 0;  ///< of the generation; 0: none
  std::string metadata;
  Content content;

  bool operator==(const Kept&) const = default;
};
/** The states that a store may be in after a life. */
struct Model {
  Kept committed;
  std::map<std::string, Kept> pins;

  bool operator==(const Model&) const = default;
};

/** One seed's program. run() tells what was wrong, or nothing. */
class Program {
 public:
  Program(uint64_t seed, LeftOut left_out)
      : dice_(seed),
        left_out_(left_out),
        segments_(draw_segments()),
        layout_(segments_, static_cast<int>(below(4))),
        disk_(layout_.n_bytes(), seed),
        next_(static_cast<size_t>(layout_.n_lasting_extents())) {}

  std::optional<std::string> run() {
    ExtentStore::create(disk_, segments_, layout_.n_kept(), "run");
    for (int life = 0; life < kLives; ++life) {
      const bool is_last = life == kLives - 1;
      if (!is_last)
        disk_.end_life_in(static_cast<int64_t>(below(400)),
                          below(2) == 0 ? VirtualDisk::End::kill : VirtualDisk::End::power_cut);
      try {
        live();
      } catch (const LifeEnded&) {
        ++n_ended;
      } catch (const Error& error) {
        return fmt::format("life {}: {}", life, error.what());
      }
      if (wrong_) return fmt::format("life {}: {}", life, *wrong_);
      disk_.start_again();
    }
    return {};
  }

  int n_ended = 0, n_commits = 0, n_pins = 0;

 private:
  static constexpr int kLives = 5;

  uint64_t below(uint64_t n) { return dice_() % n; }

  std::vector<StoredSegment> draw_segments() {
    std::vector<StoredSegment> segments;
    for (const char* name : {"weights", "master", "adam_m", "grads"}) {
      segments.push_back({.block = static_cast<int>(below(3)),
                          .name = name,
                          .n_bytes = static_cast<int64_t>(1 + below(20'000)),
                          .extent_bytes = static_cast<int64_t>(kStorePage_bytes * (1 + below(2))),
                          .is_volatile = std::string(name) == "grads"});
    }
    return segments;
  }

  void live() {
    if (left_out_ == LeftOut::flush_at_opening) disk_.skip_flush(0);
    ExtentStore store(disk_, {.run = "run"});
    disk_.skip_flush(-1);
    check_found(store);
    if (wrong_) return;
    next_ = model_.committed.number == 0 ? Content(next_.size()) : model_.committed.content;
    is_started_ = model_.committed.number != 0;
    for (int i = 0; i < 30 && !wrong_; ++i)
      act(store);
  }

  void act(ExtentStore& store) {
    if (!is_started_) {
      write(store, next_.size());
      is_started_ = true;
    }
    switch (below(8)) {
      case 0:
      case 1:
        write(store, 1 + below(next_.size()));
        break;
      case 2:
        return write_gradients(store);
      case 3:
      case 4:
        return commit(store);
      case 5:
        return pin(store);
      case 6:
        return unpin(store);
      default:
        return go_back(store);
    }
    if (below(3) == 0) check_content(store, store.newest(), next_, "the next generation");
  }

  /** Extents in any order, several under way, which end in any order. */
  void write(ExtentStore& store, size_t n) {
    struct Write {
      PendingWrite pending;
      std::vector<StorePage> pages;
    };
    std::vector<Write> under_way;
    const auto end_one = [&] {
      std::swap(under_way[below(under_way.size())], under_way.back());
      store.wait(under_way.back().pending);
      under_way.pop_back();
    };
    std::vector<std::pair<SegmentId, int64_t>> extents = lasting_extents();
    std::ranges::shuffle(extents, dice_);
    extents.resize(n);
    for (const auto& [segment, extent] : extents) {
      const auto index = static_cast<size_t>(layout_.index_of(segment, extent));
      next_[index] = dice_();
      under_way.push_back({{},
                           std::vector<StorePage>(static_cast<size_t>(
                               layout_.extent_bytes(segment, extent) / kStorePage_bytes))});
      fill(next_[index], bytes_of(under_way.back().pages));
      under_way.back().pending =
          store.start_write(segment, extent, bytes_of(under_way.back().pages));
      while (under_way.size() > below(6))
        end_one();
    }
    while (!under_way.empty())
      end_one();
  }

  void write_gradients(ExtentStore& store) {
    constexpr SegmentId kGrads = 3;
    const uint64_t number = dice_();
    test::write_numbered(store, kGrads, number);
    if (!test::is_numbered(store, store.newest(), kGrads, number)) wrong_ = "other gradients";
  }

  void commit(ExtentStore& store) {
    if (left_out_ == LeftOut::flush_before_map) disk_.skip_flush(0);
    if (left_out_ == LeftOut::flush_after_map) disk_.skip_flush(1);
    Model after = model_;
    after.committed = {model_.committed.number + 1, std::string(below(9000), 'm'), next_};
    change(after, [&] { store.commit(after.committed.metadata); });
    ++n_commits;
  }

  void pin(ExtentStore& store) {
    if (model_.committed.number == 0) return;
    const std::string name = fmt::format("checkpoint-{}", ++n_pins);
    if (static_cast<int>(model_.pins.size()) == layout_.n_kept()) {
      try {
        store.pin(name);
        wrong_ = "one checkpoint too many is kept";
      } catch (const Error& error) {
        if (error.fault() != Fault::does_not_fit) throw;
      }
      return;
    }
    Model after = model_;
    after.pins[name] = model_.committed;
    change(after, [&] { store.pin(name); });
  }

  void unpin(ExtentStore& store) {
    if (model_.pins.empty()) return;
    const std::string name =
        std::next(model_.pins.begin(), static_cast<long>(below(model_.pins.size())))->first;
    Model after = model_;
    after.pins.erase(name);
    change(after, [&] { store.unpin(name); });
  }

  void go_back(ExtentStore& store) {
    if (below(4) != 0 || model_.committed.number == 0) return;
    if (model_.pins.empty()) {
      store.start_from(store.committed());
      next_ = model_.committed.content;
      return;
    }
    const auto& [name, kept] = *model_.pins.begin();
    store.start_from(store.pinned(name));
    next_ = kept.content;
  }

  /** While `act` runs, the store may be found as before or as after. */
  template <typename Act>
  void change(const Model& after, Act act) {
    after_ = after;
    act();
    model_ = after;
    after_.reset();
  }

  void check_found(ExtentStore& store) {
    const auto has = [&](const Model& model) {
      std::vector<std::string> names;
      for (const auto& [name, kept] : model.pins)
        names.push_back(name);
      auto found = store.pins();
      std::ranges::sort(found);
      return store.committed().number == model.committed.number && found == names;
    };
    if (after_ && has(*after_)) model_ = *after_;
    after_.reset();
    if (!has(model_)) {
      wrong_ = fmt::format("generation {} and {} checkpoints are there, in place of {} and {}",
                           store.committed().number, store.pins().size(), model_.committed.number,
                           model_.pins.size());
      return;
    }
    if (model_.committed.number != 0)
      check_kept(store, store.committed(), model_.committed, "last");
    for (const auto& [name, kept] : model_.pins)
      check_kept(store, store.pinned(name), kept, name);
    if (const auto damages = store.check(); !damages.empty()) wrong_ = damages.front().what;
  }

  void check_kept(ExtentStore& store,
                  const Generation& generation,
                  const Kept& kept,
                  const std::string& name) {
    if (generation.number != kept.number || generation.metadata != kept.metadata)
      wrong_ = fmt::format("'{}' is generation {} in place of {}, or has other metadata", name,
                           generation.number, kept.number);
    check_content(store, generation, kept.content, name);
  }

  void check_content(const ExtentStore& store,
                     const Generation& generation,
                     const Content& content,
                     const std::string& name) {
    for (SegmentId segment = 0; segment < layout_.n_segments(); ++segment) {
      if (layout_.segment(segment).is_volatile) continue;
      auto pages = test::pages_for(layout_, segment), right = pages;
      store.read_segment(generation, segment, bytes_of(pages));
      for (int64_t extent = 0; extent < layout_.n_extents(segment); ++extent)
        fill(content[static_cast<size_t>(layout_.index_of(segment, extent))],
             layout_.part_of(bytes_of(right), segment, extent));
      if (std::memcmp(pages.data(), right.data(), bytes_of(pages).size()) != 0)
        wrong_ = fmt::format("segment {} of '{}' has other bytes", segment, name);
    }
  }

  std::vector<std::pair<SegmentId, int64_t>> lasting_extents() const {
    std::vector<std::pair<SegmentId, int64_t>> extents;
    for (SegmentId segment = 0; segment < layout_.n_segments(); ++segment) {
      if (layout_.segment(segment).is_volatile) continue;
      for (int64_t extent = 0; extent < layout_.n_extents(segment); ++extent)
        extents.emplace_back(segment, extent);
    }
    return extents;
  }

  std::mt19937_64 dice_;
  LeftOut left_out_;
  std::vector<StoredSegment> segments_;
  StoreLayout layout_;
  VirtualDisk disk_;
  Model model_;
  std::optional<Model> after_;  ///< of the change that is under way
  Content next_;
  bool is_started_ = false;
  std::optional<std::string> wrong_;
};

uint64_t n_seeds() {
  return std::getenv("FERRY_LONG") ? 20'000 : 600;
}

TEST(PowerCut, LeavesTheLastGenerationAndEveryCheckpoint) {
  int n_ended = 0, n_commits = 0, n_pins = 0;
  for (uint64_t seed = 1; seed <= n_seeds(); ++seed) {
    Program program(seed, LeftOut::nothing);
    const auto wrong = program.run();
    ASSERT_FALSE(wrong) << "seed " << seed << ": " << *wrong;
    n_ended += program.n_ended;
    n_commits += program.n_commits;
    n_pins += program.n_pins;
  }
  // Else it tested little.
  EXPECT_GT(n_ended, static_cast<int>(n_seeds()));
  EXPECT_GT(n_commits, static_cast<int>(5 * n_seeds()));
  EXPECT_GT(n_pins, static_cast<int>(n_seeds()));
  RecordProperty("lives_ended", n_ended);
}

class PowerCutLeftOut : public ::testing::TestWithParam<LeftOut> {};

TEST_P(PowerCutLeftOut, IsFound) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    if (Program(seed, GetParam()).run()) {
      RecordProperty("found_with_seed", static_cast<int>(seed));
      return;
    }
  }
  FAIL() << "nothing was found";
}

INSTANTIATE_TEST_SUITE_P(Flushes,
                         PowerCutLeftOut,
                         ::testing::Values(LeftOut::flush_before_map,
                                           LeftOut::flush_after_map,
                                           LeftOut::flush_at_opening));

}  // namespace
}  // namespace ferry
