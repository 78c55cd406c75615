#pragma once
// Files whose rows are chats. Private to src/data: sources.cpp opens them in the place of texts.

#include <memory>

#include "src/data/read/raw_rows.h"

namespace ferry {

/** The rows of a file of objects as chats (src/chat/rows.h), or null where its first row is none.
 * The text of each row is what chat::packed() gives. Error(data) with file and row. */
std::unique_ptr<TextRows> open_chats(const DatasetOptions& options);

}  // namespace ferry
