#include "gui/widgets/dropped_path.h"

#include <QMimeData>
#include <QUrl>

#include "gui/models/text.h"

namespace ferry::gui {

std::optional<std::filesystem::path> dropped_path(const QMimeData& dropped) {
  const QList<QUrl> urls = dropped.urls();
  if (urls.size() != 1 || !urls.front().isLocalFile()) return std::nullopt;
  return to_path(urls.front().toLocalFile());
}

}  // namespace ferry::gui
