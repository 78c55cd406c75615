#include "src/files/plain_file.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <thread>

#include "src/base/bytes.h"
#include "src/base/process/host_memory.h"
#include "src/files/hf/hf_directory.h"
#include "src/files/mapped_file.h"
#include "src/files/write/atomic_file.h"
#include "tests/files/hostile_files.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

using test::error_of;
using test::hostile_files;
using test::TempDir;
using ::testing::HasSubstr;

TEST(PlainFile, ReadsWhatIsThere) {
  TempDir dir;
  EXPECT_EQ(read_text_file(dir.write("a", "some")), "some");
  EXPECT_EQ(read_text_file(dir.write("empty", "")), "");
  std::filesystem::create_symlink("a", dir / "link");
  EXPECT_EQ(read_text_file(dir / "link"), "some");
  const auto message = error_of([&] { read_text_file(dir / "a", 3); });
  EXPECT_THAT(message, HasSubstr("has 4 B, expected at most 3 B"));
}

/** A sparse file takes no disk, and its text would take memory that others use. */
TEST(PlainFile, RefusesWhatIsLargerThanTheMemoryThatIsFree) {
  TempDir dir;
  const auto path = dir.write("data.csv", "");
  const int64_t n_bytes = read_host_memory().free_bytes() + 512 * kMiB;
  std::filesystem::resize_file(path, static_cast<size_t>(n_bytes));
  const auto message = error_of([&] { read_text_file(path, std::numeric_limits<size_t>::max()); });
  EXPECT_THAT(message, HasSubstr("'" + path.string() + "' has " + format_bytes(n_bytes)));
  EXPECT_THAT(message, HasSubstr("of memory are free"));
}

TEST(PlainFile, RefusesWhatIsNoFile) {
  for (const auto& [what, make] : hostile_files()) {
    TempDir dir;
    const auto path = dir / "file";
    make(path);
    const auto message = error_of([&] { read_text_file(path); });
    EXPECT_THAT(message, HasSubstr(what));
    EXPECT_THAT(message, HasSubstr(path.string()));
  }
}

TEST(PlainFile, MapsAndCopiesOnlyFiles) {
  for (const auto& [what, make] : hostile_files()) {
    if (what == "4096.00 GiB") continue;  // may be mapped: that takes no memory
    TempDir dir;
    const auto path = dir / "file";
    make(path);
    EXPECT_THAT(error_of([&] { MappedFile::open(path); }), HasSubstr(what));
    EXPECT_THAT(error_of([&] { copy_file_atomically(path, dir / "copy"); }), HasSubstr(what));
    EXPECT_FALSE(path_exists(dir / "copy"));
  }
}

TEST(PlainFile, CopiesEveryByte) {
  TempDir dir;
  std::string text(3 << 20, '\0');
  for (size_t i = 0; i < text.size(); ++i)
    text[i] = static_cast<char>(i * 31 >> 3);
  copy_file_atomically(dir.write("a", text), dir / "b");
  EXPECT_EQ(read_text_file(dir / "b"), text);
  copy_file_atomically(dir.write("empty", ""), dir / "nothing");
  EXPECT_EQ(read_text_file(dir / "nothing"), "");
}

TEST(PlainFile, DescriptorsOfAShell) {
  EXPECT_EQ(descriptor_of("/dev/stdin"), 0);
  EXPECT_EQ(descriptor_of("/dev/fd/63"), 63);
  EXPECT_EQ(descriptor_of("/proc/self/fd/7"), 7);
  for (const char* path : {"stdin", "/dev/fd/", "/dev/fd/x", "/dev/fd/-1", "/dev/fd/9999999999999"})
    EXPECT_EQ(descriptor_of(path), std::nullopt) << path;
}

TEST(PlainFile, StreamsUntilTheirEnd) {
  std::string long_text;
  for (int i = 0; i < 100'000; ++i)
    long_text += std::to_string(i) + "\n";
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::thread writer([&] {
    for (size_t at = 0; at < long_text.size();) {
      const ssize_t n = ::write(ends[1], long_text.data() + at, long_text.size() - at);
      ASSERT_GT(n, 0);
      at += static_cast<size_t>(n);
    }
    ::close(ends[1]);
  });
  EXPECT_EQ(read_stream(ends[0], "the pipe"), long_text);
  writer.join();
  ::close(ends[0]);

  const int zeros = ::open("/dev/zero", O_RDONLY);
  EXPECT_THAT(error_of([&] { read_stream(zeros, "'/dev/zero'"); }),
              HasSubstr("byte 0 of '/dev/zero' (line 1) is 0 (NUL)"));
  ::close(zeros);
  EXPECT_THAT(error_of([] { read_stream(-1, "'none'"); }), HasSubstr("'none' cannot be read: "));
}

/** Every file of a model that may be one of the hostile kinds. */
TEST(PlainFile, ModelsOfHostileFiles) {
  for (const char* name : {"config.json", "model.safetensors", "model.safetensors.index.json"})
    for (const auto& [what, make] : hostile_files()) {
      TempDir dir;
      if (std::string_view(name) != "config.json")
        dir.write("config.json",
                  R"({"model_type": "bert", "hidden_size": 384, "num_attention_heads": 12,
          "intermediate_size": 1536, "num_hidden_layers": 6, "vocab_size": 30522})");
      make(dir / name);
      const auto message = error_of([&] { HfDirectory::open(dir.path()); });
      EXPECT_THAT(message, HasSubstr(name)) << what;
    }
}

/** Reads while another thread makes the file shorter and longer: all of a size that it had, or an
 * error, and never a part. */
TEST(PlainFile, ShortenedWhileItIsRead) {
  TempDir dir;
  const auto path = dir.write("text", "");
  constexpr size_t kLong = 64 << 20, kShort = 4096;
  std::filesystem::resize_file(path, kLong);
  std::atomic<bool> ends{false};
  std::thread writer([&] {
    for (bool is_long = true; !ends; is_long = !is_long) {
      std::filesystem::resize_file(path, is_long ? kShort : kLong);
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
  });
  int n_refused = 0;
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::minutes(1);  // it takes milliseconds
  while (n_refused == 0 && Clock::now() < end)
    try {
      const size_t size = read_text_file(path).size();
      EXPECT_TRUE(size == kLong || size == kShort) << size;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::data);
      EXPECT_THAT(error.what(), HasSubstr("became shorter while it was read"));
      ++n_refused;
    }
  ends = true;
  writer.join();
  EXPECT_GT(n_refused, 0);
}

}  // namespace
}  // namespace ferry
