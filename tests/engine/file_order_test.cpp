// The order of a file's rows and columns against a formula, in strips and ranges of any length.

#include "src/engine/state/file_order.h"

#include <gtest/gtest.h>

#include <mutex>
#include <numeric>
#include <random>

namespace ferry {
namespace {

struct Case {
  int64_t rows, columns;
  bool transposed = false;
  HfRowGroups groups;
};

/** A model of one parameter, whose rows from 3 on are the entry. */
ModelTable model_of(const Case& c) {
  ModelTable model;
  model.blocks.resize(1);
  model.blocks[0].add("w", {c.rows + 3, c.columns}, true, Init::normal);
  model.hf_names = {{.hf_name = "w",
                     .row_begin = 3,
                     .rows = c.rows,
                     .hf_shape = {c.rows, c.columns},
                     .transposed = c.transposed,
                     .groups = c.groups}};
  return model;
}

/** The element of the file at which element (row, column) of ours lies. */
int64_t place_in_file(const Case& c, int64_t row, int64_t column) {
  const auto& parts = c.groups.part_rows;
  if (!parts.empty()) {
    size_t part = 0;
    int64_t in_part = row, before = 0;
    while (in_part >= c.groups.n_groups * parts[part]) {
      in_part -= c.groups.n_groups * parts[part];
      before += parts[part++];
    }
    const int64_t group = in_part / parts[part], group_rows = c.rows / c.groups.n_groups;
    row = group * group_rows + before + in_part % parts[part];
  }
  return c.transposed ? column * c.rows + row : row * c.columns + column;
}

class Orders : public ::testing::TestWithParam<Case> {};

TEST_P(Orders, AreThoseOfTheFormula) {
  const Case c = GetParam();
  const ModelTable model = model_of(c);
  const FileOrder order(model, model.hf_names[0]);
  const int64_t n = c.rows * c.columns;
  std::vector<float> ours(static_cast<size_t>(n)), file(static_cast<size_t>(n));
  std::iota(ours.begin(), ours.end(), 1.0f);
  for (int64_t i = 0; i < n; ++i)
    file[static_cast<size_t>(place_in_file(c, i / c.columns, i % c.columns))] =
        ours[static_cast<size_t>(i)];
  EXPECT_EQ(order.is_ours(), file == ours);

  std::mt19937_64 random(3);
  const auto up_to = [&](int64_t most) {
    return 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(most));
  };
  const auto part = [](auto& values, int64_t begin, int64_t n_elements) {
    return std::span(values).subspan(static_cast<size_t>(begin), static_cast<size_t>(n_elements));
  };
  std::vector<float> read(ours.size()), written(ours.size()), gathered(ours.size());
  for (int64_t row = 0, rows = 0; row < c.rows; row += rows) {
    rows = std::min(up_to(40), c.rows - row);
    std::mutex mutex;
    int64_t n_done = 0;
    order.read_strip(
        row, part(read, row * c.columns, rows * c.columns),
        [&](int64_t first, std::span<float> values) {
          std::ranges::copy(part(file, first, std::ssize(values)), values.begin());
        },
        [&](int64_t first, int64_t n_elements) {
          const std::lock_guard lock(mutex);
          n_done += part(file, first, n_elements).size();
        });
    EXPECT_GE(n_done, rows * c.columns);
    order.write_strip(row, part(ours, row * c.columns, rows * c.columns),
                      [&](int64_t first, std::span<const float> values) {
                        std::ranges::copy(values, part(written, first, std::ssize(values)).begin());
                      });
  }
  for (int64_t at = 0, n_elements = 0; at < n; at += n_elements) {
    n_elements = std::min(up_to(5 * c.rows), n - at);
    order.gather(at, part(gathered, at, n_elements), [&](std::span<const FileOrder::Part> parts) {
      for (const FileOrder::Part& p : parts)
        std::ranges::copy(part(ours, p.first_element, std::ssize(p.to)), p.to.begin());
    });
  }
  EXPECT_EQ(read, ours);
  EXPECT_EQ(written, file);
  EXPECT_EQ(gathered, file);
}

INSTANTIATE_TEST_SUITE_P(
    EngineFileOrder,
    Orders,
    ::testing::Values(Case{7, 5},
                      Case{48, 20, true},
                      Case{33, 47, true},
                      Case{5, 1, true},
                      Case{1, 30, true},
                      Case{4 * 3 * 8, 6, false, {4, {8, 8, 8}}},
                      Case{4 * 3 * 8, 1, false, {4, {8, 8, 8}}},
                      Case{2 * 40, 9, false, {2, {24, 8, 8}}},  // groups of heads: 3 of queries
                      Case{4 * 3 * 8, 37, true, {4, {8, 8, 8}}},
                      Case{64, 3, false, {32, {1, 1}}}));

TEST(EngineFileOrderDeathTest, GroupsHaveAllRows) {
  const ModelTable model = model_of({10, 4, false, {3, {1, 2}}});
  EXPECT_DEATH(FileOrder(model, model.hf_names[0]), "3 groups of 3 rows are not 10");
}

}  // namespace
}  // namespace ferry
