#pragma once
// Handles a page of a mapped file that is not there any more: the file was cut short, or its
// disk failed. The kernel then sends SIGBUS to the thread that touches the page, whichever it is.
// The programs install the handler once; MappedFile says which bytes are of which file.

#include <cstddef>
#include <filesystem>
#include <span>

namespace ferry {

/** From here on a page of a mapped file that cannot be read ends the process with exit code 4 and a
 * line that names the file. SIGBUS of other causes stays what it was. For the start of main. */
void end_on_lost_pages();

/** Notes, while it lives, that these bytes are the pages of a file. Moving keeps the note. Costs
 * nothing when pages are read. */
class NotedPages {
 public:
  NotedPages() = default;
  NotedPages(std::span<const std::byte> pages, const std::filesystem::path& path);
  NotedPages(NotedPages&& other) noexcept;
  NotedPages& operator=(NotedPages&& other) noexcept;
  NotedPages(const NotedPages&) = delete;
  NotedPages& operator=(const NotedPages&) = delete;
  ~NotedPages();

 private:
  struct Entry* entry_ = nullptr;
};

}  // namespace ferry
