#include "gui/models/text.h"

#include "gui/models/service_words.h"

#include <gtest/gtest.h>

#include <QCoreApplication>
#include <QTranslator>

namespace ferry::gui {
namespace {

TEST(Text, APathComesBackByteForByte) {
  for (const char* path :
       {"", "/", "/runs/plain", "/runs/\xe8\xae\xad\xe7\xbb\x83 \xf0\x9f\x9a\xa2", "/runs/caf\xe9",
        "\xff\xfe", "/a\xc3", "/\xed\xa0\x80/b", "/a\xf0\x9f\x9a/b", "/\xed\xb2\x80"}) {
    const QString text = path_text(path);
    EXPECT_EQ(to_path(text).native(), path);
  }
}

TEST(Text, AValidPathIsItsText) {
  EXPECT_EQ(path_text("/runs/\xe8\xae\xad\xe7\xbb\x83"), QString::fromUtf8("/runs/训练"));
  EXPECT_EQ(path_text("/runs/caf\xe9").size(), 10);
}

TEST(ServiceWords, LinesWithNamesKeepTheNames) {
  class Shouts : public QTranslator {
   public:
    bool isEmpty() const override { return false; }
    QString translate(const char*, const char* text, const char*, int) const override {
      return QString::fromUtf8(text).contains("rows by label") ? "ROWS <%1>"
             : QString::fromUtf8(text).contains("text is column") &&
                     QString::fromUtf8(text).contains("%3")
                 ? "%3, %2 IN %1"
                 : QString();
    }
  } shouts;
  ASSERT_TRUE(QCoreApplication::installTranslator(&shouts));
  EXPECT_EQ(service_words("rows by label: a 3, b 4"), "ROWS <a 3, b 4>");
  EXPECT_EQ(service_words("/d/%2.csv: text is column 't', label is column 'l'"),
            "l, t IN /d/%2.csv");
  EXPECT_EQ(service_words("something else; 3 of it"), "something else; 3 of it");
  QCoreApplication::removeTranslator(&shouts);
}

}  // namespace
}  // namespace ferry::gui
