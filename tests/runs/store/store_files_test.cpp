// The files of a run's store: made, found again after the drive or the files moved, and everything
// that can be wrong with a drive, refused before a byte is written.

#include "src/runs/store/store_files.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "offload/nvme/drive.h"
#include "src/files/plain_file.h"
#include "tests/config/config_fixture.h"
#include "tests/offload/nvme/mounted.h"
#include "tests/runs/store/store_fixture.h"

namespace ferry::runs {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::kNoMount;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class StoreFilesTest : public StoreTest {
 protected:
  std::string refusal_of_new(const Directories& directories, Fault fault, int64_t bytes = kMiB) {
    return error_of(
        [&] { StoreFiles::make({.directories = directories}, "run-1", need_of(bytes)); }, fault);
  }
  std::string refusal_of_open(const StorePlace& place, const Directories& there, Fault fault) {
    return error_of([&] { StoreFiles::open(place, {.directories = there}); }, fault);
  }
};

TEST_F(StoreFilesTest, StayOnlyWhereTheyAreKept) {
  {
    const StoreFiles files = StoreFiles::make({.directories = {drive_}}, "run-1", need_of(kMiB));
    EXPECT_THAT(files.place().paths(), ElementsAre(drive_ / "run-1.states"));
    EXPECT_TRUE(fs::exists(drive_ / "run-1.states"));
  }
  EXPECT_TRUE(fs::is_empty(drive_));
  const StorePlace place = make_store({drive_});
  EXPECT_EQ(place.uuid.size(), kUuid_length);
  EXPECT_EQ(place.files[0].drive, drive_id_of(drive_));
  EXPECT_EQ(place.n_bytes, need_of(kStates_bytes).n_bytes);
  EXPECT_EQ(std::distance(fs::directory_iterator(drive_), {}), 1) << "no lock stays";
  open_store(place, {drive_});
}

TEST_F(StoreFilesTest, RunJsonKeepsTheirPlace) {
  const StorePlace place = make_store({drive_});
  const StorePlace read = store_place_of(make_run("run", place)).value();
  EXPECT_EQ(to_json(read), to_json(place));
  open_store(read, {drive_});
  directory_.write("other/run.json", R"({"phase": "finished"})");
  EXPECT_FALSE(store_place_of(directory_ / "other"));
  fs::create_directories(directory_ / "killed_at_its_start");
  EXPECT_FALSE(store_place_of(directory_ / "killed_at_its_start"));
  for (const char* text :
       {R"({})", R"({"uuid": "x", "bytes": 1, "files": [{"path": "/a.states", "drive": "d"}]})",
        R"({"uuid": "0123456789abcdef0123456789abcdef", "bytes": 1, "files": []})",
        R"({"uuid": "0123456789abcdef0123456789abcdef", "bytes": 0,
            "files": [{"path": "/a.states", "drive": "d"}]})",
        R"({"uuid": "0123456789abcdef0123456789abcdef", "bytes": 1,
            "files": [{"path": "/etc/passwd", "drive": "d"}]})"}) {
    directory_.write("other/run.json", fmt::format(R"({{"nvme_store": {}}})", text));
    EXPECT_THAT(error_of([&] { store_place_of(directory_ / "other"); }, Fault::data),
                HasSubstr("nvme_store"))
        << text;
  }
}

TEST_F(StoreFilesTest, LeaveAnotherRunsAlone) {
  const StorePlace first = make_store({drive_}, "run"), second = make_store({drive_}, "run");
  EXPECT_THAT(first.paths(), ElementsAre(drive_ / "run.states"));
  EXPECT_THAT(second.paths(), ElementsAre(drive_ / "run-2.states"));
  EXPECT_NE(first.uuid, second.uuid);
  open_store(first, {drive_});
  open_store(second, {drive_});
  const StorePlace longest = make_store({drive_}, std::string(255, 'r'));
  open_store(longest, {drive_});
}

TEST_F(StoreFilesTest, OneRunUsesADirectory) {
  const StorePlace place = make_store({drive_}, "old");
  const auto files = std::make_unique<StoreFiles>(
      StoreFiles::make({.directories = {drive_}}, "first", need_of(kMiB)));
  for (const std::string& message :
       {refusal_of_new({drive_}, Fault::machine), refusal_of_open(place, {drive_}, Fault::machine)})
    EXPECT_THAT(message, AllOf(HasSubstr("/drive' of nvme_path is in use by another run"),
                               HasSubstr("ferry runs ls"), HasSubstr("a directory for each run")));
  EXPECT_FALSE(fs::exists(drive_ / "run-1.states"));
}

TEST_F(StoreFilesTest, NeedDirectoriesThatAreThere) {
  EXPECT_THAT(refusal_of_new({directory_ / "no"}, Fault::usage),
              AllOf(HasSubstr("/no' of nvme_path is no directory"), HasSubstr("mount its drive")));
  EXPECT_THAT(refusal_of_new({directory_.write("text", "x")}, Fault::usage),
              HasSubstr("is no directory"));
  fs::create_directory_symlink(drive_, directory_ / "link");
  EXPECT_THAT(refusal_of_new({drive_, directory_ / "link"}, Fault::usage),
              HasSubstr("/link' of nvme_path is named twice"));
  EXPECT_THAT(refusal_of_new(Directories(17, drive_), Fault::usage),
              HasSubstr("17 directories, at most 16"));
  EXPECT_TRUE(fs::is_empty(drive_));
}

TEST_F(StoreFilesTest, NeedAFileSystemThatMayBeWritten) {
  const test::ReadOnlyView view(drive_, directory_ / "view");
  if (!view) GTEST_SKIP() << kNoMount;
  EXPECT_THAT(refusal_of_new({drive_, view.path()}, Fault::usage), HasSubstr("named twice"));
  EXPECT_THAT(refusal_of_new({view.path()}, Fault::machine),
              AllOf(HasSubstr("/view' of nvme_path is on a read-only file system"),
                    HasSubstr("mount it for writing")));
  EXPECT_TRUE(fs::is_empty(drive_));
}

TEST_F(StoreFilesTest, NeedTheRightToWrite) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody without rights";
  fs::permissions(directory_.path(),
                  fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec);
  ASSERT_EQ(::seteuid(65534), 0);
  const std::string message = refusal_of_new({drive_}, Fault::machine);
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_THAT(message, AllOf(HasSubstr("takes no files: Permission denied"),
                             HasSubstr("a directory you may write to")));
}

TEST_F(StoreFilesTest, NeedDirectTransfers) {
  const test::Mounted memory(directory_ / "ramfs", "ramfs", "");
  if (!memory) GTEST_SKIP() << kNoMount;
  if (test::takes_direct(memory.path())) GTEST_SKIP() << "ramfs takes direct transfers here";
  EXPECT_THAT(refusal_of_new({memory.path()}, Fault::usage),
              AllOf(HasSubstr("takes no direct transfers (O_DIRECT)"), HasSubstr("ext4")));
  EXPECT_TRUE(fs::is_empty(memory.path()));
}

TEST_F(StoreFilesTest, NeedRoomForAllCopies) {
  const test::Mounted small(directory_ / "small", "tmpfs", "size=64m");
  if (!small) GTEST_SKIP() << kNoMount;
  if (!test::takes_direct(small.path())) GTEST_SKIP() << "tmpfs takes no direct transfers here";
  const auto refusal = [&](const Directories& directories, int n_kept) {
    return error_of(
        [&] { StoreFiles::make({.directories = directories}, "run", need_of(20 * kMiB, n_kept)); },
        Fault::does_not_fit);
  };
  EXPECT_THAT(refusal({small.path()}, 2),
              AllOf(HasSubstr("/small' of nvme_path has 64.0 MiB free, and the run needs 8"),
                    HasSubstr("states of 20.0 MiB x (2 + 2 checkpoints at once)"),
                    HasSubstr("lower save_total_limit"), HasSubstr("save_strategy = no"),
                    HasSubstr("ferry runs stores")));
  // Each of two directories has room for its half, but they share one drive.
  fs::create_directory(small / "a");
  fs::create_directory(small / "b");
  EXPECT_THAT(refusal({small / "a", small / "b"}, 2), HasSubstr("in 2 directories"));
  EXPECT_TRUE(fs::is_empty(small / "a"));
  StoreFiles::make({.directories = {small / "a", small / "b"}}, "run", need_of(20 * kMiB, 0));
  const std::string limited = error_of(
      [&] {
        StoreFiles::make({.directories = {small.path()}, .memory_bytes = 30 * kMiB}, "run",
                         need_of(20 * kMiB, 0));
      },
      Fault::does_not_fit);
  EXPECT_THAT(limited, AllOf(HasSubstr("nvme_memory is 30.0 MiB, and the run needs 40"),
                             HasSubstr("raise nvme_memory")));
}

TEST_F(StoreFilesTest, AreFoundWhereTheyWereMovedTo) {
  const fs::path before = make_directory("before"), after = make_directory("after");
  StorePlace place = make_store({before});
  fs::rename(before / "run-1.states", after / "run-1.states");
  EXPECT_THAT(refusal_of_open(place, {before}, Fault::data),
              AllOf(HasSubstr("/before/run-1.states' is gone"), HasSubstr("--nvme-path")));
  place = open_store(place, {after});
  EXPECT_THAT(place.paths(), ElementsAre(after / "run-1.states"));
  open_store(place, {after});
}

TEST_F(StoreFilesTest, KeepTheirOrderInStripes) {
  const fs::path a = make_directory("a"), b = make_directory("b");
  const StorePlace place = make_store({a, b});
  EXPECT_THAT(open_store(place, {b, a}).paths(),
              ElementsAre(a / "run-1.states", b / "run-1.states"));
  EXPECT_THAT(refusal_of_open(place, {a}, Fault::usage),
              AllOf(HasSubstr("lie in 2 files"), HasSubstr("nvme_path names 1 directories")));
}

TEST_F(StoreFilesTest, OfAnotherStoreAreNotTaken) {
  const fs::path other = make_directory("other");
  const StorePlace place = make_store({drive_}, "mine");
  make_store({other}, "theirs");
  fs::rename(other / "theirs.states", drive_ / "mine.states");
  EXPECT_THAT(refusal_of_open(place, {drive_}, Fault::data),
              AllOf(HasSubstr("/mine.states' holds those of 'theirs'"),
                    HasSubstr("not the states of this run")));
  std::ofstream(drive_ / "mine.states") << "short";
  EXPECT_THAT(refusal_of_open(place, {drive_}, Fault::data), HasSubstr("holds no states"));
}

/** As somebody else's run would name a file of the user: by a link, or as a further file of its own
 * store. */
TEST_F(StoreFilesTest, DoNotLeadToOtherFiles) {
  const fs::path a = make_directory("a"), b = make_directory("b");
  StorePlace place = make_store({a, b});
  const std::string text(static_cast<size_t>(fs::file_size(b / "run-1.states")), 't');
  const fs::path thesis = directory_.write("thesis.bin", text);
  const auto is_untouched = [&] { return read_text_file(thesis) == text; };
  fs::rename(b / "run-1.states", b / "aside");
  fs::create_symlink(thesis, b / "run-1.states");
  EXPECT_THAT(refusal_of_open(place, {a, b}, Fault::data),
              AllOf(HasSubstr("/b/run-1.states' is a link to"), HasSubstr("/thesis.bin'")));
  EXPECT_THAT(error_of([&] { open_disk({b / "run-1.states"}, kMiB); }, Fault::machine),
              HasSubstr("it is a link"));
  EXPECT_TRUE(is_untouched());
  fs::remove(b / "run-1.states");
  fs::rename(thesis, b / "run-1.states");
  const std::string refused = refusal_of_open(place, {a, b}, Fault::data);
  EXPECT_THAT(refused, AllOf(HasSubstr("/b/run-1.states' does not say that it is of this run's"),
                             HasSubstr("--nvme-path '" + a.string() + "," + b.string() + "'")));
  EXPECT_EQ(read_text_file(b / "run-1.states"), text);
  // A further file of another store, and the first of its own in the place of the second.
  const fs::path c = make_directory("c"), d = make_directory("d");
  make_store({c, d}, "theirs");
  for (const fs::path& other : {d / "theirs.states", a / "run-1.states"}) {
    fs::copy_file(other, b / "run-1.states", fs::copy_options::overwrite_existing);
    EXPECT_THAT(refusal_of_open(place, {a, b}, Fault::data), HasSubstr("holds those of")) << other;
  }
  fs::rename(b / "aside", b / "run-1.states");
  open_store(place, {a, b});
}

/** An older Ferry wrote no marks: such a store is read, and written where the user names it. */
TEST_F(StoreFilesTest, WithoutMarksAreTakenOnTheUsersWord) {
  const fs::path a = make_directory("a"), b = make_directory("b");
  const StorePlace place = make_store({a, b});
  const auto marked = static_cast<int64_t>(fs::file_size(b / "run-1.states"));
  fs::resize_file(b / "run-1.states", static_cast<uintmax_t>(marked - kMark_bytes));
  EXPECT_THAT(find_store(place, {}).paths(), ElementsAre(a / "run-1.states", b / "run-1.states"));
  EXPECT_THAT(refusal_of_open(place, {a, b}, Fault::data), HasSubstr("an older Ferry made it"));
  StoreFiles::open(place, {.directories = {a, b}, .are_named = true});
  EXPECT_EQ(static_cast<int64_t>(fs::file_size(b / "run-1.states")), marked);
  open_store(place, {a, b});  // from now on it says itself whose it is
}

TEST(StoreMark, IsReadOnlyAsItWasWritten) {
  const StripeIdentity identity = {.store = {"run-1", std::string(kUuid_length, 'a')}, .number = 3};
  StorePage page;
  encode_mark(identity, page);
  const StripeIdentity read = decode_mark(page);
  EXPECT_EQ(read.store.run, "run-1");
  EXPECT_EQ(read.store.uuid, identity.store.uuid);
  EXPECT_EQ(read.number, 3u);
  for (const size_t place : {size_t{0}, size_t{9}, size_t{13}, size_t{60}, sizeof page.bytes - 1}) {
    StorePage damaged = page;
    damaged.bytes[place] ^= std::byte{1};
    EXPECT_THROW(decode_mark(damaged), StoreFormatError) << place;
  }
  EXPECT_THROW(decode_mark({}), StoreFormatError);
}

/** Two drives that are real to the system: images with file systems of their own. */
class TwoDrives : public StoreFilesTest {
 protected:
  void SetUp() override {
    StoreFilesTest::SetUp();
    if (IsSkipped()) return;
    fs::create_directory(images_);
    if (!test::MountedImage::make(one_, 32) || !test::MountedImage::make(two_, 32))
      GTEST_SKIP() << "mkfs.ext4 is not installed";
    if (::geteuid() != 0) GTEST_SKIP() << kNoMount;
  }
  void TearDown() override {
    std::error_code error;
    fs::remove_all(images_, error);
  }
  // In memory where there is such a place: making a file system flushes much.
  const fs::path images_ =
      fmt::format("{}/ferry-test-images-{}",
                  fs::exists("/dev/shm") ? "/dev/shm" : directory_.path().string(),
                  ::getpid());
  const fs::path one_ = images_ / "one.img", two_ = images_ / "two.img";
  const fs::path here_ = directory_ / "here", there_ = directory_ / "there";
};

TEST_F(TwoDrives, AreToldApartUnderOnePath) {
  StorePlace place;
  {
    const test::MountedImage drive(one_, here_);
    place = make_store({here_});
    open_store(place, {here_});
  }
  const auto is_refused = [&] {
    EXPECT_THAT(refusal_of_open(place, {here_}, Fault::machine),
                AllOf(HasSubstr("/here/run-1.states' is not there"),
                      HasSubstr("not the one on which the run began"),
                      HasSubstr("mount that drive again")));
    EXPECT_FALSE(fs::exists(here_ / "run-1.states"));
  };
  is_refused();  // it is not mounted
  {
    const test::MountedImage drive(two_, here_);
    is_refused();
    // A run of the same name began there: its states are not this run's.
    make_store({here_});
    EXPECT_THAT(refusal_of_open(place, {here_}, Fault::machine),
                AllOf(HasSubstr("holds those of 'run-1', not the states of this run"),
                      HasSubstr("on another drive than at the start")));
  }
  const test::MountedImage drive(one_, there_);
  EXPECT_THAT(open_store(place, {there_}).paths(), ElementsAre(there_ / "run-1.states"));
}

TEST_F(TwoDrives, AreFoundInAnyOrderUnderOtherPaths) {
  StorePlace place;
  {
    const test::MountedImage first(one_, here_), second(two_, there_);
    place = make_store({here_, there_});
  }
  const test::MountedImage first(two_, here_), second(one_, there_);
  const StorePlace now = open_store(place, {here_, there_});
  EXPECT_THAT(now.paths(), ElementsAre(there_ / "run-1.states", here_ / "run-1.states"));
  EXPECT_EQ(now.files[0].drive, place.files[0].drive);
}

/** A copy on a larger drive, which takes the place of the old one. */
TEST_F(TwoDrives, MayBeExchangedForACopy) {
  StorePlace place;
  {
    const test::MountedImage old(one_, here_);
    place = make_store({here_});
    const test::MountedImage larger(two_, there_);
    fs::copy_file(here_ / "run-1.states", there_ / "run-1.states");
  }
  const test::MountedImage larger(two_, here_);
  EXPECT_NE(open_store(place, {here_}).files[0].drive, place.files[0].drive);
}

TEST_F(StoreFilesTest, TheBudgetIsWhatIsFreeButAMargin) {
  const fs::path a = make_directory("a"), b = make_directory("b");
  const auto n_free = static_cast<int64_t>(fs::space(a).available);
  const int64_t one = store_budget_bytes({.directories = {a}});
  EXPECT_LT(one, n_free);
  EXPECT_GT(one, n_free / 10 * 9 - kGiB);
  // Two directories of one drive have no more, but for what others write meanwhile.
  EXPECT_LE(store_budget_bytes({.directories = {a, b}}), one + kGiB);
  EXPECT_EQ(store_budget_bytes({.directories = {a}, .memory_bytes = kMiB}), kMiB);
  EXPECT_LE(store_budget_bytes({.directories = {a}, .memory_bytes = int64_t{1} << 60}),
            n_free + kGiB);
  EXPECT_NEAR(static_cast<double>(store_budget_bytes({.directories = {a}}, 8 * kGiB)),
              static_cast<double>(one + 8 * kGiB), 1.0 * kGiB);
}

TEST(CheckpointsKept, AreThoseOfTheSettings) {
  const auto kept = [](const std::vector<std::string>& arguments) {
    return checkpoints_kept(config::parse("train", arguments).config);
  };
  EXPECT_EQ(kept({}), 3) << "one is made before the oldest goes";
  EXPECT_EQ(kept({"--save-total-limit=1"}), 2);
  EXPECT_EQ(kept({"--save-strategy=no"}), 0);
  EXPECT_EQ(kept({"--save-weights=true"}), 0);
  EXPECT_EQ(kept({"--save-strategy=no", "--load-best-model-at-end", "--save-total-limit=1"}), 3);
  EXPECT_EQ(kept({"--save-total-limit=31"}), 32);
  EXPECT_CONTAINS(config::usage_error([&] { kept({"--save-total-limit=32"}); }),
                  "at most 31 checkpoints");
}

}  // namespace
}  // namespace ferry::runs
