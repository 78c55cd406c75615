// Checkpoints that pin generations of a run's store: what is kept for them, what is given back, and
// what is said where the store or the record is not what it was.

#include <gmock/gmock.h>

#include <cstring>

#include "offload/store/state_store.h"
#include "src/base/print.h"
#include "src/files/plain_file.h"
#include "src/files/write/atomic_file.h"
#include "src/runs/directory/checkpoints.h"
#include "src/runs/store/pin_record.h"
#include "tests/runs/store/store_fixture.h"

namespace ferry::runs {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kElements = 5 * 256;

/** One block of fp32 states in pieces of 512 elements. */
StoredStates one_block() {
  StoredStates states = {.piece_elements = 512,
                         .blocks = {{.name = "layer.0",
                                     .number = 1,
                                     .n_elements = kElements,
                                     .n_trained_elements = kElements}}};
  states.master =
      states.states = {{.tensor = "weight", .n_bytes = 4 * kElements, .block = 1, .offset = 0}};
  return states;
}

class PinsTest : public test::DiskTest {
 protected:
  PinsTest() {
    fs::create_directories(run_);
    std::vector<StoredSegment> segments = StateStore::segments_of(shape_);
    const int64_t n_bytes = store_bytes(segments, kKept);
    const fs::path file = directory_ / "run.states";
    disk_ = open_disk({file}, n_bytes);
    const std::string uuid = ExtentStore::create(*disk_, std::move(segments), kKept, "run");
    record_.store = {.files = {{file, drive_id_of(directory_.path())}},
                     .run = "run",
                     .uuid = uuid,
                     .n_bytes = n_bytes};
    extents_.emplace(*disk_, StoreIdentity{.run = "run", .uuid = uuid});
    states_.emplace(shape_, *extents_);
  }

  /** States of which each float of the block's row is its place + step, committed. */
  void step(int64_t step, const std::string& metadata = "{}") {
    std::vector<StorePage> slot(static_cast<size_t>(state_slot_bytes(shape_) / kStorePage_bytes));
    for (int piece = 0; piece < shape_.n_state_pieces(1); ++piece) {
      const StateRecord record = state_record(shape_, 1, piece);
      for (const ByteRange& part : {record.weights, record.states[0], record.states[1]})
        for (int64_t i = 0; i < record.n_elements; ++i) {
          const auto value = static_cast<float>(record.begin + i + step);
          std::memcpy(bytes_of(slot).data() + part.offset + 4 * i, &value, 4);
        }
      states_->write(1, piece, bytes_of(slot).data());
    }
    extents_->commit(metadata);
  }
  /** A checkpoint of the last generation, in a directory of this name. */
  void checkpoint(const std::string& name, const std::string& pin) {
    extents_->pin(pin);
    record_.pin = pin;
    record_.generation = extents_->pinned(pin).number;
    fs::create_directories(run_ / name / "state");
    write_pin_record(run_ / name, record_);
    write_text_file(run_ / name / "COMPLETE", "1\n");
  }
  std::string said(const std::function<void()>& work) {
    std::string all;
    const Listening listening([&](std::string_view line) { all += std::string(line) + "\n"; });
    work();
    return all;
  }

  static constexpr int kKept = 3;
  const fs::path run_ = directory_ / "run";
  PinRecord record_{.head = "classification", .n_labels = 2, .states = one_block()};
  const StepShape shape_ = shape_of(record_.states);
  std::unique_ptr<FileDisk> disk_;
  std::optional<ExtentStore> extents_;
  std::optional<StateStore> states_;
};

TEST_F(PinsTest, AGenerationIsReadBesideTheRun) {
  step(1);
  checkpoint("checkpoint-1", "checkpoint-1");
  step(2);
  const auto record = pin_record_of(run_ / "checkpoint-1");
  ASSERT_TRUE(record);
  PinnedStates pinned(*record, find_store(record->store, {}));
  step(3);
  step(4);
  std::vector<float> values(kElements - 100);
  for (const Segment segment : {Segment::master, Segment::state_0, Segment::state_1}) {
    pinned.reader().read(1, segment, 4 * 100, std::as_writable_bytes(std::span(values)));
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(values[i], static_cast<float>(i) + 101)
          << name_of(segment, simd::Optim::adamw) << " " << i;
  }
  pinned.check();
  extents_->unpin("checkpoint-1");
  EXPECT_THAT(test::error_of([&] { PinnedStates(*record, record->store); }, Fault::data),
              HasSubstr("keeps no 'checkpoint-1'"));
}

TEST_F(PinsTest, PinsWithoutACheckpointAreGivenBack) {
  step(1);
  checkpoint("checkpoint-1", "checkpoint-1");
  step(2);
  checkpoint("checkpoint-2.left", "checkpoint-2");
  step(3);
  extents_->pin("checkpoint-3");  // and killed before its directory was made
  unpin_unused(run_, *extents_);
  EXPECT_THAT(extents_->pins(), ElementsAre("checkpoint-1", "checkpoint-2"));
  // One that cannot be read may be any of them.
  write_text_file(run_ / "checkpoint-1" / kPinRecordName, "{");
  extents_->pin("checkpoint-3");
  EXPECT_THAT(said([&] { unpin_unused(run_, *extents_); }), HasSubstr("drive_states.json"));
  EXPECT_THAT(extents_->pins(), ElementsAre("checkpoint-1", "checkpoint-2", "checkpoint-3"));
}

TEST_F(PinsTest, WhatWasPutAsideMakesRoom) {
  for (int64_t n : {7, 30, 100}) {
    step(n);
    checkpoint(fmt::format("checkpoint-{}.left", n), fmt::format("checkpoint-{}", n));
  }
  step(5);
  make_room_for_pin(run_, *extents_);
  EXPECT_FALSE(fs::exists(run_ / "checkpoint-7.left"));
  EXPECT_TRUE(fs::exists(run_ / "checkpoint-30.left"));
  EXPECT_THAT(extents_->pins(), ElementsAre("checkpoint-30", "checkpoint-100"));
  EXPECT_EQ(name_of_pin(30, *extents_), "checkpoint-30.2") << "the run comes by there again";
  make_room_for_pin(run_, *extents_);
  EXPECT_THAT(extents_->pins(), ElementsAre("checkpoint-30", "checkpoint-100"));
}

TEST_F(PinsTest, ARecordIsReadBackOrRefused) {
  step(1);
  checkpoint("checkpoint-1", "checkpoint-1");
  const fs::path file = run_ / "checkpoint-1" / kPinRecordName;
  const std::string text = read_text_file(file);
  write_pin_record(run_ / "checkpoint-1", *pin_record_of(run_ / "checkpoint-1"));
  EXPECT_EQ(read_text_file(file), text);
  const auto refused = [&](const char* where, const ordered_json& value) {
    ordered_json all = ordered_json::parse(text);
    all.at(ordered_json::json_pointer(where)) = value;
    write_json_file(file, all);
    return test::error_of([&] { pin_record_of(run_ / "checkpoint-1"); }, Fault::data);
  };
  EXPECT_THAT(refused("/format_version", 2), HasSubstr("format_version"));
  EXPECT_THAT(refused("/holds/piece_elements", 100), HasSubstr("multiple of 256"));
  EXPECT_THAT(refused("/holds/piece_elements", 0), HasSubstr("piece_elements"));
  EXPECT_THAT(refused("/holds/dtype", "fp8"), HasSubstr("fp32 or fp16 or bf16"));
  EXPECT_THAT(refused("/holds/blocks/0/block", 1'000'000'000), HasSubstr("block"));
  EXPECT_THAT(refused("/holds/blocks/0/n_trained_elements", kElements + 1), HasSubstr("elements"));
  EXPECT_THAT(refused("/holds/master/0/block", 0), HasSubstr("lies on the drive"));
  EXPECT_THAT(refused("/holds/master/0/block", 2), HasSubstr("block"));
  EXPECT_THAT(refused("/holds/adam/0/offset", 4), HasSubstr("lies on the drive"));
  EXPECT_THAT(refused("/holds/adam/0/n_bytes", int64_t{1} << 50), HasSubstr("lies on the drive"));
  EXPECT_THAT(refused("/store/files/0/path", "run.states"), HasSubstr("whole path"));

  write_text_file(file, text);
  ordered_json other = ordered_json::parse(text);
  other["holds"]["blocks"][0]["n_elements"] = other["holds"]["blocks"][0]["n_trained_elements"] =
      2 * kElements;
  write_json_file(file, other);
  const PinRecord record = pin_record_of(run_ / "checkpoint-1").value();
  EXPECT_THAT(test::error_of([&] { PinnedStates(record, record.store); }, Fault::data),
              HasSubstr("other blocks"));
}

TEST_F(PinsTest, TheLastStepIsWhatWasCommitted) {
  EXPECT_FALSE(last_step_of(run_, {})) << "no record";
  fs::create_directories(run_ / "state");
  record_.pin.clear();
  write_pin_record(run_, record_);
  EXPECT_FALSE(last_step_of(run_, {})) << "no step";
  step(1, "");
  EXPECT_FALSE(last_step_of(run_, {})) << "of no run";
  step(2, R"({"n_steps": 0})");
  EXPECT_FALSE(last_step_of(run_, {})) << "the beginning";
  step(3, R"({"n_steps": 17})");
  const auto last = last_step_of(run_, {});
  ASSERT_TRUE(last);
  EXPECT_EQ(last->step, 17);
  EXPECT_EQ(last->record.generation, 3);
  step(4, R"({"n_steps": )");
  EXPECT_THAT(said([&] { EXPECT_FALSE(last_step_of(run_, {})); }), HasSubstr("generation 4"));
  fs::rename(directory_ / "run.states", directory_ / "away");
  EXPECT_THAT(said([&] { EXPECT_FALSE(last_step_of(run_, {})); }), HasSubstr("is gone"));
}

}  // namespace
}  // namespace ferry::runs
