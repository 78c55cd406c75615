#include "gui/widgets/aside.h"

#include <QBoxLayout>
#include <QStyle>
#include <QTextBrowser>
#include <algorithm>

namespace ferry::gui {

namespace {

/** Characters: where the page is wider, the words stand beside it. */
constexpr int kWideAside = 190, kLeastAside = 46, kMostAside = 90;

}  // namespace

Aside::Aside(QWidget* main, QTextBrowser* words, QWidget* parent)
    : QWidget(parent), layout_(new QBoxLayout(QBoxLayout::TopToBottom, this)), words_(words) {
  layout_->setContentsMargins(0, 0, 0, 0);
  layout_->addWidget(main, 1);
  layout_->addWidget(words);
  // Below the main part its words begin where the main part's do.
  words->document()->setDocumentMargin(style()->pixelMetric(QStyle::PM_LayoutLeftMargin));
}

void Aside::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  const int em = fontMetrics().averageCharWidth();
  const bool is_wide = width() >= kWideAside * em;
  layout_->setDirection(is_wide ? QBoxLayout::LeftToRight : QBoxLayout::TopToBottom);
  words_->setFrameShape(is_wide ? QFrame::StyledPanel : QFrame::NoFrame);
  words_->viewport()->setAutoFillBackground(is_wide);
  const int words_width = std::clamp(width() / 6, kLeastAside * em, kMostAside * em);
  const int words_height = fontMetrics().lineSpacing() * 9 / 2;
  words_->setMinimumSize(is_wide ? words_width : 0, is_wide ? 0 : words_height);
  words_->setMaximumSize(is_wide ? words_width : QWIDGETSIZE_MAX,
                         is_wide ? QWIDGETSIZE_MAX : words_height);
}

}  // namespace ferry::gui
