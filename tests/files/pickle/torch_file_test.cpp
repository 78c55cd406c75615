// pytorch_model.bin: what torch.save writes is read, and whatever is no dictionary of tensors is
// refused by name, with nothing executed.

#include "src/files/pickle/torch_file.h"

#include <gmock/gmock.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <random>

#include "src/files/hf/checkpoint_reader.h"
#include "src/files/pickle/tensor_pickle.h"
#include "tests/files/hostile_files.h"
#include "tests/files/pickle/torch_archive.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

using test::archive;
using test::dictionary;
using test::error_of;
using test::global;
using test::pickle_of;
using test::pickled;
using test::run_python;
using test::TempDir;
using test::tensor;
using test::torch_file;
using test::venv_python;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> floats_of(const CheckpointReader& reader, std::string_view name) {
  std::vector<float> all;
  reader.read_f32(reader.get(name), [&](std::span<const float> values, int64_t first_element) {
    EXPECT_EQ(first_element, std::ssize(all));
    all.insert(all.end(), values.begin(), values.end());
  });
  return all;
}

/** Two names of one tensor, a part of it, and the other way round. */
const std::string kPickle =
    pickle_of(dictionary({{"whole", tensor({})},
                          {"tied", tensor({})},
                          {"row", tensor({.offset = 3, .shape = {1, 3}, .strides = {9, 1}})},
                          {"turned", tensor({.shape = {3, 2}, .strides = {1, 3}})},
                          {"column", tensor({.offset = 1, .shape = {2}, .strides = {3}})},
                          {"scalar", tensor({.offset = 5, .shape = {}, .strides = {}})},
                          {"none", tensor({.offset = 6, .shape = {0, 4}, .strides = {4, 1}})},
                          {"epoch", pickled(int64_t{3})}}));

TEST(TorchFile, GivesViewsOfItsStorages) {
  const TempDir dir;
  dir.write("pytorch_model.bin", torch_file(kPickle));
  const auto reader = CheckpointReader::open(dir.path());
  EXPECT_EQ(reader.tensors().size(), 7u);
  EXPECT_EQ(reader.find("whole")->bytes.data(), reader.find("tied")->bytes.data());
  EXPECT_TRUE(reader.find("row")->strides.empty());
  EXPECT_THAT(floats_of(reader, "whole"), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(floats_of(reader, "row"), ElementsAre(3, 4, 5));
  EXPECT_THAT(floats_of(reader, "turned"), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(floats_of(reader, "column"), ElementsAre(1, 4));
  EXPECT_THAT(floats_of(reader, "scalar"), ElementsAre(5));
  EXPECT_THAT(floats_of(reader, "none"), ElementsAre());
  EXPECT_EQ(reader.total_bytes(), 4 * (6 + 6 + 3 + 6 + 2 + 1));
  float part[3];
  CheckpointReader::read_part(*reader.find("turned"), 2, part);
  EXPECT_THAT(part, ElementsAre(1, 4, 2));
}

TEST(TorchFile, GathersMoreThanAPiece) {
  constexpr int64_t kRows = 1200, kColumns = 900;  // 4 MiB
  const TempDir dir;
  dir.write("pytorch_model.bin",
            torch_file(pickle_of(dictionary({{"w", tensor({.n_stored = kRows * kColumns,
                                                           .shape = {kColumns, kRows},
                                                           .strides = {1, kColumns}})}})),
                       kRows * kColumns));
  const std::vector<float> values = floats_of(CheckpointReader::open(dir.path()), "w");
  ASSERT_EQ(std::ssize(values), kRows * kColumns);
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(values[i], static_cast<float>(i % kRows * kColumns + i / kRows)) << i;
}

TEST(TorchFile, ReadsArchivesAbove4GiB) {
  const TempDir dir;
  const std::string pickle = pickle_of(dictionary({{"a", tensor({})}}));
  dir.write("pytorch_model.bin",
            archive({{"x/data.pkl", pickle}, {"x/data/0", std::string(24, '\1')}}, /*zip64=*/true));
  EXPECT_EQ(floats_of(CheckpointReader::open(dir.path()), "a").size(), 6u);
}

/** A storage's name as torch wrote it before 1.6: with the part of another storage that it is. */
std::string old_tensor(std::string_view part = "N") {
  return global("torch._utils", "_rebuild_tensor_v2") + "((" + pickled("storage") +
         global("torch", "FloatStorage") + pickled("0") + pickled("cpu") + pickled(int64_t{6}) +
         std::string(part) + "tQ" + pickled(int64_t{0}) + pickled(std::vector<int64_t>{2, 3}) +
         pickled(std::vector<int64_t>{3, 1}) + "\x89" + global("collections", "OrderedDict") +
         ")RtR";
}

std::string old_file(const std::string& value, bool little_endian = true, int64_t n_elements = 6) {
  std::string file("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.", 21);
  file += pickle_of(dictionary({{"little_endian", little_endian ? "\x88" : "\x89"}}));
  file += pickle_of(value) + pickle_of("](" + pickled("0") + "e");
  file += test::little_endian(n_elements);
  for (int i = 0; i < 6; ++i)
    file += test::little_endian(static_cast<float>(i));
  return file;
}

TEST(TorchFile, ReadsFilesOfTorchBefore1_6) {
  const TempDir dir;
  const std::string whole = old_file(dictionary({{"a", old_tensor()}}));
  dir.write("pytorch_model.bin", whole);
  EXPECT_THAT(floats_of(CheckpointReader::open(dir.path()), "a"), ElementsAre(0, 1, 2, 3, 4, 5));
  const auto error_with = [&](const std::string& file) {
    const auto path = dir.write("other.bin", file);
    return error_of([&] { TorchFile::open(path); });
  };
  for (size_t n = 21; n < whole.size(); n += 7)
    EXPECT_THAT(error_with(whole.substr(0, n)), HasSubstr("cut off")) << n;
  EXPECT_THAT(error_with(old_file(dictionary({{"a", old_tensor()}}), false)),
              HasSubstr("not little-endian"));
  EXPECT_THAT(error_with(old_file(dictionary({{"a", old_tensor()}}), true, 5)),
              HasSubstr("the storage '0' has 5 elements, expected 6"));
  EXPECT_THAT(error_with(old_file(dictionary({{"a", old_tensor("(" + pickled("1") + "t")}}))),
              HasSubstr("is a part of another"));
  EXPECT_THAT(error_with(old_file(dictionary({{"a", global("os", "system") + "(tR"}}))),
              HasSubstr("asks for Python's 'os.system'"));
}

/** Python attributes of a tensor, which say nothing of its values. */
TEST(TorchFile, PassesOverAttributesOfTensors) {
  const TempDir dir;
  const std::string state = dictionary({{"tensor_model_parallel", "\x88"}});
  const std::string parameter = global("torch._utils", "_rebuild_parameter_with_state") + "(" +
                                tensor({}) + "\x88" + global("collections", "OrderedDict") + ")R" +
                                state + "tR";
  const auto from_type = [&](const std::string& call, const std::string& type) {
    return global("torch._tensor", "_rebuild_from_type_v2") + "(" + call + type + "(" +
           test::storage("FloatStorage", "0", 6) + pickled(int64_t{0}) +
           pickled(std::vector<int64_t>{6}) + pickled(std::vector<int64_t>{1}) + "t" + state + "tR";
  };
  const std::string made_by = global("torch._utils", "_rebuild_tensor_v2");
  dir.write("pytorch_model.bin",
            torch_file(pickle_of(dictionary(
                {{"a", parameter}, {"b", from_type(made_by, global("torch", "Tensor"))}}))));
  const auto reader = CheckpointReader::open(dir.path());
  EXPECT_THAT(floats_of(reader, "a"), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(floats_of(reader, "b"), ElementsAre(0, 1, 2, 3, 4, 5));
  const auto error_with = [&](const std::string& value) {
    const auto path = dir.write("other.bin", torch_file(pickle_of(dictionary({{"a", value}}))));
    return error_of([&] { TorchFile::open(path); });
  };
  const std::string itself = global("torch._tensor", "_rebuild_from_type_v2");
  EXPECT_THAT(error_with(from_type(itself, global("torch", "Tensor"))),
              HasSubstr("a tensor is made by '_rebuild_from_type_v2'"));
  EXPECT_THAT(error_with(from_type(made_by, made_by)), HasSubstr("of a class that is none"));
}

TEST(TorchFile, ReadsWhatTorchWrites) {
  if (!std::filesystem::exists(venv_python())) GTEST_SKIP() << "no .venv with python";
  const TempDir dir;
  if (!run_python(dir, "import torch, safetensors.torch").first)
    GTEST_SKIP() << "no torch and safetensors in .venv";
  // The same tensors as safetensors, row-major; what that does not have is refused by name.
  const auto [ok, log] = run_python(dir, fmt::format(R"(
import collections, os, torch
from safetensors.torch import save_file
d = {:?}
torch.manual_seed(1)
base = torch.randn(40, 30)
tensors = collections.OrderedDict(
    f64=torch.randn(3, 4, dtype=torch.float64), f16=torch.randn(7).half(), bf16=base.bfloat16(),
    base=base, turned=base.t(), cut=base[3:9, 5:11], every=base[::2, 1::3], cube=torch.randn(4, 5, 6).permute(2, 0, 1),
    parameter=torch.nn.Parameter(base[5]), scalar=torch.tensor(2.5), none=torch.zeros(0, 3),
    ids=torch.arange(5), i32=torch.arange(4, dtype=torch.int32), u8=torch.arange(9, dtype=torch.uint8),
    i8=torch.arange(3, dtype=torch.int8), flag=torch.tensor([True, False]), u16=torch.zeros(3, dtype=torch.uint16),
    f8=torch.randn(5).to(torch.float8_e4m3fn))
tensors["parameter"].tensor_model_parallel = True  # attributes, as training frameworks give them
tensors["parameter"].shape_before = torch.Size([3, 4])
tensors["f64"].origin = "a text"
for protocol in range(2, 6):
    os.mkdir(f"{{d}}/{{protocol}}")
    torch.save(tensors, f"{{d}}/{{protocol}}/pytorch_model.bin", pickle_protocol=protocol)
os.mkdir(d + "/legacy")
torch.save(tensors, d + "/legacy/pytorch_model.bin", _use_new_zipfile_serialization=False)
torch.save(torch.nn.Linear(2, 3), d + "/module.bin")
torch.save(torch.nn.Linear(2, 3).state_dict(), d + "/linear.bin")
torch.save(dict(model=tensors, epoch=3), d + "/training.bin")
save_file({{name: t.detach().clone().contiguous() for name, t in tensors.items()}}, d + "/model.safetensors")
)",
                                                     dir.path().string()));
  ASSERT_TRUE(ok) << log;
  const auto expected = CheckpointReader::open(dir.path());
  for (const char* protocol : {"2", "3", "4", "5", "legacy"}) {
    SCOPED_TRACE(protocol);
    const auto reader = CheckpointReader::open(dir / protocol);
    EXPECT_EQ(reader.tensors().size(), expected.tensors().size());
    for (const StoredTensor* tensor : expected.tensors()) {
      const StoredTensor* read = reader.find(tensor->name);
      ASSERT_NE(read, nullptr) << tensor->name;
      EXPECT_EQ(read->type, tensor->type) << tensor->name;
      EXPECT_EQ(read->shape, tensor->shape) << tensor->name;
      std::vector<std::byte> bytes;
      reader.read(*read, [&](std::span<const std::byte> piece, size_t) {
        bytes.insert(bytes.end(), piece.begin(), piece.end());
      });
      EXPECT_TRUE(std::ranges::equal(bytes, tensor->bytes)) << tensor->name;
    }
    EXPECT_THAT(error_of([&] { reader.get("f8"); }), HasSubstr("'f8' is of type F8_E4M3"));
  }
  EXPECT_EQ(CheckpointReader::open(dir / "linear.bin").tensors().size(), 2u);
  const auto open = [&](const char* file) {
    return error_of([&] { CheckpointReader::open(dir / file); });
  };
  EXPECT_THAT(open("module.bin"), HasSubstr("'torch.nn.modules.linear.Linear'"));
  EXPECT_THAT(open("training.bin"), HasSubstr("holds no tensors under names"));
}

class HostileTorchFile : public ::testing::Test {
 protected:
  std::string error_with(std::string_view file) {
    const auto path = write(file);
    const std::string error = error_of([&] { TorchFile::open(path); });
    EXPECT_THAT(error, HasSubstr(path.filename().string() + "'"));
    EXPECT_LT(error.size(), 1000u);
    std::filesystem::remove(path);
    return error;
  }
  std::string error_of_pickle(const std::string& value) {
    return error_with(torch_file(pickle_of(value)));
  }
  std::string error_of_tensor(const test::TensorView& view) {
    return error_of_pickle(dictionary({{"a", tensor(view)}}));
  }
  /** A new name each time: some file systems write at once what takes the place of a file. */
  std::filesystem::path write(std::string_view file) {
    return dir_.write(fmt::format("{}.bin", ++n_written_), file);
  }
  TempDir dir_;
  int n_written_ = 0;
};

TEST_F(HostileTorchFile, ItsGlobalsAreNamedAndNotCalled) {
  const std::string command = "touch '" + (dir_ / "executed").string() + "'";
  const std::pair<const char*, const char*> globals[] = {{"os", "system"},
                                                         {"posix", "system"},
                                                         {"builtins", "eval"},
                                                         {"subprocess", "Popen"},
                                                         {"torch", "load"},
                                                         {"torch.hub", "load"},
                                                         {"torch", "system"},
                                                         {"torch._utils", "os.system"},
                                                         {"collections", "OrderedDict "}};
  for (const auto& [module, name] : globals) {
    const std::string call = "(" + pickled(command) + "tR";
    for (const std::string& asked :
         {global(module, name), pickled(module) + pickled(name) + "\x93"}) {
      const std::string error = error_of_pickle(dictionary({{"a", asked + call}}));
      EXPECT_THAT(error, HasSubstr(fmt::format("asks for Python's '{}.{}'", module, name)));
      EXPECT_THAT(error, HasSubstr("nothing was executed"));
    }
  }
  EXPECT_FALSE(std::filesystem::exists(dir_ / "executed"));
  EXPECT_THAT(error_of_pickle(global(std::string(100'000, 'm'), "x")), HasSubstr("mmmm"));
}

TEST_F(HostileTorchFile, OperationsThatNoTensorNeeds) {
  // INST, OBJ, NEWOBJ, NEWOBJ_EX, EXT1, PERSID, INT, LONG, BYTEARRAY8, NEXT_BUFFER, ...
  for (const char* code :
       {"i",    "o",    "\x81", "\x92", "\x82", "\x83", "\x84", "P", "I",    "L", "\x96",
        "\x97", "\x98", "\x8f", "\x8b", "S",    "V",    "d",    "l", "\xff", "2"})
    EXPECT_THAT(error_of_pickle("}" + std::string(code) + "os\nsystem\n"),
                HasSubstr("which no state of tensors needs; nothing was executed"))
        << code;
}

TEST_F(HostileTorchFile, StacksAndMemories) {
  const auto has = [&](const std::string& value, const char* what) {
    EXPECT_THAT(error_of_pickle(value), HasSubstr(what));
  };
  has("", "takes a value where there is none");
  has("N", "what it holds is None, expected a dictionary");
  has("}", "no tensors under names");
  has("}" + pickled("a") + "u", "no beginning");
  has("}(" + pickled("a") + "u", "a key without a value");
  has("}(s", "takes a value where there is none");
  has("]" + pickled("a") + "Ns", "expected a dictionary");
  has("}Na", "expected a list");
  has("Nb", "takes a value where there is none");
  has("]}b", "expected a dictionary");
  has(std::string("h\x07", 2), "recalls a value");
  has(std::string("}r\xff\xff\xff\xff", 6), "remembers too many");
  has(std::string("X\xff\xff\xff\xff", 5), "cut off");
  has(std::string("\x8d\xff\xff\xff\xff\xff\xff\xff\xff", 9), "cut off");
  has("\x8a\xff" + std::string(255, '\1'), "an integer of over 64 bits");
  has("\x80\x06", "protocol 6");
  has("cos", "cut off");
  has("c" + pickled(int64_t{1}) + pickled(int64_t{1}) + "\x93", "cut off");
  has(pickled(int64_t{1}) + pickled("x") + "\x93", "the module of a global is an integer");
  has(pickled("x") + ")R", "what its pickle calls is a text");
  has(global("collections", "OrderedDict") + "NR", "the arguments of a call is None");
  has(global("torch", "FloatStorage") + ")R", "which is a type");
  has(global("torch._utils", "_rebuild_tensor_v2") + ")R", "with 0 arguments, expected 4");
  has(global("torch._utils", "_rebuild_tensor_v3") + "(NNNNt" + "R",
      "with 4 arguments, expected 7");
  has(global("torch._utils", "_rebuild_tensor_v2") + "(NNNNtR", "the storage of a tensor is None");
  has(global("torch._utils", "_rebuild_parameter") + "(NtR", "a parameter is None");
  has("NQ", "the name of a storage is None");
  has(")Q", "has 0 parts, expected 5");
  has(test::storage("float32", "0", 6), "the type of a storage is 'float32'");
  has(test::storage("FloatStorage", "0", -1), "a storage of -1 elements is not possible");
  has(test::storage("FloatStorage", "0", INT64_MAX), "is not possible");
  has("}(" + pickled("a") + tensor({}) + pickled("a") + tensor({}) + "u", "'a' appears twice");
  has("}(N" + tensor({}) + "u", "the name of a tensor is None");
  // Depth, length and repetition, each of which would take much of a reader that recurses or
  // copies.
  has(std::string(3'000'000, '('), "too many values at once");
  has(std::string(3'000'000, '}'), "too many values at once");
  has("}" + std::string(500'000, '\x85'), "expected a dictionary");
  std::string nested = "]q";
  nested += '\0';
  for (int i = 0; i < 200'000; ++i)
    nested += std::string("h\0a", 3);  // a list that holds itself
  has(nested, "what it holds is a list");
  std::string large = "(" + std::string(1'000'000, 'N') + "tq";
  large += '\1';
  large += '0';
  for (int i = 0; i < 200'000; ++i)
    large += global("collections", "OrderedDict") + "h\1R";
  has(large, "makes an OrderedDict of arguments");
}

TEST_F(HostileTorchFile, ViewsThatLeaveTheirStorage) {
  EXPECT_THAT(error_of_tensor({.n_stored = 7}),
              HasSubstr("'a' lies in a storage of 28 B, of which there is 24 B"));
  EXPECT_THAT(error_of_tensor({.key = "1"}), HasSubstr("the storage '1', which is missing"));
  EXPECT_THAT(error_of_tensor({.key = "../data.pkl"}), HasSubstr("which is missing"));
  const char* leaves = "leaves its storage of 6 elements";
  EXPECT_THAT(error_of_tensor({.offset = 1}), HasSubstr(leaves));
  EXPECT_THAT(error_of_tensor({.offset = -1}), HasSubstr(leaves));
  EXPECT_THAT(error_of_tensor({.offset = INT64_MAX}), HasSubstr(leaves));
  EXPECT_THAT(error_of_tensor({.shape = {3, 3}}), HasSubstr(leaves));
  EXPECT_THAT(error_of_tensor({.strides = {4, 1}}), HasSubstr(leaves));
  EXPECT_THAT(error_of_tensor({.strides = {INT64_MAX, INT64_MAX}}), HasSubstr(leaves));
  EXPECT_THAT(error_of_tensor({.shape = {INT64_MAX, 4}, .strides = {1, 1}}), HasSubstr(leaves));
  EXPECT_THAT(error_of_tensor({.strides = {-3, 1}}), HasSubstr("the negative number -3"));
  EXPECT_THAT(error_of_tensor({.shape = {-2, 3}}), HasSubstr("the negative number -2"));
  EXPECT_THAT(error_of_tensor({.shape = {2}}), HasSubstr("shape [2] has 2 strides"));
  EXPECT_THAT(error_of_tensor({.shape = {1 << 30, 1 << 30}, .strides = {0, 0}}),
              HasSubstr("more elements than its storage, 6"));
  EXPECT_THAT(error_of_tensor({.shape = std::vector<int64_t>(17, 1)}),
              HasSubstr("has 17 numbers, expected at most 16"));
}

TEST_F(HostileTorchFile, Archives) {
  const std::string pickle = pickle_of(dictionary({{"a", tensor({})}}));
  const std::string floats(24, '\0');
  EXPECT_THAT(error_with(""), HasSubstr("it is no file of torch.save"));
  EXPECT_THAT(error_with("<html>"), HasSubstr("it is no file of torch.save"));
  EXPECT_THAT(error_with("version https://git-lfs.github.com/spec/v1\n"), HasSubstr("Git LFS"));
  EXPECT_THAT(error_with("PK\x03\x04"), HasSubstr("no whole archive"));
  test::make_sparse(dir_ / "huge.bin");
  std::fstream(dir_ / "huge.bin", std::ios::in | std::ios::out) << "PK\x03\x04";
  EXPECT_THAT(error_of([&] { TorchFile::open(dir_ / "huge.bin"); }),
              HasSubstr("without the list of what it holds"));
  EXPECT_THAT(error_with(archive({{"m/data.pkl", pickle, 8}, {"m/data/0", floats}})),
              HasSubstr("'m/data.pkl' is compressed"));
  EXPECT_THAT(error_with(archive({{"m/data.pkl", pickle, 0, 1}})), HasSubstr("is encrypted"));
  EXPECT_THAT(error_with(archive({{"m/data.pkl", pickle}, {"m/data.pkl", pickle}})),
              HasSubstr("two entries 'm/data.pkl'"));
  EXPECT_THAT(error_with(archive({{"m/data.pkl", pickle}, {"n/data.pkl", pickle}})),
              HasSubstr("2 entries '*/data.pkl'"));
  EXPECT_THAT(error_with(archive({{"m/n/data.pkl", pickle}})), HasSubstr("0 entries"));
  EXPECT_THAT(error_with(archive({{"m/data.pkl", pickle}, {"m/byteorder", "big"}})),
              HasSubstr("not little-endian"));
  EXPECT_THAT(error_with(archive({{"m/data.pkl", ""}})), HasSubstr("cut off"));
  for (bool zip64 : {false, true}) {
    const std::string whole = archive({{"m/data.pkl", pickle}, {"m/data/0", floats}}, zip64);
    for (size_t n = 0; n < whole.size(); ++n)
      error_with(whole.substr(0, n));
    for (size_t n = 1; n < 40; ++n)  // without its beginning nothing is where the list says
      error_with("PK\x03\x04" + whole.substr(4 + n));
  }
}

/** Each opens with every span inside the file, or is refused; sanitizers look for the rest. */
TEST_F(HostileTorchFile, OfAnyBytes) {
  const std::string whole = torch_file(kPickle);
  std::mt19937_64 random(5);
  int n_opened = 0;
  for (int i = 0; i < 4'000; ++i) {
    std::string file = whole;
    for (size_t n = 1 + random() % 3; n > 0; --n)
      file[random() % file.size()] = static_cast<char>(random() % 4 == 0 ? 0xff : random());
    const auto path = write(file);
    try {
      const auto reader = CheckpointReader::open(path);
      for (const StoredTensor* tensor : reader.tensors())
        reader.read(*tensor, [](std::span<const std::byte> piece, size_t) {
          volatile std::byte last = piece.back();
          static_cast<void>(last);
        });
      ++n_opened;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::data) << error.what();
    }
    std::filesystem::remove(path);
  }
  EXPECT_GT(n_opened, 20);
}

TEST(CheckpointReader, TakesTorchFilesWhereThereIsNothingElse) {
  const TempDir dir;
  const auto one = [](const char* name) {
    return torch_file(pickle_of(dictionary({{name, tensor({})}})));
  };
  const auto open = [&] { return error_of([&] { CheckpointReader::open(dir.path()); }); };
  const auto index = [&](std::string_view map) {
    dir.write("pytorch_model.bin.index.json", fmt::format(R"({{"weight_map":{}}})", map));
  };
  EXPECT_THAT(open(), HasSubstr("and no pytorch_model.bin"));
  index(R"({"a":"pytorch_model-1.bin","b":"pytorch_model-2.bin"})");
  dir.write("pytorch_model-1.bin", one("a"));
  EXPECT_THAT(open(), HasSubstr("names the shard 'pytorch_model-2.bin', which is missing"));
  dir.write("pytorch_model-2.bin", one("c"));
  EXPECT_THAT(open(), HasSubstr("'b' lies in 'pytorch_model-2.bin', which has no such tensor"));
  dir.write("pytorch_model-2.bin", one("a"));
  EXPECT_THAT(open(), HasSubstr("tensor 'a' is in"));
  dir.write("pytorch_model-2.bin", one("b"));
  EXPECT_EQ(CheckpointReader::open(dir.path()).tensors().size(), 2u);
  dir.write("pytorch_model.bin", one("whole"));
  EXPECT_EQ(CheckpointReader::open(dir.path()).tensors().size(), 1u);
  dir.write("model.safetensors", test::raw_safetensors("{}", 0));
  EXPECT_EQ(CheckpointReader::open(dir.path()).tensors().size(), 0u);
}

/** Each tensor would have a copy of the key, which a pickle of some bytes can name any number of
 * times. */
TEST(TorchFile, RefusesLongKeysOfStorages) {
  const TempDir dir;
  dir.write("pytorch_model.bin",
            torch_file(pickle_of(dictionary({{"a", tensor({.key = std::string(257, '0')})}}))));
  EXPECT_THAT(error_of([&] { CheckpointReader::open(dir.path()); }, Fault::data),
              HasSubstr("the key of a storage has 257 bytes, expected at most 256"));
}

/** Sizes and strides that no product holds, of tensors in which that does not matter. */
TEST(TorchFile, TakesAnyStrideWhereThereIsOneElement) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const TempDir dir;
  dir.write("pytorch_model.bin",
            torch_file(pickle_of(
                dictionary({{"one", tensor({.shape = {2, 1, 3}, .strides = {1, kMost, 2}})},
                            {"none", tensor({.shape = {0, int64_t{1} << 40, int64_t{1} << 40},
                                             .strides = {1, 1, 1}})}}))));
  const auto reader = CheckpointReader::open(dir.path());
  EXPECT_THAT(floats_of(reader, "one"), ElementsAre(0, 2, 4, 1, 3, 5));
  EXPECT_THAT(floats_of(reader, "none"), ElementsAre());
}

}  // namespace
}  // namespace ferry
