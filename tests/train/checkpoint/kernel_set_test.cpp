// The number of the sources that decide bits: their code counts, and nothing else of them.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace ferry::test {
namespace {

namespace fs = std::filesystem;

class KernelSet : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("kernel_set_" + std::to_string(getpid()));
    fs::create_directories(root_ / "moved");
    write("a.cpp", "int f() {\n  return 1;\n}\n");
    write("b.h", "float g(float x);\n");
    write("cuda_c.cu", "__global__ void h();\n");
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(root_ / name) << text;
  }
  struct Numbers {
    std::string cpu, gpu;
    bool operator==(const Numbers&) const = default;
  };
  Numbers numbers(const std::vector<std::string>& files = {"a.cpp", "b.h", "cuda_c.cu"},
                  const std::string& compiler = "gcc 13") const {
    const fs::path output = root_ / "out.h";
    std::string command = std::string("cd '") + root_.string() + "' && '" FERRY_SOURCE_ROOT +
                          "/scripts/kernel_set' out.h '" + compiler + "'";
    for (const std::string& file : files)
      command += " " + file;
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    std::ostringstream text;
    text << std::ifstream(output).rdbuf();
    const auto quoted = [&](const char* name) {
      const size_t begin = text.str().find('"', text.str().find(name)) + 1;
      return text.str().substr(begin, 16);
    };
    Numbers found = {quoted("kKernelSet"), quoted("kGpuKernelSet")};
    EXPECT_EQ(found.cpu.find_first_not_of("0123456789abcdef"), std::string::npos) << text.str();
    return found;
  }
  fs::path root_;
};

TEST_F(KernelSet, IsTheSameWithOtherCommentsSpacesAndPlaces) {
  const Numbers before = numbers();
  write("a.cpp", "// says why\nint f() { /* two\nlines */ return 1; }  // end\n");
  fs::rename(root_ / "b.h", root_ / "moved/z.h");
  EXPECT_EQ(numbers({"moved/z.h", "cuda_c.cu", "a.cpp"}), before);
}

TEST_F(KernelSet, IsTheSameWithOtherPlacesOfIncludedFiles) {
  write("a.cpp", "#include \"b.h\"\n#include \"d.h\"\nint f() { return 1; }\n");
  const Numbers before = numbers();
  write("a.cpp", "#include \"a/d.h\"\n#include \"moved/b.h\"\nint f() { return 1; }\n");
  EXPECT_EQ(numbers(), before);
  write("a.cpp", "#include \"a/e.h\"\n#include \"moved/b.h\"\nint f() { return 1; }\n");
  EXPECT_NE(numbers().cpu, before.cpu);
}

TEST_F(KernelSet, IsAnotherWithOtherCode) {
  const Numbers before = numbers();
  write("a.cpp", "int f() {\n  return 2;\n}\n");
  const Numbers after = numbers();
  EXPECT_NE(after.cpu, before.cpu);
  EXPECT_EQ(after.gpu, before.gpu) << "a run on a CPU does not depend on it";
  write("cuda_c.cu", "__global__ void h2();\n");
  EXPECT_NE(numbers().gpu, before.gpu);
  EXPECT_EQ(numbers().cpu, after.cpu);
  EXPECT_NE(numbers({"a.cpp", "b.h", "cuda_c.cu"}, "gcc 14").cpu, after.cpu);
  EXPECT_NE(numbers({"a.cpp", "cuda_c.cu"}).cpu, after.cpu);
}

}  // namespace
}  // namespace ferry::test
