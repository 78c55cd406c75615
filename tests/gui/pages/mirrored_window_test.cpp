// The window in a language that runs from right to left.

#include <gtest/gtest.h>

#include <QAbstractItemView>
#include <QApplication>
#include <QComboBox>
#include <QGroupBox>
#include <QListWidget>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QStatusBar>
#include <QTabBar>
#include <QTableWidget>
#include <QTextDocumentFragment>
#include <QTextEdit>
#include <functional>

#include "gui/models/text.h"
#include "gui/pages/new_run/new_run_page.h"
#include "gui/pages/runs/run_delegates.h"
#include "gui/widgets/look.h"
#include "tests/gui/pages/filled_window.h"
#include "tests/gui/pages/layout_check.h"
#include "tests/gui/pages/mirrored_words.h"
#include "tests/gui/pages/page_test.h"

namespace ferry::gui {
namespace {

/** Mirrors the app while it lives. */
class Mirrored {
 public:
  explicit Mirrored(bool has_letters = false) : words_(has_letters) {
    QCoreApplication::installTranslator(&words_);
  }
  ~Mirrored() { QCoreApplication::removeTranslator(&words_); }
  Mirrored(const Mirrored&) = delete;
  Mirrored& operator=(const Mirrored&) = delete;

 private:
  MirroredWords words_;
};

/** Shows each page, and each step of New run. */
void for_each_page(FilledWindow& filled, const std::function<void(const std::string& name)>& look) {
  MainWindow& window = *filled.window;
  emit window.navigator().new_run_wanted(filled.config);
  emit window.navigator().try_wanted(filled.first);
  emit window.navigator().export_wanted(filled.first);
  emit window.navigator().live_wanted(filled.first);
  emit window.navigator().compare_wanted({filled.first, filled.second});
  auto& new_run = dynamic_cast<NewRunPage&>(window.page(PageId::new_run));
  for (int page = 0; page < 10; ++page) {
    window.show_page(static_cast<PageId>(page));
    if (static_cast<PageId>(page) != PageId::new_run) {
      look("page " + std::to_string(page));
      continue;
    }
    for (int step = 0; step < NewRunPage::n_steps; ++step) {
      new_run.show_step(static_cast<NewRunPage::Step>(step));
      ASSERT_TRUE(has_all_fields(new_run));
      look("step " + std::to_string(step));
    }
  }
}

TEST(MirroredWindow, NothingIsCutAtItsSides) {
  const Mirrored mirrored;
  ASSERT_EQ(QApplication::layoutDirection(), Qt::RightToLeft);
  FilledWindow filled;
  for (const QSize& size : {QSize(1024, 700), QSize(1180, 780)}) {
    filled.window->resize(size);
    for_each_page(filled, [&](const std::string& name) {
      QStringList faults;
      EXPECT_TRUE(wait_until([&] {
        faults = layout_faults(*filled.window);
        return faults.isEmpty();
      })) << name
          << ": " << faults.join('\n').toStdString();
    });
  }
}

// --- Sides ---------------------------------------------------------------------------------------

/** The light theme's letters, and none of its grounds and edges. */
bool is_ink(const QImage& image, int x, int y) {
  return qGray(image.pixel(x, y)) < 160;
}

bool has_ink(const QImage& image, int x) {
  for (int y = 0; y < image.height(); ++y)
    if (is_ink(image, x, y)) return true;
  return false;
}

/** Columns without ink at the left and at the right; the whole width twice: there is none. */
std::pair<int, int> gaps(const QImage& image) {
  int left = 0, right = 0;
  while (left < image.width() && !has_ink(image, left))
    ++left;
  while (right < image.width() && !has_ink(image, image.width() - 1 - right))
    ++right;
  return {left, right};
}

TEST(MirroredWindow, WordsBeginWhereTheLinesOfThePageBegin) {
  for (const bool is_mirrored : {false, true}) {
    std::optional<Mirrored> mirrored;
    if (is_mirrored) mirrored.emplace();
    FilledWindow filled;
    filled.window->resize(1180, 780);
    int n_looked_at = 0, n_headings = 0;
    for_each_page(filled, [&](const std::string& name) {
      QCoreApplication::processEvents();
      for (QLabel* label : filled.window->centralWidget()->findChildren<QLabel*>()) {
        const bool is_picture = !label->pixmap(Qt::ReturnByValue).isNull();
        if (!label->isVisible() || label->text().isEmpty() || is_picture ||
            label->alignment() & Qt::AlignHCenter || label->visibleRegion().isEmpty())
          continue;
        const QImage image = label->grab(label->contentsRect()).toImage();
        const double scale = image.devicePixelRatio();
        const auto [left, right] = gaps(image);
        if (left == image.width()) continue;
        const int margin = 5 + label->margin();
        EXPECT_LE((is_mirrored ? right : left) / scale, margin)
            << name << (is_mirrored ? ", mirrored" : "") << ": '" << label->text().toStdString()
            << "' has " << left << " and " << right << " beside it";
        ++n_looked_at;
        if (label->font().bold() && label->contentsRect().width() > 2 * label->sizeHint().width())
          ++n_headings;
      }
    });
    EXPECT_GT(n_looked_at, 100);
    EXPECT_GT(n_headings, 8) << "with room at both sides";
  }
}

TEST(MirroredWindow, ALabelFollowsADirectionThatChanges) {
  TextLabel label("Runs");
  label.resize(300, 30);
  label.show();
  EXPECT_EQ(label.alignment() & Qt::AlignHorizontal_Mask, Qt::AlignLeft | Qt::AlignAbsolute);
  label.setLayoutDirection(Qt::RightToLeft);
  EXPECT_EQ(label.alignment() & Qt::AlignHorizontal_Mask, Qt::AlignRight | Qt::AlignAbsolute);
  const auto [left, right] = gaps(label.grab().toImage());
  EXPECT_GT(left, right);
}

// --- Foreign words -------------------------------------------------------------------------------

/** The ink of the left and of the right half of what is drawn. */
std::pair<int, int> halves(const QImage& image) {
  const auto [left, right] = gaps(image);
  const int middle = (left + image.width() - right) / 2;
  int first = 0, second = 0;
  for (int x = left; x < image.width() - right; ++x)
    for (int y = 0; y < image.height(); ++y)
      (x < middle ? first : second) += is_ink(image, x, y);
  return {first, second};
}

TEST(MirroredWindow, NamesPathsAndAmountsAreDrawnInTheirOwnOrder) {
  const Mirrored mirrored;
  // Little ink first, then much: whatever is drawn from the other side shows much ink first.
  for (const QString text : {"1111 MMMM", "////MMMM", "(1.1) 1 MMMM", "1_1_1_MMMM"}) {
    QListWidget list;
    list.addItem(text);
    QListWidget runs;
    runs.setItemDelegate(new TextDelegate(Qt::ElideMiddle, &runs));
    runs.addItem(text);
    QTableWidget table(1, 1);
    table.setHorizontalHeaderLabels({text});
    table.horizontalHeader()->setStretchLastSection(true);
    QPushButton button(text);
    QComboBox combo;
    combo.addItem(text);
    button.setFlat(true);
    TextLabel label(text);
    for (QWidget* widget :
         std::initializer_list<QWidget*>{&list, &runs, &table, &button, &combo, &label}) {
      widget->resize(300, 60);
      widget->show();
    }
    const auto check = [&](QWidget& widget, const QRect& place, const char* name) {
      const auto [first, second] = halves(widget.grab(place).toImage());
      EXPECT_GT(second, 0) << name;
      EXPECT_LT(first, second) << name << ": " << text.toStdString();
    };
    for (QListWidget* one : {&list, &runs}) {
      one->clearSelection();
      const QRect cell = one->visualItemRect(one->item(0)).adjusted(2, 2, -2, -2);
      check(*one->viewport(), cell, one == &runs ? "run" : "cell");
    }
    check(*table.horizontalHeader()->viewport(),
          table.horizontalHeader()->viewport()->rect().adjusted(3, 4, -3, -4), "header");
    check(button, button.rect().adjusted(4, 4, -4, -4), "button");
    check(combo, combo.rect().adjusted(30, 6, -6, -6), "combo box");
    check(label, label.rect(), "label");
  }
}

TEST(MirroredWindow, ASentenceThatBeginsWithANameRunsFromTheRight) {
  const Mirrored mirrored;
  const QString thin(6, QChar(0x05D5));  // a letter of little ink
  TextLabel plain(isolated("MMMM") + ' ' + thin), selected(plain.text());
  selected.setTextInteractionFlags(Qt::TextSelectableByMouse);
  for (const bool is_wrapped : {false, true})
    for (TextLabel* label : {&plain, &selected}) {
      label->setWordWrap(is_wrapped);
      label->resize(300, 60);
      label->show();
      const auto [first, second] = halves(label->grab().toImage());
      EXPECT_LT(first, second) << is_wrapped << (label == &selected);
    }
}

/** What stands between words of the other direction, and would be put in order with them. */
QString loose_words(const QString& text) {
  QString loose, others;
  int depth = 0;
  for (const QChar c : text) {
    if (c.unicode() >= 0x2066 && c.unicode() <= 0x2068) ++depth;
    if (depth == 0 && c.isLetter()) (c.unicode() < 0x250 ? loose : others) += c;
    if (c.unicode() == 0x2069) --depth;
  }
  return others.isEmpty() ? QString() : loose;
}

TEST(MirroredWindow, ForeignWordsInSentencesAreIsolated) {
  const Mirrored mirrored(true);
  FilledWindow filled;
  filled.window->resize(1180, 780);
  filled.window->queue().add(filled.config, "waits");
  Page& runs = filled.window->page(PageId::runs);
  filled.window->show_page(PageId::runs);
  auto& table = part<QAbstractItemView>(runs, "run_table");
  ASSERT_TRUE(wait_until([&] { return table.model()->rowCount() == 2; }));
  table.setCurrentIndex(table.model()->index(0, 1));
  QSet<QString> seen;
  const auto look = [&](const QString& text, const QObject& where, const std::string& page) {
    const QString plain =
        Qt::mightBeRichText(text) ? QTextDocumentFragment::fromHtml(text).toPlainText() : text;
    for (const QString& line : plain.split('\n')) {
      const QString loose = loose_words(line);
      if (seen.contains(line) || loose.isEmpty()) continue;
      seen << line;
      ADD_FAILURE() << page << ", " << where.metaObject()->className() << " '"
                    << where.objectName().toStdString() << "': '" << loose.toStdString() << "' in '"
                    << line.toStdString() << "'";
    }
  };
  int n_texts = 0;
  for_each_page(filled, [&](const std::string& page) {
    wait_until([] { return false; }, 300);
    look(filled.window->statusBar()->currentMessage(), *filled.window, page);
    for (QWidget* widget : filled.window->findChildren<QWidget*>()) {
      if (!widget->isVisible()) continue;
      ++n_texts;
      look(widget->toolTip(), *widget, page);
      if (const auto* label = qobject_cast<QLabel*>(widget)) look(label->text(), *widget, page);
      if (const auto* button = qobject_cast<QAbstractButton*>(widget))
        look(button->text(), *widget, page);
      if (const auto* box = qobject_cast<QGroupBox*>(widget)) look(box->title(), *widget, page);
      if (const auto* text = qobject_cast<QTextEdit*>(widget))
        look(text->toPlainText(), *widget, page);
      // What somebody types has no marks, so what is offered for that has none.
      if (const auto* combo = qobject_cast<QComboBox*>(widget))
        for (int i = 0; !combo->isEditable() && i < combo->count(); ++i)
          look(combo->itemText(i), *widget, page);
      if (const auto* tabs = qobject_cast<QTabBar*>(widget))
        for (int i = 0; i < tabs->count(); ++i)
          look(tabs->tabText(i), *widget, page);
      const auto* view = qobject_cast<QAbstractItemView*>(widget);
      if (!view || !view->model() || widget->parentWidget()->inherits("QComboBoxPrivateContainer"))
        continue;
      const QAbstractItemModel& model = *view->model();
      for (int row = 0; row < model.rowCount(); ++row)
        for (int column = 0; column < model.columnCount(); ++column)
          for (const int role : {Qt::DisplayRole, Qt::ToolTipRole})
            look(model.index(row, column).data(role).toString(), *widget, page);
    }
  });
  EXPECT_GT(n_texts, 300);
}

TEST(MirroredWindow, WhatLeavesTheAppHasNoMarks) {
  const QString amount = QStringLiteral("836.8 MiB");
  EXPECT_EQ(isolated(amount), amount) << "words from left to right need none";
  const QString hebrew = QString(QChar(0x5D0)) + "-run";
  EXPECT_EQ(isolated(hebrew).size(), hebrew.size() + 2);
  const Mirrored mirrored;
  EXPECT_TRUE(words_run_from_right());
  EXPECT_EQ(isolated(amount).size(), amount.size() + 2);
  EXPECT_EQ(without_isolates("a " + isolated(amount)), "a " + amount);
  EXPECT_EQ(isolated({}), QString());
}

}  // namespace
}  // namespace ferry::gui
