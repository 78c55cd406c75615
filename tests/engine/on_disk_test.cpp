// The bytes of checkpoints and of stores on drives: those that this tree writes are the ones in
// on_disk/, and it reads those. Runs of before are resumed and exported through these files, so a
// change of structure leaves them as they are. With FERRY_RENEW_GOLDEN=1 they are written anew, for
// a format that is meant to change.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "offload/store/store_format.h"
#include "src/runs/directory/checkpoints.h"
#include "src/runs/store/pin_record.h"
#include "tests/engine/stored_model.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;
using test::OnDrive, test::StoredCase, test::StoredModel;

/** In place of the number that a store draws. */
const std::string kUuid = "0123456789abcdef0123456789abcdef";

/** The bytes of files, by name. */
using Files = std::map<std::string, std::string>;

// ---- Files as one, where most bytes of a store are zero

template <class T>
void put(std::string& out, T number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}
template <class T>
T take(std::string_view& in) {
  T number{};
  if (in.size() < sizeof number) throw std::runtime_error("cut short");
  std::memcpy(&number, in.data(), sizeof number);
  in.remove_prefix(sizeof number);
  return number;
}

/** Each file as the lengths of name and content, the name, and runs of zeros before other bytes.
 */
std::string pack(const Files& files) {
  constexpr size_t kLeast_zeros = 16;
  std::string out;
  for (const auto& [name, bytes] : files) {
    put(out, static_cast<uint32_t>(name.size()));
    put(out, static_cast<uint32_t>(bytes.size()));
    out += name;
    const std::string zeros(kLeast_zeros, '\0');
    for (size_t at = 0; at < bytes.size();) {
      const size_t begin = std::min(bytes.find_first_not_of('\0', at), bytes.size());
      const size_t end = std::min(bytes.find(zeros, begin), bytes.size());
      put(out, static_cast<uint32_t>(begin - at));
      put(out, static_cast<uint32_t>(end - begin));
      out.append(bytes, begin, end - begin);
      at = end;
    }
  }
  return out;
}
Files unpack(std::string_view in) {
  Files files;
  while (!in.empty()) {
    const auto name_length = take<uint32_t>(in), length = take<uint32_t>(in);
    std::string& bytes = files[std::string(in.substr(0, name_length))];
    in.remove_prefix(name_length);
    while (bytes.size() < length) {
      bytes.append(take<uint32_t>(in), '\0');
      const auto n = take<uint32_t>(in);
      bytes.append(in.substr(0, n));
      in.remove_prefix(n);
    }
  }
  return files;
}

Files files_in(const fs::path& directory) {
  Files files;
  for (const auto& entry : fs::recursive_directory_iterator(directory))
    if (entry.is_regular_file())
      files[fs::relative(entry.path(), directory).string()] = test::read_file(entry.path());
  return files;
}
void write_to(const test::TempDir& directory, const Files& files) {
  for (const auto& [name, bytes] : files)
    directory.write(name, bytes);
}

/** A store with kUuid in place of its own. */
std::string with_known_uuid(std::string store) {
  const auto at = [&](int64_t offset, int64_t n_bytes) {
    return std::as_writable_bytes(std::span(store))
        .subspan(static_cast<size_t>(offset), static_cast<size_t>(n_bytes));
  };
  Superblock superblock = decode_superblock(at(0, StoreLayout::superblock_bytes()));
  const StoreLayout layout(superblock.segments, superblock.n_kept);
  const std::string drawn = std::exchange(superblock.identity.uuid, kUuid);
  for (int copy = 0; copy < 2; ++copy) {
    encode_superblock(superblock,
                      at(layout.superblock_offset(copy), StoreLayout::superblock_bytes()));
    for (int map = 0; map < 2; ++map) {
      const auto place = at(layout.map_offset(map, copy), kStorePage_bytes);
      StorePage page;
      std::memcpy(page.bytes, place.data(), place.size());
      encode_map(decode_map(page, drawn, layout), kUuid, page);
      std::memcpy(place.data(), page.bytes, place.size());
    }
  }
  return store;
}

class OnDisk : public ::testing::TestWithParam<StoredCase> {
 protected:
  static constexpr OnDrive kWhich = OnDrive::with_weights;
  static fs::path golden_file() {
    return fs::path(FERRY_SOURCE_ROOT) / "tests/engine/on_disk" /
           (GetParam().name + std::string(".bin"));
  }

  /** A checkpoint whose files hold all, in whole/; one of whose states the drive has some, in
   * part/; and that drive's store. */
  static Files written() {
    const test::TempDir directory;
    StoredModel model(GetParam(), kWhich, directory / "run.states");
    model.fill();
    model.pin();
    runs::write_checksums(directory / "whole",
                          model.write_files(directory / "whole", FilesHold::all), "{}\n");
    const auto in_part = model.write_files(directory / "part", FilesHold::what_no_drive_has);
    runs::write_pin_record(
        directory / "part",
        {.store = {.files = {{"/drive/run.states", "drive"}},
                   .run = "run",
                   .uuid = kUuid,
                   .n_bytes = static_cast<int64_t>(fs::file_size(directory / "run.states"))},
         .pin = "checkpoint-1",
         .generation = 1,
         .head = "language_model",
         .states = stored_states_of(model.table(), model.shape())});
    runs::write_checksums(directory / "part", in_part, "{}\n");
    Files files = files_in(directory.path());
    files["run.states"] = with_known_uuid(files["run.states"]);
    return files;
  }
  static Files golden() { return unpack(test::read_file(golden_file())); }

  OnDisk() : model_(GetParam(), OnDrive::none, directory_ / "none") { model_.fill(); }

  /** The values are those that were written, whatever place they have now. */
  void expect_values(StoredModel& run) {
    const auto right = model_.bytes(), bytes = run.bytes();
    for (const auto& [of, there] : right)
      EXPECT_TRUE(bytes.at(of) == there) << of.first << " " << name_of(of.second, GetParam().optim);
  }

  const test::TempDir directory_;
  StoredModel model_;
};

TEST_P(OnDisk, TheBytesAreThoseOfBefore) {
  const Files files = written();
  if (std::getenv("FERRY_RENEW_GOLDEN")) {
    fs::create_directories(golden_file().parent_path());
    std::ofstream(golden_file(), std::ios::binary) << pack(files);
    GTEST_SKIP() << "written anew: " << golden_file();
  }
  const Files before = golden();
  for (const auto& [name, bytes] : before) {
    ASSERT_TRUE(files.contains(name)) << name;
    const std::string& now = files.at(name);
    EXPECT_EQ(now.size(), bytes.size()) << name;
    const auto [a, b] = std::ranges::mismatch(now, bytes);
    EXPECT_TRUE(a == now.end() && b == bytes.end()) << name << ", byte " << a - now.begin();
  }
  EXPECT_EQ(files.size(), before.size());
}

TEST_P(OnDisk, ACheckpointOfBeforeHasItsValues) {
  write_to(directory_, golden());
  StoredModel run(GetParam(), OnDrive::none, directory_ / "now.states");
  run.load(directory_ / "whole", runs::read_checksums(directory_ / "whole"), nullptr);
  expect_values(run);
}

TEST_P(OnDisk, AStoreOfBeforeHasItsValues) {
  write_to(directory_, golden());
  auto record = runs::pin_record_of(directory_ / "part");
  ASSERT_TRUE(record);
  runs::StorePlace place = record->store;
  place.files.front().path = directory_ / "run.states";
  runs::PinnedStates pinned(*record, place);
  pinned.check();
  const auto checksums = runs::read_checksums(directory_ / "part");
  const DriveSource drive = {.about = &pinned.about(), .reader = &pinned.reader()};
  StoredModel run(GetParam(), OnDrive::none, directory_ / "now.states");
  run.load(directory_ / "part", checksums, &drive);
  expect_values(run);
}

TEST_P(OnDisk, ARunGoesOnInTheStoreOfBefore) {
  write_to(directory_, golden());
  StoredModel run(GetParam(), kWhich, directory_ / "run.states", kUuid);
  ExtentStore& extents = run.store().extents();
  extents.start_from(extents.pinned("checkpoint-1"));
  run.segments().restore_weights();
  const StoredStates about = stored_states_of(run.table(), run.shape());
  const DriveSource in_place = {.about = &about};
  run.load(directory_ / "part", runs::read_checksums(directory_ / "part"), &in_place);
  expect_values(run);
}

constexpr auto kLlama = DecoderFamily::llama, kGpt2 = DecoderFamily::gpt2;
using simd::Optim;

INSTANTIATE_TEST_SUITE_P(
    EngineStates,
    OnDisk,
    ::testing::Values(
        StoredCase{"fp32", kLlama, DType::f32, Optim::adamw, false, false, false, true},
        StoredCase{"fp32_8bit", kLlama, DType::f32, Optim::adamw_8bit, false, false, false, true},
        StoredCase{"bf16", kLlama, DType::bf16, Optim::adamw, false, false, true, true},
        StoredCase{"bf16_split", kGpt2, DType::bf16, Optim::adamw, true, false, false, true},
        StoredCase{"bf16_bf16", kGpt2, DType::bf16, Optim::adamw_bf16, false, false, false, true},
        StoredCase{"bf16_bf16_split", kLlama, DType::bf16, Optim::adamw_bf16, true, false, false,
                   true},
        StoredCase{"bf16_8bit", kLlama, DType::bf16, Optim::adamw_8bit, false, false, true, true},
        StoredCase{"bf16_8bit_split", kGpt2, DType::bf16, Optim::adamw_8bit, true, false, false,
                   true}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ferry
