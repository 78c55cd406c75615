#pragma once
// `ferry runs stores` and `ferry runs delete`: what runs take of drives, and its end.

#include <span>
#include <string>

namespace ferry::cli {

/** The stores in these directories; in those that known runs and FERRY_NVME_PATH name where there
 * are none. */
void list_stores(std::span<const std::string> directories, bool wants_json);

/** Says what a run and its store take, or a store that was left over; removes it where `is_sure`.
 * Throws as service::delete_run(), and Error(usage) for the store of a run that is there. */
void delete_remains(const std::string& word, bool is_sure, bool wants_json);

}  // namespace ferry::cli
