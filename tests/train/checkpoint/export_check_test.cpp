// Models that are compared by what they answer: a copy is the same, rounding is told, and a model
// with a matrix in the wrong order is found.

#include "src/train/checkpoint/export_check.h"

#include <gmock/gmock.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "tests/files/test_files.h"
#include "tests/train/tensor_files.h"
#include "tests/train/tiny_model.h"

namespace ferry::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ExportCheck : public ::testing::Test {
 protected:
  ExportCheck() { write_tiny_language_model(dir_ / "model"); }

  /** A copy whose tensors `change` has changed. */
  template <class Change>
  fs::path changed(const Change& change) {
    fs::remove_all(dir_ / "copy");
    fs::copy(dir_ / "model", dir_ / "copy", fs::copy_options::recursive);
    Tensors tensors = read_tensors(dir_ / "model");
    for (auto& [name, tensor] : tensors)
      change(name, reinterpret_cast<float*>(tensor.bytes.data()), tensor.shape);
    write_tensors(dir_ / "copy", tensors);
    return dir_ / "copy";
  }

  TempDir dir_;
};

TEST_F(ExportCheck, ACopyAnswersTheSame) {
  const auto found =
      compare_models(dir_ / "model", changed([](const auto&, float*, const auto&) {}), 20);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->skipped, "");
  EXPECT_EQ(found->n_tokens, 20);
  EXPECT_EQ(found->n_same, 20);
  EXPECT_EQ(found->most, 0);
  EXPECT_THAT(found->text(), HasSubstr("20 tokens"));
}

TEST_F(ExportCheck, AShortContextHasFewerTokens) {
  const auto found = compare_models(dir_ / "model", dir_ / "model");
  ASSERT_TRUE(found);
  EXPECT_GT(found->n_tokens, 32);
  EXPECT_LT(found->n_tokens, 64 + 1);
  EXPECT_EQ(found->n_same, found->n_tokens);
}

TEST_F(ExportCheck, RoundingIsTold) {
  const auto found = compare_models(
      dir_ / "model", changed([](const auto&, float* values, const std::vector<int64_t>& shape) {
        int64_t n = 1;
        for (const int64_t size : shape)
          n *= size;
        for (int64_t i = 0; i < n; ++i) {
          uint32_t bits = 0;
          std::memcpy(&bits, values + i, sizeof bits);
          bits &= 0xffff0000;
          std::memcpy(values + i, &bits, sizeof bits);
        }
      }),
      20);
  ASSERT_TRUE(found);
  EXPECT_GT(found->most, 0);
  EXPECT_LT(found->mean, 0.1);
}

TEST_F(ExportCheck, AMatrixInTheWrongOrderIsFound) {
  const fs::path wrong =
      changed([](const std::string& name, float* values, const std::vector<int64_t>& shape) {
        // Louder, so that the order counts in a model that was never trained.
        if (shape.size() == 2)
          for (int64_t i = 0; i < shape[0] * shape[1]; ++i)
            values[i] *= name.find("embed") == name.npos ? 1 : -8;
      });
  EXPECT_THAT(error_of([&] { compare_models(dir_ / "model", wrong, 20); }, Fault::machine),
              HasSubstr("answers otherwise than what it was made from"));
}

TEST_F(ExportCheck, AClassifierGoesOnWithNothing) {
  write_tiny_model(dir_ / "bert");
  EXPECT_FALSE(compare_models(dir_ / "bert", dir_ / "bert"));
}

}  // namespace
}  // namespace ferry::test
