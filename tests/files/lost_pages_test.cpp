#include "src/files/lost_pages.h"

#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "src/files/hf/checkpoint_reader.h"
#include "src/files/mapped_file.h"
#include "src/files/safetensors/safetensors_writer.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

using test::TempDir;
using ::testing::ExitedWithCode;

/** A mapped file of a few pages, and what happens to it. */
class LostPages : public ::testing::Test {
 protected:
  LostPages() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  static int sum_of(const MappedFile& file) {
    int sum = 0;
    for (std::byte byte : file.bytes())
      sum += static_cast<int>(byte);
    return sum;
  }

  TempDir dir_;
  std::filesystem::path path_ = dir_.write("model.safetensors", std::string(100'000, 'x'));
};

TEST_F(LostPages, EndTheProcessAndNameTheFile) {
  const auto shrink_and_read = [&] {
    end_on_lost_pages();
    const MappedFile other = MappedFile::open(dir_.write("other", std::string(100'000, 'y')));
    const MappedFile file = MappedFile::open(path_);
    std::filesystem::resize_file(path_, 10);
    std::exit(sum_of(other) + sum_of(file) > 0 ? 0 : 1);
  };
  EXPECT_EXIT(shrink_and_read(), ExitedWithCode(4),
              "\\[files.read\\] '.*/model.safetensors' became shorter while it was used");
}

TEST_F(LostPages, AlsoOnAThreadOfAPool) {
  const auto shrink_and_read = [&] {
    end_on_lost_pages();
    MappedFile opened = MappedFile::open(path_);
    const MappedFile file = std::move(opened);  // the note moves along
    std::filesystem::resize_file(path_, 0);
    std::thread([&] { std::exit(sum_of(file) > 0 ? 0 : 1); }).join();
  };
  EXPECT_EXIT(shrink_and_read(), ExitedWithCode(4), "model.safetensors' became shorter");
}

TEST_F(LostPages, OfNoFileOfOursStaySigbus) {
  const auto read_what_is_closed = [&] {
    end_on_lost_pages();
    { const MappedFile closed = MappedFile::open(path_); }
    std::raise(SIGBUS);
  };
  EXPECT_EXIT(read_what_is_closed(), ::testing::KilledBySignal(SIGBUS), "");
}

TEST_F(LostPages, WeightsCutShortWhileTheyAreRead) {
  {
    SafetensorsWriter writer(path_, {{"w", DType::f32, {1 << 16}}});
    std::vector<std::byte> zeros(4 << 16);
    writer.write("w", zeros);
    writer.finish();
  }
  const auto shrink_and_read = [&] {
    end_on_lost_pages();
    const CheckpointReader reader = CheckpointReader::open(path_);
    std::filesystem::resize_file(path_, 8192);
    float sum = 0;
    reader.read_f32(reader.get("w"), [&](std::span<const float> values, int64_t) {
      for (float value : values)
        sum += value;
    });
    std::exit(sum == 0 ? 0 : 1);
  };
  EXPECT_EXIT(shrink_and_read(), ExitedWithCode(4), "model.safetensors' became shorter");
}

}  // namespace
}  // namespace ferry
