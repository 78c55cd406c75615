#include "src/files/lost_pages.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/error.h"
#include "src/base/utf8.h"

namespace ferry {

/** A file's pages. Entries are used again and never freed: a signal handler may read the list at
 * any moment, and can take no lock. */
struct Entry {
  std::atomic<bool> is_taken{true};
  std::atomic<uintptr_t> begin{0}, end{0};  // end is 0 while the entry says nothing
  std::array<char, 1024> name{};            // ends with a 0; a longer path loses its beginning
  Entry* next = nullptr;
};

namespace {

std::atomic<Entry*> first_entry{nullptr};
static_assert(std::atomic<Entry*>::is_always_lock_free &&
              std::atomic<uintptr_t>::is_always_lock_free);

Entry& take_entry() {
  for (Entry* entry = first_entry; entry; entry = entry->next) {
    bool is_taken = false;
    if (entry->is_taken.compare_exchange_strong(is_taken, true)) return *entry;
  }
  auto* entry = new Entry;
  entry->next = first_entry;
  while (!first_entry.compare_exchange_weak(entry->next, entry)) {
  }
  return *entry;
}

const Entry* find_entry(uintptr_t address) {
  for (const Entry* entry = first_entry; entry; entry = entry->next)
    if (address >= entry->begin && address < entry->end) return entry;
  return nullptr;
}

void tell(std::string_view text) {
  // The terminal may be gone; there is nobody to tell then.
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
}

/** Async-signal-safe: nothing but atomics, write and _exit. */
void on_bus_error(int signal, siginfo_t* info, void*) {
  const Entry* entry = find_entry(reinterpret_cast<uintptr_t>(info->si_addr));
  if (!entry) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // held back until the handler returns; then it ends the process as ever
    return;
  }
  tell("\nferry: [files.read] '");
  tell(entry->name.data());
  tell(
      "' became shorter while it was used, or its disk cannot be read - do not write to files that "
      "are in use; the last checkpoint is intact: ferry train --resume continues from it\n");
  ::_exit(static_cast<int>(Fault::data));
}

}  // namespace

void end_on_lost_pages() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

NotedPages::NotedPages(std::span<const std::byte> pages, const std::filesystem::path& path)
    : entry_(&take_entry()) {
  const std::string name = escaped(path.string());
  const size_t n_kept = std::min(name.size(), entry_->name.size() - 1);
  std::memcpy(entry_->name.data(), name.data() + (name.size() - n_kept), n_kept);
  entry_->name[n_kept] = '\0';
  entry_->begin = reinterpret_cast<uintptr_t>(pages.data());
  entry_->end = reinterpret_cast<uintptr_t>(pages.data() + pages.size());  // last: it is complete
}

NotedPages::NotedPages(NotedPages&& other) noexcept
    : entry_(std::exchange(other.entry_, nullptr)) {}

NotedPages& NotedPages::operator=(NotedPages&& other) noexcept {
  std::swap(entry_, other.entry_);
  return *this;
}

NotedPages::~NotedPages() {
  if (!entry_) return;
  entry_->end = 0;
  entry_->is_taken = false;
}

}  // namespace ferry
