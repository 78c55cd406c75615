// Event files byte by byte. The expected records are what protobuf's and TensorBoard's own encoders
// make of the same messages (tensorboard 2.21); tests/runs reads whole files with TensorBoard.

#include "src/files/tensorboard_events.h"

#include "tests/files/test_files.h"

namespace ferry::test {
namespace {

std::string hex(std::string_view bytes) {
  std::string text;
  for (char c : bytes)
    text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

/** The time in an event file's name. */
std::string name_time_of(const TensorboardWriter& writer) {
  return writer.path().filename().string().substr(std::string("events.out.tfevents.").size(), 10);
}

TEST(TensorboardWriter, WritesTheRecordsOfTheReferenceEncoder) {
  TempDir directory;
  TensorboardWriter writer(directory / "tensorboard", 300, 1700000000.25);
  const TensorboardScalar scalars[] = {{"train/loss", 0.5f}, {"train/grad_norm", -0.125f}};
  writer.add(300, 1700000001.5, scalars);
  // "brain.Event:2"; SessionLog.START at step 301; the two values at step 300.
  EXPECT_EQ(hex(read_file(writer.path())),
            "1800000000000000a37f4b220900001040fc54d9411a0d627261696e2e4576656e743a32338d2fe9"
            "100000000000000095fbfe180900001040fc54d94110ad023a020801cb79b93b"
            "39000000000000008b0737f10900006040fc54d94110ac022a2b0a110a0a747261696e2f6c6f7373"
            "150000003f0a160a0f747261696e2f677261645f6e6f726d15000000be54c92c7c");
}

TEST(TensorboardWriter, NamesFilesInTheOrderTheyWereMade) {
  TempDir directory;
  TensorboardWriter first(directory.path(), 0, 1700000000.9);
  const std::string name = first.path().filename().string();
  EXPECT_TRUE(name.starts_with("events.out.tfevents.1700000000.")) << name;
  EXPECT_TRUE(name.ends_with(fmt::format(".{}.0", ::getpid()))) << name;
  directory.write("events.out.tfevents.1699999999.zebra.99999.0", "");
  EXPECT_EQ(name_time_of(TensorboardWriter(directory.path(), 0, 1700000000.95)), "1700000001");
  EXPECT_EQ(name_time_of(TensorboardWriter(directory.path(), 0, 5.0)), "1700000002")
      << "the clock was set back";
  EXPECT_EQ(name_time_of(TensorboardWriter(directory.path(), 0, 1800000000.0)), "1800000000");
  EXPECT_EQ(name_time_of(TensorboardWriter(directory / "other", 0, 5.0)), "0000000005");
  EXPECT_EQ(directory.n_entries(), 6u);
}

TEST(TensorboardWriter, SaysWhatCannotBeWritten) {
  TempDir directory;
  directory.write("taken", "");
  const std::string said =
      error_of([&] { TensorboardWriter writer(directory / "taken", 0, 1.0); }, Fault::machine);
  EXPECT_NE(said.find("taken' could not be created"), std::string::npos) << said;
}

TEST(AppendOnlyFile, KeepsWhatItIsToldAndGrows) {
  TempDir directory;
  const auto path = directory.write("log", "one\ntwo\nthr");
  AppendOnlyFile file(path, 8);
  EXPECT_EQ(read_file(path), "one\ntwo\n");
  file.append("three\n");
  EXPECT_EQ(read_file(path), "one\ntwo\nthree\n");
  {
    FileSizeLimit limit(20);
    const std::string said = error_of([&] { file.append("four\nfive\nsix\n"); }, Fault::machine);
    EXPECT_NE(said.find("log' could not be written"), std::string::npos) << said;
  }
  EXPECT_NE(error_of([&] { AppendOnlyFile(directory / "no/log", 0); }, Fault::machine)
                .find("make it first"),
            std::string::npos);
}

}  // namespace
}  // namespace ferry::test
