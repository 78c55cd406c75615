#include "gui/models/inputs/data_columns.h"

#include <gtest/gtest.h>

#include "tests/gui/gui_test.h"

namespace ferry::gui {
namespace {

TEST(DataColumns, AreThoseOfTheHeader) {
  TestHome home;
  const auto columns = [&](const char* name, const QByteArray& text) {
    write_file(home / name, text);
    return data_columns((home / name).string()).join('|').toStdString();
  };
  EXPECT_EQ(columns("a.csv", "complaint,department\nlate,post\n"), "complaint|department");
  EXPECT_EQ(columns("b.csv", "\xef\xbb\xbfid;\"what, then\";tag\n1;x;y\n"), "id|what, then|tag");
  EXPECT_EQ(columns("c.tsv", "a b\tc\n1\t2\n"), "a b|c");
  EXPECT_EQ(columns("d.jsonl", "{\"body\": \"x\", \"kind\": 1}\n"), "body|kind");
  EXPECT_EQ(columns("list.json", "[{\"body\": \"x\", \"kind\": 1}, {\"body\": \"y\"}]"),
            "body|kind");
  EXPECT_EQ(columns("empty.json", "[]"), "");
  EXPECT_EQ(columns("broken.parquet", "no table"), "");
  EXPECT_EQ(columns("rows.csv", "0.5,a text without a header\n"), "") << "a row, no header";
  EXPECT_EQ(columns("same.csv", "a,a\n"), "");
  EXPECT_EQ(columns("lines.txt", "one text\n"), "");
  EXPECT_EQ(columns("broken.jsonl", "{\"body\": \n"), "");
  EXPECT_TRUE(data_columns((home / "none.csv").string()).isEmpty());
  EXPECT_TRUE(data_columns({}).isEmpty());
}

}  // namespace
}  // namespace ferry::gui
