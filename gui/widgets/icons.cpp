#include "gui/widgets/icons.h"

#include <QApplication>
#include <QIconEngine>
#include <QPainter>
#include <QPalette>
#include <QSvgRenderer>
#include <algorithm>
#include <iterator>
#include <string_view>

namespace ferry::gui {

namespace {

struct Drawing {
  std::string_view name;
  const char* path;  ///< in a square of 24 by 24, as SVG has it
};

constexpr Drawing kDrawings[] = {
    {"start", "M3 11 12 4l9 7M5.5 9.5V20h13V9.5M10 20v-6h4v6"},
    {"runs", "M4 6h2M9 6h11M4 12h2M9 12h11M4 18h2M9 18h11"},
    {"new_run", "M12 4v16M4 12h16"},
    {"live", "M2 12h5l3-8 4 16 3-8h5"},
    {"samples", "M4 4h16v12H11l-5 4v-4H4zM8 8h8M8 12h5"},
    {"compare", "M4 3v18h17M7 16l4-6 4 3 5-8"},
    {"try", "M5 4h14v10h-7l-4 4v-4H5zM9.5 7.5h5M9.5 10.5h3"},
    {"export", "M12 16V4M7.5 8.5 12 4l4.5 4.5M4 14v6h16v-6"},
    {"doctor", "M9 4h6v5h5v6h-5v5H9v-5H4V9h5z"},
    {"settings", "M4 7h9M17 7h3M15 5v4M4 17h3M11 17h9M9 15v4M4 12h13M20 12h0M18.5 10v4"},
    {"open", "M4 5h16v14H4zM4 9h16"},
    {"pause", "M8 5v14M16 5v14"},
    {"resume", "M7 4.5 19 12 7 19.500z"},
    {"stop", "M6 6h12v12H6z"},
    {"save", "M12 4v11M7.5 10.500 12 15l4.500-4.500M5 20h14"},
    {"delete", "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5"},
    {"down", "M6 9l6 6 6-6"},
    {"more", "M5 12h.01M12 12h.01M19 12h.01"},
};

class LineEngine : public QIconEngine {
 public:
  explicit LineEngine(const char* path) : path_(path) {}

  void paint(QPainter* painter, const QRect& rect, QIcon::Mode mode, QIcon::State) override {
    const auto group = mode == QIcon::Disabled ? QPalette::Disabled : QPalette::Active;
    const auto role = mode == QIcon::Selected ? QPalette::HighlightedText : QPalette::WindowText;
    const QColor colour = QApplication::palette().color(group, role);
    const QByteArray svg =
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24' fill='none' "
        "stroke-width='1.8' "
        "stroke-linecap='round' stroke-linejoin='round' stroke='" +
        colour.name().toLatin1() + "'><path d='" + path_ + "'/></svg>";
    QSvgRenderer(svg).render(painter, rect);
  }

  QPixmap pixmap(const QSize& size, QIcon::Mode mode, QIcon::State state) override {
    QPixmap drawn(size);
    drawn.fill(Qt::transparent);
    QPainter painter(&drawn);
    paint(&painter, QRect({}, size), mode, state);
    return drawn;
  }

  QIconEngine* clone() const override { return new LineEngine(path_); }

 private:
  const char* path_;
};

}  // namespace

QIcon line_icon(const char* name) {
  const auto* const drawing = std::ranges::find(kDrawings, std::string_view(name), &Drawing::name);
  return drawing == std::end(kDrawings) ? QIcon() : QIcon(new LineEngine(drawing->path));
}

}  // namespace ferry::gui
