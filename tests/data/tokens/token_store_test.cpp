// Tokens in a file are those in memory, and a file that is not as it was written is known.

#include "src/data/tokens/token_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "src/data/tokenized.h"
#include "src/data/tokens/token_file.h"
#include "src/files/lost_pages.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

using test::error_of;
using test::TempDir;
using ::testing::HasSubstr;

constexpr uint64_t kKey = 0x1234;

TokenizedExample random_sequence(std::mt19937_64& random, int64_t vocab_size) {
  TokenizedExample sequence;
  const size_t n = 1 + random() % 40;
  for (size_t i = 0; i < n; ++i)
    sequence.ids.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(vocab_size)));
  const auto kind = random() % 3;
  for (size_t i = 0; kind > 0 && i < n; ++i)
    sequence.type_ids.push_back(kind == 1 ? 0 : static_cast<int32_t>(random() % 2));
  for (size_t i = random() % 4; i > 0; --i)
    sequence.labels.push_back(static_cast<int32_t>(random() % 9) - 1);
  for (size_t i = random() % 3; i > 0; --i)
    sequence.values.push_back(static_cast<float>(random() % 100) / 7);
  sequence.truncated = random() % 5 == 0;
  return sequence;
}

/** The same sequences and examples each time; an example in three has none, one or two. */
std::vector<TokenizedExample> fill(TokenWriter& writer, int64_t vocab_size, int n_examples) {
  std::mt19937_64 random(7);
  std::vector<TokenizedExample> all;
  for (int e = 0; e < n_examples; ++e) {
    Example example = {.text = "text " + std::to_string(e), .id = std::to_string(e)};
    if (e % 2) example.text_pair = "pair";
    example.label = {
        .class_id = e, .classes = {1, e}, .value = 0.5f, .tags = {3}, .answers = {{1, 2}}};
    example.words = {{0, 4}};
    writer.add_example(example);
    for (int s = 0; s < e % 3; ++s)
      writer.add(all.emplace_back(random_sequence(random, vocab_size)));
  }
  return all;
}

void expect_same(const TokenizedDataset& a, const TokenizedDataset& b) {
  ASSERT_EQ(a.n_sequences(), b.n_sequences());
  EXPECT_EQ(a.fingerprint(), b.fingerprint());
  EXPECT_EQ(a.n_tokens(), b.n_tokens());
  EXPECT_EQ(a.n_truncated(), b.n_truncated());
  EXPECT_EQ(a.max_type_id(), b.max_type_id());
  EXPECT_EQ(a.lengths(), b.lengths());
  for (int64_t i = 0; i < a.n_sequences(); ++i) {
    ASSERT_EQ(a.ids(i), b.ids(i));
    ASSERT_EQ(a.type_ids(i), b.type_ids(i));
    ASSERT_TRUE(std::ranges::equal(a.labels(i), b.labels(i)));
    ASSERT_TRUE(std::ranges::equal(a.values(i), b.values(i)));
    ASSERT_EQ(a.example_of(i), b.example_of(i));
  }
}

class TokenStoreTest : public ::testing::Test {
 protected:
  std::filesystem::path file() const { return dir_ / "x.tokens"; }
  std::shared_ptr<const TokenStore> write(const TokenForm& form, int n_examples) const {
    FileWriter writer(form, file(), kKey);
    fill(writer, form.vocab_size, n_examples);
    return writer.finish();
  }
  void change_byte(size_t place) const {
    std::fstream stream(file(), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(place));
    const int byte = stream.get();
    stream.seekp(static_cast<std::streamoff>(place));
    stream.put(static_cast<char>(byte ^ 0x10));
  }
  TempDir dir_;
};

TEST_F(TokenStoreTest, AFileHasWhatMemoryHas) {
  for (const int64_t vocab_size : {300, 65536, 65537, 200'000}) {
    const TokenForm form = {.vocab_size = vocab_size, .has_labels = true, .keeps_examples = true};
    MemoryWriter writer(form);
    const auto added = fill(writer, vocab_size, 300);
    const auto held = writer.finish();
    const auto mapped = write(form, 300);
    EXPECT_EQ(held->facts().id_bytes, vocab_size <= 65536 ? 2 : 4);
    EXPECT_GT(held->held_bytes(), 0);
    EXPECT_EQ(mapped->held_bytes(), 0);
    const TokenizedDataset in_memory(held), in_file(mapped);
    expect_same(in_memory, in_file);
    expect_same(in_memory.packed(100), in_file.packed(100));
    EXPECT_TRUE(in_file.has_labels());
    ASSERT_EQ(in_file.n_sequences(), std::ssize(added));
    for (size_t i = 0; i < added.size(); ++i) {
      const auto place = static_cast<int64_t>(i);
      ASSERT_EQ(in_file.ids(place), added[i].ids);
      ASSERT_TRUE(std::ranges::equal(in_file.labels(place), added[i].labels));
      ASSERT_TRUE(std::ranges::equal(in_file.values(place), added[i].values));
    }
    for (int64_t place = 0; place < 300; ++place) {
      const Example example = in_file.example(place);
      EXPECT_EQ(example.text, "text " + std::to_string(place));
      EXPECT_EQ(example.text_pair.has_value(), place % 2 == 1);
      EXPECT_EQ(example.label.classes, (std::vector<int32_t>{1, static_cast<int32_t>(place)}));
      EXPECT_EQ(example.label.answers, (std::vector<TextRange>{{1, 2}}));
      EXPECT_EQ(example.id, std::to_string(place));
    }
  }
}

TEST_F(TokenStoreTest, EverythingCountsInTheFingerprint) {
  const auto hash = [](const TokenizedExample& sequence) {
    return dataset_of(std::vector<TokenizedExample>{sequence}).fingerprint();
  };
  const std::vector<TokenizedExample> different = {
      {.ids = {1, 2}},
      {.ids = {2, 1}},
      {.ids = {1, 2, 0}},
      {.ids = {1, 2}, .type_ids = {0, 1}},
      {.ids = {1, 2}, .labels = {0}},
      {.ids = {1, 2}, .labels = {1}},
      {.ids = {1}, .labels = {2}},
      {.ids = {1, 2}, .values = {0.0f}},
  };
  std::set<uint64_t> hashes;
  for (const TokenizedExample& sequence : different)
    hashes.insert(hash(sequence));
  EXPECT_EQ(hashes.size(), different.size());
  EXPECT_EQ(hash({.ids = {1, 2}}), hash({.ids = {1, 2}, .type_ids = {0, 0}}));
}

TEST_F(TokenStoreTest, SomeExamples) {
  MemoryWriter writer({});
  const auto all = fill(writer, 1000, 20);
  const TokenizedDataset whole(writer.finish());
  const std::vector<int64_t> places = {1, 2, 3, 8, 19};
  const TokenizedDataset some = whole.of_examples(places);
  EXPECT_EQ(some.n_examples(), 5);
  std::vector<int64_t> got;
  for (int64_t i = 0; i < some.n_sequences(); ++i)
    got.push_back(some.example_of(i));
  EXPECT_THAT(got, ::testing::ElementsAre(1, 2, 2, 8, 8, 19));
  EXPECT_EQ(whole.of_examples({}).size(), 0);
  EXPECT_NE(some.fingerprint(), whole.fingerprint());
  EXPECT_EQ(some.packed(64).n_tokens(), some.n_tokens());
}

/** Whatever byte is changed, either opening says so, or reading what it belongs to. */
TEST_F(TokenStoreTest, EveryDamageIsFound) {
  const TokenForm form = {.vocab_size = 1000, .keeps_examples = true};
  write(form, 30);
  const std::string good = test::read_file(file());
  for (size_t place = 0; place < good.size(); place += place < 200 ? 1 : 37) {
    dir_.write("x.tokens", good);
    change_byte(place);
    bool is_found = false;
    try {
      const TokenizedDataset dataset(open_token_file(file(), kKey));
      dataset.ids(0);
    } catch (const BadTokenFile&) {
      is_found = true;
      EXPECT_TRUE(std::filesystem::exists(file()));
    } catch (const Error& error) {
      is_found = true;
      EXPECT_EQ(error.fault(), Fault::data);
      EXPECT_THAT(error.what(), HasSubstr("x.tokens' is damaged: its bytes"));
      EXPECT_THAT(error.what(), HasSubstr("it was removed; start again"));
      EXPECT_FALSE(std::filesystem::exists(file()));
    }
    EXPECT_TRUE(is_found) << place;
  }
}

TEST_F(TokenStoreTest, ACutFileIsFound) {
  const TokenForm form = {.vocab_size = 1000, .keeps_examples = true};
  write(form, 30);
  const std::string good = test::read_file(file());
  for (size_t n = 0; n < good.size(); n += 1 + n / 10) {
    dir_.write("x.tokens", good.substr(0, n));
    EXPECT_THROW(open_token_file(file(), kKey), BadTokenFile) << n;
  }
  dir_.write("x.tokens", good + "x");
  EXPECT_THROW(open_token_file(file(), kKey), BadTokenFile);
  dir_.write("x.tokens", good);
  EXPECT_THROW(open_token_file(file(), kKey + 1), BadTokenFile);
  EXPECT_NO_THROW(open_token_file(file(), kKey));
}

/** Only the piece that is asked for is read and compared. */
TEST_F(TokenStoreTest, PiecesAreCheckedWhenTheyAreRead) {
  FileWriter writer({.vocab_size = 70'000}, file(), kKey);
  for (int i = 0; i < 400; ++i) {
    writer.add_example({});
    writer.add({.ids = std::vector<int32_t>(1024, i)});
  }
  writer.finish();
  change_byte(4096 + 300 * 4096 + 5);  // in the ids of the sequence at 300
  const TokenizedDataset dataset(open_token_file(file(), kKey));
  EXPECT_EQ(dataset.ids(0).front(), 0);
  EXPECT_EQ(dataset.ids(399).front(), 399);
  EXPECT_THAT(error_of([&] { dataset.ids(300); }), HasSubstr("is damaged"));
}

TEST_F(TokenStoreTest, AFileThatShrinksEndsTheProgramByName) {
  const auto shrink = [&] {
    end_on_lost_pages();
    const TokenizedDataset dataset(write({.vocab_size = 1000}, 3000));
    std::filesystem::resize_file(file(), 4096);
    dataset.ids(dataset.n_sequences() - 1);
  };
  EXPECT_EXIT(shrink(), ::testing::ExitedWithCode(4), "x.tokens' became shorter while it was used");
}

TEST_F(TokenStoreTest, AFailureLeavesNoFile) {
  {
    FileWriter writer({.vocab_size = 1000}, file(), kKey);
    fill(writer, 1000, 10);
  }
  EXPECT_EQ(dir_.n_entries(), 0u);
  const test::FileSizeLimit limit(1 << 20);
  EXPECT_THAT(error_of(
                  [&] {
                    FileWriter writer({.vocab_size = 1000}, file(), kKey);
                    fill(writer, 1000, 100'000);
                    writer.finish();
                  },
                  Fault::machine),
              HasSubstr("x.tokens' could not be written"));
  EXPECT_EQ(dir_.n_entries(), 0u);
}

TEST(TokenStoreDeathTest, AnIdBeyondTheVocabularyIsOurBug) {
  MemoryWriter writer({.vocab_size = 10});
  writer.add_example({});
  EXPECT_DEATH(writer.add({.ids = {10}}), "the id 10 of a vocabulary of 10");
}

}  // namespace
}  // namespace ferry
