#pragma once
// Files and folders that are dragged from elsewhere and dropped on a page.

#include <filesystem>
#include <optional>

class QMimeData;

namespace ferry::gui {

/** The one path on this machine that is dropped; nullopt: none, or several. */
std::optional<std::filesystem::path> dropped_path(const QMimeData& dropped);

}  // namespace ferry::gui
